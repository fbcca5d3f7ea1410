"""Moves of a learned scale together with its site."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
from raters.inference.polya_gamma.moves import stretch


@pytest.fixture
def label_crowd_of_three() -> rt.Labels:
    return rt.datasets.label_crowd(30, 4, 3, 3, num_features=2, seed=0).labels


def test_entries_before_the_first_stay(label_crowd_of_three) -> None:
    """The coefficients of the features grow with their scale, and the intercept does not."""
    labels = label_crowd_of_three
    model, (spread,) = rt.Raykar(), rt.Raykar().facts
    row = labels.take(slice(0, 1))
    with jax.enable_x64(True):
        values = {name: jnp.asarray(value, float) for name, value in model.start(labels).items()}
        moved = stretch(model, row, labels, values, spread, None, jax.random.key(0))
        values, moved = jax.tree.map(np.asarray, (values, moved))
    grown = moved["coefficient_scale"] / values["coefficient_scale"]
    assert grown != 1
    assert np.array_equal(moved["coefficient"][0], values["coefficient"][0])
    assert np.allclose(moved["coefficient"][1:], grown * values["coefficient"][1:])
