r"""More judgements for a fit, without another fit where they are few.

Draws of the earlier posterior are weighted by the likelihood of all judgements over that of the
earlier ones, and resampled. The weights are exact, and their Pareto :math:`\hat k` says whether
they can be relied on (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float

from raters.auditing.audit import audit
from raters.errors import refuse
from raters.errors.validation import checked
from raters.fitting.fit import as_result, check_types, fit
from raters.fitting.result import (
    check_data,
    check_several,
    draws_of,
    in_double,
    model_of,
    program_of,
)
from raters.inference import importance
from raters.inference.base import Draws
from raters.judgements.answers import MOST_LEVELS
from raters.judgements.base import Judgements
from raters.judgements.names import name_text, shorten, warn_data
from raters.judgements.reading.columns import read_number
from raters.model import Model, Values
from raters.program import Program, pointwise_log_likelihood
from raters.reporting.facts import classes_of, labels_of, ranks_of, scores_of, why_unjudged

# Effective draws that weights must leave.
_WORTH = 200
# Fewer judgements may be those of before by chance.
_FEW = 10


class Update(NamedTuple):
    """A result given more judgements, from `raters.update`: the new result, a table of what
    changed, and the Pareto shape of the weights; infinite after another fit."""

    result: xr.DataTree
    changes: pd.DataFrame
    pareto_k: float

    def __repr__(self) -> str:
        return f"Update: {len(self.changes)} changes\n{self.changes.head(8)}"


@checked
def update(
    result: xr.DataTree,
    more: Judgements,
    *,
    seed: int = 0,
    progress: bool = True,
    log_likelihood: bool = False,
) -> Update:
    r"""Add judgements to a fit: few of them by weights, others by another fit.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`.
    more : Judgements
        Judgements of the same kind, also by new annotators and about new items.
    seed : int
    progress : bool
        Show progress bars on standard error, where another fit is needed.
    log_likelihood : bool
        Whether to store the log-likelihood of every judgement under every draw.

    Returns
    -------
    Update
        ``result``, with all judgements; ``changes``, one row for each rank, label and verdict
        that is another one, with columns ``what``, ``name``, ``before``, ``after`` and
        ``probability``: that the label is right, or the rank at least as far as this from the one
        before; and ``pareto_k``.

    Notes
    -----
    Draws are weighted by the likelihood of all judgements over that of the earlier ones. Where the
    weights cannot be relied on, as with many new judgements, and with new names, the model is
    fitted again as `raters.fit` does by default, from the earlier draws where names are the same.

    References
    ----------
    Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance
    sampling. Journal of Machine Learning Research 25, 72.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=300, seed=0)
    >>> old, new = votes.rows(slice(5, None)), votes.rows(slice(5))
    >>> result = rt.fit(rt.BTL(), old, rt.PGEM(), seed=0, progress=False)
    >>> updated = rt.update(result, new, progress=False)
    >>> updated.result.posterior.sizes["item"]
    4
    """
    check_several(result, "an update weights its draws")
    model = model_of(result)
    check_data(more, "more", model)
    before = program_of(model, result)
    check_types(model, more, seed)
    begin = time.perf_counter()
    old, new = _with_same_names(before.data, more)
    _check_new(old, new)
    program = Program(model, old.joined(new))
    known = all(before.data.coords[axis] == new.coords[axis] for axis in new.named_axes())
    draws = _weighted(before, program, result, seed) if known else None
    if draws is None:
        settings: Any = {"seed": seed, "progress": progress, "log_likelihood": log_likelihood}
        after = fit(model, program.data, start=result if known else None, **settings)
        k = np.inf
    else:
        k = draws.facts["pareto_k"]
        facts = {"backend": result.attrs["backend"], "seconds": time.perf_counter() - begin}
        after = as_result(program, draws, draws.facts | facts, seed, log_likelihood)
    return Update(after, _changes(result, after, model), k)


def _with_same_names(old: Judgements, new: Judgements) -> tuple[Any, Any]:
    """Both in the codes of the names of the one, and then those that only the other has."""
    if type(old) is not type(new):
        problem = f"is {type(new).__name__}, and the fit is of {type(old).__name__}"
        refuse("more", new, problem, "read them as the others were read")
    for axis in dict.fromkeys(old.named_axes()):
        before, now = tuple(old.coords[axis]), tuple(new.coords[axis])
        known = set(map(name_text, before))
        names = (*before, *(name for name in now if name_text(name) not in known))
        if axis == "level" and len(names) > len(before):
            names = _scale(names)
        elif len(set(map(type, names))) > 1:
            names = tuple(map(name_text, names))
        old, new = old.with_names(axis, names), new.with_names(axis, names)
    return old, new


def _scale(levels: Sequence[Any]) -> tuple[Any, ...]:
    """Levels of two scales, the lowest first."""
    numbers = [read_number(level) for level in levels]
    if np.isnan(numbers).any() or len(levels) > MOST_LEVELS:
        problem = f"has levels that the fit has not, which makes {shorten(levels)}"
        expected = "read both with the same levels=[...], the lowest first, and fit them together"
        refuse("more", problem=problem, expected=expected)
    return tuple(levels[place] for place in np.argsort(numbers))


def _check_new(old: Any, new: Any) -> None:
    """Warn of judgements that were fitted already."""
    before, more = (data.to_frame() for data in (old, new))
    number = min(len(before), len(more))
    tallies = [rows.value_counts(dropna=False) for rows in (before, more)]
    contained = tallies[0].le(tallies[1].reindex(tallies[0].index, fill_value=0)).all()
    if number >= _FEW and (contained or before.tail(number).reset_index(drop=True).equals(more)):
        warn_data(
            f"`more` seems to hold {number:,} judgements that the result was fitted to already:"
            " counted twice they narrow the intervals; give only those that are new"
        )


def _weighted(
    before: Program[Any], program: Program[Any], result: xr.DataTree, seed: int
) -> Draws | None:
    """Draws given all judgements; None where the weights cannot be relied on."""
    values, _ = draws_of(before, result)
    log_ratio = in_double(_total, program, values) - in_double(_total, before, values)
    log_weight, k = importance.smoothed(log_ratio)
    weight = np.exp(log_weight - log_weight.max())
    share = weight.sum() ** 2 / (weight**2).sum() / len(weight)
    # Draws that have not mixed hold less than their number.
    effective = float(share * min(result.attrs.get("min_ess", len(weight)), len(weight)))
    if not (k <= importance.largest_k(len(weight)) and effective >= _WORTH):
        return None
    stats = {"log_p": log_ratio[None], "log_q": np.zeros_like(log_ratio)[None]}
    draws = Draws({name: value[None] for name, value in values.items()}, stats)
    weighted = importance.corrected(draws, np.random.default_rng(seed))
    return weighted._replace(facts=weighted.facts | {"converged": 1, "min_ess": effective})


def _total(model: Model[Any], data: Any, values: Values) -> Float[Array, ""]:
    """Log-likelihood of all judgements."""
    return pointwise_log_likelihood(model, data, values).sum()


# ---------------------------------------------------------------- what changed


def _changes(before: xr.DataTree, after: xr.DataTree, model: Model[Any]) -> pd.DataFrame:
    """Ranks, labels and verdicts that are other ones, by name, with probabilities."""

    def both(find: Callable[[xr.DataTree], pd.Series]) -> pd.DataFrame:
        each = {"before": find(before), "after": find(after)}
        return pd.DataFrame(
            {when: one.rename(name_text).astype(object) for when, one in each.items()}
        )

    ranks, labels, verdicts = both(ranks_of), both(labels_of), both(partial(_verdicts, model))
    # New, or has passed another known one.
    known = ranks.dropna().astype(int).rank()
    ranks = ranks[(known["before"] != known["after"]).reindex(ranks.index, fill_value=True)]
    labels = labels[labels["before"].notna() & (labels["before"] != labels["after"])]
    verdicts = verdicts[verdicts["before"] != verdicts["after"]]
    if len(ranks):  # At least as far as this from the one before.
        scores: Any = scores_of(after["posterior"].dataset)
        draws = scores.stack(sample=("chain", "draw")).transpose("sample", ...).to_pandas()
        each = draws.rank(axis=1, ascending=False).rename(columns=name_text)[ranks.index]
        now, then = (ranks[when].to_numpy(float) for when in ("after", "before"))
        chance = np.where((now < then) | np.isnan(then), each <= now, each >= now).mean(0)
        ranks = ranks.assign(probability=chance)
    if len(labels):
        chances = classes_of(after).rename(name_text).loc[labels.index]
        labels = labels.assign(probability=chances.max(axis=1))
    table = pd.concat({"rank": ranks, "label": labels, "verdict": verdicts}, names=["what", "name"])
    return table.reindex(columns=["before", "after", "probability"]).reset_index()


def _verdicts(model: Model[Any], result: xr.DataTree) -> pd.Series:
    """Verdict of the audit on each annotator."""
    if why_unjudged(program_of(model, result)):
        return pd.Series(dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # They were given at the audit of either result.
        return audit(model, result).table["verdict"].to_series()
