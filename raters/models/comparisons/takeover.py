"""Detection of an annotator who has become the scale by which all others are measured."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from jaxtyping import Float
from scipy.special import chdtri, expit

from raters.judgements.comparisons import Comparisons
from raters.judgements.names import shorten
from raters.model import Values

# Share of the information about the rewards from which on one annotator decides them, and the
# significance of the others' dissent.
MOST, _LEVEL = 0.5, 0.05
# With two annotators there is no crowd that one of them could outvote.
_FEWEST = 3


def takeover(draws: Values, data: Comparisons) -> tuple[str, ...]:
    """Warn of an annotator who decides the rewards while the others dissent."""
    competence, reward = (
        np.asarray(draws[name], np.float64).mean((0, 1)) for name in ("competence", "reward")
    )
    if not (np.isfinite(competence).all() and np.isfinite(reward).all()):
        return ()
    bias = np.zeros(len(competence))
    if "position_bias" in draws:
        bias = np.asarray(draws["position_bias"], np.float64).mean((0, 1))
    information = information_shares(data, competence, reward, bias)
    votes = data.judgements_by(data.judge)
    judge = int(np.argmax(information))
    if (votes > 0).sum() < _FEWEST or information[judge] <= MOST:
        return ()
    if _dissent(data, judge, competence, reward, bias) <= chdtri(len(reward) - 1, _LEVEL):
        return ()
    name = shorten([data.annotators[judge]])
    return (
        f"annotator {name} cast {votes[judge] / votes.sum():.0%} of the votes and has"
        f" {information[judge]:.0%} of the information about the rewards,"
        " and the votes of the others point to other rewards: the ranking follows this"
        " annotator, and all others are measured by it; fit rt.HierarchicalBTL(), in which"
        " each annotator has rewards of their own",
    )


def information_shares(
    data: Comparisons, competence: np.ndarray, reward: np.ndarray, bias: np.ndarray
) -> Float[np.ndarray, " annotator"]:
    """Share of each annotator in the information about the rewards."""
    information = np.zeros(len(competence))
    for piece in data.chunks(1 << 18):
        who = np.asarray(piece.annotator)
        weight, _ = _weights(piece, competence, reward, bias)
        information += np.bincount(who, competence[who] ** 2 * weight, len(information))
    return information / max(information.sum(), 1e-300)


def _weights(
    data: Comparisons, competence: np.ndarray, reward: np.ndarray, bias: np.ndarray
) -> tuple[Float[np.ndarray, " comparison"], Float[np.ndarray, " comparison"]]:
    """Information of each row about its log-odds, and its score."""
    who, count = np.asarray(data.annotator), np.asarray(data.weight, np.float64)
    gap = reward[np.asarray(data.first)] - reward[np.asarray(data.second)]
    prob = expit(competence[who] * gap + bias[who])
    wins = np.asarray(data.wins, np.float64)
    return count * prob * (1 - prob), wins - count * prob


def _dissent(
    data: Comparisons, judge: int, competence: np.ndarray, reward: np.ndarray, bias: np.ndarray
) -> float:
    """Score statistic of an order that all but one annotator share beside that of the fit."""
    size = len(reward)
    score, diagonal = np.zeros((2, size))
    across = scipy.sparse.csr_array((size, size))
    for piece in data.chunks(1 << 18):
        others = piece.take(np.flatnonzero(np.asarray(piece.annotator) != judge))
        weight, slope = _weights(others, competence, reward, bias)
        sides = np.asarray(others.first), np.asarray(others.second)
        for side, sign in zip(sides, (1, -1), strict=True):
            score += sign * np.bincount(side, slope, size)
            diagonal += np.bincount(side, weight, size)
        across = across + scipy.sparse.csr_array((weight, sides), shape=(size, size))
    information = scipy.sparse.diags_array(diagonal + 1 / max(reward.var(), 1e-12))
    information = information - across - across.T
    # The statistic rises with each step, so stopping early errs on the side of no warning.
    step, _ = scipy.sparse.linalg.cg(information, score, rtol=1e-6, maxiter=200)
    # More of the same order is no dissent: competences may be fitted too low.
    own = reward - reward.mean()
    same = max(float(own @ score), 0.0) ** 2 / max(float(own @ (information @ own)), 1e-12)
    return float(score @ step) - same
