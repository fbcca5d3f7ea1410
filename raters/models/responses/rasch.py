"""One ability for each person, and one difficulty for each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from raters.judgements.patterns import Patterns
from raters.judgements.responses import Responses
from raters.model import Values
from raters.models.responses._logistic import Logistic, start_difficulty


@dataclass(frozen=True)
class Rasch(Logistic):
    r"""Rasch model: one ability for each person, and one difficulty for each item.

    .. math::

        P(\text{right} \mid p, i) = \sigma(\theta_p - b_i), \qquad
        \theta_p \sim \mathrm{Normal}(0, s), \quad b_i \sim \mathrm{Normal}(0, d), \quad
        s \sim \mathrm{HalfNormal}(h)

    Abilities and difficulties are in logits on one scale, with the mean of the population of
    persons at 0.

    `raters.PGEM` maximises the marginal likelihood, in which the abilities are integrated out, and
    then draws the abilities given the items. With large `difficulty_scale` and
    `ability_scale_prior` its mode is the marginal maximum-likelihood estimate.

    Parameters
    ----------
    difficulty_scale : float
        Standard deviation d of the difficulties, in logits.
    ability_scale_prior : float
        Scale h of the half-normal prior of the standard deviation of the abilities.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.Rasch(), responses, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["ability"].dims
    ('chain', 'draw', 'person')
    """

    difficulty_scale: float = 3.0
    ability_scale_prior: float = 2.0

    reference: ClassVar[str] = "rasch1960probabilistic"

    blocks = (("ability",), ("difficulty",))
    item_blocks = (("difficulty",), ("ability_scale",))

    def sample_items(self, num_items: int) -> Values:
        # A half-normal prior, in the form that Pólya-Gamma back-ends read.
        prior = dist.TruncatedNormal(0.0, self.ability_scale_prior, low=0.0)
        ability_scale = numpyro.sample("ability_scale", prior)
        with numpyro.plate("item", num_items):
            difficulty = numpyro.sample("difficulty", dist.Normal(0.0, self.difficulty_scale))
        return {"ability_scale": ability_scale, "difficulty": difficulty}

    def ability_spread(self, sites: Values) -> Any:
        return sites["ability_scale"]

    def log_odds(
        self, ability: Float[Array, " *row"], item: Int[Array, " *row"], sites: Values
    ) -> Float[Array, " *row"]:
        return ability - sites["difficulty"][item]

    def start_items(self, data: Responses | Patterns) -> Values:
        return {"difficulty": start_difficulty(data), "ability_scale": np.asarray(1.0)}
