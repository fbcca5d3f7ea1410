"""Ties: correlations, by a Gaussian copula, of entries of several kinds of judgement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import biject_to, constraints

from raters.distributions.correlated import given_scores, normal_score
from raters.inference.arrays import PerJudge
from raters.inference.polya_gamma.line import golden_step
from raters.model import Values
from raters.program import trace


class Tie(NamedTuple):
    """A site and those that it is tied to."""

    group: tuple[tuple[str, str], ...]
    place: int


def _score(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> tuple[Array, ...]:
    """Return the score of entries, its mean and deviation given those tied to it, and log f."""
    scores, own = [], None
    for place, (name, site) in enumerate(tie.group):
        part = next(one for one in plan.parts if one.name == name)
        given = part.values(values)
        if place == tie.place:
            given = given | {site: entries.reshape(jnp.shape(given[site]))}
        fn = trace(part.model, row.part(name), given)[site]["fn"]
        score = normal_score(fn, given[site]).ravel()
        if place == tie.place:
            own = score, jnp.ravel(fn.log_prob(given[site]))
        else:
            scores.append(score)
    assert own is not None
    correlation = values[plan.model.correlation_of(tie.group)]
    return own[0], *given_scores(scores, correlation), own[1]


@partial(jax.jit, static_argnums=(0, 1))
def log_copula(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    """Return the log density of each entry given those tied to it, less that by itself."""
    score, mean, spread, _ = _score(plan, tie, row, values, entries)
    return dist.Normal(mean, spread).log_prob(score) - dist.Normal().log_prob(score)


@partial(jax.jit, static_argnums=(0, 1))
def to_scores(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    r"""Return the logarithm of dx/du of each entry x with the score u."""
    score, _, _, log_prob = _score(plan, tie, row, values, entries)
    return dist.Normal().log_prob(score) - log_prob


Given = tuple[Any, Tie, Any, Values]


def copula_slope(given: Given, entries: Array) -> PerJudge:
    """Return the derivative of the copula's log density along each entry."""
    return jax.grad(lambda entries: log_copula(*given, entries).sum())(entries)


def mode(
    log_density: Callable[[Array], PerJudge],
    given: Given,
    support: constraints.Constraint,
    current: PerJudge,
) -> PerJudge:
    """Return a likelier point of each entry of independent ones, by golden-section search in normal
    scores, or the current one."""
    transform = biject_to(support)
    start = transform.inv(current)

    def density(move: Array) -> Array:
        entries = transform(start + move)
        each = log_density(entries) + log_copula(*given, entries) + to_scores(*given, entries)
        return jnp.where(jnp.isnan(each), -jnp.inf, each)

    return transform(start + golden_step(density, shape=start.shape))
