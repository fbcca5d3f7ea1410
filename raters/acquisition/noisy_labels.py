"""Training on noisy labels: ways to take a truth from the labels so far, and a simulation that
compares them.

An active-learning loop asks several annotators about an item and adds the item with *one* class to
the training data of a classifier. That class may be the ``"majority"`` of the item's labels, the
most probable class when the item was acquired (``"frozen"``), or the most probable class given all
labels so far, for all items anew after every step (``"reinferred"``), as later labels inform about
the annotators of earlier ones. Or only the annotator of the highest expected share of right labels
is asked (``"best"``), so that the budget goes to more items.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.errors import DataError, refuse
from raters.errors.validation import at_most, checked, one_of, whole
from raters.inference import PGEM
from raters.judgements.base import Judgements
from raters.judgements.counts import pad_to
from raters.judgements.labels import Labels
from raters.kinds import kind_of
from raters.model import Values
from raters.models import DawidSkene
from raters.program import Program, responsibility

__all__ = ["simulate_labelling"]

Way = Literal["majority", "frozen", "reinferred", "best"]

# A loop begins with few labels, of which Dawid and Skene's model with its usual weak prior makes
# too much.
_MODEL = DawidSkene(diagonal=3.0, off_diagonal=1.0)
_MODE = PGEM(draws=0, starts=1, tolerance=1e-3, max_sweeps=200)
_responsibility = jax.jit(responsibility, static_argnums=0)

Classes = Int[np.ndarray, " item"]


class Inferred(NamedTuple):
    """Inference from labels by Dawid and Skene's model."""

    responsibility: Float[np.ndarray, "item class"]
    accuracy: Float[np.ndarray, " annotator"]
    values: Values

    @classmethod
    def of(cls, labels: Labels, before: Inferred | None) -> Inferred:
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


def truths(way: Way, labels: Labels, before: Classes, inferred: Inferred) -> Classes:
    """Class of each labelled item, and −1 for the others; of equal votes the first."""
    majority = way == "majority"
    probs = labels.without_truth().vote_shares() if majority else inferred.responsibility
    classes = np.where(labels.judgements_by("item") > 0, probs.argmax(1), -1)
    return np.where(before >= 0, before, classes) if way == "frozen" else classes


@checked
def simulate_labelling(
    crowd: tuple[Labels, Mapping[str, Any]],
    ways: Sequence[str] = get_args(Way),
    *,
    labels_per_item: int = 3,
    budget: int | None = None,
    first_items: int = 10,
    items_per_step: int = 1,
    seed: int,
) -> xr.Dataset:
    """Acquire labels of a crowd whose truth is known, item by item, with several ways to take a
    truth from them.

    Parameters
    ----------
    crowd : labels and their truth
        As of ``rt.datasets.label_crowd``.
    ways : sequence of {"majority", "frozen", "reinferred", "best"}
    labels_per_item : int
    budget : int, optional
        Bound of the number of labels; by default all items are labelled.
    first_items, items_per_step : int
        Number of items in the first step, and in each further one.
    seed : int

    Returns
    -------
    xarray.Dataset
        With axes ``way`` and ``step``: ``answers``, ``items``, ``label_accuracy``, and
        ``asked_accuracy`` (of the annotators asked).
    """
    for way in ways:
        one_of("ways", way, get_args(Way))
    numbers = {"labels_per_item": labels_per_item, "first_items": first_items}
    for name, value in (numbers | {"items_per_step": items_per_step}).items():
        whole(name, value)
    simulated = _Crowd.of(crowd, labels_per_item, seed)
    most = len(simulated.order) * labels_per_item
    if budget is not None:
        whole("budget", budget, least=first_items * labels_per_item)
        most = min(budget, most)
    first = simulated.order[:first_items]
    rest = simulated.order[first_items:]
    steps = [first, *np.split(rest, range(items_per_step, len(rest), items_per_step))]
    curves = [_curve(simulated, way, steps, labels_per_item, most) for way in ways]
    return xr.concat(curves, "way", join="outer").assign_coords(way=list(ways))


class _Crowd(NamedTuple):
    """Labels of each item by each annotator, and random orders of annotators and items."""

    empty: Labels
    label: Int[np.ndarray, "item annotator"]
    true_class: Classes
    accuracy: Float[np.ndarray, " annotator"]
    annotators: Int[np.ndarray, "item annotator"]
    order: Int[np.ndarray, " pool"]

    @classmethod
    def of(cls, crowd: Any, labels_per_item: int, seed: int) -> _Crowd:
        """Crowd with the random numbers of a seed."""
        labels, truth = crowd
        is_labels = isinstance(labels, Judgements) and kind_of(labels).data is Labels
        if not is_labels or not {"true_class", "confusion"} <= set(truth):
            expected = "it must be labels and a truth with 'true_class' and 'confusion'"
            such = "rt.datasets.label_crowd(seed=0)"
            refuse("crowd", crowd, expected=expected, instead=such, error=DataError)
        at_most("labels_per_item", labels_per_item, labels.num_annotators, "annotators")
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

    def labels(self, item: list[int], annotator: list[int], rows: int) -> Labels:
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
