"""Questions that are made up: the information and its gradient, the best of a box, what is nearest,
and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, softmax, xlogy

import raters as rt
from raters.acquisition import Posterior, synthesize
from raters.acquisition.suggestions import _described, score_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::raters.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::raters.errors.DataWarning"),
]
CONTEXTUAL, RAYKAR = rt.models.ContextualBTL(num_types=2), rt.Raykar()


def fitted(model, data):
    return rt.fit(model, data, rt.PGEM(draws=150, starts=1), seed=0, progress=False)


@pytest.fixture(scope="module")
def votes():
    """Votes of two types of people, and a fit with draws."""
    plain, _ = rt.datasets.preference_types(num_items=8, num_annotators=5, votes_each=12, seed=0)
    table = np.random.default_rng(0).normal(size=(8, 2)) * [1.0, 30.0]
    data = plain.with_features(table, names=["warmth", "length"])
    return data, fitted(CONTEXTUAL, data)


@pytest.fixture(scope="module")
def labels():
    """Labels of items with features on unlike scales, and a fit with draws."""
    data, _ = rt.datasets.label_crowd(50, 3, 3, 2, num_features=2, seed=0)
    return data, fitted(RAYKAR, data)


def entropy(p: np.ndarray, axis: int) -> np.ndarray:
    return -xlogy(p, p).sum(axis) / np.log(2)


def information(probs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mutual information in bits of the answer and the draw, from (draw, answer, question)."""
    mean = np.tensordot(weight, probs, 1)
    return entropy(mean, 0) - weight @ entropy(probs, 1)


def of_votes(data, result, features: np.ndarray, who: int) -> np.ndarray:
    """In NumPy: each draw once for each type of the annotator."""
    posterior = Posterior.of(CONTEXTUAL, result, draws=120, seed=0)
    wins = expit(np.einsum("nf,sfk->skn", features, posterior.draws["coefficient"]))
    share = np.asarray(posterior._responsibilities)[:, who] / 120  # (draw, type)
    probs = np.stack([wins, 1 - wins], 2).reshape(-1, 2, len(features))
    return information(probs, share.ravel())


def of_labels(data, result, features: np.ndarray, who: int) -> np.ndarray:
    """In NumPy: a new item's class is known by its features alone."""
    posterior = Posterior.of(RAYKAR, result, draws=120, seed=0)
    standard = (features - np.asarray(data.centre)[1:]) / np.asarray(data.scale)[1:]
    design = np.column_stack([np.ones(len(features)), standard])
    classes = softmax(np.einsum("nf,sft->snt", design, posterior.draws["coefficient"]), -1)
    confusion = posterior.draws["confusion"][:, who]  # (draw, true class, label)
    return information(
        np.einsum("snt,stl->sln", classes, confusion), np.full(len(classes), 1 / len(classes))
    )


CASES = [
    pytest.param("votes", CONTEXTUAL, of_votes, id="votes"),
    pytest.param("labels", RAYKAR, of_labels, id="labels", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model", "by_hand"), CASES)
def test_no_point_of_a_dense_search_is_better(name, model, by_hand, request):
    """20,000 points of the box at random, by the definition in NumPy; the score and the bounds."""
    data, result = request.getfixturevalue(name)
    width = np.array([2.0, 40.0]) if name == "votes" else np.array([3.0, 3.0])
    bounds = dict(zip(data.feature_names[-2:], zip(-width, width, strict=True), strict=True))
    who = data.annotators[:2]
    found = synthesize(model, result, bounds=bounds, annotators=who, draws=120, starts=3)
    points = np.random.default_rng(1).uniform(-width, width, size=(20_000, 2))
    for one in range(2):
        row = found.isel(suggestion=one)
        code = data.annotators.index(row["by"].item())
        best, features = row["score"].item(), row["features"].values
        assert by_hand(data, result, features[None], code)[0] == pytest.approx(best, abs=2e-6)
        assert best > by_hand(data, result, points, code).max() - 1e-6
        assert (np.abs(features) <= width).all()
        nearest = row["nearest"].values
        own = by_hand(data, result, nearest[None], code)[0]
        assert row["nearest_score"].item() == pytest.approx(own, abs=2e-6)
    assert (np.diff(found["score"]) <= 0).all()
    assert set(found["by"].values) == set(who)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model", "by_hand"), CASES)
def test_the_gradient_is_that_of_finite_differences(name, model, by_hand, request):
    _, result = request.getfixturevalue(name)
    posterior = Posterior.of(model, result, draws=60, seed=0)
    asked = _described(posterior)
    scale = asked.real.std(0)
    with jax.enable_x64(True):
        values, slope = score_of(posterior, asked)
        for point in np.random.default_rng(0).normal(size=(4, 2)) * scale:
            step = 1e-4 * scale * np.eye(2)
            ends = [np.asarray(values(1, jnp.asarray(point + sign * step))) for sign in (1, -1)]
            rough = (ends[0] - ends[1]) / (2e-4 * scale)
            exact = np.asarray(slope(1, jnp.asarray(point))[1])
            np.testing.assert_allclose(exact * scale, rough * scale, rtol=2e-3, atol=1e-7)
            assert np.abs(exact).max() > 0


@pytest.mark.slow
def test_what_is_nearest(labels):
    data, result = labels
    bounds = {"x1": (0.5, 0.5), "x2": (-1.0, 1.0)}
    found = synthesize(RAYKAR, result, bounds=bounds, annotators=2, starts=2, draws=60)
    assert dict(found.sizes) == {"suggestion": 1, "feature": 2}
    row = found.isel(suggestion=0)
    assert row["by"].item() == 2
    assert row["features"].values[0] == 0.5
    raw = (
        np.asarray(data.features)[:, 1:] * np.asarray(data.scale)[1:] + np.asarray(data.centre)[1:]
    )
    apart = np.sqrt((((raw - row["features"].values) / raw.std(0)) ** 2).mean(1))
    assert row["distance"].item() == pytest.approx(apart.min(), rel=1e-4)
    assert row["nearest_item"].item() == data.items[apart.argmin()]
    np.testing.assert_allclose(row["nearest"], raw[apart.argmin()], rtol=1e-4)
    # Without bounds features stay within those of the data.
    free = synthesize(RAYKAR, result, annotators=[0], starts=1, draws=60)["features"].values[0]
    assert ((free >= raw.min(0) - 1e-6) & (free <= raw.max(0) + 1e-6)).all()
