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

import raters as rt
from raters.distributions import ConfusedLabel, GroupedMixture
from raters.distributions.labels import RightOrWrongLabel
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.rows import Block, rows_of
from raters.program import trace


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
        counts[data.annotator[row], :, data.label[row]] += (
            data.count[row] * classes[data.group[row]]
        )
    return counts


def right_counts(data, classes) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong labels of each annotator."""
    counts = label_counts(data, classes)
    right = np.einsum("akk->a", counts)
    return right, counts.sum((1, 2)) - right


def read(model, data, classes, site: str) -> tuple[np.ndarray, ...]:
    """The parameters of a site's conditional, read from the program."""
    start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
    return tuple(
        np.asarray(part)
        for part in latent_classes.parameters(model, data, start, jnp.asarray(classes), site)
    )


def test_prevalence_counts_the_classes(data, classes) -> None:
    for model, prior in ((rt.DawidSkene(prevalence=1.5), 1.5), (rt.models.OneCoin(), 1.0)):
        np.testing.assert_allclose(
            read(model, data, classes, "prevalence")[0], prior + classes.sum(0), rtol=1e-10
        )


def test_confusion_counts_labels_after_prior_and_record(data, classes) -> None:
    prior = 0.5 + 3.5 * np.eye(3)
    expected = prior + data.record + label_counts(data, classes)
    model = rt.DawidSkene(diagonal=4.0, off_diagonal=0.5)
    np.testing.assert_allclose(read(model, data, classes, "confusion")[0], expected, rtol=1e-9)
    pooled = read(rt.models.Pooled(diagonal=4.0, off_diagonal=0.5), data, classes, "confusion")[0]
    np.testing.assert_allclose(
        pooled, prior + (data.record + label_counts(data, classes)).sum(0), rtol=1e-9
    )


def test_the_crowd_takes_the_place_of_the_prior(data, classes) -> None:
    model = rt.HierarchicalDawidSkene()
    crowd = 4.0 * np.asarray(model.start(data)["crowd"])
    expected = crowd + data.record + label_counts(data, classes)
    np.testing.assert_allclose(read(model, data, classes, "confusion")[0], expected, rtol=1e-9)


def test_accuracies_count_right_and_wrong(data, classes) -> None:
    right, wrong = right_counts(data, classes)
    past_right = np.einsum("akk->a", data.record)
    past_wrong = data.record.sum((1, 2)) - past_right
    one, other = read(rt.models.OneCoin(right=3.0, wrong=0.5), data, classes, "accuracy")
    np.testing.assert_allclose(one, 3.0 + past_right + right, rtol=1e-9)
    np.testing.assert_allclose(other, 0.5 + past_wrong + wrong, rtol=1e-9)


def test_mistakes_count_where_they_go(labelled, classes) -> None:
    counts = label_counts(labelled, classes)
    wrong = np.stack([np.delete(counts[:, true], true, axis=-1) for true in range(3)], axis=1)
    np.testing.assert_allclose(
        read(rt.models.Yan(), labelled, classes, "wrong")[0], 1 + wrong, rtol=1e-10
    )


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
    np.testing.assert_allclose(
        read(Written(way), labelled, classes, "confusion")[0], expected, rtol=1e-10
    )


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


def test_an_expanded_beta_is_read(labelled, classes) -> None:
    right, wrong = right_counts(labelled, classes)
    one, other = read(Coin(), labelled, classes, "accuracy")
    np.testing.assert_allclose(one, 2 + right, rtol=1e-10)
    np.testing.assert_allclose(other, 1 + wrong, rtol=1e-10)


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


@pytest.mark.parametrize("column", range(3))
def test_one_class_at_a_time_is_the_multinomial_logit(column, labelled, classes) -> None:
    """Along one class's coefficients, Σ κψ − n log 2cosh(ψ/2) is Σ E log softmax, but for a
    constant."""
    model, rng = rt.Raykar(), np.random.default_rng(5)
    values = {name: jnp.asarray(value, float) for name, value in model.start(labelled).items()}
    values["coefficient"] = jnp.asarray(rng.normal(size=(3, 3)))
    rows = rows_of(
        model, labelled, values, Block(("coefficient",), "class", column), jnp.asarray(classes)
    )

    def by_rows(coefficient):
        logits = rows.offset + rows.weight @ coefficient[:, column]
        return float((rows.kappa * logits - rows.votes * jnp.log(2 * jnp.cosh(logits / 2))).sum())

    def by_softmax(coefficient):
        return float((classes * jax.nn.log_softmax(labelled.features @ coefficient)).sum())

    places = [np.array(values["coefficient"]) for _ in range(3)]
    for place in places[1:]:
        place[:, column] += rng.normal(size=3)
    for place in places[1:]:
        expected = by_softmax(place) - by_softmax(places[0])
        assert by_rows(place) - by_rows(places[0]) == pytest.approx(expected, abs=1e-10)


def test_classes_are_drawn_as_often_as_they_are_probable(labelled) -> None:
    """4,000 draws of the classes of 12 items; false-alarm rate 1e-5 for each share."""
    model = rt.DawidSkene()
    values = {name: jnp.asarray(value, float) for name, value in model.start(labelled).items()}
    expected, total = latent_classes.expected(model, labelled, values)
    keys = jax.random.split(jax.random.key(0), 4000)
    shares = np.asarray(
        jax.lax.map(lambda key: latent_classes.drawn(model, labelled, values, key), keys).mean(0)
    )
    expected = np.asarray(expected)
    assert (
        np.abs(shares - expected) <= 4.42 * np.sqrt(expected * (1 - expected) / 4000) + 1e-4
    ).all()
    site = trace(model, labelled, values)["label"]
    assert float(total) == pytest.approx(float(site["fn"].log_prob(site["value"]).sum()))


@pytest.mark.parametrize("in_logs", [False, True])
def test_the_mode_of_counts(in_logs) -> None:
    """(α − 1) / Σ(α − 1), or α / Σα in logarithmic coordinates; kept off 0; as before where nothing
    is said."""
    concentration = np.array([[3.0, 2.0, 1.5], [1.0, 4.0, 0.5], [1.0, 1.0, 1.0]])
    found = latent_classes.Counts((concentration,), in_logs).mode(np.full(9, 1 / 3)).reshape(3, 3)
    less = 0.0 if in_logs else 1.0
    np.testing.assert_allclose(
        found[0], (concentration[0] - less) / (concentration[0] - less).sum()
    )
    np.testing.assert_allclose(found[2], 1 / 3)
    assert (found > 0).all()
    if not in_logs:
        np.testing.assert_allclose(found[1], [0, 1, 0], atol=1e-11)
    right = latent_classes.Counts((np.array([3.0]), np.array([2.0])), in_logs).mode(np.array([0.5]))
    np.testing.assert_allclose(right, 3 / 5 if in_logs else 2 / 3)
