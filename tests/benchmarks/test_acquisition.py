"""The parts of benchmarks of acquisition that their results stand on: the sampler and the batches
in NumPy against the model and the definitions, and how answers, regrets and shares are counted."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

import raters as rt
from raters.program import log_prior, pointwise_log_likelihood
from tests import hand

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch):
    """A script of benchmarks/, as a module."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def _model(module: ModuleType) -> rt.ExtendedBTL:
    """The model of `acquisition.py`, which `module` is to fit."""
    return rt.ExtendedBTL(reward_scale=module.SCALE, competence_spread=10.0)


# ---------------------------------------------------------------------- the sampler in NumPy

# Item, item, annotator and whether the first won; annotator 1 is audited.
ANSWERS = np.array([(0, 1, 0, 1), (0, 2, 0, 1), (1, 2, 0, 1), (1, 2, 1, 0), (0, 2, 1, 1)] * 2)
AUDITED = np.array([0.0, 20.0]), np.array([0.0, 9.0])


def moments(reward: np.ndarray, competence: np.ndarray) -> np.ndarray:
    """Gaps of the rewards, their squares, competences, their squares, and products with a gap;
    over the last axes."""
    gap = reward[..., :2] - reward[..., 2:]
    both = competence * gap[..., :1]
    return np.concatenate([gap, gap**2, competence, competence**2, both], -1)


def exact(model: rt.Model, votes: rt.Comparisons) -> np.ndarray:
    """Posterior means of the moments by quadrature of the model's own density. Votes tell nothing
    of the sum of the rewards, which is independent of their gaps: it is held at 0."""
    line = np.linspace(-14.0, 14.0, 43)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    axes = (line, line, (nodes + 1) / 2, (nodes + 1) / 2)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 4)
    gaps = np.concatenate([points[:, :2], np.zeros((len(points), 1))], 1)
    reward, competence = gaps - gaps.mean(1, keepdims=True), points[:, 2:]

    def density(reward: jax.Array, competence: jax.Array) -> jax.Array:
        values = {"reward": reward, "competence": competence}
        likelihood = pointwise_log_likelihood(model, votes, values).sum()
        return log_prior(model, votes, values) + likelihood

    with jax.enable_x64(True):
        log_p = np.asarray(jax.jit(jax.vmap(density))(jnp.asarray(reward), jnp.asarray(competence)))
    log_p = log_p + (AUDITED[1] * competence - AUDITED[0] * competence**2 / 2).sum(1)
    weight = np.exp(log_p - log_p.max())
    weight *= np.tile(np.multiply.outer(weights, weights).ravel(), len(line) ** 2)
    return weight @ moments(reward, competence) / weight.sum()


def test_sampler_in_numpy_has_the_posterior_of_the_model(script, monkeypatch) -> None:
    """400 crowds with the same answers are as many independent chains. Each of ten means is beyond
    4.9 standard errors with probability 1e-6, so one of them with 1e-5 at most."""
    module: ModuleType = script("_gibbs_crowds")
    for name, size in {"ITEMS": 3, "ANNOTATORS": 2, "DRAWS": 200}.items():
        monkeypatch.setattr(module, name, size)
    first, second = np.triu_indices(3, 1)
    monkeypatch.setattr(module, "FIRST", first)
    monkeypatch.setattr(module, "SECOND", second)
    crowds = 400
    sampler = module.Sampler(np.random.default_rng(0), crowds)
    sampler.audited = np.repeat(np.stack(AUDITED)[:, None], crowds, axis=1)
    pair = [int(np.flatnonzero((first == i) & (second == j))[0]) for i, j in ANSWERS[:, :2]]
    given = [np.tile(column, (crowds, 1)) for column in (pair, ANSWERS[:, 2], ANSWERS[:, 3])]
    sampler.draws(*given)
    own = np.array([moments(*draws).mean(0) for draws in sampler.draws(*given)])

    codes = [ANSWERS[:, column].astype(np.int32) for column in range(3)]
    won = ANSWERS[:, 3].astype(np.float32)
    votes = rt.Comparisons(*codes, won, None, ("a", "b", "c"), ("ann", "bob"))
    truth = exact(_model(module), votes)
    z = (own.mean(0) - truth) / (own.std(0, ddof=1) / np.sqrt(crowds))
    assert np.abs(z).max() < 4.9, z


# ---------------------------------------------------------------------- batches in NumPy


@pytest.fixture
def greedy(script):
    """Scores under 60 draws of twenty items and ten annotators."""
    module: ModuleType = script("_gibbs_crowds")
    rng = np.random.default_rng(1)
    reward = rng.normal(size=(60, module.ITEMS)) + rng.uniform(0, 8, module.ITEMS)
    competence = rng.beta(4, 2, size=(60, module.ANNOTATORS))
    return module, module.Greedy(module.Draws(reward, competence))


def test_batch_in_numpy_is_that_of_the_default_policy(greedy) -> None:
    module, scores = greedy
    names = {"items": range(module.ITEMS), "annotators": range(module.ANNOTATORS)}
    votes = hand.votes((0, 1, 0), **names)
    result = hand.result(votes, reward=scores.draws.reward, competence=scores.draws.competence)
    pool = rt.Candidates.pairs(**names)
    batch = rt.suggest(_model(module), result, pool, batch_size=module.SIZE)
    chosen, *_ = scores.choose()
    own = [(module.FIRST[pair], module.SECOND[pair], who) for pair, who in chosen]
    assert [tuple(row) for row in batch.to_dataframe()[["first", "second", "by"]].values] == own


# ---------------------------------------------------------------------- what the tables count


def test_audits_measure_with_the_information_of_answers(script) -> None:
    ahead = script("acquisition_ahead")
    sampler = script("_gibbs_crowds").Sampler(np.random.default_rng(0), 4000)
    competence = np.tile([0.8, 0.1], (4000, 5))
    ahead.measure(sampler, np.full(competence.shape, 3.0), competence)
    precision, shift = sampler.audited
    gap = np.array([3.0, 8.0])
    chance = expit(competence[0, :2] * gap)
    np.testing.assert_allclose(precision[0, :2], 3 * gap**2 * chance * (1 - chance))
    # 20,000 measurements each: beyond 4.4 standard errors with probability 2e-5.
    z = ((shift / precision - competence) * np.sqrt(precision)).reshape(-1, 2)
    assert np.abs(z.sum(0)).max() < 4.4 * np.sqrt(len(z))
    assert z.std(0) == pytest.approx([1.0, 1.0], abs=4.4 / np.sqrt(2 * len(z)))


def test_shares_are_ratios_of_means_with_resampled_crowds(script) -> None:
    # 2.5 % of resamples have seven or more crowds of eight of one kind: 8 of 22, and 8 of 10.
    own, most, none = np.ones(8), np.repeat([1.0, 3.0], 4), np.zeros(8)
    assert script("acquisition_ahead").part(own, most) == "50% [36%, 80%]"
    assert script("stream").kept(most, own, none) == "0.50 [0.36, 0.80]"
    assert script("stream").kept(most + 5, own + 5, none + 5) == "0.50 [0.36, 0.80]"


@pytest.mark.parametrize(
    ("level", "answers"),
    [(0.0, 0.0), (0.2, 50.0), (0.4, 100.0), (0.45, 275.0), (0.5, 300.0), (0.6, np.inf)],
)
def test_answers_until_a_curve_is_at_a_level_for_the_first_time(script, level, answers) -> None:
    replay = script("acquisition_replay")
    line = replay.Curve(np.array([0.0, 100, 200, 300]), np.array([0.0, 0.4, 0.3, 0.5]))
    assert replay.until(line, level) == pytest.approx(answers)


def test_answers_saved_are_of_mean_curves_and_against_random_questions(script) -> None:
    replay = script("acquisition_replay")
    answers = np.array([0.0, 100.0, 200.0])

    def curves(*lines: list[float]) -> list:
        return [replay.Curve(answers, np.array([0.0, *line])) for line in lines]

    several = {
        "quick": curves([0.8, 0.8], [0.4, 0.8]),  # mean .6, .8
        "random": curves([0.4, 0.8], [0.2, 0.6]),  # mean .3, .7
    }
    found = replay.counted(several, np.array([0, 1]), (0.5, 0.95))
    assert found["best"] == pytest.approx(0.8)
    # τ of .4: of 100 answers two thirds, against a quarter of the second 100.
    assert found["quick", 0.5] == pytest.approx(200 / 3)
    assert found["random", 0.5] == pytest.approx(125.0)
    assert found["quick", 0.5, "saved"] == pytest.approx(1 - 200 / 3 / 125)
    # τ of .76: random questions do not reach it, and the record counts.
    assert found["random", 0.95] == np.inf
    assert found["quick", 0.95, "saved"] == pytest.approx(1 - 180 / 200)
    # The first order alone, as a resample may have it: random questions do reach .76.
    first = replay.counted(several, np.array([0, 0]), (0.95,))
    assert first["quick", 0.95] == pytest.approx(95.0)
    assert first["quick", 0.95, "saved"] == pytest.approx(1 - 95 / 190)
