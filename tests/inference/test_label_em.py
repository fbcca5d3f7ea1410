"""Special cases of the label models that have a formula."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
from raters.program import pointwise_log_likelihood
from tests.inference.test_em import mode

pytestmark = pytest.mark.slow


# ---------------------------------------------------------------------- where there is a formula


def crowd(
    number: int = 150, features: int = 0, seed: int = 1, **options
) -> tuple[rt.Labels, np.ndarray]:
    """Labels of items whose classes are returned beside them."""
    settings = {"num_annotators": 5, "labels_per_item": 4, "num_classes": 3} | options
    labels, truth = rt.datasets.label_crowd(number, num_features=features, seed=seed, **settings)
    return labels, truth["true_class"]


def counted(labels: rt.Labels, truth: np.ndarray) -> np.ndarray:
    """Counts of each label by each annotator for items of each class, shape (annotator, true
    class, label)."""
    counts = np.zeros((labels.num_annotators, labels.num_classes, labels.num_classes))
    np.add.at(
        counts, (labels.annotator, truth[labels.item], labels.label), np.asarray(labels.weight)
    )
    return counts


def test_with_all_truths_known_confusion_is_counts(fit_quietly) -> None:
    """The observed-truth estimators (eq. 20 and 30 of the source): row-normalised counts, of each
    annotator or of all."""
    labels, truth = crowd()
    known = labels.with_truth(dict(zip(labels.items, truth.tolist(), strict=True)))
    counts = counted(labels, truth)
    flat = {"diagonal": 1.0, "off_diagonal": 1.0}
    found = mode(fit_quietly(rt.DawidSkene(**flat), known, rt.PGEM(draws=0)))
    shares = counts / counts.sum(-1, keepdims=True)
    np.testing.assert_allclose(found["confusion"], shares, atol=1e-10)
    np.testing.assert_allclose(found["prevalence"], np.bincount(truth) / len(truth), atol=1e-10)
    pooled = mode(fit_quietly(rt.models.Pooled(**flat), known, rt.PGEM(draws=0)))
    total = counts.sum(0)
    shares = total / total.sum(-1, keepdims=True)
    np.testing.assert_allclose(pooled["confusion"], shares, atol=1e-10)


# ---------------------------------------------------------------------- models within other models


def likelihood(model, data, **values) -> np.ndarray:
    """Pointwise log-likelihood; sites that are not given are as the model starts."""
    with jax.enable_x64(True):
        start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        given = {name: jnp.asarray(value, float) for name, value in values.items()}
        return np.asarray(pointwise_log_likelihood(model, data, start | given))


def right_and_even(right: np.ndarray, number: int = 3) -> np.ndarray:
    """Confusion matrices with these diagonals, mistakes spread evenly."""
    wrong = (1 - right)[..., None, None] / (number - 1) * (1 - np.eye(number))
    return right[..., None, None] * np.eye(number) + wrong


def test_models_within_other_models(labelled) -> None:
    """OneCoin, Pooled and MajorityVote are DawidSkene with tied matrices; ItemDifficulty with equal
    items is OneCoin."""
    rng = np.random.default_rng(0)
    prevalence, right = rng.dirichlet(np.ones(3)), rng.uniform(0.4, 0.95, 4)
    shared = rng.dirichlet(np.ones(3), 3)
    dawid_skene = rt.DawidSkene()
    pairs = [
        (
            likelihood(rt.models.OneCoin(), labelled, prevalence=prevalence, accuracy=right),
            prevalence,
            right_and_even(right),
        ),
        (
            likelihood(rt.models.Pooled(), labelled, prevalence=prevalence, confusion=shared),
            prevalence,
            np.tile(shared, (4, 1, 1)),
        ),
        (
            likelihood(rt.models.MajorityVote(), labelled, ability=np.log(0.7 / 0.3 * 2)),
            np.full(3, 1 / 3),
            right_and_even(np.full(4, 0.7)),
        ),
    ]
    ability = np.log(right / (1 - right)) + np.log(2)
    equal = likelihood(
        rt.models.ItemDifficulty(),
        labelled,
        prevalence=prevalence,
        ability=ability / 2,
        ease=np.full(12, 2.0),
    )
    for found, frequency, confusion in [*pairs, (equal, prevalence, right_and_even(right))]:
        expected = likelihood(dawid_skene, labelled, prevalence=frequency, confusion=confusion)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


# -------------------------------------------------------------- the algorithm that is printed wrong


def test_draws_of_sparse_counts_are_those_of_their_dirichlet(fit_quietly) -> None:
    """All truths known, eight annotators with few labels in each of twelve classes: means within
    five Monte-Carlo errors of the exact posterior (960 entries of 1,000 draws, false-alarm rate
    1e-3 in all), where a normal was off by up to .48.
    """
    labels, truth = rt.datasets.label_crowd(120, 8, 6, 12, seed=0)
    known = labels.with_truth(dict(zip(labels.items, truth["true_class"].tolist(), strict=True)))
    result = fit_quietly(rt.DawidSkene(), known, rt.PGEM())
    draws = result["posterior"]["confusion"].values[0]
    number = result.attrs.get("min_ess", len(draws))  # Resampled by weights, they count for less.
    posterior = counted(labels, truth["true_class"]) + 1 / 12 + (1 - 1 / 12) * np.eye(12)
    total = posterior.sum(-1, keepdims=True)
    exact = posterior / total
    error = np.sqrt(exact * (1 - exact) / (total + 1) / number)
    assert np.abs((draws.mean(0) - exact) / error).max() < 6.5
