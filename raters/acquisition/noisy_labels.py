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

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from raters.errors import DataError, refuse
from raters.errors.validation import at_most, checked, one_of, whole
from raters.inference import PGEM
from raters.judgements.base import Judgements
from raters.judgements.counts import pad_to
from raters.judgements.labels import Labels
from raters.kinds import kind_of
from raters.model import Values
from raters.models import DawidSkene, Raykar
from raters.program import Program, responsibility

__all__ = [
    "BestLabeller",
    "FrozenTruth",
    "MajorityTruth",
    "ReinferredTruth",
    "TruthPolicy",
    "simulate_labelling",
]

# A loop begins with few labels, of which Dawid and Skene's model with its usual weak prior makes
# too much.
_MODEL = DawidSkene(diagonal=3.0, off_diagonal=1.0)
_MODE = PGEM(draws=0, starts=1, tolerance=1e-3, max_sweeps=200)
_responsibility = jax.jit(responsibility, static_argnums=0)

Classes = Int[np.ndarray, " item"]
Annotators = Int[np.ndarray, " annotator"]


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


@dataclass(frozen=True)
class TruthPolicy(abc.ABC):
    """Policy that takes truths from labels."""

    @abc.abstractmethod
    def truths(self, labels: Labels, before: Classes, inferred: Inferred) -> Classes:
        """Class of each labelled item, and −1 for the others."""

    def choose(self, annotators: Annotators, size: int, inferred: Inferred | None) -> Annotators:
        """Choose the annotators of a new item."""
        return annotators[:size]


@dataclass(frozen=True)
class MajorityTruth(TruthPolicy):
    """Most frequent class among the labels of an item; of several, the first."""

    def truths(self, labels: Labels, before: Classes, inferred: Inferred) -> Classes:
        """See `TruthPolicy.truths`."""
        return _labelled_only(labels, labels.without_truth().vote_shares())


@dataclass(frozen=True)
class FrozenTruth(TruthPolicy):
    """Most probable class when the item was acquired, which then stays."""

    def truths(self, labels: Labels, before: Classes, inferred: Inferred) -> Classes:
        """See `TruthPolicy.truths`."""
        return np.where(before >= 0, before, _labelled_only(labels, inferred.responsibility))


@dataclass(frozen=True)
class ReinferredTruth(TruthPolicy):
    """Most probable class given all labels so far."""

    def truths(self, labels: Labels, before: Classes, inferred: Inferred) -> Classes:
        """See `TruthPolicy.truths`."""
        return _labelled_only(labels, inferred.responsibility)


@dataclass(frozen=True)
class BestLabeller(ReinferredTruth):
    """Truths as of `ReinferredTruth`, with a single annotator for a new item: the one with the
    highest expected share of right labels."""

    def choose(self, annotators: Annotators, size: int, inferred: Inferred | None) -> Annotators:
        """Choose the best annotator; the first `size` before the first fit."""
        if inferred is None:
            return annotators[:size]
        return annotators[[int(inferred.accuracy[annotators].argmax())]]


def _labelled_only(labels: Labels, probs: Float[np.ndarray, "item class"]) -> Classes:
    """Most probable class of each labelled item, and −1 for the others."""
    return np.where(labels.judgements_by("item") > 0, probs.argmax(1), -1)


# ---------------------------------------------------------------- the simulation


@checked
def simulate_labelling(
    crowd: tuple[Labels, Mapping[str, Any]],
    way: Mapping[str, TruthPolicy],
    *,
    labels_per_item: int = 3,
    budget: int | None = None,
    first_items: int = 10,
    items_per_step: int = 1,
    acquire: Literal["random", "least_confident"] = "random",
    held_out: int = 0,
    seed: int,
) -> xr.Dataset:
    """Acquire labels of a crowd whose truth is known, item by item, under several policies.

    Parameters
    ----------
    crowd : labels and their truth
        As of ``rt.datasets.label_crowd``.
    way : mapping of names to policies
    labels_per_item : int
    budget : int, optional
        Bound of the number of labels; by default all items are labelled.
    first_items, items_per_step : int
        Number of items in the first step, and in each further one.
    acquire : {"random", "least_confident"}
        Which items come next: any, or those of which a classifier trained so far is least sure.
    held_out : int
        Number of items for the test of the classifier; without them, those that are not acquired.
    seed : int

    Returns
    -------
    xarray.Dataset
        With axes ``way`` and ``step``: ``answers``, ``items``, ``label_accuracy``,
        ``asked_accuracy`` (of the annotators asked), and for items with features
        ``classifier_accuracy``.
    """
    if not way or not all(isinstance(one, TruthPolicy) for one in way.values()):
        refuse("way", way, expected="it must map names to policies")
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
        expected = "draw a crowd with `num_features` above 0, or choose 'random'"
        refuse("acquire", acquire, "needs items with features", expected)
    most = len(simulated.order) * labels_per_item
    if budget is not None:
        whole("budget", budget, least=first_items * labels_per_item)
        most = min(budget, most)
    steps = _Steps(labels_per_item, most, first_items, items_per_step, acquire)
    known: dict[Any, Inferred] = {}
    curves = [_curve(simulated, one, steps, known) for one in way.values()]
    return xr.concat(curves, "way", join="outer").assign_coords(way=list(way))


class _Steps(NamedTuple):
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
    true_class: Classes
    accuracy: Float[np.ndarray, " annotator"]
    annotators: Int[np.ndarray, "item annotator"]
    order: Int[np.ndarray, " pool"]

    @classmethod
    def of(cls, crowd: Any, held_out: int, labels_per_item: int, seed: int) -> _Crowd:
        """Crowd with the random numbers of a seed."""
        labels, truth = crowd
        is_labels = isinstance(labels, Judgements) and kind_of(labels).data is Labels
        if not is_labels or not {"true_class", "confusion"} <= set(truth):
            expected = "it must be labels and a truth with 'true_class' and 'confusion'"
            such = "rt.datasets.label_crowd(seed=0)"
            refuse("crowd", crowd, expected=expected, instead=such, error=DataError)
        at_most("labels_per_item", labels_per_item, labels.num_annotators, "annotators")
        at_most("held_out", held_out, labels.num_items - 1, "items")
        rng = np.random.default_rng(seed)
        true_class, confusion = np.asarray(truth["true_class"]), np.asarray(truth["confusion"])
        cumulative = confusion[:, true_class].cumsum(-1).swapaxes(0, 1)  # (item, annotator, label)
        label = (rng.random(cumulative.shape[:2])[..., None] > cumulative[..., :-1]).sum(-1)
        everybody = np.tile(np.arange(labels.num_annotators), (labels.num_items, 1))
        annotators = rng.permuted(everybody, axis=1)
        share = np.bincount(true_class, minlength=labels.num_classes) / len(true_class)
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
        order = rng.permutation(labels.num_items - held_out)
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
    crowd: _Crowd, way: TruthPolicy, steps: _Steps, known: dict[Any, Inferred]
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
        for new in _next(crowd, free, coefficient, steps, asked_before == 0).tolist():
            chosen = way.choose(crowd.annotators[new], steps.labels_per_item, inferred)
            if len(item) + len(chosen) > steps.budget:
                break
            item += [new] * len(chosen)
            annotator += chosen.tolist()
        if len(item) == asked_before:
            break
        free = free[~np.isin(free, item)]
        labels = crowd.labels(item, annotator, steps.budget)
        key = tuple(item), tuple(annotator)
        if key not in known:
            known[key] = Inferred.of(labels, inferred)
        inferred = known[key]
        truths = way.truths(labels, truths, inferred)
        acquired = truths >= 0
        measures = {
            "answers": len(item),
            "items": int(acquired.sum()),
            "label_accuracy": float((truths == crowd.true_class)[acquired].mean()),
            "asked_accuracy": float(crowd.accuracy[annotator[asked_before:]].mean()),
        }
        if labels.features is not None:
            start = Raykar().start(dataclasses.replace(labels, truth=truths))
            coefficient = np.asarray(start["coefficient"])
            measures["classifier_accuracy"] = _tested(crowd, coefficient, acquired)
        measured.append(measures)
    table = {name: ("step", [row[name] for row in measured]) for name in measured[0]}
    return xr.Dataset(table, {"step": np.arange(len(measured))})


def _tested(
    crowd: _Crowd,
    coefficient: Float[np.ndarray, "feature class"],
    acquired: Bool[np.ndarray, " item"],
) -> float:
    """Accuracy of the classifier on the items held out, or else on those not acquired yet."""
    predicted = (np.asarray(crowd.empty.features) @ coefficient).argmax(1)
    pool = np.isin(np.arange(len(acquired)), crowd.order)
    tested = ~acquired if pool.all() else ~pool
    return float((predicted == crowd.true_class)[tested].mean()) if tested.any() else np.nan


def _next(
    crowd: _Crowd,
    free: Int[np.ndarray, " free"],
    coefficient: Float[np.ndarray, "feature class"] | None,
    steps: _Steps,
    first: bool,
) -> Int[np.ndarray, " next"]:
    """Items that come next."""
    if first:
        return free[: steps.first_items]
    if steps.acquire == "random" or coefficient is None:
        return free[: steps.items_per_step]
    log_odds = np.asarray(crowd.empty.features)[free] @ coefficient
    confidence = 1 / np.exp(log_odds - log_odds.max(1, keepdims=True)).sum(1)
    return free[np.argsort(confidence, kind="stable")[: steps.items_per_step]]
