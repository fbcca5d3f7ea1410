"""Training on labels that may be wrong: four ways to take a truth from the labels so far, and a simulation that compares them.

An active-learning loop asks several annotators about an item and adds the item with *one* class to what a classifier is trained
on. That class may be the majority of the item's labels (`MajorityTruth`), the most probable class when the item was acquired
(`FrozenTruth`), or the most probable class given all labels so far, for all items anew after every step (`ReinferredTruth`), as
later labels tell who could be trusted earlier. Or only the best annotator is asked (`BestLabeller`), so that the budget goes to
more items.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
import xarray as xr

from raters._check import one_of, whole
from raters._judgements import pad_to
from raters.datasets._label_generators import GeneratedLabels
from raters.errors import DataError, SettingError
from raters.inference import PGEM, Backend
from raters.inference._classes import expected
from raters.labels import Labels
from raters.model import Model, Values
from raters.models import DawidSkene
from raters.models._labels import start_coefficient, vote_shares

# A loop begins with few labels, of which Dawid and Skene's model with its usual weak prior makes too much.
_MODEL = DawidSkene(diagonal=3.0, off_diagonal=1.0)
_MODE = PGEM(draws=0, starts=1, tolerance=1e-3, max_sweeps=200)


class Inferred(NamedTuple):
    """What a model makes of labels: the probability of each class of each item, shape (item, class); the expected share of
    right labels of each annotator, shape (annotator,); and the values of its sites."""

    responsibility: np.ndarray
    accuracy: np.ndarray
    values: Values


@dataclass(frozen=True)
class TruthPolicy(abc.ABC):
    """A way to take truths from labels.

    Parameters
    ----------
    model : Model
        A model of labels that says how often each annotator is right; by default `raters.DawidSkene` with a prior of three
        right labels for each wrong one, as a loop begins with few labels.
    backend : Backend
        The mode by `raters.PGEM` by default.
    """

    model: Model = _MODEL
    backend: Backend = _MODE

    infers: ClassVar[bool] = True

    def infer(self, labels: Labels, start: Values | None = None) -> Inferred:
        """Fit the model; `start` are the values of an earlier fit."""
        if reason := self.backend.why_not(self.model, labels):
            raise SettingError(reason)
        sites = {name: np.ndim(value) for name, value in self.model.start(labels).items()}
        if sites.get("confusion") != 3 and sites.get("accuracy") != 1:
            kind = type(self.model).__name__
            raise SettingError(f"{kind} does not say how often each annotator is right; write model=rt.DawidSkene()")
        earlier = None if start is None else {name: np.asarray(value)[None, None] for name, value in start.items()}
        draws = self.backend.run(self.model, labels, jax.random.key(0), start=earlier)
        values = draws.mode or {name: value.mean((0, 1)) for name, value in draws.values.items()}
        with jax.enable_x64(True):
            found = np.asarray(expected(self.model, jax.tree.map(np.asarray, labels), values)[0])
        if "confusion" in values:
            accuracy = np.einsum("akk->ak", np.asarray(values["confusion"])) @ found.mean(0)
        else:
            accuracy = np.asarray(values["accuracy"])
        return Inferred(found, accuracy, values)

    @abc.abstractmethod
    def truths(self, labels: Labels, before: np.ndarray, inferred: Inferred | None = None) -> np.ndarray:
        """The class of each labelled item, and −1 for the others, shape (item,).

        Parameters
        ----------
        labels : Labels
            All labels so far.
        before : int array, shape (item,)
            The truths of the step before, −1 for items that had none.
        inferred : Inferred, optional
            What `infer` gives, where it is known.
        """

    def whom(self, annotators: np.ndarray, number: int, inferred: Inferred | None) -> np.ndarray:
        """Which annotators to ask about a new item: of the codes of all, in a random order, the first `number`."""
        return annotators[:number]


@dataclass(frozen=True)
class MajorityTruth(TruthPolicy):
    """The class that most labels of the item say; of several, the first.

    Examples
    --------
    >>> import numpy as np, raters as rt
    >>> from raters.acquisition.noisy_labels import MajorityTruth
    >>> labels = rt.Labels.from_frame({"i": [1, 1, 1], "a": [1, 2, 3], "l": ["no", "yes", "yes"]},
    ...                               item="i", annotator="a", label="l", items=[1, 2])
    >>> MajorityTruth().truths(labels, np.array([-1, -1])).tolist()
    [1, -1]
    """

    infers: ClassVar[bool] = False

    def truths(self, labels: Labels, before: np.ndarray, inferred: Inferred | None = None) -> np.ndarray:
        """The class of each labelled item, and −1 for the others."""
        shares = vote_shares(dataclasses.replace(labels, truth=None))
        return np.where(labels.votes_by_item() > 0, shares.argmax(1), -1)


@dataclass(frozen=True)
class FrozenTruth(TruthPolicy):
    """The most probable class when the item was acquired, which then stays."""

    def truths(self, labels: Labels, before: np.ndarray, inferred: Inferred | None = None) -> np.ndarray:
        """The class of each labelled item, and −1 for the others."""
        now = _modes(labels, self.infer(labels) if inferred is None else inferred)
        return np.where(before >= 0, before, now)


@dataclass(frozen=True)
class ReinferredTruth(TruthPolicy):
    """The most probable class given all labels so far."""

    def truths(self, labels: Labels, before: np.ndarray, inferred: Inferred | None = None) -> np.ndarray:
        """The class of each labelled item, and −1 for the others."""
        return _modes(labels, self.infer(labels) if inferred is None else inferred)


@dataclass(frozen=True)
class BestLabeller(ReinferredTruth):
    """As `ReinferredTruth`, but a new item goes to a single annotator: the one with the highest expected share of right labels.

    Single labels do not tell how good who gave them is, so items that several annotators label come first.
    """

    def whom(self, annotators: np.ndarray, number: int, inferred: Inferred | None) -> np.ndarray:
        """The best annotator; the first `number` in the given order while nothing is known."""
        if inferred is None:
            return annotators[:number]
        return annotators[[int(inferred.accuracy[annotators].argmax())]]


def _modes(labels: Labels, inferred: Inferred) -> np.ndarray:
    return np.where(labels.votes_by_item() > 0, inferred.responsibility.argmax(1), -1)


# ------------------------------------------------------------------------------------------------------- simulation


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
    """Acquire labels of a crowd whose truth is known, item by item, under one or several ways to take truths from them.

    All ways get common random numbers: an annotator says the same of an item under every way, the order of items is the same
    where it is random, and an item that several annotators label is labelled by the same ones. The first items go to
    `labels_per_item` annotators under every way.

    Parameters
    ----------
    crowd : GeneratedLabels
        As `raters.datasets.label_crowd` gives it. Its truth (``true_class``, ``confusion``) answers; its labels are not used.
        With features a classifier (multinomial logistic, with raters' priors) is trained on the truths after every step.
    way : TruthPolicy, or mapping of names to policies
    labels_per_item : int
        Annotators who are asked about an item; `BestLabeller` asks one, after the first items.
    budget : int, optional
        Answers in all; by default until every item was asked about.
    first_items : int
        Items that are acquired before the first step.
    items_per_step : int
        Items between two fits.
    acquire : {"random", "least_confident"}
        Which item comes next: in a random order, or those of which the classifier is least confident, for which features are
        needed.
    held_out : int
        Items, the last ones, that are never acquired, on which the classifier is tested; without any, it is tested on all items
        that are not acquired yet.
    seed : int

    Returns
    -------
    xarray.Dataset
        With axes ``way`` and ``step``: ``answers`` and ``items`` so far, ``label_accuracy`` (the share of the acquired items
        whose truth is taken rightly), ``asked_accuracy`` (the mean share of right labels of the annotators asked in the step),
        and with features ``classifier_accuracy``.

    Notes
    -----
    Measured on 20 crowds of 12 annotators, five of them right 92 times in 100 and seven 38 times in 100, with 3 classes, 150
    items of 5 labels each, and a fit every 14 items; in brackets standard deviations from crowd to crowd.

    - Area under the accuracy of the labels: majority .782, frozen .835, inferred anew .866; differences .053 (.047) and .031
      (.022). With 3 labels of each item .701, .732, .752.
    - A classifier tested on 50 other items hardly cares, as it averages wrong labels out: .757, .773, .776, with differences of
      .016 (.070) and .003 (.018).
    - The best labeller: the annotators asked were right in .79, against .61 of random ones. Over the 190 answers that 150 items
      then take, its classifier is the better one, .738 against .698 (difference .040, .120) for truths inferred anew of fewer
      items, and its labels are worse, .779 against .805 (.026, .121): now and then it keeps to a wrong annotator.
    - Where all are alike, right in .75, the majority is best: .923 against .902 and .910.
    - Of few labels a model may make too much. With 50 items of 3 labels by 8 annotators, two fifths of them spammers, the
      majority has .666, truths inferred anew .713, and those of ``rt.DawidSkene()``, whose prior is weaker, .561 (10 crowds).
      With many labels the weaker prior is the better one: .886 against .866 in the first setting.

    References
    ----------
    Yan, Rosales, Fung and Dy (2011), ICML, 1161–1168, for asking the best labeller.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition.noisy_labels import MajorityTruth, ReinferredTruth, simulate_labelling
    >>> crowd = rt.datasets.label_crowd(30, 6, 3, 2, spammers=0.3, seed=0)
    >>> curves = simulate_labelling(crowd, {"majority": MajorityTruth(), "all": ReinferredTruth()}, items_per_step=10, seed=0)
    >>> curves["answers"].values.tolist()
    [[30, 60, 90], [30, 60, 90]]
    """
    ways = {"way": way} if isinstance(way, TruthPolicy) else dict(way)
    if wrong := [name for name, one in ways.items() if not isinstance(one, TruthPolicy)]:
        raise SettingError(f"way {wrong[0]!r} must be one such as ReinferredTruth(), not {ways[wrong[0]]!r}")
    if not ways:
        raise SettingError("there is no way to try; give one, such as ReinferredTruth()")
    for name, value in (("labels_per_item", labels_per_item), ("first_items", first_items), ("items_per_step", items_per_step)):
        whole(name, value)
    whole("held_out", held_out, least=0)
    one_of("acquire", acquire, ("random", "least_confident"))
    people = _People.of(crowd, held_out, labels_per_item, seed)
    if acquire == "least_confident" and people.empty.features is None:
        raise SettingError(
            "acquire='least_confident' needs a classifier; draw a crowd with num_features=..., or write 'random'"
        )
    most = people.num_pool * labels_per_item
    if budget is not None:
        whole("budget", budget, least=first_items * labels_per_item)
        most = min(budget, most)
    known: dict[Any, Inferred] = {}
    settings = _Settings(labels_per_item, most, first_items, items_per_step, acquire)
    curves = [_labelled(people, one, settings, known) for one in ways.values()]
    return xr.concat(curves, "way", join="outer").assign_coords(way=list(ways))


class _Settings(NamedTuple):
    labels_per_item: int
    budget: int
    first_items: int
    items_per_step: int
    acquire: str


class _People(NamedTuple):
    """What each annotator would say of each item, whom to ask first, and which item comes next when that is random."""

    empty: Labels
    said: np.ndarray
    true_class: np.ndarray
    accuracy: np.ndarray
    whom: np.ndarray
    order: np.ndarray

    @property
    def num_pool(self) -> int:
        """Items that may be acquired."""
        return len(self.order)

    @classmethod
    def of(cls, crowd: GeneratedLabels, held_out: int, labels_per_item: int, seed: int) -> _People:
        """With the random numbers of a seed."""
        labels, truth = crowd
        if not isinstance(labels, Labels) or not {"true_class", "confusion"} <= set(truth):
            raise DataError("a crowd has labels and a truth with 'true_class' and 'confusion', as label_crowd gives them")
        if labels_per_item > labels.num_annotators:
            raise SettingError(
                f"labels_per_item={labels_per_item} is not possible with {labels.num_annotators} annotators; write at most that"
            )
        if held_out >= labels.num_items:
            raise SettingError(f"held_out={held_out} leaves none of {labels.num_items} items to label")
        rng = np.random.default_rng(seed)
        true_class, confusion = np.asarray(truth["true_class"]), np.asarray(truth["confusion"])
        chances = confusion[:, true_class].cumsum(-1).swapaxes(0, 1)  # (item, annotator, label)
        said = (rng.random(chances.shape[:2])[..., None] > chances[..., :-1]).sum(-1)
        whom = rng.permuted(np.tile(np.arange(labels.num_annotators), (labels.num_items, 1)), axis=1)
        accuracy = np.einsum("akk->ak", confusion) @ np.bincount(true_class, minlength=labels.num_classes) / len(true_class)
        none = np.zeros(0, np.int32)
        empty = dataclasses.replace(labels, group=none, annotator=none, label=none, count=None, truth=None, record=None, most=1)
        return cls(empty, said, true_class, accuracy, whom, rng.permutation(labels.num_items - held_out))

    def labels(self, item: list[int], annotator: list[int], rows: int) -> Labels:
        """What was said, padded to `rows`."""
        order = np.argsort(item, kind="stable")
        group, who = np.asarray(item, np.int32)[order], np.asarray(annotator, np.int32)[order]
        said = self.said[group, who].astype(np.int32)
        return dataclasses.replace(self.empty, group=group, annotator=who, label=said).padded(pad_to(rows))


def _labelled(people: _People, way: TruthPolicy, settings: _Settings, known: dict[Any, Inferred]) -> xr.Dataset:
    """The curve of one way. Fits of equal labels by other ways are `known`."""
    item: list[int] = []
    annotator: list[int] = []
    truths = np.full(people.empty.num_items, -1)
    inferred, coefficient = None, None
    measured = []
    free = people.order
    while len(free):
        batch = _next(people, free, coefficient, settings, len(item) == 0)
        asked_before = len(item)
        for one in batch.tolist():
            whom = way.whom(people.whom[one], settings.labels_per_item, inferred)
            if len(item) + len(whom) > settings.budget:
                break
            item += [one] * len(whom)
            annotator += whom.tolist()
        if len(item) == asked_before:
            break
        free = free[~np.isin(free, item)]
        labels = people.labels(item, annotator, settings.budget)
        if way.infers:
            inferred = _inferred(way, labels, inferred, known)
        truths = way.truths(labels, truths, inferred)
        there = truths >= 0
        found = {
            "answers": len(item),
            "items": int(there.sum()),
            "label_accuracy": float((truths == people.true_class)[there].mean()),
            "asked_accuracy": float(people.accuracy[annotator[asked_before:]].mean()),
        }
        if labels.features is not None:
            coefficient = start_coefficient(dataclasses.replace(labels, truth=truths), None)
            said = (np.asarray(labels.features) @ coefficient).argmax(1)
            pool = np.isin(np.arange(len(truths)), people.order)
            tested = ~pool if not pool.all() else ~there
            found["classifier_accuracy"] = float((said == people.true_class)[tested].mean()) if tested.any() else np.nan
        measured.append(found)
    table = {name: ("step", [one[name] for one in measured]) for name in measured[0]}
    return xr.Dataset(table, {"step": np.arange(len(measured))})


def _next(people: _People, free: np.ndarray, coefficient: np.ndarray | None, settings: _Settings, first: bool) -> np.ndarray:
    """The items that come next."""
    if first:
        return free[: settings.first_items]
    if settings.acquire == "random" or coefficient is None:
        return free[: settings.items_per_step]
    log_odds = np.asarray(people.empty.features)[free] @ coefficient
    sure = np.exp(log_odds - log_odds.max(1, keepdims=True))
    confidence = 1 / sure.sum(1)
    return free[np.argsort(confidence, kind="stable")[: settings.items_per_step]]


def _inferred(way: TruthPolicy, labels: Labels, before: Inferred | None, known: dict[Any, Inferred]) -> Inferred:
    key = way.model, way.backend, labels.group.tobytes(), labels.annotator.tobytes(), labels.count.tobytes()
    if key not in known:
        known[key] = way.infer(labels, None if before is None else before.values)
    return known[key]


def area_under_accuracy(curves: xr.Dataset, name: str = "label_accuracy") -> xr.DataArray:
    """Mean of an accuracy over the answers, from the first step of all ways to the least end of any, for each way.

    Examples
    --------
    >>> import xarray as xr
    >>> from raters.acquisition.noisy_labels import area_under_accuracy
    >>> curve = xr.Dataset({"answers": ("step", [10, 20, 30]), "label_accuracy": ("step", [0.5, 0.7, 0.7])})
    >>> float(area_under_accuracy(curve))
    0.65
    """
    curves = curves if "way" in curves.dims else curves.expand_dims("way")
    ends = curves["answers"].min("step"), curves["answers"].max("step")
    low, high = float(ends[0].max()), float(ends[1].min())
    grid = np.linspace(low, high, 201)
    areas = []
    for _, curve in curves.groupby("way", squeeze=False) if "way" in curves.coords else [(0, curves)]:
        answers, value = (np.ravel(curve[part].values) for part in ("answers", name))
        there = np.isfinite(answers) & np.isfinite(value)
        areas.append(np.interp(grid, answers[there], value[there]).mean())
    coords = {"way": curves["way"].values} if "way" in curves.coords else None
    return xr.DataArray(areas, dims="way", coords=coords).squeeze()
