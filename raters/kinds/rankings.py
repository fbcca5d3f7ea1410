"""Rankings as a kind of judgement: competence, pairs in the model's order, what known orders tell,
and discrepancies from a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int
from scipy.special import expit

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.checking import discrepancies as common
from raters.checking.discrepancies import Layout, Measure, discrepancy, excesses
from raters.checking.orders import OrderDraw, Stages
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.judgements.counts import mean_ranks, numbers_tied
from raters.judgements.rankings import Rankings
from raters.kinds import AuditContext, AuditLimits, Quantities, Section
from raters.kinds.orders import OrderCalibration, PerCompetence, agreement
from raters.kinds.sections import ranking, shown, ties_of_equals
from raters.models import rankings as models
from raters.models.rankings import ExtendedPlackettLuce, PlackettLuce
from raters.program import Program

Sets = Int[np.ndarray, "ranking position"]


def quantities(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Competence of each annotator, the probability that it is negative, and their agreement."""
    if "competence" not in program.sites:
        problem = "has no competences to audit"
        expected = "fit a model with competences, and pass that model and its result"
        refuse("model", program.model, problem, expected, instead="rt.ExtendedPlackettLuce()")
    draws, _ = draws_of(program, result)
    return Quantities(
        values={"competence": draws["competence"]},
        judged="competence",
        columns={
            "p_adversarial": (draws["competence"] < 0).mean(0),
            "agreement": agreement(program.data, draws["worth"].mean(0)),
        },
    )


def ties(context: AuditContext) -> Section | None:
    """Probability that two equal items share a place, where some do."""
    if "tie_propensity" not in context.program.sites:
        return None
    place = np.asarray(context.program.data.place)
    size = numbers_tied(place)
    weight = np.asarray(context.program.data.weight, float)[:, None] * (place > 0) / size
    return ties_of_equals(context, float((weight * (size > 1)).sum() / weight.sum()))


# ---------------------------------------------------------------- known orders


class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`."""

    site = "worth"

    def _accuracies(self) -> PerCompetence:
        worth = self.items["reward_by_model"].values
        one, other = np.triu_indices(len(worth), 1)
        gap = np.quantile(np.abs(worth[one] - worth[other]), np.linspace(0.005, 0.995, 100))
        return np.asarray(expit(self.competences[:, None] * gap).mean(1))


@discrepancy
def first_places(layout: Layout) -> Measure | str:
    """Squared departures of how often each item is first, over the model's variance."""
    offered = np.asarray(layout.data.offered)
    if not ((offered >= 0).sum(1) > 1).any():
        return "no ranking is of two items"
    return _of_cells(offered, offered, lambda stages: (stages.residual[0], stages.variance[0]))


def _of_cells(
    offered: Sets, code: Sets, choice: Callable[[Stages], tuple[np.ndarray, np.ndarray]]
) -> Measure:
    """Measure how often each item (of a judge) is chosen, against the model."""
    return excesses(np.where(offered < 0, -1, code), lambda draw: choice(draw.stages))


@discrepancy
def worst(layout: Layout) -> Measure | str:
    """Squared departures of how often each item is the worst, over the model's variance."""
    data = layout.data
    offered = np.asarray(data.offered)
    asked = 0 if data.lowest is None else np.asarray(data.lowest)
    if not ((asked > 0) & ((offered >= 0).sum(1) - np.asarray(data.depth) > 1)).any():
        return "no ranking names the worst of several items"
    return _of_cells(offered, offered, lambda stages: (stages.residual[-1], stages.variance[-1]))


@discrepancy
def late_places(layout: Layout) -> Measure | str:
    """Slope, along places, of log-probabilities less expectations, in nats a place."""
    size, depth = (np.asarray(layout.data.offered) >= 0).sum(1), np.asarray(layout.data.depth)
    # The last of the items is no choice.
    decided = np.minimum(depth, size - 1)
    if not (decided > 1).any():
        return "no ranking has two places that are choices"
    stage = np.arange(int(depth.max()))
    is_choice = stage < decided[:, None]
    along = np.where(is_choice, stage - (decided[:, None] - 1) / 2, 0.0)
    spread = float((along**2).sum())

    def measure(draw: OrderDraw) -> float:
        surprise = draw.stages.surprise[:-1].T
        # Places that items share leave fewer stages.
        return float((surprise * along[:, : surprise.shape[1]]).sum() / spread)

    return measure


@discrepancy
def tastes(layout: Layout) -> Measure | str:
    """Squared departures of places by annotator and item, over the model's variance."""
    data = layout.data
    if len(np.unique(layout.judge)) < 2:
        return "there is one {judge} only"
    offered = np.asarray(data.offered)
    own = layout.judge[:, None] * data.num_items + offered
    return _of_cells(offered, own, lambda stages: stages.total)


@discrepancy
def concordance(layout: Layout) -> Measure | str:
    """Kendall's W of the rankings of the same items, over all sets that are ranked twice."""
    data = layout.data
    offered = np.asarray(data.offered)
    there = offered >= 0
    group = np.unique(offered, axis=0, return_inverse=True)[1].ravel()
    number = np.bincount(group)
    size = np.zeros(len(number))
    size[group] = there.sum(1)
    if not ((number > 1) & (size > 1)).any():
        return "no two rankings are of the same items"
    cell = (group[:, None] * offered.shape[1] + np.arange(offered.shape[1]))[there]
    most = float((number**2 * (size**3 - size) / 12)[number > 1].sum())
    middle = number * (size + 1) / 2

    def measure(draw: OrderDraw) -> float:
        total = np.bincount(
            cell, mean_ranks(draw.place, there)[there], len(number) * offered.shape[1]
        ).reshape(len(number), -1)
        used = np.arange(offered.shape[1]) < size[:, None]
        spread = (np.where(used, total - middle[:, None], 0.0) ** 2).sum(1)
        return float(spread[number > 1].sum() / most)

    return measure


DISCREPANCIES = common.of_kind(
    "rankings",
    *(first_places, worst, late_places, common.competence, tastes, concordance, common.drift),
)


RANKINGS = kinds.Kind(
    data=Rankings,
    readers=(
        kinds.Reader(Rankings.from_frame, may_be_empty=("rank", "lowest"), part_of="ranking"),
        kinds.Reader(Rankings.from_wide, may_be_empty=("places",)),
        kinds.Reader(Rankings.from_best_worst, may_be_empty=("offered", "worst")),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=ExtendedPlackettLuce(ties="davidson"),
    alone=PlackettLuce(ties="davidson"),
    words=kinds.Words("ranking", "rankings"),
    questions=Candidates.sets,
    quantities=quantities,
    truths=RankingCalibration,
    threshold=0.25,
    columns=shown("competence accuracy p_adversarial agreement"),
    sections=(partial(ranking, site="worth"), ties),
    discrepancies=DISCREPANCIES,
)
