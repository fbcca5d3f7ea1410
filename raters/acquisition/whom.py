"""Whom to ask: how an annotator is found for a question that is worth asking."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raters import _frame
from raters._check import share
from raters.acquisition.criteria import competence_site
from raters.acquisition.posterior import Posterior
from raters.errors import SettingError


@dataclass(frozen=True)
class Whom(abc.ABC):
    """Prefers some annotators to others, whatever the question; per cost, where annotators have costs.

    Competences count by their size: an adversary's answer tells as much as that of a friend.
    """

    @abc.abstractmethod
    def preference(self, posterior: Posterior, rng: np.random.Generator) -> np.ndarray | None:
        """The higher, the sooner asked, shape (annotator,); drawn anew for every question. None leaves it to the score."""


@dataclass(frozen=True)
class Joint(Whom):
    """The question and the annotator that score highest together."""

    def preference(self, posterior, rng):
        """Nobody is preferred."""
        return


@dataclass(frozen=True)
class BestMean(Whom):
    """Whoever has the highest posterior mean of competence. Never learns that another is better: compare `Thompson`."""

    def preference(self, posterior, rng):
        """Posterior means."""
        weight = np.asarray(posterior.weight).ravel()
        return np.abs(weight @ _competence(posterior))


@dataclass(frozen=True)
class ThompsonAnnotator(Whom):
    """Whoever is the most competent under one draw, anew for each question: each is asked as often as they may be the best."""

    def preference(self, posterior, rng):
        """One draw."""
        weight = np.asarray(posterior.weight, float).ravel()
        return np.abs(_competence(posterior)[rng.choice(len(weight), p=weight / weight.sum())])


@dataclass(frozen=True)
class UpperBound(Whom):
    """Whoever has the highest posterior quantile of competence: the benefit of the doubt.

    Parameters
    ----------
    level : float
    """

    level: float = 0.9

    def __post_init__(self) -> None:
        share("level", self.level)

    def preference(self, posterior, rng):
        """Posterior quantiles."""
        weight = np.asarray(posterior.weight, float).ravel()
        competence = np.abs(_competence(posterior))
        return np.quantile(competence, self.level, axis=0, weights=weight / weight.sum(), method="inverted_cdf")


@dataclass(frozen=True)
class Oracle(Whom):
    """Whoever is the most competent in truth: for simulations, where it is known.

    Parameters
    ----------
    competence : mapping
        From the name of every annotator to their competence.
    """

    competence: tuple[tuple[Any, float], ...] = ()

    def __init__(self, competence: Mapping[Any, float] | tuple[tuple[Any, float], ...]) -> None:
        object.__setattr__(self, "competence", tuple((plain(name), float(value)) for name, value in dict(competence).items()))

    def preference(self, posterior, rng):
        """The truth."""
        return np.abs(by_annotator("competence", self.competence, posterior.data.annotators))


def plain(name: Any) -> Any:
    """A name as Python has it: those of NumPy have a repr of their own, which a journal could not read back."""
    return name.item() if isinstance(name, np.generic) else name


def by_annotator(what: str, pairs: tuple[tuple[Any, float], ...], annotators: tuple[Any, ...], default=None) -> np.ndarray:
    """Numbers by name as an array in code order; an error for names that are missing or unknown."""
    names = [name for name, _ in pairs]
    codes = _frame.match(np.arange(len(names)), tuple(names), annotators, "annotator") if names else np.zeros(0, int)
    if default is None and len(set(codes.tolist())) < len(annotators):
        missing = [name for code, name in enumerate(annotators) if code not in codes]
        raise SettingError(f"{what} names {len(names)} of {len(annotators)} annotators; add {_frame.shorten(missing)}")
    values = np.full(len(annotators), np.nan if default is None else default, float)
    values[codes] = [value for _, value in pairs]
    return values


def _competence(posterior: Posterior) -> np.ndarray:
    """One number for each draw and annotator, shape (draw, annotator); of a confusion matrix, its mean diagonal."""
    name = competence_site(posterior)
    value = np.asarray(posterior.site(name, "so nobody can be preferred"))
    value = value.reshape(-1, *value.shape[2:])
    if value.ndim == 4:
        return np.trace(value, axis1=2, axis2=3) / value.shape[2]
    return value.reshape(*value.shape[:2], -1).mean(-1)
