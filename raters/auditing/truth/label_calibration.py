"""Calibration of labels: true classes, accuracies and confusion matrices that allow for mistakes
that a crowd makes together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.special import expit, logit

from raters.auditing import labels as label_audit
from raters.auditing.annotator_types import type_columns, type_probs_given
from raters.auditing.truth.anchor_check import (
    WRONG_LABELS,
    Intervals,
    check_table,
    prediction_powered,
)
from raters.auditing.truth.calibration import Calibration, Drawn, Given, number_of_draws
from raters.auditing.truth.gold_weights import given_probabilities, weights
from raters.auditing.truth.statements import of_labels
from raters.auditing.truth.true_classes import (
    Evidence,
    class_probs_of,
    draw_true_classes,
    learn_unknowns,
)
from raters.errors import DataError, refuse
from raters.fitting.result import draws_of
from raters.judgements.labels import Labels, known_truth
from raters.judgements.names import names_array, shorten
from raters.kinds import AuditLimits, Quantities
from raters.model import Values
from raters.program import Program, class_probs

PerAnnotator = Float[np.ndarray, " annotator"]
ConfusionDraws = Float[np.ndarray, "draw annotator true_class label"]
ItemCodes = Int[np.ndarray, " item"]
ClassProbs = Float[np.ndarray, "item true_class"]

# Draws that known classes are looked at from, as if they were not known, and that an audit reads.
_UNKNOWN_DRAWS, _AUDIT_DRAWS = 400, 400
# Items of known class whose probabilities under all draws are in memory at once.
_AT_ONCE = 20_000
# Labels that each annotator starts with, shared out as the crowd does.
_WEIGHT = 2.0
# Draws of matrices are made for parts of the annotators of so many numbers (80 MB).
_NUMBERS = 10_000_000


@dataclass(frozen=True)
class LabelCalibration(Calibration):
    """Statements about labels: also ``class_probability`` of each item, ``unaided_probability`` of
    known items as if their class were not known, and the ``weights`` of these."""

    class_probability: xr.DataArray
    unaided_probability: xr.DataArray
    labels: Labels
    weights: Float[np.ndarray, " item"]
    types: dict[str, PerAnnotator]

    known_truths = "classes"

    @property
    def expected_wrong(self) -> float:
        """Expected number of items whose label in `items` is wrong."""
        return float((1 - self.items["probability"]).sum())

    @property
    def wrong_interval(self) -> tuple[float, float]:
        """Interval of the number of items whose label in `items` is wrong."""
        chosen = label_audit.most_probable(self.class_probability.values)
        number = (self.truth.values != chosen).sum(1)
        low, high = np.quantile(number, ((1 - self.level) / 2, (1 + self.level) / 2))
        return float(low), float(high)

    def _checked(self, names: list[str], stated: Intervals) -> xr.Dataset:
        """Share of wrong labels and accuracies, beside what the known classes alone say."""
        labels, truth = self.labels, np.asarray(self.labels.truth)
        item, label, annotator = (
            np.asarray(code) for code in (labels.item, labels.label, labels.annotator)
        )
        chances, is_known = self.class_probability.values.copy(), truth >= 0
        chances[is_known] = self.unaided_probability.values
        doubt, wrong = 1 - chances.max(1), (chances.argmax(1) != truth)[is_known].astype(float)
        chance, right, known = chances[item, label], label == truth[item], is_known[item]
        of_item, of_label = self.weights[is_known], self.weights[item]
        shares = [prediction_powered(wrong, doubt[is_known], of_item, doubt[~is_known], self.level)]
        order = np.argsort(annotator, kind="stable")
        ends = np.searchsorted(annotator[order], np.arange(labels.num_annotators + 1))
        for begin, end in pairwise(ends.tolist()):
            rows = order[begin:end]
            some, rest = rows[known[rows]], rows[~known[rows]]
            each = right[some].astype(float), chance[some], of_label[some], chance[rest]
            shares.append(prediction_powered(*each, self.level))
        in_known = known * of_label
        right_weight, square, weight = (
            np.append(of_item @ by_item, np.bincount(annotator, by_label * in_known, len(names)))
            for by_item, by_label in ((wrong, right), (of_item, of_label), (np.ones_like(wrong), 1))
        )
        # Kish's number of equally likely truths.
        number = weight**2 / np.maximum(square, 1e-12)
        success = number * right_weight / np.maximum(weight, 1e-12)
        total = (~is_known).sum() or np.nan
        share = np.array([self.expected_wrong, *self.wrong_interval]) / total
        names, stated = [WRONG_LABELS, *names], np.vstack([share, stated])
        powered = {"prediction_powered": np.array(shares)}
        checked = check_table(names, success, number, self.level, stated, **powered)
        if not np.allclose(of_item, 1):  # Confidence sequences are of equally likely truths.
            checked = checked.drop_vars(["anytime_low", "anytime_high"])
        return checked

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, from draws of confusion matrices."""
        most = self.class_probability.values.argmax(1)
        parts = self._confusion()
        made = label_audit.quantities_of(self.labels, parts, self._prevalence(), most, limits)
        own = self.accuracies.own[: len(next(iter(made.values.values())))]
        tables = dict(made.tables) | {"items": self.items}
        values = dict(made.values) | {"accuracy": own}
        columns = dict(made.columns) | type_columns(self.types)
        return dataclasses.replace(made, values=values, columns=columns, tables=tables)

    def _prevalence(self) -> Float[np.ndarray, "draw true_class"]:
        """Frequency of each class among the items, under each draw."""
        drawn, size = self.truth.values[:_AUDIT_DRAWS], self.labels.num_classes
        return np.stack([np.bincount(one, minlength=size) for one in drawn]) / drawn.shape[1]

    def _confusion(self) -> Iterator[ConfusionDraws]:
        """Draws of confusion matrices, in parts of the annotators."""
        labels, rng, prevalence = self.labels, np.random.default_rng(0), self._prevalence()
        num_annotators, num_classes = labels.num_annotators, labels.num_classes
        first = self.truth.values[:_AUDIT_DRAWS].astype(np.int64) * num_classes
        item, annotator, label = (
            np.asarray(code).astype(np.int64)
            for code in (labels.item, labels.annotator, labels.label)
        )
        weight = np.asarray(labels.weight, float)

        def counts(rows: Any, annotators: Int[np.ndarray, " label"], size: int) -> ConfusionDraws:
            """Labels by annotator, true class and label, under each draw."""
            cell, of = annotators * num_classes**2 + label[rows], item[rows]
            numbers = [
                np.bincount(cell + true[of], weight[rows], size * num_classes**2) for true in first
            ]
            return np.stack(numbers).reshape(-1, size, num_classes, num_classes)

        record = np.zeros((num_annotators, 1, 1))
        if labels.record is not None:
            record = np.asarray(labels.record, float)
        of_all = counts(slice(None), np.zeros_like(annotator), 1)
        pooled = of_all + record.sum(0) + 0.5 * np.eye(num_classes) + 0.5 / num_classes
        pooled /= pooled.sum(-1, keepdims=True)
        order = np.argsort(annotator, kind="stable")
        size = max(1, _NUMBERS // (len(first) * num_classes**2))
        for begin in range(0, num_annotators, size):
            end = min(begin + size, num_annotators)
            rows = order[slice(*np.searchsorted(annotator[order], (begin, end)))]
            known = counts(rows, annotator[rows] - begin, end - begin) + record[begin:end]
            matrices = np.maximum(rng.standard_gamma(known + _WEIGHT * pooled), 1e-12)
            matrices /= matrices.sum(-1, keepdims=True)
            yield _moved(matrices, prevalence, self.accuracies.ability[: len(first), begin:end])

    @classmethod
    def draw(cls, given: Given) -> Drawn:
        """Draw the true class of each item."""
        program, result, gold, trusted, _, rng = given
        label_audit.check_can_audit(program)
        labels: Labels = program.data.unpadded()
        item, is_told = np.asarray(labels.item), np.isin(np.asarray(labels.annotator), trusted)
        by_model = result["classes"]["responsibility"].transpose("item", "true_class").values
        chances, fitted = np.array(by_model, float), _codes(labels)
        by_gold = with_gold(labels, gold)
        judged, told = labels.rows(~is_told), labels.rows(is_told).votes()
        truth = np.where(by_gold < 0, _most_said(told), by_gold)
        unanchored = np.flatnonzero((fitted >= 0) | (told.sum(1) > 0))
        if len(unanchored):
            values, _ = draws_of(program, result, _UNKNOWN_DRAWS)
            equal = np.ones(len(next(iter(values.values()))))
            chances[unanchored] = _as_if_unknown(program, values, equal, judged, unanchored, fitted)
        of_gold, weight, doubt = (by_gold >= 0) & (gold is not None), 1.0 * (truth >= 0), ""
        if gold is not None:
            of_items, doubt = weights(labels, of_gold, given_probabilities(gold, labels))
            weight = np.where(of_gold, of_items, weight)
        some = of_gold & (np.bincount(item, minlength=labels.num_items) > 0)
        contradicted = (chances.argmax(1) != truth)[some]
        evidence = Evidence.of(chances, judged.votes())
        known, num_draws = np.flatnonzero(truth >= 0), number_of_draws(*chances.shape)
        evidence, unknowns = learn_unknowns(evidence, judged, truth, weight, num_draws, rng)
        probability, unaided, drawn = draw_true_classes(evidence, unknowns, truth, rng)
        items, classes = (names_array(labels.coords[axis]) for axis in ("item", "true_class"))
        each, axes = {"true_class": classes}, ("item", "true_class")
        of_label = by_model[np.arange(len(by_model)), probability.argmax(1)]
        table = label_audit.item_table(probability, labels)
        others = {
            "items": table.assign(probability_by_model=("item", np.asarray(of_label, float))),
            "class_probability": xr.DataArray(probability, {"item": items} | each, axes),
            "unaided_probability": xr.DataArray(unaided, {"item": items[known]} | each, axes),
            "unknowns": xr.Dataset(
                {name: (("draw", "true_class")[: one.ndim], one) for name, one in unknowns.items()},
                each,
            ),
            "labels": dataclasses.replace(labels, truth=truth if len(known) else None),
            "weights": weight,
            "types": _types(program, result, labels, drawn),
        }
        numbers = len(known), int((by_gold[known] < 0).sum())
        said = of_labels(labels, truth, weight)
        return Drawn(drawn, said, *numbers, contradicted, doubt, others)


def _moved(
    matrices: ConfusionDraws,
    prevalence: Float[np.ndarray, "draw true_class"],
    ability: Float[np.ndarray, "draw annotator"],
) -> ConfusionDraws:
    """Matrices whose diagonals are moved by equally many logits, to accuracies that are given."""
    right = np.clip(np.einsum("dakk->dak", matrices), 1e-6, 1 - 1e-6)
    odds, target = logit(right), np.clip(ability, 1e-6, 1 - 1e-6)
    share, shift = prevalence[:, None], np.zeros(ability.shape)
    # Newton's method on the log-odds of the accuracy, which is close to linear in the shift.
    for _ in range(8):
        probs = expit(odds + shift[..., None])
        now = np.clip((share * probs).sum(-1), 1e-9, 1 - 1e-9)
        slope = (share * probs * (1 - probs)).sum(-1) / (now * (1 - now))
        step = (logit(target) - logit(now)) / np.maximum(slope, 0.05)
        shift += np.clip(step, -3, 3)
    probs = expit(odds + shift[..., None])
    moved = matrices * ((1 - probs) / (1 - right))[..., None]
    places = np.arange(matrices.shape[-1])
    moved[..., places, places] = probs
    return np.asarray(moved / moved.sum(-1, keepdims=True))


def _types(
    program: Program[Any], result: xr.DataTree, labels: Labels, drawn: Int[np.ndarray, "draw item"]
) -> dict[str, PerAnnotator]:
    """Probability of each type of each annotator, under drawn true classes."""
    values, _ = draws_of(program, result, _AUDIT_DRAWS)
    number = min(len(drawn), len(next(iter(values.values()))))
    values = {name: value[:number] for name, value in values.items()}
    classes = drawn[:number, np.asarray(labels.unit_code)]
    return type_probs_given(dataclasses.replace(program, data=labels), values, classes)


def class_probs_by_draw(
    program: Program[Any], draws: Values, share: Float[np.ndarray, " draw"], chances: ClassProbs
) -> Float[np.ndarray, "draw item true_class"]:
    """Calibrated class probabilities for each draw of the parameters."""
    labels: Labels = program.data.unpadded()
    truth, rng = _codes(labels), np.random.default_rng(0)
    known, chances = np.flatnonzero(truth >= 0), np.array(chances, float)
    if len(known):
        chances[known] = _as_if_unknown(program, draws, share, labels, known, truth)
    evidence = Evidence.of(chances, labels.votes())
    evidence, unknowns = learn_unknowns(
        evidence, labels, truth, 1.0 * (truth >= 0), len(share), rng
    )
    probs = np.array(class_probs_of(evidence, unknowns))
    probs[:, known] = np.eye(labels.num_classes)[truth[known]]
    return probs


def _codes(labels: Labels) -> ItemCodes:
    """Code of the class of each item that the fit knew; −1 elsewhere."""
    return np.full(labels.num_items, -1) if labels.truth is None else np.array(labels.truth, int)


def with_gold(labels: Labels, gold: Any) -> ItemCodes:
    """Known classes of the fit and of `gold`."""
    fitted = _codes(labels)
    if gold is None:
        return fitted
    codes = known_truth(gold, "item", "truth", labels.items, labels.classes)
    if codes is None:
        return fitted
    differ = np.flatnonzero((codes >= 0) & (fitted >= 0) & (codes != fitted))
    if len(differ):
        items = [labels.items[place] for place in differ]
        problem = "has other classes than those that were known to the fit"
        refuse("gold", shorten(items), problem, "give each item one true class", error=DataError)
    return np.where(codes >= 0, codes, fitted)


def _most_said(votes: ClassProbs) -> ItemCodes:
    """Code of the class with most votes of each item; −1 without votes or with a tie."""
    most = votes.max(1, keepdims=True)
    alone = (votes == most).sum(1) == 1
    return np.where(alone & (most[:, 0] > 0), votes.argmax(1), -1)


def _as_if_unknown(
    program: Program[Any],
    draws: Values,
    share: Float[np.ndarray, " draw"],
    judged: Labels,
    items: Int[np.ndarray, " some"],
    fitted: ItemCodes,
) -> Float[np.ndarray, "some true_class"]:
    """Class probabilities of items by untrusted labels, as if no class were known."""
    bare = dataclasses.replace(judged, truth=None)
    parts = []
    for begin in range(0, len(items), _AT_ONCE):
        some = items[begin : begin + _AT_ONCE]
        part = jax.tree.map(jnp.asarray, bare.take(some))
        probs = np.asarray(class_probs(program.model, part, draws), float)
        known = fitted[some]
        of_truth = probs[:, np.arange(len(some)), np.maximum(known, 0)]
        weight = np.where(known >= 0, 1 / np.maximum(of_truth, 1e-12), 1.0)
        weight = share[:, None] * np.minimum(weight, weight.mean(0) * np.sqrt(len(weight)))
        parts.append(np.einsum("di,dik->ik", weight / weight.sum(0), probs))
    return np.concatenate(parts)
