"""Distributions against sums written out by hand."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import binom, norm

from raters.distributions import ConfusedLabel, GroupedMixture, Votes
from raters.distributions.labels import RightOrWrongLabel

_RNG = np.random.default_rng(0)
_CLASSES = 3
# Items with 3, 1, 0, 4 and 2 rows; the last row only pads.
_GROUP = np.array([0, 0, 0, 1, 3, 3, 3, 3, 4, 4])
_WHO = _RNG.integers(2, size=10)
_SAID = _RNG.integers(_CLASSES, size=10)
_COUNT = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.0])
_KNOWN = np.array([-1, -1, -1, 2, -1])
_PREVALENCE = _RNG.dirichlet(np.ones(_CLASSES))
_BY_GROUP = _RNG.dirichlet(np.ones(_CLASSES), 5)
_CONFUSION = _RNG.dirichlet(np.ones(_CLASSES), (2, _CLASSES))
_WRONG = _RNG.dirichlet(np.ones(_CLASSES - 1), (2, _CLASSES))
_LOGITS = _RNG.normal(size=(10, _CLASSES))


def _right_or_wrong(row: int, true: int, said: int) -> float:
    right = 1 / (1 + np.exp(-_LOGITS[row, true]))
    others = [label for label in range(_CLASSES) if label != true]
    return right if said == true else (1 - right) * _WRONG[_WHO[row], true, others.index(said)]


_COMPONENTS = {
    "confusion matrix": (
        lambda: ConfusedLabel(jnp.asarray(_CONFUSION), jnp.asarray(_WHO)),
        lambda row, true, said: _CONFUSION[_WHO[row], true, said],
    ),
    "right or wrong": (
        lambda: RightOrWrongLabel(
            jnp.asarray(_LOGITS), _CLASSES, jnp.asarray(_WRONG), jnp.asarray(_WHO)
        ),
        _right_or_wrong,
    ),
    "right or evenly wrong": (
        lambda: RightOrWrongLabel(jnp.asarray(_LOGITS[:, :1]), _CLASSES),
        lambda row, true, said: (
            1 / (1 + np.exp(-_LOGITS[row, 0]))
            if said == true
            else 1 / (1 + np.exp(_LOGITS[row, 0])) / (_CLASSES - 1)
        ),
    ),
}
_MIXINGS = {
    "one prevalence": (
        lambda: dist.Categorical(probs=jnp.asarray(_PREVALENCE)),
        np.tile(_PREVALENCE, (5, 1)),
    ),
    "a prevalence for each group": (
        lambda: dist.Categorical(probs=jnp.asarray(_BY_GROUP)),
        _BY_GROUP,
    ),
    "log-odds, not normalised": (
        lambda: dist.Categorical(logits=jnp.log(jnp.asarray(_BY_GROUP)) + 1.3),
        _BY_GROUP,
    ),
}


@pytest.fixture(autouse=True)
def _wide():
    """float64 inside the tests."""
    with jax.enable_x64(True):
        yield


def joint_by_hand(mixing: str, component: str, known: np.ndarray | None) -> np.ndarray:
    """Probability of each class with the rows of each group, one product at a time."""
    chance = _COMPONENTS[component][1]
    joint = _MIXINGS[mixing][1].copy()
    for group, true in itertools.product(range(5), range(_CLASSES)):
        for row in np.flatnonzero(group == _GROUP):
            joint[group, true] *= chance(row, true, _SAID[row]) ** _COUNT[row]
        if known is not None and known[group] not in (-1, true):
            joint[group, true] = 0.0
    return joint


def mixture(mixing: str, component: str, known: np.ndarray | None) -> GroupedMixture:
    given = None if known is None else jnp.asarray(known)
    parts = _MIXINGS[mixing][0](), _COMPONENTS[component][0]()
    return GroupedMixture(*parts, jnp.asarray(_GROUP), 5, jnp.asarray(_COUNT), given)


@pytest.mark.parametrize("known", [None, _KNOWN], ids=["no truth", "a truth"])
@pytest.mark.parametrize("component", _COMPONENTS)
@pytest.mark.parametrize("mixing", _MIXINGS)
def test_mixture_is_the_sum_over_classes(mixing: str, component: str, known) -> None:
    joint, fn = joint_by_hand(mixing, component, known), mixture(mixing, component, known)
    said, share = jnp.asarray(_SAID), joint / joint.sum(1, keepdims=True)
    np.testing.assert_allclose(fn.log_prob(said), np.log(joint.sum(1)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fn.responsibilities(said), share, atol=1e-12)


def test_rows_that_pad_change_nothing() -> None:
    fn = mixture("one prevalence", "confusion matrix", None)
    other = _SAID.copy()
    other[-1] = (other[-1] + 1) % _CLASSES
    assert np.array_equal(fn.log_prob(jnp.asarray(_SAID)), fn.log_prob(jnp.asarray(other)))
    part = GroupedMixture(
        fn.mixing_distribution,
        ConfusedLabel(jnp.asarray(_CONFUSION), jnp.asarray(_WHO[:-1])),
        jnp.asarray(_GROUP[:-1]),
        5,
        jnp.asarray(_COUNT[:-1]),
    )
    expected = fn.log_prob(jnp.asarray(_SAID))
    np.testing.assert_allclose(part.log_prob(jnp.asarray(_SAID[:-1])), expected, atol=1e-12)


def test_a_group_may_stand_for_several() -> None:
    """The likelihood, its slope and the expected classes are those of the groups written out."""
    rng = np.random.default_rng(0)
    weights = dist.Categorical(probs=jnp.array([0.3, 0.7]))
    group, repeats = np.array([0, 0, 1]), np.array([1.0, 3.0])
    written = np.array([0, 0, 1, 2, 3])
    rows = np.array([0, 1, 2, 2, 2])
    value = jnp.array([1.0, 0.0, 1.0])

    def counted(logits):
        parts = weights, dist.Bernoulli(logits=logits), jnp.asarray(group), 2
        return GroupedMixture(*parts, repeats=jnp.asarray(repeats))

    def written_out(logits):
        parts = weights, dist.Bernoulli(logits=logits[rows]), jnp.asarray(written), 4
        return GroupedMixture(*parts)

    logits = jnp.asarray(rng.normal(size=(3, 2)))
    one, other = counted(logits), written_out(logits)
    total, classes = other.log_prob(value[rows]).sum(), other.expected_classes(value[rows]).sum(0)
    np.testing.assert_allclose(one.log_prob(value).sum(), total, rtol=1e-6)
    np.testing.assert_allclose(one.expected_classes(value).sum(0), classes, rtol=1e-6)
    slope, slope_of_all = (
        jax.grad(lambda logits, make=make, y=y: make(logits).log_prob(y).sum())(logits)
        for make, y in ((counted, value), (written_out, value[rows]))
    )
    np.testing.assert_allclose(slope, slope_of_all, rtol=1e-5)
    np.testing.assert_allclose(counted(logits).responsibilities(value).sum(1), 1, rtol=1e-6)


@pytest.mark.parametrize("component", _COMPONENTS)
def test_labels_are_drawn_as_often_as_they_are_probable(component: str) -> None:
    """20,000 draws of each row under each class; false-alarm rate 1e-6 for each of 90 counts."""
    fn = _COMPONENTS[component][0]()
    drawn = np.asarray(fn.sample(jax.random.key(0), (20_000,)))
    assert drawn.shape == (20_000, 10, _CLASSES)
    for label in range(_CLASSES):
        probability = np.exp(np.asarray(fn.log_prob(jnp.full((10, 1), label))))
        count = (drawn == label).sum(0)
        assert (binom.cdf(count, 20_000, probability) > 5e-7).all()
        assert (binom.sf(count - 1, 20_000, probability) > 5e-7).all()


def test_classes_and_labels_are_drawn_together() -> None:
    """40,000 draws: classes as often as the prior has them, the known one always, and labels given
    the class; false-alarm rate 1e-6 for each count."""
    number = 40_000
    fn = mixture("a prevalence for each group", "confusion matrix", _KNOWN)
    value, (classes,) = fn.sample_with_intermediates(jax.random.key(1), (number,))
    value, classes = np.asarray(value), np.asarray(classes)
    assert value.shape == (number, 10)
    assert classes.shape == (number, 5)
    assert (classes[:, 3] == 2).all()
    bound = norm.isf(5e-7)
    for group, true in itertools.product((0, 1, 2, 4), range(_CLASSES)):
        share = _BY_GROUP[group, true]
        assert abs((classes[:, group] == true).mean() - share) < bound * np.sqrt(
            share * (1 - share) / number
        )
    for row, true in itertools.product(range(10), range(_CLASSES)):
        these = value[classes[:, _GROUP[row]] == true, row]
        for label in range(_CLASSES) if len(these) else ():
            chance = _CONFUSION[_WHO[row], true, label]
            assert (
                abs((these == label).mean() - chance)
                < bound * np.sqrt(chance * (1 - chance) / len(these)) + 1e-9
            )
    assert np.array_equal(value, fn.sample(jax.random.key(1), (number,)))


def test_expected_log_prob_averages_over_classes_and_takes_a_zero_for_nothing() -> None:
    """A class that was not drawn may have rows of probability 0: its term is 0."""
    fn = mixture("a prevalence for each group", "confusion matrix", None)
    weights = _RNG.dirichlet(np.ones(_CLASSES), 5)
    by_class = [
        float(
            fn.expected_log_prob(
                jnp.asarray(_SAID), jnp.zeros((5, _CLASSES)).at[group, true].set(1.0)
            )
        )
        for group, true in itertools.product(range(5), range(_CLASSES))
    ]
    assert float(fn.expected_log_prob(jnp.asarray(_SAID), jnp.asarray(weights))) == pytest.approx(
        weights.ravel() @ by_class
    )

    never = jnp.asarray(_CONFUSION[:1]).at[0, 1].set(jnp.array([0.0, 0.5, 0.5]))
    row = ConfusedLabel(never, jnp.zeros(1, int))
    one = GroupedMixture(
        dist.Categorical(probs=jnp.asarray(_PREVALENCE)), row, jnp.zeros(1, int), 1
    )
    found = float(one.expected_log_prob(jnp.array([0]), jnp.array([[1.0, 0.0, 0.0]])))
    assert found == pytest.approx(np.log(_PREVALENCE[0] * _CONFUSION[0, 0, 0]))


@pytest.mark.parametrize("component", _COMPONENTS)
def test_the_slope_is_finite_where_a_class_is_known(component: str) -> None:
    def total(mixing):
        fn = mixture("one prevalence", component, _KNOWN)
        parts = dist.Categorical(probs=mixing), fn.component_distribution
        return (
            GroupedMixture(*parts, fn.group, 5, fn.count, fn.known)
            .log_prob(jnp.asarray(_SAID))
            .sum()
        )

    slope = np.asarray(jax.grad(total)(jnp.asarray(_PREVALENCE)))
    assert np.isfinite(slope).all()
    # Fisher's identity: expected classes over probabilities.
    expected = joint_by_hand("one prevalence", component, _KNOWN)
    counts = (expected / expected.sum(1, keepdims=True)).sum(0)
    np.testing.assert_allclose(slope, counts / _PREVALENCE, rtol=1e-10)


def test_distributions_cross_the_border_of_a_compiled_function() -> None:
    fn = mixture("one prevalence", "right or wrong", _KNOWN)
    inside = jax.jit(lambda fn, value: fn.log_prob(value))(fn, jnp.asarray(_SAID))
    np.testing.assert_allclose(inside, fn.log_prob(jnp.asarray(_SAID)), atol=1e-12)


def test_votes_take_halves_and_are_binomial_on_whole_numbers() -> None:
    logits, total = 0.7, 5
    fn = Votes(logits=logits, total_count=total)
    chance = 1 / (1 + np.exp(-logits))
    for wins in range(total + 1):
        assert float(fn.log_prob(wins)) == pytest.approx(
            binom.logpmf(wins, total, chance), rel=1e-9
        )
    between = float(fn.log_prob(2.5))
    assert min(float(fn.log_prob(2)), float(fn.log_prob(3))) < between
    assert bool(fn.support(2.5))
    assert not bool(fn.support(5.5))


def test_votes_have_the_slopes_of_a_binomial() -> None:
    with jax.enable_x64(True):
        logits, wins = jnp.linspace(-40.0, 30.0, 8), jnp.array([0.0, 7.0] * 4)

        def slopes(family: type) -> tuple[jax.Array, jax.Array]:
            slope = jax.grad(lambda at: family(logits=at, total_count=7.0).log_prob(wins).sum())
            return jax.jvp(slope, (logits,), (jnp.ones_like(logits),))

        for own, other in zip(slopes(Votes), slopes(dist.BinomialLogits), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
