"""Judges who were not in the fit, where each judge has a vector of their own: the vectors of those
are drawn from the prior, given the draws of all else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtri

from raters.inference.polya_gamma.panels import factors
from raters.judgements.names import name_text
from raters.model import Model, Own, Values, facts_of
from raters.program import Program

# Vectors of a newcomer under each draw.
_VECTORS = 64


def newcomers(program: Program[Any], questions: Any) -> tuple[Any, ...]:
    """Return the judges of questions who were not in the fit, where they can be answered for."""
    if not facts_of(program.model, Own):
        return ()
    judge = program.data.judge
    known = set(map(name_text, program.data.coords[judge]))
    names = tuple(questions.coords[judge])
    used = np.unique(questions.codes(judge))
    return tuple(names[code] for code in used if name_text(names[code]) not in known)


def joined_by(program: Program[Any], names: tuple[Any, ...]) -> Program[Any]:
    """Return the program on data whose judges include newcomers, who answered nothing."""
    data = program.data
    field = data.names[data.judge]
    longer = dataclasses.replace(data, **{field: (*getattr(data, field), *names)})
    return Program(program.model, longer)


def with_newcomers(program: Program[Any], draws: Values, number: int) -> Iterator[Values]:
    """Yield draws in which newcomers have vectors, spread evenly over the population."""
    from scipy.stats import qmc

    own = [one.site for one in facts_of(program.model, Own)]
    widths = [draws[name].shape[-1] for name in own]
    row = jax.tree.map(jnp.asarray, program.data.first_unit())
    factor = np.asarray(_factors(program.model, tuple(own), row, draws))
    rng, size = np.random.default_rng(0), factor.shape[-1]
    base = qmc.Sobol(size, rng=rng).random(_VECTORS)
    shift = rng.random((len(factor), size))
    for point in base:
        white = ndtri(np.clip((point + shift) % 1.0, 1e-9, 1 - 1e-9))
        vector = np.einsum("dpq,dq->dp", factor, white)
        parts = np.split(vector, np.cumsum(widths)[:-1], axis=1)
        yield draws | {
            name: np.concatenate([draws[name], np.repeat(part[:, None], number, axis=1)], axis=1)
            for name, part in zip(own, parts, strict=True)
        }


def mean_of(tables: Iterable[Float[np.ndarray, ...]]) -> Float[np.ndarray, ...]:
    """Return the mean of tables, of which one is held at a time."""
    total, number = np.zeros(()), 0
    for table in tables:
        total, number = total + table, number + 1
    return np.asarray(total / number)


@partial(jax.jit, static_argnums=(0, 1))
def _factors(
    model: Model[Any], own: tuple[str, ...], row: Any, draws: Values
) -> Float[Array, "draw entry entry"]:
    """Return the Cholesky factors of the covariance of a vector under each draw."""
    return jax.lax.map(lambda values: factors(model, own, row, values), draws)
