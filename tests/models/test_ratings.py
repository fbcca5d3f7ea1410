"""Models on a scale: their equations, their marginal likelihood, and what each recovers."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.integrate
from scipy.special import expit, softmax
from scipy.stats import norm, spearmanr

import raters as rt
from raters.distributions.normals import NormalLevel, OrderedNormal
from raters.distributions.rows import Tabulated
from raters.inference.polya_gamma import tables, unconstrained
from raters.models.responses.graded_response import level_log_probs
from raters.program import Program, pointwise_log_likelihood

SITES = {
    "discrimination": 1.3,
    "competence": np.array([1.2, -0.5]),
    "severity": np.array([0.4, -0.2]),
    "threshold": np.array([-0.7, 0.9]),
    "threshold_deviation": np.array([[0.1, -0.3], [0.2, 0.0]]),
}


def test_probabilities_of_levels_are_those_of_neighbouring_levels() -> None:
    """The log-odds of two neighbouring levels are α β r − ρ − τ − δ."""
    reward, who = np.array([-1.0, 0.0, 2.0, 0.5]), np.array([0, 1, 0, 1])
    probs = np.asarray(rt.ManyFacet().answers_at(reward, who, SITES, 3).probs)
    location = 1.3 * SITES["competence"][who] * reward - SITES["severity"][who]
    step = SITES["threshold"] + SITES["threshold_deviation"][who]
    odds = np.log(probs[:, 1:] / probs[:, :-1])
    np.testing.assert_allclose(odds, location[:, None] - step, rtol=1e-4)
    utility = np.arange(3) * location[:, None] - np.pad(np.cumsum(step, 1), ((0, 0), (1, 0)))
    np.testing.assert_allclose(probs, softmax(utility, 1), rtol=1e-4)


def test_two_levels_are_a_logistic_model() -> None:
    sites = SITES | {"threshold": np.array([0.3]), "threshold_deviation": np.zeros((2, 1))}
    probs = rt.ManyFacet().answers_at(np.array([0.8]), np.array([0]), sites, 3).probs
    assert float(probs[0, 1]) == pytest.approx(expit(1.3 * 1.2 * 0.8 - 0.4 - 0.3), rel=1e-5)


def test_levels_of_a_fine_scale_are_intervals_of_a_normal_number() -> None:
    location, precision = np.array([0.3, -5.0, 8.0, 40.0]), np.array([0.7, 2.0, 3.0, 5.0])
    level = NormalLevel(jnp.asarray(location), jnp.asarray(precision), 101)
    cut = np.concatenate([[-np.inf], 4 * np.arange(1, 101) / 101 - 2, [np.inf]])
    bounds = precision[:, None] * cut - location[:, None]
    # In the lower tail, where differences of probabilities keep their digits.
    flipped = np.where(bounds.sum(1, keepdims=True, where=np.isfinite(bounds)) > 0, -bounds, bounds)
    expected = np.abs(np.diff(norm.cdf(flipped), axis=1))
    np.testing.assert_allclose(level.probs, expected, atol=1e-6)
    log_prob = np.stack([level.log_prob(jnp.full(4, value)) for value in range(101)], 1)
    likely = expected > 1e-30
    np.testing.assert_allclose(log_prob[likely], np.log(expected[likely]), rtol=2e-3)
    slope = jax.grad(
        lambda x: NormalLevel(x, jnp.ones(3), 101).log_prob(jnp.array([0, 50, 100])).sum()
    )
    assert np.isfinite(slope(jnp.array([-30.0, 90.0, 30.0]))).all()
    draws = np.asarray(level.sample(jax.random.key(0), (4000,)))
    # Means of 4,000 draws; 5 standard errors are a false alarm of 1e-6.
    mean = expected @ np.arange(101)
    sd = np.sqrt(expected @ np.arange(101) ** 2 - mean**2)
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * sd.max() / np.sqrt(4000))


@pytest.mark.parametrize(
    ("scores", "levels"),
    [
        (range(3, 99), range(3, 99)),
        ([5 * one for one in range(25)], range(0, 121, 5)),
        ([one / 2 for one in range(30)], [f"{one / 2:g}" for one in range(30)]),
    ],
)
def test_a_fine_scale_is_evenly_spaced(scores, levels) -> None:
    some = [one for one in scores if one != scores[7]]  # a level that nothing is on
    ratings = rt.Ratings.from_frame(
        {"page": some, "score": some}, item="page", rating="score", annotator=None
    )
    assert ratings.levels == tuple(levels)
    written = [float(ratings.levels[code]) for code in ratings.rating]
    assert written == [float(ratings.items[code]) for code in ratings.item]
    reason = rt.ManyFacet().why_not(ratings)
    assert "FineScale" in reason


def test_numbers_without_levels_are_rounded(recwarn) -> None:
    scores = np.random.default_rng(0).gamma(2.0, size=300)
    ratings = rt.Ratings.from_frame(
        {"page": range(300), "score": scores}, item="page", rating="score"
    )
    assert "nearest of 101 levels" in str(recwarn[0].message)
    back = np.array(list(map(float, ratings.levels)))[np.asarray(ratings.rating)]
    assert np.abs(back - scores[list(ratings.items)]).max() <= np.ptp(scores) / 200 + 1e-9


@pytest.mark.filterwarnings("ignore:the chains")  # A rank needs few draws.
def test_a_fine_scale_tells_whom_to_follow() -> None:
    """Annotators with noise of 6 and 8 points among others with 30 and 40."""
    rng = np.random.default_rng(3)
    quality, noise = rng.normal(size=60), np.array([6.0, 8.0, 30.0, 40.0, 40.0])
    page, rater = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    score = np.round(50 + 12 * quality[page] + noise[rater] * rng.normal(size=300)).clip(0, 100)
    table = pd.DataFrame({"page": page, "rater": rater, "score": score.astype(int)})
    ratings = rt.Ratings.from_frame(table, item="page", annotator="rater", rating="score")
    hmc = rt.HMC(draws=200, chains=1)
    result = rt.fit(rt.models.FineScale(), ratings, hmc, seed=0, progress=False)
    reward = result.posterior["reward"].mean(("chain", "draw")).to_series()[range(60)]
    mean = table.groupby("page")["score"].mean()
    assert spearmanr(reward, quality).statistic > spearmanr(mean, quality).statistic + 0.05
    precision = result.posterior["precision"].mean(("chain", "draw")).to_series()
    assert precision[[0, 1]].min() > 2 * precision[[2, 3, 4]].max()


def test_graded_levels_are_differences_of_logistic_functions() -> None:
    above = np.array([2.0, 0.5, -3.0])
    ends = np.concatenate([[1.0], expit(above), [0.0]])
    probs = np.exp(level_log_probs(jnp.asarray(above)))
    np.testing.assert_allclose(probs, ends[:-1] - ends[1:], rtol=1e-4)
    far = level_log_probs(jnp.asarray([60.0, 59.0]))  # 1 − 1 in single precision
    np.testing.assert_allclose(far[1], -59 + np.log1p(-np.exp(-1.0)), rtol=1e-5)


def test_graded_response_with_two_levels_is_two_pl() -> None:
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, (6, 4))
    person, item = (grid.ravel() for grid in np.indices(right.shape))
    graded = rt.GradedResponses(
        person, item, right.ravel(), None, tuple(range(6)), tuple(range(4)), (0, 1)
    )
    binary = rt.Responses(
        person, item, right.ravel().astype(float), None, tuple(range(6)), tuple(range(4))
    )
    values = {
        "ability": rng.normal(size=6),
        "discrimination": rng.uniform(0.5, 2, 4),
        "difficulty": rng.normal(size=4),
    }
    graded_values = values | {"difficulty": values["difficulty"][:, None]}
    one = pointwise_log_likelihood(rt.models.GradedResponse(), graded, graded_values)
    two = pointwise_log_likelihood(rt.TwoPL(), binary, values)
    np.testing.assert_allclose(one, two, rtol=1e-4)


def test_ordered_normals_have_their_density_on_ascending_values() -> None:
    fn = OrderedNormal(3, 0.5, 2.0)
    value = jnp.array([-1.0, 0.0, 2.0])
    assert float(fn.log_prob(value)) == pytest.approx(
        norm.logpdf(value, 0.5, 2.0).sum() + np.log(6), rel=1e-5
    )
    draws = fn.sample(jax.random.key(0), (20_000,))
    assert bool((jnp.diff(draws) > 0).all())
    # The middle one of three has the median of all; false alarms of 6e-5.
    assert float(draws[:, 1].mean()) == pytest.approx(0.5, abs=4 * 2.0 * 0.67 / np.sqrt(20_000))


def test_tabulated_rows_look_up_their_distribution() -> None:
    import numpyro.distributions as dist

    base = dist.Categorical(logits=jax.random.normal(jax.random.key(0), (3, 2, 4)))
    cell, value = jnp.array([2, 0, 2, 1]), jnp.array([3, 1, 0, 2])
    rows = Tabulated(base, cell)
    own = dist.Categorical(logits=base.logits[cell])
    expected = own.log_prob(value[:, None])
    np.testing.assert_allclose(rows.log_prob(value[:, None]), expected, rtol=1e-6)
    both = jnp.stack([value, value[::-1]], 1)
    np.testing.assert_allclose(rows.log_prob(both), own.log_prob(both), rtol=1e-6)
    drawn = rows.sample(jax.random.key(1), (4000,))
    share = (drawn[..., None] == jnp.arange(4)).mean(0)
    # Of 32 shares none is 5 standard errors off: false alarms of 2e-5.
    error = np.sqrt(own.probs * (1 - own.probs) / 4000)
    assert bool((np.abs(share - own.probs) < 5 * error).all())


def test_marginal_likelihood_is_an_integral() -> None:
    """Of one item, by adaptive quadrature."""
    table = {"i": [0, 0, 1], "a": [0, 1, 0], "y": [2, 1, 0]}
    ratings = rt.Ratings.from_frame(table, item="i", annotator="a", rating="y")
    marginal = rt.ManyFacet().marginal(ratings)

    def density(reward: float) -> float:
        fn = rt.ManyFacet().answers_at(np.full(2, reward), np.array([0, 1]), SITES, 3)
        probs = np.asarray(fn.probs, float)
        return probs[0, 2] * probs[1, 1] * norm.pdf(reward)

    with jax.enable_x64(True):
        expected = np.log(scipy.integrate.quad(density, -9, 9, epsabs=1e-12)[0])
        each = pointwise_log_likelihood(marginal.model, marginal.data, SITES)
    assert float(each[0]) == pytest.approx(expected, abs=1e-6)


@pytest.fixture(scope="module")
def small() -> rt.Ratings:
    return rt.datasets.rating_crowd(40, 4, 3, 3, seed=0, guessers=0.0).ratings


@pytest.mark.slow
def test_tables_give_the_information(small) -> None:
    """Against automatic differentiation of the program as it is."""
    marginal = rt.ManyFacet().marginal(small)
    program = Program(marginal.model, marginal.data)
    with jax.enable_x64(True):
        start = marginal.model.start(marginal.data)
        values = {name: np.asarray(value, float) + 0.1 for name, value in start.items()}
        shared = tables.Tables.of(program, values)
        data = jax.tree.map(jnp.asarray, marginal.data)
        like = {name: jnp.asarray(value) for name, value in values.items()}
        flat = unconstrained.flat_of(program.supports, like)
        found = tables.information(shared, like, np.asarray(flat))
        given = marginal.model, program.supports, data, like
        hessian = -np.asarray(jax.hessian(partial(unconstrained.log_density, *given))(flat))
        for place, block in zip(found.own, found.block, strict=True):
            np.testing.assert_allclose(block, hessian[np.ix_(place, place)], atol=1e-8)


def test_a_million_numbers_are_enough_to_refuse(small, monkeypatch) -> None:
    monkeypatch.setattr(rt.ManyFacet, "most_cells", 100)
    reason = rt.PGEM().why_not(Program(rt.ManyFacet(), small))
    assert "on 41 nodes" in reason
