"""Mixture of Bradley–Terry–Luce models, one for each type of annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from raters.models.comparisons.pairwise import VoteModel
from raters.terms import Competence, Term, Types


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

    reference: ClassVar[str] = "chidambaram2024direct"

    @property
    def predictor(self) -> Term:
        rewards = Types(self.num_types, self.reward_scale, self.concentration)
        return rewards if self.competence is None else Competence(self.competence) * rewards
