"""Calibration of comparisons: true order of the items, and accuracies, from known orders of some
pairs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.auditing import comparisons
from raters.auditing.annotator_accuracy import Marks, luck_of
from raters.auditing.calibrated_orders import (
    AUDIT_DRAWS,
    OrderCalibration,
    Truth,
    calibrate_orders,
    doubts_about,
)
from raters.auditing.calibration import Anchor, number_of_draws, trusted_codes
from raters.auditing.known_orders import KnownOrders
from raters.auditing.true_orders import draw_true_rewards_of_worlds
from raters.errors import SettingError
from raters.fitting.result import draws_of
from raters.judgements.comparisons import Comparisons
from raters.kinds import AuditLimits, Quantities
from raters.models.comparisons.directions import has_directions
from raters.program import Program

# Competences that one is read off an accuracy among.
_COMPETENCES = np.linspace(-10, 10, 201)


@dataclass(frozen=True)
class ComparisonCalibration(OrderCalibration):
    """Statements about the order of compared items, from `raters.calibrate`; see
    `OrderCalibration`."""

    @property
    def known_questions(self) -> Int[np.ndarray, " question"] | None:
        """Codes of the pairs of known order."""
        one, other = self.orders.better, self.orders.worse
        low, high = np.minimum(one, other), np.maximum(one, other)
        codes: Int[np.ndarray, " question"] = low.astype(np.int64) * len(self.items["item"]) + high
        return codes

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, against the true order."""
        found = comparisons.quantities(self.program, self.result, limits)
        ability = self.accuracies.ability[:AUDIT_DRAWS]
        competence = self._competence(ability)
        data, mean = self.program.data.unpadded(), self.truth.values.mean(0)
        same = np.zeros(data.num_annotators, int)
        columns = dict(found.columns) | {
            "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
            "p_adversarial": (competence < 0).mean(0),
            "agreement": comparisons.agreement(data, mean[:, None], same),
        }
        if has_directions(self.program):
            columns |= self._types()
        elif "p_guessing" in columns:
            columns["p_guessing"] = (np.abs(ability - 0.5) < limits.margin).mean(0)
        own = self.accuracies.own[: len(ability)]
        values = dict(found.values) | {"competence": competence, "accuracy": own}
        return dataclasses.replace(found, values=values, columns=columns, tables={})

    def _types(self) -> dict[str, Float[np.ndarray, " annotator"]]:
        """Probability that each annotator is a guesser, and an adversary."""
        draws, _ = draws_of(self.program, self.result, AUDIT_DRAWS)
        competence = comparisons.competences(self.program, draws)
        crowd, truth = (
            values - values.mean(1, keepdims=True)
            for values in (np.asarray(draws["reward"], float), self.truth.values)
        )
        is_along = ((crowd @ truth.T) > 0).mean(1)[:, None]
        against = np.where(competence < 0, is_along, (competence > 0) * (1 - is_along))
        return {"p_guessing": (competence == 0).mean(0), "p_adversarial": against.mean(0)}

    def _competence(
        self, ability: Float[np.ndarray, "draw annotator"]
    ) -> Float[np.ndarray, "draw annotator"]:
        """Competence at which the accuracy on random pairs is the ability."""
        posterior = self.result["posterior"].dataset
        reward = np.asarray(posterior["reward"].mean(("chain", "draw")).values, float)
        one, other = comparisons.random_pairs(self.program.data)
        gap = np.abs(reward[one] - reward[other])
        logits, columns = (_COMPETENCES[:, None] * gap).reshape(1, -1), []
        ties = [name for name in ("tie_propensity",) if name in posterior]
        means = {name: np.asarray(posterior[name].mean(("chain", "draw")))[None] for name in ties}
        for code, own in enumerate(ability.T):
            score = comparisons.score_of_better(self.program, means, logits, code)
            accuracy = score.reshape(len(_COMPETENCES), -1).mean(1)
            columns.append(np.interp(own, accuracy, _COMPETENCES))
        return np.stack(columns, axis=1)


def calibrate_comparisons(
    program: Program[Any],
    result: xr.DataTree,
    gold: Any,
    reference: tuple[Any, ...],
    level: float,
    seed: int,
) -> ComparisonCalibration:
    """Calibrate a fit of comparisons; see `raters.calibrate`."""
    if program.sites.get("reward") is None or program.sites["reward"].dims != ("item",):
        raise SettingError(
            parameter="model",
            value=program.model,
            problem="has no one ranking, so there is nothing to calibrate",
            expected="fit a model with one reward for each item",
            instead="rt.ExtendedBTL(competence='signed')",
        )
    data: Comparisons = program.data.unpadded()
    orders = KnownOrders.read(gold, data.items)
    trusted = trusted_codes(data, reference)
    rng = np.random.default_rng(seed)
    draws, _ = draws_of(program, result)
    reward, other = np.asarray(draws["reward"], float), np.zeros(len(draws["reward"]), bool)
    of_gold, doubts = len(orders.better), doubts_about(orders, reward)
    if len(trusted):
        orders = _with_trusted(orders, data, trusted)
    num_draws = number_of_draws(max(data.num_rows, data.num_items), 1)
    if "competence" in draws and len(orders.better):
        other = comparisons.in_other_world(program, comparisons.competences(program, draws))
    drawn, sizes = draw_true_rewards_of_worlds(reward, other, orders, num_draws, rng)
    known = len(orders.better)
    anchor = Anchor(known, tuple(reference), told=known - of_gold, doubts=doubts)
    truth, marks = Truth(orders, drawn, sizes, anchor), _marks(data, orders, drawn)
    return calibrate_orders(
        ComparisonCalibration, program, result, truth, marks, reward, level, seed
    )


def _with_trusted(
    orders: KnownOrders, data: Comparisons, trusted: Int[np.ndarray, " trusted"]
) -> KnownOrders:
    """Known orders, and those of pairs by most votes of trusted annotators."""
    data = data.halved()
    rows = np.flatnonzero(np.isin(np.asarray(data.annotator), trusted))
    first, second = (np.asarray(side)[rows].astype(int) for side in (data.first, data.second))
    low, high = np.minimum(first, second), np.maximum(first, second)
    wins, count = (np.asarray(values, float)[rows] for values in (data.wins, data.weight))
    margin = np.where(first == low, 2 * wins - count, count - 2 * wins)
    pairs, place = np.unique(np.stack([low, high], 1), axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), margin, len(pairs))
    known = orders.signs(pairs[:, 0], pairs[:, 1], data.num_items) != 0
    pairs, total = pairs[~known & (total != 0)], total[~known & (total != 0)]
    better, worse = (np.where(total > 0, pairs[:, side], pairs[:, 1 - side]) for side in (0, 1))
    return KnownOrders(
        np.concatenate([orders.better, better]),
        np.concatenate([orders.worse, worse]),
        np.concatenate([orders.chain, np.stack([better, worse], 1)]),
    )


def _marks(data: Comparisons, orders: KnownOrders, truth: Float[np.ndarray, "draw item"]) -> Marks:
    """Right votes of each annotator, of a tie half: on pairs of known order, and expected on the
    others."""
    data = data.halved()
    first, second = np.asarray(data.first), np.asarray(data.second)
    wins, count = np.asarray(data.wins, float), np.asarray(data.weight, float)
    annotator, size = np.asarray(data.annotator), data.num_annotators
    sign = orders.signs(first, second, data.num_items)
    known = sign != 0
    right = np.where(sign > 0, wins, count - wins)

    def by_annotator(values: np.ndarray, rows: np.ndarray) -> Float[np.ndarray, " annotator"]:
        return np.bincount(annotator[rows], values[rows], size).astype(float)

    rows = ~known
    credit = np.stack(
        [
            by_annotator(np.where(one[first] > one[second], wins, count - wins), rows)
            for one in truth
        ]
    )
    low, high = np.minimum(first, second), np.maximum(first, second)
    _, pair = np.unique(low.astype(np.int64) * data.num_items + high, return_inverse=True)
    of_pair = [np.bincount(pair[known], values[known], pair.max() + 1) for values in (right, count)]
    return Marks(
        by_annotator(right, known),
        by_annotator(count, known),
        credit,
        by_annotator(count, rows),
        luck_of(*of_pair),
    )
