"""Draws around the mode of a program of several kinds of judgement: normal in unconstrained
coordinates, given the hyper-parameters."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to

from raters.inference.polya_gamma import line, several_plan, sweep
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.coordinates import inverse_factor
from raters.inference.polya_gamma.integrated import integrated
from raters.model import Scale, Values
from raters.program import Program, log_joint, log_likelihoods, start_of
from raters.program.values import inside

# Steps to the mode in unconstrained coordinates, and columns of the curvature computed at a time.
_MOST_STEPS, _COLUMNS = 2000, 16


def why_not(program: Program[Any], draws: int) -> str | None:
    """Explain why `PGEM` has no mode of a program of several kinds of judgement, or no draws around
    it, or return None."""
    if not program.parts:
        return None
    for name, part in program.parts.items():
        if part.model.marginal(part.data) is not None:
            return (
                f"part {name!r}: PGEM integrates a site of {part.model.title} out, which it does"
                " for one kind of judgement only; use PGGibbs, NUTS or SVI"
            )
    with jax.enable_x64(True):
        plan = several_plan.plan(program, start_of(program.model, program.data))
    if not plan.blocks:
        return f"{program.model.title} has no site that EM updates by a block; use NUTS or SVI"
    in_blocks = {name for block in plan.blocks for name in block.sites}
    model: Any = program.model
    tied = [model.site_name(*member) for group in model.tied for member in group]
    if loose := [name for name in tied if name not in in_blocks]:
        return (
            f"{loose[0]!r} is tied, and its entries are not independent given the other sites; use"
            " PGGibbs, NUTS or SVI"
        )
    size = sum(
        int(np.prod(site.shape)) for name, site in program.sites.items() if name not in plan.hyper
    )
    if draws and size > DENSE_LIMIT:
        return (
            f"PGEM draws from a dense normal around the mode, of at most {DENSE_LIMIT:,} numbers,"
            f" and this program has {size:,}; PGEM(draws=0) gives the mode, and PGGibbs draws"
        )
    return None


class _Coordinates(NamedTuple):
    """Unconstrained coordinates of some sites, in one vector.

    Attributes
    ----------
    plan : several_plan.Plan
    names : tuple of str
    """

    plan: several_plan.Plan
    names: tuple[str, ...]

    def flat(self, values: Values) -> tuple[Array, Any]:
        """Return the vector, and the map back to the unconstrained sites."""
        free = {
            name: biject_to(self.plan.supports[name]).inv(jnp.asarray(values[name], float))
            for name in self.names
        }
        vector: tuple[Array, Any] = ravel_pytree(free)
        return vector

    def sites(self, free: Values) -> tuple[Values, Array]:
        """Return the sites at unconstrained coordinates, and the log volume element."""
        sites, volume = {}, jnp.zeros(())
        for name in self.names:
            transform = biject_to(self.plan.supports[name])
            sites[name] = transform(free[name])
            volume += transform.log_abs_det_jacobian(free[name], sites[name]).sum()
        return sites, volume


@partial(jax.jit, static_argnums=0)
def _slope(own: _Coordinates, data: Any, values: Values, point: Array) -> tuple[Array, Array]:
    """Return the log density in unconstrained coordinates, and its gradient."""
    density: tuple[Array, Array] = jax.value_and_grad(partial(_density, own, data, values))(point)
    return density


@partial(jax.jit, static_argnums=0)
def _curvature(
    own: _Coordinates, data: Any, values: Values, point: Array
) -> Float[Array, "entry entry"]:
    """Return the negative second derivative of the log density, some columns at a time."""
    slope = jax.grad(partial(_density, own, data, values))

    def column(direction: Array) -> Array:
        second: Array = jax.jvp(slope, (point,), (direction,))[1]
        return -second

    curvature: Array = jax.lax.map(column, jnp.eye(point.size), batch_size=_COLUMNS)
    return (curvature + curvature.T) / 2


def _density(own: _Coordinates, data: Any, values: Values, point: Array) -> Array:
    sites, volume = own.sites(own.flat(values)[1](point))
    return log_joint(own.plan.model, data, values | sites) + volume


@partial(jax.jit, static_argnums=0)
def _placed(own: _Coordinates, values: Values, points: Array) -> tuple[Values, Array]:
    """Return the sites at several points, and the log volume elements."""
    unravel = own.flat(values)[1]
    placed: tuple[Values, Array] = jax.vmap(lambda point: own.sites(unravel(point)))(points)
    return placed


@partial(jax.jit, static_argnums=0)
def _on_orbits(plan: several_plan.Plan, row: Any, values: Values) -> Values:
    """Move to the highest density on the orbit of each scale symmetry, with the volume element and
    the hyper-parameters held."""
    moved = values
    for scale in plan.holding_hyper().scales:
        along = sweep.orbit_density(plan.model, row, moved, scale, True)
        moved = sweep.orbit(moved, scale, line.golden_step(along))
    return moved


@partial(jax.jit, static_argnums=0)
def _directions(
    own: _Coordinates, values: Values, points: Float[Array, "draw entry"]
) -> Float[Array, "draw orbit entry"]:
    """Return the directions of the scale orbits at some points."""
    unravel = own.flat(values)[1]

    def along(point: Array) -> Array:
        sites = own.sites(unravel(point))[0]

        def moved(scale: Scale, log_factor: Array) -> Array:
            return own.flat(sweep.orbit(values | sites, scale, log_factor))[0]

        slopes = [jax.jacfwd(partial(moved, scale))(jnp.zeros(())) for scale in own.plan.scales]
        return jnp.stack(slopes)

    directions: Array = jax.vmap(along)(points)
    return directions


def draws(
    plan: several_plan.Plan, data: Any, mode: Values, number: int, rng: np.random.Generator
) -> tuple[Values, Values]:
    """Draw around the mode in unconstrained coordinates.

    The normal has the curvature of the log density there. Along scale orbits, which are curved, it
    would be wrong: draws stay on the section across the orbits, through their highest density, and
    places on orbits are then drawn together with the hyper-parameters, given the other sites.

    Returns
    -------
    tuple of dict
        Draws of each site, shape (1, draw, ...), and ``log_p`` and ``log_q``, shape (1, draw), with
        the hyper-parameters and the places on orbits integrated out.
    """
    given = {name: np.asarray(value, np.float64) for name, value in mode.items()}
    if number == 0:
        return {name: value[None, None] for name, value in given.items()}, {}
    row = data.first_unit()
    own = _Coordinates(plan, tuple(name for name in plan.supports if name not in plan.hyper))
    given = {name: np.asarray(value) for name, value in _on_orbits(plan, row, given).items()}
    within = inside(given, plan.supports)
    given |= {name: within[name] for name in own.names}
    start = np.asarray(own.flat(given)[0])
    normals = np.zeros((0, len(start)))
    if plan.scales:
        normals = np.asarray(_directions(own, given, start[None]))[0]
        normals = np.linalg.qr(normals.T)[0].T
    centre = _highest(own, data, given, start, normals)
    curvature = np.asarray(_curvature(own, data, given, centre))
    across = normals.T @ normals
    rest = np.eye(len(start)) - across
    precision = rest @ curvature @ rest
    # Any precision across the section would do: draws are put onto it.
    level = np.trace(precision) / len(start)
    factor = inverse_factor((precision + level * across)[None])[0]
    apart = rng.standard_normal((number, len(start))) @ factor.T @ rest
    points = centre + apart
    sites, volume = _placed(own, given, points)
    orbits = len(normals)
    constant = np.linalg.slogdet(factor)[1] + orbits * np.log(level) / 2
    constant += (len(start) - orbits) * np.log(2 * np.pi) / 2
    square = np.einsum("di,ij,dj->d", apart, precision, apart)
    log_q = -square / 2 - constant - np.asarray(volume)
    if plan.scales:
        crossing = np.asarray(_directions(own, given, points)) @ normals.T
        log_q -= np.linalg.slogdet(crossing)[1]
    drawn = {
        name: np.asarray(sites[name]) if name in sites else np.repeat(value[None], number, 0)
        for name, value in given.items()
    }
    log_prior, drawn = integrated(plan, row, drawn, rng)
    log_p = log_prior + np.asarray(log_likelihoods(plan.model, data, drawn))
    values = {name: np.asarray(drawn[name])[None] for name in plan.supports}
    return values, {"log_p": log_p[None], "log_q": log_q[None]}


def _highest(
    own: _Coordinates,
    data: Any,
    values: Values,
    start: np.ndarray,
    normals: Float[np.ndarray, "orbit entry"],
) -> np.ndarray:
    """Climb from a point to the highest density on the section through it, by L-BFGS."""
    rest = np.eye(len(start)) - normals.T @ normals

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        at = start + rest @ (point - start)
        value, slope = _slope(own, data, values, at)
        return -float(value), -rest @ np.asarray(slope)

    options = {"maxiter": _MOST_STEPS, "maxfun": 10 * _MOST_STEPS, "ftol": 1e-13, "gtol": 1e-6}
    found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(start + rest @ (found.x - start))
