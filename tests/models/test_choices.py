"""Models of choices: terms, what they refuse, and probabilities by hand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import raters as rt
from raters.distributions.choices import NOT_OFFERED, NestedChoice, ProbitChoice
from raters.errors import BackendError, SettingError
from raters.program import answer_probs, log_joint, pointwise_log_likelihood
from tests.refusals import raises_about

TABLE = {
    "trip": [1, 1, 1, 2, 2, 3, 3],
    "mode": ["car", "bus", "tram", "car", "bus", "car", "tram"],
    "taken": [1, 0, 0, 0, 1, 0, 1],
    "price": [900.0, 400.0, 600.0, 800.0, 300.0, 700.0, 500.0],
    "age": [30, 30, 30, 60, 60, 45, 45],
}
ROLES = {"set": "trip", "alternative": "mode", "chosen": "taken"}
SITES = {
    "coefficient": np.array([-0.01]),
    "constant": np.array([0.5, -0.25, -0.25]),
    "interaction": np.array([[0.02, -0.01, -0.01]]),
}


@pytest.fixture(scope="module")
def choices() -> rt.Choices:
    return rt.Choices.from_frame(TABLE, **ROLES, features=["price"], choosers=["age"])


def by_hand(choices: rt.Choices, sites: dict) -> np.ndarray:
    """Log-probability of each choice, in the user's units."""
    log_probs = []
    order = list(choices.alternatives)
    for trip in (1, 2, 3):
        rows = [row for row, name in enumerate(TABLE["trip"]) if name == trip]
        utility = [
            sites["coefficient"][0] * TABLE["price"][row]
            + sites["constant"][order.index(TABLE["mode"][row])]
            + sites["interaction"][0, order.index(TABLE["mode"][row])] * (TABLE["age"][row] - 45)
            for row in rows
        ]
        taken = next(place for place, row in enumerate(rows) if TABLE["taken"][row])
        log_probs.append(utility[taken] - np.log(np.exp(utility).sum()))
    return np.array(log_probs)


def test_probabilities_are_those_of_the_users_units(choices) -> None:
    model = rt.MultinomialLogit(interactions=True)
    with jax.enable_x64(True):
        own = np.asarray(pointwise_log_likelihood(model, choices, SITES))
        probs = np.asarray(answer_probs(model, choices, SITES)[0])
    np.testing.assert_allclose(own, by_hand(choices, SITES), rtol=1e-10)
    np.testing.assert_allclose(probs.sum(0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(probs.T[choices.chosen == 1]), own, rtol=1e-9)


@pytest.mark.parametrize("quick", [False, True])
def test_features_that_are_not_there_are_missed_before_a_back_end_is_chosen(quick: bool) -> None:
    without = rt.Choices.from_frame(TABLE, **ROLES)
    with raises_about(BackendError, "features"):
        rt.fit(rt.MultinomialLogit(), without, seed=0, quick=quick)


def test_units_of_a_feature_change_its_coefficient_and_nothing_else(choices) -> None:
    cents = TABLE | {"price": [100 * value for value in TABLE["price"]]}
    other = rt.Choices.from_frame(cents, **ROLES, features=["price"], choosers=["age"])
    model = rt.MultinomialLogit(interactions=True)
    smaller = SITES | {"coefficient": SITES["coefficient"] / 100}
    with jax.enable_x64(True):
        one, two = (
            float(log_joint(model, data, sites))
            for data, sites in ((choices, SITES), (other, smaller))
        )
    # But for the volume of the density.
    assert two - one == pytest.approx(np.log(100.0))


def test_rows_that_pad_are_not_offered(choices) -> None:
    model = rt.MultinomialLogit(interactions=True)
    with jax.enable_x64(True):
        plain = pointwise_log_likelihood(model, choices, SITES)
        padded = pointwise_log_likelihood(model, choices.padded(16), SITES)
    np.testing.assert_allclose(padded, [*plain, *[0.0] * 13])


def test_counted_choices_are_so_many_choices() -> None:
    counted = TABLE | {"taken": [2, 1, 0, 1, 1, 3, 0]}
    choices = rt.Choices.from_frame(counted, **ROLES, counted=True)
    model, sites = rt.MultinomialLogit(features=False), {"constant": SITES["constant"]}
    with jax.enable_x64(True):
        together = pointwise_log_likelihood(model, choices, sites).sum()
        single = pointwise_log_likelihood(model, choices.single(), sites).sum()
    assert float(together) == pytest.approx(float(single))


def test_replicated_choices_are_one_of_each_set(choices, fit_quietly) -> None:
    model = rt.MultinomialLogit()
    result = fit_quietly(model, choices, rt.NUTS(draws=20, warmup=20, chains=1))
    drawn = rt.fitting.with_groups(model, result, "posterior_predictive", by="choice")
    chosen = drawn["posterior_predictive"]["chosen"]
    assert chosen.dims == ("chain", "draw", "choice", "position")
    assert (chosen.sum("position") == 1).all()
    assert (chosen.values[..., ~choices.there] == 0).all()
    by_chooser = rt.log_likelihood(model, result, by="annotator")["log_likelihood"]["chosen"]
    assert by_chooser.dims == ("chain", "draw", "annotator")
    np.testing.assert_allclose(
        by_chooser.sum("annotator"), result["log_likelihood"]["chosen"].sum("set"), rtol=1e-5
    )
    with raises_about(SettingError, "by", "alternative"):
        rt.log_likelihood(model, result, by="alternative")


# ---------------------------------------------------------------- what is refused


def with_feature(make, *others) -> rt.Choices:
    """Choices of 3 alternatives with features x, y and more, made of these and of the place of each
    alternative."""
    rng = np.random.default_rng(0)
    code = np.tile(np.arange(3), 60)
    x, y = rng.normal(size=(2, 180)).round(2) + 50 * np.repeat(rng.normal(size=60), 3)
    table = {
        "trip": np.repeat(np.arange(60), 3),
        "mode": np.array(["bus", "car", "tram"])[code],
        "taken": (code == np.repeat(rng.integers(3, size=60), 3)).astype(int),
        "x": x,
        "y": y,
    }
    more = {f"z{place}": one(x, y, code, rng) for place, one in enumerate((make, *others))}
    roles = {"set": "trip", "alternative": "mode", "chosen": "taken"}
    return rt.Choices.from_frame(table | more, **roles, features=["x", "y", *more])


@pytest.mark.parametrize("model", [rt.MultinomialLogit(), rt.MixedLogit()])
def test_collinear_features_are_named(model) -> None:
    def sentences(*makes, constants: bool = True) -> list[str]:
        own = dataclasses.replace(model, constants=constants)
        found = own.warnings(with_feature(*makes))
        return [text for text in found if "prior divides" in text]

    (twice,) = sentences(lambda x, y, code, rng: 2 * x)
    assert "the features x, z0 are exactly collinear within sets" in twice
    (summed,) = sentences(lambda x, y, code, rng: x - 0.03 * y + 1)
    assert "the features x, y, z0 are" in summed
    # What is the same within a set tells nothing.
    (level,) = sentences(lambda x, y, code, rng: x + np.repeat(np.arange(60.0), 3))
    assert "the features x, z0 are" in level
    one, two = sentences(lambda x, y, code, rng: -x, lambda x, y, code, rng: y / 7)
    assert "the features x, z0 are" in one
    assert "the features y, z1 are" in two
    for noise in (1e-2, 1e-4):
        assert not sentences(lambda x, y, code, rng, noise=noise: x + noise * rng.normal(size=180))
    (constant,) = sentences(lambda x, y, code, rng: (code == 1) * 3.0)
    assert "can take the place of the feature(s) z0," in constant
    assert not sentences(lambda x, y, code, rng: (code == 1) * 3.0, constants=False)
    (both,) = sentences(lambda x, y, code, rng: x + code)
    assert "can take the place of the feature(s) x, z0," in both


# ---------------------------------------------------------------- latent classes


def of_types(number: int = 40, each: int = 12) -> rt.Choices:
    """Choices by two types of choosers, of whom one loves a price and the other hates it."""
    rng = np.random.default_rng(0)
    rows = []
    for who in range(number):
        for trip in range(each):
            price = rng.normal(size=3)
            taken = np.argmax((2.0 if who % 2 else -2.0) * price + rng.gumbel(size=3))
            rows += [
                (who, who * each + trip, code, price[code], code == taken) for code in range(3)
            ]
    columns = ["annotator", "set", "alternative", "price", "chosen"]
    roles = {name: name for name in columns if name != "price"}
    return rt.Choices.from_frame(pd.DataFrame(rows, columns=columns), **roles, features=["price"])


def test_types_are_found(fit_quietly) -> None:
    choices = of_types()
    model = rt.models.LatentClassLogit(constants=False)
    result = fit_quietly(model, choices, rt.NUTS(draws=100, warmup=150, chains=1))
    likely = result["types"]["responsibility"].argmax("type").values
    assert len(set(likely[::2])) == len(set(likely[1::2])) == 1
    assert likely[0] != likely[1]
    slope = result.posterior["coefficient"].mean(("chain", "draw")).values[0]
    assert sorted(slope) == pytest.approx([-2.0, 2.0], abs=0.4)
    # A chooser's new choice follows their type.
    probs = rt.predict(model, result, choices).mean(("chain", "draw")).values
    assert probs[choices.chosen.ravel() == 1].mean() > 0.6
    unit = rt.log_likelihood(model, result)["log_likelihood"]["chosen"]
    assert unit.dims == ("chain", "draw", "annotator")
    assert rt.check(model, result, replicates=320).failed == []


def test_a_type_of_each_choice(choices) -> None:
    model = rt.models.LatentClassLogit(by="set", ignored=("price",), constants=False)
    sites = {"coefficient": np.array([-0.01]), "type_weight": np.array([0.7, 0.3])}
    with jax.enable_x64(True):
        own = np.asarray(pointwise_log_likelihood(model, choices, sites))
    plain = {name: np.zeros_like(value) for name, value in SITES.items()}
    attending = by_hand(choices, plain | {"coefficient": sites["coefficient"]})
    ignoring = by_hand(choices, plain)
    np.testing.assert_allclose(own, np.log(0.7 * np.exp(attending) + 0.3 * np.exp(ignoring)))
    assert rt.program.Program(model, choices).latent.names == ("look at all", "ignore price")


# ---------------------------------------------------------------- alternatives that are alike


def test_a_nest_by_hand() -> None:
    utility, scale = np.array([0.3, -0.2, 0.5]), 0.4
    within = np.exp(utility[1:] / scale)
    upper = np.array([np.exp(utility[0]), within.sum() ** scale])
    expected = np.r_[upper[0], upper[1] * within / within.sum()] / upper.sum()
    softmax = np.exp(utility) / np.exp(utility).sum()
    with jax.enable_x64(True):
        for own, probs in ((scale, expected), (1.0, softmax)):
            for nest in (jnp.array([[-1, 0, 0]]), jnp.array([[1, 0, 0]])):  # alone in one, or none
                nested = NestedChoice(jnp.asarray(utility)[None], nest, jnp.array([own, 0.3]))
                np.testing.assert_allclose(jnp.exp(nested.log_probs())[0], probs, rtol=1e-12)


def test_a_nest_of_which_little_is_offered_has_a_gradient() -> None:
    """Sets without an alternative of a nest, and positions that only pad."""
    utility = jnp.array([[0.0, 1.0, 10 * NOT_OFFERED], [2.0, 3.0, 4.0]])
    nests = jnp.array([[-1, 0, 0], [0, 0, -1]])

    def density(scale: jax.Array) -> jax.Array:
        choice = NestedChoice(utility, nests, jnp.array([scale, scale]))
        return choice.log_prob(jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).sum()

    value, slope = jax.value_and_grad(density)(jnp.array(0.5))
    assert np.isfinite(value)
    assert np.isfinite(slope)


def test_a_red_and_a_blue_bus() -> None:
    """Of three alternatives the car has the probability that two correlated normals are both
    negative."""
    with jax.enable_x64(True):
        row = jnp.zeros((1, 3))
        alike = jnp.exp(ProbitChoice(row).log_probs())[0]
        np.testing.assert_allclose(alike, 1 / 3, rtol=1e-9)
        car = []
        for size in (0.5, 2.0, 4.0, 8.0):
            probit = ProbitChoice(row, jnp.array([[0.0, size, size]]))
            mean = jnp.exp(probit.log_probs())[0]
            correlation = (size**2 + 1) / (size**2 + 2)
            exact = 0.25 + np.arcsin(correlation) / (2 * np.pi)
            np.testing.assert_allclose(mean, [exact, (1 - exact) / 2, (1 - exact) / 2], rtol=1e-3)
            car.append(float(mean[0]))
    # From a third towards one half.
    assert 1 / 3 < car[0] < car[1] < car[2] < car[3] < 0.5
    assert car[3] > 0.47


def test_two_alternatives_are_a_probit() -> None:
    gap = np.linspace(-6, 6, 13)
    utility = np.stack([gap, np.zeros(13)], axis=1)
    with jax.enable_x64(True):
        own = ProbitChoice(jnp.asarray(utility)).log_probs()[:, 0]
    np.testing.assert_allclose(own, scipy.stats.norm.logcdf(gap / np.sqrt(2)), rtol=1e-5)
