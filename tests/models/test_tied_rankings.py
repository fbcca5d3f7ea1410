"""Models of rankings with ties: pairs, recovery, what is asked of a fit, and refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.errors import BackendError
from raters.inference.defaults import default_backend
from raters.program import Program, pointwise_log_likelihood

MODEL = rt.ExtendedPlackettLuce(ties="davidson", worth_scale=1.0)
TRUTH = {"worth": np.linspace(-1.5, 1.5, 6), "tie_propensity": np.array([-0.5, -1.0])}


@pytest.fixture(scope="module")
def simulated() -> rt.Rankings:
    """200 rankings of four of six items by five annotators, the last of whom ranks upside down."""
    rng = np.random.default_rng(0)
    table = {"of": np.repeat(np.arange(200), 4), "who": np.repeat(np.arange(200) % 5, 4)}
    table["item"] = np.concatenate([rng.permutation(6)[:4] for _ in range(200)])
    table["rank"] = np.tile([1, 2, 2, 2], 200)
    roles = {"ranking": "of", "item": "item", "rank": "rank", "annotator": "who"}
    asked = rt.Rankings.from_frame(table, **roles, unranked="not offered", aggregate=False)
    given = TRUTH | {"competence": np.array([1.0, 1.2, 0.8, 1.0, -1.0])}
    return rt.simulate(MODEL, asked, seed=1, given=given).data


@pytest.fixture(scope="module")
def fitted(simulated, fit_quietly) -> xr.DataTree:
    return fit_quietly(MODEL, simulated, rt.NUTS(draws=200, warmup=200, chains=2))


def test_rankings_of_two_are_votes_with_ties() -> None:
    places = {"one": [1, 2, 1, 1], "two": [2, 1, 1, 1]}
    table = {"pair": np.repeat(np.arange(4), 2), "item": ["x", "y"] * 4, "who": ["ann", "bob"] * 4}
    table["who"] = np.repeat(["ann", "bob", "ann", "bob"], 2)
    table["rank"] = np.stack(list(places.values()), 1).ravel()
    roles = {"ranking": "pair", "item": "item", "rank": "rank", "annotator": "who"}
    rankings = rt.Rankings.from_frame(table, **roles, aggregate=False)
    outcome = {"first": ["x"] * 4, "second": ["y"] * 4, "outcome": ["x", "y", "tie", "tie"]}
    outcome["who"] = ["ann", "bob"] * 2
    sides = {"first": "first", "second": "second", "outcome": "outcome", "annotator": "who"}
    votes = rt.Comparisons.from_frame(outcome, **sides, ties="keep", aggregate=False)
    worth, competence = np.array([0.3, -0.9]), np.array([0.7, -0.4])
    own = {"worth": worth, "competence": competence, "tie_propensity": np.array([-0.6])}
    other = {"reward": worth, "competence": competence, "tie_propensity": np.array(-0.6)}
    with jax.enable_x64(True):
        for one, two in (
            (rt.PlackettLuce(1.0, "davidson"), rt.BTL(1.0, ties="davidson")),
            (MODEL, rt.ExtendedBTL("signed", reward_scale=1.0, ties="davidson")),
        ):
            ours, theirs = (
                pointwise_log_likelihood(model, data, values)
                for model, data, values in ((one, rankings, own), (two, votes, other))
            )
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_truth_is_recovered(fitted) -> None:
    """Each within 4.5 posterior standard deviations; false-alarm rate below 1e-4."""
    for name, value in TRUTH.items():
        draws = fitted.posterior[name]
        mean, sd = (getattr(draws, of)(("chain", "draw")).values for of in ("mean", "std"))
        assert np.abs((mean - value) / sd).max() < 4.5
    assert fitted.posterior["tie_size"].values.tolist() == [2, 3]


def test_a_fit_is_audited_checked_ranked_and_read_back(simulated, fitted, tmp_path) -> None:
    audit = rt.audit(MODEL, fitted)
    competence = audit.table["competence"].values
    assert competence[:4].min() > 0 > competence[4]
    assert rt.leaderboard(fitted).table["item"].tolist()[:2] == [5, 4]
    checked = rt.check(MODEL, fitted, seed=0).table
    assert (checked["p_adjusted"] > 0.01).all()
    pool = rt.Candidates.sets(simulated)
    assert pool.most_tied == 3
    table = rt.predict(MODEL, fitted, pool)
    np.testing.assert_allclose(table.sum("answer"), 1, atol=1e-5)
    assert np.isfinite(rt.suggest(MODEL, fitted, pool, batch_size=2)["score"]).all()
    fitted.to_netcdf(tmp_path / "fit.nc")
    again = rt.fitting.result.data_of(xr.open_datatree(tmp_path / "fit.nc"))
    assert (again.most_tied, again.place.tolist()) == (3, simulated.place.tolist())


def test_models_without_ties_say_what_to_write(simulated) -> None:
    for model in (rt.PlackettLuce(), rt.ExtendedPlackettLuce(), rt.models.MixturePlackettLuce()):
        with pytest.raises(BackendError, match=r"rt.PlackettLuce\(ties='davidson'\)"):
            rt.fit(model, simulated, seed=0)


def test_the_mode_is_near_the_mean(simulated, fitted) -> None:
    draws = rt.fit(MODEL, simulated, rt.PGEM(), seed=0, progress=False)["posterior"]
    exact = fitted["posterior"]
    for name in ("worth", "competence"):
        apart = draws[name].mean(("chain", "draw")) - exact[name].mean(("chain", "draw"))
        assert (abs(apart) < 0.5 * exact[name].std(("chain", "draw"))).all(), name


def test_ranks_that_are_scores_are_refused() -> None:
    table = {"of": [1] * 30, "item": range(30), "rank": np.arange(30) // 25 + 1}
    rankings = rt.Rankings.from_frame(table, ranking="of", item="item", rank="rank")
    with pytest.raises(BackendError, match=r"rt\.Ratings"):
        rt.fit(rt.PlackettLuce(ties="davidson"), rankings, seed=0)


def test_without_ties_it_is_the_same_model(ranked) -> None:
    models = rt.PlackettLuce(), rt.PlackettLuce(ties="davidson")
    one, two = (Program(model, ranked) for model in models)
    assert one.sites == two.sites
    assert one.observed_type is two.observed_type
    assert default_backend(one) == default_backend(two)
