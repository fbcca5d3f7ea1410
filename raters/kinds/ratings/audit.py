"""Audit of ratings: competence, severity and scale use of annotators, and fair ratings."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from raters.auditing.intervals import table
from raters.errors import refuse
from raters.errors.validation import share
from raters.fitting.result import draws_of
from raters.judgements.names import names_array
from raters.judgements.ratings import Ratings
from raters.kinds import AuditLimits, Quantities
from raters.model import Values
from raters.models.ratings.many_facet import ManyFacet
from raters.program import Program

# Nodes of the standard normal rewards over which ratings are averaged, and their weights.
NODES = np.linspace(-4, 4, 33)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# Draws of which quantities are computed that need a pass over annotators, nodes and levels.
_DRAWS = 1000
# Correlation of an annotator's ratings with the rewards within so many margins of 0: a guesser, as
# an accuracy p within a margin of one half has 2p − 1 within two margins of 0.
_MARGINS = 2


def quantities(program: Program[Ratings], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Competence, correlation, severity and bias of each annotator."""
    share("margin", limits.margin)
    model, data = check_many_facet(program), program.data
    draws, few = draws_of(program, result)[0], draws_of(program, result, _DRAWS)[0]
    mean, correlation = map(np.asarray, _of_average_items(model, few))
    number = data.answers_by("annotator")
    level = np.arange(1, data.num_levels + 1)
    return Quantities(
        {
            "competence": draws["competence"],
            "correlation": correlation,
            "severity": draws["severity"],
            "bias": mean - mean.mean(1, keepdims=True),
        },
        judged="competence",
        columns={
            "p_guessing": (np.abs(correlation) < _MARGINS * limits.margin).mean(0),
            "p_adversarial": (draws["competence"] < 0).mean(0),
            "mean_level": _mean(number, level),
            "levels_used": (number > 0).sum(1),
        },
        tables={"item_parameters": items(program, result, limits.level), "levels": _levels(data)},
    )


def _mean(
    number: Float[np.ndarray, "name level"], score: Float[np.ndarray, " level"]
) -> Float[np.ndarray, " name"]:
    """Mean score of some numbers of ratings; NaN without any."""
    with np.errstate(invalid="ignore"):
        return np.asarray(number @ score / number.sum(1))


def check_many_facet(program: Program[Ratings]) -> ManyFacet:
    """The model of a program, which must be `ManyFacet`."""
    if not isinstance(program.model, ManyFacet):
        problem = "has no competences and severities to audit"
        expected = "fit ManyFacet, and pass that model and its result"
        refuse("model", program.model, problem, expected, instead="rt.ManyFacet()")
    return program.model


@partial(jax.jit, static_argnums=0)
def _of_average_items(
    model: ManyFacet, draws: Values
) -> tuple[Float[Array, "draw annotator"], Float[Array, "draw annotator"]]:
    """Mean level of each annotator over standard normal rewards, and the correlation of the two."""

    def one(values: Values) -> tuple[Array, Array]:
        annotator = jnp.arange(len(values["severity"]))
        reward = jnp.broadcast_to(jnp.asarray(NODES)[:, None], (len(NODES), len(annotator)))
        other = jnp.broadcast_to(annotator, reward.shape)
        probs = model.answers_at(reward, other, values).probs
        level = jnp.arange(1.0, probs.shape[-1] + 1)
        weight = jnp.asarray(WEIGHTS)[:, None]
        at_node = probs @ level
        mean = (weight * at_node).sum(0)
        variance = (weight * (probs @ level**2)).sum(0) - mean**2
        covariance = (weight * at_node * jnp.asarray(NODES)[:, None]).sum(0)
        return mean, covariance / jnp.sqrt(jnp.maximum(variance, 1e-12))

    mean, correlation = jax.lax.map(one, draws)
    return mean, correlation


def items(program: Program[Ratings], result: xr.DataTree, level: float) -> xr.Dataset:
    """Reward and fair rating of each item with their intervals, and what was rated."""
    model, data = check_many_facet(program), program.data
    draws = draws_of(program, result, _DRAWS)[0]
    score = data.scores()
    fair = np.asarray(_fair(model, draws, jnp.asarray(score)))
    number = data.answers_by("item")
    columns = {"ratings": number.sum(1).astype(int), "mean_rating": _mean(number, score)}
    values = {"reward": draws["reward"], "fair_rating": fair}
    return table("item", data.items, columns, values, level)


@partial(jax.jit, static_argnums=0)
def _fair(
    model: ManyFacet, draws: Values, score: Float[Array, " level"]
) -> Float[Array, "draw item"]:
    """Mean score of each item under each draw, by the average annotator."""

    def one(values: Values) -> Array:
        average = {
            name: value.mean(0, keepdims=True)
            for name, value in values.items()
            if name in ("competence", "severity", "threshold_deviation")
        }
        reward = values["reward"]
        ratings = model.answers_at(reward, jnp.zeros(reward.shape, int), values | average)
        return jnp.asarray(ratings.probs @ score)

    return jnp.asarray(jax.lax.map(one, draws))


def _levels(data: Ratings) -> xr.Dataset:
    """Share of each annotator's ratings on each level."""
    number = data.answers_by("annotator")
    return xr.Dataset(
        {"share": (("annotator", "level"), number / np.maximum(number.sum(1, keepdims=True), 1))},
        coords={"annotator": names_array(data.annotators), "level": names_array(data.levels)},
    )
