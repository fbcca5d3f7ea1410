"""Detection of a crowd whose halves contradict each other, where competences cannot be negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from raters.judgements.comparisons import Comparisons
from raters.model import OPEN_MIRROR, Values

# Points of the integral over a competence, draws, steps to a mode, and rows at a time.
_POINTS, _DRAWS, _STEPS, _ROWS = 120, 32, 60, 1 << 13
# Log odds of the rewards with their signs changed, below which no mode is looked for near them. The
# two modes are not each other's image: on crowds of two halves these odds were above −40, on others
# they are about minus half the number of votes.
_HOPELESS = -60.0


def open_reversal(
    draws: Values, data: Comparisons, scale: float | None, spread: float | None, high: float | None
) -> tuple[str, ...]:
    """Say when the votes leave open which half of a crowd is right; see `reversal`.

    Parameters
    ----------
    draws, data, scale, spread, high
        As in `reversal`.

    Returns
    -------
    tuple of str
    """
    chance = reversal(draws, data, scale, spread, high)
    if chance < OPEN_MIRROR:
        return ()
    return (
        (
            "the votes leave open which way round the order is: another order, in which those who"
            " look incompetent here are competent, has a probability of about"
            f" {chance:.2f} by this model, and these draws do not go there; one annotator who is"
            " known to be good, or a few pairs whose order is known, would decide it;"
            ' rt.ExtendedBTL(competence="signed") holds both orders'
        ),
    )


def reversal(
    draws: Values, data: Comparisons, scale: float | None, spread: float | None, high: float | None
) -> float:
    r"""Probability of an opposite order of the items, where the draws do not go there.

    With competences in [0, 1] or [0, ∞), two halves of a crowd that contradict each other leave two
    modes of the rewards r, in each of which one half has competences near 0. With the competences
    integrated out,

    .. math:: \pi(r) = p(r \mid s) \prod_k \int p(\beta \mid \tau) \prod_m p(y_m \mid r, \beta)
        \, d\beta

    where m goes over the votes of annotator k. From the mode A of the draws and the mode B that an
    optimiser reaches from −A, :math:`T r = A + B - r` leaves volumes as they are, and the odds of B
    are :math:`\operatorname{E}[\pi(T r) / \pi(r)]` over the draws.

    Parameters
    ----------
    draws : mapping
        Draws of ``competence``, ``reward`` and where they are learned ``reward_scale``,
        ``competence_spread`` and ``position_bias``, shape (chain, draw, ...).
    data : Comparisons
    scale, spread : float or None
        Standard deviation of the rewards and spread of the competences; None where learned.
    high : float or None
        Upper end of the competences.

    Returns
    -------
    float
        0 where the draws are of both orders about as often as this says.
    """
    flat = {name: np.asarray(value, np.float64) for name, value in draws.items()}
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in flat.items()}
    reward = flat["reward"]
    if data.num_rows == 0 or not all(np.isfinite(value).all() for value in flat.values()):
        return 0.0
    # Draws of both orders, by weak votes or by chains in both modes, have a mean that is neither.
    _, _, axes = np.linalg.svd(reward, full_matrices=False)
    side = np.sign(reward @ axes[0])
    sides = float(np.mean(side > 0))
    most = reward[side == (1 if sides >= 0.5 else -1)]
    places = np.unique(np.linspace(0, len(reward) - 1, _DRAWS).astype(int))
    high = 2 * float(flat["competence"].max()) if high is None else high

    def mean(name: str, fixed: float | None) -> float:
        return float(np.exp(np.log(flat[name]).mean())) if fixed is None else fixed

    bias = flat["position_bias"].mean(0) if "position_bias" in flat else np.zeros(1)
    own = _Marginal(
        data,
        mean("reward_scale", scale),
        mean("competence_spread", spread),
        high,
        np.broadcast_to(bias, data.num_annotators),
    )
    start = most.mean(0)
    if own(-start).value - own(start).value < _HOPELESS:
        return 0.0
    here, there = own.mode(start), own.mode(-start)
    if here @ there >= 0:
        return 0.0
    both = here + there
    odds = [own(both - reward[place]).value - own(reward[place]).value for place in places]
    chance = float(expit(logsumexp(odds) - np.log(len(odds))))
    return chance if min(sides, 1 - sides) < chance / 2 else 0.0


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

    def __call__(self, reward: Float[np.ndarray, " item"]) -> _Point:
        # Cubes are dense near 0, where the competences of those are who contradict the rewards.
        unit = (np.arange(_POINTS) + 0.5) / _POINTS
        grid = self.high * unit**3
        prior = np.log(unit**2) - (grid - 1) ** 2 / (2 * self.spread**2)
        table = np.zeros((_POINTS, self.data.num_annotators))
        for piece in self.data.chunks(_ROWS):
            wins, losses, logits = self._votes(piece, reward, grid)
            each = wins * log_expit(logits) + losses * log_expit(-logits)
            for row, values in zip(table, each, strict=True):
                row += np.bincount(piece.annotator, values, len(row))
        table += prior[:, None]
        evidence = logsumexp(table, axis=0)
        weight = np.exp(table - evidence)
        slope = -reward / self.scale**2
        for piece in self.data.chunks(_ROWS):
            wins, losses, logits = self._votes(piece, reward, grid)
            surprise = wins - (wins + losses) * expit(logits)
            each = (weight[:, np.asarray(piece.annotator)] * grid[:, None] * surprise).sum(0)
            slope = slope + np.bincount(piece.first, each, len(slope))
            slope = slope - np.bincount(piece.second, each, len(slope))
        return _Point(evidence.sum() - (reward**2).sum() / (2 * self.scale**2), slope)

    def mode(self, start: Float[np.ndarray, " item"]) -> Float[np.ndarray, " item"]:
        """A mode, from a start."""

        def loss(reward: np.ndarray) -> tuple[float, np.ndarray]:
            point = self(reward)
            return -point.value, -point.slope

        found: np.ndarray = minimize(
            loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        ).x
        return found

    def _votes(
        self, piece: Comparisons, reward: np.ndarray, grid: np.ndarray
    ) -> tuple[
        Float[np.ndarray, " row"], Float[np.ndarray, " row"], Float[np.ndarray, "point row"]
    ]:
        """Wins and losses of each row, and the logits under each competence."""
        wins = np.asarray(piece.wins, np.float64)
        count = np.ones(len(wins)) if piece.count is None else np.asarray(piece.count, np.float64)
        gap = reward[np.asarray(piece.first)] - reward[np.asarray(piece.second)]
        logits = grid[:, None] * gap + self.bias[np.asarray(piece.annotator)]
        return wins, count - wins, logits
