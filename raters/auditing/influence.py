r"""Influence of each judge: the conclusions that would change without them.

The conclusions are the most probable class of each item, or the order of each pair of items by
their mean rewards. The posterior without the judgements :math:`y_k` of judge k is read off the
draws of the posterior with all of them, with the weights

.. math::

    w_d \propto \frac{q(\theta_{k})}{p(\theta_{k} \mid \theta_{-k}) \,
    p(y_k \mid y_{-k}, \theta)},

where :math:`\theta_k` are the judge's own parameters and q is a normal distribution fitted to their
draws. Without q the weights would ask that the draws hold the prior of these parameters, which they
do not; no conclusion depends on them. The weights are smoothed, and relied on where their Pareto
:math:`\hat k` allows; otherwise the modes with and without the judge are compared.
"""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int
from numpyro.distributions import biject_to

from raters.errors import ConvergenceWarning
from raters.fitting.result import draws_of
from raters.inference import base, modes
from raters.inference.importance import largest_k, smoothed
from raters.inference.polya_gamma.em import PGEM
from raters.judgements.base import Judgements
from raters.judgements.counts import exact
from raters.model import Model, Values
from raters.program import Program, class_probs, row_log_probs, trace

PerJudge = Float[np.ndarray, " judge"]
JudgeDraws = Float[np.ndarray, "draw judge"]
JudgeCodes = Int[np.ndarray, " judge"]

# Share of the conclusions from which on a judge decides them.
DECIDES = 0.1
# Draws that are read at most and at least, and numbers that are in memory at once.
_DRAWS, _FEWEST, _NUMBERS = 400, 100, 40_000_000
# Judges who are looked at, those with the most judgements; and those fitted again without.
_JUDGES, _REFITS = 300, 5
# Own parameters of one judge that a normal distribution is fitted to at most.
_OWN = 30


class Influence(NamedTuple):
    """Influence of each judge."""

    change: PerJudge
    refitted: Bool[np.ndarray, " judge"]


def influence(program: Program[Any], result: xr.DataTree, seed: int = 0) -> Influence | None:
    """Share of the conclusions that would change without each judge."""
    data, num_judges = program.data, len(program.data.judges)
    ranked = "reward" in program.sites and program.sites["reward"].dims == ("item",)
    if num_judges < 3 or not (program.has_truth or ranked):
        return None
    latent = program.latent if program.has_truth else None
    size = max(data.num_rows, program.num_units) * (1 if latent is None else latent.size)
    if size * _FEWEST > _NUMBERS:
        return None
    number = int(np.clip(_NUMBERS // size, _FEWEST, _DRAWS))
    draws, _ = draws_of(program, result, number)
    judgements = data.judgements_by(data.judge)
    those = np.argsort(-judgements, kind="stable")[:_JUDGES]
    left = _left_out(program, draws, those)
    weight, shape = _weights(left)
    if latent is None:
        before = draws["reward"].mean(0)
        changes = np.array([_turned(before, after) for after in weight.T @ draws["reward"]])
    else:
        changes = _changed_labels(program, draws, left, weight, those)
    change, refitted = np.full(num_judges, np.nan), np.zeros(num_judges, bool)
    change[those] = np.where(shape <= largest_k(number), changes, np.nan)
    unknown = those[np.isnan(change[those]) & (judgements[those] > 0)][:_REFITS]
    backend = PGEM(draws=0, starts=1)
    if len(unknown) and backend.why_not(program) is None:
        change[unknown] = _modes(program, result, backend, unknown, seed)
        refitted[unknown] = True
    return Influence(change, refitted)


# ---------------------------------------------------------------- conclusions


def _turned(one: Float[np.ndarray, " item"], other: Float[np.ndarray, " item"]) -> float:
    """Share of the pairs of items in another order."""
    from scipy.stats import kendalltau

    return max(0.0, round(float(1 - kendalltau(one, other).statistic) / 2, 12))


def _changed_labels(
    program: Program[Any], draws: Values, left: _LeftOut, weight: JudgeDraws, judges: JudgeCodes
) -> PerJudge:
    """Share of the items whose most probable class changes under each judge's weights."""
    data = jax.tree.map(jnp.asarray, program.data)
    probs, without = np.asarray(class_probs(program.model, data, draws)), left.without
    assert without is not None
    before, shares = probs.mean(0).argmax(1), []
    for judge, column in zip(judges, weight.astype(np.float32).T, strict=True):
        after = np.tensordot(column, probs, 1)
        cells = np.flatnonzero(left.cells.judge == judge)
        after[left.cells.unit[cells]] = np.tensordot(column, without[:, cells], 1)
        shares.append((after.argmax(1) != before).mean())
    return np.array(shares)


# ---------------------------------------------------------------- weights


class _Cells(NamedTuple):
    """Rows of one judge about one unit, as a cell."""

    place: Int[np.ndarray, " row"]
    judge: Int[np.ndarray, " cell"]
    unit: Int[np.ndarray, " cell"]


class _LeftOut(NamedTuple):
    """Densities of single judges under each draw."""

    log_likelihood: JudgeDraws
    log_prior: JudgeDraws
    own: Float[np.ndarray, "draw judge parameter"]
    cells: _Cells
    without: Float[np.ndarray, "draw cell true_class"] | None


def _left_out(program: Program[Any], draws: Values, judges: JudgeCodes) -> _LeftOut:
    """Densities of these judges under each draw."""
    data = program.data
    judge = np.asarray(data.codes(data.judge), np.int64)
    number = len(data.judges)
    unit = np.asarray(data.codes(program.unit), np.int64) if program.has_truth else judge
    key, place = np.unique(unit * number + judge, return_inverse=True)
    cells = _Cells(place, key % number, key // number)
    names = tuple(
        name
        for name, site in program.sites.items()
        if site.dims[:1] == (data.judge,) and np.prod(site.shape[1:], dtype=int) <= _OWN
    )
    by = judge if program.unit == data.row or program.has_truth else np.arange(number)
    of_units = cells if program.has_truth else None
    doubles = {name: np.asarray(value, np.float64) for name, value in draws.items()}
    with jax.enable_x64(True):
        traced = jax.tree.map(jnp.asarray, data)
        table = _densities(program.model, names, traced, of_units, by, doubles)
        log_likelihood, log_prior, own, without = jax.tree.map(np.asarray, table)
    return _LeftOut(log_likelihood[:, judges], log_prior[:, judges], own[:, judges], cells, without)


@partial(jax.jit, static_argnums=(0, 1))
def _densities(
    model: Model[Any], names: tuple[str, ...], data: Any, cells: Any, by: Array, draws: Values
) -> Any:
    number = len(data.judges)

    def one(values: Values) -> tuple[Any, ...]:
        sites = trace(model, data, values)
        prior, own = jnp.zeros(number), [jnp.zeros((number, 0))]
        for name in names:
            fn, value = sites[name]["fn"], sites[name]["value"]
            move = biject_to(fn.support)
            free = move.inv(value)
            density = fn.log_prob(value), move.log_abs_det_jacobian(free, value)
            # Of a density that is not a product over judges nothing is known of each.
            if all(np.shape(part)[:1] == (number,) for part in density):
                prior += sum(part.reshape(number, -1).sum(1) for part in density)
                own.append(free.reshape(number, -1))
        parts = prior, jnp.concatenate(own, axis=1)
        fn, value = sites[model.observed]["fn"], sites[model.observed]["value"]
        if cells is None:
            return jax.ops.segment_sum(fn.log_prob(value), by, number), *parts, None
        rows = row_log_probs(fn, value)
        rows = rows if data.count is None or data.summed else data.count[:, None] * rows
        of_cell = jax.ops.segment_sum(rows, cells.place, len(cells.judge))
        whole = jax.nn.log_softmax(fn.log_joint(value), axis=-1)[cells.unit]
        rest = jnp.where(jnp.isneginf(whole), -jnp.inf, whole - of_cell)
        of_rest = jax.nn.logsumexp(rest, axis=-1)
        without = jnp.exp(rest - of_rest[:, None]).astype(jnp.float32)
        return -jax.ops.segment_sum(of_rest, cells.judge, number), *parts, without

    return jax.lax.map(one, draws)


def _weights(left: _LeftOut) -> tuple[JudgeDraws, PerJudge]:
    """Weights of the draws without each judge, and the shapes of their tails."""
    log_ratio = -left.log_likelihood - left.log_prior + _log_normal(left.own)
    columns = [smoothed(column) for column in log_ratio.T]
    weight = np.stack([np.exp(column - column.max()) for column, _ in columns], axis=1)
    return weight / weight.sum(0), np.array([shape for _, shape in columns])


def _log_normal(own: Float[np.ndarray, "draw judge parameter"]) -> JudgeDraws:
    """Log-density of each judge's parameters under a normal fitted to them, but for a constant."""
    centred = own - own.mean(0)
    covariance = np.einsum("dki,dkj->kij", centred, centred) / len(own)
    covariance += 1e-9 * np.eye(own.shape[-1])
    half = np.linalg.solve(np.linalg.cholesky(covariance), centred.transpose(1, 2, 0))
    return -0.5 * (half**2).sum(1).T


# ---------------------------------------------------------------- modes


def _modes(
    program: Program[Any], result: xr.DataTree, backend: PGEM, judges: JudgeCodes, seed: int
) -> PerJudge:
    """Share of the conclusions that change between the modes with and without each judge."""
    posterior = result["posterior"]
    start = {name: np.asarray(posterior[name].values, np.float64) for name in program.sites}

    def found(judge: int) -> np.ndarray:
        part = Program(program.model, _without(program.data, judge))
        values = _mode(part, backend, start, seed)
        if (image := _likelier_image(part, values)) is not None:
            values = _mode(part, backend, image, seed)
        if not program.has_truth:
            return np.asarray(values["reward"][0])
        probs = class_probs(part.model, jax.tree.map(jnp.asarray, part.data), values)
        return np.asarray(np.argmax(probs[0], 1))

    before, after = found(-1), [found(int(judge)) for judge in judges]
    if program.has_truth:
        return np.array([(one != before).mean() for one in after])
    return np.array([_turned(before, one) for one in after])


def _mode(program: Program[Any], backend: PGEM, start: Values, seed: int) -> Values:
    """The mode near some draws, as one draw."""
    with base.one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        drawn = backend.run(program, jax.random.key(seed), start=start)
    return {name: np.asarray(value[0]) for name, value in drawn.values.items()}


def _likelier_image(program: Program[Any], values: Values) -> Values | None:
    """The mirror image of a mode where that is likelier, as a draw of a chain, else None."""
    here, data = {name: value[0] for name, value in values.items()}, program.data
    for move in modes.images(program):
        # Names of many classes have many images, each of which would have to be weighed.
        if move.parts or len(move.orders) > 1:
            continue
        order = np.array(move.orders[0], int)
        image, odds = modes.image_of(program.model, move, data, here, order)
        if odds > 0:
            return {name: np.asarray(one)[None, None] for name, one in image.items()}
    return None


def _without(data: Judgements, judge: int) -> Judgements:
    """The judgements, those of one judge (none: −1) with a count of 0, so that shapes stay."""
    stays = np.asarray(data.codes(data.judge)) != judge
    columns: dict[str, Any] = {"count": exact(np.where(stays, np.asarray(data.weight, float), 0.0))}
    if data.summed:
        answers = np.asarray(getattr(data, data.answer), float)
        columns[data.answer] = exact(np.where(stays, answers, 0.0))
    return dataclasses.replace(data, **columns)
