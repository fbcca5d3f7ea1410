"""Models of ratings: a quality of each item, and a competence and a severity of each annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.normals import NormalLevel
from raters.errors import Reason
from raters.judgements.answers import MOST_LEVELS, Ratings
from raters.model import Fit, Sign, Symmetry, Values
from raters.models.base import open_mirror, worded
from raters.models.on_nodes import OnScale
from raters.terms.base import sample_vectors, sampled
from raters.terms.competence import sample_competence

__all__ = ["FineScale", "ManyFacet"]

Competence = Literal["positive", "signed"]
Thresholds = Literal["own", "shared"]


@dataclass(frozen=True)
class FacetModel(OnScale[Ratings]):
    """Model of ratings with standard normal rewards."""

    competence: Competence = "signed"

    integrated = ("reward", "item", "annotator")

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (Sign(("reward", "competence")),) if self.competence == "signed" else ()

    def data_warnings(self, data: Ratings) -> tuple[str, ...]:
        several = len(np.unique(np.asarray(data.annotator))) > 1
        return () if several else (worded("one_rater"),)

    def fit_warnings(self, data: Ratings, fit: Fit) -> tuple[str, ...]:
        if self.competence != "signed":
            return ()
        return open_mirror(fit.draws["competence"], data, "ratings")


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

    reference = "linacre1989many uto2020generalized"

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
        sites["severity"] = sampled("severity", dist.Normal(0.0, 1.0), annotator=number)
        sites["threshold"] = sampled("threshold", dist.Normal(0.0, 3.0), step=size)
        if self.thresholds == "own":
            axes, name = (("annotator", number), ("step", size)), "threshold_deviation"
            sites[name] = sample_vectors(name, 0.5, *axes)
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

    def start_others(self, data: Any) -> Values:
        counts = self.counts(data)
        number, size = counts.shape[0], counts.shape[1] - 1
        used = counts.sum(0) + 1.0
        start: Values = {
            "discrimination": np.asarray(1.0),
            "competence": np.full(number, 0.8),
            "severity": np.zeros(number),
            "threshold": np.log(used[:-1] / used[1:]),
        }
        own = {"threshold_deviation": np.zeros((number, size))}
        return start | (own if self.thresholds == "own" else {})


def _cumulated(sites: Values, num_annotators: int) -> Float[Array, "annotator level"]:
    """Sum of the thresholds up to each level, for each annotator."""
    shared = sites["threshold"]
    own = jnp.broadcast_to(shared, (num_annotators, len(shared)))
    if "threshold_deviation" in sites:
        own = own + sites["threshold_deviation"]
    return jnp.pad(jnp.cumsum(own, -1), ((0, 0), (1, 0)))


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

    reference = "linacre1989many"

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
            sites["severity"] = sampled("severity", severity)
            sites["precision"] = sampled("precision", precision)
        return sites

    def answers_at(
        self, value: Float[Array, " *row"], other: Array, sites: Values, num_levels: int
    ) -> dist.Distribution:
        precision = sites["precision"][other]
        slope = sites["discrimination"] * sites["competence"][other]
        location = slope * value - sites["severity"][other] + sites["location"] * precision
        return NormalLevel(location, precision, num_levels)

    def start_others(self, data: Any) -> Values:
        counts = self.counts(data)
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
