"""Discrepancies between choices and a model, and the models that mend them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.auditing.choices import menus
from raters.checking.discrepancies import AGREEMENT, DRIFT, Discrepancy, Draw, Layout, Measure
from raters.errors import DataError
from raters.judgements.names import name_text, plural
from raters.models.choices import LatentClassLogit, MixedLogit, MultinomialLogit
from raters.program import Program

# Alternatives that an advised model gives error components at most: those chosen most.
_MOST_COMPONENTS = 4


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
        "rt.models.NestedLogit(nests=...) lets alternatives resemble each other, and rt.models.LatentClassLogit()"
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


def _with_components(program: Program[Any]) -> MixedLogit:
    """A model in which the constants of single alternatives differ between choosers, with what else
    the present one has if it is one of own tastes."""
    data, model = program.data, program.model
    number = min(len(data.alternatives) - 1, _MOST_COMPONENTS)
    most = np.argsort(-data.chosen_by_alternative(), kind="stable")[:number]
    single = [(name_text(data.alternatives[code]),) for code in sorted(most)]
    if not isinstance(model, MixedLogit):
        return MixedLogit(features=bool(data.feature_names), error_components=tuple(single))
    there = model.error_components
    new = tuple(group for group in single if group not in there)
    return dataclasses.replace(model, error_components=there + new)


def _line(model: MixedLogit) -> str:
    """The line that makes a model."""
    settings = ((field, getattr(model, field.name)) for field in dataclasses.fields(model))
    changed = [f"{field.name}={own!r}" for field, own in settings if own != field.default]
    return f"rt.MixedLogit({', '.join(changed)})"


def _mend_habits(program: Program[Any], is_high: bool) -> str:
    """The models that let choosers keep to alternatives."""
    model, judges = program.model, plural(program.data.judge)
    if isinstance(model, LatentClassLogit):
        return "more types (num_types=) may mend it"
    more = _with_components(program)
    components = f"{_line(more)} lets the constants of single alternatives differ between {judges}"
    if not isinstance(model, MixedLogit):
        return f"{components}, and rt.models.LatentClassLogit() has types of them"
    ways = [components] if more != model else []
    if not model.correlated and len(model.places(program.data)) > 1:
        ways.append("correlated=True lets their tastes go together")
    ways.append("rt.check(..., time=...) says whether it is inertia")
    return "; ".join(ways)


HABITS = Discrepancy(
    "habits",
    "squared differences of the alternatives' shares by {judge}, over the model's",
    _habits,
    "Single {judges} keep to some alternatives more than {model} says",
    mend=_mend_habits,
)


def _repeats(layout: Layout) -> Measure | str:
    """Share of choices of what the chooser chose last, of those from sets that offer it again."""
    if layout.time is None:
        return "no times were given"
    alternative, chosen = (np.asarray(x) for x in (layout.data.alternative, layout.data.chosen))
    _, first, place = np.unique(layout.data.group, return_index=True, return_inverse=True)
    judge, time, number = (x[first] for x in (layout.judge, layout.time, layout.number))
    if (layout.time != time[place]).any():
        raise DataError(
            parameter="time",
            problem="differs between the rows of a set, which is one choice",
            expected="give the time of the set in each of its rows, which are sorted by set and"
            " alternative; with the time of each set in a mapping `when`",
            instead='time=choices.to_frame()["set"].map(when)',
        )
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


def _mend_repeats(program: Program[Any], is_high: bool) -> str:
    """Meanings of a dependence on the last choice, and a feature that models it."""
    model, judge = program.model, program.data.judge
    last = (
        f"give the alternatives a feature that is 1 for what the {judge} chose last and 0 for the"
        " others, features=[..., 'last'], and fit again"
    )
    if not is_high:
        return f"{plural(judge)} may seek variety: {last}"
    if isinstance(model, (MixedLogit, LatentClassLogit)):
        found = "the types" if isinstance(model, LatentClassLogit) else "the spreads of tastes"
        return f"this may be inertia or a habit that forms, and {found} may be nothing else: {last}"
    return (
        "this may be inertia, a habit that forms, or tastes that last. Tastes are in"
        f" {_line(_with_components(program))}; if that fails too, {last}"
    )


REPEATS = Discrepancy(
    "repeats",
    "share of choices of what the {judge} chose last, where it is offered again",
    _repeats,
    "Choices repeat the {judge}'s last one more often than {model} says",
    "Choices repeat the {judge}'s last one less often than {model} says",
    _mend_repeats,
)

#: Discrepancies of choices.
CHOICES = (MENUS, HABITS, AGREEMENT, DRIFT, REPEATS)
