"""The part of a reward that no policy depends on."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from raters.judgements.mdp import MDP

# Singular values below this share of the largest one are 0 but for rounding.
_ROUNDING = 1e-8


def unidentified(mdp: MDP) -> Float[np.ndarray, "direction feature"]:
    """Directions of the coefficients of a reward that change no soft-optimal policy."""
    allowed = np.asarray(mdp.allowed, bool)
    features = np.asarray(mdp.features, float)[allowed]
    here = np.repeat(np.arange(len(allowed)), allowed.sum(1))
    stay = np.eye(len(allowed))[here]
    potential = stay - mdp.discount * np.asarray(mdp.transition, float)[allowed]
    if mdp.discount == 1:  # The value of an end is 0.
        potential = potential[:, ~np.asarray(mdp.ends)]
    left = features - potential @ np.linalg.lstsq(potential, features, rcond=None)[0]
    _, size, directions = np.linalg.svd(left, full_matrices=True)
    scale = max(np.linalg.norm(features, ord=2), 1e-300)
    rank = int((size > _ROUNDING * scale).sum())
    return np.asarray(directions[rank:])


def without_unidentified(
    coefficient: Float[np.ndarray, "*draw feature"], mdp: MDP
) -> Float[np.ndarray, "*draw feature"]:
    """Coefficients without the directions that no policy depends on."""
    directions = unidentified(mdp)
    return np.asarray(coefficient - (coefficient @ directions.T) @ directions)
