"""Vectors of single judges in units of their scales, for samplers that move all sites together.

With few answers of each judge, vectors of small scales lie close together, and a step that suits
wide scales is too long for narrow ones (Neal's funnel). In units of the scales they do not. The
program stays as it is; the sampler runs it through NumPyro's handler of reparametrisations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.infer.reparam import Reparam

from raters.distributions.correlated import unwrapped
from raters.model import Model, Values
from raters.program import trace


class _Whitened(Reparam):
    """A normal vector as its mean and the Cholesky factor of its covariance times a white one."""

    def __call__(self, name: str, fn: Any, obs: Any) -> tuple[None, Any]:
        """Sample the white vector; return no distribution, and the value."""
        assert obs is None
        white = dist.Normal(0.0, 1.0).expand(fn.shape()).to_event(fn.event_dim)
        return None, _coloured(unwrapped(fn), numpyro.sample(name_of(name), white))


def _coloured(base: Any, white: Array) -> Array:
    if isinstance(base, dist.MultivariateNormal):
        return jnp.asarray(base.loc + (base.scale_tril @ white[..., None])[..., 0])
    return jnp.asarray(base.loc + base.scale * white)


def name_of(site: str) -> str:
    """Return the name of the white vector of a site."""
    return f"{site}_white"


def program_of(model: Model[Any]) -> Callable[..., None]:
    """Return the program of a model, its vectors of single judges in units of their scales."""
    if not model.own:
        return model.generate
    config = {own.site: _Whitened() for own in model.own}
    return numpyro.handlers.reparam(model.generate, config=config)


def whitened(model: Model[Any], data: Any, values: Values) -> Values:
    """Return the values of the sites that this program samples."""
    white = dict(values)
    for own in model.own:
        white[name_of(own.site)] = _white(model, own.site, data, values)
        del white[own.site]
    return white


@partial(jax.jit, static_argnums=(0, 1))
def _white(model: Model[Any], site: str, data: Any, values: Values) -> Array:
    fn, value = trace(model, data, values)[site]["fn"], jnp.asarray(values[site])
    base = unwrapped(fn)
    if isinstance(base, dist.MultivariateNormal):
        apart = (value - base.loc)[..., None]
        solved: Array = jax.scipy.linalg.solve_triangular(base.scale_tril, apart, lower=True)
        return solved[..., 0]
    return jnp.asarray((value - base.loc) / base.scale)
