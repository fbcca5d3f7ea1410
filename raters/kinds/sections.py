"""Sections of reports that several kinds share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import expit

from raters import kinds
from raters.auditing.intervals import mean_and_interval, ranked, ranked_by
from raters.fitting.result import draws_of
from raters.kinds import Form
from raters.models.comparisons.directions import has_directions

# Probability of a sign from which on it is called known.
_KNOWN = 0.975
# Columns of tables by their forms. Of others, probabilities are per cent, and the rest numbers.
_FORMS: dict[Form, str] = {
    "name": "alternative annotator discrepancy feature item state term",
    "text": "action label menu title",
    "range": "rank",
    "whole": "choices common_rank judgements levels_used responses steps",
    "digits": "observed replicated value",
    "percent": "accuracy agreement expected identified influence probability share_right",
    "interval": "ability coefficient competence difficulty discrimination fair_rating first_share"
    " rationality reward worth",
}
_MARKS = {"competence": (0.0, 1.0), "rationality": (0.0, 1.0), "first_share": (0.5,)}


def shown(names: str, **forms: Form) -> tuple[kinds.Column, ...]:
    """Columns of a table, each in the form that it has everywhere unless another is given."""
    usual: dict[str, Form] = {one: form for form, text in _FORMS.items() for one in text.split()}
    columns = []
    for name in names.split():
        form = usual.get(name, "percent" if name.startswith("p_") else "number")
        marks = _MARKS.get(name, (0.0,))
        columns.append(kinds.Column(name, forms.get(name, form), marks=marks))
    return tuple(columns)


def order_of(table: pd.DataFrame, level: float, **numbers: Any) -> dict[str, Any]:
    """Finding on a ranking: its ends, and how many neighbours are told apart."""
    items, neighbours = table["item"].tolist(), table["p_above_next"].iloc[:-1]
    numbers |= {"first": items[0], "p_best": table["p_best"].iloc[0], "last": items[-1]}
    apart = int((neighbours >= level).sum())
    return kinds.finding("order", neighbours=len(neighbours), apart=apart, **numbers)


def ranking(context: kinds.AuditContext, site: str = "reward") -> kinds.Section | None:
    """Items by their rewards or worths; of a mixture, for each type of annotators."""
    if site not in context.program.sites:
        return None
    posterior, audit = context.result["posterior"].dataset, context.audit
    calibration = None if audit is None else audit.calibration
    draws, figures = posterior[site], {}
    if calibration is not None:
        draws = calibration.truth.expand_dims("chain").rename(site)
    if "type" in draws.dims:
        share = posterior["type_weight"].mean(("chain", "draw")).to_series()
        table = ranked_by(draws, "type", context.level)
        findings = [
            order_of(rows, context.level, type=kind, share=share[kind])
            for kind, rows in table.groupby("type", sort=False)
        ]
    else:
        table = ranked(draws, context.level)
        findings = [order_of(table, context.level, true=calibration is not None)]
        if site == "reward":
            tree = xr.DataTree.from_dict({"posterior": xr.Dataset({site: draws})})
            figures = {"ranks": {"result": tree}}
    if has_directions(context.program):
        share = posterior["type_weight"].mean(("chain", "draw")).to_series()
        findings.append(kinds.finding("directions", **share[["guesser", "adversary"]]))
    if audit is not None and "worlds" in audit.tables:
        findings.append(kinds.finding("mirrored"))
    if audit is not None and audit.influential:
        findings.append(kinds.finding("influence", **audit.influential))
    return kinds.Section(
        key="items",
        title="Ranking",
        findings=tuple(findings),
        columns=shown(f"rank item {site} p_best p_above_next"),
        table=table,
        group="type" if "type" in table else "",
        figures=figures,
    )


def signs(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Finding on the signs of coefficients."""
    up, down = table["p_positive"] >= _KNOWN, table["p_positive"] <= 1 - _KNOWN
    names = {"up": table[name][up].tolist(), "down": table[name][down].tolist()}
    return kinds.finding("signs", **names, open=int((~up & ~down).sum()), of=len(table))


def ties_of_equals(context: kinds.AuditContext, observed: float) -> kinds.Section:
    """Probability that two equal items tie, beside the share that does."""
    propensity = draws_of(context.program, context.result)[0]["tie_propensity"]
    if context.program.data.pair is None:
        propensity = propensity[:, 0]  # of two items; then come three
    # As a share of votes between equals in either law of ties; the mean over annotators.
    equal = expit(propensity - np.log(2)).reshape(len(propensity), -1).mean(1)
    probability = mean_and_interval("probability", equal, context.level)
    numbers = {name: float(value) for name, value in probability.items()}
    return kinds.Section("ties", findings=(kinds.finding("ties", observed=observed, **numbers),))
