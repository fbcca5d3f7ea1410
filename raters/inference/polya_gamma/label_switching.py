"""Step of Gibbs to other names of the classes, counted probabilities integrated out."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array

from raters.distributions.labels import log_beta
from raters.inference import modes
from raters.inference.arrays import Classes, Scalar, Sites
from raters.inference.polya_gamma import detection, latent_classes
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
    blocks = detection.blocks_of(program)
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
    accept_key, *keys = jax.random.split(key, len(sites) + 1)
    given = model, symmetry, row, data, values, classes
    image, log_odds = switched(*given, dict(zip(sites, keys, strict=True)), order)
    taken = jnp.log(jax.random.uniform(accept_key)) < log_odds
    values = jax.tree.map(partial(jnp.where, taken), image, values)
    return values, jnp.where(taken, classes[:, order], classes)


def switched(
    model: Model[Any],
    symmetry: Mirror,
    row: Any,
    data: Any,
    values: Values,
    classes: Classes,
    keys: dict[str, Array],
    order: Array,
) -> tuple[Values, Scalar]:
    """Return the image of a point and of its drawn classes, with each of the counted sites drawn
    anew by its key, and the log odds of the image, the counted sites integrated out."""
    assert isinstance(symmetry, Exchange)
    image, log_odds = modes.mirrored(symmetry, values, order), jnp.zeros(())
    if set(keys) != set(values):
        shapes = {site: latent_classes.concentrations(model, row, values, site) for site in keys}
        number = {site: 2 if len(one) == 2 else one[-1].shape[-1] for site, one in shapes.items()}
        equal = {site: jnp.full_like(values[site], 1 / number[site]) for site in keys}
        log_odds = log_prior(model, row, image | equal) - log_prior(model, row, values | equal)
    for site, key in keys.items():
        given = latent_classes.parameters(model, data, values, classes, site)
        before, after = (
            latent_classes.concentrations(model, row, one, site) for one in (values, image)
        )
        renamed, less = _renamed(symmetry, site, given, before, after, order)
        log_odds -= less
        fn = latent_classes.site_prior(model, row, image, site)
        image = image | {site: latent_classes.sampled(fn, renamed, key)}
    return image, log_odds


def _renamed(
    symmetry: Exchange,
    site: str,
    given: Parameters,
    prior: Parameters,
    other: Parameters,
    order: Array,
) -> tuple[Parameters, Scalar]:
    """Return the conditional of a counted site after a change of names, with the other prior of the
    image, and by how much less probable the counts then are."""
    axes = [axis for name, axis in symmetry.sites if name == site]

    def moved(part: Array) -> Array:
        for axis in axes:
            part = jnp.take(part, order, axis=axis)
        return part

    is_turned = site in symmetry.complemented  # Right and wrong change places.
    if len(given) == latent_classes.OF_MIXTURE:
        count = moved(given[2])
        after = (*other[:2], count[..., ::-1] if is_turned else count)
        return after, _at_equal(other) - _at_equal(prior) - _evidence(after) + _evidence(given)
    own, prior = (tuple(map(moved, each)) for each in (given, prior))
    return (
        _with_prior(own[::-1], prior[::-1], other) if is_turned else _with_prior(own, prior, other)
    )


def _evidence(parameters: Parameters) -> Scalar:
    """Return the log evidence of the counts of all judges."""
    return jax.nn.logsumexp(latent_classes.component_log_probs(parameters), axis=-1).sum()


def _at_equal(parameters: Parameters) -> Scalar:
    """Return the log density of mixtures where all probabilities are equal, of all judges."""
    log_weight, concentration, count = parameters
    ndim, size = count.ndim - 1, count.shape[-1]
    places = tuple(range(-ndim, 0))
    density = -jnp.log(size) * (concentration - 1).sum(places) - log_beta(concentration, ndim)
    return jax.nn.logsumexp(log_weight + density, axis=-1).sum()


def _with_prior(
    conditional: Parameters, prior: Parameters, other: Parameters
) -> tuple[Parameters, Scalar]:
    """Put another prior's concentrations in the place of the prior's in a conditional."""
    before, old, new = (
        part[0] if len(part) == 1 else jnp.stack(part, -1) for part in (conditional, prior, other)
    )
    by = new - old
    after = before + by
    entries = gammaln(before) - gammaln(after)
    rows = gammaln(after.sum(-1)) - gammaln(before.sum(-1))
    change = (entries.sum(-1) + rows - jnp.log(after.shape[-1]) * by.sum(-1)).sum()
    return (after,) if len(conditional) == 1 else (after[..., 0], after[..., 1]), change
