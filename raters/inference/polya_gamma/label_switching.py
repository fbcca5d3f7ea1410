"""Step of Gibbs to other names of the classes, counted probabilities integrated out."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from raters.distributions.type_mixture import log_beta
from raters.inference import modes
from raters.inference.arrays import Classes, PerDraw, Rng, Sites
from raters.inference.polya_gamma import latent_classes, plans
from raters.inference.polya_gamma.latent_classes import Counts, Parameters
from raters.inference.polya_gamma.plans import Plan
from raters.model import Exchange, Mirror, Model, Values
from raters.program import Program, log_prior

# Row sums of concentrations that differ by less are equal but for rounding.
_ROUNDING = 1e-9
# Parameters of the conditionals of a site under some draws.
Parts = list[np.ndarray]


def is_collapsed(plan: Plan, move: modes.Images) -> bool:
    """Return whether classes can be drawn and then renamed: none may be known."""
    counted = plan.classes and not plan.is_joint
    return counted and isinstance(move.symmetry, Exchange) and not move.broken


def counted_sites(program: Program[Any], data: Any, values: Values) -> Sites | None:
    """Return the sites that are counted given classes."""
    if not program.latent:
        return None
    blocks = plans.blocks_of(program, data, values)
    return tuple(block.sites[0] for block in blocks if block.kind == "counts")


def step(
    plan: Plan,
    moves: tuple[modes.Images, ...],
    row: Any,
    data: Any,
    values: Values,
    classes: Classes,
    rng: Rng,
) -> tuple[Values, Any, dict[str, Counts]]:
    """Rename the drawn classes z by a Metropolis step, which leaves the posterior invariant."""
    counted = tuple(block for block in plan.blocks if block.kind == "counts")
    sites = tuple(block.sites[0] for block in counted)
    found: dict[str, Parameters] = {}
    for move in moves:
        if not found:
            found = {
                site: latent_classes.parameters(plan.model, data, values, classes, site)
                for site in sites
            }
        order = move.tried(rng)
        change = _change(plan.model, move.symmetry, sites, row, values, order)
        one = {site: tuple(np.asarray(part)[None] for part in each) for site, each in found.items()}
        renamed, log_odds = exchanged(
            move.symmetry, one, jax.tree.map(lambda part: np.asarray(part)[None], change), order
        )
        if np.log(rng.random()) < log_odds[0]:
            classes = jnp.asarray(np.asarray(classes).take(order, axis=1))
            values = modes.mirrored(move.symmetry, jax.tree.map(np.asarray, values), order)
            found = {site: tuple(part[0] for part in each) for site, each in renamed.items()}
            for block in counted:
                conditional = latent_classes.conditional(found[block.sites[0]])
                values = block.put(values, conditional.draw(rng, block.current(values)))
    conditionals = {
        site: latent_classes.conditional(each, site in plan.in_logs) for site, each in found.items()
    }
    return values, classes, conditionals


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
        site: 2 if len(each) == 2 else np.shape(each[-1])[-1] for site, each in before.items()
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


def exchanged(
    symmetry: Mirror, conditionals: dict[str, Parameters], change: Change, order: np.ndarray
) -> tuple[dict[str, Parameters], PerDraw]:
    """Conditionals of the counted sites of the images, and the log odds of these."""
    assert isinstance(symmetry, Exchange)
    found, log_odds = {}, np.array(change.log_odds, np.float64)
    for site, conditional in conditionals.items():
        parts = [
            [np.asarray(part) for part in each]
            for each in (conditional, change.before[site], change.after[site])
        ]
        if len(conditional) == latent_classes.OF_MIXTURE:
            found[site], more = _mixed(symmetry, site, parts[0], parts[1], parts[2], order)
            log_odds -= more
            continue
        for name, axis in symmetry.sites:
            if name == site:
                parts[:2] = [[part.take(order, axis=axis) for part in each] for each in parts[:2]]
        if site in symmetry.complemented:  # Right and wrong change places.
            parts[:2] = [each[::-1] for each in parts[:2]]
        found[site], more = _with_prior(*parts)
        log_odds -= more
    return found, log_odds


def _mixed(
    symmetry: Exchange, site: str, conditional: Parts, prior: Parts, other: Parts, order: Any
) -> tuple[Parameters, PerDraw]:
    """Give the counts of a mixture over types to the image, with the prior of the image."""
    count = conditional[2]
    for name, axis in symmetry.sites:
        if name == site:
            count = count.take(order, axis=axis)
    if site in symmetry.complemented:
        count = count[..., ::-1]
    after = (*other[:2], count)
    evidence, density = _of_draws(tuple(conditional)), _at_equal(tuple(prior))
    change = _at_equal(tuple(other)) - density - (_of_draws(after) - evidence)
    return after, np.asarray(change)


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


def _with_prior(conditional: Parts, prior: Parts, other: Parts) -> tuple[Parameters, PerDraw]:
    """Put another prior's concentrations in the place of the prior's in a conditional."""
    before, old, new = (
        part[0] if len(part) == 1 else np.stack(part, -1) for part in (conditional, prior, other)
    )
    number, by = len(before), new - old
    after = before + by
    # Most entries stay as they are.
    entries, rows = np.nonzero(by), np.nonzero(np.abs(by.sum(-1)) > _ROUNDING)
    change = -np.log(after.shape[-1]) * by.reshape(number, -1).sum(1)
    for places, sign, parts in (
        (entries, -1.0, (after, before)),
        (rows, 1.0, (after.sum(-1), before.sum(-1))),
    ):
        gain = gammaln(parts[0][places]) - gammaln(parts[1][places])
        change += sign * np.bincount(places[0], gain, number)
    return (after,) if len(conditional) == 1 else (after[..., 0], after[..., 1]), change
