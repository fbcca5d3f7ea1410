"""Competences of annotators with a reward that is linear in features."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import raters as rt
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
