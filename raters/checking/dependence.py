"""Who errs with whom, and how many independent judges a crowd is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
import xarray as xr
from jaxtyping import Float, Int

from raters._validation import checked, share
from raters.checking.discrepancies import Draw, Layout, sums
from raters.errors import DataError, SettingError
from raters.fitting.draws import check_several
from raters.fitting.replicates import answer_counts, probs_of_draws, single
from raters.fitting.result import draws_of, program_of
from raters.judgements.names import names_array, plural, shorten
from raters.kinds import kind_of
from raters.model import Model
from raters.program import Program

# Draws that are read, and judges that are looked at in pairs: those with most answers.
_DRAWS, _JUDGES = 200, 200
# Answers of the whole crowd that count beside a judge's own.
_POOLED = 2.0
# Pairs with fewer questions in common have no correlation worth a line.
_FEWEST = 10


class NothingShared(DataError):
    """No two judges answered the same question."""


@dataclass(frozen=True)
class Dependence:
    """Mistakes that judges share, from `raters.dependence`.

    Attributes
    ----------
    correlation : xarray.Dataset
        For each pair of judges (axes those of the judges and ``other``) the ``correlation`` of
        their mistakes, with ``correlation_low`` and ``correlation_high``, and ``questions``, the
        number that both answered; NaN where they are none. Of more than 200 judges those with most
        answers.
    mean : float
        Mean correlation of two judges about a question that both answered.
    effective : float
        Number of independent judges who would err as much together as these do.
    mean_interval, effective_interval : tuple of float
    judges : int
        Number of judges.
    judge : str
        What they are called.
    known : int
        Number of questions of known truth that it stands on; 0 where the crowd's own answer stands
        for the truth.
    level : float
        Probability of the intervals.
    """

    correlation: xr.Dataset
    mean: float
    mean_interval: tuple[float, float]
    effective: float
    effective_interval: tuple[float, float]
    judges: int
    judge: str
    known: int
    level: float

    @property
    def sentence(self) -> str:
        """The number of independent judges, in one sentence."""
        low, high = self.effective_interval
        who = plural(self.judge).replace("_", " ")
        text = (
            f"{self.judges:,} {who} err together as {self.effective:.3g} independent ones would"
            f" ({self.level:.0%} interval {low:.3g} to {high:.3g}; mean correlation of the mistakes"
            f" of two {self.mean:.2f})"
        )
        if self.known:
            return f"{text}, by {self.known:,} questions of known truth."
        return (
            f"{text}; at most so many, because mistakes that most of them share are not seen"
            " without known truths."
        )

    def pairs(self) -> pd.DataFrame:
        """Pairs of judges who answered at least ten questions in common, the most alike first.

        Returns
        -------
        pandas.DataFrame
            Columns of the two names, ``correlation`` with its interval, and ``questions``.
        """
        names = self.correlation[self.judge].values
        one, other = np.triu_indices(len(names), 1)
        table = {self.judge: names[one], "other": names[other]}
        for name, values in self.correlation.data_vars.items():
            table[str(name)] = values.values[one, other]
        frame = pd.DataFrame(table)
        frame = frame[(frame["questions"] >= _FEWEST) & frame["correlation"].notna()]
        return frame.sort_values("correlation", ascending=False, ignore_index=True)

    def __str__(self) -> str:
        found = self.pairs()
        if found.empty:
            return self.sentence
        return f"{found.head(10).round(2).to_string(index=False)}\n{self.sentence}"


@checked
def dependence(
    model: Model[Any], result: xr.DataTree, gold: Any = None, *, level: float = 0.9, seed: int = 0
) -> Dependence:
    r"""Measure how far judges make the same mistakes.

    Models take judges as independent given the truth. What they share beyond that is in the
    residuals of the fit.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    gold : mapping, pandas.Series or table, optional
        True classes of items, as `raters.Labels.with_truth` takes them: the mistakes on those items
        are then what they are. Without it, and without classes that were known to the fit,
        mistakes that most judges share count as truth.
    level : float
        Probability of the intervals.
    seed : int

    Returns
    -------
    Dependence

    Raises
    ------
    SettingError
        When `result` was fitted with another model or has a single draw, or `gold` is given for a
        kind of judgement without true classes.
    DataError
        When no two judges answered the same question; when `gold` has other items or classes.

    Notes
    -----
    :math:`e_{kq}` is the number of answers of judge k to question q less its expectation, one entry
    for each answer. With the sums over the questions that both answered, and :math:`s_k` the root
    mean square of :math:`e_k`,

    .. math:: \rho_{kl} = \frac{\sum_q e_{kq}^\top e_{lq}}
        {\sqrt{\sum_q |e_{kq}|^2 \sum_q |e_{lq}|^2}}, \qquad
        \bar\rho = \frac{\sum_{k \ne l} \sum_q e_{kq}^\top e_{lq}}
        {\sum_{k \ne l} \sum_q s_k s_l}, \qquad
        K_\text{eff} = \frac{K}{1 + (K - 1) \max(\bar\rho, 0)}.

    The last is the design effect of Kish (1965): the mean of K variables with correlation
    :math:`\bar\rho` varies as much as that of :math:`K_\text{eff}` independent ones. Expectations
    are those of the model, given a true class drawn from the posterior; of items of known class,
    those of the judge's own answers to items of that class, pooled with those of all judges as if
    these were two answers. Intervals are over the draws, each with its own Bayesian bootstrap of
    the questions (Rubin 1981); where judges gave few answers to questions of known truth, they are
    too narrow (``benchmarks/results/shared_mistakes.md``).

    References
    ----------
    Kish, L. (1965). Survey Sampling. Wiley. Rubin, D. B. (1981). The Bayesian bootstrap. Annals of
    Statistics 9, 130–134.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(100, 10, 5, 2, seed=0)
    >>> result = rt.fit(rt.OneCoin(), labels, seed=0, progress=False)
    >>> gold = dict(zip(labels.items, truth["true_class"]))
    >>> found = rt.dependence(rt.OneCoin(), result, gold)
    >>> found.effective > 5
    True
    """
    share("level", level)
    program = program_of(model, result)
    check_several(result, "intervals are over several draws")
    layout, known = _layout(program, gold)
    crossed, rng = _Crossed.of(layout), np.random.default_rng(seed)
    means, tables = [], []
    residuals = _by_truth if known else _by_model
    for weight, residual in residuals(layout, result, seed, rng):
        total, table = crossed.measured(residual, weight)
        means.append(total)
        tables.append(table)
    judges = len(np.unique(crossed.judge))
    effective = judges / (1 + (judges - 1) * np.maximum(means, 0))
    tails = ((1 - level) / 2, (1 + level) / 2)
    return Dependence(
        _table(program.data.judge, layout, crossed, np.array(tables), tails),
        mean=float(np.mean(means)),
        mean_interval=_interval(np.array(means), tails),
        effective=float(np.median(effective)),
        effective_interval=_interval(effective, tails),
        judges=judges,
        judge=program.data.judge,
        known=known,
        level=level,
    )


def _interval(
    values: Float[np.ndarray, " draw"], tails: tuple[float, float]
) -> tuple[float, float]:
    low, high = np.quantile(values, tails)
    return float(low), float(high)


def _layout(program: Program[Any], gold: Any) -> tuple[Layout, int]:
    """The judgements that are looked at, and the number of units of known class among them."""
    data: Any = program.data.unpadded()
    if gold is not None:
        if data.known is None:
            raise SettingError(
                parameter="gold",
                value=gold,
                problem="is for judgements with true classes",
                expected=f"leave it out for {kind_of(data).words.many}",
            )
        data = data.with_truth(gold)
    if data.num_known:
        code = np.asarray(getattr(data, str(data.known)))
        data = data.rows(np.flatnonzero(code[np.asarray(data.codes(data.unit))] >= 0))
    return Layout(Program(program.model, single(data))), int(data.num_known)


class _Crossed(NamedTuple):
    """Cells of one judge and one question, as entries of sparse matrices.

    Attributes
    ----------
    place : int array, shape (row,)
        Cell of each row.
    judge, question : int array, shape (cell,)
    some : int array, shape (some,)
        Codes of the judges that are looked at in pairs.
    """

    place: Int[np.ndarray, " row"]
    judge: Int[np.ndarray, " cell"]
    question: Int[np.ndarray, " cell"]
    some: Int[np.ndarray, " some"]

    @classmethod
    def of(cls, layout: Layout) -> _Crossed:
        """Cells of some judgements."""
        size = len(layout.data.judges)
        key, place = np.unique(layout.subject * size + layout.judge, return_inverse=True)
        judge, question = key % size, key // size
        if not (np.bincount(question) > 1).any():
            raise NothingShared(
                parameter="result",
                value=shorten(layout.data.judges),
                problem="are judges of whom no two answered the same question",
                expected="their mistakes can be compared where two answer one question",
            )
        number = np.bincount(judge, minlength=size)
        most = np.argsort(-number, kind="stable")[:_JUDGES]
        return cls(place, judge, question, np.sort(most[number[most] > 0]))

    def measured(
        self, residual: Float[np.ndarray, "answer row"], weight: Float[np.ndarray, " question"]
    ) -> tuple[float, Float[np.ndarray, "some some"]]:
        """Mean correlation, and that of pairs of judges, with weights of the questions."""
        cells = sums(self.place, len(self.judge), residual)
        own, square = weight[self.question], (cells**2).sum(0)
        total = np.maximum(np.bincount(self.judge, own), 1e-300)
        scale = np.sqrt(np.bincount(self.judge, own * square) / total)[self.judge]
        below = (np.bincount(self.question, scale) ** 2) @ weight - (own * scale**2).sum()
        above = sum((np.bincount(self.question, one) ** 2) @ weight for one in cells)
        above -= (own * square).sum()
        root, here = np.sqrt(own), np.ones(len(own))
        products = sum(self._products(one * root, one * root) for one in cells)
        squares = self._products(own * square, here)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(above / below), products / np.sqrt(squares * squares.T)

    def _products(
        self, one: Float[np.ndarray, " cell"], other: Float[np.ndarray, " cell"]
    ) -> Float[np.ndarray, "some some"]:
        """Sums over common questions of the one's value times the other's."""
        shape = int(self.judge.max()) + 1, int(self.question.max()) + 1
        place = (self.judge, self.question)
        left, right = (scipy.sparse.csr_array((x, place), shape=shape) for x in (one, other))
        dense: np.ndarray = (left[self.some] @ right[self.some].T).toarray()
        return dense

    def questions(self) -> Int[np.ndarray, "some some"]:
        """Number of questions that both judges of each pair answered."""
        here = np.ones(len(self.judge))
        return self._products(here, here).astype(int)


def _weights(layout: Layout, rng: np.random.Generator) -> Float[np.ndarray, " question"]:
    """Weights of a Bayesian bootstrap of the questions."""
    return rng.standard_exponential(int(layout.subject.max()) + 1)


def _by_model(
    layout: Layout, result: xr.DataTree, seed: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, Float[np.ndarray, "answer row"]]]:
    """Weights of the questions, and answers less what the model expects, under each draw."""
    draws, _ = draws_of(layout.program, result, _DRAWS, seed)
    observed = answer_counts(layout.data)
    for probs, classes in probs_of_draws(layout.program, draws, seed):
        yield _weights(layout, rng), layout.residuals(Draw(observed, probs, classes))


def _by_truth(
    layout: Layout, result: xr.DataTree, seed: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, Float[np.ndarray, "answer row"]]]:
    """Weights of the questions, and answers less what each judge says of items of that class."""
    data, observed = layout.data, answer_counts(layout.data)
    true = np.asarray(getattr(data, str(data.known)))[np.asarray(data.codes(data.unit))]
    num_classes = len(data.coords[data.axes[str(data.known)]])
    place = layout.judge * num_classes + true
    for _ in range(_DRAWS):
        weight = _weights(layout, rng)
        own = weight[layout.subject]
        counts = sums(place, len(data.judges) * num_classes, own * observed)
        counts = counts.reshape(len(observed), -1, num_classes)
        pooled = counts.sum(1, keepdims=True) + 1e-9
        counts = counts + _POOLED * pooled / pooled.sum(0)
        probs = (counts / counts.sum(0)).reshape(len(observed), -1)[:, place]
        yield weight, layout.residuals(Draw(observed, probs, None))


def _table(
    judge: str,
    layout: Layout,
    crossed: _Crossed,
    draws: Float[np.ndarray, "draw some some"],
    tails: tuple[float, float],
) -> xr.Dataset:
    """Correlations of pairs."""
    questions = crossed.questions()
    draws = np.where((questions > 0) & ~np.eye(len(questions), dtype=bool), draws, np.nan)
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(draws, tails, axis=0)
    names = names_array([layout.data.judges[one] for one in crossed.some])
    columns = {
        "correlation": draws.mean(0),
        "correlation_low": low,
        "correlation_high": high,
        "questions": questions,
    }
    axes = (judge, "other")
    return xr.Dataset(
        {name: (axes, value) for name, value in columns.items()},
        coords={judge: names, "other": names},
    )
