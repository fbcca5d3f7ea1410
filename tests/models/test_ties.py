"""Models of ties: recovery, predictions, checks, audits and questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.distributions import Votes
from raters.errors import SettingError
from raters.model import Model

MODEL = rt.ExtendedBTL(competence="signed", ties="davidson")


@pytest.fixture(scope="module")
def simulated() -> tuple[rt.Comparisons, dict]:
    """2,400 votes of 4 annotators on 5 items, of whom the last ties most."""
    votes, _ = rt.datasets.separated(num_items=5, num_annotators=4, num_votes=2400, seed=0)
    rows = np.repeat(np.arange(votes.num_rows), np.asarray(votes.weight, int))
    single = votes.unanswered().rows(rows)
    asked = rt.Comparisons(
        single.first, single.second, single.annotator, None, None, votes.items, votes.annotators
    ).with_ties()
    truth = {
        "reward": np.array([-1.5, -0.7, 0.0, 0.7, 1.5]),
        "tie_propensity": np.array([-2.0, -1.0, 0.0, 1.0]),
    }
    model = rt.BTL(ties="rao-kupper", tie_propensity="annotator")
    drawn = rt.simulate(model, asked, seed=0, given=truth)
    return drawn.data.aggregate(), truth


@pytest.mark.exhaustive
def test_truth_is_recovered(simulated, fit_quietly) -> None:
    """Each within 4.5 posterior standard deviations; false-alarm rate below 1e-4."""
    votes, truth = simulated
    model = rt.BTL(ties="rao-kupper", tie_propensity="annotator")
    result = fit_quietly(model, votes, rt.PGGibbs(draws=300, warmup=100, chains=2))
    for name, value in truth.items():
        draws = result.posterior[name]
        mean, sd = (getattr(draws, of)(("chain", "draw")).values for of in ("mean", "std"))
        assert np.abs((mean - (value - value.mean() * (name == "reward"))) / sd).max() < 4.5


@pytest.fixture(scope="module")
def fitted(tied, fit_quietly):
    return fit_quietly(MODEL, tied, rt.PGGibbs(draws=100, warmup=50, chains=2))


@pytest.mark.slow
def test_three_answers_are_predicted(fitted, tied) -> None:
    table = rt.predict(MODEL, fitted, rt.Candidates.pairs(tied))
    assert table.dims == ("chain", "draw", "answer", "comparison")
    assert table["answer"].values.tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_allclose(table.sum("answer"), 1, atol=1e-5)
    # Questions that were read without ties are asked as those of the fit.
    again = rt.predict(MODEL, fitted, rt.Candidates.pairs(tied.halved()))
    np.testing.assert_array_equal(table, again)


@pytest.mark.slow
def test_audits_count_a_tie_as_half(fitted, tied) -> None:
    audit = rt.audit(MODEL, fitted)
    half = tied.halved()
    reward = fitted.posterior["reward"].mean(("chain", "draw")).values
    right = np.where(reward[half.first] > reward[half.second], half.wins, half.weight - half.wins)
    share = np.bincount(half.annotator, right) / np.bincount(half.annotator, half.weight)
    agreement = audit.table["agreement"].sel(annotator=list(tied.annotators))
    np.testing.assert_allclose(agreement, share, rtol=1e-6)
    # Of votes of which a part are ties, an accuracy is nearer to one half.
    competence = fitted.posterior["competence"].values.reshape(-1, 4)
    gap = np.ptp(reward)
    assert (audit.table["accuracy"] < 1 / (1 + np.exp(-np.abs(competence).max() * gap))).all()


def test_the_order_of_a_pair_is_told_by_a_tie_too() -> None:
    """Of three answers each tells its part: by Σ cov²/p over them, of two cov²/(p(1 − p))."""
    from raters.acquisition.scores import OrderVariance

    probs = np.array([[[0.8], [0.2], [0.0]], [[0.0], [0.2], [0.8]]], np.float32)
    is_above = np.array([[[1.0]], [[0.0]]], np.float32)
    score = float(OrderVariance.formula(probs, is_above, np.full(2, 0.5))[0])
    assert score == pytest.approx(2 * 0.2**2 / 0.4, rel=1e-5)


@dataclass(frozen=True)
class _OfTwo(Model[rt.Comparisons]):
    """A model of the user's that knows two answers."""

    def generate(self, data: rt.Comparisons) -> None:
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        logits = reward[data.first] - reward[data.second]
        with numpyro.plate("comparison", data.num_comparisons):
            numpyro.sample("outcome", Votes(logits, data.weight), obs=data.wins)


def test_models_of_users_that_know_two_answers_refuse_ties(tied) -> None:
    with pytest.raises(SettingError, match="ties"):
        rt.fit(_OfTwo(), tied, rt.NUTS(draws=2, warmup=2, chains=1), seed=0, progress=False)


def test_ties_that_are_out_of_the_question_are_not_drawn(tied) -> None:
    drawn = rt.simulate(MODEL, tied, seed=0, given={"tie_propensity": -30.0}).data
    assert set(drawn.wins.tolist()) <= {0.0, 1.0}
