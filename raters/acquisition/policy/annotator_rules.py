"""Rules for the choice of the annotator of a question."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from raters.acquisition.scoring.criteria import competence_site
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError
from raters.errors.validation import share
from raters.judgements.names import check_once, match_names, shorten
from raters.models.comparisons.directions import directed, has_directions


@dataclass(frozen=True)
class AnnotatorRule(abc.ABC):
    """Preference among annotators, whatever the question; divided by cost where annotators have
    costs.

    Competences count by their size: the answer of an adversary is as informative as that of a
    competent annotator. A subclass is a frozen dataclass that writes `preference`.
    """

    @abc.abstractmethod
    def preference(
        self, posterior: Posterior, rng: np.random.Generator
    ) -> Float[np.ndarray, " annotator"] | None:
        """Preference for each annotator, drawn anew for every question.

        Parameters
        ----------
        posterior : Posterior
        rng : numpy.random.Generator

        Returns
        -------
        array, shape (annotator,), or None
            The annotator of the highest value is asked; None leaves the choice to the score.
        """


@dataclass(frozen=True)
class Joint(AnnotatorRule):
    """Choice of the question and the annotator that score highest together."""

    def preference(self, posterior: Posterior, rng: np.random.Generator) -> None:
        """Return None, so that the score decides: see `AnnotatorRule.preference`."""


@dataclass(frozen=True)
class BestMean(AnnotatorRule):
    """Choice of the annotator of the highest posterior mean of competence. It never learns that
    another is better; compare `ThompsonAnnotator`."""

    def preference(
        self, posterior: Posterior, rng: np.random.Generator
    ) -> Float[np.ndarray, " annotator"]:
        """Posterior means of the competences: see `AnnotatorRule.preference`."""
        weight = np.asarray(posterior.weight).ravel()
        mean: np.ndarray = np.abs(weight @ _competence(posterior))
        return mean


@dataclass(frozen=True)
class ThompsonAnnotator(AnnotatorRule):
    """Choice of the most competent annotator under one draw, anew for each question: each is asked
    as often as they are probably the best."""

    def preference(
        self, posterior: Posterior, rng: np.random.Generator
    ) -> Float[np.ndarray, " annotator"]:
        """Competences under one draw: see `AnnotatorRule.preference`."""
        weight = np.asarray(posterior.weight, float).ravel()
        draw = rng.choice(len(weight), p=weight / weight.sum())
        return np.asarray(np.abs(_competence(posterior)[draw]))


@dataclass(frozen=True)
class UpperBound(AnnotatorRule):
    """Choice of the annotator of the highest posterior quantile of competence: uncertain ones get
    the benefit of the doubt.

    Parameters
    ----------
    level : float
        Of the quantile, between 0 and 1.
    """

    level: float = 0.9

    def __post_init__(self) -> None:
        share("level", self.level)

    def preference(
        self, posterior: Posterior, rng: np.random.Generator
    ) -> Float[np.ndarray, " annotator"]:
        """Posterior quantiles of the competences: see `AnnotatorRule.preference`."""
        weight = np.asarray(posterior.weight, float).ravel()
        competence = np.abs(_competence(posterior))
        quantile: np.ndarray = np.quantile(
            competence, self.level, axis=0, weights=weight / weight.sum(), method="inverted_cdf"
        )
        return quantile


@dataclass(frozen=True)
class Oracle(AnnotatorRule):
    """Choice of the annotator that is truly the most competent, for simulations.

    Parameters
    ----------
    competence : mapping
        From the name of every annotator to their competence.
    """

    competence: tuple[tuple[Any, float], ...] = ()

    def __init__(self, competence: Mapping[Any, float] | tuple[tuple[Any, float], ...]) -> None:
        check_once(dict(competence), "competence")
        object.__setattr__(
            self,
            "competence",
            tuple((plain(name), float(value)) for name, value in dict(competence).items()),
        )

    def preference(
        self, posterior: Posterior, rng: np.random.Generator
    ) -> Float[np.ndarray, " annotator"]:
        """True competences: see `AnnotatorRule.preference`."""
        true = by_annotator("competence", self.competence, posterior.data.judges)
        return np.asarray(np.abs(true))


def plain(name: Any) -> Any:
    """Return a NumPy value as one of Python, which JSON can hold, and any other as it is."""
    return name.item() if isinstance(name, np.generic) else name


def by_annotator(
    what: str,
    pairs: tuple[tuple[Any, float], ...],
    annotators: tuple[Any, ...],
    default: float | None = None,
) -> Float[np.ndarray, " annotator"]:
    """Return numbers by name as an array in code order, shape (annotator,)."""
    names = [name for name, _ in pairs]
    codes = (
        match_names(np.arange(len(names)), tuple(names), annotators, "name", what)
        if names
        else np.zeros(0, int)
    )
    if default is None and len(set(codes.tolist())) < len(annotators):
        missing = [name for code, name in enumerate(annotators) if code not in codes]
        raise SettingError(
            parameter=what,
            problem=f"names {len(names)} of {len(annotators)} annotators",
            expected=f"add {shorten(missing)}",
        )
    values = np.full(len(annotators), np.nan if default is None else default, float)
    values[codes] = [value for _, value in pairs]
    return values


def _competence(posterior: Posterior) -> Float[np.ndarray, "draw annotator"]:
    """Competence under each draw, shape (draw, annotator); of a confusion matrix its mean
    diagonal, and of guessers who are a type 0."""
    if has_directions(posterior.program):
        flat = {
            name: value.reshape(-1, *value.shape[2:]) for name, value in posterior.draws.items()
        }
        return directed(posterior.model, posterior.data, flat)
    name = competence_site(posterior)
    value = np.asarray(posterior.site(name, "so nobody can be preferred"))
    value = value.reshape(-1, *value.shape[2:])
    if value.ndim == 4:
        return np.asarray(np.trace(value, axis1=2, axis2=3) / value.shape[2])
    return np.asarray(value.reshape(*value.shape[:2], -1).mean(-1))
