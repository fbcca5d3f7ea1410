"""The verbs: fit on difficult data, predict, simulate, log-likelihoods, and results that travel
through files."""

from __future__ import annotations

import arviz as az
import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import binom

import raters as rt
from raters.errors import DataError
from raters.fitting.storage import shown
from tests import hand
from tests.refusals import raises_about

# Of few draws, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*draws:raters.errors.ConvergenceWarning")

EM = rt.PGEM(draws=100, starts=1)
SIGNED = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
VOTES, _ = rt.datasets.separated(5, 3, 150, seed=0)
RNG = np.random.default_rng(0)
REWARD = RNG.normal(size=(40, 5))
COMPETENCE = RNG.normal(1, 0.5, size=(40, 3))


def signed_result(votes: rt.Comparisons = VOTES) -> xr.DataTree:
    return hand.result(votes, reward=REWARD, competence=COMPETENCE)


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    return rt.fit(rt.BTL(), VOTES, EM, seed=0, progress=False)


# ------------------------------------------------------------------ wrong arguments


def test_data_without_rows_are_refused():
    nothing = VOTES.take(slice(0, 0))
    for verb in (rt.fit, rt.simulate):
        with raises_about(DataError, "data"):
            verb(rt.BTL(), nothing, seed=0)


# ------------------------------------------------------------------ the result


def test_every_axis_has_names(fitted):
    assert fitted.posterior["reward"].dims == ("chain", "draw", "item")
    assert fitted.posterior["item"].values.tolist() == list(VOTES.items)
    assert fitted["observed_data"]["outcome"].dims == ("comparison",)
    assert fitted["log_likelihood"]["outcome"].dims == ("chain", "draw", "comparison")
    np.testing.assert_allclose(fitted.posterior["reward"].sum("item"), 0, atol=1e-5)


def test_attributes_say_how_it_was_fitted(fitted):
    attrs = fitted.attrs
    assert (rt.fitting.result.model_of(fitted), shown(attrs["backend"])) == (rt.BTL(), repr(EM))
    assert attrs["seed"] == 0
    assert attrs["seconds"] > 0
    assert attrs["raters_version"] == rt.__version__
    assert {"numpyro_version", "jax_version"} <= set(attrs)


# 100 draws are few for Pareto-smoothed importance sampling, which says so.
few_draws = pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto distribution")


@few_draws
def test_arviz_takes_it_as_it_is(fitted):
    mpl.use("Agg")
    summary = az.summary(fitted, var_names=["reward"])
    assert len(summary) == VOTES.num_items
    assert az.loo(fitted).n_data_points == VOTES.num_comparisons
    table = az.compare(
        {
            "free": fitted,
            "tight": rt.fit(rt.BTL(reward_scale=0.1), VOTES, EM, seed=0, progress=False),
        }
    )
    assert table.index[0] == "free"
    assert az.plot_forest(fitted, var_names=["reward"]) is not None


# ------------------------------------------------------------------ predict


def test_predict_is_the_model_by_hand():
    probability = rt.predict(SIGNED, signed_result())
    gap = REWARD[:, VOTES.first] - REWARD[:, VOTES.second]
    expected = expit(COMPETENCE[:, VOTES.annotator] * gap)
    np.testing.assert_allclose(probability.values[0], expected, atol=1e-5)
    assert probability.dims == ("chain", "draw", "comparison")
    assert probability["by"].values.tolist() == [VOTES.annotators[code] for code in VOTES.annotator]


def test_predict_matches_new_questions_by_name():
    votes = hand.votes(("a", "b", "x"), ("b", "c", "y"), ("c", "a", "x"))
    result = hand.result(votes, reward=REWARD[:, :3], competence=COMPETENCE[:, :2])
    asked = hand.votes(
        ("c", "b", "y"), items=["c", "b"], annotators=["y"]
    )  # codes differ from those of the fit
    probability = rt.predict(SIGNED, result, asked.unanswered())
    np.testing.assert_allclose(
        probability.values[0, :, 0],
        expit(COMPETENCE[:, 1] * (REWARD[:, 2] - REWARD[:, 1])),
        atol=1e-5,
    )
    assert (
        probability["first"].item(),
        probability["second"].item(),
        probability["by"].item(),
    ) == ("c", "b", "y")


# ------------------------------------------------------------------ simulate


@pytest.mark.parametrize("count", [None, 40_000.0])
def test_simulate_follows_the_probabilities(count):
    rows = 40_000 if count is None else 1
    questions = rt.Comparisons(
        np.zeros(rows, np.int32),
        np.ones(rows, np.int32),
        np.zeros(rows, np.int32),
        None,
        None if count is None else np.full(rows, count, np.float32),
        ("a", "b"),
        ("x",),
    )
    given = {"reward_scale": 1.0, "reward": [1.0, -0.5]}
    data, truth = rt.simulate(rt.BTL(), questions, seed=0, given=given)
    expected = expit(1.5)
    assert abs(data.wins.sum() / 40_000 - expected) < 5 * np.sqrt(
        expected * (1 - expected) / 40_000
    )  # false alarm 6e-7
    np.testing.assert_allclose(truth["reward"], given["reward"])


# ------------------------------------------------------------------ log-likelihoods


def test_log_likelihood_by_comparison_is_the_binomial():
    table = rt.log_likelihood(SIGNED, signed_result())["log_likelihood"]["outcome"]
    gap = REWARD[:, VOTES.first] - REWARD[:, VOTES.second]
    expected = binom.logpmf(VOTES.wins, VOTES.count, expit(COMPETENCE[:, VOTES.annotator] * gap))
    np.testing.assert_allclose(table.values[0], expected, atol=1e-4, rtol=1e-4)


def test_log_likelihood_by_annotator_sums_their_comparisons():
    votes = rt.Comparisons(
        **(
            vars(VOTES)
            | {"annotators": ("x", "silent", "y", "z"), "annotator": VOTES.annotator * 3 // 2}
        )
    )
    result = hand.result(votes, reward=REWARD, competence=np.c_[COMPETENCE, np.ones(40)])
    rows = rt.log_likelihood(SIGNED, result)["log_likelihood"]["outcome"].values
    table = rt.log_likelihood(SIGNED, result, by="annotator")["log_likelihood"]["outcome"]
    assert table.dims == ("chain", "draw", "annotator")
    assert table["annotator"].values.tolist() == ["x", "silent", "z"]  # who never voted has no term
    for position, code in enumerate(np.unique(votes.annotator)):
        np.testing.assert_allclose(
            table.values[..., position], rows[..., votes.annotator == code].sum(-1), rtol=1e-5
        )


# ------------------------------------------------------------------ files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "annotators"),
    [
        (tuple(range(5)), (10, 20, 30)),
        (("tea", "té", "a/b", "c,d", "茶 "), ("ann", "Ann", "ann ")),
        (("1", "2", "x", "y", "z"), (7, 8, 9)),
    ],
)
def test_a_result_read_from_a_file_answers_the_same(tmp_path, items, annotators):
    votes = rt.Comparisons(**(vars(VOTES) | {"items": items, "annotators": annotators}))
    result = rt.fit(
        SIGNED, votes, rt.PGEM(draws=20, starts=1, max_sweeps=2000), seed=0, progress=False
    )
    result.to_netcdf(tmp_path / "result.nc")
    again = az.from_netcdf(tmp_path / "result.nc")
    stored = rt.Comparisons.from_result(again)
    assert (stored.items, stored.annotators, stored.ordered) == (items, annotators, votes.ordered)
    assert np.array_equal(stored.wins, votes.wins)
    assert rt.fitting.result.model_of(again) == SIGNED
    xr.testing.assert_equal(
        rt.audit(SIGNED, again, reference="crowd").table,
        rt.audit(SIGNED, result, reference="crowd").table,
    )
    candidates = rt.Candidates.pairs(votes)
    # The order is the same under all 20 draws: there is nothing to ask for the ranking.
    one, other = (rt.suggest(SIGNED, read, candidates, target="reward") for read in (again, result))
    xr.testing.assert_equal(one, other)
    xr.testing.assert_equal(rt.predict(SIGNED, again, votes), rt.predict(SIGNED, result, votes))
    assert rt.audit(SIGNED, again, reference="crowd").table["annotator"].values.tolist() == list(
        annotators
    )
    assert set(one["first"].values.tolist()) <= set(items)
