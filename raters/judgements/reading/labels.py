"""Steps of reading labels, truths, features and records, and the errors about what they say
together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import refuse_data
from raters.judgements.names import (
    Names,
    alike,
    ascii_shown,
    check_once,
    check_ordered,
    encode_names,
    in_order,
    meaning,
    name_list,
    name_text,
    shorten,
    warn_data,
    warn_of_near,
)
from raters.judgements.reading.columns import (
    Column,
    column_name,
    did_you_mean,
    is_column,
    one_each,
    read_columns,
    read_counts,
    repeated,
    where,
)

Repeats = Literal["keep", "drop", "error"]


# ------------------------------------------------------------------ columns


def place(column: Column, known: Names, plural: str, advice: str) -> Int[np.ndarray, " row"]:
    """The codes of a column among the names known, −1 where it is empty."""
    lookup = {name_text(name): code for code, name in enumerate(known)}
    table = np.array([*(lookup.get(name_text(value), -1) for value in column.values), -1], np.int32)
    code: np.ndarray = table[column.code]
    wrong = (code < 0) & (column.code >= 0)
    if wrong.any():
        value = column.values[column.code[np.argmax(wrong)]]
        column.refuse(
            f"holds {value!r} in {where(wrong)}, which is none of the {plural}"
            f" {shorten(map(repr, known))}",
            f"{advice}{did_you_mean(name_text(value), lookup)}",
        )
    return code


def annotators(
    column: Column | None, known: Iterable[Any] | None, rows: int, once: str = ""
) -> tuple[Int[np.ndarray, " row"], Names]:
    """Codes and names of the annotators; without a column all rows are by one of the name ``all``.
    Warns of a column that looks like row numbers, where most would have judged once."""
    if column is None:
        if known is not None:
            refuse_data(
                "annotator",
                problem="is not given, and a list of annotators is",
                expected="say which column holds those names",
            )
        return np.zeros(rows, np.int32), ("all",)
    (who,), names = encode_names([column], known, "annotator")
    if once and len(names) > 1000 and len(names) > 0.8 * rows:
        warn_data(
            f"column {column.name!r} holds {len(names):,} different annotators in {rows:,} rows, so"
            f" most {once}; is it a row number or a time? Give the column that names who judged"
        )
    return who, names


def classes(
    label: Column, truth: Column | None, known: Iterable[Any] | None
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"] | None, Names]:
    """Codes of the labels and of the truths, and the names of all classes, two or more."""
    groups = [label.values] + ([] if truth is None else [truth.values])
    if known is None:
        _check_truths(*alike(groups))
        names = in_order(alike(groups))
        if len(names) > max(50, len(label) / 2):
            label.refuse(
                f"holds {len(names):,} different labels in {len(label):,} rows"
                f" ({shorten(names, 3)})",
                "give a column of classes, or name all classes",
            )
    else:
        check_ordered(known, "classes")
        listed = name_list(known, "classes", "classes=['no', 'yes']")
        names = tuple(alike([*groups, listed])[-1])
    if len(names) < 2:
        refuse_data(
            "classes",
            problem=f"are one only: {', '.join(map(repr, names)) or 'none'}",
            expected="a label is a choice between two or more; name all classes, also those that"
            " nobody said",
        )
    check_once(names, "classes")
    warn_of_near(names, "classes", as_numbers=True)
    advice = "correct it, or name it in `classes` as well"
    label_codes = place(label, names, "classes", advice)
    return label_codes, None if truth is None else place(truth, names, "classes", advice), names


def _check_truths(labels: Sequence[Any], truths: Sequence[Any] = ()) -> None:
    """Raise for a true class that nobody said, and that differs by its spelling from a label."""
    by_meaning = {meaning(name_text(name)): name for name in labels}
    for name in set(truths) - set(labels):
        if (meant := by_meaning.get(meaning(name_text(name)))) is not None:
            refuse_data(
                "truth",
                name,
                f"is no label, and is spelled nearly as {ascii_shown(name_text(meant))}",
                "spell them alike; if they are two classes, name all classes",
                instead=f"classes=[{name!r}, {meant!r}, ...]",
            )


# ------------------------------------------------------------------ what rows say together


def settle_repeats(
    codes: Sequence[Int[np.ndarray, " row"]],
    names: Sequence[Names],
    count: Float[np.ndarray, " row"] | None,
    repeats: Repeats,
) -> tuple[Int[np.ndarray, " kept"], Float[np.ndarray, " kept"] | None]:
    """Rows to keep, and their counts."""
    item, who = codes
    rows = np.arange(len(item))
    if repeats == "keep":
        return rows, None if count is None or np.all(count == 1) else count
    again = repeated(item, who)
    several = again if count is None else again | (count > 1)
    if repeats == "error" and several.any():
        row = int(np.argmax(several))
        refuse_data(
            "repeats",
            "error",
            f"does not allow that annotator {names[1][who[row]]!r} labels item"
            f" {names[0][item[row]]!r} more than once, in {where(several)}",
            "'keep' counts every label, 'drop' keeps the first",
        )
    return rows[~again], None


def families(
    who: Int[np.ndarray, " row"], family: Column | None, annotators: Names
) -> tuple[Int[np.ndarray, " annotator"] | None, Names]:
    """The code of the family of each annotator, −1 where no row tells it, and the names."""
    if family is None or not family.values:
        return None, ()
    (code,), names = encode_names([family], None, "family")
    return one_each(who, family, code, annotators).astype(np.int32), names


def known_truth(
    table: Any, item: str, truth: str, items: Names, classes: Names
) -> Int[np.ndarray, " item"] | None:
    """The true class of each item, −1 where it is unknown, of a table with two columns or of a
    mapping of items to classes."""
    roles = {"item": column_name("item", item), "truth": column_name("truth", truth)}
    if isinstance(table, pd.Series) or (
        isinstance(table, Mapping) and not any(map(is_column, table.values()))
    ):
        pairs = list(table.items())
        table = {name: [pair[end] for pair in pairs] for end, name in enumerate((item, truth))}
    elif not (isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "schema")):
        # The parameter is called otherwise where the truths are those of an audit.
        refuse_data(
            "known",
            table,
            "is no set of known classes",
            f"give a mapping of items to classes, or a table with columns {item} and {truth}",
            instead="{'page 1': 'spam'}",
        )
    columns = read_columns(table, empty=("truth",), **roles)
    gold = columns["truth"]
    if not gold.values:
        return None
    named = columns["item"].only(gold.code >= 0)
    code = place(named, items, "items", "leave them out, or name all items when labels are read")
    true = place(gold, classes, "classes", "name all classes when labels are read")
    return one_each(code, gold, true, items)


def record(
    columns: Mapping[str, Column], annotators: Names, classes: Names
) -> Float[np.ndarray, "annotator true_class label"]:
    """Number of times that each annotator gave each label to items of each true class, shape
    (annotator, true class, label)."""
    advice = "leave these rows out, or name all of them when labels are read"
    who = place(columns["annotator"], annotators, "annotators", advice).astype(np.int64)
    truth, given = (place(columns[role], classes, "classes", advice) for role in ("truth", "label"))
    number = read_counts(columns["count"]).astype(np.float64) if "count" in columns else None
    shape = len(annotators), len(classes), len(classes)
    cell = np.ravel_multi_index((who, truth, given), shape)
    return np.bincount(cell, number, int(np.prod(shape))).reshape(shape).astype(np.float64)
