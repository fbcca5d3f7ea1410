"""Types of annotators by direction of votes: with the rewards, by chance, and against them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from raters.judgements.base import Judgements
from raters.model import Model, Values
from raters.program import Program
from raters.program.densities import class_probs
from raters.terms.types import DIRECTIONS

Competences = Float[np.ndarray, "draw annotator"]


def has_directions(program: Program[Any]) -> bool:
    """Return whether the annotators are of these types."""
    return program.latent is not None and program.latent.names == tuple(DIRECTIONS)


def directed(model: Model[Any], data: Judgements, draws: Values) -> Competences:
    """Draw the competence of each annotator with the sign of a type."""
    table = class_probs(model, jax.tree.map(jnp.asarray, data), draws)
    below = np.asarray(table, np.float64).cumsum(-1)[..., :-1]
    # The same numbers each time, so that an audit says the same.
    uniform = np.random.default_rng(0).random((*below.shape[:2], 1))
    signs: np.ndarray = np.array(list(DIRECTIONS.values()))[(below <= uniform).sum(-1)]
    return np.asarray(signs * np.asarray(draws["competence"], np.float64))


def competences(program: Program[Any], draws: Values) -> Competences:
    """Competence of each annotator under each draw, that of a drawn type where there are types."""
    if not has_directions(program):
        return np.asarray(draws["competence"])
    return directed(program.model, program.data, draws)


def directed_in(
    model: Model[Any], draws: Values, data: Judgements
) -> Float[np.ndarray, "one draw annotator"]:
    """The same of draws by chain, as one chain."""
    flat = {name: np.asarray(value) for name, value in draws.items()}
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in flat.items()}
    return directed(model, data, flat)[None]
