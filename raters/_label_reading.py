"""Steps of reading labels, truths, features and records, and the errors about what they say together."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from raters import _frame
from raters._frame import Column, Names
from raters.errors import DataError, DataWarning

Repeats = Literal["keep", "drop", "error"]

_NUMERIC = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}


# ------------------------------------------------------------------ columns


def columns(frame: Any, count: str | None, **required: str) -> dict[str, Column]:
    """The columns of a table of labels, by role; only that of the counts may be left out."""
    for role, name in required.items():
        if name is None:
            raise DataError(f"{role}= takes the name of a column, such as {role}='{role}'; it cannot be left out")
    return _frame.read(frame, **required, count=count)


def incomplete(frame: Any, role: str, name: str | None, rows: int) -> Column | None:
    """A column that may have missing values, its code −1 there; None when it has nothing else."""
    if name is None:
        return None
    names, fetch = _frame._opened(frame, [name])
    if name not in names:
        _frame.read(frame, **{role: name})  # says which columns there are
    values = pd.Series(_frame._array(fetch(name), name)).astype(object)
    if len(values) != rows:
        raise DataError(f"column {name!r} has {len(values)} rows, the others {rows}; every column needs one value per row")
    there = (values.notna() & (values != "")).to_numpy()
    if not there.any():
        return None
    known = _frame._column(values.to_numpy()[there], name, role)
    code = np.full(rows, -1, np.int32)
    code[there] = known.code
    return Column(name, role, code, known.values)


def place(column: Column, known: Names, plural: str, advice: str) -> np.ndarray:
    """The codes of a column among the names known, −1 where it is missing."""
    lookup = {_frame.text(name): code for code, name in enumerate(known)}
    # A missing value has the code −1, and so the last entry.
    table = np.array([*(lookup.get(_frame.text(value), -1) for value in column.values), -1], np.int32)
    code = table[column.code]
    wrong = (code < 0) & (column.code >= 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        value = column.values[column.code[row]]
        by_lower = {name.lower(): name for name in lookup}
        near = difflib.get_close_matches(_frame.text(value).lower(), by_lower, n=1)
        hint = f"; did you mean {by_lower[near[0]]!r}?" if near else "."
        raise DataError(
            f"column {column.name!r} (for {column.role}=) holds {len(np.unique(column.code[wrong]))} name(s) that are none of "
            f"the {plural} {_frame.shorten(map(repr, known))}: e.g. {value!r} in row {row} (counted from 0){hint} {advice}"
        )
    return code


def annotators(column: Column, known: Iterable[Any] | None) -> tuple[np.ndarray, Names]:
    (who,), names = _frame.encode([column], known, "annotator")
    if len(names) > 1000 and len(names) > 0.8 * len(column):
        warnings.warn(
            f"column {column.name!r} holds {len(names):,} different annotators in {len(column):,} rows, so most gave one "
            "label; is it a row number or a time? Give the column that names who gave the label",
            DataWarning,
            stacklevel=3,
        )
    return who, names


def classes(label: Column, truth: Column | None, known: Iterable[Any] | None) -> tuple[np.ndarray, np.ndarray | None, Names]:
    """The codes of the labels and of the truths, and the names of all classes."""
    found = [label.values] + ([] if truth is None else [truth.values])
    if known is None:
        names = tuple(sorted(set().union(*_frame.alike(found))))
        if len(names) > max(50, len(label) / 2):
            raise DataError(
                f"column {label.name!r} holds {len(names):,} different labels in {len(label):,} rows; are these scores or "
                f"texts? First values: {_frame.shorten(names, 3)}. Give a column of classes, or name them all: classes=[...]"
            )
    elif isinstance(known, (str, bytes)) or not isinstance(known, Iterable):
        raise DataError(f"classes= takes a list of names, such as classes=['no', 'yes'], not {known!r}")
    else:
        names = tuple(_frame.alike([*found, list(known)])[-1])
    if len(names) < 2:
        raise DataError(
            f"one class only: {', '.join(map(repr, names)) or 'none'}; a label is a choice between two or more. Name all "
            f"classes, also those that nobody said: classes=[{''.join(f'{name!r}, ' for name in names)}...]"
        )
    if len(set(names)) < len(names):
        raise DataError(f"{next(name for name in names if names.count(name) > 1)!r} comes twice in classes=; name each once")
    advice = "Correct it, or name it in classes=[...] as well"
    said = place(label, names, "classes", advice)
    return said, None if truth is None else place(truth, names, "classes", advice), names


# ------------------------------------------------------------------ what rows say together


def check_repeats(repeats: Any) -> None:
    if repeats not in ("keep", "drop", "error"):
        raise DataError(f"repeats={repeats!r} is not a policy; write repeats='keep', repeats='drop' or repeats='error'")


def settle_repeats(
    codes: Sequence[np.ndarray], names: Sequence[Names], count: np.ndarray | None, repeats: Repeats
) -> tuple[np.ndarray, np.ndarray | None]:
    """Which rows to keep, and their counts. `codes` and `names` are of the items, annotators and labels."""
    item, who, said = codes
    rows = np.arange(len(item))
    if repeats == "keep":
        return rows, None if count is None or np.all(count == 1) else count
    _, first, pair = np.unique(item.astype(np.int64) * len(names[1]) + who, return_index=True, return_inverse=True)
    again = first[pair] != rows
    several = np.zeros(len(rows), bool) if count is None else count > 1
    if repeats == "error" and (again | several).any():
        row = int(np.flatnonzero(again | several)[0])
        before = first[pair[row]]
        how = f"{names[2][said[row]]!r} after {names[2][said[before]]!r} in row {before}"
        raise DataError(
            f"in row {row} (counted from 0) annotator {names[1][who[row]]!r} labels item {names[0][item[row]]!r} "
            f"more than once: {how if again[row] else 'its count is above 1'} ({int((again | several).sum())} such row(s)). "
            "Write repeats='keep' to count every label, or repeats='drop' to keep the first"
        )
    return rows[~again], None


def truth_by_item(item: np.ndarray, truth: np.ndarray | None, items: Names, classes: Names) -> np.ndarray | None:
    """The code of the true class of each item, −1 where no row tells it, shape (item,)."""
    if truth is None:
        return None
    rows = np.flatnonzero(truth >= 0)
    first = np.full(len(items), -1)
    first[item[rows[::-1]]] = rows[::-1]  # of several assignments to one place the last stays
    wrong = rows[truth[rows] != truth[first[item[rows]]]]
    if len(wrong):
        row, before = wrong[0], first[item[wrong[0]]]
        raise DataError(
            f"item {items[item[row]]!r} has two true classes: {classes[truth[before]]!r} in row {before} and "
            f"{classes[truth[row]]!r} in row {row} (counted from 0; {len(np.unique(item[wrong]))} such item(s)). "
            "Keep one for each item, or leave it empty where it is in doubt"
        )
    return np.where(first >= 0, truth[first], -1).astype(np.int32)


def known_truth(table: Any, item: str, truth: str, items: Names, classes: Names) -> np.ndarray | None:
    """`truth_by_item` of a table with two columns, or of a mapping of items to classes."""
    if isinstance(table, Mapping) and not any(map(_is_column, table.values())):
        table = {item: list(table), truth: list(table.values())}
    column = _frame.read(table, item=item)["item"]
    said = incomplete(table, "truth", truth, len(column))
    if said is None:
        return None
    told = Column(item, "item", np.where(said.code >= 0, column.code, -1), column.values)
    code = place(told, items, "items", "If items without labels are wanted, name all with items=[...] in from_frame")
    gold = place(said, classes, "classes", "Name all classes with classes=[...] in from_frame")
    return truth_by_item(code, gold, items, classes)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def record(columns: Mapping[str, Column], annotators: Names, classes: Names) -> np.ndarray:
    """How often each annotator gave each label to items of each true class, shape (annotator, true class, label)."""
    advice = "Leave these rows out, or name all annotators with annotators=[...] in from_frame"
    who = place(columns["annotator"], annotators, "annotators", advice).astype(np.int64)
    advice = "Leave these rows out, or name all classes with classes=[...] in from_frame"
    truth, said = (place(columns[role], classes, "classes", advice) for role in ("truth", "label"))
    number = _frame.counts(columns["count"]).astype(np.float64) if "count" in columns else None
    shape = len(annotators), len(classes), len(classes)
    cell = np.ravel_multi_index((who, truth, said), shape)
    return np.bincount(cell, number, int(np.prod(shape))).reshape(shape).astype(np.float64)


# ------------------------------------------------------------------ features


def feature_array(features: Any, names: Sequence[str] | None, items: Names) -> tuple[np.ndarray, tuple[str, ...]]:
    """Features in the order of the items, shape (item, feature), and their names."""
    if isinstance(features, Mapping) or hasattr(type(features), "columns"):
        raise DataError(
            "say which column names the items: with_features(table, item='item'). Without item= the features are an array, "
            "shape (item, feature), its rows in the order of labels.items"
        )
    if isinstance(features, np.ma.MaskedArray):
        features = np.ma.filled(features.astype(float), np.nan)
    try:
        values = np.asarray(features)
    except ValueError as error:
        raise DataError("the rows of the features differ in length; every item needs a value of every feature") from error
    if values.ndim != 2:
        also = "; for one feature write features[:, None]" if values.ndim == 1 else ""
        raise DataError(
            f"features have {values.ndim} dimension(s) (shape {values.shape}); expected two, (item, feature) = "
            f"({len(items)}, …){also}"
        )
    if len(values) != len(items):
        raise DataError(
            f"features have {len(values)} row(s) and the labels {len(items)} items; expected one row for each item, in the "
            "order of labels.items. To match them by name, give a table and the column with the names: item='...'"
        )
    chosen = tuple(f"x{place + 1}" for place in range(values.shape[1])) if names is None else _feature_names(names)
    if len(chosen) != values.shape[1]:
        raise DataError(f"names= has {len(chosen)} name(s) for {values.shape[1]} feature(s); give one for each column")
    if values.dtype.kind not in "biuf" and chosen:
        values = np.column_stack([_numbers(column, name) for column, name in zip(values.T, chosen, strict=True)])
    return values, chosen


def feature_table(table: Any, item: str, names: Sequence[str] | None, items: Names) -> tuple[np.ndarray, tuple[str, ...]]:
    """Features from the columns of a table, matched to the items by name."""
    if isinstance(table, pd.DataFrame):
        table = table.rename(columns=str)
    column = _frame.read(table, item=item)["item"]
    code = place(column, items, "items", "Leave these rows out, or name all items with items=[...] in from_frame")
    times = np.bincount(code, minlength=len(items))
    if (times > 1).any():
        twice = int(np.argmax(times > 1))
        rows = np.flatnonzero(code == twice)
        raise DataError(
            f"item {items[twice]!r} has {times[twice]} rows of features, the first two in rows {rows[0]} and {rows[1]} "
            f"(counted from 0); {int((times > 1).sum())} such item(s). Keep one row for each item"
        )
    if (times == 0).any():
        lacking = [repr(name) for name, number in zip(items, times, strict=True) if not number]
        raise DataError(
            f"{len(lacking)} of the {len(items)} items have no row in the table of features: {_frame.shorten(lacking)}. "
            "Add a row for each, or leave out their labels before from_frame"
        )
    there, _ = _frame._opened(table, [])
    chosen = tuple(name for name in there if name != item) if names is None else _feature_names(names)
    if unknown := [name for name in chosen if name not in there]:
        _frame.read(table, names=unknown[0])  # says which columns there are
    _, fetch = _frame._opened(table, list(chosen))
    values = [_numbers(_frame._array(fetch(name), name), name) for name in chosen]
    if wrong := [name for name, column_values in zip(chosen, values, strict=True) if len(column_values) != len(column)]:
        raise DataError(f"column {wrong[0]!r} and column {item!r} differ in length; every column needs one value per row")
    return np.column_stack([code, *values])[np.argsort(code), 1:], chosen


def new_items(features: Any, item: str | None, names: Sequence[str]) -> tuple[np.ndarray, Names]:
    """Features of items that are not among the labels, shape (item, feature), and the items' names."""
    if item is None:
        number = len(features) if hasattr(features, "__len__") else 0
        items: Names = tuple(range(number))
        values, _ = feature_array(features, names, items)
    else:
        (_,), items = _frame.encode([_frame.read(features, item=item)["item"]], None, "item")
        values, _ = feature_table(features, item, names, items)
    values = values.astype(np.float64)
    if not (finite := np.isfinite(values)).all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"feature {names[column]!r} of item {items[row]!r} is {values[row, column]} ({int((~finite).sum())} such "
            "value(s)); every item needs a finite number. Fill it in, or leave the item out"
        )
    return values, items


def _feature_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise DataError(f"names= takes a list of names, such as names=['age', 'length'], not {names!r}")
    chosen = tuple(map(str, names))
    if twice := [name for name in chosen if chosen.count(name) > 1]:
        raise DataError(f"{twice[0]!r} comes twice in names=; name each feature once")
    return chosen


def _numbers(values: Any, name: str) -> np.ndarray:
    """A feature as floats, NaN where it is missing."""
    series = pd.Series(values)
    if (kind := pd.api.types.infer_dtype(series, skipna=True)) not in _NUMERIC:
        held = series.dropna()
        raise DataError(
            f"feature {name!r} must hold numbers; it holds {kind} values such as {_frame._shown(held.iloc[0])}. Leave it out "
            f"with names=[...], or turn categories into numbers first: table = pandas.get_dummies(table, columns=[{name!r}])"
        )
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def design(
    values: np.ndarray, names: tuple[str, ...], items: Names, *, table: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A column of ones and the features, centred and scaled; and by what they were. Single precision stays single."""
    if not names:
        raise DataError("there is no feature; give at least one column of numbers (an intercept is added to them)")
    if "intercept" in names:
        raise DataError("a feature is called 'intercept'; raters adds that itself: leave it out, or give it another name")
    dtype = np.float32 if values.dtype in (np.float16, np.float32) else np.float64
    values = values.astype(np.float64)
    if not (finite := np.isfinite(values)).all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"feature {names[column]!r} of item {items[row]!r} is {values[row, column]} ({int((~finite).sum())} such "
            "value(s)); every item needs a finite number. Fill it in, or leave the feature out"
        )
    centre, scale = values.mean(0), values.std(0)
    constant = (values.max(0) == values.min(0)) | (scale == 0)
    if constant.any():
        alike = [repr(name) for name, same in zip(names, constant, strict=True) if same]
        rest = [name for name, same in zip(names, constant, strict=True) if not same]
        line = f"names={rest}" if table else "keep = features.max(0) > features.min(0), and then features[:, keep]"
        raise DataError(
            f"{len(alike)} feature(s) have the same value for all {len(items)} item(s): {_frame.shorten(alike)}; "
            "raters adds an intercept itself. "
            + (f"Leave them out: {line}" if rest else "Give features that differ between items")
        )
    columns = np.concatenate([np.ones((len(values), 1)), (values - centre) / scale], axis=1)
    return columns.astype(dtype), np.append(0.0, centre).astype(dtype), np.append(1.0, scale).astype(dtype)
