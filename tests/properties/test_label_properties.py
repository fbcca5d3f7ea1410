"""What must hold for any table of labels."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import Categorical
from scipy.special import logsumexp

import raters as rt
from raters.distributions import ConfusedLabel, GroupedMixture
from tests import hand

ITEMS = ["a", "b", "c", "d"]
PEOPLE = ["x", "y", "z"]
CLASSES = ["no", "maybe", "yes"]
SETTINGS = settings(deadline=None, max_examples=60)

row = st.tuples(st.sampled_from(ITEMS), st.sampled_from(PEOPLE), st.sampled_from(CLASSES))
rows = st.lists(row, min_size=1, max_size=30)
truths = st.dictionaries(st.sampled_from(ITEMS), st.sampled_from(CLASSES), max_size=3)

_RNG = np.random.default_rng(0)
PREVALENCE = _RNG.dirichlet(np.ones(3))
CONFUSION = _RNG.dirichlet(np.ones(3), (3, 3))


def read(rows, known=None, **options) -> rt.Labels:
    """Labels with all names declared."""
    names = {"items": ITEMS, "annotators": PEOPLE, "classes": CLASSES}
    labels = hand.labels(*rows, **names, **options)
    return labels.with_truth(known) if known else labels


def by_hand(rows, known) -> dict[str, float]:
    """Log-likelihood of each item, label by label and class by class."""
    found = {}
    for item in ITEMS:
        log_joint = np.log(PREVALENCE)
        for of, who, says in rows:
            if of == item:
                log_joint = log_joint + np.log(CONFUSION[PEOPLE.index(who), :, CLASSES.index(says)])
        found[item] = (
            log_joint[CLASSES.index(known[item])] if item in known else logsumexp(log_joint)
        )
    return found


def pointwise(labels: rt.Labels):
    """The same of the container, as the models of labels compute it."""
    component = ConfusedLabel(jnp.asarray(CONFUSION), jnp.asarray(labels.annotator))
    group, count, truth = (
        None if part is None else jnp.asarray(part)
        for part in (labels.group, labels.count, labels.truth)
    )
    mixed = GroupedMixture(
        Categorical(probs=jnp.asarray(PREVALENCE)), component, group, labels.num_units, count, truth
    )
    return mixed.log_prob(jnp.asarray(labels.label))


@pytest.mark.slow
@SETTINGS
@given(rows, truths, st.booleans())
def test_likelihood_is_that_of_the_table(rows, known, aggregate) -> None:
    expected = by_hand(rows, known)
    found = np.asarray(pointwise(read(rows, known, aggregate=aggregate)))
    np.testing.assert_allclose(found, [expected[item] for item in ITEMS], rtol=1e-4, atol=1e-4)


@SETTINGS
@given(rows, truths, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, known, random) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = read(rows, known), read(shuffled, known)
    for field in dataclasses.fields(one):
        assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


@pytest.mark.slow
@SETTINGS
@given(rows, truths, st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_parts_have_the_likelihood_of_their_items(rows, known, units) -> None:
    labels = read(rows, known)
    whole = np.asarray(pointwise(labels))
    np.testing.assert_allclose(
        pointwise(labels.take(np.array(units))), whole[units], rtol=1e-5, atol=1e-5
    )


def test_parts_taken_in_a_compiled_function_are_padded_with_nothing() -> None:
    """As mini-batches of SVI are; over 20 random tables of one shape."""
    rng = np.random.default_rng(1)
    taken = jax.jit(lambda labels, units: pointwise(labels.take(units)))
    for _ in range(20):
        table = [
            (ITEMS[i], PEOPLE[rng.integers(3)], CLASSES[rng.integers(3)])
            for i in (0, 0, 0, 1, 3, 3)
        ]
        labels, units = read(table, {"d": "yes"}, aggregate=False), rng.integers(0, 4, 3)
        expected = np.asarray(pointwise(labels))[units]
        np.testing.assert_allclose(
            taken(jax.tree.map(jnp.asarray, labels), units), expected, rtol=1e-5, atol=1e-5
        )


@SETTINGS
@given(rows)
def test_votes_are_counts_of_the_table(rows) -> None:
    labels = read(rows)
    expected = [
        [sum((item, says) == (of, said) for of, _, said in rows) for says in CLASSES]
        for item in ITEMS
    ]
    assert labels.votes().tolist() == expected
    assert labels.num_labels == len(rows)
    assert labels.judgements_by("annotator").tolist() == [
        sum(person == who for _, who, _ in rows) for person in PEOPLE
    ]
    assert labels.unanswered().num_rows == len(rows)
