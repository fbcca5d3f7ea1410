"""A small crowd with draws made by hand, which the tests of acquisition share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.policy import AnnotatorRule
from tests import hand

RNG = np.random.default_rng(0)
ITEMS, ANNOTATORS, DRAWS = 6, 4, 200
MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
VOTES, _ = rt.datasets.separated(ITEMS, ANNOTATORS, 60, seed=0)
REWARD = RNG.normal(size=(DRAWS, ITEMS)) * [0.1, 0.5, 1, 2, 4, 8]
# Annotator 2 guesses, 3 votes against the others.
COMPETENCE = RNG.normal(size=(DRAWS, ANNOTATORS)) * [0.3, 0.5, 0.0, 1.0] + [1.0, 0.5, 0.0, -1.0]
RESULT = hand.result(VOTES, reward=REWARD, competence=COMPETENCE)
PAIRS = rt.Candidates.pairs(VOTES)
POSTERIOR = Posterior.of(MODEL, RESULT, draws=DRAWS)


@dataclass(frozen=True)
class Oracle(AnnotatorRule):
    """The annotator of most true competence, by code."""

    competence: tuple[float, ...]

    def preference(self, posterior: Posterior) -> np.ndarray:
        """True competences."""
        return np.asarray(self.competence)


def wins(questions: rt.Comparisons = PAIRS) -> np.ndarray:
    """P(first wins), shape (draw, question), in float64."""
    gap = REWARD[:, questions.first] - REWARD[:, questions.second]
    return expit(COMPETENCE[:, questions.annotator] * gap)


def chances(probability: np.ndarray) -> np.ndarray:
    """From probabilities of the first of two answers, shape (draw, question), to a table with axes
    as `scores` has them."""
    return np.stack([probability, 1 - probability], 1)


def equal(table: np.ndarray) -> np.ndarray:
    """Equal weights of the draws of a table."""
    return np.full(len(table), 1 / len(table), np.float32)
