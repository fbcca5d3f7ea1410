"""Pólya-Gamma draws have the right distribution, whichever sampler serves the shape."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from polyagamma import random_polyagamma
from scipy.stats import ks_2samp, norm

from raters.inference.polya_gamma import augmentation

_DRAWS = 100_000
_SHAPES = (1, 3, 15, 16, 40, 200)
_TILTS = (0.0, 0.5, 3.0, 10.0)
_GRID = [(shape, tilt) for shape in _SHAPES for tilt in _TILTS]


def exact_moments(shape: int, tilt: float) -> tuple[float, float]:
    """Mean and variance from the Gamma series itself, 10⁵ terms and the integral of the rest."""
    level = 2 * np.pi**2 * ((np.arange(1, 100_001) - 0.5) ** 2 + (tilt / (2 * np.pi)) ** 2)
    rest = 1 / (2 * np.pi**2 * 100_000)
    return shape * ((1 / level).sum() + rest), shape * (1 / level**2).sum()


def moment_scores(draws: np.ndarray, shape: int, tilt: float) -> tuple[float, float]:
    """How far the mean and the variance are from the exact ones, in standard errors."""
    mean, variance = exact_moments(shape, tilt)
    centred = draws - mean
    return (
        centred.mean() / np.sqrt(variance / len(draws)),
        (np.mean(centred**2) - variance) / (np.std(centred**2) / np.sqrt(len(draws))),
    )


def drawn(sampler, shape: int, tilt: float, seed: int = 0) -> np.ndarray:
    """Draws of one (shape, tilt)."""
    rng = np.random.default_rng([seed, shape, int(10 * tilt)])
    return sampler(rng, np.full(_DRAWS, float(shape)), np.full(_DRAWS, tilt))


def devroye(rng, count, logits):
    """The exact sampler at any whole shape."""
    return random_polyagamma(count, logits, method="devroye", random_state=rng)


def series(rng, count, logits, *, single=False):
    """The series that is drawn in a sweep."""
    key = jax.random.key(int(rng.integers(2**32)))
    with jax.enable_x64(True):
        drawn = jax.jit(augmentation.draw_series, static_argnames="single")
        return np.asarray(drawn(key, jnp.asarray(count), jnp.asarray(logits), single=single))


@pytest.mark.parametrize(("shape", "tilt"), _GRID)
def test_series_and_devroye_agree(shape: int, tilt: float) -> None:
    """False-alarm rate 1e-5, and 1e-6 for the moments."""
    one, other = drawn(series, shape, tilt, seed=3), drawn(devroye, shape, tilt, seed=4)
    assert ks_2samp(one, other).pvalue > 1e-5
    assert np.abs(moment_scores(one, shape, tilt)).max() < norm.isf(5e-7)


def on_the_host(rng, count, logits):
    """Devroye's sampler, called by a compiled function in a thread, as chains run."""

    def run():
        with jax.enable_x64(True):
            key = jax.random.key(int(rng.integers(2**32)))
            drawn = jax.jit(augmentation.draw_devroye)
            return np.asarray(drawn(key, jnp.asarray(count), jnp.asarray(logits)))

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


@pytest.mark.parametrize(("shape", "tilt"), [one for one in _GRID if one[0] <= 15])
def test_draws_on_the_host_are_exact(shape: int, tilt: float) -> None:
    """False-alarm rate 1e-6 for each of the moments."""
    scores = moment_scores(drawn(on_the_host, shape, tilt, seed=7), shape, tilt)
    assert np.abs(scores).max() < norm.isf(5e-7)


@pytest.mark.parametrize("tilt", _TILTS)
def test_single_counts_take_exponential_variables(tilt: float) -> None:
    """False-alarm rate 1e-5, and 1e-6 for the moments."""
    one = drawn(partial(series, single=True), 1, tilt, seed=5)
    assert ks_2samp(one, drawn(devroye, 1, tilt, seed=6)).pvalue > 1e-5
    assert np.abs(moment_scores(one, 1, tilt)).max() < norm.isf(5e-7)


def test_mixed_shapes_keep_their_rows() -> None:
    """Rows of small and large shapes, drawn in one call, each have the mean of their own;
    false-alarm rate 1e-5."""
    count, tilt = np.tile([1.0, 200.0, 3.0], _DRAWS // 3), np.tile([0.0, 3.0, -10.0], _DRAWS // 3)
    draws = series(np.random.default_rng(0), count, tilt)
    for row, (shape, at) in enumerate(((1, 0.0), (200, 3.0), (3, 10.0))):
        assert np.abs(moment_scores(draws[row::3], shape, at)).max() < norm.isf(1e-6)


def _head_alone(rng, count, logits):
    """The first terms of the series, without the rest."""
    level = (np.arange(1, 9)[:, None] - 0.5) ** 2 + (logits / (2 * np.pi)) ** 2
    rate = 2 * np.pi**2 * level
    return (rng.standard_gamma(np.broadcast_to(count, level.shape)) / rate).sum(0)


@pytest.mark.parametrize(
    ("shape", "tilt", "wrong"),
    [
        (
            200,
            0.5,
            lambda rng, count, logits: random_polyagamma(
                count, logits, method="alternate", random_state=rng
            ),
        ),
        (
            1,
            0.5,
            lambda rng, count, logits: random_polyagamma(
                count, logits, method="saddle", random_state=rng
            ),
        ),
        (40, 0.5, lambda rng, count, logits: _head_alone(rng, count, logits)),
        (3, 0.5, partial(series, single=True)),
    ],
    ids=["alternate", "saddle point", "no tail", "one term for three"],
)
def test_moments_catch_inexact_draws(shape: int, tilt: float, wrong) -> None:
    """The test above has the power to see approximate samplers, and a series that is cut off."""
    assert np.abs(moment_scores(drawn(wrong, shape, tilt), shape, tilt)).max() > norm.isf(5e-7)


@pytest.mark.parametrize("tilt", [1e-9, 1e-5, 1e-4, 0.049, 0.051, 1.0, 30.0, 800.0])
def test_closed_moments_agree_with_the_series(tilt: float) -> None:
    mean, variance = exact_moments(1, tilt)
    with jax.enable_x64(True):
        assert augmentation.mean_of_one(jnp.array(tilt)) == pytest.approx(mean, rel=1e-6)
        assert augmentation.variance_of_one(jnp.array(tilt)) == pytest.approx(variance, rel=1e-6)


def test_expectation_is_the_gradient_of_the_bound() -> None:
    """E ω is −∂/∂(x²/2) of log cosh, for many votes, at 0 and in float32 and far out."""
    x = np.array([-800.0, -3.0, 0.0, 1e-6, 0.4, 50.0])
    omega, _, _ = augmentation.expectation(x, np.full(6, 7.0), np.zeros(6))
    expected = [7 * exact_moments(1, abs(at))[0] for at in x]
    np.testing.assert_allclose(np.asarray(omega), expected, rtol=1e-5)


@pytest.mark.parametrize("most", [1, 40])
@pytest.mark.parametrize("sampler", [series, on_the_host])
def test_a_row_without_votes_has_no_weight(sampler, most: int) -> None:
    count = np.array([0.0, 1.0, 0.0, most])
    omega = sampler(np.random.default_rng(0), count, np.array([0.0, 1.0, 2.0, 3.0]))
    assert ((omega == 0) == (count == 0)).all()
