"""Steps of reading features, and the errors about what their rows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raters.errors import refuse_data
from raters.errors.validation import is_list
from raters.judgements.counts import Features
from raters.judgements.names import Names, check_once, name_list, name_text, shorten
from raters.judgements.reading import columns as tables
from raters.judgements.reading.columns import Column

# Fields of features: values, centre and scale, and names.
OF_ITEMS = ("features", "centre", "scale", "feature_names")
OF_CHOOSERS = ("chooser_features", "chooser_centre", "chooser_scale", "chooser_names")
# Features of comparisons are not scaled.
LARGE = 1e9
# Features of items are; their squares are summed.
_LARGEST = 1e100
_SUCH = "names=['age', 'length']"


def features_of(
    features: Any, item: str | None, names: Sequence[str] | None, items: Names
) -> tuple[Features, tuple[str, ...]]:
    """Features in the order of the items, of an array or a table with items, and their names."""
    if item is not None:
        return _feature_table(features, item, names, items)
    if isinstance(features, Mapping) or hasattr(type(features), "columns"):
        problem, expected = "is not given, and the features are a table", "name its column of items"
        refuse_data("item", problem=problem, expected=expected, instead="item='item'")
    try:
        if isinstance(features, np.ma.MaskedArray):
            features = np.ma.filled(features.astype(float), np.nan)
        values = np.asarray(features)
    except Exception:  # Whatever a foreign object raises, it is no array.
        values = np.zeros(())
    if values.ndim != 2 or len(values) != len(items):
        shape = f"there must be two, (item, feature) = ({len(items)}, …), in the order of the items"
        refuse_data("features", problem=f"has the shape {values.shape}", expected=shape)
    number = values.shape[1]
    chosen = tuple(f"x{place + 1}" for place in range(number))
    if names is not None:
        chosen = distinct(names, "names", _SUCH, number)
    if values.dtype.kind not in "biuf" and chosen:
        named = zip(values.T, chosen, strict=True)
        columns = [tables.as_column(column, name, "features", empty=True) for column, name in named]
        values = np.column_stack([tables.read_numbers(column) for column in columns])
    return values, chosen


def _feature_table(
    table: Any, item: str, names: Sequence[str] | None, items: Names
) -> tuple[Features, tuple[str, ...]]:
    """Features from the columns of a table, matched to the items by name."""
    there = tables.column_names(table)
    chosen = tuple(name for name in there if name != item)
    if names is not None:
        chosen = distinct(names, "names", _SUCH)
    read = tables.read_columns(
        table, {"item": item}, several={"features": chosen}, empty=("features",)
    )
    column = read["item"]
    advice = "leave these rows out, or name all items when data are read"
    code = tables.place(column, items, "items", advice)
    times = np.bincount(code, minlength=len(items))
    if (wrong := np.flatnonzero(times != 1)).size:
        number = f"{times[wrong[0]]} rows for item {items[wrong[0]]!r}"
        column.refuse(f"has {number} ({wrong.size} such item(s))", "give one row for each item")
    values = [tables.read_numbers(one) for one in read.lists["features"]]
    return np.column_stack([code, *values])[np.argsort(code), 1:], chosen


def distinct(
    given: Any, parameter: str, such: str | None = None, number: int | None = None
) -> tuple[str, ...]:
    """Names of features, as text, each once; as many as there are columns, where that is known."""
    names = tuple(map(name_text, name_list(given, parameter, such)))
    check_once(names, parameter)
    if number is not None and len(names) != number:
        problem = f"has {len(names)} name(s) for {number} feature(s)"
        refuse_data(parameter, names, problem, "give one for each column")
    return names


def design(values: Features, names: tuple[str, ...], items: Names) -> dict[str, Any]:
    """Fields of features: a column of ones, and the features, centred and scaled."""
    if "intercept" in names:
        refuse_data("features", "intercept", "is added by itself", "give it another name")
    dtype = np.float32 if values.dtype in (np.float16, np.float32) else np.float64
    values = values.astype(np.float64)
    check_finite(values, names, items)
    if ((most := np.abs(values).max(0)) > _LARGEST).any():
        expected = f"give numbers up to {_LARGEST:.0e} in size"
        name = names[int(np.argmax(most))]
        refuse_data("features", name, "is too large for sums of its squares", expected)
    centre, scale = values.mean(0), values.std(0)
    constant = (values.max(0) == values.min(0)) | (scale == 0)
    if constant.any():
        rest = [name for name, same in zip(names, constant, strict=True) if not same]
        name, problem = names[int(np.argmax(constant))], f"has one value for all {len(items)} items"
        expected = "leave it out: an intercept is added by itself"
        refuse_data("features", name, problem, expected, instead=f"names={rest}" if rest else None)
    columns = np.insert((values - centre) / scale, 0, 1.0, axis=1)
    every = columns, np.append(0.0, centre), np.append(1.0, scale)
    arrays = (array.astype(dtype) for array in every)
    return dict(zip(OF_ITEMS, (*arrays, ("intercept", *names)), strict=True))


def in_units_of_users(data: Any, fields: Sequence[str]) -> tuple[Features | None, Names]:
    """Features as they were before they were centred and scaled, and their names."""
    values, centre, scale, names = (getattr(data, field) for field in fields)
    if values is None:
        return None, names
    return np.asarray(values) * np.asarray(scale) + np.asarray(centre), names


def scaled_as(
    like: Any, raw: tuple[Features | None, Names], fields: Sequence[str], parameter: str, of: str
) -> dict[str, Any]:
    """Fields of features that are centred and scaled as the same ones of other judgements."""
    _, centre, scale, known = (getattr(like, field) for field in fields)
    values, names = raw
    if not known and of == "the fit":
        return no_features(fields)
    if names != known:
        expected = f"these are {shorten(known)}, in this order" if known else "it has none"
        refuse_data(parameter, list(names), f"differs from those of {of}", expected)
    scaled = (values - np.asarray(centre)) / np.asarray(scale)
    return dict(zip(fields, (scaled, centre, scale, names), strict=True))


def no_features(fields: Sequence[str]) -> dict[str, Any]:
    """Fields without features."""
    return {**dict.fromkeys(fields), fields[3]: ()}


def check_finite(values: Features, names: Sequence[str], items: Names) -> None:
    """There are features, and every item has a finite number for each."""
    if values.shape[1] == 0:
        refuse_data("features", problem="names none", expected="give at least one column")
    if not (finite := np.isfinite(values)).all():
        row, column = np.argwhere(~finite)[0]
        problem = f"is {values[row, column]} for item {items[row]!r}"
        problem += f" ({int((~finite).sum())} such value(s))"
        expected = "fill in a finite number, or leave the feature or the item out"
        refuse_data("features", names[column], problem, expected)


def sides(features: Any) -> tuple[tuple[str, ...], list[str]]:
    """Names of features that are given by the columns of two sides, and these columns."""
    if features is None:
        return (), []
    pairs = list(features.values()) if isinstance(features, Mapping) else []
    # A set of two names does not say which side is which.
    in_order = all(isinstance(pair, Sequence) and is_list(pair) for pair in pairs)
    if not pairs or not in_order or any(len(pair) != 2 for pair in pairs):
        problem = "is no mapping of names to two columns"
        expected = "map the name of each feature to the columns of its two sides"
        line = "features={'length': ('length_a', 'length_b')}"
        refuse_data("features", features, problem, expected, instead=line)
    return distinct(features, "features"), [name for pair in pairs for name in pair]


def differences(columns: Sequence[Column], names: Sequence[str]) -> Features | None:
    """Features of one side less those of the other, shape (row, feature)."""
    if not columns:
        return None
    values = np.column_stack([tables.read_numbers(column) for column in columns])
    return single(values[:, ::2] - values[:, 1::2], names)


def single(values: Features, names: Sequence[str], parameter: str = "features") -> Features:
    """In single precision; an error for numbers whose squares drown those of other features."""
    if not (fits := (np.abs(values) < LARGE).all(0)).all():
        name = names[int(np.argmin(fits))]
        expected = "subtract its mean, and divide it by its standard deviation"
        refuse_data(parameter, name, "is too large", expected)
    return values.astype(np.float32)
