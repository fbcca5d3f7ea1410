"""Mixed logit: probabilities by hand, integrated likelihoods, and refusals."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import raters as rt
from raters.program import log_joint, pointwise_log_likelihood
from raters.program.vectors import log_likelihoods

PEOPLE, SETS = 5, 4


def panel(spread: float = 1.0, **options) -> rt.Choices:
    choices, _ = rt.datasets.choice_crowd(
        PEOPLE, SETS, 3, 2, seed=3, available=1, spread=spread, **options
    )
    return choices


@pytest.fixture(scope="module")
def choices() -> rt.Choices:
    return panel()


MODELS = {
    "independent": rt.MixedLogit(),
    "correlated": rt.MixedLogit(correlated=True, constants=False),
    "components": rt.MixedLogit(random=("feature 1",), error_components=(("0", "2"), ("1",))),
}


def somewhere(model: rt.MixedLogit, data: rt.Choices) -> dict[str, np.ndarray]:
    """Random values of all sites."""
    rng = np.random.default_rng(1)
    values = {}
    for name, value in model.start(data).items():
        noise = rng.normal(size=np.shape(value))
        values[name] = np.exp(0.3 * noise) if "spread" in name else 0.7 * noise
    if "correlation_factor" in values:
        values["correlation_factor"] = np.array([[1.0, 0.0], [0.6, 0.8]])
    return values


def test_probabilities_are_those_of_own_coefficients(choices) -> None:
    model = MODELS["components"]
    values = somewhere(model, choices)
    own = np.tile(values["coefficient"], (PEOPLE, 1))
    own[:, 1] += values["taste"][:, 0]
    x = np.asarray(choices.features) * choices.scale
    utility = (x * own[choices.annotator][:, None]).sum(-1) + values["constant"][choices.offered]
    groups = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])[choices.offered]
    utility += (groups * values["error_component"][choices.annotator][:, None]).sum(-1)
    expected = utility[choices.chosen > 0] - scipy.special.logsumexp(utility, axis=1)
    with jax.enable_x64(True):
        got = np.asarray(pointwise_log_likelihood(model, choices, values))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_integrated_likelihood_is_that_of_quadrature() -> None:
    """One coefficient of each chooser, integrated on 200 Gauss-Hermite nodes. Posteriors of four
    choices are skewed, which normal proposals alone follow within .06 nats. Under other seeds the
    largest error of five is .01."""
    data = panel(spread=2.0)
    model = rt.MixedLogit(random=("feature 0",))
    values = somewhere(model, data)
    values["coefficient_spread"] = np.array([2.0])
    nodes, weight = np.polynomial.hermite_e.hermegauss(200)
    codes = data.annotator
    with jax.enable_x64(True):
        rows = []
        for node in nodes:
            taste = np.full((PEOPLE, 1), 2.0 * node)
            at = pointwise_log_likelihood(model, data, values | {"taste": taste})
            rows.append(np.bincount(codes, np.asarray(at)))
    exact = scipy.special.logsumexp(np.stack(rows), b=weight[:, None] / weight.sum(), axis=0)
    own, error = log_likelihoods(
        rt.program.Program(model, data), {name: value[None] for name, value in values.items()}
    )
    np.testing.assert_allclose(own[0], exact, atol=0.02)
    assert 0.002 < error < 0.02


def from_menus(menus: dict[str, list[str]], alternatives: str) -> rt.Choices:
    """Choices of the first alternative of each menu, by chooser."""
    rows = [
        (f"{who} {place}", what, float(what == menu[0]), who)
        for who, own in menus.items()
        for place, menu in enumerate(own)
        for what in menu
    ]
    roles = ("set", "alternative", "chosen", "annotator")
    table = dict(zip(roles, zip(*rows, strict=True), strict=True))
    return rt.Choices.from_frame(
        table, **dict(zip(roles, roles, strict=True)), alternatives=[*alternatives]
    )


def test_sets_of_count_zero_tell_nothing_of_groups() -> None:
    counted = from_menus({"ann": ["ab", "cd", "ac"]}, "abcd")
    without = dataclasses.replace(counted, count=np.array([1, 1, 0], np.int32))
    single = rt.MixedLogit(features=False, error_components=(("a", "b"),))
    assert single.why_not(counted) is None
    assert "beside another alternative" in single.why_not(without)


def test_log_density_has_the_priors_of_the_page(choices) -> None:
    model = MODELS["correlated"]
    values = somewhere(model, choices)
    with jax.enable_x64(True):
        total = float(log_joint(model, choices, values))
        likelihood = float(pointwise_log_likelihood(model, choices, values).sum())
    unit = 1 / np.asarray(choices.scale, float)
    factor = values["coefficient_spread"][:, None] * values["correlation_factor"]
    expected = likelihood + scipy.stats.norm(0, 2.5 * unit).logpdf(values["coefficient"]).sum()
    expected += scipy.stats.halfnorm(0, 1.5 * unit).logpdf(values["coefficient_spread"]).sum()
    joint = scipy.stats.multivariate_normal(np.zeros(2), factor @ factor.T)
    expected += joint.logpdf(values["taste"]).sum()
    # A uniform correlation: density 1/2 on (−1, 1), which the factor's last entry .8 stretches.
    expected += np.log(0.5)
    assert total == pytest.approx(expected, abs=1e-4)
