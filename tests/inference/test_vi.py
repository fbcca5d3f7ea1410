"""Mean-field variational inference: its averages, its bound, and its draws."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import raters as rt
from raters.inference.polya_gamma import averages, laplace, mean_field, plans, vi
from raters.inference.polya_gamma.mean_field import MeanField

_SELDOM = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """600 votes of 4 annotators on 6 items."""
    return rt.datasets.position_biased(num_items=6, num_annotators=4, num_votes=600, seed=1).votes


def field_of(model, data):
    """Mean field of a model at its start, and the plan."""
    program = rt.program.Program(model, data)
    start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
    plan = plans.plan(program, start)
    field = MeanField(plan, jax.device_put(data), start)
    return field, field.start()


def climbed(model, data, sweeps):
    """Bound after each sweep, the field, and the last state."""
    field, state = field_of(model, data)
    state, bounds = field.sweep(state)[1], []
    for _ in range(sweeps):
        bound, state = field.sweep(state)
        bounds.append(bound)
    return np.array(bounds), field, state


# ---------------------------------------------------------------------------------------- averages


def test_mean_squares_of_logits_are_exact() -> None:
    """Signs times deviations have the covariances of independent normals, and all can be tried."""
    votes = rt.datasets.position_biased(num_items=3, num_annotators=2, num_votes=20, seed=0).votes
    model = rt.ExtendedBTL("signed")
    start = {name: np.asarray(value, float) for name, value in model.start(votes).items()}
    forms, owners = averages.forms_of(model, votes, start, ("reward", "competence"))
    rng = np.random.default_rng(0)
    mean = jnp.asarray(rng.normal(size=5))
    deviation = jnp.asarray(rng.uniform(0.2, 1, 5))
    signs = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=5)))

    @jax.jit
    @jax.vmap
    def logits(sign):
        return forms.mean(forms.slots(mean + sign * deviation))

    every = np.asarray(logits(signs))
    slots = forms.slots(mean)
    covariances = forms.covariances(owners, jnp.diag(deviation**2))
    np.testing.assert_allclose(forms.mean(slots), every.mean(0), atol=1e-9)
    np.testing.assert_allclose(forms.square(slots, covariances), (every**2).mean(0), rtol=1e-9)


def test_moments_of_truncated_normals() -> None:
    centre = np.array([0.3, -2.0, 5.0, 0.5, 0.0, -30.0, 1.0])
    deviation = np.array([1.0, 0.5, 0.7, 50.0, 1.0, 1.0, 0.3])
    low = np.array([0.0, 0.0, 0.0, 0.0, -np.inf, 0.0, -np.inf])
    high = np.array([1.0, np.inf, 1.0, 1.0, np.inf, np.inf, 0.9])
    mean, variance, entropy = averages.truncated_moments(centre, deviation, low, high)
    for place in (0, 1, 2, 3, 4, 6):
        # An infinite bound is no number in the entropy of SciPy.
        lower, upper = (
            np.clip((end[place] - centre[place]) / deviation[place], -9, 30) for end in (low, high)
        )
        exact = scipy.stats.truncnorm(lower, upper, centre[place], deviation[place])
        np.testing.assert_allclose(mean[place], exact.mean(), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(variance[place], exact.var(), rtol=1e-4)
        np.testing.assert_allclose(entropy[place], exact.entropy(), rtol=1e-5, atol=1e-6)
    # Far in a tail it is an exponential distribution: 1/30, less 2/30³.
    np.testing.assert_allclose(mean[5], 1 / 30 - 2 / 30**3, rtol=1e-3)
    found = vi.centre_of(mean[:3], deviation[:3], low[:3], high[:3])
    np.testing.assert_allclose(found, centre[:3], atol=1e-6)


# --------------------------------------------------------------------------------------- the bound


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [rt.ExtendedBTL(), pytest.param(rt.HierarchicalBTL(competence="signed"), marks=_SELDOM)],
    ids=repr,
)
def test_the_bound_never_falls(model, tiny, monkeypatch) -> None:
    """Not even by rounding of more than 1e-9; with slopes a tenth too large it does."""
    bounds, field, state = climbed(model, tiny, 30)
    assert np.all(np.isfinite(bounds))
    assert np.diff(bounds).min() > -1e-9 * (1 + abs(bounds[-1]))
    right = mean_field._statistics

    def wrong(*given):
        bound, slope, square = right(*given)
        return bound, 1.1 * slope, square

    monkeypatch.setattr(mean_field, "_statistics", wrong)
    assert field.sweep(field.sweep(state)[1])[0] < bounds[-1]


def test_latent_classes_are_refused() -> None:
    labels = rt.datasets.label_crowd(20, 3, 3, 3, seed=0).labels
    program = rt.program.Program(rt.DawidSkene(), labels)
    assert "latent classes of DawidSkene; use PGEM" in rt.PGVI().why_not(program)


# ----------------------------------------------------------------------------------------- draws


@pytest.mark.slow
def test_draws_have_the_moments_of_quadrature(fit_quietly, monkeypatch) -> None:
    """Nine votes on two items: mean within .1 standard deviations (2,000 draws have an error of
    .022, |z| > 4.5), spread within a tenth (its error is .016, |z| > 6). Weights by a likelihood of
    another temperature are caught."""
    table = {"winner": ["a"] * 7 + ["b"] * 2, "loser": ["b"] * 7 + ["a"] * 2}
    data = rt.Comparisons.from_frame(table, winner="winner", loser="loser")
    grid = np.linspace(-12, 12, 20_001)
    weight = expit(grid) ** 7 * expit(-grid) ** 2 * np.exp(-(grid**2) / 16)
    weight /= weight.sum()
    mean = weight @ grid
    deviation = np.sqrt(weight @ (grid - mean) ** 2)

    def off() -> float:
        result = fit_quietly(rt.BTL(reward_scale=2.0), data, rt.PGVI(draws=2000))
        reward = result["posterior"]["reward"].values
        found = reward[..., 0] - reward[..., 1]
        return max(abs(found.mean() - mean) / deviation, abs(np.log(found.std() / deviation)))

    assert off() < 0.1
    right = laplace.pass_over_rows
    monkeypatch.setattr(laplace, "pass_over_rows", lambda *given: 1.4 * right(*given))
    assert off() > 0.1


@pytest.mark.slow
def test_spreads_of_the_mean_field_are_too_small_and_corrected(votes) -> None:
    """Competences and rewards stretch against each other, which independent blocks cannot show: at
    a given scale, the spread that responds is that of the curvature of the joint density."""
    model = rt.ExtendedBTL("positive", reward_scale=1.0, competence_spread=0.5)
    _, field, state = climbed(model, votes, 12)
    joint = np.sqrt(np.diag(vi.response(field, state)[0].covariance()))[6:]
    alone = np.sqrt(np.diag(state.covariance))[6:]
    assert np.all(joint > 1.15 * alone)
