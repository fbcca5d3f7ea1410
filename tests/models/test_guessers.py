"""Models of labels with types of annotators, against enumeration and against their own prior."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, dirichlet, lognorm

import raters as rt
from raters.distributions.labels import TypeMixture
from raters.inference.polya_gamma import latent_classes
from raters.kinds.labels.audit import type_probs
from raters.models.labels.guessers import ways_of_guessing
from raters.program import Program

_COLUMNS = ("item", "annotator", "label")
_MODELS = (rt.models.GuesserOneCoin(), rt.models.GuesserDawidSkene())
# For each point of the prior's quadrature and each type, the log evidence of the labels of one
# annotator, counted by true class.
Evidence = Callable[[Any, np.ndarray], np.ndarray]


def _labels(rows: list[tuple[int, int, int]], num_classes: int = 2) -> rt.Labels:
    table = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    names = {f"{name}s": range(max(table[name]) + 1) for name in ("item", "annotator")} | {
        "classes": range(num_classes)
    }
    return rt.Labels.from_frame(table, **{name: name for name in _COLUMNS}, **names)


@pytest.fixture(scope="module")
def polarised() -> rt.Labels:
    """Two who agree, one who says the opposite, and one who says anything."""
    own = ([0, 1, 0, 1, 1], [0, 1, 0, 1, 1], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1])
    return _labels([(i, a, own[a][i]) for i in range(5) for a in range(4)])


def _sequence(counts: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """Log-probability of a sequence with these counts, under probabilities from a Dirichlet."""
    after = counts + concentration
    totals = gammaln(concentration.sum(-1)) - gammaln(after.sum(-1))
    return totals + (gammaln(after) - gammaln(concentration)).sum(-1)


def _points() -> tuple[np.ndarray, np.ndarray]:
    """Mean competence and concentration at points of equal prior probability."""
    middle = (np.arange(50) + 0.5) / 50
    competence, level = (part.ravel() for part in np.meshgrid(middle, middle))
    return beta.ppf(competence, 2, 1), lognorm.ppf(level, 1, scale=10)


def _coin(model: rt.models.GuesserOneCoin, counts: np.ndarray) -> np.ndarray:
    """Evidence under one accuracy, shape (point, type)."""
    (competence, concentration), right = _points(), np.trace(counts)
    mean = np.stack([(1 + competence) / 2, np.full_like(competence, 0.5), (1 - competence) / 2])
    total = np.stack([concentration, np.full_like(competence, 200.0), concentration])
    a, b = total * mean, total * (1 - mean)
    return (betaln(a + right, b + counts.sum() - right) - betaln(a, b)).T


def _matrix(model: rt.models.GuesserDawidSkene, counts: np.ndarray) -> np.ndarray:
    """Evidence under a matrix of two classes, shape (point, type)."""
    competence, concentration = _points()

    def about(right: np.ndarray) -> np.ndarray:
        rows = np.stack([np.stack([right, 1 - right], -1), np.stack([1 - right, right], -1)], -2)
        return _sequence(counts, concentration[:, None, None] * rows).sum(-1)

    ways = 200 * ways_of_guessing(2)
    guesses = logsumexp(_sequence(counts, ways[:, None]).sum(-1)) - np.log(len(ways))
    both = about((1 + competence) / 2), about((1 - competence) / 2)
    return np.stack([both[0], np.full_like(competence, guesses), both[1]], -1)


def _exact(model: Any, labels: rt.Labels, evidence_of: Evidence) -> np.ndarray:
    """P(type) of each annotator, by enumeration of classes and types and quadrature."""
    weight = np.array([8.0, 2.0, 1.0])
    item, annotator, label = (np.asarray(getattr(labels, name)) for name in _COLUMNS)
    number = labels.num_annotators
    types = np.array(list(product(range(3), repeat=number)))
    of_types = _sequence((types[:, :, None] == np.arange(3)).sum(1), weight)
    total = np.full(len(types), -np.inf)
    for classes in product(range(2), repeat=labels.num_items):
        counts = np.zeros((number, 2, 2))
        np.add.at(counts, (annotator, np.array(classes)[item], label), 1)
        prior = _sequence(np.bincount(classes, minlength=2), np.ones(2))
        evidence = [evidence_of(model, each) for each in counts]
        each = sum(part[:, types[:, a]] for a, part in enumerate(evidence))
        total = np.logaddexp(total, prior + of_types + logsumexp(each, axis=0))
    probs = np.exp(total - logsumexp(total))
    return np.stack([[probs[types[:, a] == t].sum() for a in range(number)] for t in range(3)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "evidence"),
    [
        pytest.param(_MODELS[0], _coin, id="coin", marks=pytest.mark.exhaustive),
        pytest.param(_MODELS[1], _matrix, id="matrix", marks=pytest.mark.exhaustive),
    ],
)
def test_types_have_the_probabilities_of_enumeration(
    model, evidence, polarised, fit_quietly
) -> None:
    """Sixteen chains; false-alarm rate 1e-4 for each of twelve probabilities (|t| > 5.3 with 15
    degrees of freedom), beside the quadrature's error of about .001."""
    backend = rt.PGGibbs(draws=400, warmup=100, chains=16)
    result = fit_quietly(model, polarised, backend)
    program, posterior = Program(model, polarised), result.posterior
    chains = [
        type_probs(program, {name: posterior[name].values[chain] for name in program.sites})
        for chain in range(16)
    ]
    found = np.array([list(each.values()) for each in chains])
    error = found.std(0, ddof=1) / 4
    exact = _exact(model, polarised, evidence)
    assert np.all(np.abs(found.mean(0) - exact) < 5.3 * error + 0.002), (found.mean(0), exact)


def _drawn(model: Any, labels: rt.Labels, number: int) -> dict[str, np.ndarray]:
    """The start of a model, so often."""
    start = model.start(labels)
    return {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in start.items()}


@pytest.mark.parametrize("model", _MODELS, ids=("coin", "matrix"))
def test_types_given_classes_are_those_of_the_evidence(model, polarised) -> None:
    """Bayes' rule with the evidence in closed form, and a prior that is known."""
    classes = np.array([[0, 1, 0, 1, 1], [0, 1, 1, 1, 1]])
    program, draws = Program(model, polarised), _drawn(model, polarised, 2)
    found = type_probs(program, draws, classes)
    assert tuple(found) == ("competent", "guesser", "adversary")
    item, annotator, label = (np.asarray(getattr(polarised, name)) for name in _COLUMNS)
    mean, level = float(draws["mean_competence"][0]), float(draws["concentration"][0])
    expected = np.zeros((2, 4, 3))
    for row, codes in enumerate(classes):
        counts = np.zeros((4, 2, 2))
        np.add.at(counts, (annotator, codes[item], label), 1)
        for a in range(4):
            expected[row, a] = np.log(draws["type_weight"][0]) + _at(model, counts[a], mean, level)
    expected = np.exp(expected - logsumexp(expected, axis=-1, keepdims=True)).mean(0)
    np.testing.assert_allclose(np.stack(list(found.values()), -1), expected, rtol=1e-4)


def _at(model: Any, counts: np.ndarray, mean: float, level: float) -> np.ndarray:
    """Log evidence of each type at one point."""
    right, rows = np.array([(1 + mean) / 2, (1 - mean) / 2]), np.eye(2, dtype=bool)
    if isinstance(model, rt.models.GuesserOneCoin):
        pair = np.array([np.trace(counts), counts.sum() - np.trace(counts)])
        a, b = (_sequence(pair, level * np.array([each, 1 - each])) for each in right)
        return np.array([a, _sequence(pair, np.full(2, 100.0)), b])
    a, b = (_sequence(counts, level * np.where(rows, each, 1 - each)).sum() for each in right)
    ways = 200 * ways_of_guessing(2)
    guess = logsumexp(_sequence(counts, ways[:, None]).sum(-1)) - np.log(len(ways))
    return np.array([a, guess, b])


@pytest.mark.parametrize("model", _MODELS, ids=("coin", "matrix"))
def test_an_earlier_record_counts_as_labels_of_known_items(model, polarised) -> None:
    """Half of the labels as a record, of items whose classes are given."""
    classes = np.array([0, 1, 0, 1, 1])
    item, annotator, label = (np.asarray(getattr(polarised, name)) for name in _COLUMNS)
    earlier = item < 3
    record = np.zeros((4, 2, 2))
    np.add.at(record, (annotator[earlier], classes[item[earlier]], label[earlier]), 1)
    rest = dataclasses.replace(polarised.rows(np.flatnonzero(~earlier)), record=record)
    draws = _drawn(model, polarised, 1)
    whole = type_probs(Program(model, polarised), draws, classes[None])
    codes = classes[np.asarray(rest.unit_code)]
    parts = type_probs(Program(model, rest), draws, codes[None])
    np.testing.assert_allclose(list(parts.values()), list(whole.values()), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(_MODELS[0], id="coin"),
        pytest.param(_MODELS[1], id="matrix", marks=pytest.mark.exhaustive),
    ],
)
def test_em_never_goes_down(model, fit_quietly) -> None:
    """The density after each sweep, beyond rounding."""
    labels = rt.datasets.label_crowd(40, 10, 4, 2, spammers=0.3, adversaries=0.1, seed=2).labels
    backend = rt.PGEM(draws=0, accelerate=False)
    trace = fit_quietly(model, labels, backend)["optimisation"]["log_joint"].values
    assert len(trace) > 5
    assert np.diff(trace).min() > -1e-9 * abs(trace[-1])
    assert trace[-1] > trace[0] + 0.1


# ---------------------------------------------------------------------- the prior


def _two_rows() -> tuple[TypeMixture, np.ndarray]:
    """A mixture of three components of two types, and their concentrations."""
    concentration = np.array([[[4.0, 1.0], [1.0, 4.0]], [[9.0, 3.0], [9.0, 3.0]], [[2.0] * 2] * 2])
    component = dist.Dirichlet(jnp.array(concentration)).to_event(1)
    return TypeMixture(jnp.array([0.7, 0.3]), component, ("a", "b"), (0, 1, 1)), concentration


def test_density_is_that_of_its_components() -> None:
    """Against SciPy's densities."""
    prior, concentration = _two_rows()
    value = np.array([[0.7, 0.3], [0.4, 0.6]])
    each = [
        np.prod([dirichlet.pdf(row, alpha) for row, alpha in zip(value, part, strict=True)])
        for part in concentration
    ]
    joint = np.array([0.7, 0.15, 0.15]) * each
    assert float(prior.log_prob(jnp.array(value))) == pytest.approx(np.log(joint.sum()), rel=1e-5)
    shares = joint / joint.sum()
    found = np.asarray(prior.type_probs(jnp.array(value)))
    np.testing.assert_allclose(found, [shares[0], shares[1:].sum()], rtol=1e-4)
    coin = TypeMixture(
        jnp.array([0.6, 0.4]), dist.Beta(jnp.array([3.0, 8.0]), jnp.array([1.0, 8.0])), ("a", "b")
    )
    expected = np.log(0.6 * beta.pdf(0.3, 3, 1) + 0.4 * beta.pdf(0.3, 8, 8))
    assert float(coin.log_prob(0.3)) == pytest.approx(expected, rel=1e-5)


def test_samples_have_the_shares_and_the_support() -> None:
    """20,000 draws: mean of an entry within 5 standard errors (false-alarm rate 6e-7)."""
    prior, concentration = _two_rows()
    draws = np.asarray(prior.sample(jax.random.key(0), (20_000,)))
    assert draws.shape == (20_000, 2, 2)
    assert bool(prior.support(jnp.asarray(draws)).all())
    mean = np.einsum(
        "c,cke->ke", [0.7, 0.15, 0.15], concentration / concentration.sum(-1)[..., None]
    )
    error = draws.std(0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * error)
    assert not bool(prior.support(jnp.array([[0.7, 0.4], [0.5, 0.5]])))


@pytest.mark.parametrize("prior", ["coin", "matrix"])
def test_draws_given_counts_have_the_mean_of_the_mixture(prior: str) -> None:
    """20,000 draws for two judges: within 5 standard errors (false-alarm rate 6e-7 for each)."""
    fn, concentration = _two_rows()
    count = np.array([[[3.0, 1.0], [0.0, 2.0]], [[1.0, 9.0], [8.0, 2.0]]])
    if prior == "coin":
        concentration, count = concentration[:2, 0], count[:, 0]
        fn = TypeMixture(jnp.array([0.7, 0.3]), dist.Beta(*jnp.array(concentration.T)), ("a", "b"))
    given = tuple(map(jnp.asarray, (fn.log_weight, concentration, count)))
    keys = jax.random.split(jax.random.key(0), 20_000)
    draws = np.asarray(jax.vmap(lambda key: latent_classes.sampled(fn, given, key))(keys))
    share = np.asarray(jax.nn.softmax(latent_classes.component_log_probs(given)))
    after = concentration + count[:, None]
    mean = np.einsum("jc,jc...->j...", share, after / after.sum(-1, keepdims=True))
    mean = mean[..., 0] if prior == "coin" else mean
    assert draws.shape == (len(keys), *mean.shape)
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * draws.std(0) / np.sqrt(len(draws)))


@pytest.mark.parametrize("num_classes", [2, 3, 4, 7, 20])
def test_ways_of_guessing_cover_the_simplex(num_classes: int) -> None:
    """Distributions, all different, each class alone among them, the classes all alike."""
    ways = ways_of_guessing(num_classes)
    np.testing.assert_allclose(ways.sum(1), 1)
    assert len(np.unique(ways.round(9), axis=0)) == len(ways) <= 300
    assert np.all(ways.max(0) > 0.97)
    np.testing.assert_allclose(ways.mean(0), 1 / num_classes)
