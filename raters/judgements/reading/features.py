"""Steps of reading features, and the errors about what their rows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num, Shaped

from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.names import Names, encode_names, name_list, name_text, shorten, shown
from raters.judgements.reading.columns import Column, _array, _opened, read_columns, read_numbers
from raters.judgements.reading.labels import place

_SIDES = "features={'length': ('length_a', 'length_b')}"
# Features of comparisons are not scaled.
_LARGE = 1e9
# Features of items are; their squares are summed.
_LARGEST = 1e100
_NUMERIC = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}


def feature_array(
    features: Any, names: Sequence[str] | None, items: Names
) -> tuple[Shaped[np.ndarray, "item feature"], tuple[str, ...]]:
    """Features in the order of the items, shape (item, feature), and their names."""
    if isinstance(features, Mapping) or hasattr(type(features), "columns"):
        raise DataError(
            "say which column names the items: with_features(table, item='item'). Without item= the"
            " features are an array, shape (item, feature), its rows in the order of .items",
            parameter="item",
            problem="is not given, and the features are a table",
            expected="name the column with the items",
        )
    values = _values(features, items)
    chosen = (
        tuple(f"x{place + 1}" for place in range(values.shape[1]))
        if names is None
        else _feature_names(names)
    )
    if len(chosen) != values.shape[1]:
        raise DataError(
            f"names= has {len(chosen)} name(s) for {values.shape[1]} feature(s); give one for each"
            " column",
            parameter="names",
            value=chosen,
            problem=f"has {len(chosen)} name(s) for {values.shape[1]} feature(s)",
            expected="give one for each column",
        )
    if values.dtype.kind not in "biuf" and chosen:
        values = np.column_stack(
            [_numbers(column, name) for column, name in zip(values.T, chosen, strict=True)]
        )
    return values, chosen


def _values(features: Any, items: Names) -> Shaped[np.ndarray, "item feature"]:
    """An array of features, with a row for each item."""
    if isinstance(features, np.ma.MaskedArray):
        features = np.ma.filled(features.astype(float), np.nan)
    try:
        values = np.asarray(features)
    except ValueError as error:
        raise DataError(
            "the rows of the features differ in length; every item needs a value of every feature",
            parameter="features",
            problem="has rows of different lengths",
            expected="every item needs a value of every feature",
        ) from error
    if values.ndim != 2:
        also = "; for one feature write features[:, None]" if values.ndim == 1 else ""
        raise DataError(
            f"features have {values.ndim} dimension(s) (shape {values.shape}); expected two, (item,"
            f" feature) = ({len(items)}, …){also}",
            parameter="features",
            problem=f"has {values.ndim} dimension(s)",
            expected=f"there must be two, (item, feature) = ({len(items)}, …)",
        )
    if len(values) != len(items):
        raise DataError(
            f"features have {len(values)} row(s) and the data {len(items)} items; expected one row"
            " for each item, in the order of .items. To match them by name, give a table and the"
            " column with the names: item='...'",
            parameter="features",
            problem=f"has {len(values)} row(s), and there are {len(items)} items",
            expected="there must be one row for each item, in their order",
        )
    return values


def feature_table(
    table: Any, item: str, names: Sequence[str] | None, items: Names
) -> tuple[Num[np.ndarray, "item feature"], tuple[str, ...]]:
    """Features from the columns of a table, matched to the items by name."""
    if isinstance(table, pd.DataFrame):
        table = table.rename(columns=str)
    column = read_columns(table, item=item)["item"]
    code = _item_of_each_row(column, items)
    there, _ = _opened(table, [])
    chosen = (
        tuple(name for name in there if name != item) if names is None else _feature_names(names)
    )
    if unknown := [name for name in chosen if name not in there]:
        read_columns(table, names=unknown[0])  # says which columns there are
    _, fetch = _opened(table, list(chosen))
    values = [_numbers(_array(fetch(name), name, "features"), name) for name in chosen]
    if wrong := [
        name
        for name, column_values in zip(chosen, values, strict=True)
        if len(column_values) != len(column)
    ]:
        raise DataError(
            f"column {wrong[0]!r} and column {item!r} differ in length; every column needs one"
            " value per row",
            parameter="features",
            value=wrong[0],
            problem=f"differs in length from column {item!r}",
            expected="every column needs one value per row",
        )
    return np.column_stack([code, *values])[np.argsort(code), 1:], chosen


def _item_of_each_row(column: Column, items: Names) -> Int[np.ndarray, " row"]:
    """Code of the item of each row of features, of which every item has one."""
    code = place(
        column,
        items,
        "items",
        "Leave these rows out, or name all items with items=[...] in from_frame",
    )
    times = np.bincount(code, minlength=len(items))
    if (times > 1).any():
        twice = int(np.argmax(times > 1))
        rows = np.flatnonzero(code == twice)
        raise DataError(
            f"item {items[twice]!r} has {times[twice]} rows of features, the first two in rows"
            f" {rows[0]} and {rows[1]} (counted from 0); {int((times > 1).sum())} such item(s)."
            " Keep one row for each item",
            parameter="features",
            problem=(
                f"has {times[twice]} rows for item {items[twice]!r} ({int((times > 1).sum())} such"
                " item(s))"
            ),
            expected="keep one row for each item",
        )
    if (times == 0).any():
        lacking = [repr(name) for name, number in zip(items, times, strict=True) if not number]
        raise DataError(
            f"{len(lacking)} of the {len(items)} items have no row in the table of features:"
            f" {shorten(lacking)}. Add a row for each, or leave their rows out before from_frame",
            parameter="features",
            problem=f"has no row for {len(lacking)} of the {len(items)} items: {shorten(lacking)}",
            expected="add a row for each",
        )
    return code


def new_items(
    features: Any, item: str | None, names: Sequence[str]
) -> tuple[Float[np.ndarray, "item feature"], Names]:
    """Features of items that are not among the labels, shape (item, feature), and the items'
    names."""
    if item is None:
        number = len(features) if is_list(features) else 0
        items: Names = tuple(range(number))
        values, _ = feature_array(features, names, items)
    else:
        (_,), items = encode_names([read_columns(features, item=item)["item"]], None, "item")
        values, _ = feature_table(features, item, names, items)
    values = values.astype(np.float64)
    check_finite(values, names, items)
    return values, items


def _feature_names(names: Any) -> tuple[str, ...]:
    listed = name_list(names, "names", "names=['age', 'length']")
    chosen = tuple(map(name_text, listed))
    if twice := [name for name in chosen if chosen.count(name) > 1]:
        raise DataError(
            f"{twice[0]!r} comes twice in names=; name each feature once",
            parameter="names",
            value=twice[0],
            problem="comes twice",
            expected="name each feature once",
        )
    return chosen


def _numbers(values: Any, name: str) -> Float[np.ndarray, " row"]:
    """A feature as floats, NaN where it is missing."""
    series = pd.Series(values)
    if (kind := pd.api.types.infer_dtype(series, skipna=True)) not in _NUMERIC:
        held = series.dropna()
        raise DataError(
            f"feature {name!r} must hold numbers; it holds {kind} values such as"
            f" {shown(held.iloc[0])}. Leave it out with names=[...], or turn categories into"
            f" numbers first: table = pandas.get_dummies(table, columns=[{name!r}])",
            parameter="features",
            value=name,
            problem=f"holds {kind} values such as {shown(held.iloc[0])}",
            expected="it must hold numbers",
        )
    numbers: np.ndarray = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def design(
    values: Shaped[np.ndarray, "item feature"], names: tuple[str, ...], items: Names, *, table: bool
) -> tuple[
    Float[np.ndarray, "item 1+feature"],
    Float[np.ndarray, " 1+feature"],
    Float[np.ndarray, " 1+feature"],
]:
    """A column of ones and the features, centred and scaled; and by what they were."""
    if not names:
        raise DataError(
            "there is no feature; give at least one column of numbers (an intercept is added to"
            " them)",
            parameter="features",
            problem="names none",
            expected="give at least one column of numbers",
        )
    if "intercept" in names:
        raise DataError(
            "a feature is called 'intercept'; raters adds that itself: leave it out, or give it"
            " another name",
            parameter="features",
            value="intercept",
            problem="is added by itself",
            expected="leave it out, or give it another name",
        )
    dtype = np.float32 if values.dtype in (np.float16, np.float32) else np.float64
    values = values.astype(np.float64)
    check_finite(values, names, items)
    if ((most := np.abs(values).max(0)) > _LARGEST).any():
        column = int(np.argmax(most))
        raise DataError(
            parameter="features",
            value=names[column],
            problem=f"holds {most[column]:.3g}, and sums of its squares would not be finite",
            expected=f"give numbers up to {_LARGEST:.0e} in size",
        )
    centre, scale = values.mean(0), values.std(0)
    constant = (values.max(0) == values.min(0)) | (scale == 0)
    if constant.any():
        alike = [repr(name) for name, same in zip(names, constant, strict=True) if same]
        rest = [name for name, same in zip(names, constant, strict=True) if not same]
        line = (
            f"names={rest}"
            if table
            else "keep = features.max(0) > features.min(0), and then features[:, keep]"
        )
        raise DataError(
            f"{len(alike)} feature(s) have the same value for all {len(items)} item(s):"
            f" {shorten(alike)}; raters adds an intercept itself. "
            + (f"Leave them out: {line}" if rest else "Give features that differ between items"),
            parameter="features",
            problem=(
                f"has {len(alike)} that have the same value for all {len(items)} item(s):"
                f" {shorten(alike)}"
            ),
            expected="leave them out" if rest else "give features that differ between items",
        )
    columns = np.concatenate([np.ones((len(values), 1)), (values - centre) / scale], axis=1)
    return (
        columns.astype(dtype),
        np.append(0.0, centre).astype(dtype),
        np.append(1.0, scale).astype(dtype),
    )


def design_like(
    values: Shaped[np.ndarray, "item feature"], names: tuple[str, ...], items: Names, like: Any
) -> tuple[Float[np.ndarray, "item 1+feature"], Any, Any]:
    """As `design`, centred and scaled as other labels were."""
    if like.features is None or set(like.feature_names[1:]) != set(names):
        given = "none" if like.features is None else shorten(like.feature_names[1:])
        raise DataError(
            f"like= must have the same features ({shorten(names)}); it has {given}",
            parameter="like",
            problem=f"has {given}",
            expected=f"it must have the same features ({shorten(names)})",
        )
    values = values[:, [names.index(name) for name in like.feature_names[1:]]].astype(np.float64)
    check_finite(values, like.feature_names[1:], items)
    scaled = (values - np.asarray(like.centre)[1:]) / np.asarray(like.scale)[1:]
    columns = np.concatenate([np.ones((len(values), 1)), scaled], axis=1)
    return columns.astype(np.asarray(like.features).dtype), like.centre, like.scale


def check_finite(
    values: Float[np.ndarray, "item feature"], names: Sequence[str], items: Names
) -> None:
    """There are features, and every item has a finite number for each."""
    if values.shape[1] == 0:
        raise DataError(
            "there is no feature; give at least one column of numbers",
            parameter="features",
            problem="names none",
            expected="give at least one column of numbers",
        )
    if not (finite := np.isfinite(values)).all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"feature {names[column]!r} of item {items[row]!r} is {values[row, column]}"
            f" ({int((~finite).sum())} such value(s)); every item needs a finite number. Fill it"
            " in, or leave the feature or the item out",
            parameter="features",
            value=names[column],
            problem=(
                f"is {values[row, column]} for item {items[row]!r} ({int((~finite).sum())} such"
                " value(s))"
            ),
            expected=(
                "every item needs a finite number; fill it in, or leave the feature or the item out"
            ),
        )


def differences(
    frame: Any, sides: Mapping[str, tuple[str, str]] | None, rows: int
) -> tuple[Float[np.ndarray, "row feature"] | None, tuple[str, ...]]:
    """Features of one side less those of the other, shape (row, feature), and their names."""
    if sides is None:
        return None, ()
    if not isinstance(sides, Mapping) or not sides:
        raise DataError(
            "features= maps the name of each feature to the columns of its two sides, such as"
            f" {_SIDES}, not {sides!r}",
            parameter="features",
            value=sides,
            problem="is no mapping of names to two columns",
            expected="map the name of each feature to the columns of its two sides",
        )
    gaps = []
    for name, pair in sides.items():
        gaps.append(_difference(frame, name, pair))
    if wrong := {
        str(name): len(values)
        for name, values in zip(sides, gaps, strict=True)
        if len(values) != rows
    }:
        raise DataError(
            f"the features differ in length from the {rows} votes: {wrong}; every column needs one"
            " value per row",
            parameter="features",
            value=list(wrong),
            problem=f"differs in length from the {rows} votes",
            expected="every column needs one value per row",
        )
    names = tuple(map(str, sides))
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"{twice[0]!r} comes twice in features=, as text and as something else; name each"
            " feature once",
            parameter="features",
            value=twice[0],
            problem="comes twice",
            expected="name each feature once",
        )
    return single(np.column_stack(gaps), names), names


def _difference(frame: Any, name: Any, pair: Any) -> Float[np.ndarray, " row"]:
    """One side of a feature less the other."""
    two = not isinstance(pair, str) and isinstance(pair, Sequence) and len(pair) == 2
    if not two or not all(isinstance(side, str) for side in pair):
        raise DataError(
            f"feature {name!r} needs the columns of its two sides, such as {_SIDES}, not {pair!r}",
            parameter="features",
            value=name,
            problem=f"stands for {pair!r}",
            expected="it needs two columns, one for each side, such as `features`"
            " length=length_a,length_b",
        )
    columns = read_columns(frame, **{f"{name}, one side": pair[0], f"{name}, other side": pair[1]})
    one, other = (read_numbers(column) for column in columns.values())
    return np.asarray(one - other)


def single(
    values: Float[np.ndarray, "row feature"], names: Sequence[str]
) -> Float[np.ndarray, "row feature"]:
    """In single precision; an error for numbers whose squares drown those of other features."""
    if not (fits := (np.abs(values) < _LARGE).all(0)).all():
        raise DataError(
            f"feature {names[int(np.argmin(fits))]!r} is too large; divide it by its standard"
            " deviation first",
            parameter="features",
            value=names[int(np.argmin(fits))],
            problem="is too large",
            expected="divide it by its standard deviation first",
        )
    return values.astype(np.float32)
