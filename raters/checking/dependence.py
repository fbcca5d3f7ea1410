"""Shared mistakes of judges, and the number of independent judges that a crowd is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy.sparse import csr_array, diags_array

from raters.auditing.intervals import mean_and_interval
from raters.auditing.truth.calibration import ENOUGH
from raters.auditing.truth.gold_weights import with_gold
from raters.auditing.words import worded
from raters.checking.discrepancies import Draw, Layout, PerRow, sums
from raters.errors import DataError, refuse
from raters.errors.validation import checked, share
from raters.fitting.predict import answer_counts, probs_of_draws, single
from raters.fitting.result import check_several, draws_of, program_of
from raters.judgements.display import Tabled
from raters.judgements.labels import Labels
from raters.judgements.names import name_text, names_array, plural
from raters.kinds import kind_of
from raters.model import Model
from raters.program import Program

# Draws that are read, and judges that are looked at: those with most answers.
_DRAWS, _JUDGES = 200, 200
# Answers of the whole crowd that count beside a judge's own.
_POOLED = 2.0
# Pairs with fewer questions in common have no correlation worth a line, and crowds with fewer
# mistakes none at all.
_FEWEST, _MISTAKES = 10, 3.0


Codes = Int[np.ndarray, " item"]
ClassProbs = Float[np.ndarray, "item true_class"]


class NothingShared(DataError):
    """Answers that do not show whether judges err together."""


@dataclass(frozen=True, repr=False)
class Dependence(Tabled):
    """Shared mistakes of judges, from `raters.checking.dependence`.

    Attributes
    ----------
    correlation : xarray.Dataset
        For each pair of judges (axes those of the judges and ``other``) the ``correlation`` of
        their mistakes, with ``correlation_low`` and ``correlation_high``, and ``questions``, the
        number that both answered. Of more than 200 judges, those with most answers.
    mean : float
        Mean correlation of two judges about a question that both answered.
    effective : float
        Number of independent judges who would err as much together as these do.
    known : int
        Number of questions of known truth that it stands on; 0 where truths drawn from the
        posterior stand for them, or there are none (``of_truth`` is False), and mistakes are
        departures from the model.
    """

    correlation: xr.Dataset
    mean: float
    mean_interval: tuple[float, float]
    effective: float
    effective_interval: tuple[float, float]
    judges: int
    judge: str
    known: int
    of_truth: bool
    level: float

    @property
    def sentence(self) -> str:
        """The number of independent judges, in one sentence."""
        return worded("dependence", d=self, who=plural(self.judge).replace("_", " "))

    def pairs(self) -> pd.DataFrame:
        """Pairs of judges with at least ten questions in common, the most alike first.

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

    def __repr__(self) -> str:
        return f"Dependence: {self.sentence}"

    def _head(self) -> pd.DataFrame:
        return self.pairs().head(8)

    def __str__(self) -> str:
        alike = self.pairs()
        if alike.empty:
            return self.sentence
        return f"{alike.head(10).round(2).to_string(index=False)}\n{self.sentence}"


@checked
def dependence(
    model: Model[Any],
    result: xr.DataTree,
    gold: Any = None,
    *,
    among: Sequence[Any] | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Dependence:
    r"""Measure how far judges make the same mistakes.

    Models take judges as independent given the truth. What they share beyond that shows in their
    mistakes.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    gold : mapping, pandas.Series or pandas.DataFrame, optional
        True classes of ten items or more, as `raters.Labels.with_truth` takes them, beside those
        that were known to the fit: the mistakes on these items are then what they are. Without any,
        true classes are drawn from the posterior, so that mistakes that most judges share count as
        truth.
    among : sequence, optional
        Names of the judges to look at; all of them by default.
    level : float
        Probability of the intervals.
    seed : int

    Returns
    -------
    Dependence

    Notes
    -----
    :math:`e_{kq}` is the number of answers of judge k to question q less its expectation, one entry
    for each answer. With the sums over the questions that both answered,

    .. math:: \rho_{kl} = \frac{\sum_q e_{kq}^\top e_{lq}}
        {\sqrt{\sum_q |e_{kq}|^2 \sum_q |e_{lq}|^2}}, \qquad
        \bar\rho = \frac{\sum_{k \ne l} \sum_q e_{kq}^\top e_{lq}}
        {\sum_{k \ne l} \sqrt{\sum_q |e_{kq}|^2 \sum_q |e_{lq}|^2}}, \qquad
        K_\text{eff} = \frac{K}{1 + (K - 1) \max(\bar\rho, 0)}.

    The last is the design effect of Kish (1965): the mean of K variables with correlation
    :math:`\bar\rho` varies as much as that of :math:`K_\text{eff}` independent ones.

    Where there are true classes, known or drawn, the expectation is the share of each answer among
    the judge's other answers to items of that class and two of the whole crowd's. Otherwise it is
    that of the model, and so anything that the model lacks counts as shared. Intervals are over
    draws, each with its own Bayesian bootstrap of the questions (Rubin 1981); of few questions they
    are too narrow (``benchmarks/results/shared_mistakes.md``).

    References
    ----------
    Kish, L. (1965). Survey Sampling. Wiley. Rubin, D. B. (1981). The Bayesian bootstrap. Annals of
    Statistics 9, 130–134.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(100, 10, 5, 2, seed=0)
    >>> result = rt.fit(rt.models.OneCoin(), labels, seed=0, progress=False)
    >>> gold = dict(zip(labels.items, truth["true_class"]))
    >>> shared = rt.checking.dependence(rt.models.OneCoin(), result, gold)
    >>> shared.effective > 5
    True
    """
    share("level", level)
    program = program_of(model, result)
    check_several(result, "intervals are over several draws")
    data: Any = program.data.unpadded()
    if not data.listed:
        raise NothingShared(
            f"{type(data).__name__} are orders, which are not compared answer by answer"
        )
    if among is not None:
        chosen = np.isin(list(map(name_text, data.judges)), list(map(name_text, among)))
        data = data.rows(np.flatnonzero(chosen[np.asarray(data.codes(data.judge))]))
    truth = None
    if isinstance(data, Labels):
        truth = with_gold(data, gold)
    elif gold is not None:
        expected = f"leave it out for {kind_of(data).words.many}"
        refuse("gold", gold, "is for judgements with true classes", expected)
    by_truth = truth is not None and bool(gold is not None or (truth >= 0).sum() >= ENOUGH)
    if truth is not None and by_truth:
        rows = np.flatnonzero(truth[np.asarray(data.item)] >= 0)
        if not len(rows):
            raise _too_few(0, data.judge)
        data = data.rows(rows)
    layout, rng = Layout(Program(model, single(data))), np.random.default_rng(seed)
    number = np.bincount(layout.judge, minlength=len(data.judges))
    # Judges of each question.
    answered = np.bincount(np.unique([layout.subject, layout.judge], axis=1)[0], minlength=1)
    if by_truth and (answered > 1).sum() < ENOUGH:
        raise _too_few(int((answered > 1).sum()), data.judge)
    if not (answered > 1).any():
        raise NothingShared(
            f"no two {plural(data.judge)} answered the same question, so that nothing"
            " compares their mistakes"
        )
    codes = np.sort(np.argsort(-number, kind="stable")[:_JUDGES])
    codes = codes[number[codes] > 0]
    rows = np.flatnonzero(np.isin(layout.judge, codes))
    cells = np.searchsorted(codes, layout.judge[rows]), layout.subject[rows]

    def crossed(values: PerRow) -> csr_array:
        """Sums of rows by judge and question."""
        return csr_array((values[rows], cells), (len(codes), len(answered)))

    there, num_judges = crossed(np.ones(len(layout.judge))).sign(), int((number > 0).sum())
    if truth is None:
        residuals = _by_model(layout, result, seed)
    else:
        chances = result["classes"]["responsibility"].transpose("item", "true_class").values
        residuals = _by_class(layout, truth if by_truth else None, np.asarray(chances), rng)
    means, tables, mistakes = [], [], 0.0
    for residual, weight in residuals:
        each, weights = list(map(crossed, residual)), diags_array(weight)
        above = sum(one @ weights @ one.T for one in each).toarray()
        square = sum(one.power(2) for one in each) @ weights
        squares = (square @ there.T).toarray()
        below = np.sqrt(squares * squares.T)
        apart = below.sum() - np.trace(below)
        means.append((above.sum() - np.trace(above)) / apart if apart > 0 else 0.0)
        tables.append(np.divide(above, below, where=below > 0, out=np.full(below.shape, np.nan)))
        mistakes += square.sum()
    if mistakes < _MISTAKES * len(means):
        raise NothingShared(
            "hardly anybody errs on these questions, so that no mistakes can be compared"
        )
    effective = num_judges / (1 + (num_judges - 1) * np.maximum(means, 0))
    tails = ((1 - level) / 2, (1 + level) / 2)
    intervals = [np.quantile(values, tails).tolist() for values in (means, effective)]
    drawn = np.where(np.eye(len(codes), dtype=bool), np.nan, tables)
    columns = mean_and_interval("correlation", drawn, level)
    columns["questions"] = (there @ there.T).toarray().astype(int)
    axes, names = (data.judge, "other"), names_array([data.judges[code] for code in codes])
    table = {name: (axes, one) for name, one in columns.items()}
    return Dependence(
        xr.Dataset(table, dict.fromkeys(axes, names)),
        mean=float(np.mean(means)),
        mean_interval=tuple(intervals[0]),
        effective=float(np.median(effective)),
        effective_interval=tuple(intervals[1]),
        judges=num_judges,
        judge=program.data.judge,
        known=int((answered > 1).sum()) if by_truth else 0,
        of_truth=truth is not None,
        level=level,
    )


def _too_few(known: int, judge: str) -> DataError:
    """Error about known truths that are too few."""
    return NothingShared(
        parameter="gold",
        problem=f"and the fit hold {known} known truths of items that two {plural(judge)} answered",
        expected=f"give at least {ENOUGH}, drawn at random",
    )


# Residuals of each row, and weights of the questions by a Bayesian bootstrap.
_Residuals = Iterator[tuple[Float[np.ndarray, "answer row"], Float[np.ndarray, " question"]]]


def _by_model(layout: Layout, result: xr.DataTree, seed: int) -> _Residuals:
    """Answers less what the model expects of them, under each draw."""
    draws, _ = draws_of(layout.program, result, _DRAWS, seed)
    observed, rng = answer_counts(layout.data), np.random.default_rng(seed)
    for probs, classes in probs_of_draws(layout.program, draws, seed):
        weight = rng.standard_exponential(int(layout.subject.max()) + 1)
        yield layout.residuals(Draw(observed, probs, classes)), weight


def _by_class(
    layout: Layout, truth: Codes | None, chances: ClassProbs, rng: np.random.Generator
) -> _Residuals:
    """Answers less shares of each judge's other answers to items of a class, known or drawn."""
    observed, judge = answer_counts(layout.data), layout.judge
    item, number = np.asarray(layout.data.item), chances.shape[1]
    upper = np.cumsum(chances, axis=1)
    for _ in range(_DRAWS):
        true = truth
        if true is None:
            at = rng.random((len(chances), 1)) * upper[:, -1:]
            true = np.minimum((upper < at).sum(1), number - 1)
        weight = rng.standard_exponential(int(layout.subject.max()) + 1)
        own = weight[layout.subject] * observed
        crowd = true[item]
        pooled = sums(crowd, number, own)[:, crowd] - own + 1e-9
        mine = judge * number + crowd
        others = sums(mine, int(judge.max() + 1) * number, own)[:, mine] - own
        others += _POOLED * pooled / pooled.sum(0)
        yield layout.residuals(Draw(observed, others / others.sum(0), None)), weight
