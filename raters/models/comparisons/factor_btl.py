"""BTL model with factors: annotators differ in what they look for, items in what they offer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.judgements.comparisons import Comparisons
from raters.models.comparisons.pairwise import VoteModel
from raters.terms import Factors, Term


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

    reference: ClassVar[str] = "rendle2009bpr"

    @property
    def predictor(self) -> Term:
        return Factors(self.num_dimensions)

    blocks = (("position",), ("reward", "loading"))

    def marginal(self, data: Comparisons) -> str:
        """Why no mode can be found."""
        return (
            "the joint mode of positions and loadings is inconsistent for the loadings, and"
            " FactorBTL has no form with the positions integrated out; use PGGibbs, NUTS or SVI"
        )
