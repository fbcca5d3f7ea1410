"""Simulation-based calibration of every exact back-end, and the arithmetic of its bands."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.checking import sbc, uniformity
from raters.checking.calibration import _bands, _coverage
from raters.errors import SettingError
from raters.inference.polya_gamma import latent_classes, sums
from raters.terms import Competence, Covariates, Guessers, PositionBias, Rewards, Strata
from tests.refusals import raises_about
from tests.statistical.joint import LEVEL, cases, smallest

_GIBBS = rt.PGGibbs(draws=1200, warmup=100, chains=1)
_NUTS = rt.NUTS(draws=400, warmup=300, chains=1)
_CASES = {
    "BTL by Gibbs": (rt.BTL(reward_scale=1.0), _GIBBS),
    "Extended-BTL by Gibbs": (rt.ExtendedBTL(reward_scale=1.0), _GIBBS),
    "signed Extended-BTL by Gibbs": (
        rt.ExtendedBTL("signed", reward_scale=1.0, position_bias=True),
        _GIBBS,
    ),
    "HierarchicalBTL by Gibbs": (rt.HierarchicalBTL(reward_scale=1.0), _GIBBS),
    "BTL by NUTS": (rt.BTL(), _NUTS),
    "Extended-BTL by NUTS": (rt.ExtendedBTL(reward_scale=1.0), _NUTS),
    "Extended-BTL by HMC": (rt.ExtendedBTL(reward_scale=1.0), rt.HMC(draws=300, chains=1)),
}


_FEW_GIBBS = rt.PGGibbs(draws=160, warmup=30, chains=1)
_FEW_NUTS = rt.NUTS(draws=200, warmup=200, chains=1)
# As in Geweke's test, whose compiled kernels they share.
_SHORT_CASES = {
    "OneCoin by Gibbs": (rt.models.OneCoin(), _FEW_GIBBS, "asked"),
    "DawidSkene by Gibbs": (rt.DawidSkene(diagonal=2.0, off_diagonal=1.0), _FEW_GIBBS, "asked"),
    "HierarchicalDawidSkene by Gibbs": (rt.HierarchicalDawidSkene(), _FEW_GIBBS, "asked"),
    "GuesserOneCoin by Gibbs": (rt.models.GuesserOneCoin(), _FEW_GIBBS, "asked"),
    "GuesserDawidSkene by Gibbs": (rt.models.GuesserDawidSkene(), _FEW_GIBBS, "asked"),
    "ItemDifficulty by Gibbs": (rt.models.ItemDifficulty(), _FEW_GIBBS, "asked"),
    "Raykar by Gibbs": (rt.Raykar(diagonal=2.0, off_diagonal=1.0), _FEW_GIBBS, "asked"),
    "Yan by Gibbs": (rt.models.Yan(), _FEW_GIBBS, "asked"),
    "SharedMistakes by Gibbs": (rt.SharedMistakes(item_effects=True), _FEW_GIBBS, "asked"),
    "DawidSkene by NUTS": (rt.DawidSkene(diagonal=2.0, off_diagonal=1.0), _FEW_NUTS, "asked"),
    "MixtureBTL by Gibbs": (rt.MixtureBTL(), _FEW_GIBBS, "with_features"),
    "MixtureBTL with competence by Gibbs": (
        rt.MixtureBTL(competence="unit"),
        _FEW_GIBBS,
        "with_features",
    ),
    "ContextualBTL by Gibbs": (rt.models.ContextualBTL(num_types=2), _FEW_GIBBS, "with_features"),
    "GuesserBTL by Gibbs": (rt.models.GuesserBTL(), _FEW_GIBBS, "with_features"),
    "MixtureBTL by NUTS": (rt.MixtureBTL(), _FEW_NUTS, "with_features"),
    "MultinomialLogit by Gibbs": (rt.MultinomialLogit(interactions=True), _FEW_GIBBS, "to_choose"),
    "LatentClassLogit by Gibbs": (rt.models.LatentClassLogit(), _FEW_GIBBS, "to_choose"),
    "MixedLogit by Gibbs": (rt.MixedLogit(error_components=(("0", "2"),)), _FEW_GIBBS, "to_choose"),
    "NestedLogit by NUTS": (rt.models.NestedLogit(nests=(("0", "1"),)), _FEW_NUTS, "to_choose"),
    "Rasch by Gibbs": (rt.Rasch(), _FEW_GIBBS, "tested"),
    "TwoPL by Gibbs": (rt.TwoPL(), _FEW_GIBBS, "tested"),
    "PlackettLuce by Gibbs": (rt.PlackettLuce(), _FEW_GIBBS, "to_rank"),
    "ExtendedPlackettLuce by Gibbs": (rt.ExtendedPlackettLuce(), _FEW_GIBBS, "to_rank"),
    "MixturePlackettLuce by Gibbs": (rt.models.MixturePlackettLuce(), _FEW_GIBBS, "to_rank"),
    "ExtendedPlackettLuce with ties by NUTS": (
        rt.ExtendedPlackettLuce(ties="davidson"),
        _FEW_NUTS,
        "to_rank_with_ties",
    ),
}


_RATING_CASES = {
    f"{name} by NUTS": (model, rt.NUTS(draws=200, warmup=300, chains=1))
    for name, model in {
        "ManyFacet": rt.ManyFacet(),
        "FineScale": rt.models.FineScale(),
        "positive ManyFacet": rt.ManyFacet(competence="positive", thresholds="shared"),
    }.items()
}


# Terms in combinations that no model of the package has.
_COMBINATIONS = {
    "style that a competence scales": Competence("signed") * (Rewards() + Covariates())
    + PositionBias(),
    "strata among guessers": Guessers() * (Competence("positive") * Rewards()) + Strata(),
}


# Geweke's test, which has more power, covers the kernels of Gibbs at every change, and agreement
# with Gibbs those of NUTS.
_AT_EVERY_CHANGE = {"DawidSkene by Gibbs", "MultinomialLogit by Gibbs"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", _CASES)
def test_ranks_are_uniform(case: str, few) -> None:
    """60 replicates; false-alarm rate 1e-4 for each case, all quantities together."""
    ranks = sbc(_CASES[case][0], few, _CASES[case][1], seed=0, replicates=60, draws=39)
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
def test_a_kernel_with_wrong_weights_is_caught(few, monkeypatch) -> None:
    """ω four times too large gives posteriors that are too narrow and too close to 0."""
    right = sums.drawn_weights
    monkeypatch.setattr(sums, "drawn_weights", lambda *given: 4 * right(*given))
    jax.clear_caches()
    try:
        ranks = sbc(rt.BTL(reward_scale=1.0), few, _GIBBS, seed=0, replicates=60, draws=39)
    finally:
        jax.clear_caches()
    assert smallest(ranks) < LEVEL


@pytest.mark.parametrize("case", cases(_SHORT_CASES, _AT_EVERY_CHANGE))
def test_ranks_of_short_chains_are_uniform(case: str, request) -> None:
    """16 replicates, types numbered by share in truth and draws alike; false-alarm rate 1e-4 for
    each case, all quantities together."""
    model, backend, questions = _SHORT_CASES[case]
    asked = request.getfixturevalue(questions)
    ranks = sbc(model, asked, backend, seed=0, replicates=16, draws=19)
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
def test_ranks_of_correlated_coefficients_are_uniform() -> None:
    """16 replicates of 4 choosers with 3 choices; false-alarm rate 1e-4 for all quantities."""
    asked = rt.datasets.choice_crowd(4, 3, 3, 2, seed=0, available=1).choices
    model = rt.MixedLogit(correlated=True, constants=False)
    ranks = sbc(model, asked, _FEW_GIBBS, seed=0, replicates=16, draws=19)
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", _RATING_CASES)
def test_ranks_of_models_of_ratings_are_uniform(case: str, to_rate) -> None:
    """30 replicates; false-alarm rate 1e-4 for each case, all quantities together."""
    ranks = sbc(
        _RATING_CASES[case][0], to_rate, _RATING_CASES[case][1], seed=0, replicates=30, draws=19
    )
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
@pytest.mark.parametrize("terms", _COMBINATIONS)
def test_ranks_of_combinations_of_terms_are_uniform(terms: str) -> None:
    """20 replicates of 60 votes in two strata; false-alarm rate 1e-4 for each case, all quantities
    together. With ω four times too large, as above, the smallest p-value is 3e-15."""
    votes = rt.datasets.position_biased(num_items=4, num_annotators=3, num_votes=60, seed=0).votes
    votes = votes.with_features(np.random.default_rng(0).normal(size=(4, 2)))
    stratum = (np.arange(votes.num_rows) % 2).astype(np.int32)
    asked = dataclasses.replace(votes, stratum=stratum, strata=("x", "y"))
    model = rt.models.PairwiseModel(_COMBINATIONS[terms])
    ranks = sbc(model, asked, _FEW_GIBBS, seed=0, replicates=20, draws=19)
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
def test_a_kernel_that_counts_all_that_is_known_sixteen_times_is_caught(asked, monkeypatch) -> None:
    """Posteriors are too narrow."""
    right = latent_classes.parameters

    def wrong(*given):
        return tuple(16 * part for part in right(*given))

    monkeypatch.setattr(latent_classes, "parameters", wrong)
    model = _SHORT_CASES["DawidSkene by Gibbs"][0]
    jax.clear_caches()
    try:
        ranks = sbc(model, asked, _FEW_GIBBS, seed=0, replicates=30, draws=19)
    finally:
        jax.clear_caches()
    assert smallest(ranks) < LEVEL


@pytest.mark.parametrize(("replicates", "draws"), [(50, 19), (200, 99), (30, 7)])
def test_coverage_is_that_of_simulated_ranks(replicates: int, draws: int) -> None:
    """20,000 simulated sets of uniform ranks; false-alarm rate 1e-5 each."""
    low, high = _bands(replicates, draws + 1, 0.01)
    rng = np.random.default_rng(0)
    ranks = rng.integers(draws + 1, size=(20_000, replicates))
    below = np.stack([(ranks < rank).sum(1) for rank in range(1, draws + 1)], 1)
    inside = np.mean(((below >= low) & (below <= high)).all(1))
    exact = _coverage(replicates, draws + 1, 0.01)
    assert 0.5 < exact < 0.99
    assert abs(inside - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 20_000)


def test_p_values_of_uniform_ranks_are_uniform() -> None:
    """No more than a share α of p-values is below α; false-alarm rate 1e-5."""
    ranks = np.random.default_rng(0).integers(20, size=(50, 400))
    p_values = uniformity(xr.Dataset({"all": (("replicate", "set"), ranks)}, attrs={"draws": 19}))[
        "all"
    ].values
    for level in (0.05, 0.3):
        assert np.mean(p_values <= level) < level + 4.3 * np.sqrt(level * (1 - level) / 400)
    assert np.mean(p_values <= 0.3) > 0.15


@pytest.mark.parametrize(
    "wrong",
    [
        lambda u: u**1.5,
        lambda u: (u + 0.5) / 2,
        lambda u: np.where(u < 0.5, 2 * u**2, 1 - 2 * (1 - u) ** 2),
    ],
    ids=["slope", "hill", "U"],
)
def test_shapes_are_caught(wrong) -> None:
    ranks = np.floor(20 * wrong(np.random.default_rng(1).uniform(size=400))).astype(int)
    assert (
        float(uniformity(xr.Dataset({"x": ("replicate", ranks)}, attrs={"draws": 19}))["x"]) < LEVEL
    )


def test_more_ranks_than_draws_are_refused(few) -> None:
    with raises_about(SettingError, "draws"):
        sbc(rt.BTL(), few, rt.PGGibbs(draws=20, warmup=5, chains=1), seed=0, replicates=2, draws=39)
