"""Densities that the checks compare, compiled once for a model and a shape of data."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpyro.infer.util

from raters.model import Model, Values
from raters.program import log_prior, pointwise_log_likelihood


class Densities(NamedTuple):
    """Log densities at one point."""

    prior: jax.Array
    joint: jax.Array
    pointwise: jax.Array
    slope: Values
    by_numpyro: jax.Array


@partial(jax.jit, static_argnums=0)
def densities(model: Model[Any], data: Any, values: Values) -> Densities:
    """Compute all densities together: one compilation serves every check."""

    def joint(values: Values) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        prior = log_prior(model, data, values)
        pointwise = pointwise_log_likelihood(model, data, values)
        return prior + pointwise.sum(), (prior, pointwise)

    (total, (prior, pointwise)), slope = jax.value_and_grad(joint, has_aux=True)(values)
    by_numpyro = numpyro.infer.util.log_density(model, (data,), {}, values)[0]
    return Densities(prior, total, pointwise, slope, by_numpyro)
