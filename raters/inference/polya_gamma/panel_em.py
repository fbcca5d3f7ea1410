"""Mode of a panel with everybody's own vectors integrated out, and draws around it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from raters.inference.arrays import FlatPoint, Rng
from raters.inference.base import Draws
from raters.inference.polya_gamma.panel_averages import FEW, places_drawn, points_of
from raters.inference.polya_gamma.panel_gibbs import log_t
from raters.inference.polya_gamma.panel_marginal import Marginal, Mode
from raters.inference.polya_gamma.panels import panel_of
from raters.model import Values
from raters.program import Program

# Curvature of what the choices tell nothing of: the logarithm of a spread near 0 has a standard
# deviation of 1, by its prior.
_UNKNOWN = 0.25
# Degrees of freedom of the draws: the logarithm of a spread of which the choices tell little has an
# exponential tail, which the weights of normal draws do not reach.
_FREEDOM = 5


def run(program: Program[Any], draws: int, start: Values, rng: Rng) -> Draws:
    """Return the mode, and draws of a t distribution around it, each with a draw of all vectors
    given the other sites."""
    with jax.enable_x64(True):
        panel = panel_of(program, start)
        marginal = Marginal(program, panel, start, with_curvature=draws > 0)
        mode = marginal.mode()
        values = {name: np.asarray(mode.values[name]) for name in program.sites}
        facts = {"marginal_log_likelihood": mode.log_likelihood, "monte_carlo_error": mode.error}
        history = {"log_joint": mode.history}
        if not draws:
            one = {name: value[None, None] for name, value in values.items()}
            return Draws(one, {}, history, facts, values)
        drawn, stats = _around(program, marginal, mode, draws, rng)
    return Draws(drawn, stats, history, facts, values)


def _around(
    program: Program[Any], marginal: Marginal, mode: Mode, draws: int, rng: Rng
) -> tuple[Values, Values]:
    """Return draws around the mode, with their log densities and those of the posterior."""
    panel, size = marginal.panel, len(mode.point)
    least = np.concatenate([panel.prior.precision, np.full(size - marginal.num_shared, _UNKNOWN)])
    root = _root(mode.curvature, least)
    wide = np.sqrt(rng.chisquare(_FREEDOM, (draws, 1)) / _FREEDOM)
    white = rng.standard_normal((draws, size)) / wide
    marginal.points = points_of(panel.num_judges, panel.num_own, int(rng.integers(2**31)), FEW)
    rows, log_p = [], []
    for point in mode.point + white @ root.T:
        at = marginal.drawn_at(point)
        found = marginal.averaged(point, at)
        places = places_drawn(found.weight, rng)
        own = at.vectors[np.arange(len(places)), places]
        rows.append(panel.put(marginal.at(point), own=own))
        log_p.append(found.log_likelihood.sum() + marginal.log_prior(point))
    values = {name: np.stack([row[name] for row in rows])[None] for name in program.sites}
    stats = {
        "log_p": np.array(log_p)[None],
        "log_q": log_t((white**2).sum(1), size, _FREEDOM)[None],
    }
    return values, stats


def _root(
    curvature: Float[np.ndarray, "coordinate coordinate"], least: FlatPoint
) -> Float[np.ndarray, "coordinate coordinate"]:
    """Return a root of the covariance of the draws."""
    unit = 1 / np.sqrt(np.maximum(np.diag(curvature), least))
    eigenvalues, vectors = np.linalg.eigh(curvature * unit[:, None] * unit)
    along = (vectors**2 * (unit**2 * least)[:, None]).sum(0)
    return np.asarray(unit[:, None] * vectors / np.sqrt(np.maximum(eigenvalues, along)))
