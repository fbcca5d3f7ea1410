"""One-dimensional updates of sites that are not conjugate: slice sampling for Gibbs, and
golden-section search for EM, both of a log density `f` along a line with the current point at 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from raters.inference.arrays import Scalar, Sites
from raters.inference.polya_gamma.unconstrained import coordinates, placed
from raters.model import Scale, Translation, Values
from raters.program import Supports

Line = Callable[[Array], Array]
# Width of a step of stepping out, the largest number of them, and of points tried in the slice.
_WIDTH = 1.0
_STEPS = 64
_TRIES = 200
# Standard deviation of a step of Metropolis.
_JUMP = 2.0
# Reach of a golden-section search.
_REACH = 2.0
# What the value at the point of a `_Slice` is for.
_LEVEL, _LEFT, _RIGHT, _SHRINK, _DONE = range(5)


class _Slice(NamedTuple):
    """State of a slice step: the point where `f` is evaluated next, and why."""

    stage: Array
    level: Array
    low: Array
    high: Array
    point: Array
    key: Array
    steps: Array


def slice_step(f: Line, key: Array) -> Scalar:
    """Draw by slice sampling from 0: stepping out, then shrinking (Neal 2003, figures 3 and 5)."""
    key, use = jax.random.split(key)
    height, position, share = jax.random.uniform(use, (3,))
    low = -_WIDTH * position
    # The steps are split at random between the sides. With a fixed limit for each, the other points
    # of the interval would not give the same interval with equal probability.
    steps_left = jnp.floor(_STEPS * share)
    most = jnp.array([0.0, steps_left, _STEPS - 1 - steps_left, _TRIES, 0.0])

    def step(state: _Slice) -> _Slice:
        # `f` stands at one place in the program, which compiles faster.
        value, stage, steps = f(state.point), state.stage, state.steps
        level = jnp.where(stage == _LEVEL, value + jnp.log1p(-height), state.level)
        inside = value > level
        # Go on with this stage? A value that is not a number is outside of the slice.
        again = (steps < most[stage]) & jnp.where(stage == _SHRINK, ~inside, inside)
        is_left = state.point < 0
        shrinks = again & (stage == _SHRINK)
        low = jnp.where(again & (stage == _LEFT), state.low - _WIDTH, state.low)
        low = jnp.where(shrinks & is_left, state.point, low)
        high = jnp.where(again & (stage == _RIGHT), state.high + _WIDTH, state.high)
        high = jnp.where(shrinks & ~is_left, state.point, high)
        stage, steps = jnp.where(again, stage, stage + 1), jnp.where(again, steps + 1, 0.0)
        key, use = jax.random.split(state.key)
        point = low + (high - low) * jax.random.uniform(use)
        point = jnp.where(stage == _LEFT, low, jnp.where(stage == _RIGHT, high, point))
        # Without a point in the slice, stay.
        point = jnp.where(stage == _DONE, jnp.where(inside, state.point, 0.0), point)
        return _Slice(stage, level, low, high, point, key, steps)

    zero = jnp.zeros(())
    start = _Slice(jnp.zeros((), int), zero, low, low + _WIDTH, zero, key, zero)
    return lax.while_loop(lambda state: state.stage < _DONE, step, start).point


def golden_step(f: Line, key: Array | None = None, shape: tuple[int, ...] = ()) -> Array:
    """Maximise f on [−2, 2] by golden-section search, in each entry of a shape by itself; 0 where
    nothing higher is found."""
    ratio = (jnp.sqrt(5.0) - 1) / 2
    narrowings = 50

    def narrow(index: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        # In the end the middle is compared with 0.
        last = index == narrowings
        left, right = jnp.where(last, (low + high) / 2, left), jnp.where(last, 0.0, right)
        at_left, at_right = lax.map(f, jnp.stack([left, right]))
        # Where both points are outside of the support, keep the side of 0, which is inside.
        go_left = (at_left > at_right) | ((at_right == -jnp.inf) & (right > 0))
        best = jnp.where(at_left > at_right, left, right)
        narrowed = jnp.where(go_left, low, left), jnp.where(go_left, right, high)
        return jnp.where(last, best, narrowed[0]), jnp.where(last, best, narrowed[1])

    start = -_REACH * jnp.ones(shape), _REACH * jnp.ones(shape)
    return lax.fori_loop(0, narrowings + 1, narrow, start)[0]


def jump_step(f: Line, key: Array) -> Scalar:
    """Draw by a step of Metropolis from 0, with two densities."""
    propose, accept = jax.random.split(key)
    move = _JUMP * jax.random.normal(propose)
    here, there = lax.map(f, jnp.stack([jnp.zeros(()), move]))
    return jnp.where(jnp.log(jax.random.uniform(accept)) < there - here, move, 0.0)


# ------------------------------------------------------------------------------ lines of sites


def orbit(values: Values, symmetry: Scale | Translation, move: Any) -> Values:
    """Return the point of an orbit through `values` after a move: the log of a factor, or what is
    added."""
    if isinstance(symmetry, Translation):
        column = symmetry.column
        moved = jnp.asarray(values[symmetry.site]).at[..., column].add(move)
        offset = values[symmetry.offset] - values[symmetry.slope][..., column] * move
        return values | {symmetry.site: moved, symmetry.offset: offset}
    factor = jnp.exp(move)
    up = {name: values[name] * factor for name in symmetry.up}
    return values | up | {name: values[name] / factor for name in symmetry.down}


def orbit_power(values: Values, symmetry: Scale | Translation) -> int:
    """Return the slope of the log of the volume element along an orbit."""
    if isinstance(symmetry, Translation):
        return 0
    sides = symmetry.up, symmetry.down
    up, down = (sum(jnp.size(values[name]) for name in names) for names in sides)
    return up - down


def visit(
    joint: Callable[[Values], Array],
    supports: Supports,
    orbits: tuple[Scale | Translation, ...],
    names: Sites,
    values: Values,
    key: Array,
    *,
    step: Callable[[Line, Array], Array] = slice_step,
    visits: int = 1,
) -> Values:
    """Update places on orbits, and the entries of some sites one by one along their
    unconstrained coordinates, by steps that draw, or maximise."""

    def moved(values: Values, moves: Array) -> tuple[Values, Array]:
        """Return the point after a move along each line, and the log volume element."""
        volume = jnp.zeros(())
        for symmetry, move in zip(orbits, moves, strict=False):
            volume += orbit_power(values, symmetry) * move
            values = orbit(values, symmetry, move)
        if names:
            flat, unravel = ravel_pytree(coordinates(supports, values, names))
            there, after = placed(supports, unravel(flat + moves[len(orbits) :]))
            volume += after - placed(supports, unravel(flat))[1]
            values = values | there
        return values, volume

    number = len(orbits) + sum(one.size for one in coordinates(supports, values, names).values())
    draws = step is not golden_step
    if not number:
        return values

    def once(place: Array, state: tuple[Values, Array]) -> tuple[Values, Array]:
        values, key = state
        key, use = jax.random.split(key)
        along = jnp.zeros(number).at[place % number].set(1.0)

        def density(move: Array) -> Array:
            there, volume = moved(values, move * along)
            return joint(there) + (volume if draws else 0.0)

        return moved(values, step(density, use) * along)[0], key

    return jax.lax.fori_loop(0, visits * number, once, (values, key))[0]
