"""One-dimensional updates of sites that are not conjugate: slice sampling for Gibbs, and
golden-section search for EM.

Both take a log-density `f` along a line with the current point at 0, so that EM and Gibbs update
free sites and the orbits of symmetries in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

Line = Callable[[Array], Array]
# Ends of the interval, point drawn from it, key and number of tries.
_Interval = tuple[Array, Array, Array, Array, int]
# Width of a step of stepping out, and the largest number of them.
_WIDTH = 1.0
_STEPS = 64


def slice_step(f: Line, key: jax.Array) -> Float[Array, ""]:
    """Draw by slice sampling from 0: stepping out, then shrinking (Neal 2003, figures 3 and 5)."""
    height_key, position_key, shrink_key, budget_key = jax.random.split(key, 4)
    level = f(jnp.zeros(())) - jax.random.exponential(height_key)
    low = -_WIDTH * jax.random.uniform(position_key)
    # The steps are split at random between the sides. With a fixed limit for each, the other points
    # of the interval would not give the same interval with equal probability.
    steps_left = jax.random.randint(budget_key, (), 0, _STEPS)

    def step_out(end: Array, direction: float, limit: Array) -> Array:
        def above_level(state: tuple[Array, int]) -> Array:
            position, steps = state
            return (f(position) > level) & (steps < limit)

        def move(state: tuple[Array, int]) -> tuple[Array, int]:
            return state[0] + direction * _WIDTH, state[1] + 1

        return lax.while_loop(above_level, move, (end, 0))[0]

    low, high = (
        step_out(low, -1.0, steps_left),
        step_out(low + _WIDTH, 1.0, _STEPS - 1 - steps_left),
    )

    def rejected(state: _Interval) -> Array:
        _, _, point, _, tries = state
        return (f(point) <= level) & (tries < 200)

    def shrink(state: _Interval) -> _Interval:
        low, high, point, key, tries = state
        low, high = jnp.where(point < 0, point, low), jnp.where(point < 0, high, point)
        key, draw_key = jax.random.split(key)
        return low, high, jax.random.uniform(draw_key, minval=low, maxval=high), key, tries + 1

    key, draw_key = jax.random.split(shrink_key)
    first = jax.random.uniform(draw_key, minval=low, maxval=high)
    _, _, point, _, tries = lax.while_loop(rejected, shrink, (low, high, first, key, 0))
    return jnp.where(tries < 200, point, 0.0)


def golden_step(f: Line, key: jax.Array | None = None, reach: float = 2.0) -> Float[Array, ""]:
    """Maximise f on [−reach, reach] by golden-section search; 0 where nothing higher is found.

    `key` is not used; it is there so that the step can replace `slice_step`.
    """
    ratio = (jnp.sqrt(5.0) - 1) / 2
    low, high = -reach * jnp.ones(()), reach * jnp.ones(())

    def narrow(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        # Where both points are outside of the support, keep the side of 0, which is inside.
        go_left = (f(left) > f(right)) | ((f(right) == -jnp.inf) & (right > 0))
        return jnp.where(go_left, low, left), jnp.where(go_left, right, high)

    low, high = lax.fori_loop(0, 50, narrow, (low, high))
    point = (low + high) / 2
    return jnp.where(f(point) > f(jnp.zeros(())), point, 0.0)
