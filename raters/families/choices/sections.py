"""Report of choices: the coefficients, and the shares of the alternatives."""

from __future__ import annotations

import xarray as xr

from raters import figures
from raters.auditing.choices import coefficients, kinds_of_terms, shares_of
from raters.checking.predictive import check
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Section, Table
from raters.models.choices import MixedLogit
from raters.reporting.cells import write_csv
from raters.reporting.facts import percent

# Probability of a sign from which on it is called known.
_KNOWN = 0.975
# Replicated tables of the checks.
_REPLICATES = 400
_MEASURES = {
    "menus": "shares by what else is offered",
    "habits": "shares by chooser",
    "agreement": "choosers of one set",
    "drift": "choices along time",
    "repeats": "choices of the last one again",
}
# What no discrepancy sees of a model with tastes of each chooser's own.
_SHAPE = (
    "Not measured: the shape of tastes, which MixedLogit takes as normal. Where choosers may be of"
    ' few types, compare: az.compare({"normal": rt.log_likelihood(model, result, by="annotator"),'
    ' "types": rt.log_likelihood(other, other_result, by="annotator")}), with other ='
    " rt.models.LatentClassLogit()."
)
_MEANINGS = {
    "coefficient": (
        "change of utility, in logits, with one unit of the feature as the table has it"
    ),
    "coefficient_spread": (
        "standard deviation of the coefficient between choosers, in the same unit"
    ),
    "correlation": "correlation of the two coefficients between choosers",
    "component_spread": "standard deviation between choosers of what they add to the group",
    "constant": "utility of the alternative, all else equal, less the mean of all alternatives",
    "interaction": (
        "change of the alternative's utility with one unit of the chooser's feature, less the mean"
        " of all alternatives"
    ),
}


def _columns(name: str, level: float) -> tuple[Column, ...]:
    meaning = _MEANINGS.get(name, "")
    sign = Column(
        "p_positive", "above 0", "percent", "Above 0: the probability that it is positive."
    )
    return (
        Column("term", "term", "name"),
        # As text: coefficients of different units have no scale in common.
        Column("written", "value", "text", f"Value: {meaning}." if meaning else ""),
        Column("interval", f"{level:.0%} interval", "text"),
        *(() if name.endswith("spread") else (sign,)),  # A standard deviation is.
    )


def terms(context: AuditContext) -> Section | None:
    """Coefficients, constants and other parameters of the model, in the user's units."""
    table = coefficients(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index()
    shown = frame.assign(
        written=frame["value"].map(_digits),
        interval=[
            f"{_digits(low)} … {_digits(high)}"
            for low, high in zip(frame["value_low"], frame["value_high"], strict=True)
        ],
    )
    # Of each chooser there are many; the file has them.
    everybodys = {own.site for own in context.program.model.own}
    tables = tuple(
        Table(
            name,
            f"{many[0].upper()}{many[1:]}",
            _columns(name, context.level),
            shown[shown["parameter"] == name].to_dict("records"),
        )
        for name, many in kinds_of_terms(table).items()
        if name not in everybodys
    )
    sentence = _signs(table)
    return Section(
        key="coefficients",
        title="Coefficients",
        sentence=sentence,
        headline=sentence,
        tables=tables,
        facts={
            name: {row["term"]: row["value"] for row in rows.to_dict("records")}
            for name, rows in frame.groupby("parameter", sort=False)
        },
        files={"coefficients.csv": lambda path: write_csv(frame, path)},
    )


def _digits(number: float) -> str:
    """A number of three significant digits."""
    return f"{number:#.3g}".rstrip(".")


def _signs(table: xr.Dataset) -> str:
    """Sentence on the features whose effect has a known sign."""
    own = table.isel(term=table["parameter"].values == "coefficient")
    if not own.sizes["term"]:
        return "The utilities are constants of the alternatives, and depend on no feature of them."
    chance, names = own["p_positive"].values, own["term"].values
    up = [isolated(name) for name, p in zip(names, chance, strict=True) if p >= _KNOWN]
    down = [isolated(name) for name, p in zip(names, chance, strict=True) if p <= 1 - _KNOWN]
    parts = [
        f"{', '.join(some)} {verb} the utility of an alternative"
        for some, verb in ((up, "raise" if len(up) > 1 else "raises"), (down, _lower(down)))
        if some
    ]
    open_signs = len(names) - len(up) - len(down)
    rest = f"of {counted(open_signs, 'feature')} the sign is open" if open_signs else ""
    text = "; ".join([*parts, *([rest] if rest else [])])
    return f"{text[0].upper()}{text[1:]}."


def _lower(names: list[str]) -> str:
    return "lower" if len(names) > 1 else "lowers"


def shares(context: AuditContext) -> Section | None:
    """Shares of the alternatives by what was offered with them, observed and expected."""
    table = shares_of(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index(drop=True)
    outside = (frame["observed"] < frame["low"]) | (frame["observed"] > frame["high"])
    number = frame["menu"].nunique()
    menus = counted(number, "menu")
    sentence = (
        f"The choices are from {menus} of alternatives. Of {counted(len(frame), 'share')},"
        f" {int(outside.sum())} lie outside of the {percent(context.level)} interval in which those"
        " of replicated choices lie."
    )
    columns = (
        Column("alternative", "alternative", "name"),
        Column("menu", "offered", "text"),
        Column("choices", "choices", "whole"),
        Column("observed", "observed", "percent", "Observed: share of the choices."),
        Column("expected", "expected", "percent", "Expected: the share that the model says."),
    )
    return Section(
        key="shares",
        title="Shares by what was offered",
        sentence=sentence,
        tables=(Table("shares", "Shares of the alternatives", columns, frame.to_dict("records")),),
        facts={"num_menus": number, "shares_outside": int(outside.sum())},
        files={
            "shares.csv": lambda path: write_csv(frame, path),
            "shares.png": lambda path: figures.choice_shares(table).savefig(path),
        },
    )


def checks(context: AuditContext) -> Section:
    """Posterior predictive checks: independence from irrelevant alternatives, and habits of single
    choosers."""
    found = check(context.program.model, context.result, replicates=_REPLICATES)
    rows = [
        {
            "discrepancy": str(name).replace("_", " "),
            "observed": _digits(float(row["observed"])),
            "replicated": f"{_digits(float(row['replicated_low']))} …"
            f" {_digits(float(row['replicated_high']))}",
            "p": float(row["p_adjusted"]),
            "measures": _MEASURES.get(str(name), str(row["title"])),
        }
        for name, row in found.table.to_dataframe().iterrows()
    ]
    columns = (
        Column("discrepancy", "discrepancy", "name"),
        Column("measures", "of", "text"),
        Column("observed", "observed", "text"),
        Column("replicated", "95% of replicated", "text"),
        Column("p", "p-value (adjusted)", "number"),
    )
    shape = [_SHAPE] if isinstance(context.program.model, MixedLogit) else []
    sentence = " ".join([*found.remarks, *shape])
    headline = " ".join(found.sentences)
    return Section(
        key="checks",
        title="Does the model fit?",
        sentence=sentence,
        headline=headline,
        tables=(
            (Table("checks", "Discrepancies, in the data and replicated", columns, rows),)
            if rows
            else ()
        ),
        facts={"failed": found.failed, "not_measured": dict(found.not_measured)},
    )
