"""Plackett–Luce model: one worth per item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from raters.models.rankings._sites import RankingModel
from raters.terms import Term
from raters.terms.worths import Worths


@dataclass(frozen=True)
class PlackettLuce(RankingModel):
    r"""Plackett–Luce model: the best item is chosen by its worth, then the best of the rest.

    .. math::

        P(i_1 \succ i_2 \succ \dots \succ i_K)
        = \prod_{k=1}^{K} \frac{e^{u_{i_k}}}{\sum_{j \in R_k} e^{u_j}}, \qquad
        u_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    where :math:`R_k` are the items offered that have no place before the k-th, those without a
    place among them. Of two items it is `BTL`. All annotators count alike.

    Where the worst of the items R without a place is named too, as in best–worst scaling, it is
    chosen by the utilities turned round: :math:`P(w) = e^{-u_w} / \sum_{j \in R} e^{-u_j}` (the
    sequential model of Marley and Louviere 2005; not maxdiff).

    With ``ties="davidson"`` the items of a stage are a set C, which share a place (Davidson–Luce;
    Firth, Kosmidis and Turner 2019):

    .. math::

        P(C \mid R) \propto \delta_{|C|} \, e^{\bar u_C}, \qquad |C| \leq D, \quad \delta_1 = 1,
        \quad \log \delta_d \sim \mathrm{Normal}(0, 2)

    with the mean :math:`\bar u_C` of the utilities, the largest tie D of the data, and at most as
    many items as places are left to give. Of two items that is `BTL` with ``ties="davidson"``.

    The worths are on a logarithmic scale, as the rewards of `BTL`: an item whose worth is higher by
    1 comes before another one with odds of e to 1. A shift of all worths leaves the likelihood
    unchanged; draws are centred, Σu = 0.

    With a large `worth_scale` the mode of `raters.PGEM` is the maximum-likelihood estimate. Items
    that come behind all others in every ranking, or before them, have none, of which `raters.fit`
    then warns.

    Parameters
    ----------
    worth_scale : float, optional
        Standard deviation s of the worths; learned unless given.
    ties : "davidson", optional
        Model of equal ranks, where there are some.

    Examples
    --------
    >>> import raters as rt
    >>> rankings = rt.Rankings.from_wide(
    ...     {"best": ["tea", "tea", "milk"], "next": ["milk", "beer", "tea"]},
    ...     places=["best", "next"], unranked="below")
    >>> result = rt.fit(rt.PlackettLuce(), rankings, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["worth"].mean(("chain", "draw")).to_series().idxmax()
    'tea'
    """

    worth_scale: float | None = None
    ties: Literal["davidson"] | None = None

    reference: ClassVar[str] = "plackett1975analysis luce1959individual"

    @property
    def predictor(self) -> Term:
        return Worths(self.worth_scale)
