"""Moves of a learned scale together with its site."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.inference.polya_gamma.moves import stretch
from raters.model import Spread
from raters.program import log_joint

SPREAD = Spread("taste", "taste_spread")


@pytest.fixture
def label_crowd_of_three() -> rt.Labels:
    return rt.datasets.label_crowd(30, 4, 3, 3, num_features=2, seed=0).labels


def start(model, votes):
    rng = np.random.default_rng(0)
    values = {name: np.asarray(value, float) for name, value in model.start(votes).items()}
    return values | {"taste": rng.normal(size=values["taste"].shape)}


@pytest.mark.parametrize("own", [False, True])
def test_draws_keep_the_conditional_along_the_orbit(own: bool, tiny) -> None:
    """The mean of log τ under repeated moves, against the joint density on a grid of factors;
    false-alarm rate about 1e-5 (|z| < 4.5)."""
    model = rt.HierarchicalBTL(own_spread=own)
    column = "annotator" if own else None
    rng, row = np.random.default_rng(1), tiny.take(slice(0, 1))
    with jax.enable_x64(True):
        values = start(model, tiny)
        chain = [values]
        for _ in range(1500):
            chain.append(stretch(model, row, tiny, chain[-1], SPREAD, column, rng))
        grid = np.linspace(-4, 4, 161)

        def density(move: float) -> float:
            # The last annotator's, or that of all.
            who = np.arange(tiny.num_annotators) == tiny.num_annotators - 1 if own else np.ones(4)
            factor = np.exp(move * who)
            scale = values["taste_spread"] * (factor if own else factor[0])
            moved = {"taste": values["taste"] * factor[:, None], "taste_spread": scale}
            volume = who.sum() * values["taste"].shape[1] + 1
            return float(log_joint(model, tiny, values | moved)) + volume * move

        log_density = np.array([density(move) for move in grid])
    weight = np.exp(log_density - log_density.max())
    exact = (weight * grid).sum() / weight.sum() + np.log(0.5)
    draws = np.log([np.ravel(point["taste_spread"])[-1] for point in chain[100:]])
    batches = draws[:1400].reshape(14, 100).mean(1)
    assert abs(batches.mean() - exact) < 4.5 * batches.std() / np.sqrt(len(batches) - 1) + 0.01
    grown = chain[-1]["taste"] / values["taste"]
    of_scale = chain[-1]["taste_spread"] / values["taste_spread"]
    assert np.allclose(grown, of_scale[:, None] if own else of_scale)


def test_entries_before_the_first_stay(label_crowd_of_three) -> None:
    """The coefficients of the features grow with their scale, and the intercept does not."""
    labels = label_crowd_of_three
    model, (spread,) = rt.Raykar(), rt.Raykar().spreads
    rng, row = np.random.default_rng(2), labels.take(slice(0, 1))
    with jax.enable_x64(True):
        values = {name: np.asarray(value, float) for name, value in model.start(labels).items()}
        moved = stretch(model, row, labels, values, spread, None, rng)
    grown = moved["coefficient_scale"] / values["coefficient_scale"]
    assert grown != 1
    assert np.array_equal(moved["coefficient"][0], values["coefficient"][0])
    assert np.allclose(moved["coefficient"][1:], grown * values["coefficient"][1:])
