"""Steps of reading labels, truths, features and records, and the errors about what they say
together."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import DataError, DataWarning
from raters.judgements.names import (
    Names,
    alike,
    ascii_shown,
    check_ordered,
    encode_names,
    in_order,
    meaning,
    name_list,
    name_text,
    shorten,
    shown,
    warn_of_near,
)
from raters.judgements.reading.columns import (
    Column,
    column_name,
    is_column,
    read_columns,
    read_counts,
)
from raters.judgements.reading.incomplete import incomplete

Repeats = Literal["keep", "drop", "error"]


# ------------------------------------------------------------------ columns


def columns(frame: Any, count: str | None, **required: str) -> dict[str, Column]:
    """The columns of a table of labels, by role; only that of the counts may be left out."""
    named = {role: column_name(role, name) for role, name in required.items()}
    return read_columns(frame, **named, count=count)


def place(
    column: Column, known: Names, plural: str, advice: str, source: str | None = None
) -> Int[np.ndarray, " row"]:
    """The codes of a column, or of a part of another source, among the names known, −1 where it is
    missing."""
    lookup = {name_text(name): code for code, name in enumerate(known)}
    # A missing value has the code −1, and so the last entry.
    table = np.array([*(lookup.get(name_text(value), -1) for value in column.values), -1], np.int32)
    code = table[column.code]
    wrong = (code < 0) & (column.code >= 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        value = column.values[column.code[row]]
        by_lower = {name.lower(): name for name in lookup}
        near = difflib.get_close_matches(name_text(value).lower(), by_lower, n=1)
        hint = f"; did you mean {by_lower[near[0]]!r}?" if near else "."
        raise DataError(
            f"{source or f'column {column.name!r} (for {column.role}=)'} holds"
            f" {len(np.unique(column.code[wrong]))} name(s) that are none of the {plural}"
            f" {shorten(map(repr, known))}: e.g. {value!r} in"
            f" {'row' if source is None else 'entry'} {row} (counted from 0){hint} {advice}",
            parameter=column.role,
            value=column.name,
            problem=(
                f"holds {len(np.unique(column.code[wrong]))} name(s) that are none of the {plural}"
                f" {shorten(map(repr, known))}, e.g. {value!r} in row {row} (counted from 0)"
            ),
            expected=f"correct it, or name it among the {plural}{hint.rstrip('.')}",
        )
    array: np.ndarray = code
    return array


def annotators(
    column: Column, known: Iterable[Any] | None
) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes and names of the annotators; warns of a column that looks like row numbers."""
    (who,), names = encode_names([column], known, "annotator")
    if len(names) > 1000 and len(names) > 0.8 * len(column):
        warnings.warn(
            f"column {column.name!r} holds {len(names):,} different annotators in {len(column):,}"
            " rows, so most gave one label; is it a row number or a time? Give the column that"
            " names who gave the label",
            DataWarning,
            stacklevel=3,
        )
    return who, names


def classes(
    label: Column, truth: Column | None, known: Iterable[Any] | None
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"] | None, Names]:
    """The codes of the labels and of the truths, and the names of all classes."""
    names = _class_names(label, truth, known)
    advice = "Correct it, or name it in classes=[...] as well"
    label_codes = place(label, names, "classes", advice)
    return label_codes, None if truth is None else place(truth, names, "classes", advice), names


def _class_names(label: Column, truth: Column | None, known: Iterable[Any] | None) -> Names:
    """The names of all classes, two or more, each once."""
    groups = [label.values] + ([] if truth is None else [truth.values])
    if known is None:
        _check_truths(*alike(groups))
        names = in_order(alike(groups))
        if len(names) > max(50, len(label) / 2):
            raise DataError(
                f"column {label.name!r} holds {len(names):,} different labels in {len(label):,}"
                f" rows; are these scores or texts? First values: {shorten(names, 3)}. Give a"
                " column of classes, or name them all: classes=[...]",
                parameter="label",
                value=label.name,
                problem=(
                    f"holds {len(names):,} different labels in {len(label):,} rows"
                    f" ({shorten(names, 3)})"
                ),
                expected="give a column of classes, or name all classes",
            )
    else:
        check_ordered(known, "classes")
        listed = name_list(known, "classes", "classes=['no', 'yes']")
        names = tuple(alike([*groups, listed])[-1])
    if len(names) < 2:
        raise DataError(
            f"one class only: {', '.join(map(repr, names)) or 'none'}; a label is a choice between"
            " two or more. Name all classes, also those that nobody said:"
            f" classes=[{''.join(f'{name!r}, ' for name in names)}...]",
            parameter="classes",
            problem=("is not given, and there is" if known is None else "names")
            + f" one class only: {', '.join(map(repr, names)) or 'none'}",
            expected=(
                "a label is a choice between two or more; name all classes, also those that nobody"
                " said"
            ),
        )
    if len(set(names)) < len(names):
        raise DataError(
            parameter="classes",
            value=next(name for name in names if names.count(name) > 1),
            problem="comes twice",
            expected="name each once",
        )
    warn_of_near(names, "classes", stacklevel=5, as_numbers=True)
    return names


def _check_truths(labels: Sequence[Any], truths: Sequence[Any] = ()) -> None:
    """Raise for a true class that nobody said, and that differs by its spelling from a label."""
    by_meaning = {meaning(name_text(name)): name for name in labels}
    for name in set(truths) - set(labels):
        if (meant := by_meaning.get(meaning(name_text(name)))) is not None:
            raise DataError(
                parameter="truth",
                value=name,
                problem=f"is no label, and is spelled nearly as {ascii_shown(name_text(meant))}",
                expected="spell them alike; if they are two classes, name all classes",
                instead=f"classes=[{name!r}, {meant!r}, ...]",
            )


# ------------------------------------------------------------------ what rows say together


def check_repeats(repeats: Any) -> None:
    """`DataError` for what is no policy on repeated labels."""
    if not isinstance(repeats, str) or repeats not in ("keep", "drop", "error"):
        raise DataError(
            f"repeats={repeats!r} is not a policy; write repeats='keep', repeats='drop' or"
            " repeats='error'",
            parameter="repeats",
            value=repeats,
            problem="is not a policy",
            expected="choose 'keep', 'drop' or 'error'",
        )


def settle_repeats(
    codes: Sequence[Int[np.ndarray, " row"]],
    names: Sequence[Names],
    count: Float[np.ndarray, " row"] | None,
    repeats: Repeats,
) -> tuple[Int[np.ndarray, " kept"], Float[np.ndarray, " kept"] | None]:
    """Rows to keep, and their counts."""
    item, who, given = codes
    rows = np.arange(len(item))
    if repeats == "keep":
        return rows, None if count is None or np.all(count == 1) else count
    _, first, pair = np.unique(
        item.astype(np.int64) * len(names[1]) + who, return_index=True, return_inverse=True
    )
    again = first[pair] != rows
    several = np.zeros(len(rows), bool) if count is None else count > 1
    if repeats == "error" and (again | several).any():
        row = int(np.flatnonzero(again | several)[0])
        before = first[pair[row]]
        how = f"{names[2][given[row]]!r} after {names[2][given[before]]!r} in row {before}"
        raise DataError(
            f"in row {row} (counted from 0) annotator {names[1][who[row]]!r} labels item"
            f" {names[0][item[row]]!r} more than once:"
            f" {how if again[row] else 'its count is above 1'} ({int((again | several).sum())} such"
            " row(s)). Write repeats='keep' to count every label, or repeats='drop' to keep the"
            " first",
            parameter="repeats",
            value="error",
            problem=(
                f"does not allow that annotator {names[1][who[row]]!r} labels item"
                f" {names[0][item[row]]!r} more than once, in row {row} (counted from 0;"
                f" {int((again | several).sum())} such row(s))"
            ),
            expected="'keep' counts every label, 'drop' keeps the first",
        )
    return rows[~again], None


def truth_by_item(
    item: Int[np.ndarray, " row"],
    truth: Int[np.ndarray, " row"] | None,
    items: Names,
    classes: Names,
) -> Int[np.ndarray, " item"] | None:
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
            f"item {items[item[row]]!r} has two true classes: {classes[truth[before]]!r} in row"
            f" {before} and {classes[truth[row]]!r} in row {row} (counted from 0;"
            f" {len(np.unique(item[wrong]))} such item(s)). Keep one for each item, or leave it"
            " empty where it is in doubt",
            parameter="truth",
            problem=(
                f"must tell one class for each item: item {items[item[row]]!r} has two true"
                f" classes, {classes[truth[before]]!r} in row {before} and"
                f" {classes[truth[row]]!r} in row {row} (counted from"
                f" 0; {len(np.unique(item[wrong]))} such item(s))"
            ),
            expected="keep one for each item, or leave it empty where it is in doubt",
        )
    return np.where(first >= 0, truth[first], -1).astype(np.int32)


def families(
    who: Int[np.ndarray, " row"], family: Column | None, annotators: Names
) -> tuple[Int[np.ndarray, " annotator"] | None, Names]:
    """The code of the family of each annotator, −1 where no row tells it, and the names."""
    if family is None:
        return None, ()
    (code,), names = encode_names([family], None, "family")
    code = np.where(family.code >= 0, code, -1)
    rows = np.flatnonzero(code >= 0)
    first = np.full(len(annotators), -1)
    first[who[rows[::-1]]] = rows[::-1]  # of several assignments to one place the last stays
    wrong = rows[code[rows] != code[first[who[rows]]]]
    if len(wrong):
        row, before = int(wrong[0]), int(first[who[wrong[0]]])
        raise DataError(
            parameter="family",
            value=family.name,
            problem=(
                f"is not one for each annotator: {annotators[who[row]]!r} has two families,"
                f" {names[code[before]]!r} in row {before} and {names[code[row]]!r} in row {row}"
                f" (counted from 0; {len(np.unique(who[wrong]))} such annotator(s))"
            ),
            expected="keep one for each annotator, or leave it empty",
        )
    return np.where(first >= 0, code[first], -1).astype(np.int32), names


def known_truth(
    table: Any, item: str, truth: str, items: Names, classes: Names
) -> Int[np.ndarray, " item"] | None:
    """`truth_by_item` of a table with two columns, or of a mapping of items to classes."""
    source = None
    if isinstance(table, pd.Series) or (
        isinstance(table, Mapping) and not any(map(is_column, table.values()))
    ):
        roles, pairs = (column_name("item", item), column_name("truth", truth)), list(table.items())
        table = {role: [pair[place] for pair in pairs] for place, role in enumerate(roles)}
        source = "the mapping of items to classes"
    elif not (isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "schema")):
        expected = (
            "give a mapping of items to classes, a pandas.Series, or a table with columns"
            f" {item} and {truth}{'; read the file first' if isinstance(table, str) else ''}"
        )
        # The parameter is called otherwise where the truths are those of an audit.
        raise DataError(
            f'{shown(table)} is no set of known classes; {expected}, such as {{"page 1": "spam"}}',
            parameter="known",
            value=table,
            problem="is no set of known classes",
            expected=expected,
        )
    column = read_columns(table, item=column_name("item", item))["item"]
    truths = incomplete(table, "truth", truth, len(column))
    if truths is None:
        return None
    items_with_truth = Column(
        item, "item", np.where(truths.code >= 0, column.code, -1), column.values
    )
    advice = "Leave them out, or name all items with items=[...] in from_frame"
    code = place(items_with_truth, items, "items", advice, source)
    advice = "Name all classes with classes=[...] in from_frame"
    gold = place(truths, classes, "classes", advice, source)
    return truth_by_item(code, gold, items, classes)


def record(
    columns: Mapping[str, Column], annotators: Names, classes: Names
) -> Float[np.ndarray, "annotator true_class label"]:
    """Number of times that each annotator gave each label to items of each true class, shape
    (annotator, true class, label)."""
    advice = "Leave these rows out, or name all annotators with annotators=[...] in from_frame"
    who = place(columns["annotator"], annotators, "annotators", advice).astype(np.int64)
    advice = "Leave these rows out, or name all classes with classes=[...] in from_frame"
    truth, given = (place(columns[role], classes, "classes", advice) for role in ("truth", "label"))
    number = read_counts(columns["count"]).astype(np.float64) if "count" in columns else None
    shape = len(annotators), len(classes), len(classes)
    cell = np.ravel_multi_index((who, truth, given), shape)
    return np.bincount(cell, number, int(np.prod(shape))).reshape(shape).astype(np.float64)
