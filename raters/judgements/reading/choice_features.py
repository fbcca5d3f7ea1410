"""Features of choices from sets: the columns that hold them, and their scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.errors import DataError
from raters.judgements.names import Names, check_once, name_list, name_text, shorten
from raters.judgements.reading.choices import EXAMPLES, Offers, check_length, columns_by_alternative
from raters.judgements.reading.columns import _array, _column, _opened, read_columns, read_numbers


def feature_columns(
    frame: Any, names: Sequence[str], parameter: str, rows: int, part_of: str | None = None
) -> Float[np.ndarray, "row feature"]:
    """Columns of numbers."""
    such = f"{parameter}=[{names if isinstance(names, str) else 'price'!r}]"
    listed = [name_text(name) for name in name_list(names, parameter, such)]
    check_once(listed, parameter)
    columns = [
        read_numbers(read_columns(frame, part_of=part_of, **{parameter: name})[parameter])
        for name in listed
    ]
    for name, one in zip(listed, columns, strict=True):
        check_length(parameter, name, len(one), rows)
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


def wide_features(
    frame: Any,
    features: Mapping[str, Any] | None,
    names: Sequence[Any],
    offered: Bool[np.ndarray, "set alternative"],
) -> tuple[Float[np.ndarray, "set alternative feature"], tuple[str, ...]]:
    """Features of the alternatives of a wide table, and their names."""
    listed = {} if features is None else features
    if not isinstance(listed, Mapping):
        raise DataError(
            parameter="features",
            value=features,
            problem="is no mapping of names to columns",
            expected="map each feature to its columns",
            instead=EXAMPLES["features"],
        )
    check_once(listed, "features")
    values = np.zeros((*offered.shape, len(listed)))
    for feature, (name, columns) in enumerate(listed.items()):
        for place, column in columns_by_alternative("features", name, columns, names):
            rows = np.flatnonzero(offered[:, place])
            values[rows, place, feature] = _cells(frame, column, rows, len(offered))
    return values, tuple(map(name_text, listed))


def _cells(
    frame: Any, name: str, rows: Int[np.ndarray, " some"], size: int
) -> Float[np.ndarray, " some"]:
    """Numbers in some rows of a column of this size, which may be empty elsewhere."""
    names, fetch = _opened(frame, [name])
    if name not in names:
        read_columns(frame, features=name)  # says which columns there are
    whole = np.asarray(_array(fetch(name), name, "features"), dtype=object)
    check_length("features", name, len(whole), size)
    if not len(rows):
        return np.zeros(0)
    return read_numbers(_column(whole[rows], name, "features"))


class Terms(NamedTuple):
    """Features that the utilities depend on."""

    features: tuple[str, ...]
    specific: tuple[str, ...]
    choosers: tuple[str, ...]
    like: Any = None

    def of_offers(self, table: Offers, alternatives: Names) -> dict[str, Any]:
        """Fields of `Choices` with the features of the alternatives."""
        if not self.features:
            return {"features": None, "centre": None, "scale": None}
        values, names = by_alternative(
            table.features, self.features, self.specific, table.alternative, alternatives
        )
        if self.like is not None:
            known = _known(names, self.like.feature_names, "features")
            centre, scale = self.like.centre, self.like.scale
        else:
            known, centre, scale = names, values.mean(0), _within(values, table.group, names)
        scaled = (values - np.asarray(centre)) / np.asarray(scale)
        return {"features": scaled, "centre": centre, "scale": scale, "feature_names": known}

    def of_choosers(self, values: Float[np.ndarray, "set chooser_feature"]) -> dict[str, Any]:
        """Fields of `Choices` with the features of the choosers."""
        fields = ("chooser_features", "chooser_centre", "chooser_scale")
        if not self.choosers:
            return dict.fromkeys(fields)
        names = tuple(map(name_text, self.choosers))
        if self.like is not None:
            _known(names, self.like.chooser_names, "choosers")
            centre, scale = self.like.chooser_centre, self.like.chooser_scale
        else:
            centre, scale = values.mean(0), _across(values, names)
        scaled = (values - np.asarray(centre)) / np.asarray(scale)
        own = dict(zip(fields, (scaled, centre, scale), strict=True))
        return own | {"chooser_names": names}


def _known(names: tuple[str, ...], known: tuple[str, ...], parameter: str) -> tuple[str, ...]:
    """Raise unless these are the features of `like`, in their order."""
    if names != known:
        raise DataError(
            parameter=parameter,
            value=list(names),
            problem="differ from those of `like`",
            expected=f"these are {shorten(known)}, in this order" if known else "it has none",
        )
    return known


def by_alternative(
    values: Float[np.ndarray, "offer feature"],
    names: tuple[str, ...],
    specific: Sequence[str],
    alternative: Int[np.ndarray, " offer"],
    alternatives: Names,
) -> tuple[Float[np.ndarray, "offer feature"], tuple[str, ...]]:
    """Features of which some have a coefficient for each alternative: one column for each."""
    listed = [name_text(name) for name in name_list(specific, "specific", "specific=['time']")]
    if unknown := [name for name in listed if name not in names]:
        raise DataError(
            parameter="specific",
            value=unknown[0],
            problem="is none of `features`",
            expected=f"these are {shorten(names)}" if names else "name it there as well",
        )
    columns, own = [], []
    for column, name in zip(values.T, names, strict=True):
        each = range(len(alternatives)) if name in listed else [None]
        for code in each:
            columns.append(column if code is None else np.where(alternative == code, column, 0.0))
            own.append(name if code is None else f"{name}:{name_text(alternatives[code])}")
    return np.stack(columns, axis=1) if columns else values, tuple(own)


def _within(
    values: Float[np.ndarray, "offer feature"],
    group: Int[np.ndarray, " offer"],
    names: tuple[str, ...],
) -> Float[np.ndarray, " feature"]:
    """Standard deviation of each feature within sets, since only differences within a set enter a
    choice; an error for one that has none. Rows of a set follow each other."""
    size = np.bincount(group)
    means = np.add.reduceat(values, np.cumsum(size) - size, axis=0) / size[:, None]
    squares: np.ndarray = ((values - means[group]) ** 2).sum(0)
    scale: np.ndarray = np.sqrt(squares / max(len(group) - len(size), 1))
    # Means of equal numbers differ from them in the last digit.
    constant = scale <= 1e-10 * np.abs(values).max(0, initial=0.0)
    if constant.any():
        alike = [name for name, same in zip(names, constant, strict=True) if same]
        raise DataError(
            parameter="features",
            value=alike[0],
            problem="is the same for all alternatives of every set, so that no choice depends on it"
            + (f" ({len(alike)} such features)" if len(alike) > 1 else ""),
            expected="leave it out; a feature of the chooser belongs to `choosers`, where each"
            " alternative has a coefficient of it",
        )
    return scale


def _across(
    values: Float[np.ndarray, "set feature"], names: tuple[str, ...]
) -> Float[np.ndarray, " feature"]:
    """Standard deviation of each feature of the choosers between sets; an error for one that has
    none."""
    constant = values.max(0) == values.min(0)
    if constant.any():
        raise DataError(
            parameter="choosers",
            value=names[int(np.argmax(constant))],
            problem="has the same value in all sets",
            expected="leave it out: the constants of the alternatives have its effect (new sets for"
            " a model that was fitted are read with `like`)",
            instead="like=choices, with those that were fitted",
        )
    scale: np.ndarray = values.std(0)
    return scale
