"""Training on noisy labels: ways to take a truth from the labels so far, on simulated crowds.

An active-learning loop asks several annotators about an item and adds the item with *one* class to
the training data of a classifier. That class may be the ``"majority"`` of the item's labels, the
most probable class when the item was acquired (``"frozen"``), or the most probable class given all
labels so far, for all items anew after every step (``"reinferred"``), as later labels inform about
the annotators of earlier ones. Or only the annotator of the highest expected share of right labels
is asked (``"best"``), so that the budget goes to more items.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import jax
import numpy as np
import xarray as xr
from _common import options, report, table
from jaxtyping import Float, Int

import raters as rt
from raters.datasets.crowds import GeneratedLabels
from raters.judgements.counts import pad_to
from raters.model import Values
from raters.program import Program, responsibility

Way = Literal["majority", "frozen", "reinferred", "best"]

# A loop begins with few labels, of which Dawid and Skene's model with its usual weak prior makes
# too much.
_MODEL = rt.DawidSkene(diagonal=3.0, off_diagonal=1.0)
_MODE = rt.PGEM(draws=0, starts=1, tolerance=1e-3, max_sweeps=200)
_responsibility = jax.jit(responsibility, static_argnums=0)

Classes = Int[np.ndarray, " item"]


class Inferred(NamedTuple):
    """Inference from labels by Dawid and Skene's model."""

    responsibility: Float[np.ndarray, "item class"]
    accuracy: Float[np.ndarray, " annotator"]
    values: Values

    @classmethod
    def of(cls, labels: rt.Labels, before: Inferred | None) -> Inferred:
        """Fit the model, from where an earlier fit ended."""
        start = None
        if before is not None:
            start = {name: np.asarray(value)[None, None] for name, value in before.values.items()}
        draws = _MODE.run(Program(_MODEL, labels), jax.random.key(0), start=start)
        assert draws.mode is not None
        values = draws.mode
        with jax.enable_x64(True):
            arrays = jax.tree.map(np.asarray, labels)
            probs = np.asarray(_responsibility(_MODEL, arrays, values))
        accuracy = np.einsum("akk->ak", np.asarray(values["confusion"])) @ probs.mean(0)
        return cls(probs, accuracy, values)


def truths(way: Way, labels: rt.Labels, before: Classes, inferred: Inferred) -> Classes:
    """Class of each labelled item, and −1 for the others; of equal votes the first."""
    majority = way == "majority"
    probs = labels.without_truth().vote_shares() if majority else inferred.responsibility
    classes = np.where(labels.judgements_by("item") > 0, probs.argmax(1), -1)
    return np.where(before >= 0, before, classes) if way == "frozen" else classes


def crowd(seed: int, number: int) -> GeneratedLabels:
    """Twelve annotators of whom five are right 92 times in 100, and seven hardly more often than by
    chance."""
    accuracy = np.array([0.92] * 5 + [0.38] * 7)
    base = rt.datasets.label_crowd(number, 12, 1, 3, seed=seed)
    right = np.eye(3, dtype=bool)
    confusion = np.where(right, accuracy[:, None, None], (1 - accuracy[:, None, None]) / 2)
    return GeneratedLabels(base.labels, base.truth | {"confusion": confusion})


def simulate_labelling(
    crowd: GeneratedLabels,
    ways: Sequence[str] = get_args(Way),
    *,
    labels_per_item: int = 3,
    budget: int | None = None,
    first_items: int = 10,
    items_per_step: int = 1,
    seed: int,
) -> xr.Dataset:
    """Acquire labels of a crowd whose truth is known, item by item, with several ways to take a
    truth from them; at most `budget` labels, by default all items.

    With axes ``way`` and ``step``: ``answers``, ``items``, ``label_accuracy``, and
    ``asked_accuracy`` (of the annotators asked).
    """
    simulated = _Crowd.of(crowd, seed)
    most = len(simulated.order) * labels_per_item
    if budget is not None:
        most = min(budget, most)
    first = simulated.order[:first_items]
    rest = simulated.order[first_items:]
    steps = [first, *np.split(rest, range(items_per_step, len(rest), items_per_step))]
    curves = [_curve(simulated, way, steps, labels_per_item, most) for way in ways]
    return xr.concat(curves, "way", join="outer").assign_coords(way=list(ways))


class _Crowd(NamedTuple):
    """Labels of each item by each annotator, and random orders of annotators and items."""

    empty: rt.Labels
    label: Int[np.ndarray, "item annotator"]
    true_class: Classes
    accuracy: Float[np.ndarray, " annotator"]
    annotators: Int[np.ndarray, "item annotator"]
    order: Int[np.ndarray, " pool"]

    @classmethod
    def of(cls, crowd: GeneratedLabels, seed: int) -> _Crowd:
        """Crowd with the random numbers of a seed."""
        labels, truth = crowd
        rng = np.random.default_rng(seed)
        true_class, confusion = np.asarray(truth["true_class"]), np.asarray(truth["confusion"])
        cumulative = confusion[:, true_class].cumsum(-1).swapaxes(0, 1)  # (item, annotator, label)
        label = (rng.random(cumulative.shape[:2])[..., None] > cumulative[..., :-1]).sum(-1)
        everybody = np.tile(np.arange(labels.num_annotators), (labels.num_items, 1))
        annotators = rng.permuted(everybody, axis=1)
        share = np.bincount(true_class, minlength=labels.num_classes) / len(true_class)
        columns = dict.fromkeys(("group", "annotator", "label"), np.zeros(0, np.int32))
        nothing = dict.fromkeys(("count", "truth", "record"))
        empty = dataclasses.replace(labels, **columns, **nothing, most=1)
        order = rng.permutation(labels.num_items)
        accuracy = np.einsum("akk->ak", confusion) @ share
        return cls(empty, label, true_class, accuracy, annotators, order)

    def labels(self, item: list[int], annotator: list[int], rows: int) -> rt.Labels:
        """Labels of these items by these annotators, padded to `rows`."""
        order = np.argsort(item, kind="stable")
        group, code = np.asarray(item, np.int32)[order], np.asarray(annotator, np.int32)[order]
        label = self.label[group, code].astype(np.int32)
        labels = dataclasses.replace(self.empty, group=group, annotator=code, label=label)
        return labels.padded(pad_to(rows))


def _curve(
    crowd: _Crowd, way: str, steps: list[np.ndarray], labels_per_item: int, budget: int
) -> xr.Dataset:
    item, annotator = list[int](), list[int]()
    classes = np.full(crowd.empty.num_items, -1)
    inferred: Inferred | None = None
    measured = []
    for step in steps:
        asked_before = len(item)
        for new in step.tolist():
            chosen = crowd.annotators[new][:labels_per_item]
            if way == "best" and inferred is not None:
                everybody = crowd.annotators[new]
                chosen = everybody[[int(inferred.accuracy[everybody].argmax())]]
            if len(item) + len(chosen) > budget:
                break
            item += [new] * len(chosen)
            annotator += chosen.tolist()
        if len(item) == asked_before:
            break
        labels = crowd.labels(item, annotator, budget)
        inferred = Inferred.of(labels, inferred)
        classes = truths(way, labels, classes, inferred)  # type: ignore[arg-type]
        acquired = classes >= 0
        measured.append(
            {
                "answers": len(item),
                "items": int(acquired.sum()),
                "label_accuracy": float((classes == crowd.true_class)[acquired].mean()),
                "asked_accuracy": float(crowd.accuracy[annotator[asked_before:]].mean()),
            }
        )
    table = {name: ("step", [row[name] for row in measured]) for name in measured[0]}
    return xr.Dataset(table, {"step": np.arange(len(measured))})


def main() -> None:
    """Simulate and report the means over crowds at a few numbers of answers."""
    settings = options(__doc__ or "")
    items, crowds = (60, 2) if settings.quick else (300, 10)
    seeds = range(settings.seed, settings.seed + crowds)
    budget = items * 5 // 2  # with five labels an item, enough for half of the items
    curves = [
        simulate_labelling(
            crowd(seed, items), labels_per_item=5, budget=budget, items_per_step=10, seed=seed
        )
        for seed in seeds
    ]
    rows = []
    for way in get_args(Way):
        last = [curve.sel(way=way).dropna("step").isel(step=-1) for curve in curves]
        names = ("answers", "items", "label_accuracy", "asked_accuracy")
        rows.append([way, *(float(np.mean([one[name] for one in last])) for name in names)])
    header = ["way", "answers", "items", "classes right", "right labels of those asked last"]
    title = "Ways to take a truth from noisy labels"
    parts = [f"Means of {crowds} crowds of {items} items.", table(header, rows)]
    report("noisy_labels", title, parts, settings.quick)


if __name__ == "__main__":
    main()
