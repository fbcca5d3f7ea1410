"""Types of annotators, their shares, and what is learned of the competent ones."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors.validation import plain_positive
from raters.model import Values

TYPES = ("competent", "guesser", "adversary")
# Priors of the mean competence and of how alike the competent are.
_COMPETENCE, _ALIKE = (2.0, 1.0), (10.0, 1.0)


def check_settings(model: Any) -> None:
    """Check the settings of a model with types of annotators."""
    plain_positive(model, *TYPES, "guess_labels", "prevalence")


def sample_type_weight(model: Any) -> Float[Array, " type"]:
    """Sample the share of each type."""
    prior = dist.Dirichlet(jnp.array([getattr(model, name) for name in TYPES], float))
    weight: Array = numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})
    return weight


def sample_competent() -> tuple[Array, Array]:
    """Sample the mean competence of those who are competent, from 0 (chance) to 1, and the
    concentration of their probabilities about it."""
    mean = numpyro.sample("mean_competence", dist.Beta(*_COMPETENCE))
    alike, spread = _ALIKE
    concentration = numpyro.sample("concentration", dist.LogNormal(jnp.log(alike), spread))
    return mean, concentration


def right(competence: Array, num_classes: int) -> tuple[Array, Array]:
    """Return the mean probability of a right label of the competent, and of adversaries, who give
    it as rarely as the competent give each wrong one."""
    chance = 1 / num_classes
    return chance + (1 - chance) * competence, chance * (1 - competence)


def start(model: Any) -> Values:
    """Start from the prior's shares, and from a competence and a concentration in the middle."""
    share = jnp.array([getattr(model, name) for name in TYPES], float)
    return {
        "type_weight": share / share.sum(),
        "mean_competence": jnp.array(0.6),
        "concentration": jnp.array(_ALIKE[0]),
    }
