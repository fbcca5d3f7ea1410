"""Discrepancies between choices and a model, and the models that mend them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from raters.checking import discrepancies as common
from raters.checking.discrepancies import AGREEMENT, DRIFT, Discrepancy, Draw, Layout, Measure
from raters.errors import DataError, refuse
from raters.kinds.choices.audit import menus
from raters.kinds.remedies import excesses, remedy
from raters.models.choices import LatentClassLogit, MixedLogit, NestedLogit


def _of_cells(layout: Layout, cell: Int[np.ndarray, " row"]) -> Measure:
    """Measure the choices of cells of rows, against the model."""

    def of_draw(draw: Draw) -> tuple[common.PerRow, common.PerRow]:
        expected = layout.number * draw.probs[1]
        return draw.counts[1] - expected, expected * (1 - draw.probs[1])

    return excesses(cell, of_draw)


def _menus(layout: Layout) -> Measure | str:
    """Squared departures of choices by menu and alternative, over the model's variance."""
    found = menus(layout.data)
    if not found.menu.any():
        return "all sets offer the same alternatives"
    return _of_cells(layout, found.cell)


MENUS = Discrepancy(
    "menus",
    "squared differences of the alternatives' shares by what else was offered, over the model's",
    _menus,
    "What else is offered changes the shares of the alternatives in another way than {model} says",
    mend=remedy(
        (
            (MixedLogit, LatentClassLogit, NestedLogit),
            "rt.models.NestedLogit(nests=...) lets alternatives resemble each other, and"
            " rt.models.LatentClassLogit() types of choosers want them",
        )
    ),
)


def _habits(layout: Layout) -> Measure | str:
    """Squared departures of choices by chooser and alternative, over the model's variance."""
    data = layout.data
    by_chooser = data.judgements_by("annotator")
    if (by_chooser > 0).sum() < 2:
        return "there is one {judge} only"
    if by_chooser.max() < 2:
        return "no {judge} chose twice"
    key = layout.judge * len(data.alternatives) + np.asarray(data.alternative)
    return _of_cells(layout, np.unique(key, return_inverse=True)[1])


HABITS = Discrepancy(
    "habits",
    "squared differences of the alternatives' shares by {judge}, over the model's",
    _habits,
    "Single {judges} keep to some alternatives more than {model} says",
    mend=remedy(
        (
            (),
            "rt.MixedLogit(error_components=...) lets the constants of alternatives differ"
            " between choosers, and correlated=True their tastes go together",
        ),
        (LatentClassLogit, "rt.models.LatentClassLogit() has types of choosers"),
        ((), "rt.check(..., time=...) tells it from inertia"),
    ),
)


def _repeats(layout: Layout) -> Measure | str:
    """Share of choices of what the chooser chose last, of those from sets that offer it again."""
    if layout.time is None:
        return "no times were given"
    alternative, chosen = (np.asarray(x) for x in (layout.data.alternative, layout.data.chosen))
    _, first, place = np.unique(layout.data.group, return_index=True, return_inverse=True)
    judge, time, number = (x[first] for x in (layout.judge, layout.time, layout.number))
    if (layout.time != time[place]).any():
        problem = "differs between the rows of a set, which is one choice"
        expected = "give the time of the set in each of its rows, sorted by set and alternative"
        instead = 'time=choices.to_frame()["set"].map(when)'
        refuse("time", problem=problem, expected=expected, instead=instead, error=DataError)
    order = np.lexsort((time, judge))
    same = np.diff(judge[order]) == 0
    at_once = same & (np.diff(time[order]) == 0)
    single = number[order] == 1
    single[1:] &= ~at_once
    single[:-1] &= ~at_once
    follows = same & single[:-1] & single[1:]
    taken, last = np.full((2, len(first)), -1)
    taken[place[chosen > 0]] = alternative[chosen > 0]
    last[order[1:][follows]] = taken[order[:-1][follows]]
    again = np.flatnonzero(alternative == last[place])
    if not len(again):
        return "no {judge} was later offered again what they chose last"

    def measure(draw: Draw) -> float:
        return float(draw.counts[1, again].mean())

    return measure


_LAST = (
    "give the alternatives a feature that is 1 for what the chooser chose last and 0 for others,"
    " features=[..., 'last'], and fit again"
)
REPEATS = Discrepancy(
    "repeats",
    "share of choices of what the {judge} chose last, where it is offered again",
    _repeats,
    "Choices repeat the {judge}'s last one more often than {model} says",
    "Choices repeat the {judge}'s last one less often than {model} says",
    remedy(
        ((MixedLogit, LatentClassLogit), "this may be tastes that last: fit rt.MixedLogit()"),
        ((), f"this may be inertia or a habit that forms: {_LAST}"),
        low=[((), f"choosers may seek variety: {_LAST}")],
    ),
)

DISCREPANCIES = (MENUS, HABITS, AGREEMENT, DRIFT, REPEATS)
