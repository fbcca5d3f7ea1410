"""Step of Gibbs to other names of the classes, with the probabilities that are counted integrated
out."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from raters.inference import mirror
from raters.inference.polya_gamma import latent_classes, sweep
from raters.inference.polya_gamma.latent_classes import Counts, Parameters
from raters.model import Exchange, Model, Values
from raters.program import log_prior

# Row sums of concentrations that differ by less are equal but for rounding.
_ROUNDING = 1e-9


def is_collapsed(plan: sweep.Plan, move: mirror.Images) -> bool:
    """Return whether classes can be drawn and then renamed: none may be known."""
    return (
        plan.classes
        and not plan.broken
        and isinstance(move.symmetry, Exchange)
        and not move.broken
    )


def step(
    plan: sweep.Plan,
    moves: tuple[mirror.Images, ...],
    row: Any,
    data: Any,
    values: Values,
    classes: Float[Array, "unit class"],
    rng: np.random.Generator,
) -> tuple[Values, Any, dict[str, Counts]]:
    r"""Rename the drawn classes z by a Metropolis step, which leaves the posterior invariant.

    With the counted probabilities θ (prevalence, confusion matrices) integrated out, and φ for the
    other sites, the odds of the image are

    .. math:: \frac{p(g\phi, gz \mid y)}{p(\phi, z \mid y)}, \qquad
        p(\phi, z, y) = \frac{p(\theta, \phi) \, p(y, z \mid \theta, \phi)}
        {p(\theta \mid \phi, z, y)},

    at any θ: here that where all probabilities are equal, which is its own image, so that the
    likelihood drops out. The ratio of priors at a drawn θ, which `raters.inference.mirror.step`
    uses, also hangs on the smallest of its entries, and is hardly ever accepted where there are
    many.

    Parameters
    ----------
    plan : Plan
    moves : tuple of Images
        For which `is_collapsed`.
    row, data : Judgements
    values : dict of str to array
    classes : array, shape (unit, class)
        Drawn classes as one-hot rows.
    rng : numpy.random.Generator

    Returns
    -------
    tuple
        Values, classes, and the conditionals of the counted sites given both. After a step, θ is
        drawn from these.
    """
    counted = tuple(block for block in plan.blocks if block.kind == "counts")
    sites = tuple(block.sites[0] for block in counted)
    found: dict[str, Parameters] = {}
    for move in moves:
        if not found:
            found = {
                site: latent_classes.parameters(plan.model, data, values, classes, site)
                for site in sites
            }
            found = {site: tuple(map(np.asarray, each)) for site, each in found.items()}
        order = move.tried(rng)
        image, odds, priors = _image(plan.model, move.symmetry, sites, row, values, order)
        renamed = {}
        log_odds = float(odds)
        for site, (here, there) in priors.items():
            parts = found[site], tuple(map(np.asarray, here))
            moved = _moved(move.symmetry, site, parts, order)
            renamed[site], change = _exchanged(*moved, tuple(map(np.asarray, there)))
            log_odds -= change
        if np.log(rng.random()) < log_odds:
            values, classes, found = image, np.asarray(classes).take(order, axis=1), renamed
            for block in counted:
                conditional = Counts(found[block.sites[0]])
                values = block.put(values, conditional.draw(rng, block.current(values)))
    conditionals = {
        site: Counts(each, site in plan.in_logs) for site, each in found.items()
    }
    return values, classes, conditionals


@partial(jax.jit, static_argnums=(0, 1, 2))
def _image(
    model: Model[Any],
    symmetry: Exchange,
    sites: tuple[str, ...],
    row: Any,
    values: Values,
    order: Array,
) -> tuple[Values, Float[Array, ""], dict[str, tuple[Parameters, Parameters]]]:
    """Return the image, the log odds of its prior where counted probabilities are equal, and the
    concentrations of these before and after."""
    image = mirror.mirrored(symmetry, values, order)
    priors = {
        site: (
            latent_classes.concentrations(model, row, values, site),
            latent_classes.concentrations(model, row, image, site),
        )
        for site in sites
    }
    # Without other sites both are the same, which is not worth a compiled density.
    if set(sites) == set(values):
        return image, jnp.zeros(()), priors
    equal = {
        site: jnp.full_like(
            values[site], 0.5 if len(here) == 2 else 1 / np.shape(values[site])[-1]
        )
        for site, (here, _) in priors.items()
    }
    odds = log_prior(model, row, image | equal) - log_prior(model, row, values | equal)
    return image, odds, priors


def _moved(
    symmetry: Exchange, site: str, parts: tuple[Parameters, Parameters], order: np.ndarray
) -> tuple[Parameters, Parameters]:
    """Move parameters as the exchange moves their site."""
    for name, axis in symmetry.sites:
        if name == site:
            one, other = (tuple(each.take(order, axis=axis) for each in part) for part in parts)
            parts = one, other
    # Right and wrong change places.
    return (parts[0][::-1], parts[1][::-1]) if site in symmetry.complemented else parts


def _exchanged(
    conditional: Parameters, prior: Parameters, other: Parameters
) -> tuple[Parameters, float]:
    """Put one prior's concentrations in the place of another's in the parameters of a conditional.

    Returns
    -------
    tuple
        The parameters, and the change of the conditional's log density where all probabilities are
        equal.
    """
    before, old, new = (
        part[0] if len(part) == 1 else np.stack(part, -1) for part in (conditional, prior, other)
    )
    after = before + (new - old)
    # Most entries stay as they are.
    places = np.nonzero(new != old)
    more = (new - old)[places].sum()
    change = -more * np.log(after.shape[-1])
    change -= (gammaln(after[places]) - gammaln(before[places])).sum()
    rows = np.abs((new - old).sum(-1)) > _ROUNDING
    change += (gammaln(after[rows].sum(-1)) - gammaln(before[rows].sum(-1))).sum()
    parameters = (after,) if len(conditional) == 1 else (after[..., 0], after[..., 1])
    return parameters, float(change)
