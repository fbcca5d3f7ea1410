"""Calibration of the order of ranked items."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from raters.kinds.orders import AnnotatorDraws, OrderCalibration, PerCompetence
from raters.kinds.rankings import audit


class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`."""

    site = "worth"

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Agreement with the true order."""
        data, worth = self.program.data.unpadded(), self.truth.values.mean(0)
        return {"agreement": audit.agreement(data, worth)}

    def _accuracies(self) -> PerCompetence:
        worth = self.items["reward_by_model"].values
        one, other = np.triu_indices(len(worth), 1)
        gap = np.quantile(np.abs(worth[one] - worth[other]), np.linspace(0.005, 0.995, 100))
        return np.asarray(expit(self.competences[:, None] * gap).mean(1))
