"""Draws around the mode of a model whose likelihood sums latent classes out."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from scipy.stats import norm

from raters.errors import ConvergenceWarning
from raters.inference import _classes, _polyagamma, _sweep
from raters.inference._trace import latent_sites, log_joint
from raters.model import Values

# The information matrix has a column for each parameter, and each costs a pass over the rows: up to so many parameters, and so
# many rows times parameters, it is computed.
_DENSE_LIMIT = 1500
_WORK_LIMIT = 2e8
# Steps of Gibbs sampling after the normal draw; none beyond so many rows times classes, in all draws.
_MOVES = 3
_MOVE_LIMIT = 5e8
# A coordinate of a bounded site is kept within this distance of 0, where rounding does not yet put the site on its bound.
_FARTHEST = 30.0
# A normal in unconstrained coordinates that is wider than this does not describe a bounded site.
_WIDEST = 2.0


def around_classes(plan: _sweep.Plan, data: Any, mode: Values, number: int, rng: np.random.Generator):
    """Draws of shape (number, ...), hyper-parameters held, with ``log_p`` and ``log_q`` where both are computed.

    A normal in unconstrained coordinates at the mode in those coordinates, with the observed information: it knows that the
    classes are uncertain. A mode of probabilities may lie on the edge of the simplex; in logarithmic coordinates it never
    does (MacKay 1998). A normal there is far from a Dirichlet of few counts, so each draw then takes steps of Gibbs sampling on
    the classes and what counts them. These leave the posterior invariant, so the weights that ``log_p`` and ``log_q`` of the
    normal draws give are right for the moved ones too (Gilks and Berzuini 2001).

    With too many parameters for that, each block is drawn from its conditional given the expected classes, which takes those as
    seen, so intervals are too narrow.
    """
    held = {name: jnp.asarray(mode[name]) for name in plan.hyper}
    moving = {name: jnp.asarray(value) for name, value in mode.items() if name not in plan.hyper}
    supports = {name: site.support for name, site in latent_sites(plan.model, data).items()}
    start = {name: biject_to(supports[name]).inv(value) for name, value in moving.items()}
    size = sum(value.size for value in start.values())
    if size > _DENSE_LIMIT or size * data.annotator.shape[0] > _WORK_LIMIT:
        return _by_block(plan, data, mode, number, rng), {}
    flat, unravel = ravel_pytree(start)

    def slope(point):
        value, gradient = _density(plan, data, held, unravel(jnp.asarray(point)))
        return -float(value), -np.asarray(ravel_pytree(gradient)[0])

    best = scipy.optimize.minimize(slope, np.asarray(flat), jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    level, turn = np.linalg.eigh(np.asarray(_information(plan, data, held, unravel(jnp.asarray(best)))))
    deviation = 1 / np.sqrt(np.maximum(level, 1e-4))
    standard = rng.standard_normal((number, size))
    points = best + (standard * deviation) @ turn.T
    log_q = norm.logpdf(standard).sum(1) - np.log(deviation).sum()
    places = jax.vmap(unravel)(jnp.asarray(points))
    counted = tuple(block.sites[0] for block in plan.blocks if block.kind == "counts")
    bounded = {name for name in start if isinstance(supports[name], constraints.interval) and name not in counted}
    _warn_of_wide(bounded, unravel(jnp.asarray(np.sqrt(((turn * deviation) ** 2).sum(1)))))
    places |= {name: jnp.clip(places[name], -_FARTHEST, _FARTHEST) for name in bounded}
    log_p = np.asarray(_densities(plan, data, held, places))
    draws = {name: np.asarray(biject_to(supports[name])(place)) for name, place in places.items()}
    draws |= {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in held.items()}
    classes = jax.eval_shape(partial(_classes.expected, plan.model), data, mode)[0].shape[-1]
    if counted and number * _MOVES * data.annotator.shape[0] * classes <= _MOVE_LIMIT:
        keys = jax.random.split(jax.random.key(rng.integers(2**32, dtype=np.uint64)), number)
        draws = {name: np.asarray(value) for name, value in _moved(plan, data, draws, keys, counted).items()}
    return draws, {"log_p": log_p[None], "log_q": log_q[None]}


def _warn_of_wide(bounded: set[str], deviations: Values) -> None:
    """Warn of bounded sites around whose mode a normal is no likeness of the posterior."""
    for name in sorted(bounded):
        if wide := int(np.sum(np.asarray(deviations[name]) > _WIDEST)):
            warnings.warn(
                f"{wide} of {np.size(deviations[name])} entries of {name!r} may lie nearly anywhere within their bounds, which "
                "draws around the mode show badly; use PGGibbs() for their intervals and for LOO",
                ConvergenceWarning,
                stacklevel=5,
            )


def _log_density(plan: _sweep.Plan, data: Any, held: Values, place: Values) -> jax.Array:
    """Log joint density in unconstrained coordinates."""
    values, total = dict(held), jnp.zeros(())
    for name, site in latent_sites(plan.model, data).items():
        if name in place:
            transform = biject_to(site.support)
            values[name] = transform(place[name])
            total += transform.log_abs_det_jacobian(place[name], values[name]).sum()
    return total + log_joint(plan.model, data, values)


@partial(jax.jit, static_argnums=0)
def _density(plan: _sweep.Plan, data: Any, held: Values, place: Values):
    return jax.value_and_grad(lambda place: _log_density(plan, data, held, place))(place)


@partial(jax.jit, static_argnums=0)
def _densities(plan: _sweep.Plan, data: Any, held: Values, places: Values) -> jax.Array:
    return jax.lax.map(lambda place: _log_density(plan, data, held, place), places)


@partial(jax.jit, static_argnums=(0, 4))
def _moved(plan: _sweep.Plan, data: Any, draws: Values, keys: jax.Array, counted: tuple[str, ...]) -> Values:
    def one(entry):
        values, key = entry
        step = partial(_classes.moved, plan.model, data)
        return jax.lax.fori_loop(0, _MOVES, lambda number, kept: step(kept, counted, jax.random.fold_in(key, number)), values)

    return jax.lax.map(one, (draws, keys))


@partial(jax.jit, static_argnums=0)
def _information(plan: _sweep.Plan, data: Any, held: Values, place: Values) -> jax.Array:
    """Minus the matrix of second derivatives, a column at a time."""
    flat, unravel = ravel_pytree(place)
    slope = jax.grad(lambda flat: -_log_density(plan, data, held, unravel(flat)))
    return jax.lax.map(lambda direction: jax.jvp(slope, (flat,), (direction,))[1], jnp.eye(flat.size, dtype=flat.dtype))


def _by_block(plan: _sweep.Plan, data: Any, mode: Values, number: int, rng: np.random.Generator) -> Values:
    """Each block from its conditional at the mode, given the expected classes."""
    classes, _ = _classes.expected(plan.model, data, mode)

    def weights(_, logits, count, kappa):
        omega, kappa, _ = _polyagamma.curvature(logits, count, kappa)
        return np.asarray(omega), np.asarray(kappa)

    draws = {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in mode.items()}
    for block in plan.blocks:
        given = _sweep.block_conditional(plan, data, mode, block, weights, classes, draws=True)
        current = block.current(mode)
        for draw in range(number):
            moved = block.put({name: mode[name] for name in block.sites}, given.draw(rng, current))
            for name in block.sites:
                if block.is_column:
                    draws[name][draw][:, block.column] = moved[name][:, block.column]
                else:
                    draws[name][draw] = moved[name]
    return draws
