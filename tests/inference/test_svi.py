"""SVI reads a model once: bounds that the program computes, and another start on the same shape.

Its draws are tested in `tests/statistical`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.inference import svi
from tests import hand

BACKEND = rt.SVI(steps=500, draws=20)


@dataclass(frozen=True)
class Bounded(rt.BTL):
    """Rewards below a bound that the program computes."""

    def start(self, data: rt.Comparisons) -> dict[str, np.ndarray]:
        return {"reward": np.zeros(data.num_items)}

    def generate(self, data: rt.Comparisons) -> None:
        bound = jnp.exp(jnp.asarray(-1.0))
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Uniform(-bound, bound))
        with numpyro.plate("comparison", data.num_comparisons):
            hand.vote(reward[data.first] - reward[data.second], data)


def rewards(model: rt.BTL, votes: rt.Comparisons, fit_quietly) -> np.ndarray:
    return fit_quietly(model, votes, BACKEND)["posterior"]["reward"].values


@pytest.mark.slow
def test_bounds_that_the_program_computes_hold(tiny, fit_quietly):
    first, again = (rewards(Bounded(), tiny, fit_quietly) for _ in range(2))
    assert np.abs(first - first.mean(-1, keepdims=True)).max() > 0
    assert np.ptp(first, axis=-1).max() < 2 * np.exp(-1.0)
    np.testing.assert_array_equal(first, again)


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["mean_field", "full_rank"])
def test_a_guide_that_has_read_another_table_starts_anew(guide, tiny, fit_quietly):
    """Draws do not depend on what was fitted before, on data of the same shape."""
    backend = rt.SVI(guide=guide, steps=500, draws=20)
    # The second start is that of the model on a table with the answers turned round.
    turned = rt.Comparisons(**vars(tiny) | {"wins": np.asarray(tiny.count) - np.asarray(tiny.wins)})
    start = fit_quietly(rt.BTL(), turned, rt.PGEM(draws=20))
    svi._svi.cache_clear()
    alone = fit_quietly(rt.BTL(), tiny, backend, start=start)["posterior"]["reward"].values
    svi._svi.cache_clear()
    fit_quietly(rt.BTL(), tiny, backend)
    after = fit_quietly(rt.BTL(), tiny, backend, start=start)["posterior"]["reward"].values
    np.testing.assert_array_equal(alone, after)


@pytest.fixture
def of_five(monkeypatch):
    """60 items of 5 labels each, of which a default batch is to hold 50; 9 in 10 are right."""
    rng = np.random.default_rng(0)
    truth, item, who = rng.integers(2, size=60), np.repeat(np.arange(60), 5), np.tile(range(5), 60)
    said = np.where(rng.random(300) < 0.9, truth[item], 1 - truth[item])
    table = {"item": item, "annotator": who, "label": said}
    monkeypatch.setattr(svi, "_ALL_ROWS", 200)
    monkeypatch.setattr(svi, "_MINI_BATCH", 50)
    return rt.Labels.from_frame(table, item="item", annotator="annotator", label="label")


@pytest.mark.parametrize(("settings", "size"), [({}, 10), ({"batch_size": 70}, 60)])
def test_default_batches_are_of_bounded_rows_and_not_items(settings, size, of_five):
    assert rt.SVI(**settings)._batch_size(rt.program.Program(rt.models.OneCoin(), of_five)) == size
