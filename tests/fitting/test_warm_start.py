"""`fit(start=...)`: where chains and optimisers set out from, that the answer is the same, and what
is refused."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

import raters as rt
from raters.errors import DataError, SettingError
from raters.program import log_joint
from tests.refusals import raises_about

MODEL = rt.ExtendedBTL(competence="signed")
PLAIN = rt.BTL(reward_scale=1.0)


@pytest.fixture(scope="module")
def many(tiny):
    """Each vote 400 times: a posterior so narrow that the model's own start is far outside."""
    return dataclasses.replace(
        tiny, wins=400 * np.asarray(tiny.wins), count=400 * np.asarray(tiny.count)
    )


@pytest.fixture(scope="module")
def reference(tiny, fit_quietly):
    """Draws of a cold start."""
    return fit_quietly(PLAIN, tiny, rt.PGGibbs(draws=500, warmup=100, chains=2))


def density_of_first_draw(model, data, result) -> np.ndarray:
    """Log joint density of the first draw of each chain."""
    chains = result.posterior.sizes["chain"]
    with jax.enable_x64(True):
        draws = [
            {n: v.values[chain, 0] for n, v in result.posterior.data_vars.items()}
            for chain in range(chains)
        ]
        return np.array([float(log_joint(model, data, draw)) for draw in draws])


@pytest.mark.slow
def test_gibbs_goes_on_where_it_stopped(many, fit_quietly):
    long = fit_quietly(MODEL, many, rt.PGGibbs(draws=20, warmup=30, chains=2))
    short = rt.PGGibbs(draws=1, warmup=0, chains=2)
    end = density_of_first_draw(MODEL, many, long)
    warm = density_of_first_draw(MODEL, many, fit_quietly(MODEL, many, short, seed=1, start=long))
    cold = density_of_first_draw(MODEL, many, fit_quietly(MODEL, many, short, seed=1))
    # Half of a chi-squared of 12 parameters varies by 2.4; the cold start is some 300 below.
    assert np.abs(warm - end.mean()).max() < 15
    assert (cold < end.mean() - 50).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "tolerance"),
    [
        # Monte-Carlo errors of the means of 1000 draws with standard deviation .3, about half of
        # them effective: five of them.
        (rt.PGGibbs(draws=500, warmup=0, chains=2), 0.08),
        (rt.NUTS(draws=500, warmup=200, chains=2), 0.08),
        (rt.PGEM(draws=2000, starts=1), 0.08),
        (rt.SVI(steps=1000, draws=1000), 0.15),
    ],
    ids=["PGGibbs", "NUTS", "PGEM", "SVI"],
)
def test_the_posterior_is_the_same(reference, tiny, fit_quietly, backend, tolerance):
    warm = fit_quietly(PLAIN, tiny, backend, seed=1, start=reference)
    one, other = (result.posterior["reward"] for result in (reference, warm))
    means = (each.mean(("chain", "draw")) for each in (other, one))
    np.testing.assert_allclose(*means, atol=tolerance)
    np.testing.assert_allclose(other.std(("chain", "draw")), one.std(("chain", "draw")), rtol=0.25)
    assert (reference.attrs["warm_start"], warm.attrs["warm_start"]) == (0, 1)


@pytest.mark.slow
def test_any_back_end_sets_out_from_any_other(tiny, fit_quietly):
    mode = fit_quietly(MODEL, tiny, rt.PGEM(draws=20, starts=1))
    chains = fit_quietly(MODEL, tiny, rt.PGGibbs(draws=3, warmup=2, chains=2), start=mode)
    assert chains.posterior.sizes["chain"] == 2
    again = fit_quietly(MODEL, tiny, rt.PGEM(draws=20, starts=1), start=chains)
    assert np.isfinite(again["mode"]["reward"]).all()


# ------------------------------------------------------------------ what is refused


def read(*names: str, order: tuple[str, ...] | None = None) -> rt.Comparisons:
    table = {"w": ["a", names[0]], "l": ["b", "b"], "who": ["ann", "bob"]}
    return rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who", items=order)


@pytest.mark.slow
def test_other_names_and_other_models_are_refused(labelled, fit_quietly):
    em = rt.PGEM(draws=2, starts=1)
    first = fit_quietly(PLAIN, read("c"), em)
    for model, data, error in (
        (PLAIN, read("d"), DataError),
        (PLAIN, read("c", order=("c", "a", "b")), DataError),
        (PLAIN, read("c").without_judges(["bob"]), DataError),
        (rt.BTL(reward_scale=2.0), read("c"), SettingError),
        (rt.DawidSkene(), labelled, SettingError),
    ):
        with raises_about(error, "start"):
            fit_quietly(model, data, em, start=first)
    with raises_about(DataError, "result"):
        fit_quietly(PLAIN, read("c"), em, start=first.posterior.to_dataset())
