"""Bradley–Terry–Luce model: one reward per item, no differences between annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.models.comparisons.pairwise import VoteModel, added
from raters.terms import Covariates, PositionBias, Rewards, Strata, Term
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

    reference: ClassVar[str] = "bradley1952rank luce1959individual"

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
