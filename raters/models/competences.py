"""Competences of annotators, which models of several kinds have."""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

# Where competences of annotators, by which log-odds are multiplied, are from.
Competence = Literal["unit", "positive", "signed"]
Spread = float | Literal["auto", "learned"]
# Bounds of the competences.
LOW = {"unit": 0.0, "positive": 0.0, "signed": None}
HIGH = {"unit": 1.0, "positive": None, "signed": None}


def fixed_spread(model: Any) -> float | None:
    """Return the spread of the competences, or None when it is learned."""
    if isinstance(model.competence_spread, str):
        signed = model.competence_spread == "auto" and model.competence == "signed"
        return 1.0 if signed else None
    return float(model.competence_spread)


def competence_spread_site(fixed: float | None, median: float = 0.5, scale: float = 1.0) -> Any:
    """Sample the spread of the competences from LogNormal(log ½, 1), unless it is fixed."""
    if fixed is not None:
        return fixed
    return numpyro.sample("competence_spread", dist.LogNormal(jnp.log(median), scale))


def competence_site(kind: str, spread: Any, num_annotators: int) -> Float[Array, " annotator"]:
    """Sample a competence for each annotator, normal about 1 within its range."""
    with numpyro.plate("annotator", num_annotators):
        competence: Array = numpyro.sample(
            "competence", dist.TruncatedNormal(1.0, spread, low=LOW[kind], high=HIGH[kind])
        )
        return competence
