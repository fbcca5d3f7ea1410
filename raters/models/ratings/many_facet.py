"""One quality for each item; a severity, a scale use and a competence for each annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import Reason
from raters.judgements.answers import MOST_LEVELS
from raters.judgements.ratings import Ratings
from raters.model import Values
from raters.models.ratings.facets import FacetModel
from raters.terms.base import sample_vectors
from raters.terms.competence import sample_competence

Thresholds = Literal["own", "shared"]


@dataclass(frozen=True)
class ManyFacet(FacetModel):
    r"""Many-facet rating model: annotators differ in severity, in how they use the scale, and in
    how closely their ratings follow the items.

    .. math::

        P(\text{level } l \mid i, k) \propto \exp \Big( l \,
            (\alpha \beta_k r_i - \rho_k) - \sum_{j \le l} (\tau_j + \delta_{jk}) \Big),
            \qquad l = 0, \dots, L - 1 \\
        r_i \sim \mathrm{Normal}(0, 1), \quad \alpha \sim \mathrm{LogNormal}(0, 1), \quad
        \beta_k \sim \mathrm{Normal}(1, 1) \text{ on } B, \\
        \rho_k \sim \mathrm{Normal}(0, 1), \quad \tau_j \sim \mathrm{Normal}(0, 3), \quad
        \delta_{jk} \sim \mathrm{Normal}(0, ½)

    where B is the real line (``"signed"``) or [0, ∞) (``"positive"``). Of two neighbouring levels,
    the log-odds of the upper one are :math:`\alpha \beta_k r_i - \rho_k - \tau_j - \delta_{jk}`
    (Andrich 1978; Linacre 1989): the rating scale and partial credit models with one facet more.

    - ``reward`` r: quality of each item, in standard deviations of the items, whose mean is 0.
    - ``competence`` β: 1 for the reference annotator, 0 for one whose ratings do not depend on the
      item, below 0 for one who reads the scale the wrong way round. Linacre's model has
      :math:`\beta_k = 1` for all; differences in consistency are those of Uto and Ueno (2020).
    - ``discrimination`` α: by how many logits the reference annotator tells items apart that are
      one standard deviation apart.
    - ``severity`` ρ: by how many logits an annotator prefers the lower of two levels, beside the
      others.
    - ``threshold`` τ and ``threshold_deviation`` δ: what it takes to get from a level to
      the next one, for all and for each annotator. An annotator who avoids a level has a high
      threshold into it, and a low one out of it.

    Identification: with ``"signed"``, the likelihood is unchanged when all rewards and competences
    change sign; the prior's mean of 1 encodes that the crowd as a whole rates the better item
    higher.

    Parameters
    ----------
    competence : {"signed", "positive"}
        Range of the competences.
    thresholds : {"own", "shared"}
        Thresholds of each annotator's own, or the same for all, as in the rating scale model.

    Examples
    --------
    >>> import raters as rt
    >>> ratings = rt.Ratings.from_wide(
    ...     {"essay": [1, 2, 3], "ann": [1, 2, 3], "bob": [2, 3, 3]}, item="essay")
    >>> result = rt.fit(rt.ManyFacet(), ratings, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["severity"].dims
    ('annotator',)
    """

    thresholds: Thresholds = "own"

    reference: ClassVar[str] = "linacre1989many uto2020generalized"

    def why_not(self, data: Ratings) -> str | None:
        if data.num_levels <= MOST_LEVELS:
            return None
        problem = f"has {data.num_levels} levels, and each needs ratings of its own"
        expected = f"ManyFacet takes {MOST_LEVELS} at most, FineScale any number"
        return Reason("rating", problem=problem, expected=expected, instead="rt.models.FineScale()")

    def sample_others(self, number: int, num_levels: int) -> Values:
        size = num_levels - 1
        sites: Values = {
            "discrimination": numpyro.sample("discrimination", dist.LogNormal(0, 1)),
            "competence": sample_competence(self.competence, 1.0, number),
        }
        with numpyro.plate("annotator", number):
            sites["severity"] = numpyro.sample("severity", dist.Normal(0.0, 1.0))
        with numpyro.plate("step", size):
            sites["threshold"] = numpyro.sample("threshold", dist.Normal(0.0, 3.0))
        if self.thresholds == "own":
            deviation = sample_vectors(
                "threshold_deviation", 0.5, ("annotator", number), ("step", size)
            )
            sites["threshold_deviation"] = deviation
        return sites

    def answers_at(
        self, value: Float[Array, " *row"], other: Array, sites: Values, num_levels: int
    ) -> dist.Distribution:
        competence, severity = sites["competence"], sites["severity"]
        slope = sites["discrimination"] * competence[other]
        location = slope * value - severity[other]
        below = _cumulated(sites, len(severity))
        level = jnp.arange(below.shape[-1])
        return dist.Categorical(logits=level * location[..., None] - below[other])

    def start_others(self, counts: Float[np.ndarray, "other level"]) -> Values:
        number, size = counts.shape[0], counts.shape[1] - 1
        used = counts.sum(0) + 1.0
        start: Values = {
            "discrimination": np.asarray(1.0),
            "competence": np.full(number, 0.8),
            "severity": np.zeros(number),
            "threshold": np.log(used[:-1] / used[1:]),
        }
        return start | (
            {"threshold_deviation": np.zeros((number, size))} if self.thresholds == "own" else {}
        )


def _cumulated(sites: Values, num_annotators: int) -> Float[Array, "annotator level"]:
    """Sum of the thresholds up to each level, for each annotator."""
    shared = sites["threshold"]
    own = jnp.broadcast_to(shared, (num_annotators, len(shared)))
    if "threshold_deviation" in sites:
        own = own + sites["threshold_deviation"]
    return jnp.concatenate([jnp.zeros((num_annotators, 1)), jnp.cumsum(own, -1)], -1)
