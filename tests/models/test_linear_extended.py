"""Competences of annotators with a reward that is linear in features."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import raters as rt
from raters.errors import BackendError, SettingError
from raters.program import log_joint
from tests.several import FromPrior, compared

MODEL = rt.models.LinearExtendedBTL()


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """120 votes of four annotators, the last of whom votes against the reward."""
    rng = np.random.default_rng(0)
    competence = np.array([1.0, 1.2, 0.8, -1.0])
    return compared(rng, ("p", "q"), np.arange(120) % 4, np.array([1.0, -0.5]), competence)


def test_the_density_is_the_product_of_its_factors(votes) -> None:
    rng = np.random.default_rng(1)
    coefficient, competence, scale = rng.normal(size=2), rng.normal(1.0, 1.0, 4), 0.7
    logits = competence[votes.annotator] * (votes.features @ coefficient)
    expected = (
        scipy.stats.norm.logpdf(coefficient, 0, scale).sum()
        + scipy.stats.lognorm.logpdf(scale, 1.0)
        + scipy.stats.norm.logpdf(competence, 1.0, 1.0).sum()
        + np.log(expit(np.where(votes.wins > 0, logits, -logits))).sum()
    )
    values = {"coefficient": coefficient, "competence": competence, "coefficient_scale": scale}
    with jax.enable_x64(True):
        density = float(log_joint(MODEL, votes, jax.tree.map(np.asarray, values)))
    assert density == pytest.approx(expected, rel=1e-9)


def test_an_audit_is_of_the_pairs_that_were_compared(votes, fit_quietly) -> None:
    result = fit_quietly(MODEL, votes, FromPrior())
    table = rt.audit(MODEL, result).table
    draws = result["posterior"].to_dataset().stack(sample=("chain", "draw"))
    coefficient = draws["coefficient"].transpose("sample", "feature").values
    competence = draws["competence"].transpose("sample", "annotator").values
    gap = np.abs(coefficient @ votes.features.T)
    accuracy = np.stack([expit(own[:, None] * gap).mean(1) for own in competence.T], axis=1)
    # Over 200 random ones of the 120 pairs.
    np.testing.assert_allclose(table["accuracy"], accuracy.mean(0), atol=0.05)
    better = votes.features @ coefficient.mean(0) > 0
    agrees = np.where(better, votes.wins, 1 - votes.wins)
    expected = np.bincount(votes.annotator, agrees) / np.bincount(votes.annotator)
    np.testing.assert_allclose(table["agreement"], expected)
    np.testing.assert_allclose(table["p_adversarial"], (competence < 0).mean(0))


@pytest.mark.slow
def test_an_adversary_and_the_reward_are_found(votes, fit_quietly) -> None:
    """|z| < 5 on the scale of the crowd's mean: false-alarm rate below 1e-4, were the posterior
    normal."""
    result = fit_quietly(MODEL, votes, rt.PGGibbs(draws=300, warmup=100, chains=2))
    competence = result.posterior["competence"].values.reshape(-1, 4)
    coefficient = result.posterior["coefficient"].values.reshape(-1, 2)
    scale = np.abs(competence).mean(1, keepdims=True)
    for draws, true in (
        (competence / scale, [1.0, 1.2, 0.8, -1.0]),
        (coefficient * scale, [1.0, -0.5]),
    ):
        assert (np.abs(draws.mean(0) - true) < 5 * draws.std(0)).all()
    audit = rt.audit(MODEL, result, reference="crowd")
    assert audit.flagged == [3]
    assert rt.report(MODEL, result, audit).to_html()


def test_votes_that_leave_the_direction_open_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    half = np.where(rng.random((2, 50, 1)) < 0.5, -1.0, 1.0) * np.ones(3)
    assert (
        "leave open which way round" in MODEL.fit_warnings({"competence": half}, None, _votes())[0]
    )
    assert not MODEL.fit_warnings({"competence": np.ones((2, 50, 3))}, None, _votes())
    unit = rt.models.LinearExtendedBTL(competence="unit")
    assert not unit.fit_warnings({"competence": half}, None, _votes())


def _votes() -> rt.Comparisons:
    table = {"w": ["a", "b", "a"], "l": ["b", "c", "c"], "who": ["x", "y", "z"]}
    return rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who")


def test_features_are_needed() -> None:
    with pytest.raises(BackendError, match="learns from features of the two sides"):
        rt.fit(MODEL, _votes(), seed=0, progress=False)
    with pytest.raises(SettingError, match="choose one of 'unit'"):
        rt.models.LinearExtendedBTL(competence="sign")
    with pytest.raises(SettingError, match="coefficient_scale"):
        rt.models.LinearExtendedBTL(coefficient_scale=0)


def test_a_feature_that_never_differs_is_warned_of() -> None:
    votes = _votes().with_features([[1.0, 2.0], [1.0, 0.0], [1.0, 3.0]])
    assert "never differ between the sides" in MODEL.data_warnings(votes)[0]
