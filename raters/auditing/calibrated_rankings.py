"""Calibration of rankings from known orders of some items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from raters.auditing import rankings
from raters.auditing.calibrated_orders import (
    AUDIT_DRAWS,
    OrderCalibration,
    calibrate_orders,
    marks_of,
    true_order,
)
from raters.auditing.known_orders import KnownOrders
from raters.auditing.stated_orders import of_rankings
from raters.fitting.result import draws_of
from raters.judgements.rankings import Rankings
from raters.kinds import AuditLimits, Quantities
from raters.program import Program

# Competences that one is read off an accuracy among.
_COMPETENCES = np.linspace(-10, 10, 201)


@dataclass(frozen=True)
class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`; see
    `OrderCalibration`."""

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, against the true order."""
        ability = self.accuracies.ability[:AUDIT_DRAWS]
        competence, own = self._competence(ability), self.accuracies.own[:AUDIT_DRAWS]
        data, worth = self.program.data.unpadded(), self.truth.values.mean(0)
        return Quantities(
            {"competence": competence, "accuracy": own},
            judged="competence",
            columns={
                "p_adversarial": (competence < 0).mean(0),
                "agreement": rankings.agreement(data, worth),
            },
        )

    def _competence(
        self, ability: Float[np.ndarray, "draw annotator"]
    ) -> Float[np.ndarray, "draw annotator"]:
        """Competence at which the accuracy on pairs of items is the ability."""
        worth = self.items["reward_by_model"].values
        one, other = np.triu_indices(len(worth), 1)
        gap = np.quantile(np.abs(worth[one] - worth[other]), np.linspace(0.005, 0.995, 100))
        accuracy = expit(_COMPETENCES[:, None] * gap).mean(1)
        return np.asarray(np.interp(ability, accuracy, _COMPETENCES))


def calibrate_rankings(
    program: Program[Any],
    result: xr.DataTree,
    gold: Any,
    reference: tuple[Any, ...],
    level: float,
    seed: int,
) -> RankingCalibration:
    """Calibrate a fit of rankings; see `raters.calibrate`."""
    rankings.check_worths(program)
    data: Rankings = program.data.unpadded()
    stated, orders = of_rankings(data), KnownOrders.read(gold, data.items)
    draws = draws_of(program, result)[0]
    truth = true_order(program, draws, "worth", stated, orders, reference, seed)
    crowd = np.asarray(draws["worth"], float)
    marks = marks_of(stated, truth, data.num_annotators, data.num_items)
    return calibrate_orders(RankingCalibration, program, result, truth, marks, crowd, level, seed)
