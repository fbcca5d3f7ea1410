r"""More judgements for a fit, without another fit.

Draws u of the earlier posterior, in unconstrained coordinates with mean m and covariance
:math:`L L^\top`, are moved by an affine map,

.. math:: u' = m + L (z^* + C^{-1/2} L^{-1} (u - m)), \qquad
    z^* = \operatorname{argmax}_z \; \ell(m + L z) - |z|^2 / 2, \qquad
    C = I - L^\top \nabla^2 \ell \, L,

with :math:`\ell` the log-likelihood of the new judgements, and weighted by the ratio of the
posterior given all judgements at :math:`u'` to the earlier one at u (importance-weighted moment
matching: Paananen, Piironen, Bürkner and Vehtari 2021). The weights are exact, so that their Pareto
:math:`\hat k` says whether the map was good enough.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy.linalg
import xarray as xr
from jaxtyping import Array, Float
from numpyro import handlers

from raters.auditing.audit import audit
from raters.errors import refuse
from raters.errors.validation import checked
from raters.fitting.fit import as_result, check_types, fit
from raters.fitting.result import check_data, check_several, draws_of, model_of, program_of
from raters.inference import importance
from raters.inference.base import Draws
from raters.inference.polya_gamma.unconstrained import (
    flat_of,
    log_density,
    maximised,
    sites_at,
    sites_at_each,
)
from raters.judgements.answers import MOST_LEVELS
from raters.judgements.base import Judgements
from raters.judgements.names import name_text, shorten, warn_data
from raters.judgements.reading.columns import read_number
from raters.model import Model, Shift, Values, identify
from raters.program import Program, Supports, pointwise_log_likelihood
from raters.reporting.board import scores_of
from raters.reporting.facts import why_unjudged

# Draws that are moved: fewest and most, where there are so many; wanted and least number for
# each coordinate.
_FEWEST, _MOST, _EACH, _LEAST = 1000, 4000, 12, 3
# Effective draws that weights must leave.
_WORTH = 200
# Fewer judgements may be those of before by chance.
_FEW = 10
Points = Float[np.ndarray, "draw coordinate"]


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
    r"""Add judgements to a fit: by weights, in a small part of a fit's time, or by another fit.

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
    See `raters.reporting.update` for the equations. Where the weights cannot be relied on, as with
    many new judgements, more parameters than a third of the draws, or classes that are summed out,
    the model is fitted again as `raters.fit` does by default, from the earlier draws where names
    are the same.

    References
    ----------
    Paananen, T., Piironen, J., Bürkner, P.-C. and Vehtari, A. (2021). Implicitly adaptive
    importance sampling. Statistics and Computing 31, 16.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=300, seed=0)
    >>> old, new = votes.rows(slice(0, 20)), votes.rows(slice(20, None))
    >>> result = rt.fit(rt.BTL(), old, rt.PGEM(), seed=0, progress=False)
    >>> updated = rt.update(result, new, progress=False)
    >>> updated.result.posterior.sizes["item"]
    4
    """
    check_several(result, "an update moves its draws")
    model = model_of(result)
    check_data(more, "more", model)
    before = program_of(model, result)
    check_types(model, more, seed)
    begin = time.perf_counter()
    old, new = _with_same_names(before.data, more)
    _check_new(old, new)
    program = Program(model, old.joined(new))
    draws = _moved(before, old, new, program, result, seed)
    if draws is None:
        same = all(before.data.coords[axis] == new.coords[axis] for axis in new.named_axes())
        start = result if same else None
        after = fit(
            model,
            program.data,
            seed=seed,
            start=start,
            progress=progress,
            log_likelihood=log_likelihood,
        )
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


def _moved(
    before: Program[Any], old: Any, new: Any, program: Program[Any], result: xr.DataTree, seed: int
) -> Draws | None:
    """Draws given all judgements; None where they cannot be moved."""
    model, rng = program.model, np.random.default_rng(seed)
    if program.counts_classes:  # Probabilities near 0 have tails that no affine map keeps.
        return None
    size = sum(math.prod(site.shape) for site in before.sites.values())
    names = ((data.coords[axis] for data in (before.data, old)) for axis in old.named_axes())
    if any([*map(name_text, now[: len(was)])] != [*map(name_text, was)] for was, now in names):
        return None  # As with a new lowest level.
    values = draws_of(before, result, min(_MOST, max(_FEWEST, _EACH * size)), seed)[0]
    number = len(next(iter(values.values())))
    wide = Program(model, old)
    if any(wide.sites[name].shape != site.shape for name, site in before.sites.items()):
        values = _extended(wide, values, seed)
    supports = program.supports
    with jax.enable_x64(True):
        points = np.asarray(jax.vmap(partial(flat_of, supports))(values))
        if number < _LEAST * points.shape[1]:
            return None
        like = {name: np.asarray(value[0]) for name, value in values.items()}
        moved = _mapped(model, supports, jax.tree.map(jnp.asarray, new), like, points)
        if moved is None:
            return None
        drawn, _ = sites_at_each(supports, like, moved)
    drawn = identify(model, jax.tree.map(np.asarray, drawn), 1)
    # Of single precision: a log-weight need not be known to more than a hundredth.
    single = {name: value.astype(np.float32) for name, value in like.items()}
    earlier = jax.tree.map(jnp.asarray, old.padded(program.data.num_rows))
    data = jax.tree.map(jnp.asarray, program.data)
    log_q, log_p = (
        np.asarray(_log_densities(model, supports, rows, single, at), np.float64)
        for rows, at in ((earlier, points), (data, moved))
    )
    stats = {"log_p": log_p[None], "log_q": log_q[None]}
    draws = Draws({name: np.asarray(value)[None] for name, value in drawn.items()}, stats)
    log_weight, k = importance.smoothed(log_p - log_q)
    weight = np.exp(log_weight - log_weight.max())
    if not k <= importance.largest_k(number) or weight.sum() ** 2 / (weight**2).sum() < _WORTH:
        return None
    moved_draws = importance.corrected(draws, rng)
    return moved_draws._replace(facts=moved_draws.facts | {"converged": 1})


def _extended(program: Program[Any], values: Values, seed: int) -> Values:
    """Draws with those of new names from their prior, given the sites that they share."""
    model, number = program.model, len(next(iter(values.values())))
    shared = {name for name, site in program.sites.items() if site.shape == values[name].shape[1:]}
    data = jax.tree.map(jnp.asarray, program.data.take(slice(0, 1)))

    def prior(key: Array, draw: Values) -> Values:
        given = {name: draw[name] for name in shared}
        seeded = handlers.seed(handlers.substitute(model, given), key)
        sites = handlers.trace(seeded).get_trace(data)
        return {name: sites[name]["value"] for name in program.sites}

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), number)
        every = {name: np.array(value) for name, value in jax.vmap(prior)(keys, values).items()}
    for name, value in values.items():
        place = tuple(slice(size) for size in value.shape)  # New names come last.
        for one in model.symmetries:
            if isinstance(one, Shift) and one.site == name and name not in shared:
                axes = one.axis if one.axis is None else one.axis + 1
                mean = every[name][place].mean(axes or tuple(range(1, value.ndim)), keepdims=True)
                value = value + mean  # Which centring took out.
        every[name][place] = value
    return every


@partial(jax.jit, static_argnums=(0, 1))
def _log_densities(
    model: Model[Any], supports: Supports, data: Any, like: Values, points: Array
) -> Array:
    return jax.lax.map(partial(log_density, model, supports, data, like), points, batch_size=16)


@partial(jax.jit, static_argnums=(0, 1))
def _added(model: Model[Any], supports: Supports, new: Any, like: Values, flat: Array) -> Array:
    """Log-likelihood of new judgements."""
    return pointwise_log_likelihood(model, new, sites_at(supports, like, flat)[0]).sum()


_slope = jax.jit(jax.value_and_grad(_added, argnums=4), static_argnums=(0, 1))
_hessian = jax.jit(jax.hessian(_added, argnums=4), static_argnums=(0, 1))


def _mapped(
    model: Model[Any], supports: Supports, new: Any, like: Values, points: Points
) -> Points | None:
    """Draws moved by the affine map; None where that is not defined."""
    middle, size = points.mean(0), points.shape[1]
    covariance = np.atleast_2d(np.cov(points.T))
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(size))

    def objective(place: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _slope(model, supports, new, like, middle + root @ place)
        return float(value) - place @ place / 2, root.T @ np.asarray(slope) - place

    best = maximised(objective, np.zeros(size)).x
    hessian = np.asarray(_hessian(model, supports, new, like, middle + root @ best))
    values, vectors = np.linalg.eigh(np.eye(size) - root.T @ hessian @ root)
    if values.min() <= 0:
        return None
    whitened = scipy.linalg.solve_triangular(root, (points - middle).T, lower=True)
    narrowed = vectors @ ((vectors.T @ whitened) / np.sqrt(values)[:, None])
    return np.asarray((middle[:, None] + root @ (best[:, None] + narrowed)).T)


# ---------------------------------------------------------------- what changed


def _changes(before: xr.DataTree, after: xr.DataTree, model: Model[Any]) -> pd.DataFrame:
    """Ranks, labels and verdicts that are other ones, by name, with probabilities."""
    tables = {}
    for what, find in (("rank", _ranks), ("label", _labels), ("verdict", _verdicts)):
        each = {"before": find(before, model), "after": find(after, model)}
        both = pd.DataFrame({when: one.rename(name_text) for when, one in each.items()})
        differs = both["before"] != both["after"]
        if what == "label":
            differs &= both["before"].notna()
        if what == "rank":  # New, or has passed another known one.
            known = both.dropna().astype(int).rank()
            differs = (known["before"] != known["after"]).reindex(both.index, fill_value=True)
        changed, chance = both[differs], np.array(np.nan)
        if what == "label" and len(changed):
            chance = _classes(after).rename(name_text).loc[changed.index].max(axis=1).to_numpy()
        if what == "rank" and len(changed):
            chance = _chance_of_rank(after, changed)
        tables[what] = changed.assign(probability=chance)
    return pd.concat(tables, names=["what", "name"]).reset_index()


def _ranks(result: xr.DataTree, model: Model[Any]) -> pd.Series:
    """Place of each entry by its posterior mean; none of a model that puts none in order."""
    scores = scores_of(result["posterior"].dataset)
    if scores is None or scores.ndim != 3:
        return pd.Series(dtype=object)
    mean = scores.mean(("chain", "draw")).to_series()
    return mean.rank(ascending=False, method="first").astype(int).astype(object)


def _chance_of_rank(result: xr.DataTree, changed: pd.DataFrame) -> Float[np.ndarray, " change"]:
    """Probability of a rank at least as far as this from the one before."""
    scores = scores_of(result["posterior"].dataset)
    assert scores is not None
    draws = scores.transpose("chain", "draw", ...).values.reshape(-1, scores.shape[-1])
    rank = pd.DataFrame(1 + (-draws).argsort(1).argsort(1))
    rank.columns = [*map(name_text, scores.coords[scores.dims[-1]].values)]
    after, before = (changed[name].to_numpy(float) for name in ("after", "before"))
    each = rank[changed.index].to_numpy()
    is_better = (after < before) | np.isnan(before)
    return np.where(is_better, each <= after, each >= after).mean(0)


def _classes(result: xr.DataTree) -> pd.DataFrame:
    """Probability of each class of each item."""
    frame: pd.DataFrame = result["classes"]["responsibility"].transpose("item", ...).to_pandas()
    return frame


def _labels(result: xr.DataTree, model: Model[Any]) -> pd.Series:
    """Most probable class of each item."""
    if "classes" not in result.children:
        return pd.Series(dtype=object)
    return _classes(result).idxmax(axis=1).map(name_text).astype(object)


def _verdicts(result: xr.DataTree, model: Model[Any]) -> pd.Series:
    """Verdict of the audit on each annotator."""
    if why_unjudged(program_of(model, result)):
        return pd.Series(dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # They were given at the audit of either result.
        return audit(model, result).table["verdict"].to_series()
