"""Competences of annotators, which models of several kinds have."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors.validation import one_of, positive

# Where competences of annotators, by which log-odds are multiplied, are from.
Competence = Literal["unit", "positive", "signed"]
Spread = float | Literal["auto", "learned"]
# Bounds of the competences.
LOW = {"unit": 0.0, "positive": 0.0, "signed": None}
HIGH = {"unit": 1.0, "positive": None, "signed": None}


class WithCompetences(Protocol):
    """Model with a range of competences and the setting of their spread."""

    @property
    def competence(self) -> Competence | None: ...

    @property
    def competence_spread(self) -> Spread: ...


def check_competence_spread(model: WithCompetences) -> None:
    """Check the setting, and keep a number as a plain float."""
    spread = model.competence_spread
    if isinstance(spread, str):
        one_of("competence_spread", spread, ("auto", "learned"))
        return
    positive("competence_spread", spread)
    object.__setattr__(model, "competence_spread", float(spread))


def fixed_spread(model: WithCompetences) -> float | None:
    """Return the spread of the competences, or None when it is learned."""
    spread = model.competence_spread
    if isinstance(spread, str):
        return 1.0 if spread == "auto" and model.competence == "signed" else None
    return spread


def competence_spread_site(fixed: float | None, median: float = 0.5, scale: float = 1.0) -> Any:
    """Sample the spread of the competences, by default from LogNormal(log ½, 1), unless it is
    fixed."""
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
