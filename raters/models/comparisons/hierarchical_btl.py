"""Hierarchical BTL model: rewards of each annotator's own, scattered about those of the crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import refuse
from raters.judgements.comparisons import Comparisons
from raters.model import Scale, Shift, Sign, Spread, Symmetry, Transfer, Values
from raters.models import competences
from raters.models.comparisons import _sites, tied
from raters.models.mirror import open_mirror
from raters.models.settings import CheckedModel

# Numbers of a draw from which on a warning says how much memory draws take.
_MANY = 500_000
# Ratio of the spread of the tastes to that of the rewards from which on there is hardly an order
# that annotators share.
_WIDE = 2.0


@dataclass(frozen=True)
class HierarchicalBTL(CheckedModel[Comparisons]):
    r"""Hierarchical Bradley–Terry–Luce model: each annotator has rewards of their own, scattered
    about those of the crowd.

    .. math::

        P(i \succ j \mid k) = \sigma(\beta_k (r_i + d_{ki} - r_j - d_{kj}) + \gamma_k), \\
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \qquad
        d_{ki} \sim \mathrm{Normal}(0, \tau), \quad \tau \sim \mathrm{LogNormal}(\log ½, 1)

    where :math:`d_{ki}` is the taste of annotator k for item i: by how much their own reward
    :math:`r_i + d_{ki}` differs from the crowd's. γ is present only with ``position_bias=True``
    and has the prior of `ExtendedBTL`. The competence β is 1 for all unless ``competence=`` gives
    it a range; it then has the prior of `ExtendedBTL`, and multiplies rewards and tastes: it says
    how consistently an annotator chooses by their own rewards.

    Under `ExtendedBTL` an annotator with many consistent votes, such as an LLM judge, becomes the
    scale by which all others are measured. Here what a judge likes and others do not is the judge's
    taste, and each annotator counts as one draw from the crowd, however many votes they cast: with
    few annotators the crowd's rewards are uncertain, whatever the number of votes. As τ → 0 the
    model becomes `BTL`, or `ExtendedBTL` with competences.

    Identification: the likelihood is invariant to

    - a shift of the rewards, and of the tastes of an annotator: draws are centred,
      :math:`\sum_i r_i = 0` and :math:`\sum_i d_{ki} = 0`;
    - a transfer, :math:`(r_i, d_{ki}) \to (r_i + c_i, d_{ki} - c_i)` for all k: the prior, with
      tastes of mean 0, determines it;
    - with competences, a change of :math:`\beta_k` in which :math:`\beta_k (r + d_k)` stays as it
      is, and the scale, (r, d, β) → (c·r, c·d, β/c): the priors determine them;
    - with ``competence="signed"``, the sign, (r, d, β) → (−r, −d, −β), as in `ExtendedBTL`.

    Parameters
    ----------
    competence : {"unit", "positive", "signed"}, optional
        Range of each annotator's competence; 1 for all unless given. With few votes per annotator
        a low competence and a large taste are hard to tell apart.
    own_spread : bool
        Learn a spread of tastes :math:`\tau_k \sim \mathrm{LogNormal}(\log m, \phi)` for each
        annotator, with :math:`m \sim \mathrm{LogNormal}(\log ½, 1)` and
        :math:`\phi \sim \mathrm{LogNormal}(\log ½, ½)`, so that annotators with a taste far from
        the crowd's count less.
    reward_scale : float, optional
        Standard deviation s of the crowd's rewards; learned unless given.
    taste_spread : float, optional
        Standard deviation τ of the tastes; learned unless given.
    competence_spread : float, "learned" or "auto"
        As in `ExtendedBTL`; without competences it has no effect.
    position_bias : bool
        Learn by how many logits γ_k each annotator favours the item shown first. Needs an order of
        presentation.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=5, num_annotators=4, num_votes=400, seed=0)
    >>> model = rt.HierarchicalBTL(taste_spread=0.5)
    >>> result = rt.fit(model, votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["taste"].dims
    ('chain', 'draw', 'annotator', 'item')
    """

    competence: competences.Competence | None = None
    own_spread: bool = False
    reward_scale: float | None = None
    taste_spread: float | None = None
    competence_spread: competences.Spread = "auto"
    position_bias: bool = False

    reference: ClassVar[str] = "bockenholt2001hierarchical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_spread and self.taste_spread is not None:
            problem = "is one spread for all, and own_spread=True learns one for each annotator"
            refuse("taste_spread", self.taste_spread, problem, "leave one of the two out")

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        competence = (("competence",),) if self.competence else ()
        bias = (("position_bias",),) if self.position_bias else ()
        return (("reward",), ("taste",), *competence, *bias)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        factor = None if self.competence is None else "competence"
        shifts = (Shift("reward"), Shift("taste", axis=1), Transfer("reward", "taste", factor))
        if self.competence is None:
            return shifts
        up = ["reward", "taste"]
        up += ["reward_scale"] if self.reward_scale is None else []
        up += ["taste_spread"] if self.taste_spread is None else []
        up += ["taste_spread_median"] if self.own_spread else []
        scale = Scale(up=tuple(up), down=("competence",))
        signed = self.competence == "signed"
        return (*shifts, scale, *((Sign(("reward", "taste", "competence")),) if signed else ()))

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return () if self.taste_spread is not None else (Spread("taste", "taste_spread"),)

    def generate(self, data: Comparisons) -> None:
        reward_scale = _sites.reward_scale_site(self.reward_scale)
        taste_spread = self._taste_spread(data)
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        # Items are an axis of the event: a plate has one place among the axes in all sites, and
        # that of the annotators is the last one in `competence`.
        shape = (data.num_annotators, data.num_items)
        tastes = dist.Normal(0.0, taste_spread).expand(shape).to_event(1)
        with numpyro.plate("annotator", data.num_annotators):
            taste = numpyro.sample("taste", tastes, infer={"event_dims": ["item"]})
        annotator = data.annotator
        logits = reward[data.first] - reward[data.second]
        logits = logits + taste[annotator, data.first] - taste[annotator, data.second]
        if self.competence is not None:
            spread = competences.competence_spread_site(competences.fixed_spread(self))
            competence = competences.competence_site(self.competence, spread, data.num_annotators)
            logits = competence[annotator] * logits
        if self.position_bias:
            logits = logits + _sites.position_bias_site(data.num_annotators)[annotator]
        with numpyro.plate("comparison", data.num_comparisons):
            _sites.observe(logits, data)

    def _taste_spread(self, data: Comparisons) -> Float[Array, ...] | float:
        if self.taste_spread is not None:
            return self.taste_spread
        if not self.own_spread:
            spread: Array = numpyro.sample("taste_spread", dist.LogNormal(jnp.log(0.5), 1.0))
            return spread
        median = numpyro.sample("taste_spread_median", dist.LogNormal(jnp.log(0.5), 1.0))
        scatter = numpyro.sample("taste_spread_scatter", dist.LogNormal(jnp.log(0.5), 0.5))
        with numpyro.plate("annotator", data.num_annotators):
            spread = numpyro.sample("taste_spread", dist.LogNormal(jnp.log(median), scatter))
        return spread[:, None]

    def start(self, data: Comparisons) -> Values:
        start = _sites.standardised(_sites.win_rate_rewards(data), self.reward_scale)
        start["taste"] = jnp.zeros((data.num_annotators, data.num_items))
        if self.own_spread:
            start["taste_spread"] = jnp.full(data.num_annotators, 0.5)
            start["taste_spread_median"] = jnp.asarray(0.5)
            start["taste_spread_scatter"] = jnp.asarray(0.5)
        elif self.taste_spread is None:
            start["taste_spread"] = jnp.asarray(0.5)
        if self.competence:
            start |= _sites.competence_start(data, competences.fixed_spread(self))
        return start | (_sites.position_bias_start(data) if self.position_bias else {})

    def fit_warnings(
        self, draws: Values, responsibility: np.ndarray | None, data: Comparisons
    ) -> tuple[str, ...]:
        messages = (
            open_mirror(draws["competence"], data, "votes") if self.competence == "signed" else ()
        )
        spread, scale = (
            float(np.median(draws[name] if name in draws else getattr(self, name)))
            for name in ("taste_spread", "reward_scale")
        )
        if spread > _WIDE * scale:
            messages += (
                f"annotators differ more from each other than items do: the spread of their tastes"
                f" is {spread:.2g}, that of the rewards they share {scale:.2g}; one ranking does"
                " not describe them; look for groups with rt.MixtureBTL()",
            )
        return messages

    def why_not(self, data: Comparisons) -> str | None:
        return _sites.why_not_ordered(self, data) or tied.why_not(data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        messages = _sites.of_no_tastes(data)
        if (np.asarray(data.judgements_by("annotator")) > 0).sum() < 2:
            return messages
        messages = _sites.of_one_order(self, data) + messages
        if (number := data.num_annotators * data.num_items) > _MANY:
            messages += (
                f"a draw holds {number:,} tastes, of {data.num_annotators:,} annotators for"
                f" {data.num_items:,} items, and takes {8 * number / 1e6:,.0f} MB; ask for few"
                " draws, such as rt.PGEM(draws=50)",
            )
        return messages
