"""Posterior predictive checks, with discrepancies that matter for judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from raters.auditing.words import worded
from raters.checking.discrepancies import GENERIC, Discrepancy, Draw, Layout, Measure, words_of
from raters.checking.orders import order_draws
from raters.errors import DataError, refuse
from raters.errors.validation import checked, share, whole
from raters.fitting.predict import answer_counts, probs_of_draws, replicated, single, source_rows
from raters.fitting.result import check_several, draws_of, program_of
from raters.judgements.display import Tabled
from raters.kinds import kind_of
from raters.model import Model, Values
from raters.program import Program

Both = Float[np.ndarray, "2 discrepancy draw"]


@dataclass(frozen=True, repr=False)
class Check(Tabled):
    """Posterior predictive checks, from `raters.check`.

    Attributes
    ----------
    table : xarray.Dataset
        One entry for each ``discrepancy``: ``observed``, the mean over draws of the value of the
        data; ``replicated``, the mean of that of replicated data, with the interval
        ``replicated_low`` to ``replicated_high``; ``p_value``, and ``p_adjusted``, that of all
        discrepancies together; and ``fails``. ``table.to_dataframe()`` prints well.
    draws : xarray.Dataset
        ``observed`` and ``replicated``, each with the axes ``discrepancy`` and ``draw``.
    sentences : tuple of str
        For each discrepancy that fails, what fails and the model that would mend it.
    not_measured : mapping of str to str
        Reason, by the name of each discrepancy that the data cannot show.
    level : float
        Probability of failing anything if the model is right, at most.
    model : str
        The model, as it is written.
    """

    table: xr.Dataset
    draws: xr.Dataset
    sentences: tuple[str, ...]
    not_measured: Mapping[str, str] = field(default_factory=dict)
    level: float = 0.05
    model: str = ""

    @property
    def failed(self) -> list[str]:
        """Names of the discrepancies that fail."""
        return self.table["discrepancy"].values[self.table["fails"].values].tolist()

    def __repr__(self) -> str:
        fails = ", ".join(self.failed) or "nothing fails"
        return f"Check of {self.table.sizes['discrepancy']} discrepancies: {fails}"

    def _head(self) -> pd.DataFrame:
        return self.table.to_dataframe().reset_index()

    def __str__(self) -> str:
        shown = ["observed", "replicated", "replicated_low", "replicated_high"]
        frame = self.table[[*shown, "p_value", "p_adjusted"]].drop_vars("title").to_dataframe()
        frame[shown] = frame[shown].map(lambda value: f"{value:.3g}")
        return "\n".join([frame.round(4).to_string(), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """Sentences, or that nothing fails, and what was not measured."""
        nothing = "Nothing fails: the model replicates these data in all that was measured."
        lines = list(self.sentences) or [nothing]
        return lines + [
            f"Not measured: {name}, as {why}." for name, why in self.not_measured.items()
        ]


@checked
def check(
    model: Model[Any],
    result: xr.DataTree,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.05,
    time: ArrayLike | None = None,
) -> Check:
    r"""Check a fitted model by data that it replicates.

    Under each of many posterior draws, the answers to the questions of the data are drawn anew, and
    discrepancies between data and model are measured in the observed and in the replicated answers.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    replicates : int
        Number of replicated tables, each under a posterior draw. Where the result has fewer draws,
        each is used several times.
    seed : int
        For the replicated answers.
    level : float
        Largest probability of finding any failure if the model is right.
    time : array, shape (row,), optional
        When each row of the fitted data was made, as numbers, to check for drift: read the table
        with ``aggregate=False``. Rows of comparisons and demonstrations are then those of the
        table; those of labels are sorted by item, stably, and of choices by set: one time for each
        set, or for each row of ``choices.to_frame()``.

    Returns
    -------
    Check
        With what the kind of judgement declares, such as the agreement of two annotators on one
        question, how well each is predicted, and the drift along times: the guide on checking a
        model lists them, and what to try where one fails.

    Notes
    -----
    A discrepancy :math:`T(y, \theta, z)` may depend on parameters and on latent classes z (true
    classes of items, types of annotators). Classes are drawn from
    :math:`p(z \mid y, \theta)`, and the replicated data are of the same class:
    :math:`\tilde y \sim p(y \mid \theta, z)`. With new classes from the prevalence, residuals about
    the class of an item, which show that annotators share mistakes, could not be compared.

    With n replicates, :math:`p = (1 + \#\{T(\tilde y, \theta, z) \ge T(y, \theta, z)\}) / (1 + n)`,
    and for discrepancies that count on both sides twice the smaller of the two. If the model is
    right, and data come from its prior predictive distribution,
    :math:`P(p \le \alpha) \le 2 \alpha` (Meng 1994), and far less where parameters have been
    fitted to what is measured.
    ``p_adjusted`` is Holm's adjustment of :math:`\min(1, 2p)`, so that some discrepancy has
    ``p_adjusted`` below `level` with probability `level` at most, if the draws are of the
    posterior. A discrepancy that does not fail has not shown that the model is right.

    References
    ----------
    Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness
    via realized discrepancies. Statistica Sinica 6, 733–807. Meng, X.-L. (1994). Posterior
    predictive p-values. Annals of Statistics 22, 1142–1160. Holm, S. (1979). A simple sequentially
    rejective multiple test procedure. Scandinavian Journal of Statistics 6, 65–70.

    Examples
    --------
    A model of equally competent annotators, for a crowd in which some guess:

    >>> import raters as rt
    >>> votes, _ = rt.datasets.crowd(num_items=8, num_annotators=10, num_votes=1500, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> found = rt.check(rt.BTL(), result, replicates=500)
    >>> "competence" in found.failed
    True
    """
    whole("replicates", replicates, least=2)
    share("level", level)
    program = program_of(model, result)
    check_several(result, "a check compares data that several draws replicate")
    every: tuple[Discrepancy, ...] = kind_of(program.data).discrepancies or GENERIC
    return checked_by(every, program, result, replicates, seed, level, time)


def checked_by(
    every: tuple[Discrepancy, ...],
    program: Program[Any],
    result: xr.DataTree,
    replicates: int,
    seed: int,
    level: float,
    time: ArrayLike | None = None,
) -> Check:
    """Check a fit by some discrepancies."""
    layout, words = _layout(program, time), words_of(program)
    prepared = {one: one.prepare(layout) for one in every}
    measures = {one: value for one, value in prepared.items() if not isinstance(value, str)}
    why = {one.name: value for one, value in prepared.items() if isinstance(value, str)}
    least = int(np.ceil(4 * max(len(measures), 1) / level)) - 1
    if replicates < least:
        problem = f"leaves no p-value of {len(measures)} discrepancies below {level:g} together"
        refuse("replicates", replicates, problem, f"it must be at least {least}")
    drawn, sizes = draws_of(program, result, replicates, seed)
    # Where there are fewer draws, some are used several times.
    rows = np.arange(replicates) % min(sizes[0] * sizes[1], replicates)
    draws = {name: value[rows] for name, value in drawn.items()}
    values = _values(layout, list(measures.values()), draws, seed)
    is_high, table = _table(list(measures), values, level, words)
    both = zip(("observed", "replicated"), values, strict=True)
    variables = {name: (("discrepancy", "draw"), each) for name, each in both}
    sentences = tuple(
        _sentence(one, table.isel(discrepancy=row), is_high[row], program)
        for row, one in enumerate(measures)
        if table["fails"].values[row]
    )
    not_measured = {name: text.format(**words) for name, text in why.items()}
    both_values = xr.Dataset(variables, table.coords)
    return Check(table, both_values, sentences, not_measured, level, repr(program.model))


def _layout(program: Program[Any], time: ArrayLike | None) -> Layout:
    """The data, one row for each judgement or sum, and their times."""
    data = program.data
    times = None
    if time is not None:
        try:
            times = np.asarray(data.per_row(np.asarray(time, float)))
        except (TypeError, ValueError):
            times = np.asarray(np.nan)
        if times.shape != (data.num_rows,) or not np.isfinite(times).all():
            problem = "is not one number for each row of the fitted data"
            expected = f"give an array of {data.num_rows} numbers, in the order of the rows"
            expected += " (read with aggregate=False)"
            refuse("time", time, problem, expected, error=DataError)
        times = times[source_rows(data)]
    return Layout(Program(program.model, single(data)), times)


def _values(layout: Layout, measures: list[Measure], draws: Values, seed: int) -> Both:
    """Values of the discrepancies in observed and in replicated answers."""
    pairs = (_answer_draws if layout.data.listed else order_draws)(layout.program, draws, seed)
    table = [[[measure(one) for measure in measures] for one in both] for both in pairs]
    return np.asarray(table, float).transpose(1, 2, 0)


def _answer_draws(program: Program[Any], draws: Values, seed: int) -> Iterator[tuple[Draw, Draw]]:
    """Observed answers, and replicated ones, one draw after the other."""
    rng, data = np.random.default_rng(seed), program.data
    observed = answer_counts(data)
    for probs, classes in probs_of_draws(program, draws, seed):
        drawn = replicated(data, probs, rng)
        yield Draw(observed, probs, classes), Draw(drawn, probs, classes)


def holm(p_values: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """Holm's adjustment of p-values, for all tests together."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


def _table(
    every: list[Discrepancy], values: Both, level: float, words: Mapping[str, str]
) -> tuple[Bool[np.ndarray, " discrepancy"], xr.Dataset]:
    """Mask of the values that are high; table of means, intervals and p-values."""
    observed, drawn = values
    # Values that are equal but for rounding are equal.
    slack, size = 1e-9 * (1 + np.abs(observed)), 1 + observed.shape[1]
    above = (1 + (drawn >= observed - slack).sum(1)) / size
    below = (1 + (drawn <= observed + slack).sum(1)) / size
    two_sided = np.array([bool(one.low) for one in every], bool)
    p_value = np.where(two_sided, np.minimum(1.0, 2 * np.minimum(above, below)), above)
    p_adjusted = holm(np.minimum(1, 2 * p_value))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=1)
    columns = {
        "observed": observed.mean(1),
        "replicated": drawn.mean(1),
        "replicated_low": low,
        "replicated_high": high,
        "p_value": p_value,
        "p_adjusted": p_adjusted,
        "fails": p_adjusted <= level,
    }
    titles = [one.title.format(**words) for one in every]
    coords = {"discrepancy": [one.name for one in every], "title": ("discrepancy", titles)}
    table = xr.Dataset({name: ("discrepancy", each) for name, each in columns.items()}, coords)
    return ~two_sided | (above <= below), table


def _sentence(one: Discrepancy, row: xr.Dataset, is_high: bool, program: Program[Any]) -> str:
    """The failure, with its numbers, and the model that would mend it."""
    what = (one.high if is_high else one.low).format(**words_of(program))
    numbers = {str(name): value.item() for name, value in row.data_vars.items()}
    mend = one.mend(program.model, is_high)
    return worded("discrepancy", what=what, name=one.name, row=numbers, mend=mend)
