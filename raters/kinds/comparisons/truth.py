"""Calibration of the order of compared items."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from raters.fitting.result import draws_of
from raters.kinds.comparisons import audit
from raters.kinds.orders import AnnotatorDraws, OrderCalibration, PerCompetence
from raters.models.comparisons.directions import has_directions

# Draws of accuracies that an audit reads.
_AUDIT_DRAWS = 400


class ComparisonCalibration(OrderCalibration):
    """Statements about the order of compared items, from `raters.calibrate`."""

    answer = "winner"
    chained = False

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Relative competence, agreement with the true order, and types."""
        data, mean = self.program.data.unpadded(), self.truth.values.mean(0)
        same = np.zeros(data.num_annotators, int)
        columns = {
            "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
            "agreement": audit.agreement(data, mean[:, None], same),
        }
        return columns | self._types() if has_directions(self.program) else columns

    def _types(self) -> dict[str, Float[np.ndarray, " annotator"]]:
        """Probability that each annotator is a guesser, and an adversary."""
        draws, _ = draws_of(self.program, self.result, _AUDIT_DRAWS)
        competence = audit.competences(self.program, draws)
        crowd, truth = (
            values - values.mean(1, keepdims=True)
            for values in (np.asarray(draws["reward"], float), self.truth.values)
        )
        is_along = ((crowd @ truth.T) > 0).mean(1)[:, None]
        against = np.where(competence < 0, is_along, (competence > 0) * (1 - is_along))
        return {"p_guessing": (competence == 0).mean(0), "p_adversarial": against.mean(0)}

    def _accuracies(self) -> PerCompetence:
        """Accuracy of each annotator, whose ties may be their own."""
        posterior, size = self.result["posterior"].dataset, len(self.competences)
        reward = self.items["reward_by_model"].values
        one, other = audit.random_pairs(self.program.data)
        logits = (self.competences[:, None] * np.abs(reward[one] - reward[other])).reshape(1, -1)
        ties = [name for name in ("tie_propensity",) if name in posterior]
        means = {name: np.asarray(posterior[name].mean(("chain", "draw")))[None] for name in ties}
        curves = []
        for code in range(self.annotators.sizes["annotator"]):
            score = audit.score_of_better(self.program, means, logits, code)
            curves.append(score.reshape(size, -1).mean(1))
        return np.stack(curves)
