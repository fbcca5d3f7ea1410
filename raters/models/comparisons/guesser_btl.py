"""Extended-BTL with guessers and adversaries as types of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.judgements.comparisons import Comparisons
from raters.model import Fit
from raters.models.comparisons.directions import directed_in
from raters.models.comparisons.pairwise import VoteModel, added
from raters.models.comparisons.takeover import takeover
from raters.terms import Competence, Guessers, PositionBias, Rewards, Term
from raters.terms.competence import Width

# Prior of the spread of the competences: median, and standard deviation of its logarithm. A spread
# of 1 puts many competent annotators near 0, where the guessers are, and the types would not differ
# in what they say of votes.
_SPREAD, _SPREAD_SCALE = 0.3, 0.5


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

    reference: ClassVar[str] = "shejole_learning raykar2012eliminating"

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
