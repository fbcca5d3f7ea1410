"""Draws of positions in a space turned to one position."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from raters.model import Rotation, Values

_ROUNDS, _STILL = 30, 1e-9


def turned(symmetry: Rotation, values: Values, batch_ndim: int) -> Values:
    """Draws turned, each as a whole, as close as possible to their mean (generalised orthogonal
    Procrustes analysis, Gower 1975), on its principal axes."""
    parts = []
    for name in symmetry.sites:
        site = np.asarray(values[name], np.float64)
        parts.append(site.reshape(-1, *site.shape[batch_ndim:]))
    stacked = np.concatenate(parts, axis=1)
    rotation = _rotations(stacked)
    mean = np.mean(parts[0] @ rotation, axis=0)
    rotation = rotation @ _principal(mean)
    moved = {}
    for name, part in zip(symmetry.sites, parts, strict=True):
        moved[name] = (part @ rotation).reshape(np.shape(values[name]))
    return values | moved


def _rotations(
    draws: Float[np.ndarray, "draw entry dimension"],
) -> Float[np.ndarray, "draw dimension dimension"]:
    """Rotation or reflection of each draw towards their common mean."""
    target, before = draws[-1], -np.inf
    for _ in range(_ROUNDS):
        left, fit, right = np.linalg.svd(draws.transpose(0, 2, 1) @ target)
        rotation = left @ right
        target, total = np.mean(draws @ rotation, axis=0), float(fit.sum())
        if total - before <= _STILL * abs(total):
            break
        before = total
    return np.asarray(rotation)


def _principal(mean: Float[np.ndarray, "entry dimension"]) -> np.ndarray:
    """Rotation to the principal axes of a set of positions, in the direction of the entry that is
    furthest from 0."""
    axes = np.linalg.svd(mean - mean.mean(0), full_matrices=len(mean) < mean.shape[1])[2].T
    along = mean @ axes
    furthest = along[np.argmax(np.abs(along), axis=0), np.arange(along.shape[1])]
    return np.asarray(axes * np.where(furthest < 0, -1.0, 1.0))
