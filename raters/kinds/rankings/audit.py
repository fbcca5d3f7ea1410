"""Audit of rankings: competence, pairs in the model's order, and what known orders tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.judgements.counts import numbers_tied, standing
from raters.judgements.rankings import Rankings
from raters.kinds import AuditContext, AuditLimits, Quantities, Section
from raters.kinds.orders import AnnotatorDraws, OrderCalibration, PerCompetence
from raters.kinds.sections import ties_of_equals
from raters.program import Program


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


def agreement(data: Rankings, worth: Float[np.ndarray, " item"]) -> Float[np.ndarray, " annotator"]:
    """Share of the pairs of items that each annotator puts in the order of some worths."""
    right, pairs = np.zeros(data.num_annotators), np.zeros(data.num_annotators)
    for piece in data.chunks(10_000):
        offered, number = np.asarray(piece.offered), standing(np.asarray(piece.place))
        who, count = np.asarray(piece.annotator), np.asarray(piece.weight, np.float64)
        value = worth[np.maximum(offered, 0)]
        for position in range(offered.shape[1]):
            own = (offered[:, position, None] >= 0) & (offered >= 0)
            behind = own & (number > number[:, position, None])
            higher = behind & (value[:, position, None] > value)
            right += np.bincount(who, count * higher.sum(1), len(right))
            pairs += np.bincount(who, count * behind.sum(1), len(pairs))
    return np.where(pairs > 0, right / np.maximum(pairs, 1), np.nan)


# ---------------------------------------------------------------- known orders


class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`."""

    site = "worth"

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Agreement with the true order."""
        data, worth = self.program.data.unpadded(), self.truth.values.mean(0)
        return {"agreement": agreement(data, worth)}

    def _accuracies(self) -> PerCompetence:
        worth = self.items["reward_by_model"].values
        one, other = np.triu_indices(len(worth), 1)
        gap = np.quantile(np.abs(worth[one] - worth[other]), np.linspace(0.005, 0.995, 100))
        return np.asarray(expit(self.competences[:, None] * gap).mean(1))
