"""Sections of a report on choices."""

from __future__ import annotations

from raters import kinds
from raters.checking.predictive import check
from raters.kinds.choices.audit import coefficients, shares_of
from raters.kinds.sections import shown, signs
from raters.model import Own, facts_of
from raters.models.choices import MixedLogit

# Replicated tables of the checks.
_REPLICATES = 400


def terms(context: kinds.AuditContext) -> kinds.Section:
    """Coefficients, constants and other parameters of the model, in the user's units."""
    frame = coefficients(context.program, context.result, context.level).to_dataframe()
    # Of each chooser there are many.
    everybodys = {site.site for site in facts_of(context.program.model, Own)}
    frame = frame.reset_index().loc[lambda rows: ~rows["parameter"].isin(everybodys)]
    spread = frame["parameter"].str.endswith("spread")
    return kinds.Section(
        key="coefficients",
        findings=(signs(frame[frame["parameter"] == "coefficient"], "term"),),
        # Coefficients of different units have no scale in common.
        columns=shown("term value p_positive"),
        table=frame.assign(p_positive=frame["p_positive"].mask(spread)),
        group="parameter",
    )


def shares(context: kinds.AuditContext) -> kinds.Section:
    """Shares of the alternatives by what was offered with them, observed and expected."""
    table = shares_of(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index(drop=True)
    outside = int((~frame["observed"].between(frame["low"], frame["high"])).sum())
    menus = frame["menu"].nunique()
    return kinds.Section(
        key="shares",
        title="Shares by what was offered",
        findings=(kinds.finding("shares", menus=menus, outside=outside, of=len(frame)),),
        columns=shown("alternative menu choices observed expected", observed="percent"),
        table=frame.rename(columns={"low": "expected_low", "high": "expected_high"}),
    )


def checks(context: kinds.AuditContext) -> kinds.Section:
    """Posterior predictive checks: irrelevant alternatives, and habits of single choosers."""
    checked = check(context.program.model, context.result, replicates=_REPLICATES)
    findings = [{"text": sentence} for sentence in checked.remarks]
    if isinstance(context.program.model, MixedLogit):
        findings.append(kinds.finding("normal_tastes"))
    return kinds.Section(
        key="checks",
        title="Does the model fit?",
        findings=tuple(findings),
        columns=shown("discrepancy title observed replicated p_adjusted", p_adjusted="number"),
        table=checked.table.to_dataframe().reset_index(),
    )
