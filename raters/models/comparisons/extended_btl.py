"""Extended-BTL models: a competence of each annotator scales the rewards."""

from __future__ import annotations

from dataclasses import dataclass

from raters.judgements.comparisons import Comparisons
from raters.model import OPEN_MIRROR, Fit
from raters.models.base import worded
from raters.models.comparisons.contradictions import reversal, takeover
from raters.models.comparisons.directions import directed_in
from raters.models.comparisons.pairwise import VoteModel, added
from raters.terms import Competence, Covariates, Guessers, PositionBias, Rewards, Strata, Term
from raters.terms.competence import HIGH, Range, Width
from raters.terms.ties import TieModel, TiePropensity

# Prior of the spread of the competences: median, and standard deviation of its logarithm. A spread
# of 1 puts many competent annotators near 0, where the guessers are, and the types would not differ
# in what they say of votes.
_SPREAD, _SPREAD_SCALE = 0.3, 0.5


@dataclass(frozen=True)
class ExtendedBTL(VoteModel):
    r"""Extended Bradley–Terry–Luce model: each annotator has a competence that scales the rewards.

    .. math::

        P(i \succ j \mid k) = \sigma(\beta_k (r_i - r_j) + x^\top \theta + \gamma_k), \qquad
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \\
        \beta_k \sim \mathrm{Normal}(1, \tau) \text{ on } B, \quad
        \tau \sim \mathrm{LogNormal}(\log ½, 1), \qquad
        \gamma_k \sim \mathrm{Normal}(\bar\gamma, \phi), \quad
        \bar\gamma \sim \mathrm{Normal}(0, 1), \quad
        \phi \sim \mathrm{LogNormal}(\log ½, 1)

    where B is [0, 1] (``"unit"``), [0, ∞) (``"positive"``) or the real line (``"signed"``), and γ
    is present only with ``position_bias=True``. Covariates with coefficients θ, which no competence
    scales, ties and strata are as in `BTL`. A guesser has competence 0, the reference annotator 1.
    An adversary has a negative competence: their votes are informative once reversed.

    Reward scale and spread are learned from all votes with the crowd's centre at β = 1, which
    regularises annotators with few votes. With ``"signed"`` the spread is 1 by default: where a few
    adversaries are far from the rest, a learned normal spread fits the rest and hides them. As
    τ → 0 the model becomes `BTL`; as τ → ∞ with ``"unit"`` the prior becomes the uniform one of the
    paper.

    Identification: the likelihood is invariant to

    - a shift of the rewards: draws are centred, Σr = 0;
    - the scale, (r, β) → (c·r, β/c): the prior, with the reference annotator at β = 1, determines
      it, so report ratios of competences and β·(r_i − r_j) where the unit matters;
    - with ``"signed"``, the sign, (r, β) → (−r, −β): the prior's mean of 1 encodes that the crowd
      as a whole votes for the better item.

    Departures from the paper: Σr = 0 with β in [0, 1] does not fix the scale (r can grow while β
    shrinks), so the priors above are needed; and the printed M-steps diverge (§4.2.2 lacks a κ term
    and a sign for the loser, Step 3 of the appendix has a wrong sign), so the updates are derived
    from this program.

    Parameters
    ----------
    competence : {"unit", "positive", "signed"}
        Range of the competences. Choose ``"signed"`` to find adversaries.
    reward_scale : float, optional
        Standard deviation s of the rewards; learned unless given.
    competence_spread : float, "learned" or "auto"
        Standard deviation τ of the competences about 1, before truncation. ``"auto"``: 1 with
        ``"signed"``, else learned.
    position_bias : bool
        Learn by how many logits γ_k each annotator favours the item shown first. Needs an order of
        presentation.
    covariates : bool
        Learn coefficients of the features of the comparisons, beside the rewards.
    strata : bool
        Learn a deviation of each item in each stratum of the votes.
    ties : {"davidson", "rao-kupper"}, optional
        Model of ties, of votes read with ``ties="keep"``, which the command line then does.
    tie_propensity : {"shared", "annotator"}
        Whose propensity to call a tie is learned: one that all share, or that of each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=5, num_annotators=4, num_votes=400, seed=0)
    >>> result = rt.fit(rt.ExtendedBTL(competence="signed"), votes, rt.PGEM(), seed=0,
    ...                 progress=False)
    >>> result.posterior["competence"].dims
    ('chain', 'draw', 'annotator')
    """

    competence: Range = "unit"
    reward_scale: float | None = None
    competence_spread: Width = "auto"
    position_bias: bool = False
    covariates: bool = False
    strata: bool = False
    ties: TieModel | None = None
    tie_propensity: TiePropensity = "shared"

    reference = "shejole_learning"

    @property
    def predictor(self) -> Term:
        competence = Competence(self.competence, self.competence_spread)
        rewards = added(Rewards(self.reward_scale), (self.strata, Strata()))
        bias = (self.position_bias, PositionBias("annotator"))
        return added(competence * rewards, (self.covariates, Covariates()), bias)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        rewards = ("reward", "deviation") if self.strata else ("reward",)
        own = (("coefficient",),) if self.covariates else ()
        bias = (("position_bias",),) if self.position_bias else ()
        propensity = (("tie_propensity",),) if self.ties == "davidson" else ()
        return (rewards, ("competence",), *own, *bias, *propensity)

    def fit_warnings(self, data: Comparisons, fit: Fit) -> tuple[str, ...]:
        mirrored = super().fit_warnings(data, fit)
        # A mean over two mirrored worlds describes neither of them; and the other tests know of
        # rewards and position biases alone.
        if mirrored or self.covariates or self.strata:
            return mirrored
        data = data.halved()
        if self.competence != "signed":
            spread = Competence(self.competence, self.competence_spread).fixed
            high = HIGH[self.competence]
            chance = reversal(fit.draws, data, self.reward_scale, spread, high)
            if chance >= OPEN_MIRROR:
                return (worded("open_reversal", chance=chance),)
        return takeover(fit.draws, data)


@dataclass(frozen=True)
class GuesserBTL(VoteModel):
    r"""Extended-BTL with guessers and adversaries as types of annotators of their own.

    .. math::

        z_k \sim \mathrm{Categorical}(\eta), \qquad
        P(i \succ j \mid k, z_k) = \sigma(d_{z_k} \beta_k (r_i - r_j) + \gamma_k), \qquad
        d = (1, 0, -1), \\
        \eta \sim \mathrm{Dirichlet}(6, 1, 1), \qquad
        \beta_k \sim \mathrm{Normal}(1, \tau) \text{ on } [0, \infty), \quad
        \tau \sim \mathrm{LogNormal}(\log 0.3, ½), \\
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    with the types competent, guesser and adversary, and position biases γ as in `ExtendedBTL`, only
    with ``position_bias=True``: a guesser may favour a side.

    The posterior probability that an annotator is a guesser or an adversary is that of the type, in
    ``result["types"]["responsibility"]``. The type is summed out, so the likelihood is a product
    over annotators, the unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The prior of
    the spread τ keeps competent annotators away from 0: one who knows little is hardly in the
    model, and with few votes is called a guesser.

    Identification: the likelihood is invariant to

    - a shift of the rewards: draws are centred, Σr = 0;
    - the scale, (r, β) → (c·r, β/c): the prior, with competences about 1, determines it;
    - the mirror, r → −r with competent annotators and adversaries exchanged in η: the prior encodes
      that more annotators are competent. The odds of the mirror image are
      :math:`(\eta_3 / \eta_1)^5`.

    The site ``competence`` is β, without the sign. `raters.audit` gives d·β.

    Parameters
    ----------
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    competence_spread : float, optional
        Standard deviation τ of the competences about 1, before truncation; learned unless given.
    position_bias : bool
        Learn by how many logits γ_k each annotator favours the item shown first. Needs an order of
        presentation.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(8, 10, 1500, seed=0)
    >>> result = rt.fit(rt.models.GuesserBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> guess = result["types"]["responsibility"].sel(type="guesser")
    >>> [name for name in guess["annotator"].values.tolist() if guess.sel(annotator=name) > 0.5]
    [9]
    """

    reward_scale: float | None = None
    competence_spread: float | None = None
    position_bias: bool = False

    reference = "shejole_learning raykar2012eliminating"

    @property
    def predictor(self) -> Term:
        spread: Width = "learned" if self.competence_spread is None else self.competence_spread
        competence = Competence("positive", spread, _SPREAD, _SPREAD_SCALE)
        gap = Guessers() * (competence * Rewards(self.reward_scale))
        return added(gap, (self.position_bias, PositionBias("annotator")))

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        bias = (("position_bias",),) if self.position_bias else ()
        return (("type_weight",), ("reward",), ("competence",), *bias)

    def fit_warnings(self, data: Comparisons, fit: Fit) -> tuple[str, ...]:
        # A mean over two mirrored worlds describes neither of them.
        if mirrored := super().fit_warnings(data, fit):
            return mirrored
        return takeover(fit.draws | {"competence": directed_in(self, fit.draws, data)}, data)
