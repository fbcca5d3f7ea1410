"""Groups that ArviZ looks for: their numbers against enumeration, and the plots that read them."""

from __future__ import annotations

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.program import log_prior

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*draws:raters.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the chains have not mixed well"),
]
GIBBS = rt.PGGibbs(draws=100, warmup=100, chains=2)
VOTES = rt.datasets.crowd(num_items=4, num_annotators=3, num_votes=300, seed=0).votes
LABELS = rt.datasets.label_crowd(20, 4, 3, 3, seed=0).labels
MODELS = {
    "votes": (rt.BTL(), VOTES, "vote"),
    "labels": (rt.DawidSkene(), LABELS, "label"),
    "types": (rt.MixtureBTL(num_types=2), VOTES, "vote"),
}


@pytest.fixture(scope="module")
def results() -> dict[str, xr.DataTree]:
    return {
        name: rt.fit(model, data, GIBBS, seed=0, progress=False)
        for name, (model, data, _) in MODELS.items()
    }


@pytest.fixture(scope="module")
def trees(results) -> dict[tuple[str, str | None], xr.DataTree]:
    """All groups of each result, by default, by row and by judgement."""
    return {
        (name, by): rt.fitting.with_groups(model, results[name], by=by, draws=200)
        for name, (model, data, word) in MODELS.items()
        for by in (None, data.row, word)
    }


# ---------------------------------------------------------------- plots


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("plot", ["plot_ppc_dist", "plot_ppc_pit", "plot_prior_posterior"])
def test_plots_of_predictions_and_priors_run(name, plot, trees):
    site = {"plot_prior_posterior": "prevalence" if name == "labels" else "reward_scale"}
    options = {"var_names": [site[plot]]} if plot in site else {}
    if plot == "plot_ppc_dist":
        options["kind"] = "ecdf"  # for other kinds ArviZ warns that the outcomes are discrete
    getattr(az, plot)(trees[name, None], backend="matplotlib", **options)
    plt.close("all")


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("unit", ["row", "judgement"])
def test_plots_that_leave_one_out_run(name, unit, trees):
    _, data, word = MODELS[name]
    az.plot_loo_pit(trees[name, data.row if unit == "row" else word], backend="matplotlib")
    plt.close("all")


# ---------------------------------------------------------------- numbers


def test_log_likelihoods_of_votes_sum_to_those_of_cells_but_for_a_constant(trees):
    cells = trees["votes", None]["log_likelihood"]["outcome"].sum("comparison").values
    votes = trees["votes", "vote"]["log_likelihood"]["outcome"].sum("vote").values
    assert np.ptp(cells - votes) < 1e-3
    assert trees["votes", "vote"]["observed_data"]["outcome"].sum() == VOTES.wins.sum()


def test_a_label_is_left_out_of_its_item(trees, results):
    """Against the sum over classes of the item's labels with and without the one."""
    posterior = results["labels"]["posterior"].isel(chain=1, draw=3)
    confusion, prevalence = posterior["confusion"].values, posterior["prevalence"].values
    own = trees["labels", "label"]["log_likelihood"]["label_code"].isel(chain=1, draw=3).values
    for row in range(0, LABELS.num_rows, 7):
        with_it = without_it = prevalence.copy()
        for other in np.flatnonzero(LABELS.group == LABELS.group[row]):
            likelihood = confusion[LABELS.annotator[other], :, LABELS.label[other]]
            with_it = with_it * likelihood
            without_it = without_it * (likelihood if other != row else 1)
        assert own[row] == pytest.approx(np.log(with_it.sum() / without_it.sum()), abs=1e-4)


def test_predicted_labels_have_the_probabilities_that_leave_them_out(trees):
    """The frequency of the observed label among 200 draws, against the mean probability: all 60 are
    within 5.5 standard errors, except with probability 3e-6."""
    tree = trees["labels", "label"]
    prob = np.exp(tree["log_likelihood"]["label_code"]).stack(sample=("chain", "draw"))
    same = tree["posterior_predictive"]["label_code"] == tree["observed_data"]["label_code"]
    error = np.sqrt((prob * (1 - prob)).mean("sample") / prob.sizes["sample"]) + 0.01
    assert (abs(same.mean(("chain", "draw")) - prob.mean("sample")) < 5.5 * error).all()


def test_log_prior_is_that_of_each_site(trees, results):
    posterior = results["votes"]["posterior"].isel(chain=0, draw=5)
    values = {name: posterior[name].values for name in ("reward", "reward_scale")}
    table = trees["votes", None]["log_prior"].isel(chain=0, draw=5)
    total = sum(float(table[name]) for name in values)
    assert total == pytest.approx(float(log_prior(rt.BTL(), VOTES, values)), abs=1e-3)


def test_prior_has_the_sites_and_names_of_the_posterior(trees):
    for name in MODELS:
        tree = trees[name, None]
        assert set(tree["prior"].data_vars) == set(tree["posterior"].data_vars)
        for site, values in tree["prior"].data_vars.items():
            assert values.dims == tree["posterior"][site].dims
        assert tree["prior"].sizes["draw"] == tree["prior_predictive"].sizes["draw"] == 200
    reward = trees["votes", None]["prior"]["reward"]
    assert float(abs(reward.sum("item")).max()) < 1e-4  # centred, as the posterior is
    wins = trees["votes", None]["prior_predictive"]["outcome"].values
    assert (wins >= 0).all()
    assert (wins <= VOTES.count).all()
