"""Draws brought to one section: centred, and the types of a mixture under one numbering."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import linear_sum_assignment

from raters.inference.base import Draws
from raters.model import Model, Permute, Rotation, Values, exact_symmetries, identify, renumbered
from raters.program import Program, responsibility

# Responsibilities are units on as many annotators, evenly spaced, as stay below this many
# numbers in all draws.
_COMPARED = 20_000_000
_ROUNDS = 50


def identified(program: Program[Any], draws: Draws) -> Draws:
    """Draws, and the mode, on the identified section."""
    model = program.model
    values = identify(model, draws.values, 2)
    mode = identify(model, draws.mode, 0) if draws.mode else {}
    for symmetry in exact_symmetries(model):
        if isinstance(symmetry, Permute):
            values, mode = _numbered(program, symmetry, values, mode)
        if isinstance(symmetry, Rotation):
            values = turned(symmetry, values, 2)
            mode = turned(symmetry, mode, 0) if mode else {}
    return draws._replace(values=values, mode=mode)


def _numbered(
    program: Program[Any], symmetry: Permute, values: Values, mode: Values
) -> tuple[Values, Values]:
    sizes = values[symmetry.share].shape[:2]
    flat = {
        name: np.asarray(value).reshape(-1, *np.shape(value)[2:]) for name, value in values.items()
    }
    numbers, groups = flat[symmetry.share].size, program.num_units
    units = np.linspace(0, groups - 1, int(np.clip(_COMPARED // numbers, 1, groups))).astype(int)
    order, mean = _agreeing(_responsibilities(program.model, program.data, flat, units))
    by_share = np.argsort(
        -np.take_along_axis(flat[symmetry.share], order, axis=-1).mean(0), kind="stable"
    )
    moved = renumbered(symmetry, flat, order[:, by_share])
    values = values | {
        name: value.reshape(*sizes, *value.shape[1:]) for name, value in moved.items()
    }
    if mode:
        alone = {name: np.asarray(value)[None] for name, value in mode.items()}
        own = _responsibilities(program.model, program.data, alone, units)
        mode = mode | renumbered(symmetry, mode, _best(own, mean)[0][by_share])
    return values, mode


def _agreeing(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of the classes of each draw, shape (draw, class)."""
    order = np.tile(np.arange(shares.shape[-1]), (len(shares), 1))
    mean = shares[-1].astype(np.float64)
    for _ in range(_ROUNDS):
        before, order = order, _best(shares, mean)
        mean = np.take_along_axis(shares, order[:, None], axis=-1).mean(0, dtype=np.float64)
        if np.array_equal(order, before):
            break
    return order, mean


def _best(shares: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Order of the classes of each draw that the mean responsibilities make likeliest."""
    soft = (
        0.99 * mean + 0.01 / mean.shape[-1]
    )  # A class that nobody was ever in must not cost infinitely much.
    gain = np.einsum("dgk,gl->dlk", shares, np.log(soft), optimize=True)
    return np.stack([linear_sum_assignment(-one)[1] for one in gain])


def _responsibilities(model: Model[Any], data: Any, flat: Values, units: np.ndarray) -> np.ndarray:
    """Probability of each class of some units under each draw, shape (draw, unit, class)."""
    with jax.enable_x64(True):
        draws = {name: np.asarray(value, np.float64) for name, value in flat.items()}
        return np.asarray(_compiled(model, jax.tree.map(jnp.asarray, data), draws, units))


@partial(jax.jit, static_argnums=0)
def _compiled(model: Model[Any], data: Any, draws: Values, units: Array) -> Array:
    return jax.lax.map(
        lambda values: responsibility(model, data, values)[units].astype(jnp.float32), draws
    )


_TURNS, _STILL = 30, 1e-9


def turned(symmetry: Rotation, values: Values, batch_ndim: int) -> Values:
    """Draws turned as close as possible to their mean (Gower 1975), on its principal axes."""
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
    for _ in range(_TURNS):
        left, fit, right = np.linalg.svd(draws.transpose(0, 2, 1) @ target)
        rotation = left @ right
        target, total = np.mean(draws @ rotation, axis=0), float(fit.sum())
        if total - before <= _STILL * abs(total):
            break
        before = total
    return np.asarray(rotation)


def _principal(mean: Float[np.ndarray, "entry dimension"]) -> np.ndarray:
    """Rotation to the principal axes of positions, towards the entry furthest from 0."""
    axes = np.linalg.svd(mean - mean.mean(0), full_matrices=len(mean) < mean.shape[1])[2].T
    along = mean @ axes
    furthest = along[np.argmax(np.abs(along), axis=0), np.arange(along.shape[1])]
    return np.asarray(axes * np.where(furthest < 0, -1.0, 1.0))
