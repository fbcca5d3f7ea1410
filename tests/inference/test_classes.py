"""Latent classes in a sweep: counts read from a program, the classifier's rows, and claims that are
refused."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import chisquare, gamma, kstest

import raters as rt
from raters.distributions import ConfusedLabel, GroupedMixture
from raters.distributions.labels import RightOrWrongLabel
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import augmentation, latent_classes


@pytest.fixture(autouse=True)
def _wide():
    """float64 inside the tests."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def data(labelled) -> rt.Labels:
    """With a record of who said what of earlier items."""
    past = np.random.default_rng(3).integers(0, 4, (4, 3, 3)).astype(np.float32)
    return dataclasses.replace(labelled, record=past)


@pytest.fixture(scope="module")
def classes(data) -> np.ndarray:
    """Probabilities of the classes of each item, the known ones known."""
    drawn = np.random.default_rng(4).dirichlet(np.ones(3), 12)
    known = np.flatnonzero(data.truth >= 0)
    drawn[known] = np.eye(3)[data.truth[known]]
    return drawn


def label_counts(data, classes) -> np.ndarray:
    """Counts of each label by each annotator for items of each class, shape (annotator, true
    class, label)."""
    counts = np.zeros((4, 3, 3))
    for row in range(data.num_rows):
        weight = data.count[row] * classes[data.group[row]]
        counts[data.annotator[row], :, data.label[row]] += weight
    return counts


def right_counts(data, classes) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong labels of each annotator."""
    counts = label_counts(data, classes)
    right = np.einsum("akk->a", counts)
    return right, counts.sum((1, 2)) - right


def read(model, data, classes, site: str) -> tuple[np.ndarray, ...]:
    """The parameters of a site's conditional, read from the program."""
    start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
    found = latent_classes.parameters(model, data, start, jnp.asarray(classes), site)
    return tuple(map(np.asarray, found))


def test_confusion_counts_labels_after_prior_and_record(data, classes) -> None:
    prior = 0.5 + 3.5 * np.eye(3)
    expected = prior + data.record + label_counts(data, classes)
    model = rt.DawidSkene(diagonal=4.0, off_diagonal=0.5)
    np.testing.assert_allclose(read(model, data, classes, "confusion")[0], expected, rtol=1e-9)
    pooled = read(rt.models.Pooled(diagonal=4.0, off_diagonal=0.5), data, classes, "confusion")[0]
    summed = prior + (data.record + label_counts(data, classes)).sum(0)
    np.testing.assert_allclose(pooled, summed, rtol=1e-9)


def test_accuracies_count_right_and_wrong(data, classes) -> None:
    right, wrong = right_counts(data, classes)
    past_right = np.einsum("akk->a", data.record)
    past_wrong = data.record.sum((1, 2)) - past_right
    one, other = read(rt.models.OneCoin(right=3.0, wrong=0.5), data, classes, "accuracy")
    np.testing.assert_allclose(one, 3.0 + past_right + right, rtol=1e-9)
    np.testing.assert_allclose(other, 0.5 + past_wrong + wrong, rtol=1e-9)


def test_classes_are_drawn_as_often_as_they_are_probable() -> None:
    """Impossible ones never. False alarm: 1e-4."""
    probs = np.array([0.0, 0.2, 0.5, 0.3, 0.0])
    logits = jnp.broadcast_to(jnp.log(probs), (40_000, 5))
    counts = np.bincount(latent_classes.categorical(jax.random.key(0), logits), minlength=5)
    assert counts[probs == 0].sum() == 0
    assert chisquare(counts[1:4], 40_000 * probs[1:4]).pvalue > 1e-4


@pytest.mark.parametrize("shape", [0.2, 1.0, 40.0])
def test_gamma_variables_have_their_distribution(shape: float) -> None:
    """False alarm: 1e-4 each."""
    drawn = augmentation.gamma(jax.random.key(1), jnp.full(20_000, shape))
    assert kstest(drawn, gamma(shape).cdf).pvalue > 1e-4


SUMMED_OUT = {"unit": "item", "latent_class": "true_class"}


@dataclass(frozen=True)
class Written(rt.Model[rt.Labels]):
    """Confusion matrices whose prior is written in one of several ways, and which enter by a
    power."""

    way: str = "plates"
    power: float = 1.0

    blocks = (("confusion",),)

    def start(self, data):
        return {"confusion": np.full((4, 3, 3), 1 / 3)}

    def generate(self, data):
        row, dims = dist.Dirichlet(jnp.array([2.0, 1.0, 0.5])), {"event_dims": ["label"]}
        if self.way == "plates":
            with numpyro.plate("annotator", 4, dim=-2), numpyro.plate("true_class", 3, dim=-1):
                confusion = numpyro.sample("confusion", row, infer=dims)
        elif self.way == "expanded, then an event":
            dims = {"event_dims": ["annotator", "true_class", "label"]}
            confusion = numpyro.sample("confusion", row.expand([4, 3]).to_event(2), infer=dims)
        else:
            with numpyro.plate("annotator", 4):
                dims = {"event_dims": ["true_class", "label"]}
                confusion = numpyro.sample("confusion", row.expand([3]).to_event(1), infer=dims)
        confusion = confusion**self.power
        confusion = confusion if self.power == 1 else confusion / confusion.sum(-1, keepdims=True)
        even = dist.Categorical(probs=jnp.full(3, 1 / 3))
        label = ConfusedLabel(confusion, data.annotator)
        mixed = GroupedMixture(even, label, data.group, data.num_units, data.count, data.truth)
        numpyro.sample("label", mixed, obs=data.label, infer=SUMMED_OUT)


@pytest.mark.parametrize("way", ["plates", "expanded, then an event", "an event within a plate"])
def test_priors_are_read_however_they_are_written(way, labelled, classes) -> None:
    expected = np.array([2.0, 1.0, 0.5]) + label_counts(labelled, classes)
    (found,) = read(Written(way), labelled, classes, "confusion")
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@dataclass(frozen=True)
class Coin(rt.Model[rt.Labels]):
    """One accuracy for each annotator, right with its log-odds or twice as many."""

    times: float = 1.0

    blocks = (("accuracy",),)

    def start(self, data):
        return {"accuracy": np.full(4, 0.7)}

    def generate(self, data):
        with numpyro.plate("annotator", 4):
            accuracy = numpyro.sample("accuracy", dist.Beta(2.0, 1.0))
        odds = self.times * (jnp.log(accuracy) - jnp.log1p(-accuracy))
        label = RightOrWrongLabel(odds[data.annotator][:, None], 3)
        even = dist.Categorical(probs=jnp.full(3, 1 / 3))
        mixed = GroupedMixture(even, label, data.group, data.num_units, data.count, data.truth)
        numpyro.sample("label", mixed, obs=data.label, infer=SUMMED_OUT)


@pytest.mark.parametrize("model", [Written(power=2.0), Coin(times=2.0)], ids=["Dirichlet", "Beta"])
def test_probabilities_that_are_not_counted_are_refused(model, labelled) -> None:
    with pytest.raises(
        NotConjugateError,
        match=r"block .* of (Written|Coin) .* not that of counts.* differ by [\d.]+",
    ):
        rt.fit(
            model,
            labelled.without_features(),
            rt.PGGibbs(draws=5, warmup=0, chains=1),
            seed=0,
            progress=False,
        )
