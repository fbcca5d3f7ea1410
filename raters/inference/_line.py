"""One-dimensional updates for what is not conjugate: a slice step (draws) and a golden-section step (maximises).

Both run along a line of log density `f` with f's current point at 0, so that EM and Gibbs visit free sites and the orbits
of symmetries in the same way.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

_WIDTH = 1.0
_STEPS = 64


def slice_step(f, key: jax.Array) -> jax.Array:
    """A slice-sampling step from 0: stepping out, then shrinking (Neal 2003, figures 3 and 5)."""
    height_key, place_key, shrink_key, budget_key = jax.random.split(key, 4)
    level = f(jnp.zeros(())) - jax.random.exponential(height_key)
    low = -_WIDTH * jax.random.uniform(place_key)
    # The budget of steps is split at random: with a limit to each side, other points of the interval would not be as likely
    # to give the same interval.
    to_left = jax.random.randint(budget_key, (), 0, _STEPS)

    def step_out(end, direction, budget):
        def outside(state):
            position, steps = state
            return (f(position) > level) & (steps < budget)

        return lax.while_loop(outside, lambda s: (s[0] + direction * _WIDTH, s[1] + 1), (end, 0))[0]

    low, high = step_out(low, -1.0, to_left), step_out(low + _WIDTH, 1.0, _STEPS - 1 - to_left)

    def rejected(state):
        _, _, point, _, tries = state
        return (f(point) <= level) & (tries < 200)

    def shrink(state):
        low, high, point, key, tries = state
        low, high = jnp.where(point < 0, point, low), jnp.where(point < 0, high, point)
        key, draw_key = jax.random.split(key)
        return low, high, jax.random.uniform(draw_key, minval=low, maxval=high), key, tries + 1

    key, draw_key = jax.random.split(shrink_key)
    first = jax.random.uniform(draw_key, minval=low, maxval=high)
    _, _, point, _, tries = lax.while_loop(rejected, shrink, (low, high, first, key, 0))
    return jnp.where(tries < 200, point, 0.0)


def golden_step(f, key: jax.Array | None = None, reach: float = 2.0) -> jax.Array:
    """The maximiser of f on [−reach, reach] by golden-section search, or 0 where that is no higher."""
    ratio = (jnp.sqrt(5.0) - 1) / 2
    low, high = -reach * jnp.ones(()), reach * jnp.ones(())

    def narrow(_, bracket):
        low, high = bracket
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        # Where both are outside the support, keep the side of 0, which is inside.
        go_left = (f(left) > f(right)) | ((f(right) == -jnp.inf) & (right > 0))
        return jnp.where(go_left, low, left), jnp.where(go_left, right, high)

    low, high = lax.fori_loop(0, 50, narrow, (low, high))
    point = (low + high) / 2
    return jnp.where(f(point) > f(jnp.zeros(())), point, 0.0)
