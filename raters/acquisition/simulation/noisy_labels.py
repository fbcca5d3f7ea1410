"""Training on noisy labels: four policies that take a truth from the labels so far, and a
simulation that compares them.

An active-learning loop asks several annotators about an item and adds the item with *one* class to
the training data of a classifier. That class may be the majority of the item's labels
(`MajorityTruth`), the most probable class when the item was acquired (`FrozenTruth`), or the most
probable class given all labels so far, for all items anew after every step (`ReinferredTruth`), as
later labels inform about the annotators of earlier ones. Or only the best annotator is asked
(`BestLabeller`), so that the budget goes to more items.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from raters.acquisition.simulation.truths import (
    BestLabeller,
    FrozenTruth,
    Inferred,
    MajorityTruth,
    ReinferredTruth,
    TruthPolicy,
)
from raters.datasets.crowds import GeneratedLabels
from raters.errors import DataError, SettingError
from raters.errors.validation import checked, one_of, whole
from raters.judgements.base import Judgements
from raters.judgements.counts import pad_to
from raters.judgements.labels import Labels
from raters.kinds import kind_of
from raters.models import Raykar

__all__ = [
    "BestLabeller",
    "FrozenTruth",
    "Inferred",
    "MajorityTruth",
    "ReinferredTruth",
    "TruthPolicy",
    "area_under_accuracy",
    "simulate_labelling",
]


@checked
def simulate_labelling(
    crowd: GeneratedLabels,
    way: TruthPolicy | Mapping[str, TruthPolicy],
    *,
    labels_per_item: int = 3,
    budget: int | None = None,
    first_items: int = 10,
    items_per_step: int = 1,
    acquire: Literal["random", "least_confident"] = "random",
    held_out: int = 0,
    seed: int,
) -> xr.Dataset:
    """Acquire labels of a crowd whose truth is known, item by item, under one or several
    policies."""
    ways = {"way": way} if isinstance(way, TruthPolicy) else dict(way)
    if wrong := [name for name, one in ways.items() if not isinstance(one, TruthPolicy)]:
        raise SettingError(
            parameter="way",
            value=ways[wrong[0]],
            problem=f"is not possible for {wrong[0]!r}",
            expected="it must be a way to infer the true classes",
            instead="way=ReinferredTruth()",
        )
    if not ways:
        raise SettingError(
            parameter="way",
            problem="is empty",
            expected="give at least one",
            instead="way=ReinferredTruth()",
        )
    for name, value in (
        ("labels_per_item", labels_per_item),
        ("first_items", first_items),
        ("items_per_step", items_per_step),
    ):
        whole(name, value)
    whole("held_out", held_out, least=0)
    one_of("acquire", acquire, ("random", "least_confident"))
    simulated = _Crowd.of(crowd, held_out, labels_per_item, seed)
    if acquire == "least_confident" and simulated.empty.features is None:
        raise SettingError(
            parameter="acquire",
            value=acquire,
            problem="needs a classifier, and these items have no features",
            expected="draw a crowd with `num_features` above 0, or choose 'random'",
        )
    most = simulated.num_pool * labels_per_item
    if budget is not None:
        whole("budget", budget, least=first_items * labels_per_item)
        most = min(budget, most)
    known: dict[Any, Inferred] = {}
    settings = _Settings(labels_per_item, most, first_items, items_per_step, acquire)
    curves = [_labelled(simulated, policy, settings, known) for policy in ways.values()]
    return xr.concat(curves, "way", join="outer").assign_coords(way=list(ways))


class _Settings(NamedTuple):
    labels_per_item: int
    budget: int
    first_items: int
    items_per_step: int
    acquire: str


class _Crowd(NamedTuple):
    """Simulated annotators: the label of each item by each, shape (item, annotator), a random order
    of the annotators of each item, and a random order of the items."""

    empty: Labels
    label: Int[np.ndarray, "item annotator"]
    true_class: Int[np.ndarray, " item"]
    accuracy: Float[np.ndarray, " annotator"]
    annotators: Int[np.ndarray, "item annotator"]
    order: Int[np.ndarray, " pool"]

    @property
    def num_pool(self) -> int:
        """Number of items that may be acquired."""
        return len(self.order)

    @classmethod
    def of(cls, crowd: GeneratedLabels, held_out: int, labels_per_item: int, seed: int) -> _Crowd:
        """Crowd with the random numbers of a seed."""
        labels, truth = crowd
        _check_crowd(crowd, held_out, labels_per_item)
        rng = np.random.default_rng(seed)
        true_class, confusion = np.asarray(truth["true_class"]), np.asarray(truth["confusion"])
        cumulative = confusion[:, true_class].cumsum(-1).swapaxes(0, 1)  # (item, annotator, label)
        label = (rng.random(cumulative.shape[:2])[..., None] > cumulative[..., :-1]).sum(-1)
        annotators = rng.permuted(
            np.tile(np.arange(labels.num_annotators), (labels.num_items, 1)), axis=1
        )
        accuracy = (
            np.einsum("akk->ak", confusion)
            @ np.bincount(true_class, minlength=labels.num_classes)
            / len(true_class)
        )
        none = np.zeros(0, np.int32)
        empty = dataclasses.replace(
            labels,
            group=none,
            annotator=none,
            label=none,
            count=None,
            truth=None,
            record=None,
            most=1,
        )
        return cls(
            empty,
            label,
            true_class,
            accuracy,
            annotators,
            rng.permutation(labels.num_items - held_out),
        )

    def labels(self, item: list[int], annotator: list[int], rows: int) -> Labels:
        """Labels of these items by these annotators, padded to `rows`."""
        order = np.argsort(item, kind="stable")
        group, code = np.asarray(item, np.int32)[order], np.asarray(annotator, np.int32)[order]
        label = self.label[group, code].astype(np.int32)
        labels = dataclasses.replace(self.empty, group=group, annotator=code, label=label)
        return labels.padded(pad_to(rows))


def _check_crowd(crowd: GeneratedLabels, held_out: int, labels_per_item: int) -> None:
    """Raise unless this is a crowd with enough annotators and items."""
    labels, truth = crowd
    is_labels = isinstance(labels, Judgements) and kind_of(labels).data is Labels
    if not is_labels or not {"true_class", "confusion"} <= set(truth):
        raise DataError(
            parameter="crowd",
            value=crowd,
            expected="it must be labels and a truth with 'true_class' and 'confusion'",
            instead="crowd=rt.datasets.label_crowd(seed=0)",
        )
    if labels_per_item > labels.num_annotators:
        raise SettingError(
            parameter="labels_per_item",
            value=labels_per_item,
            problem=f"is not possible with {labels.num_annotators} annotators",
            expected="it must be at most that",
        )
    if held_out >= labels.num_items:
        raise SettingError(
            parameter="held_out",
            value=held_out,
            problem=f"leaves none of {labels.num_items} items to label",
            expected="it must be less than that",
        )


def _labelled(
    crowd: _Crowd, way: TruthPolicy, settings: _Settings, known: dict[Any, Inferred]
) -> xr.Dataset:
    """Curve of one policy. Fits of equal labels under other policies are `known`."""
    item: list[int] = []
    annotator: list[int] = []
    truths = np.full(crowd.empty.num_items, -1)
    inferred, coefficient = None, None
    measured = []
    free = crowd.order
    while len(free):
        asked_before = len(item)
        for new in _next(crowd, free, coefficient, settings, asked_before == 0).tolist():
            chosen = way.choose(crowd.annotators[new], settings.labels_per_item, inferred)
            if len(item) + len(chosen) > settings.budget:
                break
            item += [new] * len(chosen)
            annotator += chosen.tolist()
        if len(item) == asked_before:
            break
        free = free[~np.isin(free, item)]
        labels = crowd.labels(item, annotator, settings.budget)
        if way.infers:
            inferred = _inferred(way, labels, inferred, known)
        truths = way.truths(labels, truths, inferred)
        acquired = truths >= 0
        measures = {
            "answers": len(item),
            "items": int(acquired.sum()),
            "label_accuracy": float((truths == crowd.true_class)[acquired].mean()),
            "asked_accuracy": float(crowd.accuracy[annotator[asked_before:]].mean()),
        }
        if labels.features is not None:
            coefficient = _trained(labels, truths)
            measures["classifier_accuracy"] = _tested(crowd, coefficient, acquired)
        measured.append(measures)
    table = {name: ("step", [row[name] for row in measured]) for name in measured[0]}
    return xr.Dataset(table, {"step": np.arange(len(measured))})


def _trained(
    labels: Labels, truths: Int[np.ndarray, " item"]
) -> Float[np.ndarray, "feature class"]:
    """Coefficients of the classifier trained on truths, shape (feature, class)."""
    start = Raykar().start(dataclasses.replace(labels, truth=truths))
    return np.asarray(start["coefficient"])


def _tested(
    crowd: _Crowd,
    coefficient: Float[np.ndarray, "feature class"],
    acquired: Bool[np.ndarray, " item"],
) -> float:
    """Accuracy of the classifier on the items held out, or else on those not acquired yet."""
    predicted = (np.asarray(crowd.empty.features) @ coefficient).argmax(1)
    pool = np.isin(np.arange(len(acquired)), crowd.order)
    tested = ~pool if not pool.all() else ~acquired
    return float((predicted == crowd.true_class)[tested].mean()) if tested.any() else np.nan


def _next(
    crowd: _Crowd,
    free: Int[np.ndarray, " free"],
    coefficient: Float[np.ndarray, "feature class"] | None,
    settings: _Settings,
    first: bool,
) -> Int[np.ndarray, " next"]:
    """Items that come next."""
    if first:
        return free[: settings.first_items]
    if settings.acquire == "random" or coefficient is None:
        return free[: settings.items_per_step]
    log_odds = np.asarray(crowd.empty.features)[free] @ coefficient
    sure = np.exp(log_odds - log_odds.max(1, keepdims=True))
    confidence = 1 / sure.sum(1)
    return free[np.argsort(confidence, kind="stable")[: settings.items_per_step]]


def _inferred(
    way: TruthPolicy, labels: Labels, before: Inferred | None, known: dict[Any, Inferred]
) -> Inferred:
    key = (
        way.model,
        way.backend,
        labels.group.tobytes(),
        labels.annotator.tobytes(),
        labels.count.tobytes(),
    )
    if key not in known:
        known[key] = way.infer(labels, None if before is None else before.values)
    return known[key]


@checked
def area_under_accuracy(curves: xr.Dataset, name: str = "label_accuracy") -> xr.DataArray:
    """Mean of an accuracy over the answers, from the latest first step to the earliest last
    step."""
    curves = curves if "way" in curves.dims else curves.expand_dims("way")
    ends = curves["answers"].min("step"), curves["answers"].max("step")
    low, high = float(ends[0].max()), float(ends[1].min())
    grid = np.linspace(low, high, 201)
    areas = []
    for _, curve in (
        curves.groupby("way", squeeze=False) if "way" in curves.coords else [(0, curves)]
    ):
        answers, value = (np.ravel(curve[part].values) for part in ("answers", name))
        finite = np.isfinite(answers) & np.isfinite(value)
        areas.append(np.interp(grid, answers[finite], value[finite]).mean())
    coords = {"way": curves["way"].values} if "way" in curves.coords else None
    return xr.DataArray(areas, dims="way", coords=coords).squeeze()
