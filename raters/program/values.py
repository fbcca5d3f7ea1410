"""Values of the latent sites moved within their supports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpyro.distributions import constraints

from raters.model import Model, Values

# Units of the data on which a program is tried out.
SAMPLE = 1000
# How far a start in unconstrained coordinates is kept from the edge of a support, as a share of its
# width.
_EDGE = 1e-6


def start_of(model: Model[Any], data: Any) -> Values:
    """The model's own start, in float64."""
    return {name: np.asarray(value, np.float64) for name, value in model.start(data).items()}


def scattered(
    values: Values,
    supports: dict[str, constraints.Constraint],
    rng: np.random.Generator,
    least: float = 0.6,
) -> Values:
    """Values that differ from these at random, each in its support."""
    scattered_values = {}
    for name, value in values.items():
        if supports[name] is constraints.simplex:
            share = (1 - least) * rng.uniform(0.2, 0.5)
            scattered_values[name] = (1 - share) * value + share * rng.dirichlet(
                np.ones(np.shape(value)[-1]), np.shape(value)[:-1]
            )
        elif supports[name].event_dim and supports[name] is not constraints.real_vector:
            scattered_values[name] = value  # such as a correlation matrix, which has no factors
        else:
            # An accuracy stays above chance.
            share = supports[name] is constraints.unit_interval
            low, high = ((1 + least) / 2, 1.0) if share else (least, 1.1)
            moved = value * rng.uniform(low, high, np.shape(value))
            for end, is_beyond in (("lower_bound", np.less), ("upper_bound", np.greater)):
                if (edge := getattr(supports[name], end, None)) is not None:
                    moved = np.where(is_beyond(moved, edge), value, moved)
            scattered_values[name] = moved
    return scattered_values


def inside(values: Values, supports: dict[str, constraints.Constraint]) -> Values:
    """Values a little inside their supports, so that unconstrained coordinates are finite."""
    inner = {}
    for name, value in values.items():
        value, support = np.asarray(value, np.float64), supports[name]
        if support is constraints.simplex:
            inner[name] = (1 - _EDGE) * value + _EDGE / value.shape[-1]
            continue
        low, high = (getattr(support, end, None) for end in ("lower_bound", "upper_bound"))
        if low is not None:
            value = np.maximum(value, low + _EDGE * (1.0 if high is None else high - low))
        if high is not None:
            value = np.minimum(value, high - _EDGE * (1.0 if low is None else high - low))
        inner[name] = value
    return inner
