"""Calibration of ratings from known qualities, or known orders, of some items."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.auditing import ratings
from raters.auditing.calibrated_orders import (
    AUDIT_DRAWS,
    OrderCalibration,
    calibrate_orders,
    marks_of,
    true_order,
)
from raters.auditing.known_orders import KnownOrders
from raters.auditing.stated_orders import of_ratings
from raters.fitting.result import draws_of
from raters.judgements.ratings import Ratings
from raters.kinds import AuditLimits, Quantities
from raters.program import Program

# Competences that one is read off an accuracy among.
_COMPETENCES = np.linspace(-6, 10, 161)


@dataclass(frozen=True)
class RatingCalibration(OrderCalibration):
    """Statements about the order of rated items, from `raters.calibrate`; see
    `OrderCalibration`."""

    @property
    def known_questions(self) -> Int[np.ndarray, " question"] | None:
        """Codes of the items that are in a known order."""
        data = self.program.data.unpadded()
        known = np.isin(np.asarray(data.item), np.concatenate(self.orders[:2]))
        codes: Int[np.ndarray, " question"] = np.unique(data.about()[known])
        return codes

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, against the true order."""
        found = ratings.quantities(self.program, self.result, limits)
        ability = self.accuracies.ability[:AUDIT_DRAWS]
        competence = np.interp(ability, self._accuracies(), _COMPETENCES)
        values = dict(found.values) | {
            "competence": competence,
            "accuracy": self.accuracies.own[:AUDIT_DRAWS],
        }
        columns = dict(found.columns) | {
            "p_guessing": (np.abs(ability - 0.5) < limits.margin).mean(0),
            "p_adversarial": (competence < 0).mean(0),
        }
        return dataclasses.replace(found, values=values, columns=columns)

    def _accuracies(self) -> Float[np.ndarray, " competence"]:
        """Probability of each of `_COMPETENCES` that two random items on different levels are in
        the right order."""
        model = ratings.check_many_facet(self.program)
        draws = draws_of(self.program, self.result)[0]
        average = {name: np.asarray(value, float).mean(0) for name, value in draws.items()}
        number, nodes = len(_COMPETENCES), ratings.NODES
        for name in ("severity", "threshold_deviation"):
            if name in average:
                mean = average[name].mean(0, keepdims=True)
                average[name] = np.repeat(mean, number, axis=0)
        sites = {name: jnp.asarray(value) for name, value in average.items()}
        sites["competence"] = jnp.asarray(_COMPETENCES)
        other = jnp.broadcast_to(jnp.arange(number), (len(nodes), number))
        value = jnp.broadcast_to(jnp.asarray(nodes)[:, None], other.shape)
        probs = np.asarray(model.answers_at(value, other, sites).probs, float)
        below = np.cumsum(probs, -1) - probs
        # Weight of the better node, then the worse one.
        both = np.tril(np.outer(ratings.WEIGHTS, ratings.WEIGHTS), -1)
        right = np.einsum("ab,acl,bcl->c", both, probs, below)
        wrong = np.einsum("ab,acl,bcl->c", both, below, probs)
        share: Float[np.ndarray, " competence"] = right / (right + wrong)
        return np.maximum.accumulate(share)


def calibrate_ratings(
    program: Program[Any],
    result: xr.DataTree,
    gold: Any,
    reference: tuple[Any, ...],
    level: float,
    seed: int,
) -> RatingCalibration:
    """Calibrate a fit of ratings; see `raters.calibrate`."""
    ratings.check_many_facet(program)
    data: Ratings = program.data.unpadded()
    orders = KnownOrders.read(gold, data.items)
    known = np.zeros(data.num_items, bool)
    known[np.concatenate(orders[:2])] = True
    stated = of_ratings(data, known)
    draws = draws_of(program, result)[0]
    truth = true_order(program, draws, "reward", stated, orders, reference, seed)
    crowd = np.asarray(draws["reward"], float)
    marks = marks_of(stated, truth, data.num_annotators, data.num_items)
    return calibrate_orders(RatingCalibration, program, result, truth, marks, crowd, level, seed)
