"""One ability for each person, and a difficulty and a discrimination for each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from raters.judgements.patterns import Patterns
from raters.judgements.responses import Responses
from raters.model import Fit, Scale, Sign, Symmetry, Values
from raters.models.mirror import open_mirror
from raters.models.responses._logistic import Logistic, start_covariance, start_difficulty
from raters.terms.competence import LOW

Discrimination = Literal["positive", "signed"]


@dataclass(frozen=True)
class TwoPL(Logistic):
    r"""Two-parameter logistic model: items differ in difficulty and in discrimination.

    .. math::

        P(\text{right} \mid p, i) = \sigma(a_i (\theta_p - b_i)), \qquad
        \theta_p \sim \mathrm{Normal}(0, 1), \quad b_i \sim \mathrm{Normal}(0, d), \quad
        a_i \sim \mathrm{Normal}(1, e) \text{ on } A

    where A is [0, ∞) (``"positive"``) or the real line (``"signed"``). Abilities are in standard
    deviations of the population of persons, whose mean is 0. The discrimination is the slope at the
    difficulty, in logits per standard deviation: an item that everybody answers by chance has 0.
    One that able persons answer wrong more often, such as an item with a wrong key, has a negative
    discrimination with ``"signed"``, and ends near 0 otherwise.

    Identification: with ``"signed"``, the likelihood is unchanged when abilities, difficulties and
    discriminations all change sign; the prior's mean of 1 encodes that most keys are right.

    `raters.PGEM` maximises the marginal likelihood, in which the abilities are integrated out, and
    then draws the abilities given the items. With large `difficulty_scale` and
    `discrimination_scale` its mode is the marginal maximum-likelihood estimate.

    Parameters
    ----------
    difficulty_scale : float
        Standard deviation d of the difficulties, in standard deviations of the ability.
    discrimination_scale : float
        Standard deviation e of the normal that the discriminations are a part of.
    discrimination : {"positive", "signed"}
        Range of the discriminations. Choose ``"signed"`` to find wrong keys.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.TwoPL(), responses, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["discrimination"].dims
    ('item',)
    """

    difficulty_scale: float = 3.0
    discrimination_scale: float = 1.0
    discrimination: Discrimination = "positive"

    reference: ClassVar[str] = "birnbaum1968some"

    blocks = (("ability",), ("difficulty",), ("discrimination",))
    item_blocks = (("difficulty",), ("discrimination",))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        sites = ("ability", "difficulty", "discrimination")
        sign = (Sign(sites),) if self.discrimination == "signed" else ()
        return (Scale(up=sites[:2], down=sites[2:]), *sign)

    def sample_items(self, num_items: int) -> Values:
        with numpyro.plate("item", num_items):
            difficulty = numpyro.sample("difficulty", dist.Normal(0.0, self.difficulty_scale))
            low = LOW[self.discrimination]
            prior = dist.TruncatedNormal(1.0, self.discrimination_scale, low=low)
            discrimination = numpyro.sample("discrimination", prior)
        return {"difficulty": difficulty, "discrimination": discrimination}

    def ability_spread(self, sites: Values) -> Any:
        return 1.0

    def log_odds(
        self, ability: Float[Array, " *row"], item: Int[Array, " *row"], sites: Values
    ) -> Float[Array, " *row"]:
        return sites["discrimination"][item] * (ability - sites["difficulty"][item])

    def start_items(self, data: Responses | Patterns) -> Values:
        difficulty = start_difficulty(data)
        sign = np.ones(len(difficulty))
        if self.discrimination == "signed":
            sign = np.where(start_covariance(data) < 0, -1.0, 1.0)
        return {"difficulty": sign * difficulty, "discrimination": sign}

    def fit_warnings(self, data: Responses, fit: Fit) -> tuple[str, ...]:
        if self.discrimination != "signed":
            return ()
        return open_mirror(fit.draws["ability"], data, "responses")
