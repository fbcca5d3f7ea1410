"""Several kinds of judgement in one posterior: calibration by simulation, what both kinds together
tell, and agreement of NUTS and SVI."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.checking import sbc
from raters.checking.calibration import uniformity
from raters.distributions.correlated import Correlated
from raters.inference import nuts
from tests.several import ONE_REWARD, TIED, compared, labelled, walks

_LEVEL = 1e-4
_SHORT = rt.NUTS(draws=120, warmup=120, chains=1, max_tree_depth=5)
_LINEAR = rt.models.LinearExtendedBTL(coefficient_scale=1.0)
TWO_CROWDS = rt.models.JointModel(
    {"one": _LINEAR, "two": rt.models.LinearExtendedBTL(competence="unit", competence_spread=0.5)},
    shared=["coefficient"],
    tied=["competence"],
)
LABELS_AND_VOTES = rt.models.JointModel(
    {"labels": rt.models.OneCoin(), "votes": _LINEAR},
    tied=[{"labels": "accuracy", "votes": "competence"}],
)


def smallest(ranks) -> float:
    """The smallest p-value, times the number of tests (Bonferroni)."""
    p_values = np.concatenate([np.ravel(values) for values in uniformity(ranks).data_vars.values()])
    return float(p_values.min() * len(p_values))


def votes_of(seed: int, number: int) -> rt.Comparisons:
    """Votes of three annotators, whose outcomes do not matter."""
    rng = np.random.default_rng(seed)
    who = np.arange(number) % 3
    return compared(rng, ("p", "q"), who, np.ones(2), np.ones(3), spread=1.0)


def crowds() -> rt.judgements.Together:
    return rt.judgements.Together.of({"one": votes_of(0, 12), "two": votes_of(1, 9)}).unanswered()


def ranks_of(model, data, replicates: int = 60):
    return sbc(model, data, _SHORT, seed=0, replicates=replicates, draws=19, progress=False)


def test_ranks_of_shared_and_tied_sites_are_uniform() -> None:
    """60 replicates; false-alarm rate 1e-4, all quantities together."""
    ranks = ranks_of(TWO_CROWDS, crowds())
    assert set(ranks.data_vars) == {
        "competence_correlation",
        "coefficient",
        "one.competence",
        "two.coefficient_scale",
        "two.competence",
        "log_likelihood",
    }
    assert smallest(ranks) > _LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
def test_a_tie_without_the_density_of_the_score_is_caught(monkeypatch) -> None:
    """Draws of the prior stay, and the density forgets that a score has one by itself."""

    def wrong(self, value):
        from raters.distributions.correlated import normal_score

        score = normal_score(self.base, value)
        own = -0.5 * ((score - self.mean_score) / self.spread) ** 2
        return self.base.log_prob(value) + own

    monkeypatch.setattr(Correlated, "log_prob", wrong)
    jax.clear_caches()
    try:
        assert smallest(ranks_of(TWO_CROWDS, crowds(), 150)) < _LEVEL
    finally:
        jax.clear_caches()
        nuts._advance.clear_cache()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["one reward", "labels and votes"])
def test_ranks_of_further_kinds_are_uniform(kind: str) -> None:
    """60 replicates; false-alarm rate 1e-4, all quantities together."""
    if kind == "one reward":
        ranks = ranks_of(TIED, walks(2, 4, 1, 4).together.unanswered())
    else:
        labels = labelled(0, 5, 3).part("labels")
        both = rt.judgements.Together.of({"labels": labels, "votes": votes_of(0, 12)})
        ranks = ranks_of(LABELS_AND_VOTES, both.unanswered())
    assert smallest(ranks) > _LEVEL, str(uniformity(ranks))


# ---------------------------------------------------------------------- what both tell


def direction(result) -> np.ndarray:
    """Angle of the coefficients, on which no scale bears."""
    values = result["posterior"]["coefficient"].values
    return np.arctan2(values[..., 1], values[..., 0]).ravel()


def off(angles: np.ndarray, true: float) -> np.ndarray:
    """Difference of angles from the true one."""
    return (angles - true + np.pi) % (2 * np.pi) - np.pi


@pytest.fixture(scope="module")
def crowd():
    """Six annotators, one of them an adversary, with few judgements of either kind."""
    return walks(6, 8, 2, 6, seed=5, size=3, adversaries=0.17)


@pytest.fixture(scope="module")
def fits(crowd, fit_quietly):
    backend = rt.NUTS(draws=250, warmup=250, chains=2, max_tree_depth=7)
    return {
        "votes": fit_quietly(_LINEAR, crowd.votes, backend),
        "shown": fit_quietly(rt.MaxEntIRL(), crowd.shown, backend),
        "both": fit_quietly(ONE_REWARD, crowd.together, backend),
    }


def test_both_kinds_tell_more_of_the_reward_than_either(crowd, fits) -> None:
    """The standard deviation of the direction falls below that of either, and the truth is within 5
    of them: false-alarm rate below 1e-4, were the posterior normal."""
    true = np.arctan2(*crowd.truth["coefficient"][::-1])
    spread = {name: float(off(direction(fit), true).std()) for name, fit in fits.items()}
    assert spread["both"] < 0.95 * min(spread["votes"], spread["shown"]), spread
    assert abs(off(direction(fits["both"]), true).mean()) < 5 * spread["both"]


def test_an_adversary_in_the_votes_is_one_among_the_demonstrators(crowd, fits) -> None:
    adversary = np.flatnonzero(crowd.truth["kind"] == "adversary")
    assert len(adversary) == 1
    alone = fits["shown"]["posterior"]["rationality"].values
    shown = rt.fitting.part(ONE_REWARD, fits["both"], "shown")
    together = shown.result["posterior"]["rationality"].values
    below = [(draws < 0).mean((0, 1))[adversary[0]] for draws in (alone, together)]
    assert below[0] < 0.9 < 0.95 < below[1]
    others = np.flatnonzero(crowd.truth["kind"] != "adversary")
    assert (together < 0).mean((0, 1))[others].max() < 0.05
    audit = rt.audit(ONE_REWARD, fits["both"], reference="crowd")
    assert audit.flagged == [crowd.together.coords["annotator"][adversary[0]]]


def test_svi_agrees_with_nuts(crowd, fits, fit_quietly) -> None:
    """Means within half a standard deviation, on scales that the prior does not choose: SVI is an
    approximation, and this is the tolerance stated for it."""
    svi = fit_quietly(ONE_REWARD, crowd.together, rt.SVI(steps=4000, guide="full_rank"))
    for draws in (relative, direction):
        exact, near = draws(fits["both"]), draws(svi)
        error = np.abs(exact.mean(0) - near.mean(0)) / exact.std(0)
        assert error.max() < 0.5, error


def relative(result) -> np.ndarray:
    """Competences over the mean absolute one, shape (draw, annotator)."""
    values = result["posterior"]["competence"].values
    flat = values.reshape(-1, values.shape[-1])
    return flat / np.abs(flat).mean(1, keepdims=True)
