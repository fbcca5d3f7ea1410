"""Calibration of labels, which allows for mistakes that a crowd makes together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.special import expit, logit

from raters.auditing.truth.anchor_check import WRONG_LABELS, check_table, prediction_powered
from raters.auditing.truth.calibration import Calibration, Drawn, Given, number_of_draws
from raters.auditing.truth.gold_weights import given_probabilities, weights, with_gold
from raters.auditing.truth.statements import of_labels
from raters.auditing.truth.true_classes import class_probs_of, draw_true_classes, learn_unknowns
from raters.fitting.result import draws_of
from raters.judgements.labels import Labels
from raters.judgements.names import names_array
from raters.kinds import AuditLimits, Quantities
from raters.kinds.labels import audit as label_audit
from raters.kinds.labels.audit import ClassProbs, ConfusionDraws, ItemCodes, Prevalence
from raters.model import Values
from raters.program import Program, class_probs

PerAnnotator = Float[np.ndarray, " annotator"]
PerDraw = Float[np.ndarray, " draw"]
AnnotatorDraws = Float[np.ndarray, "draw annotator"]
Codes = Int[np.ndarray, " label"]

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
    """Statements about labels: also ``class_probability``, ``unaided_probability``, ``weights``."""

    class_probability: xr.DataArray
    unaided_probability: xr.DataArray
    labels: Labels
    weights: Float[np.ndarray, " item"]
    types: dict[str, PerAnnotator]

    known_truths = "classes"
    answer = "truth"

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

    def _checked(self, names: list[str], stated: Float[np.ndarray, "name 3"]) -> xr.Dataset:
        """Share of wrong labels and accuracies, beside what the known classes alone say."""
        labels, truth = self.labels, np.asarray(self.labels.truth)
        annotator, item, label = _columns(labels)
        chances, is_known = self.class_probability.values.copy(), truth >= 0
        chances[is_known] = self.unaided_probability.values
        doubt, wrong = 1 - chances.max(1), (chances.argmax(1) != truth)[is_known].astype(float)
        chance, right, known = chances[item, label], label == truth[item], is_known[item]
        of_item, of_label = self.weights[is_known], self.weights[item]
        shares = [prediction_powered(wrong, doubt[is_known], of_item, doubt[~is_known], self.level)]
        order = np.argsort(annotator, kind="stable")
        ends = np.searchsorted(annotator[order], np.arange(1, labels.num_annotators))
        for rows in np.split(order, ends):
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
        most, drawn = self.class_probability.values.argmax(1), self.truth.values[:_AUDIT_DRAWS]
        counts = [np.bincount(one, minlength=self.labels.num_classes) for one in drawn]
        prevalence = np.stack(counts) / drawn.shape[1]
        parts = self._confusion(prevalence)
        made = label_audit.quantities_of(self.labels, parts, prevalence, most, limits)
        own = self.accuracies.own[: len(next(iter(made.values.values())))]
        tables = dict(made.tables) | {"items": self.items}
        values = dict(made.values) | {"accuracy": own}
        columns = dict(made.columns) | label_audit.type_columns(self.types)
        return dataclasses.replace(made, values=values, columns=columns, tables=tables)

    def _confusion(self, prevalence: Prevalence) -> Iterator[ConfusionDraws]:
        """Draws of confusion matrices, in parts of the annotators."""
        labels, size, rng = self.labels, self.labels.num_classes, np.random.default_rng(0)
        first = self.truth.values[:_AUDIT_DRAWS].astype(np.int64) * size
        (annotator, item, label), weight = _columns(labels), np.asarray(labels.weight, float)

        def counts(rows: Any, annotators: Any, number: int) -> ConfusionDraws:
            """Labels by annotator, true class and label, under each draw."""
            cell, of, each = annotators * size**2 + label[rows], item[rows], weight[rows]
            numbers = [np.bincount(cell + true[of], each, number * size**2) for true in first]
            return np.stack(numbers).reshape(-1, number, size, size)

        record = np.zeros((labels.num_annotators, 1, 1))
        if labels.record is not None:
            record = np.asarray(labels.record, float)
        pooled = counts(slice(None), 0, 1) + record.sum(0) + 0.5 * np.eye(size) + 0.5 / size
        pooled /= pooled.sum(-1, keepdims=True)
        order = np.argsort(annotator, kind="stable")
        step = max(1, _NUMBERS // (len(first) * size**2))
        for begin in range(0, labels.num_annotators, step):
            end = min(begin + step, labels.num_annotators)
            rows = order[slice(*np.searchsorted(annotator[order], (begin, end)))]
            known = counts(rows, annotator[rows] - begin, end - begin) + record[begin:end]
            matrices = np.maximum(rng.standard_gamma(known + _WEIGHT * pooled), 1e-12)
            matrices /= matrices.sum(-1, keepdims=True)
            yield _moved(matrices, prevalence, self.accuracies.ability[: len(first), begin:end])

    @classmethod
    def number(cls, data: Labels, gold: Any) -> int:
        """Number of items whose class is known."""
        return data.with_truth(gold).num_known

    @staticmethod
    def class_probs(
        program: Program[Any], draws: Values, share: PerDraw, chances: ClassProbs
    ) -> Float[np.ndarray, "draw item true_class"]:
        """Calibrated class probabilities for each draw of the parameters."""
        labels: Labels = program.data.unpadded()
        truth, rng = with_gold(labels), np.random.default_rng(0)
        known, chances = np.flatnonzero(truth >= 0), np.array(chances, float)
        if len(known):
            chances[known] = _as_if_unknown(program, draws, share, labels, known)
        weight, number = 1.0 * (truth >= 0), len(share)
        evidence, unknowns = learn_unknowns(chances, labels, truth, weight, number, rng)
        probs = np.array(class_probs_of(evidence, unknowns))
        probs[:, known] = np.eye(labels.num_classes)[truth[known]]
        return probs

    @classmethod
    def draw(cls, given: Given) -> Drawn:
        """Draw the true class of each item."""
        program, result, gold, trusted, _, rng = given
        label_audit.check_can_audit(program)
        labels: Labels = program.data.unpadded()
        is_told = np.isin(np.asarray(labels.annotator), trusted)
        by_model = result["classes"]["responsibility"].transpose("item", "true_class").values
        chances, by_gold = np.array(by_model, float), with_gold(labels, gold)
        judged, told = labels.rows(~is_told), labels.rows(is_told).votes()
        # Of a tie among trusted annotators the class is not known.
        most = told.max(1)
        alone = (most > 0) & ((told == most[:, None]).sum(1) == 1)
        truth = np.where((by_gold < 0) & alone, told.argmax(1), by_gold)
        anchored = np.flatnonzero((with_gold(labels) >= 0) | (told.sum(1) > 0))
        if len(anchored):
            values, _ = draws_of(program, result, _UNKNOWN_DRAWS)
            equal = np.ones(len(next(iter(values.values()))))
            chances[anchored] = _as_if_unknown(program, values, equal, judged, anchored)
        of_gold, weight, doubt = (by_gold >= 0) & (gold is not None), 1.0 * (truth >= 0), ""
        if gold is not None:
            of_items, doubt = weights(labels, of_gold, given_probabilities(gold, labels))
            weight = np.where(of_gold, of_items, weight)
        some = of_gold & (labels.votes().sum(1) > 0)
        contradicted = (chances.argmax(1) != truth)[some]
        known, number = np.flatnonzero(truth >= 0), number_of_draws(*chances.shape)
        evidence, unknowns = learn_unknowns(chances, judged, truth, weight, number, rng)
        probability, unaided, drawn = draw_true_classes(evidence, unknowns, truth, rng)
        of_label = by_model[np.arange(len(by_model)), probability.argmax(1)].astype(float)
        table = label_audit.item_table(probability, labels)
        items, classes = names_array(labels.items), {"true_class": names_array(labels.classes)}
        axes = {name: ("draw", "true_class")[: one.ndim] for name, one in unknowns.items()}
        of_unknowns = {name: (axes[name], one) for name, one in unknowns.items()}
        both = "item", "true_class"
        others = {
            "items": table.assign(probability_by_model=("item", of_label)),
            "class_probability": xr.DataArray(probability, {"item": items} | classes, both),
            "unaided_probability": xr.DataArray(unaided, {"item": items[known]} | classes, both),
            "unknowns": xr.Dataset(of_unknowns, classes),
            "labels": dataclasses.replace(labels, truth=truth if len(known) else None),
            "weights": weight,
            "types": _types(program, result, labels, drawn),
        }
        numbers = len(known), int((by_gold[known] < 0).sum())
        said = of_labels(labels, truth, weight)
        return Drawn(drawn, said, *numbers, contradicted, doubt, others)


def _columns(labels: Labels) -> tuple[Codes, Codes, Codes]:
    """Codes of the annotator, the item and the class of each label."""
    columns = labels.annotator, labels.item, labels.label
    annotator, item, label = (np.asarray(codes, np.int64) for codes in columns)
    return annotator, item, label


def _moved(
    matrices: ConfusionDraws, prevalence: Prevalence, ability: AnnotatorDraws
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
    return label_audit.type_probs(dataclasses.replace(program, data=labels), values, classes)


def _as_if_unknown(
    program: Program[Any], draws: Values, share: PerDraw, judged: Labels, items: ItemCodes
) -> ClassProbs:
    """Class probabilities of items by untrusted labels, as if no class were known."""
    bare, fitted, parts = dataclasses.replace(judged, truth=None), with_gold(judged), []
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
