"""Reading a model by running it: its sites, its prior and likelihood, and its unconstrained coordinates."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import constraints

from raters.model import Model, Values, unit_of

# How far a start in unconstrained coordinates is kept from the edge of a support, as a share of its width.
_EDGE = 1e-6


class Site(NamedTuple):
    """One ``sample`` statement: its shape, the names of its axes (its plates), its support and its distribution."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    observed: bool
    support: constraints.Constraint
    distribution: str


def trace(model: Model, data: Any, values: Values) -> dict[str, Any]:
    """The program's trace with the sites in `values` set to them; sites that are not named are drawn."""
    seeded = handlers.seed(handlers.substitute(model.generate, values), jax.random.key(0))
    return handlers.trace(seeded).get_trace(data)


def skeleton(model: Model, data: Any) -> dict[str, Any]:
    """The program's trace at any values inside the supports: nothing is drawn, which would take long to compile."""
    program = handlers.substitute(model.generate, substitute_fn=partial(_feasible, model.observed))
    return handlers.trace(handlers.seed(program, jax.random.key(0))).get_trace(data)


def _feasible(observed: str, site: dict[str, Any]) -> Any:
    """Any value in a site's support."""
    if site["type"] != "sample" or site["is_observed"]:
        return None
    fn = site["fn"]
    if site["name"] == observed:
        return jnp.zeros(fn.shape())
    return fn.support.feasible_like(jnp.zeros(fn.shape()))


def sites(model: Model, data: Any) -> dict[str, Site]:
    """Every sample site by name, the observed one last. Runs the program on one unit only, and draws nothing."""
    found: dict[str, Site] = {}
    for name, site in skeleton(model, data.take(slice(0, 1))).items():
        if site["type"] != "sample":
            continue
        observed = name == model.observed
        axis, number = unit_of(model, data)
        shape = (number,) if observed else jnp.shape(site["value"])
        dims = (axis,) if observed else _dims(name, site, len(shape))
        found[name] = Site(shape, dims, observed, _of_one(site["fn"].support), _name(site["fn"]))
    return dict(sorted(found.items(), key=lambda entry: entry[1].observed))


def _of_one(support: constraints.Constraint) -> constraints.Constraint:
    """The support of one event, of many that `to_event` or a plate has put together."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support


def _dims(name: str, site: dict[str, Any], number: int) -> tuple[str, ...]:
    """Names of a site's axes: its plates', then those that it declares for its events."""
    event = site["fn"].event_dim
    by_axis = {frame.dim: frame.name for frame in site["cond_indep_stack"]}
    batch = tuple(by_axis.get(axis, f"{name}_dim_{axis - event}") for axis in range(event - number, 0))
    declared = tuple(site["infer"].get("event_dims", ()))
    return batch + (declared or tuple(f"{name}_dim_{axis}" for axis in range(-event, 0)))


def _name(fn: dist.Distribution) -> str:
    """A distribution's name as a reader knows it."""
    if isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        return _name(fn.base_dist)
    name = type(fn).__name__
    if "Truncated" in name and hasattr(fn, "base_dist"):
        return f"Truncated{_name(fn.base_dist)}"
    return name.removesuffix("Logits").removesuffix("Probs")


def latent_sites(model: Model, data: Any) -> dict[str, Site]:
    """The latent sites by name, in the order of the program."""
    return {name: site for name, site in sites(model, data).items() if not site.observed}


def log_prior(model: Model, data: Any, values: Values, without: tuple[str, ...] = ()) -> jax.Array:
    """Log prior density of all latent sites but those in `without`; −∞ outside their support."""
    total = jnp.zeros(())
    for name, site in trace(model, data, values).items():
        if site["type"] == "sample" and name != model.observed and name not in without:
            fn, value = site["fn"], site["value"]
            total += jnp.where(fn.support(value), fn.log_prob(value), -jnp.inf).sum()
    return total


def pointwise_log_likelihood(model: Model, data: Any, values: Values) -> jax.Array:
    """Log-likelihood of each unit: a comparison, or an item with all its labels."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].log_prob(site["value"])


def log_joint(model: Model, data: Any, values: Values) -> jax.Array:
    """Log density of parameters and outcomes together, in the coordinates in which the model is written."""
    return log_prior(model, data, values) + pointwise_log_likelihood(model, data, values).sum()


def scattered(values: Values, supports: dict[str, constraints.Constraint], rng: np.random.Generator, least=0.6) -> Values:
    """Values that differ from these, each in its support: factors from `least` to 1.1 on every site; on probabilities, a share
    of other ones."""
    found = {}
    for name, value in values.items():
        if supports[name] is constraints.simplex:
            share = (1 - least) * rng.uniform(0.2, 0.5)
            found[name] = (1 - share) * value + share * rng.dirichlet(np.ones(np.shape(value)[-1]), np.shape(value)[:-1])
        else:
            # An accuracy stays above chance.
            low, high = ((1 + least) / 2, 1.0) if supports[name] is constraints.unit_interval else (least, 1.1)
            found[name] = value * rng.uniform(low, high, np.shape(value))
    return found


def inside(values: Values, supports: dict[str, constraints.Constraint]) -> Values:
    """Values a little inside their supports, so that unconstrained coordinates are finite: draws may lie on an edge."""
    found = {}
    for name, value in values.items():
        value, support = np.asarray(value, np.float64), supports[name]
        if support is constraints.simplex:
            found[name] = (1 - _EDGE) * value + _EDGE / value.shape[-1]
            continue
        low, high = (getattr(support, end, None) for end in ("lower_bound", "upper_bound"))
        if low is not None:
            value = np.maximum(value, low + _EDGE * (1.0 if high is None else high - low))
        found[name] = value if high is None else np.minimum(value, high - _EDGE * (1.0 if low is None else high - low))
    return found


@partial(jax.jit, static_argnums=0)
def prior_of(model: Model, data: Any, values: Values) -> jax.Array:
    """Compiled `log_prior`."""
    return log_prior(model, data, values)


@partial(jax.jit, static_argnums=0)
def likelihood_of(model: Model, data: Any, values: Values) -> jax.Array:
    """Compiled sum of `pointwise_log_likelihood`."""
    return pointwise_log_likelihood(model, data, values).sum()
