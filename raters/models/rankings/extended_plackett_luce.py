"""Extended Plackett–Luce model: one worth per item and one competence per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from raters.judgements.rankings import Rankings
from raters.models.rankings._sites import RankingModel
from raters.terms import Competence, Term
from raters.terms.competence import Range, Width
from raters.terms.worths import Worths


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

    reference: ClassVar[str] = "shejole_learning plackett1975analysis"

    @property
    def predictor(self) -> Term:
        return Competence(self.competence, self.competence_spread) * Worths(self.worth_scale)

    def data_warnings(self, data: Rankings) -> tuple[str, ...]:
        single = len(set(np.asarray(data.annotator).tolist())) < 2
        alone = (
            "all rankings are by one annotator, whose competence cannot be told from the scale of"
            " the worths; name the column that says who ranked, or fit PlackettLuce()"
        )
        return ((alone,) if single else ()) + Worths(self.worth_scale).warnings(data)
