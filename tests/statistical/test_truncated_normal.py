"""Truncated normal draws are right in the middle, in both tails, and on intervals of every
width."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from raters.inference.polya_gamma.conditionals import drawn_entries, truncated_normal

_DRAWS = 50_000
_CASES = {
    "middle": (0.3, 0.5, 0.0, 1.0),
    "left tail": (5.0, 0.3, 0.0, 1.0),
    "right tail": (-5.0, 0.3, 0.0, 1.0),
    "far left tail": (40.0, 0.5, 0.0, 1.0),
    "far right tail": (-40.0, 0.5, 0.0, 1.0),
    "half line": (-3.0, 0.5, 0.0, np.inf),
    "far half line": (-60.0, 1.0, 0.0, np.inf),
    "other half line": (70.0, 1.0, -np.inf, 0.0),
    "nearly flat": (0.0, 1e4, 0.0, 1.0),
    "whole line": (1.0, 2.0, -np.inf, np.inf),
}


def draws_of(case: str, seed: int = 0) -> np.ndarray:
    """Draws of a named case."""
    mean, deviation, low, high = _CASES[case]
    return drawn(mean, deviation, low, high, seed)


def drawn(mean: float, deviation: float, low: float, high: float, seed: int = 0) -> np.ndarray:
    """Draws of a truncated normal."""
    with jax.enable_x64(True):
        given = (jnp.full(_DRAWS, one) for one in (mean, deviation, low, high))
        return np.asarray(jax.jit(truncated_normal)(jax.random.key(seed), *given))


def p_value(draws: np.ndarray, case: str) -> float:
    """Kolmogorov–Smirnov of a part of the draws against the exact distribution."""
    mean, deviation, low, high = _CASES[case]
    exact = truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
    return kstest(draws[:20_000], exact.cdf).pvalue


@pytest.mark.parametrize("case", _CASES)
def test_distribution(case: str) -> None:
    """False-alarm rate 1e-5 for each case."""
    _, _, low, high = _CASES[case]
    draws = draws_of(case)
    assert np.isfinite(draws).all()
    assert (draws >= low).all()
    assert (draws <= high).all()
    assert p_value(draws, case) > 1e-5


def test_distribution_test_has_power() -> None:
    """A deviation 15 % too large is seen."""
    mean, deviation, low, high = _CASES["middle"]
    wrong = drawn(mean, 1.15 * deviation, low, high)
    assert p_value(wrong, "middle") < 1e-5


def test_entry_without_votes_or_prior_precision_is_uniform_on_its_interval() -> None:
    """A flat prior is drawn from as it is; false-alarm rate 1e-5."""
    size = 5000
    with jax.enable_x64(True):
        low, high = jnp.full(size, 0.2), jnp.full(size, 0.7)
        draws = drawn_entries(jax.random.key(0), jnp.zeros(size), jnp.zeros(size), low, high)
        draws = np.asarray(draws)
    assert kstest((draws - 0.2) / 0.5, "uniform").pvalue > 1e-5
