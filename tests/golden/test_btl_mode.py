"""The mode of BTL under a weak prior, against Newton's method on the logistic regression of the ±1
design, and choix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import raters as rt

SCALE = 30.0
VOTES, _ = rt.datasets.separated(12, 3, 3000, seed=4, scale=0.6)


def mode(votes: rt.Comparisons) -> np.ndarray:
    # By hand the rewards are compared to 1e-6, so EM must stop later than it does by default.
    backend = rt.PGEM(draws=0, tolerance=1e-12)
    return rt.fit(rt.BTL(reward_scale=SCALE), votes, backend, seed=0, progress=False)["mode"][
        "reward"
    ].values


def newton(votes: rt.Comparisons) -> np.ndarray:
    """Penalised logistic regression of wins on the design with +1 for the first item and −1 for the
    second."""
    design = np.zeros((votes.num_comparisons, votes.num_items))
    design[np.arange(len(design)), votes.first] = 1
    design[np.arange(len(design)), votes.second] = -1
    count = np.ones(len(design)) if votes.count is None else np.asarray(votes.count, float)
    reward = np.zeros(votes.num_items)
    for _ in range(50):
        p = expit(design @ reward)
        gradient = design.T @ (votes.wins - count * p) - reward / SCALE**2
        curvature = (design.T * (count * p * (1 - p))) @ design + np.eye(votes.num_items) / SCALE**2
        reward = reward + np.linalg.solve(curvature, gradient)
    assert np.abs(gradient).max() < 1e-8
    return reward


def test_the_mode_is_newtons():
    np.testing.assert_allclose(mode(VOTES), newton(VOTES), atol=1e-6)


def test_half_votes_count_half():
    rng = np.random.default_rng(0)
    wins = np.where(
        rng.random(VOTES.num_comparisons) < 0.3, np.asarray(VOTES.count) / 2, VOTES.wins
    ).astype(np.float32)
    votes = rt.Comparisons(**(vars(VOTES) | {"wins": wins}))
    np.testing.assert_allclose(mode(votes), newton(votes), atol=1e-6)


def test_the_mode_is_choixs():
    choix = pytest.importorskip("choix", reason="choix is not installed")
    pairs = [
        pair
        for i, j, wins, count in zip(
            VOTES.first, VOTES.second, VOTES.wins, VOTES.count, strict=True
        )
        for pair in [(int(i), int(j))] * int(wins) + [(int(j), int(i))] * int(count - wins)
    ]
    # choix adds alpha · ‖r‖² to minus the log-likelihood.
    expected = choix.opt_pairwise(
        VOTES.num_items, pairs, alpha=1 / (2 * SCALE**2), method="Newton-CG", tol=1e-12
    )
    np.testing.assert_allclose(mode(VOTES), expected - expected.mean(), atol=1e-5)
