"""Step of Gibbs to other names of the classes, with the probabilities that are counted integrated
out."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import StickBreaking
from raters.inference import mirror
from raters.inference.polya_gamma import latent_classes, sweep
from raters.model import Exchange, Mirror, Model, Values
from raters.program import log_prior


def is_collapsed(plan: sweep.Plan, move: mirror.Images) -> bool:
    """Return whether classes can be drawn and then renamed: none may be known."""
    return plan.classes and isinstance(move.symmetry, Exchange) and not move.broken


def step(
    plan: sweep.Plan,
    moves: tuple[mirror.Images, ...],
    row: Any,
    data: Any,
    values: Values,
    classes: Float[Array, "unit class"],
    rng: np.random.Generator,
) -> tuple[Values, Any]:
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
        Values and classes; θ is drawn anew with those that are accepted.
    """
    counted = tuple(block for block in plan.blocks if block.kind == "counts")
    sites = tuple(block.sites[0] for block in counted)
    for move in moves:
        order = move.tried(rng)
        image, renamed, odds = _image(
            plan.model, move.symmetry, sites, row, data, values, classes, order
        )
        if np.log(rng.random()) < float(odds):
            values, classes = image, renamed
            for block in counted:
                conditional = sweep.block_conditional(
                    plan, data, values, block, _no_weights, classes, draws=True
                )
                values = block.put(values, conditional.draw(rng, block.current(values)))
    return values, classes


def _no_weights(*_: Any) -> Any:
    raise AssertionError("counted sites have no Pólya-Gamma weights")


@partial(jax.jit, static_argnums=(0, 1, 2))
def _image(
    model: Model[Any],
    symmetry: Mirror,
    sites: tuple[str, ...],
    row: Any,
    data: Any,
    values: Values,
    classes: Float[Array, "unit class"],
    order: Array,
) -> tuple[Values, Array, Float[Array, ""]]:
    """Return the image, its classes, and its log odds."""
    image, renamed = mirror.mirrored(symmetry, values, order), classes.take(order, axis=1)
    density = partial(_log_density, model, sites, row, data)
    return image, renamed, density(image, renamed) - density(values, classes)


def _log_density(
    model: Model[Any],
    sites: tuple[str, ...],
    row: Any,
    data: Any,
    values: Values,
    classes: Float[Array, "unit class"],
) -> Float[Array, ""]:
    """Return log p(φ, z, y), less what does not change with the names of the classes."""
    conditionals = []
    for site in sites:
        parameters = latent_classes.parameters(model, data, values, classes, site)
        if len(parameters) == 1:
            conditional: dist.Distribution = dist.Dirichlet(*parameters)
            equal = jnp.full_like(parameters[0], 1 / parameters[0].shape[-1])
        elif jnp.shape(values[site]) == jnp.shape(parameters[0]):
            conditional, equal = dist.Beta(*parameters), jnp.full_like(parameters[0], 0.5)
        else:
            conditional = StickBreaking(*parameters)
            equal = jnp.full_like(values[site], 1 / jnp.shape(values[site])[-1])
        values = values | {site: equal}
        conditionals.append(conditional.log_prob(equal).sum())
    return log_prior(model, row, values) - sum(conditionals, jnp.zeros(()))
