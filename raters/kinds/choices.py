"""Choices from sets as a kind of judgement: coefficients in the user's units, shares by offer, and
discrepancies from a model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int
from numpyro.distributions import constraints

from raters import kinds
from raters.auditing.intervals import mean_and_interval
from raters.checking import discrepancies as common
from raters.checking.discrepancies import Draw, Layout, Measure, discrepancy, excesses
from raters.checking.predictive import check
from raters.errors import refuse_data
from raters.errors.validation import checked, share
from raters.fitting.predict import probs_of_draws, replicated
from raters.fitting.result import draws_of, program_of
from raters.judgements.choices import Choices
from raters.judgements.counts import ranks
from raters.judgements.names import name_text, names_array
from raters.kinds.sections import shown, signs
from raters.model import Model, axis_names_of, own_sites
from raters.models import choices as models
from raters.models.choices import MixedLogit, MultinomialLogit
from raters.program import Program

# Draws under which shares are predicted.
_MOST_DRAWS = 400


class Menus(NamedTuple):
    """Menus, which are the alternatives that sets offer, and the alternatives of each as cells."""

    of_set: Int[np.ndarray, " set"]
    cell: Int[np.ndarray, " offer"]
    menu: Int[np.ndarray, " cell"]
    alternative: Int[np.ndarray, " cell"]


def menus_of(data: Choices) -> Menus:
    """Menus of the sets, those from which most choices were made first."""
    offered, number = np.asarray(data.offered, np.int64), len(data.alternatives)
    every = np.zeros((data.num_rows, number + 1), bool)
    np.put_along_axis(every, offered, values=True, axis=1)  # −1 is the last
    own = ranks([every[:, :-1]])
    order = np.argsort(-np.bincount(own, data.weight), kind="stable")
    of_set = np.argsort(order)[own]
    key, cell = np.unique((of_set[:, None] * number + offered)[data.there], return_inverse=True)
    return Menus(of_set, cell, key // number, key % number)


@checked
def choice_shares(model: Model[Any], result: xr.DataTree, *, level: float = 0.9) -> xr.Dataset:
    """Shares of the alternatives by what was offered with them, and what the model says.

    Under a model with independence from irrelevant alternatives, what else is offered takes from
    all alternatives in proportion. Where it takes more from some, observed shares lie outside of
    the intervals, for some menus above them and for others below.

    Parameters
    ----------
    model : Model
    result : xarray.DataTree
    level : float
        Probability of the intervals.

    Returns
    -------
    xarray.Dataset
        Axis ``cell``, with the coordinates ``menu`` (names of what was offered) and
        ``alternative``: ``choices``, the number of choices from such sets; ``observed``, the share
        of the alternative among them; ``expected``, the model's share, and ``low`` and ``high``,
        between which the share of as many replicated choices lies.

    Examples
    --------
    >>> import raters as rt
    >>> table = {"trip": [1, 1, 2, 2, 3, 3, 3, 4, 4, 4], "taken": [1, 0, 0, 1, 1, 0, 0, 0, 0, 1],
    ...          "mode": ["car", "bus"] * 2 + ["car", "bus", "tram"] * 2}
    >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken")
    >>> model, nuts = rt.MultinomialLogit(features=False), rt.NUTS(500, 300, chains=2)
    >>> result = rt.fit(model, choices, nuts, seed=0, progress=False)
    >>> rt.auditing.choice_shares(model, result)["menu"].values[0]
    'bus, car'
    """
    share("level", level)
    program = program_of(model, result)
    if not isinstance(program.data, Choices):
        problem = f"is of {type(program.data).__name__}"
        expected = "shares by what was offered are of choices"
        instead = "rt.fit(rt.MultinomialLogit(), choices, seed=0)"
        refuse_data("result", problem=problem, expected=expected, instead=instead)
    data = program.data.unpadded()
    found, rng = menus_of(data), np.random.default_rng(0)
    total = np.bincount(found.of_set, data.weight)[found.menu]
    draws, _ = draws_of(program, result, _MOST_DRAWS, 0)
    tables = []
    for probs, _ in probs_of_draws(Program(program.model, data), draws, 0):
        both = np.asarray(data.weight) * probs, replicated(data, probs, rng)
        tables.append([np.bincount(found.cell, one.T[data.there]) / total for one in both])
    expected, drawn = np.swapaxes(tables, 0, 1)
    low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
    columns = {
        "choices": total.astype(np.int64),
        "observed": np.bincount(found.cell, np.asarray(data.chosen)[data.there]) / total,
        "expected": np.mean(expected, axis=0),
        "low": low,
        "high": high,
    }
    names = pd.Series(map(name_text, data.alternatives), dtype=object)[found.alternative]
    coords = {
        "menu": ("cell", names.groupby(found.menu).transform(", ".join).to_numpy(object)),
        "alternative": ("cell", names_array(data.alternatives)[found.alternative]),
    }
    return xr.Dataset({name: ("cell", column) for name, column in columns.items()}, coords)


def coefficients(program: Program[Choices], result: xr.DataTree, level: float) -> xr.Dataset:
    """Posterior means and intervals of all parameters, in the user's units."""
    draws, _ = draws_of(program, result)
    terms, of, values = [], [], []
    for name, site in program.sites.items():
        drawn, kind, places = draws[name], name, np.ones(site.shape, bool)
        if site.support is constraints.corr_cholesky:
            # The correlations are L Lᵀ, which is symmetric: those below its diagonal.
            drawn, kind = drawn @ np.swapaxes(drawn, -1, -2), "correlation"
            places = np.tril(places, -1)
        for index in map(tuple, np.argwhere(places)):
            terms.append(_term(program, kind, site.dims, index))
            of.append(kind)
            values.append(drawn[(slice(None), *index)])
    table = np.stack(values).T
    columns = mean_and_interval("value", table, level)
    columns |= {"sd": table.std(0), "p_positive": (table > 0).mean(0)}
    coords = {"term": terms, "parameter": ("term", of)}
    return xr.Dataset({name: ("term", column) for name, column in columns.items()}, coords)


def _term(
    program: Program[Choices], name: str, dims: tuple[str, ...], index: tuple[int, ...]
) -> str:
    """Name of an entry of a site: ``price``, ``car``, ``income × car``."""
    if not dims:
        return name.replace("_", " ")
    parts = []
    named = {**program.data.names, **axis_names_of(program.model, program.data)}
    for axis, place in zip(dims, index, strict=True):
        known = program.coords.get(axis)
        label = name_text(place if known is None else known[place])
        parts.append(label if known is not None and axis in named else f"{axis} {label}")
    return " × ".join(reversed(parts))


# ---------------------------------------------------------------- sections of a report

# Replicated tables of the checks.
_REPLICATES = 400


def terms(context: kinds.AuditContext) -> kinds.Section:
    """Coefficients, constants and other parameters of the model, in the user's units."""
    frame = coefficients(context.program, context.result, context.level).to_dataframe()
    # Of each chooser there are many.
    everybodys = own_sites(context.program.model)
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
    table = choice_shares(context.program.model, context.result, level=context.level)
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


def _of_cells(layout: Layout, cell: Int[np.ndarray, "set position"]) -> Measure:
    """Measure the choices of cells, against the model."""

    def of_draw(draw: Draw) -> tuple[common.PerRow, common.PerRow]:
        expected = layout.number * draw.probs
        return (draw.counts - expected).T, (expected * (1 - draw.probs)).T

    return excesses(np.where(layout.data.there, cell, -1), of_draw)


@discrepancy
def menus(layout: Layout) -> Measure | str:
    """Squared departures of choices by menu and alternative, over the model's variance."""
    found = menus_of(layout.data)
    if not found.menu.any():
        return "all sets offer the same alternatives"
    key = found.of_set[:, None] * len(layout.data.alternatives) + layout.data.offered
    return _of_cells(layout, key)


@discrepancy
def habits(layout: Layout) -> Measure | str:
    """Squared departures of choices by chooser and alternative, over the model's variance."""
    data = layout.data
    by_chooser = data.judgements_by("annotator")
    if (by_chooser > 0).sum() < 2:
        return "there is one {judge} only"
    if by_chooser.max() < 2:
        return "no {judge} chose twice"
    return _of_cells(layout, layout.judge[:, None] * len(data.alternatives) + data.offered)


@discrepancy
def repeats(layout: Layout) -> Measure | str:
    """Share of choices of what the chooser chose last, of those from sets that offer it again."""
    if layout.time is None:
        return "no times were given"
    alternative, chosen = np.asarray(layout.data.offered), np.asarray(layout.data.chosen)
    judge, time = layout.judge, layout.time
    order = np.lexsort((time, judge))
    same = np.diff(judge[order]) == 0
    at_once = same & (np.diff(time[order]) == 0)
    single = layout.number[order] == 1
    single[1:] &= ~at_once
    single[:-1] &= ~at_once
    follows = same & single[:-1] & single[1:]
    taken = np.take_along_axis(alternative, chosen.argmax(1)[:, None], 1)
    last = np.full_like(taken, -2)
    last[order[1:][follows]] = taken[order[:-1][follows]]
    again = alternative == last
    if not again.any():
        return "no {judge} was later offered again what they chose last"

    def measure(draw: Draw) -> float:
        return float(draw.counts.T[again].mean())

    return measure


CHOICES = kinds.Kind(
    data=Choices,
    readers=(
        kinds.Reader(Choices.from_frame, shapes=(("set", "alternative", "chosen"),), part_of="set"),
        kinds.Reader(Choices.from_wide, shapes=(("choice", "alternatives"),)),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=MultinomialLogit(),
    words=kinds.Words("choice", "choices"),
    sections=(terms, shares, checks),
    discrepancies=(menus, habits, common.agreement, common.drift, repeats),
    unjudged=(
        "Nobody is right or wrong in what they choose, so that no annotator is judged; rt.check"
        " says whether single annotators keep to some alternatives."
    ),
    needs={"features": ("features",), "interactions": ("choosers",)},
)
