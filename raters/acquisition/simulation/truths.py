"""Policies that take the truth of items from noisy labels."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from raters.errors import SettingError
from raters.inference import PGEM, Backend
from raters.judgements.labels import Labels
from raters.model import Model, Values
from raters.models import DawidSkene
from raters.program import Program, responsibility

# A loop begins with few labels, of which Dawid and Skene's model with its usual weak prior makes
# too much.
_MODEL = DawidSkene(diagonal=3.0, off_diagonal=1.0)
_MODE = PGEM(draws=0, starts=1, tolerance=1e-3, max_sweeps=200)


_responsibility = jax.jit(responsibility, static_argnums=0)


class Inferred(NamedTuple):
    """Inference from labels."""

    responsibility: Float[np.ndarray, "item class"]
    accuracy: Float[np.ndarray, " annotator"]
    values: Values


@dataclass(frozen=True)
class TruthPolicy(abc.ABC):
    """Policy that takes truths from labels."""

    model: Model[Labels] = _MODEL
    backend: Backend = _MODE

    infers: ClassVar[bool] = True

    def infer(self, labels: Labels, start: Values | None = None) -> Inferred:
        """Fit the model."""
        if reason := self.backend.why_not(Program(self.model, labels)):
            raise SettingError(reason)
        sites = {name: np.ndim(value) for name, value in self.model.start(labels).items()}
        if sites.get("confusion") != 3 and sites.get("accuracy") != 1:
            raise SettingError(
                parameter="model",
                value=self.model,
                problem="does not say how often each annotator is right",
                expected="choose a model with the accuracy or the confusion matrix of each",
                instead="model=rt.DawidSkene()",
            )
        earlier = (
            None
            if start is None
            else {name: np.asarray(value)[None, None] for name, value in start.items()}
        )
        draws = self.backend.run(Program(self.model, labels), jax.random.key(0), start=earlier)
        values = draws.mode or {name: value.mean((0, 1)) for name, value in draws.values.items()}
        with jax.enable_x64(True):
            probs = np.asarray(
                _responsibility(self.model, jax.tree.map(np.asarray, labels), values)
            )
        if "confusion" in values:
            accuracy = np.einsum("akk->ak", np.asarray(values["confusion"])) @ probs.mean(0)
        else:
            accuracy = np.asarray(values["accuracy"])
        return Inferred(probs, accuracy, values)

    @abc.abstractmethod
    def truths(
        self, labels: Labels, before: Int[np.ndarray, " item"], inferred: Inferred | None = None
    ) -> Int[np.ndarray, " item"]:
        """Class of each labelled item."""

    def choose(
        self, annotators: Int[np.ndarray, " annotator"], size: int, inferred: Inferred | None
    ) -> Int[np.ndarray, " chosen"]:
        """Choose the annotators of a new item."""
        return annotators[:size]


@dataclass(frozen=True)
class MajorityTruth(TruthPolicy):
    """Most frequent class among the labels of an item; of several, the first."""

    infers: ClassVar[bool] = False

    def truths(
        self, labels: Labels, before: Int[np.ndarray, " item"], inferred: Inferred | None = None
    ) -> Int[np.ndarray, " item"]:
        """Class of each labelled item, and −1 for the others: see `TruthPolicy.truths`."""
        shares = labels.without_truth().vote_shares()
        return np.where(labels.judgements_by("item") > 0, shares.argmax(1), -1)


@dataclass(frozen=True)
class FrozenTruth(TruthPolicy):
    """Most probable class when the item was acquired, which then stays."""

    def truths(
        self, labels: Labels, before: Int[np.ndarray, " item"], inferred: Inferred | None = None
    ) -> Int[np.ndarray, " item"]:
        """Class of each labelled item, and −1 for the others: see `TruthPolicy.truths`."""
        now = _modes(labels, self.infer(labels) if inferred is None else inferred)
        return np.where(before >= 0, before, now)


@dataclass(frozen=True)
class ReinferredTruth(TruthPolicy):
    """Most probable class given all labels so far."""

    def truths(
        self, labels: Labels, before: Int[np.ndarray, " item"], inferred: Inferred | None = None
    ) -> Int[np.ndarray, " item"]:
        """Class of each labelled item, and −1 for the others: see `TruthPolicy.truths`."""
        return _modes(labels, self.infer(labels) if inferred is None else inferred)


@dataclass(frozen=True)
class BestLabeller(ReinferredTruth):
    """Truths as of `ReinferredTruth`, with a single annotator for a new item: the one with the
    highest expected share of right labels."""

    def choose(
        self, annotators: Int[np.ndarray, " annotator"], size: int, inferred: Inferred | None
    ) -> Int[np.ndarray, " chosen"]:
        """Choose the best annotator; the first `size` before the first fit: see
        `TruthPolicy.choose`."""
        if inferred is None:
            return annotators[:size]
        return annotators[[int(inferred.accuracy[annotators].argmax())]]


def _modes(labels: Labels, inferred: Inferred) -> Int[np.ndarray, " item"]:
    """Most probable class of each labelled item, and −1 for the others."""
    return np.where(labels.judgements_by("item") > 0, inferred.responsibility.argmax(1), -1)
