"""Choices from sets as a kind of judgement."""

from __future__ import annotations

from raters.auditing.choices import coefficients, shares_of
from raters.checking.predictive import check
from raters.families.discrepancies.choices import DISCREPANCIES
from raters.families.sections import signs
from raters.judgements.choices import Choices
from raters.kinds import AuditContext, Column, Kind, Reader, Section, Words, register
from raters.models import choices as models
from raters.models.choices import MixedLogit, MultinomialLogit

# Replicated tables of the checks.
_REPLICATES = 400


def terms(context: AuditContext) -> Section:
    """Coefficients, constants and other parameters of the model, in the user's units."""
    table = coefficients(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index()
    # Of each chooser there are many.
    everybodys = {site.site for site in context.program.model.own}
    frame = frame[~frame["parameter"].isin(everybodys)]
    spread = frame["parameter"].str.endswith("spread")
    facts = {
        name: dict(zip(rows["term"], rows["value"], strict=True))
        for name, rows in frame.groupby("parameter", sort=False)
    }
    return Section(
        key="coefficients",
        title="Coefficients",
        findings=(signs(frame[frame["parameter"] == "coefficient"], "term"),),
        columns=(
            Column("term", "name"),
            # Coefficients of different units have no scale in common.
            Column("value", "digits"),
            Column("p_positive", "percent"),
        ),
        table=frame.assign(p_positive=frame["p_positive"].mask(spread)),
        group="parameter",
        facts=facts,
    )


def shares(context: AuditContext) -> Section:
    """Shares of the alternatives by what was offered with them, observed and expected."""
    table = shares_of(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index(drop=True)
    frame = frame.rename(columns={"low": "expected_low", "high": "expected_high"})
    outside = (frame["observed"] < frame["expected_low"]) | (
        frame["observed"] > frame["expected_high"]
    )
    numbers = {"num_menus": frame["menu"].nunique(), "shares_outside": int(outside.sum())}
    return Section(
        key="shares",
        title="Shares by what was offered",
        findings=({"code": "shares", "of": len(frame)} | numbers,),
        columns=(
            Column("alternative", "name"),
            Column("menu", "text", "offered"),
            Column("choices", "whole"),
            Column("observed", "percent"),
            Column("expected", "percent"),
        ),
        table=frame,
        facts=numbers,
        figures={"choice_shares": {"shares": table}},
    )


def checks(context: AuditContext) -> Section:
    """Posterior predictive checks: independence from irrelevant alternatives, and habits of single
    choosers."""
    checked = check(context.program.model, context.result, replicates=_REPLICATES)
    findings = [{"text": sentence} for sentence in checked.remarks]
    if isinstance(context.program.model, MixedLogit):
        findings.append({"code": "normal_tastes"})
    return Section(
        key="checks",
        title="Does the model fit?",
        findings=tuple(findings),
        columns=(
            Column("discrepancy", "name"),
            Column("title", "text", "of"),
            Column("observed", "digits"),
            Column("replicated", "digits", "95% of replicated"),
            Column("p_adjusted", "number", "p-value (adjusted)"),
        ),
        table=checked.table.to_dataframe().reset_index(),
        facts={"failed": checked.failed, "not_measured": dict(checked.not_measured)},
    )


CHOICES = register(
    Kind(
        data=Choices,
        readers=(
            Reader(Choices.from_frame, shapes=(("set", "alternative", "chosen"),), part_of="set"),
            Reader(Choices.from_wide, shapes=(("choice", "alternatives"),)),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=MultinomialLogit(),
        words=Words("choice", "choices"),
        sections=(terms, shares, checks),
        discrepancies=DISCREPANCIES,
        threshold=0.0,  # Of nothing: `raters audit` wants one of every kind.
        unjudged=(
            "Nobody is right or wrong in what they choose, so that no annotator is judged; rt.check"
            " says whether single annotators keep to some alternatives."
        ),
        needs={"features": ("features",), "interactions": ("choosers",)},
    )
)
