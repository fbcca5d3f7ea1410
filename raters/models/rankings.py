"""Models of rankings, whose utilities are a combination of terms."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from raters.distributions.choices import Orders, each, of_offered
from raters.distributions.choices import PlackettLuce as InStages
from raters.distributions.ties import DavidsonLuce
from raters.judgements.rankings import Rankings
from raters.model import Values
from raters.models.of_terms import TermModel
from raters.terms import Competence, Term
from raters.terms.base import sampled
from raters.terms.competence import Range, Width
from raters.terms.ties import sample_by_size, start_by_size, why_not_equal
from raters.terms.worths import Worths, WorthTypes

__all__ = ["ExtendedPlackettLuce", "MixturePlackettLuce", "PlackettLuce"]


def orders(
    utility: Float[Array, "ranking position *type"], data: Rankings, propensity: Any = None
) -> Orders:
    """Return the distribution of the places of the items offered."""
    utility = of_offered(jnp.asarray(utility), data.offered)
    asked = [each(column, utility) for column in (data.count, data.depth, data.lowest)]
    if propensity is not None:  # Some may tie.
        return DavidsonLuce(utility, propensity, *asked)
    return InStages(utility, *asked)


class RankingModel(TermModel[Rankings]):
    """Model of rankings by choices in stages, with utilities made of terms."""

    words = "rankings"
    ties_reference = "firth2019davidson"
    ties: Literal["davidson"] | None = None
    tie_propensity = "shared"

    def generate(self, data: Rankings) -> None:
        if self.types is None:
            # Each utility needs its own index, as the blocks are read row by row.
            who = jnp.broadcast_to(jnp.asarray(data.annotator)[:, None], data.offered.shape)
            utility = self.predictor.sample(dataclasses.replace(data, annotator=who))
            order = orders(utility, data, sample_by_size(data))
            sampled("place", order, obs=data.place, ranking=data.num_rows)
        else:
            weight = self.types.sample_weight()
            order = orders(self.predictor.sample(data), data)
            self.observe_by_type(weight, order, data.place, data)

    def start(self, data: Rankings) -> Values:
        start = super().start(data)
        return start if self.ties is None else start | start_by_size(data)

    def axis_names(self, data: Rankings) -> dict[str, tuple[Any, ...]]:
        sizes = tuple(range(2, data.most_tied + 1))
        return super().axis_names(data) | ({"tie_size": sizes} if sizes else {})

    def why_not(self, data: Rankings) -> str | None:
        return super().why_not(data) or why_not_equal(self, data)


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

    reference = "plackett1975analysis luce1959individual"

    @property
    def predictor(self) -> Term:
        return Worths(self.worth_scale)


@dataclass(frozen=True)
class ExtendedPlackettLuce(RankingModel):
    r"""Plackett–Luce model in which each annotator has a competence that scales the worths.

    .. math::

        P(i_1 \succ \dots \succ i_K \mid a)
        = \prod_{k=1}^{K} \frac{e^{\beta_a u_{i_k}}}{\sum_{j \in R_k} e^{\beta_a u_j}}, \qquad
        u_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \\
        \beta_a \sim \mathrm{Normal}(1, \tau) \text{ on } B, \quad
        \tau \sim \mathrm{LogNormal}(\log ½, 1)

    where B is the real line (``"signed"``), [0, ∞) (``"positive"``) or [0, 1] (``"unit"``). It is
    `ExtendedBTL` for rankings: an annotator of competence 0 ranks at random, and one of a negative
    competence, who took the best for the worst, ranks upside down. With ``"signed"`` the spread τ
    is 1 by default. One ranking says as much of its annotator as some votes: a competence needs
    few rankings of several items. Where the worst is named too, competence scales that choice as
    well, :math:`P(w) \propto e^{-\beta_a u_w}` among the items without a place: one who swaps the
    best and the worst has a negative competence.

    The likelihood is unchanged by a shift of the worths (draws are centred), by their scale against
    the competences, and, with ``"signed"``, by a common sign, which the prior mean of 1 decides:
    the crowd as a whole is right.

    Parameters
    ----------
    competence : {"signed", "positive", "unit"}
        Range of the competences.
    worth_scale : float, optional
        Standard deviation s of the worths; learned unless given.
    competence_spread : float, "learned" or "auto"
        Standard deviation τ of the competences about 1, before truncation. ``"auto"``: 1 with
        ``"signed"``, else learned.
    ties : "davidson", optional
        Model of equal ranks, where there are some, as of `PlackettLuce`.

    Examples
    --------
    >>> import raters as rt
    >>> rankings = rt.Rankings.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "best": ["tea", "tea", "beer"],
    ...      "next": ["milk", "milk", "milk"], "last": ["beer", "beer", "tea"]},
    ...     places=["best", "next", "last"], annotator="who")
    >>> model = rt.ExtendedPlackettLuce(worth_scale=1.0)
    >>> result = rt.fit(model, rankings, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["competence"].dims
    ('annotator',)
    """

    competence: Range = "signed"
    worth_scale: float | None = None
    competence_spread: Width = "auto"
    ties: Literal["davidson"] | None = None

    reference = "shejole_learning plackett1975analysis"

    @property
    def predictor(self) -> Term:
        return Competence(self.competence, self.competence_spread) * Worths(self.worth_scale)


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

    reference = "gormley2006analysis mollica2017bayesian"

    @property
    def predictor(self) -> Term:
        return WorthTypes(self.num_types, self.worth_scale)
