"""Types of annotators, their shares, and what is learned of the competent ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.model import Values

TYPES = ("competent", "guesser", "adversary")
# Prior of the shares of the types: numbers of annotators of each that it is worth.
_SHARES = (8.0, 2.0, 1.0)
# Concentration of a guesser's probabilities about those of chance: it stands for infinity.
GUESS_LABELS = 200.0
# Priors of the mean competence and of how alike the competent are.
_COMPETENCE, _ALIKE = (2.0, 1.0), (10.0, 1.0)


def sample_type_weight() -> Float[Array, " type"]:
    """Sample the share of each type."""
    prior = dist.Dirichlet(jnp.array(_SHARES))
    return numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})


def sample_competent() -> tuple[Array, Array]:
    """Sample the mean competence of the competent, from 0 (chance) to 1, and how alike they are."""
    mean = numpyro.sample("mean_competence", dist.Beta(*_COMPETENCE))
    alike, spread = _ALIKE
    concentration = numpyro.sample("concentration", dist.LogNormal(jnp.log(alike), spread))
    return mean, concentration


def right(competence: Array, num_classes: int) -> tuple[Array, Array]:
    """Return the mean probability of a right label of the competent, and of adversaries."""
    chance = 1 / num_classes
    return chance + (1 - chance) * competence, chance * (1 - competence)


def start() -> Values:
    """Start from the prior's shares, and from a competence and a concentration in the middle."""
    share = jnp.array(_SHARES)
    return {
        "type_weight": share / share.sum(),
        "mean_competence": jnp.array(0.6),
        "concentration": jnp.array(_ALIKE[0]),
    }
