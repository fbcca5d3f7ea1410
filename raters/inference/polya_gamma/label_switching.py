"""Step of Gibbs to other names of the classes, counted probabilities integrated out."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from raters.distributions.labels import log_beta
from raters.inference import modes
from raters.inference.arrays import Classes, Sites
from raters.inference.polya_gamma import latent_classes, plans
from raters.inference.polya_gamma.latent_classes import Parameters
from raters.inference.polya_gamma.plans import Plan
from raters.model import Exchange, Mirror, Model, Values
from raters.program import Program, log_prior


def is_collapsed(plan: Plan, kind: modes.Kind) -> bool:
    """Return whether classes can be drawn and then renamed: none may be known."""
    symmetry, broken = kind
    return plan.classes and not plan.is_joint and isinstance(symmetry, Exchange) and not broken


def counted_sites(program: Program[Any], data: Any, values: Values) -> Sites | None:
    """Return the sites that are counted given classes."""
    if not program.latent:
        return None
    blocks = plans.blocks_of(program, data, values)
    return tuple(block.sites[0] for block in blocks if block.kind == "counts")


def step(
    model: Model[Any],
    symmetry: Mirror,
    sites: Sites,
    row: Any,
    data: Any,
    values: Values,
    classes: Classes,
    order: Array,
    key: Array,
) -> tuple[Values, Classes]:
    """Rename the drawn classes z by a Metropolis step, which leaves the posterior invariant."""
    given = {site: latent_classes.parameters(model, data, values, classes, site) for site in sites}
    change = _change(model, symmetry, sites, row, values, order)
    one, change = jax.tree.map(lambda part: part[None], (given, change))
    renamed, log_odds = exchanged(symmetry, one, change, order)
    accept_key, *keys = jax.random.split(key, len(sites) + 1)
    taken = jnp.log(jax.random.uniform(accept_key)) < log_odds[0]
    image = modes.mirrored(symmetry, values, order)
    for site, use in zip(sites, keys, strict=True):
        fn = latent_classes.site_prior(model, row, image, site)
        parameters = tuple(part[0] for part in renamed[site])
        image = image | {site: latent_classes.sampled(fn, parameters, use)}
    values = jax.tree.map(partial(jnp.where, taken), image, values)
    return values, jnp.where(taken, classes[:, order], classes)


class Change(NamedTuple):
    """Change of the prior from points to their images."""

    log_odds: Array
    before: dict[str, Parameters]
    after: dict[str, Parameters]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _change(
    model: Model[Any], symmetry: Mirror, sites: Sites, row: Any, values: Values, order: Array
) -> Change:
    """Return the change from a point to its image."""
    image = modes.mirrored(symmetry, values, order)
    before, after = (
        {site: latent_classes.concentrations(model, row, point, site) for site in sites}
        for point in (values, image)
    )
    # Without other sites both are the same, which is not worth a compiled density.
    if set(sites) == set(values):
        return Change(jnp.zeros(()), before, after)
    number = {
        site: 2 if len(each) == 2 else jnp.shape(each[-1])[-1] for site, each in before.items()
    }
    equal = {site: jnp.full_like(values[site], 1 / number[site]) for site in sites}
    odds = log_prior(model, row, image | equal) - log_prior(model, row, values | equal)
    return Change(odds, before, after)


@partial(jax.jit, static_argnums=(0, 1, 2))
def changes(
    model: Model[Any], symmetry: Mirror, sites: Sites, row: Any, draws: Values, order: Array
) -> Change:
    """Return the change from each draw to its image."""
    return jax.lax.map(lambda values: _change(model, symmetry, sites, row, values, order), draws)


@partial(jax.jit, static_argnums=(0, 1))
def counted(
    model: Model[Any], sites: Sites, data: Any, draws: Values, keys: Array
) -> dict[str, Parameters]:
    """Draw classes under each draw, and return the conditionals of the counted sites."""

    def of_one(entry: tuple[Values, Array]) -> dict[str, Parameters]:
        values, key = entry
        classes = latent_classes.drawn(model, data, values, key)
        return {
            site: latent_classes.parameters(model, data, values, classes, site) for site in sites
        }

    return jax.lax.map(of_one, (draws, keys))


@partial(jax.jit, static_argnums=0)
def exchanged(
    symmetry: Mirror, conditionals: dict[str, Parameters], change: Change, order: Any
) -> tuple[dict[str, Parameters], Float[Array, " draw"]]:
    """Conditionals of the counted sites of the images, and the log odds of these."""
    assert isinstance(symmetry, Exchange)
    found, log_odds = {}, change.log_odds
    for site, conditional in conditionals.items():
        prior, other = change.before[site], change.after[site]
        axes = [axis for name, axis in symmetry.sites if name == site]

        def moved(part: Array, axes: list[int] = axes) -> Array:
            for axis in axes:
                part = jnp.take(part, order, axis=axis)
            return part

        is_turned = site in symmetry.complemented  # Right and wrong change places.
        if len(conditional) == latent_classes.OF_MIXTURE:
            count = moved(conditional[2])
            after = (*other[:2], count[..., ::-1] if is_turned else count)
            more = _at_equal(other) - _at_equal(prior) - _of_draws(after) + _of_draws(conditional)
            found[site] = after
        else:
            own, prior = (tuple(map(moved, each)) for each in (conditional, prior))
            if is_turned:
                own, prior = own[::-1], prior[::-1]
            found[site], more = _with_prior(own, prior, other)
        log_odds = log_odds - more
    return found, log_odds


@jax.jit
def _of_draws(parameters: Parameters) -> Float[Array, " draw"]:
    """Log evidence of the counts under each draw, all judges together."""
    log_probs = jax.lax.map(latent_classes.component_log_probs, parameters)
    return jax.nn.logsumexp(log_probs, axis=-1).sum(-1)


@jax.jit
def _at_equal(parameters: Parameters) -> Float[Array, " draw"]:
    """Log density of mixtures where all probabilities are equal, all judges together."""
    log_weight, concentration, count = parameters
    ndim, size = count.ndim - 2, count.shape[-1]
    places = tuple(range(-ndim, 0))
    density = -jnp.log(size) * (concentration - 1).sum(places) - log_beta(concentration, ndim)
    if concentration.ndim == count.ndim:  # Of all judges.
        density = density[:, None]
    return jax.nn.logsumexp(log_weight + density, axis=-1).sum(-1)


def _with_prior(
    conditional: Parameters, prior: Parameters, other: Parameters
) -> tuple[Parameters, Float[Array, " draw"]]:
    """Put another prior's concentrations in the place of the prior's in a conditional."""
    before, old, new = (
        part[0] if len(part) == 1 else jnp.stack(part, -1) for part in (conditional, prior, other)
    )
    by = new - old
    after = before + by

    def changed() -> Array:
        entries = gammaln(before) - gammaln(after)
        rows = gammaln(after.sum(-1)) - gammaln(before.sum(-1))
        total = entries.sum(-1) + rows - jnp.log(after.shape[-1]) * by.sum(-1)
        return total.reshape(len(before), -1).sum(1)

    same = partial(jnp.zeros, len(before), before.dtype)
    change = jax.lax.cond(jnp.any(by != 0), changed, same)
    return (after,) if len(conditional) == 1 else (after[..., 0], after[..., 1]), change
