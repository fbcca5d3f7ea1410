"""One-dimensional updates of sites that are not conjugate: slice sampling for Gibbs, and
golden-section search for EM, both of a log density `f` along a line with the current point at 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from raters.inference.arrays import Scalar

Line = Callable[[Array], Array]
# Width of a step of stepping out, the largest number of them, and of points tried in the slice.
_WIDTH = 1.0
_STEPS = 64
_TRIES = 200
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
    height_key, position_key, shrink_key, budget_key = jax.random.split(key, 4)
    height = jax.random.exponential(height_key)
    low = -_WIDTH * jax.random.uniform(position_key)
    # The steps are split at random between the sides. With a fixed limit for each, the other points
    # of the interval would not give the same interval with equal probability.
    steps_left = jax.random.randint(budget_key, (), 0, _STEPS)
    zero, none = jnp.zeros(()), jnp.zeros((), int)

    def measure(state: _Slice, value: Array) -> _Slice:
        return state._replace(stage=none + _LEFT, level=value - height, point=state.low)

    def step_left(state: _Slice, value: Array) -> _Slice:
        further = (value > state.level) & (state.steps < steps_left)
        low = state.low - _WIDTH
        stepped = state._replace(low=low, point=low, steps=state.steps + 1)
        turned = state._replace(stage=none + _RIGHT, point=state.high, steps=none)
        return _either(further, stepped, turned)

    def step_right(state: _Slice, value: Array) -> _Slice:
        further = (value > state.level) & (state.steps < _STEPS - 1 - steps_left)
        high = state.high + _WIDTH
        stepped = state._replace(high=high, point=high, steps=state.steps + 1)
        drawn = draw(state)._replace(stage=none + _SHRINK, steps=none)
        return _either(further, stepped, drawn)

    def shrink(state: _Slice, value: Array) -> _Slice:
        # A value that is not a number is outside of the slice.
        rejected = ~(value > state.level) & (state.steps < _TRIES)
        narrow = state._replace(
            low=jnp.where(state.point < 0, state.point, state.low),
            high=jnp.where(state.point < 0, state.high, state.point),
        )
        again = draw(narrow)._replace(steps=state.steps + 1)
        return _either(rejected, again, state._replace(stage=none + _DONE))

    def draw(state: _Slice) -> _Slice:
        key, draw_key = jax.random.split(state.key)
        point = jax.random.uniform(draw_key, minval=state.low, maxval=state.high)
        return state._replace(point=point, key=key)

    def step(state: _Slice) -> _Slice:
        stages = [measure, step_left, step_right, shrink]
        return lax.switch(state.stage, stages, state, f(state.point))

    start = _Slice(none + _LEVEL, zero, low, low + _WIDTH, zero, shrink_key, none)
    end = lax.while_loop(lambda state: state.stage < _DONE, step, start)
    return jnp.where(end.steps < _TRIES, end.point, 0.0)


def _either(condition: Array, one: _Slice, other: _Slice) -> _Slice:
    """The one state where the condition holds, and otherwise the other."""
    return _Slice(*(jnp.where(condition, *pair) for pair in zip(one, other, strict=True)))


def golden_step(f: Line, key: Array | None = None, reach: float = 2.0) -> Scalar:
    """Maximise f on [−reach, reach] by golden-section search; 0 where nothing higher is found."""
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

    start = -reach * jnp.ones(()), reach * jnp.ones(())
    return lax.fori_loop(0, narrowings + 1, narrow, start)[0]
