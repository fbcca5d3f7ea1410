"""Models with rewards of each annotator's own, which scatter about the crowd's."""

from __future__ import annotations

from dataclasses import dataclass

from raters.errors import refuse
from raters.judgements.comparisons import Comparisons
from raters.models.base import worded
from raters.models.comparisons.pairwise import VoteModel, added
from raters.terms import Competence, Factors, PositionBias, Tastes, Term
from raters.terms.competence import Range, Width


@dataclass(frozen=True)
class HierarchicalBTL(VoteModel):
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

    competence: Range | None = None
    own_spread: bool = False
    reward_scale: float | None = None
    taste_spread: float | None = None
    competence_spread: Width = "auto"
    position_bias: bool = False

    reference = "bockenholt2001hierarchical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_spread and self.taste_spread is not None:
            problem = "is one spread for all, and own_spread=True learns one for each annotator"
            refuse("taste_spread", self.taste_spread, problem, "leave one of the two out")

    @property
    def predictor(self) -> Term:
        tastes: Term = Tastes(self.reward_scale, self.taste_spread, self.own_spread)
        if self.competence is not None:
            tastes = Competence(self.competence, self.competence_spread) * tastes
        return added(tastes, (self.position_bias, PositionBias("annotator")))

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        competence = (("competence",),) if self.competence else ()
        bias = (("position_bias",),) if self.position_bias else ()
        return (("reward",), ("taste",), *competence, *bias)


@dataclass(frozen=True)
class FactorBTL(VoteModel):
    r"""Bradley–Terry–Luce model with factors: the rewards of each annotator's own are those of the
    crowd and a product of few dimensions.

    .. math::

        P(i \succ j \mid k) = \sigma\Big(r_i - r_j + \sum_d u_{kd} (v_{id} - v_{jd})\Big), \\
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \qquad
        u_{kd} \sim \mathrm{Normal}(0, 1), \\
        v_{id} \sim \mathrm{Normal}(0, \tau), \quad \tau \sim \mathrm{LogNormal}(\log ½, 1)

    The position :math:`u_k` says what annotator k looks for, the loading :math:`v_i` what item i
    offers of it. The crowd's rewards r are those of an annotator in the middle, :math:`u = 0`.
    Where `HierarchicalBTL` learns nothing of an item that an annotator never compared, here it is
    predicted from the votes of others with like votes.

    Identification: the likelihood is invariant to a shift of the rewards and of the loadings along
    each dimension (draws are centred); to a rotation or reflection of positions and loadings (draws
    are turned towards their mean, on its principal axes, each in the direction in which the
    annotator furthest from 0 is positive); and to stretches and shifts of the positions, of which
    the priors say where they lie.

    Parameters
    ----------
    num_dimensions : int
        Number of dimensions, at most the number of items less one.

    Examples
    --------
    >>> import raters as rt
    >>> asked, _ = rt.datasets.separated(num_items=5, num_annotators=12, num_votes=600, seed=0)
    >>> votes = rt.simulate(rt.models.FactorBTL(), asked, seed=3).data
    >>> result = rt.fit(rt.models.FactorBTL(), votes, seed=0, progress=False)
    >>> result.posterior["loading"].dims
    ('chain', 'draw', 'item', 'dimension')
    """

    num_dimensions: int = 1

    reference = "rendle2009bpr"

    @property
    def predictor(self) -> Term:
        return Factors(self.num_dimensions)

    blocks = (("position",), ("reward", "loading"))

    def marginal(self, data: Comparisons) -> str:
        """Why no mode can be found."""
        return worded("no_mode", name="FactorBTL", others="loadings")
