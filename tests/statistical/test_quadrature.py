"""Posteriors of so few parameters that quadrature gives them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

import raters as rt

_SCALE, _SPREAD = 1.2, 0.6
# 7 of 9 votes for item 0, by one annotator.
_VOTES = rt.Comparisons(
    first=np.array([0], np.int32),
    second=np.array([1], np.int32),
    annotator=np.array([0], np.int32),
    wins=np.array([7.0], np.float32),
    count=np.array([9.0], np.float32),
    items=("a", "b"),
    annotators=("x",),
)
_MODEL = rt.ExtendedBTL(reward_scale=_SCALE, competence_spread=_SPREAD)


def exact() -> dict[str, tuple[float, float]]:
    """Mean and variance of half the difference of the rewards, and of the competence, on a grid.

    The difference r₀ − r₁ has prior Normal(0, √2·scale); its half is the centred reward of item 0.
    """
    half = np.linspace(-6, 6, 2401)[:, None]
    competence = np.linspace(0, 1, 1201)[None]
    logits = competence * 2 * half
    prior = norm.logpdf(half, 0, _SCALE / np.sqrt(2)) + truncnorm.logpdf(
        competence, -1 / _SPREAD, 0, 1, _SPREAD
    )
    density = prior + 7 * logits - 9 * np.logaddexp(0, logits)
    weight = np.exp(density - density.max()) * np.where(
        (competence == 0) | (competence == 1), 0.5, 1
    )
    weight /= weight.sum()
    moments = {}
    for name, value in (("reward", half), ("competence", competence)):
        mean = float((weight * value).sum())
        moments[name] = mean, float((weight * (value - mean) ** 2).sum())
    return moments


@pytest.mark.parametrize(
    "backend",
    [rt.PGGibbs(draws=4000, warmup=100, chains=2), rt.NUTS(draws=4000, warmup=500, chains=2)],
    ids=["PGGibbs", "NUTS"],
)
@pytest.mark.filterwarnings("ignore::raters.errors.DataWarning")
def test_two_items_one_annotator(backend, fit_quietly) -> None:
    """Means and variances in Monte-Carlo standard errors; false-alarm rate 2e-5 for each of
    four."""
    from arviz_stats.base import array_stats

    posterior = fit_quietly(_MODEL, _VOTES, backend)["posterior"]
    draws = {
        "reward": posterior["reward"].values[..., 0],
        "competence": posterior["competence"].values[..., 0],
    }
    for name, (mean, variance) in exact().items():
        for value, expected in ((draws[name], mean), ((draws[name] - mean) ** 2, variance)):
            effective = float(array_stats.ess(value, chain_axis=0, draw_axis=1, method="mean"))
            assert abs(value.mean() - expected) < norm.isf(1e-5) * value.std() / np.sqrt(
                effective
            ), (name, expected)


def test_the_grid_itself() -> None:
    """Importance weights on prior draws give the same moments; false-alarm rate 1e-5 for each."""
    rng = np.random.default_rng(0)
    half = rng.normal(0, _SCALE / np.sqrt(2), 400_000)
    competence = truncnorm.rvs(-1 / _SPREAD, 0, 1, _SPREAD, size=400_000, random_state=rng)
    logits = competence * 2 * half
    weight = np.exp(7 * logits - 9 * np.logaddexp(0, logits))
    weight /= weight.sum()
    for name, value in (("reward", half), ("competence", competence)):
        mean = exact()[name][0]
        error = np.sqrt(np.sum((weight * (value - mean)) ** 2))
        assert abs(np.sum(weight * (value - mean))) < norm.isf(5e-6) * error
