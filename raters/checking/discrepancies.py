"""Discrepancies between judgements and a model that make sense for every kind of judgement."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.judgements.counts import pairs_within
from raters.judgements.names import plural
from raters.model import Model
from raters.program import Program

PerRow = Float[np.ndarray, " row"]
Rows = Int[np.ndarray, " row"]
PerAnswer = Float[np.ndarray, "answer row"]

# Pairs of judgements that are compared at most; of more, so many are chosen at random.
_MOST_PAIRS = 100_000


class Draw(NamedTuple):
    """Answers, observed or replicated, beside their probabilities under one draw."""

    counts: Float[np.ndarray, "answer row"]
    probs: Float[np.ndarray, "answer row"]
    classes: Int[np.ndarray, " unit"] | None

    def surprise(self, number: PerRow) -> tuple[PerRow, PerRow]:
        """Log-probability of each row's answers less its expectation, and the variance of it."""
        log_probs = np.log(np.maximum(self.probs, 1e-9))
        mean = (self.probs * log_probs).sum(0)
        variance = number * ((self.probs * log_probs**2).sum(0) - mean**2)
        return (self.counts * log_probs).sum(0) - number * mean, variance


#: The value of a discrepancy of one draw: a `Draw`, or a `raters.checking.orders.OrderDraw`.
Measure = Callable[[Any], float]


@dataclass(frozen=True)
class Layout:
    """Judgements as discrepancies read them."""

    program: Program[Any]
    time: Float[np.ndarray, " row"] | None = None

    @property
    def data(self) -> Any:
        """The judgements."""
        return self.program.data

    @cached_property
    def judge(self) -> Rows:
        """Code of the judge of each row."""
        return np.asarray(self.data.codes(self.data.judge), np.int64)

    @cached_property
    def subject(self) -> Rows:
        """Number of what each row is about, whoever judges."""
        return np.unique(self.data.about(), return_inverse=True)[1]

    @cached_property
    def number(self) -> PerRow:
        """Number of judgements of each row."""
        return np.asarray(self.data.weight, float)

    @cached_property
    def turned(self) -> Bool[np.ndarray, " row"]:
        """True where a pair has the larger code first, so that its answers are the other way."""
        if self.data.pair is None:
            return np.zeros(self.data.num_rows, bool)
        first, second = (np.asarray(getattr(self.data, side)) for side in self.data.pair)
        return np.asarray(first > second)

    def residuals(self, draw: Draw) -> PerAnswer:
        """Counts less their expectation; of pairs, for the answer of the smaller code first."""
        own = draw.counts - self.number * draw.probs
        return np.where(self.turned, own[::-1], own)


#: Class of a model, or setting, by which it has a remedy already; or several.
Has = type | str | tuple[type | str, ...]
#: Sentence on what mends a discrepancy, after what has it already.
Remedy = tuple[Has, str]


@dataclass(frozen=True)
class Discrepancy:
    """A number that measures in one way how far judgements are from a model, with the name of the
    function that prepares it."""

    title: str
    high: str
    prepare: Callable[[Layout], Measure | str]
    low: str = ""
    mends: tuple[Remedy, ...] = ()
    #: Those of a value that is too low, where they are others.
    low_mends: tuple[Remedy, ...] | None = None

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.prepare.__name__

    def mend(self, model: Model[Any], is_high: bool) -> str:
        """Remedy in a model; empty where none is known."""
        mends = self.mends if is_high or self.low_mends is None else self.low_mends
        return "; ".join(text for has, text in mends if not _has(model, has))


@cache
def _file() -> dict[str, dict[str, Any]]:
    """Words of the discrepancies by name."""
    return tomllib.loads(files("raters.checking").joinpath("discrepancies.toml").read_text("utf-8"))


def _words(table: Mapping[str, Any]) -> dict[str, Any]:
    """Texts of a table of words, and its remedies."""
    texts = {key: value for key, value in table.items() if isinstance(value, str)}
    lists = {key: value for key, value in table.items() if isinstance(value, list)}
    return texts | {key: tuple((tuple(has), text) for has, text in lists[key]) for key in lists}


def discrepancy(prepare: Callable[[Layout], Measure | str]) -> Discrepancy:
    """Discrepancy of a function that prepares its measure, with its words."""
    return Discrepancy(prepare=prepare, **_words(_file()[prepare.__name__]))


def of_kind(kind: str, *every: Discrepancy) -> tuple[Discrepancy, ...]:
    """Discrepancies with what mends them in a kind of judgement."""
    return tuple(replace(one, **_words(_file()[one.name].get(kind, {}))) for one in every)


def _has(model: Model[Any], has: Has) -> bool:
    """True if a model is of one of these classes, or has one of these settings."""
    if isinstance(has, tuple):
        return any(_has(model, one) for one in has)
    if isinstance(has, type):
        return isinstance(model, has)
    classes = {one.__name__ for one in type(model).__mro__}
    return has in classes or bool(getattr(model, has, False))


def words_of(program: Program[Any]) -> dict[str, str]:
    """Words that stand for the braces in texts of discrepancies."""
    judge = program.data.judge
    names = {"judge": judge.replace("_", " "), "judges": plural(judge).replace("_", " ")}
    return names | {"model": type(program.model).__name__}


def sums(place: Rows, size: int, values: PerAnswer) -> Float[np.ndarray, "answer cell"]:
    """Sums of rows by cell, for each answer."""
    return np.stack([np.bincount(place, row, size) for row in values])


def excesses(code: Rows, of_draw: Callable[[Any], tuple[PerRow, PerRow]]) -> Measure:
    """Mean over codes of the squared sum of residuals over its variance under the model; `of_draw`
    gives both. What has a code below 0 is left out."""
    there = code >= 0
    cell = np.unique(code[there], return_inverse=True)[1]

    def measure(draw: Any) -> float:
        total, expected = (np.bincount(cell, one[there]) for one in of_draw(draw))
        # One more: what nobody is expected to choose would decide alone.
        return float((total**2 / (expected + 1.0)).mean())

    return measure


class _Cells(NamedTuple):
    """Judgements of one judge about one subject, as a cell."""

    place: Int[np.ndarray, " row"]
    judge: Int[np.ndarray, " cell"]
    subject: Int[np.ndarray, " cell"]
    number: Float[np.ndarray, " cell"]


def _cells(layout: Layout) -> _Cells:
    """Cells, sorted by subject."""
    num_judges = len(layout.data.judges)
    key, place = np.unique(layout.subject * num_judges + layout.judge, return_inverse=True)
    return _Cells(place, key % num_judges, key // num_judges, np.bincount(place, layout.number))


# ---------------------------------------------------------------- agreement about one subject


@discrepancy
def agreement(layout: Layout) -> Measure | str:
    """Mean product of residuals of two judges: the share of pairs that agree, less expectation."""
    cells = _cells(layout)
    num_subjects = int(layout.subject.max(initial=-1)) + 1
    total = np.bincount(cells.subject, cells.number, num_subjects)
    num_pairs = (total**2).sum() - (cells.number**2).sum()
    if num_pairs <= 0:
        return "no two {judges} answered the same question"

    def measure(draw: Draw) -> float:
        own = sums(cells.place, len(cells.judge), layout.residuals(draw))
        both = sums(cells.subject, num_subjects, own)
        return float(((both**2).sum() - (own**2).sum()) / num_pairs)

    return measure


# ---------------------------------------------------------------- pairs of judges


@discrepancy
def judge_pairs(layout: Layout) -> Measure | str:
    """Covariance of a pair's agreement about two subjects, as a signed standard deviation."""
    cells = _cells(layout)
    one, other = pairs_within(cells.subject, _MOST_PAIRS)
    low = np.minimum(cells.judge[one], cells.judge[other])
    high = np.maximum(cells.judge[one], cells.judge[other])
    _, pair = np.unique(low * len(layout.data.judges) + high, return_inverse=True)
    number = np.bincount(pair) if len(pair) else np.zeros(0)
    if not (number > 1).any():
        return "no two {judges} answered two questions in common"
    num_products = float((number * (number - 1)).sum())

    def measure(draw: Draw) -> float:
        own = sums(cells.place, len(cells.judge), layout.residuals(draw))
        # Residuals of two answers are each other's negative.
        few = own[:1] * np.sqrt(2) if len(own) == 2 else own
        product = (few[:, one] * few[:, other]).sum(0)
        product -= product.mean()
        total = np.bincount(pair, product)
        variance = ((total**2).sum() - (product**2).sum()) / num_products
        return float(np.sign(variance) * np.sqrt(abs(variance)))

    return measure


# ---------------------------------------------------------------- single judges


@discrepancy
def competence(layout: Layout) -> Measure | str:
    """Variance between judges of the log-probability of answers, over that under the model."""
    num_judges = len(layout.data.judges)
    if len(np.unique(layout.judge)) < 2:
        return "there is one {judge} only"

    def measure(draw: Draw) -> float:
        surprise, variance = draw.surprise(layout.number)
        total = np.bincount(layout.judge, surprise, num_judges)
        return float((total**2).sum() / max(variance.sum(), 1e-12))

    return measure


@discrepancy
def judge_answers(layout: Layout) -> Measure | str:
    """Variance of answers by judge (and by class, if not the judge's own), over the model's."""
    latent, size = layout.program.latent, len(layout.data.judges)
    by_class = latent is not None and layout.program.has_truth
    unit = np.asarray(layout.data.codes(layout.program.unit)) if by_class else None

    def measure(draw: Draw) -> float:
        place, num_cells = layout.judge, size
        if unit is not None and latent is not None and draw.classes is not None:
            place, num_cells = place * latent.size + draw.classes[unit], size * latent.size
        own = sums(place, num_cells, draw.counts - layout.number * draw.probs)
        variance = (layout.number * draw.probs * (1 - draw.probs)).sum()
        return float((own**2).sum() / max(variance, 1e-12))

    return measure


# ---------------------------------------------------------------- time


@discrepancy
def drift(layout: Layout) -> Measure | str:
    """Slope of the answers' log-probability along a judge's time, per standard deviation of it."""
    if layout.time is None:
        return "no times were given"
    num_judges = len(layout.data.judges)
    votes = np.maximum(np.bincount(layout.judge, layout.number, num_judges), 1e-12)
    rank = np.searchsorted(np.sort(layout.time), layout.time).astype(float)
    mean = np.bincount(layout.judge, layout.number * rank, num_judges) / votes
    centred = rank - mean[layout.judge]
    spread = float((layout.number * centred**2).sum())
    if spread == 0:
        return "no {judge} has two times"
    scale = np.sqrt(spread / layout.number.sum())

    def measure(draw: Draw) -> float:
        surprise, _ = draw.surprise(layout.number)
        return float((surprise * centred).sum() * scale / spread)

    return measure


#: Discrepancies of a kind of judgement that declares none.
GENERIC = (agreement, judge_pairs, competence, judge_answers, drift)
