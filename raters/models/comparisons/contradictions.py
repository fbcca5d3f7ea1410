"""Detection of votes that contradict each other: a crowd whose halves do, where competences cannot
be negative, and an annotator who has become the scale by which all others are measured."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import chdtri, expit, log_expit, logsumexp

from raters.judgements.comparisons import Comparisons
from raters.judgements.names import shorten
from raters.model import Values, in_mirror
from raters.models.base import worded

# Points of the integral over a competence, draws, steps to a mode, and rows at a time.
_POINTS, _DRAWS, _STEPS, _ROWS = 120, 32, 60, 1 << 13
# Rows that are looked at first, and log odds of the other mode by them below which there is none.
_FIRST, _HOPELESS = 2000, -12.0
# Rows that the whole takes seconds for, and votes of one annotator beyond which the integral is not
# exact.
_MOST_ROWS, _MOST_VOTES = 100_000, 20_000


def reversal(
    draws: Values, data: Comparisons, scale: float | None, spread: float | None, high: float | None
) -> float:
    """Probability of an opposite order of the items that is missing from the draws."""
    flat = {name: np.asarray(value, np.float64) for name, value in draws.items()}
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in flat.items()}
    reward = flat["reward"]
    if not _can_tell(data) or not all(np.isfinite(value).all() for value in flat.values()):
        return 0.0
    here = ~in_mirror(reward)
    around = {name: value[here] for name, value in flat.items()}
    bias = around["position_bias"].mean(0) if "position_bias" in flat else np.zeros(1)

    def typical(name: str, fixed: float | None) -> float:
        return float(np.exp(np.log(around[name]).mean())) if fixed is None else fixed

    widths = typical("reward_scale", scale), typical("competence_spread", spread)
    high = 2 * float(around["competence"].max()) if high is None else high
    density = _Marginal(data, *widths, high, np.broadcast_to(bias, data.num_annotators))
    mean = around["reward"].mean(0)
    if not _is_open(density, mean):
        return 0.0
    # A long first step may lead back.
    one, others = density.mode(mean), [density.mode(-mean), density.mode(-mean / 2)]
    other = min(others, key=lambda mode: mode @ one)
    if one @ other >= 0:
        return 0.0
    places = np.linspace(0, here.sum() - 1, _DRAWS).astype(int)
    both, some = one + other, around["reward"][np.unique(places)]
    odds = [density(both - each).value - density(each).value for each in some]
    chance = float(expit(logsumexp(odds) - np.log(len(odds))))
    return chance if (~here).mean() < chance / 2 else 0.0


def _can_tell(data: Comparisons) -> bool:
    """True if several annotators have opinions, in data of a size that can be looked at."""
    return (
        0 < data.num_rows <= _MOST_ROWS
        and data.tells_judges_apart()
        and bool(data.judgements_by(data.judge).max() <= _MOST_VOTES)
    )


def _is_open(density: _Marginal, mean: Float[np.ndarray, " item"]) -> bool:
    """True if a part of the votes leaves the opposite order a chance, as all of them hardly do."""
    data = density.data
    if data.num_rows > _FIRST:
        rows = np.random.default_rng(0).choice(data.num_rows, _FIRST, replace=False)
        density = dataclasses.replace(density, data=data.rows(np.sort(rows)))
    few = _POINTS // 4
    other = density.mode(-mean, few)
    return other @ mean < 0 and density(other, few).value - density(mean, few).value > _HOPELESS


class _Point(NamedTuple):
    """Log density at a point, and its slope."""

    value: float
    slope: Float[np.ndarray, " item"]


@dataclass(frozen=True)
class _Marginal:
    """Log density of the rewards with the competences integrated out, but for a constant."""

    data: Comparisons
    scale: float
    spread: float
    high: float
    bias: Float[np.ndarray, " annotator"]

    def __call__(self, reward: Float[np.ndarray, " item"], points: int = _POINTS) -> _Point:
        # Cubes are dense near 0, where the competences of those are who contradict the rewards.
        unit = (np.arange(points) + 0.5) / points
        grid = self.high * unit**3
        prior = np.log(unit**2 / points) - (grid - 1) ** 2 / (2 * self.spread**2)
        table = np.zeros((points, self.data.num_annotators))
        for piece in self.data.chunks(_ROWS):
            who, wins, losses, logits = self._votes(piece, reward, grid)
            each = wins * log_expit(logits) + losses * log_expit(-logits)
            for row, values in zip(table, each, strict=True):
                row += np.bincount(who, values, len(row))
        table += prior[:, None]
        evidence = logsumexp(table, axis=0)
        weight = np.exp(table - evidence)
        slope = -reward / self.scale**2
        for piece in self.data.chunks(_ROWS):
            who, wins, losses, logits = self._votes(piece, reward, grid)
            surprise = wins - (wins + losses) * expit(logits)
            each = (weight[:, who] * grid[:, None] * surprise).sum(0)
            slope = slope + np.bincount(np.asarray(piece.first), each, len(slope))
            slope = slope - np.bincount(np.asarray(piece.second), each, len(slope))
        return _Point(evidence.sum() - (reward**2).sum() / (2 * self.scale**2), slope)

    def mode(
        self, start: Float[np.ndarray, " item"], points: int = _POINTS
    ) -> Float[np.ndarray, " item"]:
        """A mode, from a start."""

        def loss(reward: np.ndarray) -> tuple[float, np.ndarray]:
            point = self(reward, points)
            return -point.value, -point.slope

        options = {"maxiter": _STEPS}
        return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x

    def _votes(
        self, piece: Comparisons, reward: np.ndarray, grid: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Float[np.ndarray, "point row"]]:
        """Annotator, wins and losses of each row, and the logits under each competence."""
        who, wins = np.asarray(piece.annotator), np.asarray(piece.wins, np.float64)
        count = np.asarray(piece.weight, np.float64)
        gap = reward[np.asarray(piece.first)] - reward[np.asarray(piece.second)]
        return who, wins, count - wins, grid[:, None] * gap + self.bias[who]


# ---------------------------------------------------------------- one annotator beside all others

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
    shares = {"votes": votes[judge] / votes.sum(), "information": information[judge]}
    return (worded("takeover", name=shorten([data.annotators[judge]]), **shares),)


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
