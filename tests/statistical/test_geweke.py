"""Geweke's joint test passes for every Gibbs kernel, and catches errors put in on purpose."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.checking import geweke
from raters.inference.polya_gamma import augmentation, latent_classes, line, sums, sweep
from raters.program import trace
from raters.program.whitening import volume_of
from tests.refusals import raises_about
from tests.statistical.joint import BOUND, cases, short, worst

# False-alarm rate 1e-4 for each statistic (|z| > 4 under Student's t with 198 degrees of freedom).
_BOUND = 4.0
# Other kernels are parts of these, and other errors are like these.
_AT_EVERY_CHANGE = {
    "signed, position bias, counts",
    "TwoPL",
    *("DawidSkene", "Raykar", "SharedMistakes, effects of items"),
    "wrong power in the scale move",
    *("counts without most of the prior", "classes expected, not drawn"),
    "abilities of less volume",
}
_KERNELS = {
    "BTL": (rt.BTL(), "singles"),
    "BTL, position bias": (rt.BTL(position_bias=True), "singles"),
    "unit": (rt.ExtendedBTL(), "singles"),
    "positive": (rt.ExtendedBTL(competence="positive"), "singles"),
    "signed": (rt.ExtendedBTL(competence="signed", competence_spread="learned"), "singles"),
    "signed, position bias, counts": (
        rt.ExtendedBTL(competence="signed", position_bias=True),
        "few",
    ),
    "fixed scales, counts": (rt.ExtendedBTL(reward_scale=1.5, competence_spread=0.5), "many"),
    "factors": (rt.models.FactorBTL(num_dimensions=2), "singles"),
    "tastes": (rt.HierarchicalBTL(), "singles"),
    "tastes, signed": (rt.HierarchicalBTL(competence="signed", position_bias=True), "few"),
    "tastes of own spread": (rt.HierarchicalBTL(own_spread=True), "singles"),
}


@pytest.fixture
def many(few) -> rt.Comparisons:
    """Rows of up to 25 votes, so that both Pólya-Gamma samplers are at work."""
    count = np.where(np.arange(few.num_comparisons) % 2, 3, 25).astype(np.float32)
    return dataclasses.replace(few, wins=None, count=count)


@pytest.fixture
def fresh_kernels():
    """Compiled sweeps are forgotten before and after, as they hold the functions that a test
    replaces."""
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize("kernel", cases(_KERNELS, _AT_EVERY_CHANGE))
def test_kernel_leaves_the_joint_distribution_invariant(kernel: str, request) -> None:
    model, questions = _KERNELS[kernel]
    result = geweke(model, request.getfixturevalue(questions), seed=1)
    assert worst(result) < _BOUND, str(result["z"].to_series())


_SHORT_KERNELS = {
    "MixtureBTL": (rt.MixtureBTL(), "with_features"),
    "MixtureBTL, competence": (rt.MixtureBTL(competence="unit"), "with_features"),
    "ContextualBTL": (rt.models.ContextualBTL(num_types=2), "with_features"),
    "LinearExtendedBTL": (rt.models.LinearExtendedBTL(), "with_features"),
    "GuesserBTL": (rt.models.GuesserBTL(), "with_features"),
    "Rasch": (rt.Rasch(), "tested"),
    "TwoPL": (rt.TwoPL(), "tested"),
    "MajorityVote": (rt.models.MajorityVote(), "asked"),
    "Pooled": (rt.models.Pooled(diagonal=2.0, off_diagonal=1.0), "asked"),
    "OneCoin": (rt.models.OneCoin(), "asked"),
    "DawidSkene": (rt.DawidSkene(diagonal=2.0, off_diagonal=1.0), "asked"),
    "HierarchicalDawidSkene": (rt.HierarchicalDawidSkene(), "asked"),
    "GuesserOneCoin": (rt.models.GuesserOneCoin(), "asked"),
    "GuesserDawidSkene": (rt.models.GuesserDawidSkene(), "asked"),
    "ItemDifficulty": (rt.models.ItemDifficulty(), "asked"),
    "Raykar": (rt.Raykar(diagonal=2.0, off_diagonal=1.0), "asked"),
    "Yan": (rt.models.Yan(), "asked"),
    "SharedMistakes": (rt.SharedMistakes(), "asked"),
    "SharedMistakes, effects of items": (rt.SharedMistakes(item_effects=True), "asked"),
}


@pytest.fixture
def of_kernel(request):
    """The short test of a kernel, by its name."""

    def run(kernel: str, **options: int) -> xr.Dataset:
        model, questions = _SHORT_KERNELS[kernel]
        return short(model, request.getfixturevalue(questions), **options)

    return run


@pytest.mark.parametrize("kernel", cases(_SHORT_KERNELS, _AT_EVERY_CHANGE))
def test_kernel_leaves_the_joint_distribution_invariant_on_short_chains(kernel, of_kernel) -> None:
    result = of_kernel(kernel)
    assert worst(result) < BOUND, str(result["z"].to_series())


_TRIPLED = (sums, "drawn_weights", lambda *given: 3 * _exact_draw(*given))


def _without_labels(model, data, values, key):
    """Classes drawn from their frequencies, whatever the labels say."""
    weights = trace(model, data, values)[model.observed]["fn"].log_weights()
    if getattr(data, "truth", None) is not None:
        known = (data.truth[:, None] < 0) | (data.truth[:, None] == np.arange(3))
        weights = jnp.where(known, weights, -jnp.inf)
    return jax.nn.one_hot(jax.random.categorical(key, weights), weights.shape[-1])


_read_counts = latent_classes.parameters
_SHORT_ERRORS = {
    "counts without most of the prior": (
        "DawidSkene",
        (
            latent_classes,
            "parameters",
            lambda *given: tuple(part - 0.7 for part in _read_counts(*given)),
        ),
    ),
    "classes without the labels": ("DawidSkene", (latent_classes, "drawn", _without_labels)),
    "classes expected, not drawn": (
        "OneCoin",
        (latent_classes, "drawn", lambda *given: latent_classes.expected(*given[:3])[0]),
    ),
    "components without the labels": (
        "GuesserOneCoin",
        (
            latent_classes,
            "component_log_probs",
            lambda given: jnp.broadcast_to(given[0], (len(given[2]), given[0].shape[-1])),
        ),
    ),
    "abilities of less volume": (
        "Rasch",
        (sweep, "volume_of", lambda *given: 0.8 * volume_of(*given)),
    ),
    "ω three times too large": ("Raykar", _TRIPLED),
    "types without the votes": ("MixtureBTL", (latent_classes, "drawn", _without_labels)),
    "ω three times too large, by types": ("MixtureBTL", _TRIPLED),
}


@pytest.mark.parametrize("error", cases(_SHORT_ERRORS, _AT_EVERY_CHANGE))
@pytest.mark.usefixtures("fresh_kernels")
def test_injected_error_is_caught_on_short_chains(error: str, of_kernel, monkeypatch) -> None:
    """The bound that the right kernels keep is broken by each of these."""
    kernel, broken = _SHORT_ERRORS[error]
    monkeypatch.setattr(*broken)
    assert worst(of_kernel(kernel, chains=300)) > BOUND


def _wrong_power(values, scale):
    """The scale move with the volume element of one coordinate too few per item."""
    return _orbit_power(values, scale) - values["reward"].size


_orbit_power = line.orbit_power


def _without_prior(prior, shift, diagonal, *given):
    """A conditional that forgets the prior of the entries."""
    shift, diagonal = shift - prior.precision * prior.mean, diagonal - prior.precision + 1e-3
    return _entries(prior, shift, diagonal, *given)


_entries = sums._entry_by_entry


def _noisy(key, votes, logits, how):
    noise = jax.random.uniform(jax.random.fold_in(key, 1), logits.shape, minval=0.3, maxval=1.7)
    return noise * _exact_draw(key, votes, logits, how)


_exact_draw = sums.drawn_weights

_ERRORS = {
    "wrong power in the scale move": (line, "orbit_power", _wrong_power),
    "the mean of ω for a draw": (
        sums,
        "drawn_weights",
        lambda key, votes, logits, how: votes * augmentation.mean_of_one(logits),
    ),
    "no prior precision": (sums, "_entry_by_entry", _without_prior),
    "ω noisier than it is": (sums, "drawn_weights", _noisy),
}


@pytest.mark.usefixtures("fresh_kernels")
@pytest.mark.parametrize("error", cases(_ERRORS, _AT_EVERY_CHANGE))
def test_injected_error_is_caught(error: str, singles, monkeypatch) -> None:
    """The bound that the right kernels keep is broken by each of these."""
    monkeypatch.setattr(*_ERRORS[error])
    model = rt.ExtendedBTL(competence="signed", reward_scale=1.5)
    assert worst(geweke(model, singles, seed=1)) > _BOUND


def test_statistics_are_named_and_direct_means_known(few) -> None:
    """The direct simulator draws from the prior: log reward scale has mean 0, competence spread a
    mean below 0.

    False-alarm rate 1e-6: the mean of asinh of a standard normal over 20,000 draws.
    """
    result = geweke(rt.ExtendedBTL(), few, seed=0, chains=10, sweeps=2, prior_draws=20_000)
    assert abs(float(result["direct"].sel(statistic="reward_scale: mean"))) < 5 / np.sqrt(20_000)
    assert float(result["direct"].sel(statistic="competence_spread: mean")) < -0.4
    assert np.isfinite(result["z"]).all()
    assert jax.numpy.ones(1).dtype == np.float32, "the test must not leave float64 on"


def test_refuses_what_gibbs_cannot_run(few, to_rank) -> None:
    unordered = dataclasses.replace(few, ordered=False)
    with raises_about(rt.errors.BackendError, "position_bias", True):
        geweke(rt.BTL(position_bias=True), unordered, seed=0)
    with pytest.raises(rt.errors.BackendError):
        geweke(rt.PlackettLuce(), to_rank, seed=0)
    with raises_about(rt.errors.SettingError, "chains"):
        geweke(rt.BTL(), few, seed=0, chains=1)
