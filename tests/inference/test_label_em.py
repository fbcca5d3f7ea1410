"""EM of the label models: the objective never falls, the end is an optimum, and the special cases
that have a formula."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from scipy.optimize import minimize

import raters as rt
from raters.inference.polya_gamma import sweep
from raters.program import Program, log_joint, pointwise_log_likelihood

pytestmark = pytest.mark.slow

_MODELS = (
    rt.models.MajorityVote(),
    rt.models.Pooled(),
    rt.models.OneCoin(),
    rt.DawidSkene(),
    rt.DawidSkene(diagonal=3.0, off_diagonal=1.0),
    rt.HierarchicalDawidSkene(),
    rt.models.ItemDifficulty(),
    rt.Raykar(),
    rt.models.Yan(),
)
_EM = {"accelerated": rt.PGEM(draws=0), "plain": rt.PGEM(draws=0, accelerate=False)}


def mode(result) -> dict[str, np.ndarray]:
    """The mode as arrays."""
    return {name: value.values for name, value in result["mode"].data_vars.items()}


def optimum(model, data, reached) -> tuple[float, float]:
    """EM's objective at the mode that it reached, and at the best end of L-BFGS-B from there and
    from two places near it.

    The density in the model's coordinates, but in logarithmic ones where a concentration below 1
    asks for it; hyper-parameters are held.
    """
    program = Program(model, data)
    plan = sweep.plan(
        program, {name: np.asarray(value, float) for name, value in model.start(data).items()}
    )
    sites = {name: site for name, site in program.sites.items() if name not in plan.hyper}
    held = {name: reached[name] for name in plan.hyper}

    def density(place):
        values = held | {name: biject_to(site.support)(place[name]) for name, site in sites.items()}
        total = log_joint(model, data, values)
        for name in plan.in_logs:
            simplex = sites[name].support is constraints.simplex
            total += jnp.log(values[name]).sum() + (
                0.0 if simplex else jnp.log1p(-values[name]).sum()
            )
        return total

    begin, unravel = ravel_pytree(
        {
            name: biject_to(site.support).inv(jnp.asarray(reached[name]))
            for name, site in sites.items()
        }
    )
    slope = jax.jit(jax.value_and_grad(lambda flat: -density(unravel(flat))))

    def loss(flat):
        return tuple(np.asarray(part, float) for part in slope(jnp.asarray(flat)))

    rng = np.random.default_rng(0)
    starts = [
        np.asarray(begin) + spread * rng.normal(size=begin.shape) for spread in (0.0, 0.1, 0.1)
    ]
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9}
    bounds = [(-40.0, 40.0)] * begin.size
    ends = [
        minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        for start in starts
    ]
    return -loss(starts[0])[0], -min(end.fun for end in ends)


@pytest.mark.parametrize("variant", _EM)
@pytest.mark.parametrize("model", _MODELS, ids=repr)
def test_objective_never_falls_and_ends_at_an_optimum(
    model, variant, labelled, fit_quietly
) -> None:
    result = fit_quietly(model, labelled, _EM[variant])
    trace = result["optimisation"]["log_joint"].values
    assert len(trace) > 1
    assert np.diff(trace).min() > -1e-9 * (1 + np.abs(trace).max())
    if variant == "plain" and not isinstance(model, rt.DawidSkene):
        return
    with jax.enable_x64(True):
        reached, best = optimum(model, labelled, mode(result))
    assert reached == pytest.approx(result.attrs["log_joint"], abs=1e-6)
    # The tolerance is on the gain of a cycle, which EM repeats while it creeps.
    assert best - reached < 1e-3


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
    found = mode(
        fit_quietly(rt.DawidSkene(diagonal=1.0, off_diagonal=1.0), known, rt.PGEM(draws=0))
    )
    np.testing.assert_allclose(
        found["confusion"], counts / counts.sum(-1, keepdims=True), atol=1e-10
    )
    np.testing.assert_allclose(found["prevalence"], np.bincount(truth) / len(truth), atol=1e-10)
    pooled = mode(
        fit_quietly(rt.models.Pooled(diagonal=1.0, off_diagonal=1.0), known, rt.PGEM(draws=0))
    )
    total = counts.sum(0)
    np.testing.assert_allclose(
        pooled["confusion"], total / total.sum(-1, keepdims=True), atol=1e-10
    )


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


def test_yan_without_tilt_is_raykar(labelled) -> None:
    rng = np.random.default_rng(1)
    coefficient, sensitivity = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    wrong = rng.dirichlet(np.ones(2), (4, 3))
    confusion = np.zeros((4, 3, 3))
    right = 1 / (1 + np.exp(-sensitivity))
    for annotator, true in np.ndindex(4, 3):
        confusion[annotator, true] = np.insert(
            (1 - right[annotator, true]) * wrong[annotator, true], true, 0.0
        )
        confusion[annotator, true, true] = right[annotator, true]
    level = {"coefficient": coefficient, "sensitivity": sensitivity, "wrong": wrong}
    found = likelihood(rt.models.Yan(), labelled, **level, tilt=np.zeros((4, 3)))
    expected = likelihood(rt.Raykar(), labelled, coefficient=coefficient, confusion=confusion)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    tilted = likelihood(rt.models.Yan(), labelled, **level, tilt=np.full((4, 3), 0.3))
    assert np.abs(tilted - expected).max() > 0.01


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
