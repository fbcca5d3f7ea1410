"""Calibration of labels: true classes, accuracies and confusion matrices that allow for mistakes
that a crowd makes together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.special import expit, logit

from raters.auditing import labels as label_audit
from raters.auditing.anchor_check import WRONG_LABELS, check_table, prediction_powered
from raters.auditing.annotator_accuracy import Marks, draw_accuracies, luck_of
from raters.auditing.annotator_types import type_columns, type_probs_given
from raters.auditing.calibration import (
    Anchor,
    Calibration,
    contradiction,
    number_of_draws,
    trusted_codes,
    warn_of,
)
from raters.auditing.gold_weights import given_probabilities, weights
from raters.auditing.intervals import table
from raters.auditing.true_classes import Evidence, class_probs_of, draw_true_classes, learn_unknowns
from raters.errors import DataError, refuse
from raters.fitting.result import draws_of
from raters.judgements.labels import Labels, known_truth
from raters.judgements.names import names_array, shorten
from raters.kinds import AuditLimits, Quantities
from raters.model import Values
from raters.program import Program, class_probs

PerAnnotator = Float[np.ndarray, " annotator"]
ConfusionDraws = Float[np.ndarray, "draw annotator true_class label"]
ClassDraws = Int[np.ndarray, "draw item"]
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
    types: dict[str, PerAnnotator] = field(default_factory=dict)

    @property
    def expected_wrong(self) -> float:
        """Expected number of items whose label in `items` is wrong."""
        return float((1 - self.items["probability"]).sum())

    @property
    def wrong_interval(self) -> tuple[float, float]:
        """Interval of the number of items whose label in `items` is wrong."""
        codes = {name: code for code, name in enumerate(self.labels.classes)}
        chosen = np.array([codes[name] for name in self.items["label"].values.tolist()])
        number = (self.truth.values != chosen).sum(1)
        low, high = np.quantile(number, ((1 - self.level) / 2, (1 + self.level) / 2))
        return float(low), float(high)

    @property
    def anchor_check(self) -> xr.Dataset | None:
        """Share of wrong labels and accuracies, beside what the known classes alone say."""
        if self.labels.truth is None:
            return None
        labels, truth = self.labels, np.asarray(self.labels.truth)
        chances = self.class_probability.values.copy()
        chances[truth >= 0] = self.unaided_probability.values
        doubt, is_known = 1 - chances.max(1), truth >= 0
        wrong = (chances.argmax(1) != truth)[is_known].astype(float)
        total = (len(truth) - len(wrong)) or np.nan
        item, label, annotator = (
            np.asarray(code) for code in (labels.item, labels.label, labels.annotator)
        )
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
        size = labels.num_annotators
        sums = [
            np.append(of_item @ by_item, np.bincount(annotator, by_label * known * of_label, size))
            for by_item, by_label in ((wrong, right), (of_item, of_label), (np.ones_like(wrong), 1))
        ]
        # Kish's number of equally likely truths.
        numbers = sums[2] ** 2 / np.maximum(sums[1], 1e-12)
        successes = numbers * sums[0] / np.maximum(sums[2], 1e-12)
        low, high = self.wrong_interval
        stated = [[self.expected_wrong / total, low / total, high / total]]
        columns = ("accuracy", "accuracy_low", "accuracy_high")
        stated += np.stack([self.annotators[name].values for name in columns], 1).tolist()
        checked = check_table(
            [WRONG_LABELS, *(f"accuracy of {name}" for name in labels.annotators)],
            successes,
            numbers,
            self.level,
            np.array(stated),
            prediction_powered=np.array(shares),
        )
        if not np.allclose(of_item, 1):  # Confidence sequences are of equally likely truths.
            checked = checked.drop_vars(["anytime_low", "anytime_high"])
        return checked

    @property
    def known_questions(self) -> Int[np.ndarray, " question"] | None:
        """Codes of the questions about items of known class."""
        if self.labels.truth is None:
            return None
        is_known = np.asarray(self.labels.truth)[np.asarray(self.labels.item)] >= 0
        codes: Int[np.ndarray, " question"] = np.unique(self.labels.about()[is_known])
        return codes

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
        drawn, num_classes = self.truth.values[:_AUDIT_DRAWS].astype(int), self.labels.num_classes
        places = drawn + num_classes * np.arange(len(drawn))[:, None]
        counts = np.bincount(places.ravel(), minlength=len(drawn) * num_classes)
        shares: np.ndarray = counts.reshape(len(drawn), num_classes) / drawn.shape[1]
        return shares

    def _confusion(self) -> Iterator[ConfusionDraws]:
        """Draws of confusion matrices, in parts of the annotators."""
        labels, rng = self.labels, np.random.default_rng(0)
        num_classes = labels.num_classes
        drawn = self.truth.values[:_AUDIT_DRAWS].astype(np.int64) * num_classes
        item, annotator, label = (
            np.asarray(code).astype(np.int64)
            for code in (labels.item, labels.annotator, labels.label)
        )
        weight, prevalence = np.asarray(labels.weight, float), self._prevalence()
        size = max(1, _NUMBERS // (len(drawn) * num_classes**2))
        of_all = _counts(drawn, item, label, weight, (1, num_classes, num_classes))
        record = np.zeros((labels.num_annotators, 1, 1))
        if labels.record is not None:
            record = np.asarray(labels.record, float)
        pooled = of_all + record.sum(0) + 0.5 * np.eye(num_classes) + 0.5 / num_classes
        pooled /= pooled.sum(-1, keepdims=True)
        order = np.argsort(annotator, kind="stable")
        for begin in range(0, labels.num_annotators, size):
            number = min(size, labels.num_annotators - begin)
            ends = np.searchsorted(annotator[order], (begin, begin + number))
            rows = order[slice(*ends)]
            cell = (annotator[rows] - begin) * num_classes**2 + label[rows]
            shape = number, num_classes, num_classes
            counts = _counts(drawn, item[rows], cell, weight[rows], shape)
            counts += record[begin : begin + number]
            matrices = np.maximum(rng.standard_gamma(counts + _WEIGHT * pooled), 1e-12)
            matrices /= matrices.sum(-1, keepdims=True)
            ability = self.accuracies.ability[: len(drawn), begin : begin + number]
            yield _moved(matrices, prevalence, ability)


def _counts(
    first: Int[np.ndarray, "draw item"],
    item: Int[np.ndarray, " label"],
    cell: Int[np.ndarray, " label"],
    weight: Float[np.ndarray, " label"],
    shape: tuple[int, ...],
) -> ConfusionDraws:
    """Labels in cells that are counted from the first one of the true class, under each draw."""
    size = int(np.prod(shape))
    counts = [np.bincount(cell + begin[item], weight, size) for begin in first]
    return np.stack(counts).reshape(-1, *shape)


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


# ---------------------------------------------------------------- making one


def calibrate_labels(
    program: Program[Any],
    result: xr.DataTree,
    gold: Any,
    reference: tuple[Any, ...],
    level: float,
    seed: int,
) -> LabelCalibration:
    """Calibrate a fit of labels; see `raters.calibrate`."""
    labels: Labels = program.data.unpadded()
    label_audit.check_can_audit(program)
    trusted = trusted_codes(labels, reference)
    by_model = result["classes"]["responsibility"].transpose("item", "true_class").values
    chances, fitted = np.array(by_model, float), _codes(labels)
    by_gold, given = with_gold(labels, gold), np.ones(labels.num_rows, bool)
    truth = by_gold
    said = np.flatnonzero(np.isin(np.asarray(labels.annotator), trusted))
    if len(said):
        given[said] = False
        by_reference = _most_said(labels.rows(said))
        truth = np.where(truth < 0, by_reference, truth)
    judged = labels.rows(given)
    unanchored = np.flatnonzero(
        (fitted >= 0) | (np.bincount(np.asarray(labels.item)[said], minlength=len(truth)) > 0)
    )
    if len(unanchored):
        values, _ = draws_of(program, result, _UNKNOWN_DRAWS)
        equal = np.full(len(next(iter(values.values()))), 1.0)
        chances[unanchored] = _as_if_unknown(program, values, equal, judged, unanchored, fitted)
    doubts: tuple[str, ...] = ()
    weight = (truth >= 0).astype(float)
    if gold is not None:
        labelled = np.bincount(np.asarray(labels.item), minlength=labels.num_items) > 0
        of_gold = np.flatnonzero((by_gold >= 0) & labelled)
        wrong = int((chances[of_gold].argmax(1) != truth[of_gold]).sum())
        of_items, selection = weights(labels, by_gold >= 0, given_probabilities(gold, labels))
        weight = np.where(by_gold >= 0, of_items, weight)
        doubts = warn_of(contradiction(wrong, len(of_gold), "classes") or selection)
    evidence = Evidence.of(chances, judged.votes())
    known, num_draws = np.flatnonzero(truth >= 0), number_of_draws(*chances.shape)
    rng = np.random.default_rng(seed)
    evidence, unknowns = learn_unknowns(evidence, judged, truth, weight, num_draws, rng)
    probability, unaided, drawn = draw_true_classes(evidence, unknowns, truth, rng)
    accuracies = draw_accuracies(_marks(labels, truth, weight, drawn), seed)
    stated = int((by_gold[known] < 0).sum())
    anchor = Anchor(
        len(known), tuple(reference), labels.record is not None, by_trusted=stated, doubts=doubts
    )
    items_of, classes = (names_array(labels.coords[axis]) for axis in ("item", "true_class"))
    draws = {"accuracy": accuracies.own, "ability": accuracies.ability}
    of_label = np.asarray(by_model[np.arange(len(by_model)), probability.argmax(1)], float)
    items = label_audit.item_table(probability, labels)
    return LabelCalibration(
        truth=xr.DataArray(drawn, {"item": items_of}, ("draw", "item")),
        items=items.assign(probability_by_model=("item", of_label)),
        class_probability=_by_class(probability, items_of, classes),
        unaided_probability=_by_class(unaided, items_of[truth >= 0], classes),
        annotators=table("annotator", labels.annotators, {}, draws, level),
        unknowns=xr.Dataset(
            {name: (("draw", "true_class")[: one.ndim], one) for name, one in unknowns.items()},
            {"true_class": classes},
        ),
        anchor=anchor,
        level=level,
        labels=dataclasses.replace(labels, truth=truth if len(known) else None),
        weights=weight,
        accuracies=accuracies,
        known_answers=_known_answers(labels, truth),
        types=_types(program, result, labels, drawn),
    )


def _by_class(values: ClassProbs, items: np.ndarray, classes: np.ndarray) -> xr.DataArray:
    """Probabilities of classes by the names of items and classes."""
    return xr.DataArray(values, {"item": items, "true_class": classes}, ("item", "true_class"))


def _types(
    program: Program[Any], result: xr.DataTree, labels: Labels, drawn: ClassDraws
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


def _most_said(labels: Labels) -> ItemCodes:
    """Code of the class with most votes of each item; −1 without votes or with a tie."""
    votes = labels.votes()
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


def _marks(
    labels: Labels, truth: ItemCodes, of_item: Float[np.ndarray, " item"], drawn: ClassDraws
) -> Marks:
    """Right labels of each annotator: of items of known class, by their weights, and expected among
    the others."""
    item, annotator = np.asarray(labels.item), np.asarray(labels.annotator)
    size, label, is_known = labels.num_annotators, np.asarray(labels.label), truth[item] >= 0
    plain, is_right = np.asarray(labels.weight, float), (label == truth[item]).astype(float)
    weight = plain * np.where(is_known, of_item[item], 1.0)

    def count(number: np.ndarray, rows: Bool[np.ndarray, " label"]) -> PerAnnotator:
        return np.bincount(annotator[rows], number[rows], size).astype(float)

    record = np.zeros((size, 1, 1)) if labels.record is None else np.asarray(labels.record, float)
    right, known = np.einsum("akk->a", record), record.sum((1, 2))
    weighted, counted = (
        (right + count(each * is_right, is_known), known + count(each, is_known))
        for each in (weight, plain)
    )
    credit = np.stack([count(plain * (label == one[item]), ~is_known) for one in drawn])
    by_item = [
        np.bincount(item[is_known], each[is_known], labels.num_items)
        for each in (weight * is_right, weight)
    ]
    return Marks(*weighted, credit, count(plain, ~is_known), luck_of(*by_item), counted)


def _known_answers(labels: Labels, truth: ItemCodes) -> pd.DataFrame:
    """Labels of items of known class."""
    item, number = np.asarray(labels.item), np.asarray(labels.weight, float)
    columns = {"annotator": np.asarray(labels.annotator), "question": item, "answers": number}
    columns |= {"number": number, "right": number * (np.asarray(labels.label) == truth[item])}
    return pd.DataFrame(columns)[truth[item] >= 0]
