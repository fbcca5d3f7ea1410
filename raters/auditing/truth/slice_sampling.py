"""Elliptical slice sampling of a few unknowns with a standard normal prior, many chains at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "point unknown"]
PerPoint = Float[np.ndarray, " point"]
LogLikelihood = Callable[[Points], PerPoint]

# Points from the prior that chains start among, chains, and steps of each before the draws.
_POINTS, _CHAINS, _WARMUP = 2000, 100, 20


def sample(
    log_likelihood: LogLikelihood, num_unknowns: int, num_draws: int, rng: np.random.Generator
) -> Points:
    """Draw unknowns given data, by elliptical slice sampling."""
    points = rng.standard_normal((_POINTS, num_unknowns))
    parts = [log_likelihood(part) for part in np.split(points, _POINTS // _CHAINS)]
    log_weight = np.concatenate(parts)
    weight = np.exp(log_weight - log_weight.max())
    start = rng.choice(_POINTS, _CHAINS, p=weight / weight.sum())
    state, value = points[start], log_weight[start]
    drawn = []
    for place in range(_WARMUP + -(-num_draws // _CHAINS)):
        state, value = step(log_likelihood, state, value, rng)
        if place >= _WARMUP:
            drawn.append(state)
    return np.asarray(rng.permutation(np.concatenate(drawn))[:num_draws])


def step(
    log_likelihood: LogLikelihood, state: Points, value: PerPoint, rng: np.random.Generator
) -> tuple[Points, PerPoint]:
    """Move each chain along an ellipse to a point above a random share of its likelihood."""
    other, level = rng.standard_normal(state.shape), value - rng.exponential(size=len(state))
    angle = rng.uniform(0, 2 * np.pi, len(state))
    low, high = angle - 2 * np.pi, angle.copy()
    moved, new = state.copy(), value.copy()
    waiting = np.ones(len(state), bool)
    while waiting.any():
        proposed = state * np.cos(angle)[:, None] + other * np.sin(angle)[:, None]
        there = log_likelihood(proposed)
        # A bracket as narrow as rounding is at the state itself.
        accepted = waiting & ((there > level) | (high - low < 1e-6))
        moved[accepted], new[accepted] = proposed[accepted], there[accepted]
        waiting &= ~accepted
        low, high = np.where(angle < 0, angle, low), np.where(angle >= 0, angle, high)
        angle = np.where(waiting, rng.uniform(low, high), angle)
    return moved, new
