"""One ability for each person; a discrimination and ordered difficulties for each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from scipy.special import logit

from raters.distributions.normals import OrderedNormal
from raters.distributions.rows import log_sigmoid
from raters.judgements.answers import GradedResponses
from raters.model import Values
from raters.models.on_nodes import OnScale
from raters.terms.base import sampled


@dataclass(frozen=True)
class GradedResponse(OnScale[GradedResponses]):
    r"""Graded response model: each item has a discrimination, and a difficulty for each step of the
    scale.

    .. math::

        P(\text{level} \ge l \mid p, i) = \sigma(a_i (\theta_p - b_{il})), \qquad
        l = 1, \dots, L - 1 \\
        \theta_p \sim \mathrm{Normal}(0, 1), \quad
        b_{i1} < \dots < b_{i,L-1} \sim \mathrm{Normal}(0, d), \quad
        a_i \sim \mathrm{Normal}(1, e) \text{ on } [0, \infty)

    Abilities are in standard deviations of the population of persons, whose mean is 0. A person
    whose ability is the difficulty of a step is as likely above it as below. With two levels it is
    `TwoPL`.

    `raters.PGEM` maximises the marginal likelihood, in which the abilities are integrated out, and
    then draws the abilities given the items; with large prior scales its mode is the marginal
    maximum-likelihood estimate.

    Parameters
    ----------
    difficulty_scale : float
        Standard deviation d of the difficulties before they are ordered, in those of the abilities.
    discrimination_scale : float
        Standard deviation e of the discriminations about 1, before truncation.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.GradedResponses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [0, 1, 2], "q2": [1, 1, 2]}, person="who")
    >>> model = rt.models.GradedResponse()
    >>> result = rt.fit(model, responses, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["difficulty"].dims
    ('item', 'step')
    """

    difficulty_scale: float = 3.0
    discrimination_scale: float = 1.0

    integrated = ("ability", "person", "item")

    reference = "samejima1969estimation"

    def sample_others(self, number: int, num_levels: int) -> Values:
        difficulty = OrderedNormal(num_levels - 1, 0.0, self.difficulty_scale)
        discrimination = dist.TruncatedNormal(1.0, self.discrimination_scale, low=0.0)
        with numpyro.plate("item", number):
            return {
                "discrimination": sampled("discrimination", discrimination),
                "difficulty": sampled("difficulty", difficulty, "step"),
            }

    def answers_at(
        self, value: Float[Array, " *row"], other: Array, sites: Values, num_levels: int
    ) -> dist.Distribution:
        discrimination, difficulty = sites["discrimination"][other], sites["difficulty"][other]
        above = discrimination[..., None] * (value[..., None] - difficulty)
        return dist.Categorical(logits=level_log_probs(above))

    def start_others(self, data: Any) -> Values:
        counts = self.counts(data)
        shares = (counts + 0.5) / (counts + 0.5).sum(1, keepdims=True)
        above = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return {"discrimination": np.ones(len(counts)), "difficulty": -logit(above)}


def level_log_probs(above: Float[Array, "*row step"]) -> Float[Array, "*row level"]:
    """Log-probability of each level, from the log-odds of a response at or above each step."""
    passed, failed = log_sigmoid(above), log_sigmoid(-above)
    apart = jnp.log(-jnp.expm1(jnp.minimum(above[..., 1:] - above[..., :-1], -1e-12)))
    middle = passed[..., :-1] + failed[..., 1:] + apart
    return jnp.concatenate([failed[..., :1], middle, passed[..., -1:]], -1)
