"""Questions whose features can be chosen: what is asked, in JAX as a function of the features, and
what there is beside it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from raters.acquisition.scoring.posterior import Posterior
from raters.errors import DataError, SettingError
from raters.judgements.names import names_array

Names = dict[str, Shaped[np.ndarray, " question"]]


@dataclass(frozen=True)
class Described(ABC):
    """Questions with features that can be chosen, one of each annotator or of each pair."""

    templates: Any
    names: tuple[Any, ...]
    real: Float[np.ndarray, "real feature"]

    @property
    def range(self) -> Float[np.ndarray, "feature 2"]:
        """Lowest and highest value of each feature."""
        return np.stack([self.real.min(0), self.real.max(0)], 1)

    def distances(self, features: Float[np.ndarray, " feature"]) -> Float[np.ndarray, " real"]:
        """Root mean square difference from each real one, per standard deviation of the real."""
        spread = self.real.std(0)
        apart = (self.real - features) / np.where(spread > 0, spread, 1.0)
        return np.asarray(np.sqrt(np.square(apart).mean(1)))

    def by(self, places: Sequence[int]) -> Shaped[np.ndarray, " question"]:
        """Names of those who would be asked."""
        data = self.templates
        return names_array(data.judges)[np.asarray(data.codes(data.judge))[list(places)]]

    @abstractmethod
    def with_features(self, template: Any, features: Float[Array, "question feature"]) -> Any:
        """Questions of one row of `templates`, one for each row of the features."""

    @abstractmethod
    def named(self, rows: Int[np.ndarray, " question"]) -> Names:
        """Names of real questions or items, by column."""

    @abstractmethod
    def about(self, places: Sequence[int]) -> Names:
        """Names in `templates` beside the annotators', by column."""


@dataclass(frozen=True)
class OfRows(Described):
    """Comparisons, each of which has its features: differences of its first side and its second."""

    given: bool = False
    rows: Any = None

    def with_features(self, template: Any, features: Float[Array, "question feature"]) -> Any:
        """See `Described.with_features`."""
        columns = {
            name: _repeated(column, len(features))
            for name, axes in template.arrays().items()
            if axes[0] == template.row and (column := getattr(template, name)) is not None
        }
        return dataclasses.replace(template, **columns | {"features": features})

    def named(self, rows: Int[np.ndarray, " question"]) -> Names:
        """See `Described.named`."""
        names = self.rows.rows(rows).question_names()
        return {f"nearest_{side}": names[side] for side in self.rows.pair}

    def about(self, places: Sequence[int]) -> Names:
        """See `Described.about`."""
        if not self.given:
            return {}
        names = self.templates.rows(np.array(places, int)).question_names()
        return {side: names[side] for side in self.templates.pair}


@dataclass(frozen=True)
class OfItems(Described):
    """Labels of items, which have features: without the intercept, and as in the table."""

    def with_features(self, template: Any, features: Float[Array, "question feature"]) -> Any:
        """See `Described.with_features`."""
        number = len(features)
        centre, scale = (jnp.asarray(one)[1:] for one in (template.centre, template.scale))
        standard = (features - centre) / scale
        return dataclasses.replace(
            template,
            group=jnp.arange(number),
            annotator=_repeated(template.annotator, number),
            label=None,
            count=None,
            unit_code=jnp.arange(number),
            truth=None,
            features=jnp.concatenate([jnp.ones((number, 1)), standard], 1),
            items=tuple(range(number)),
            most=1,
            even=True,
        )

    def named(self, rows: Int[np.ndarray, " question"]) -> Names:
        """See `Described.named`."""
        return {"nearest_item": names_array(self.templates.items)[rows]}

    def about(self, places: Sequence[int]) -> Names:
        """See `Described.about`."""
        return {}


def _repeated(column: Any, number: int) -> Any:
    """The first row so many times; in NumPy if it is no argument of what is traced."""
    xp: Any = jnp if isinstance(column, jax.Array) else np
    return xp.broadcast_to(column[0], (number, *column.shape[1:]))


def described(
    posterior: Posterior, questions: Any | None, judges: Int[np.ndarray, " annotator"]
) -> Described:
    """Questions of the fitted kind with features to be chosen."""
    data, sites = posterior.data, posterior.program.sites
    axes = data.arrays().get("features", ())
    known = getattr(data, "features", None) if axes else None
    reads = any("feature" in site.dims for site in sites.values())
    of_rows, of_items = axes[:1] == (data.row,), axes[:1] == ("unit",)
    if known is None or not reads or not ((of_rows and data.pair is not None) or of_items):
        raise SettingError(
            parameter="model",
            value=posterior.model,
            problem="reads no features of questions",
            expected="fit one that does to data with features",
            instead="rt.models.ContextualBTL() or rt.Raykar()",
        )
    of_each = [name for name, site in sites.items() if {"item", data.unit} & set(site.dims)]
    per_item = [name for name in of_each if data.judge not in sites[name].dims]
    if per_item and (of_items or questions is None):
        raise SettingError(
            parameter="model" if of_items else "questions",
            value=posterior.model if of_items else None,
            problem=f"has {per_item[0]} of each item, which a made-up item has not"
            if of_items
            else f"are not given, and {type(posterior.model).__name__} has {per_item[0]} of each"
            " item",
            expected="choose a model of features alone" if of_items else "give the pairs",
            instead="rt.Raykar()" if of_items else "questions=rt.Candidates.pairs(votes)",
        )
    return _of_items(data, judges) if of_items else _of_rows(data, questions, judges)


def _of_items(data: Any, judges: Int[np.ndarray, " annotator"]) -> OfItems:
    """A new item for each annotator."""
    centre, scale = (np.asarray(one, float) for one in (data.centre, data.scale))
    real = np.asarray(data.features, float) * scale + centre
    first = data.unanswered().rows(np.zeros(len(judges), int))
    templates = dataclasses.replace(first, annotator=np.asarray(judges, np.int32))
    return OfItems(templates, tuple(data.feature_names[1:]), real[:, 1:])


def _of_rows(data: Any, questions: Any | None, judges: Int[np.ndarray, " annotator"]) -> OfRows:
    """A comparison for each annotator, or for each of the questions to these annotators."""
    asked = data.questions()
    real = np.asarray(asked.features, float)
    if asked.exchangeable:  # A pair and its mirror image are one question.
        real, asked = np.concatenate([real, -real]), asked.joined(asked)
    names = tuple(data.feature_names)
    if questions is None:
        first = data.unanswered().rows(np.zeros(len(judges), int))
        templates = dataclasses.replace(first, count=None, annotator=np.asarray(judges, np.int32))
        return OfRows(templates, names, real, False, asked)
    rows = np.flatnonzero(np.isin(np.asarray(questions.annotator), judges))
    if not len(rows):
        raise DataError(
            parameter="questions",
            problem="has none to these annotators",
            expected="give at least one",
        )
    return OfRows(questions.unanswered().rows(rows), names, real, True, asked)
