"""Competences of annotators, by which log-odds are multiplied, and what they depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import refuse
from raters.judgements.comparisons import Comparisons
from raters.model import Values
from raters.terms.base import Prepared, Term, sample_vectors, sampled, worded

# Where competences of annotators are from.
Range = Literal["unit", "positive", "signed"]
Width = float | Literal["auto", "learned"]
# Bounds of the competences.
LOW = {"unit": 0.0, "positive": 0.0, "signed": None}
HIGH = {"unit": 1.0, "positive": None, "signed": None}


@dataclass(frozen=True)
class Competence(Prepared):
    r"""Competence of each annotator, :math:`\beta_k \sim \mathrm{Normal}(1, \tau)` on a range.

    Parameters
    ----------
    range : {"unit", "positive", "signed"}
        [0, 1], [0, ∞) or the real line.
    spread : float, "learned" or "auto"
        Standard deviation τ; learned from :math:`\mathrm{LogNormal}(\log ½, 1)`, but 1 for
        ``"signed"`` by ``"auto"``.
    """

    linear = ("competence",)

    range: Range = "unit"
    spread: Width = "auto"
    median: float = 0.5
    deviation: float = 1.0

    @property
    def fixed(self) -> float | None:
        """The spread, or None when it is learned."""
        if isinstance(self.spread, str):
            return 1.0 if self.spread == "auto" and self.range == "signed" else None
        return float(self.spread)

    @property
    def flipped(self) -> tuple[str, ...] | None:
        return self.linear if self.range == "signed" else None

    def prepare(self, data: Comparisons) -> Any:
        if self.fixed is not None:
            return self.fixed
        prior = dist.LogNormal(jnp.log(self.median), self.deviation)
        return numpyro.sample("competence_spread", prior)

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, " *row"]:
        competence = sample_competence(self.range, ready, data.num_annotators)
        return competence[data.annotator]

    def start(self, data: Comparisons) -> Values:
        start: Values = {"competence": jnp.full(data.num_annotators, 0.8)}
        learned = {"competence_spread": jnp.asarray(self.median)}
        return start | (learned if self.fixed is None else {})

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        """Warn of a single annotator, whose competence is confounded with the reward scale."""
        if len(set(data.annotator.tolist())) > 1:
            return ()
        return (worded("one_competence", row=data.row),)


def sample_competence(range: str, spread: Any, number: int) -> Float[Array, " annotator"]:
    """Sample a competence for each annotator, normal about 1 within its range."""
    prior = dist.TruncatedNormal(1.0, spread, low=LOW[range], high=HIGH[range])
    return sampled("competence", prior, annotator=number)


@dataclass(frozen=True)
class OfColumn(Term):
    """Term that depends on a column of the rows."""

    column: str

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    @property
    def linear(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"{self.column}_effect",)


@dataclass(frozen=True)
class Effect(OfColumn):
    r"""Linear effect of a column of numbers, :math:`\alpha x` with
    :math:`\alpha \sim \mathrm{Normal}(0, s)`.

    ``Competence("signed") + Effect("experience")`` lets competences depend on experience.

    Parameters
    ----------
    column : str
        Such as the experience or the price of who answers. One prior serves all columns, so divide
        them by their standard deviations.
    scale : float
        Standard deviation s.
    """

    scale: float = 1.0

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        effect = numpyro.sample(*self.linear, dist.Normal(0.0, self.scale))
        return jnp.asarray(data.column(self.column)) * effect

    def start(self, data: Comparisons) -> Values:
        return dict.fromkeys(self.linear, jnp.asarray(0.0))


@dataclass(frozen=True)
class Groups(OfColumn):
    r"""Effect of each level of a column of text, such as the base model of a judge:
    :math:`\alpha_g \sim \mathrm{Normal}(0, s)`, :math:`s \sim \mathrm{LogNormal}(\log ½, 1)`.

    Parameters
    ----------
    column : str
    """

    @property
    def scales(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"{self.column}_spread",)

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        spread = numpyro.sample(*self.scales, dist.LogNormal(jnp.log(0.5), 1.0))
        effects = dist.Normal(0.0, spread).expand([len(data.levels(self.column))]).to_event(1)
        return sampled(*self.linear, effects, self.column)[jnp.asarray(data.column(self.column))]

    def start(self, data: Comparisons) -> Values:
        effect = jnp.zeros(len(data.levels(self.column)))
        return {self.linear[0]: effect, self.scales[0]: 0.5}

    def axis_names(self, data: Comparisons) -> dict[str, tuple[Any, ...]]:
        return {self.column: data.levels(self.column)}

    def why_not(self, data: Comparisons) -> str | None:
        if (reason := super().why_not(data)) or data.levels(self.column):
            return reason
        return f"{self!r} needs a column of text, and {self.column!r} holds numbers"


@dataclass(frozen=True)
class Drift(OfColumn):
    r"""Change of each annotator along a column of whole numbers, a random walk from 0:

    .. math::

        \delta_{kt} = \sum_{s \le t} \epsilon_{ks}, \qquad
        \epsilon_{ks} \sim \mathrm{Normal}(0, \omega), \quad
        \omega \sim \mathrm{LogNormal}(\log 0.2, 1)

    ``Competence("signed") + Drift("week", 12)`` lets competences drift.

    Parameters
    ----------
    column : str
        Period of each row, from 0.
    periods : int
        Number of periods.
    """

    linear = ("step",)
    scales = ("step_spread",)

    periods: int

    def __post_init__(self) -> None:
        if self.periods < 2:
            refuse("periods", self.periods, "leaves no step", "give two at least")

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        spread = numpyro.sample("step_spread", dist.LogNormal(jnp.log(0.2), 1.0))
        steps = (self.column, self.periods - 1)
        step: Any = sample_vectors("step", spread, ("annotator", data.num_annotators), steps)
        period = jnp.asarray(data.column(self.column))
        row = jnp.zeros(jnp.shape(period), int)
        # By an index for each row, as the conjugate updates read it.
        return sum(
            jnp.where(period > place, 1.0, 0.0) * step[data.annotator, row + place]
            for place in range(self.periods - 1)
        )

    def start(self, data: Comparisons) -> Values:
        return {"step": jnp.zeros((data.num_annotators, self.periods - 1)), "step_spread": 0.2}

    def axis_names(self, data: Comparisons) -> dict[str, tuple[Any, ...]]:
        return {self.column: tuple(range(1, self.periods))}

    def why_not(self, data: Comparisons) -> str | None:
        if reason := super().why_not(data):
            return reason
        period = data.column(self.column)
        if bool(((period % 1 == 0) & (period >= 0) & (period < self.periods)).all()):
            return None
        return (
            f"{self!r} needs whole numbers from 0 to {self.periods - 1} in {self.column!r}, which"
            f" holds numbers from {period.min():g} to {period.max():g}; number the periods from 0"
        )
