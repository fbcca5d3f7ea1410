"""Ratings on a fine scale, such as 0 to 100: normal numbers rounded to its levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.levels import NormalLevel
from raters.model import Values
from raters.models.ratings.facets import FacetModel
from raters.terms.competence import sample_competence


@dataclass(frozen=True)
class FineScale(FacetModel):
    r"""Many-facet model of ratings on a fine scale, whose levels are evenly spaced.

    .. math::

        P(\text{rating} \le l \mid i, k) = \Phi \big( \kappa_k c_{l + 1}
            - (\alpha \beta_k r_i - \rho_k) - \mu \kappa_k \big), \qquad
            c_l = 4 l / L - 2 \\
        r_i \sim \mathrm{Normal}(0, 1), \quad \alpha \sim \mathrm{LogNormal}(0, 1), \quad
        \beta_k \sim \mathrm{Normal}(1, 1) \text{ on } B, \quad
        \mu \sim \mathrm{Normal}(0, 1), \\
        \rho_k \sim \mathrm{Normal}(0, s_\rho), \quad
        \log \kappa_k \sim \mathrm{Normal}(m, s_\kappa), \quad m \sim \mathrm{Normal}(½, 1), \quad
        s_\rho, s_\kappa \sim \mathrm{LogNormal}(\log ½, 1)

    for L levels on a scale that has the length 4, where B is the real line (``"signed"``) or
    [0, ∞) (``"positive"``): an annotator's number is normal about the item's quality, and rounded;
    what lies beyond an end of the scale is on its last level. It is a factor model of rounded and
    censored normal numbers.

    - ``reward`` r, ``competence`` β and ``discrimination`` α: as in `ManyFacet`, in standard
      deviations of an annotator's noise instead of logits.
    - ``severity`` ρ: by how many standard deviations of the noise an annotator rates lower.
    - ``precision`` κ: standard deviations of an annotator's noise in a quarter of the scale; with
      ``precision_location`` m and ``precision_spread`` s.
    - ``location`` μ: what all rate the average item, in quarters of the scale from its middle.

    Parameters
    ----------
    competence : {"signed", "positive"}
        Range of the competences.

    Examples
    --------
    >>> import numpy as np, raters as rt
    >>> rng = np.random.default_rng(0)
    >>> page, rater = np.repeat(range(30), 3), np.tile(["ann", "bob", "eve"], 30)
    >>> score = rng.integers(0, 101, 30)[page] // 2 + rng.integers(0, 40, 90)
    >>> ratings = rt.Ratings.from_frame({"page": page, "rater": rater, "score": score},
    ...     item="page", annotator="rater", rating="score", levels=range(101))
    >>> result = rt.fit(rt.models.FineScale(), ratings, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["precision"].dims
    ('annotator',)
    """

    reference: ClassVar[str] = "linacre1989many"

    def sample_others(self, number: int, num_levels: int) -> Values:
        names = ("severity_spread", "precision_spread")
        spread = {name: numpyro.sample(name, dist.LogNormal(np.log(0.5), 1.0)) for name in names}
        middle = numpyro.sample("precision_location", dist.Normal(0.5, 1.0))
        sites: Values = {
            "discrimination": numpyro.sample("discrimination", dist.LogNormal(0, 1)),
            "location": numpyro.sample("location", dist.Normal(0.0, 1.0)),
            "competence": sample_competence(self.competence, 1.0, number),
        }
        severity = dist.Normal(0.0, spread["severity_spread"])
        precision = dist.LogNormal(middle, spread["precision_spread"])
        with numpyro.plate("annotator", number):
            sites["severity"] = numpyro.sample("severity", severity)
            sites["precision"] = numpyro.sample("precision", precision)
        return sites

    def answers_at(
        self, value: Float[Array, " *row"], other: Array, sites: Values, num_levels: int
    ) -> dist.Distribution:
        precision = sites["precision"][other]
        slope = sites["discrimination"] * sites["competence"][other]
        location = slope * value - sites["severity"][other] + sites["location"] * precision
        return NormalLevel(location, precision, num_levels)

    def start_others(self, counts: Float[np.ndarray, "other level"]) -> Values:
        number, size = counts.shape
        place = 4 * (np.arange(size) + 0.5) / size - 2
        share = counts.sum(0) / max(counts.sum(), 1.0)
        middle = float(share @ place)
        # Half of the variance is of the items.
        precision = np.sqrt(2 / max(float(share @ (place - middle) ** 2), 0.01))
        return {
            "discrimination": np.asarray(1.0),
            "location": np.asarray(middle),
            "competence": np.full(number, 0.8),
            "severity": np.zeros(number),
            "severity_spread": np.asarray(0.5),
            "precision": np.full(number, precision),
            "precision_location": np.log(precision),
            "precision_spread": np.asarray(0.5),
        }
