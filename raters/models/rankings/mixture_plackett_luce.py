"""Mixture of Plackett–Luce models, one for each type of annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.models.rankings._sites import RankingModel
from raters.terms import Term
from raters.terms.worths import WorthTypes


@dataclass(frozen=True)
class MixturePlackettLuce(RankingModel):
    r"""Mixture of Plackett–Luce models: each annotator belongs to a type with its own worths.

    .. math::

        z_a \sim \mathrm{Categorical}(\eta), \qquad
        P(i_1 \succ \dots \succ i_K \mid a, z_a = z)
        = \prod_{k=1}^{K} \frac{e^{u_{i_k z}}}{\sum_{j \in R_k} e^{u_{jz}}}, \\
        \eta \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad
        u_{iz} \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    in the notation of `PlackettLuce`, with the worst named by the utilities turned round. Of two
    items it is `MixtureBTL`.

    The type of each annotator is summed out, so the likelihood is a product over annotators, the
    unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The probability of each type for
    each annotator is in the result, as ``result["types"]["responsibility"]``. Where nobody is named
    each ranking is by an annotator of its own, and has a type of its own.

    To choose the number of types, see `MixtureBTL`. Worths of each type are centred, and types are
    numbered by decreasing share. The likelihood has a mode for each way to divide the annotators;
    compare several seeds.

    Parameters
    ----------
    num_types : int
        Number of types.
    worth_scale : float, optional
        Standard deviation s of the worths; learned unless given.

    Examples
    --------
    >>> import raters as rt
    >>> rankings = rt.Rankings.from_wide(
    ...     {"who": ["ann", "ann", "bob", "bob"], "best": ["tea", "tea", "beer", "beer"],
    ...      "next": ["milk"] * 4, "last": ["beer", "beer", "tea", "tea"]},
    ...     places=["best", "next", "last"], annotator="who")
    >>> rt.program.Program(rt.models.MixturePlackettLuce(), rankings).sites["worth"].dims
    ('item', 'type')
    """

    num_types: int = 2
    worth_scale: float | None = None

    reference: ClassVar[str] = "gormley2006analysis mollica2017bayesian"

    @property
    def predictor(self) -> Term:
        return WorthTypes(self.num_types, self.worth_scale)
