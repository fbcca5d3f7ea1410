"""Densities that several checks compare, each compiled once for a model and a shape of data."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from raters.inference._trace import log_joint, log_prior, pointwise_log_likelihood
from raters.model import Model, Values


@partial(jax.jit, static_argnums=0)
def parts(model: Model, data: Any, values: Values) -> tuple[jax.Array, jax.Array]:
    """Log prior density, and pointwise log-likelihood."""
    return log_prior(model, data, values), pointwise_log_likelihood(model, data, values)


@partial(jax.jit, static_argnums=0)
def value_and_slope(model: Model, data: Any, values: Values) -> tuple[jax.Array, Values]:
    """Log joint density, and its slope at every site."""
    return jax.value_and_grad(lambda values: log_joint(model, data, values))(values)
