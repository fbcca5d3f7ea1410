"""Bradley–Terry–Luce models: one reward per item, or one for each type of annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from raters.models.comparisons.pairwise import VoteModel, added
from raters.terms import Competence, Covariates, PositionBias, Rewards, Strata, Term, Types
from raters.terms.ties import TieModel, TiePropensity


@dataclass(frozen=True)
class BTL(VoteModel):
    r"""Bradley–Terry–Luce model: the item with the higher reward is preferred more often.

    .. math::

        P(i \succ j) = \sigma(r_i - r_j + x^\top \theta + \gamma), \qquad
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \quad
        \theta_f \sim \mathrm{Normal}(0, 1), \quad \gamma \sim \mathrm{Normal}(0, 1)

    with i shown first; γ is present only with ``position_bias=True``, and the features x of i less
    those of j, such as their lengths, only with ``covariates=True``: rewards are then those of
    items whose features are equal ("style control"). With `ties`, a tie is an answer of its own
    (Davidson 1970; Rao and Kupper 1967), whose propensity ν ~ Normal(0, 2) is such that of votes on
    two equal items :math:`e^\nu / (2 + e^\nu)` are ties.

    With ``strata=True`` an item has the reward :math:`r_i + \delta_{si}` in stratum s, with
    :math:`\delta_{si} \sim \mathrm{Normal}(0, \tau)` and
    :math:`\tau \sim \mathrm{LogNormal}(\log ½, 1)`.

    Identification: the likelihood is invariant to a common shift of the rewards, so draws are
    centred, Σr = 0, and so are the deviations of each stratum. Rewards are in logits.

    Parameters
    ----------
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    position_bias : bool
        Learn an advantage γ of the item shown first, in logits. Needs an order of presentation.
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
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["reward"].dims
    ('chain', 'draw', 'item')
    """

    reward_scale: float | None = None
    position_bias: bool = False
    covariates: bool = False
    strata: bool = False
    ties: TieModel | None = None
    tie_propensity: TiePropensity = "shared"

    reference = "bradley1952rank luce1959individual"

    @property
    def predictor(self) -> Term:
        return added(
            Rewards(self.reward_scale),
            (self.strata, Strata()),
            (self.covariates, Covariates()),
            (self.position_bias, PositionBias()),
        )

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        joint = self.predictor.linear or ()
        if self.ties != "davidson":
            return (joint,)
        shared = self.tie_propensity == "shared"
        return ((*joint, "tie_propensity"),) if shared else (joint, ("tie_propensity",))


@dataclass(frozen=True)
class MixtureBTL(VoteModel):
    r"""Mixture of Bradley–Terry–Luce models: each annotator belongs to a type with its own rewards.

    .. math::

        z_k \sim \mathrm{Categorical}(\eta), \qquad
        P(i \succ j \mid k, z_k = z) = \sigma(\beta_k (r_{iz} - r_{jz})), \\
        \eta \sim \mathrm{Dirichlet}(c, \dots, c), \qquad
        r_{iz} \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    with β = 1, or with ``competence=`` learned for each annotator as in `ExtendedBTL`. Taste and
    skill are then separate: the type sets the direction of an annotator's preferences, and the
    competence their strength.

    The type of each annotator is summed out, so the likelihood is a product over annotators, the
    unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The probability of each type for
    each annotator is in the result, as ``result["types"]["responsibility"]``.

    To choose the number of types, compare ``arviz.loo`` of several `num_types`; or give more than
    needed with a small concentration: with c below half of the number of rewards of a type, spare
    types empty as votes grow (Rousseau and Mengersen 2011).

    Identification: rewards of each type are centred. The likelihood is invariant to permutations of
    the types, so draws are relabelled by Stephens' algorithm, under which their responsibilities
    agree best, and types are then numbered by decreasing share.

    Annotators with a single vote separate types only by votes that no single set of rewards fits,
    such as a cycle: `raters.fit` warns where types are not separated.

    Parameters
    ----------
    num_types : int
        Number of types.
    competence : {"unit", "positive"}, optional
        Range of each annotator's competence; 1 for all unless given. A negative competence would be
        a type with reversed rewards, so there is no ``"signed"``.
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    concentration : float
        Concentration c of the prior on the shares.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                             num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(num_types=2), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["reward"].dims
    ('chain', 'draw', 'item', 'type')
    >>> result["types"]["responsibility"].dims
    ('annotator', 'type')
    """

    num_types: int = 2
    competence: Literal["unit", "positive"] | None = None
    reward_scale: float | None = None
    concentration: float = 1.0

    reference = "chidambaram2024direct"

    @property
    def predictor(self) -> Term:
        rewards = Types(self.num_types, self.reward_scale, self.concentration)
        return rewards if self.competence is None else Competence(self.competence) * rewards
