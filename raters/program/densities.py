"""Densities of a model at given values of its sites, and probabilities of answers and classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from raters.distributions import GroupedMixture, RowMixture
from raters.errors import SettingError
from raters.errors.words import words_of
from raters.model import Model, Values
from raters.program.traces import observed_sites, trace


def log_prior(
    model: Model[Any], data: Any, values: Values, without: tuple[str, ...] = ()
) -> jax.Array:
    """Log prior density of the latent sites; −∞ outside their support."""
    return _prior_of(trace(model, data, values), (*observed_sites(model), *without))


def pointwise_log_likelihood(model: Model[Any], data: Any, values: Values) -> jax.Array:
    """Log-likelihood of each unit (`Program.unit`)."""
    return _likelihoods_of(trace(model, data, values), observed_sites(model))


def log_joint(
    model: Model[Any], data: Any, values: Values, white: tuple[str, ...] = ()
) -> jax.Array:
    """Log density of parameters and outcomes, in the coordinates of the model but for sites whose
    values are white ones."""
    sites = trace(model, data, values, white)
    observed = observed_sites(model)
    return _prior_of(sites, observed) + _likelihoods_of(sites, observed).sum()


def _prior_of(sites: Mapping[str, Any], without: tuple[str, ...]) -> jax.Array:
    total = jnp.zeros(())
    for name, site in sites.items():
        if site["type"] == "sample" and name not in without:
            fn, value = site["fn"], site["value"]
            total += jnp.where(fn.support(value), fn.log_prob(value), -jnp.inf).sum()
    return total


def _likelihoods_of(sites: Mapping[str, Any], observed: tuple[str, ...]) -> jax.Array:
    log_probs = [sites[name]["fn"].log_prob(sites[name]["value"]) for name in observed]
    return log_probs[0] if len(log_probs) == 1 else jnp.concatenate(log_probs)


# Compiled.
prior_of = jax.jit(log_prior, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def likelihood_of(model: Model[Any], data: Any, values: Values) -> jax.Array:
    """Compiled sum of `pointwise_log_likelihood`."""
    return pointwise_log_likelihood(model, data, values).sum()


@partial(jax.jit, static_argnums=0)
def log_likelihoods(model: Model[Any], data: Any, draws: Values) -> jax.Array:
    """Sum of `pointwise_log_likelihood` under each draw, compiled."""
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values).sum(), draws)


def responsibility(model: Model[Any], data: Any, values: Values) -> jax.Array:
    """Probability of each class of each unit given its judgements, under one draw."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].responsibilities(site["value"])


def class_weights(model: Model[Any], data: Any, values: Values) -> jax.Array:
    """Prior probability of each class of the unit of each row, under one draw."""
    fn = trace(model, data, values)[model.observed]["fn"]
    return jnp.exp(fn.log_weights())[fn.group].T[:, None]


@partial(jax.jit, static_argnums=0)
def class_probs(model: Model[Any], data: Any, draws: Values) -> jax.Array:
    """Probability of each class of each unit given its judgements, under each draw."""
    each = partial(responsibility, model, data)
    return jax.lax.map(lambda values: each(values).astype(jnp.float32), draws)


def left_out_responsibility(model: Model[Any], data: Any, values: Values) -> jax.Array:
    r"""Probability of the class of each row's unit given the unit's other rows, under one draw.

    Of a row with a count one judgement is left out, of one that is a sum of judgements all:
    :math:`p(z = k \mid y_{-m}, \theta) \propto p(z = k, y \mid \theta) / p(y_m \mid k, \theta)`.
    """
    site = trace(model, data, values)[model.observed]
    fn, value = site["fn"], site["value"]
    rest = fn.log_joint(value)[fn.group] - row_log_probs(fn, value)
    return jax.nn.softmax(jnp.where(jnp.isnan(rest), -jnp.inf, rest), axis=-1)


def left_out_log_probs(model: Model[Any], data: Any, values: Values) -> jax.Array:
    r"""Log-probability of each row given the other rows of its unit, as `left_out_responsibility`.

    .. math:: \log p(y_m \mid y_{-m}, \theta)
        = \log \sum_k p(z = k \mid y_{-m}, \theta) \, p(y_m \mid k, \theta)
    """
    site = trace(model, data, values)[model.observed]
    rows = row_log_probs(site["fn"], site["value"])
    of_units = isinstance(site["fn"], GroupedMixture) and not isinstance(site["fn"], RowMixture)
    if rows.shape[1] == 1 and not of_units:
        return rows[:, 0]
    return jax.nn.logsumexp(rows, axis=-1, b=left_out_responsibility(model, data, values))


def answer_probs(model: Model[Any], questions: Any, values: Values) -> jax.Array:
    """Probability of each answer to each question under one draw, given each class summed out."""
    rows, is_whole = questions.num_rows, questions.answer_dtype is np.int32
    outcomes = jnp.asarray(questions.listed_answers(), jnp.int32 if is_whole else float)

    def of(outcome: jax.Array) -> jax.Array:
        site = trace(model, questions.all_answered(outcome), values)[model.observed]
        each = row_log_probs(site["fn"], site["value"])
        if len(each) != rows:
            numbers = {"title": model.title, "number": len(each), "rows": rows}
            raise SettingError(words_of("raters.program")("no_row_probs", **numbers))
        return each

    return jnp.exp(jax.vmap(of)(outcomes)).transpose(2, 0, 1)


@singledispatch
def row_log_probs(fn: dist.Distribution, value: jax.Array) -> jax.Array:
    """Log-probability of each row's value given each class that is summed out."""
    return fn.log_prob(value)[:, None]


@row_log_probs.register
def _(fn: GroupedMixture, value: jax.Array) -> jax.Array:
    return fn.component_distribution.log_prob(value[:, None])


row_log_probs.register(RowMixture, row_log_probs.dispatch(object))
