"""Discrepancies between choices and a model, and the models that mend them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from raters.auditing.choices import menus
from raters.checking.discrepancies import AGREEMENT, DRIFT, Discrepancy, Draw, Layout, Measure
from raters.judgements.names import plural
from raters.models.choices import LatentClassLogit, MultinomialLogit


def _excess(layout: Layout, cell: Int[np.ndarray, " row"]) -> Measure:
    """Mean over cells of the squared sum of residuals over its variance under the model."""
    size = int(cell.max(initial=-1)) + 1

    def measure(draw: Draw) -> float:
        residual = draw.counts[1] - layout.number * draw.probs[1]
        variance = layout.number * draw.probs[1] * (1 - draw.probs[1])
        total, expected = (np.bincount(cell, each, size) for each in (residual, variance))
        # One choice more: what nobody is expected to choose would decide alone.
        return float((total**2 / (expected + 1.0)).mean())

    return measure


def _menus(layout: Layout) -> Measure | str:
    """Squares of the differences between observed and expected choices of each alternative from
    each menu, over the model's variance."""
    found = menus(layout.data)
    if found.number < 2:
        return "all sets offer the same alternatives"
    return _excess(layout, found.cell)


MENUS = Discrepancy(
    "menus",
    "squared differences of the alternatives' shares by what else was offered, over the model's",
    _menus,
    "What else is offered changes the shares of the alternatives in another way than {model} says",
    mend=lambda program, is_high: (
        "rt.NestedLogit(nests=...) lets alternatives resemble each other, and rt.LatentClassLogit()"
        " types of choosers want them"
        if isinstance(program.model, MultinomialLogit)
        else ""
    ),
)


def _habits(layout: Layout) -> Measure | str:
    """Squares of the differences between observed and expected choices of each alternative by each
    chooser, over the model's variance."""
    data = layout.data
    by_chooser = data.judgements_by("annotator")
    if (by_chooser > 0).sum() < 2:
        return "there is one {judge} only"
    if by_chooser.max() < 2:
        return "no {judge} chose twice"
    key = layout.judge * len(data.alternatives) + np.asarray(data.alternative)
    return _excess(layout, np.unique(key, return_inverse=True)[1])


HABITS = Discrepancy(
    "habits",
    "squared differences of the alternatives' shares by {judge}, over the model's",
    _habits,
    "Single {judges} keep to some alternatives more than {model} says",
    mend=lambda program, is_high: (
        "more types (num_types=) may mend it"
        if isinstance(program.model, LatentClassLogit)
        else f"rt.MixedLogit() lets {plural(program.data.judge)} differ, and rt.LatentClassLogit()"
        " types of them"
    ),
)

#: Discrepancies of choices.
CHOICES = (MENUS, HABITS, AGREEMENT, DRIFT)
