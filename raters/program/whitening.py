"""Sites in units of their priors: a non-centred program (Papaspiliopoulos, Roberts and Sköld 2007),
in which a site and what governs its scale are independent but for the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import ndtr, ndtri
from jax.scipy.stats import norm
from jaxtyping import Array
from numpyro.distributions.truncated import LeftTruncatedDistribution, TwoSidedTruncatedDistribution
from numpyro.infer.reparam import Reparam

from raters.distributions.correlated import unwrapped
from raters.distributions.rows import computed_once
from raters.model import Model

_NORMAL = dist.Normal, dist.MultivariateNormal
_TRUNCATED = LeftTruncatedDistribution, TwoSidedTruncatedDistribution


def has_white(fn: dist.Distribution) -> bool:
    """Return whether a prior is normal, of numbers, of vectors or truncated."""
    base = unwrapped(fn)
    if isinstance(base, _TRUNCATED):
        base = base.base_dist
    return isinstance(base, _NORMAL)


def white(base: Any, value: Any) -> Array:
    """Return normal vectors in units of their distribution, and other entries as normal scores."""
    if isinstance(base, dist.MultivariateNormal):
        apart = (value - base.loc)[..., None]
        return jnp.asarray(solve_triangular(base.scale_tril, apart, lower=True)[..., 0])
    if isinstance(base, dist.Normal):
        return jnp.asarray((value - base.loc) / base.scale)
    return ndtri(base.cdf(value))


def coloured(base: Any, white: Array) -> Array:
    """Return vectors or entries of which these are the white ones."""
    if isinstance(base, dist.MultivariateNormal):
        return jnp.asarray(base.loc + (base.scale_tril @ white[..., None])[..., 0])
    if isinstance(base, dist.Normal):
        return jnp.asarray(base.loc + base.scale * white)
    share = ndtr(white)
    limits: Any = np.finfo(share.dtype)
    return jnp.asarray(base.icdf(jnp.clip(share, limits.tiny, 1 - limits.eps)))


def volume_of(base: Any, white: Array, values: Array) -> Array:
    """Return the log volume element of `coloured` there."""
    if isinstance(base, dist.MultivariateNormal):
        each = jnp.log(jnp.diagonal(base.scale_tril, axis1=-2, axis2=-1))
    elif isinstance(base, dist.Normal):
        each = jnp.log(base.scale)
    else:
        each = norm.logpdf(white) - base.log_prob(values)
    return jnp.broadcast_to(each, white.shape).sum()


class _Whitened(Reparam):  # type: ignore[misc]
    """A site as a function of its white values."""

    def __call__(self, name: str, fn: Any, obs: Any) -> tuple[None, Any]:
        """Sample the white values; return no distribution, and the values."""
        assert obs is None
        of_white = dist.Normal(0.0, 1.0).expand(fn.shape()).to_event(fn.event_dim)
        drawn = numpyro.sample(white_name(name), of_white, infer={"white": True})
        # Constants of a prior do not widen numbers in single precision.
        return None, computed_once(coloured(unwrapped(fn), drawn).astype(drawn.dtype))


def white_name(site: str) -> str:
    """Return the name of the white values of a site."""
    return f"{site}_white"


def whitened(model: Model[Any], sites: tuple[str, ...]) -> Callable[..., None]:
    """Return the program of a model that samples white values of some sites."""
    if not sites:
        return model
    return numpyro.handlers.reparam(model, config=dict.fromkeys(sites, _Whitened()))
