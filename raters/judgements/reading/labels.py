"""Steps of reading labels, truths, features and records, and the errors about what they say
together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import refuse_data
from raters.judgements.counts import Codes, Numbers
from raters.judgements.names import (
    Names,
    alike,
    ascii_shown,
    check_once,
    check_ordered,
    in_order,
    meaning,
    name_list,
    name_text,
    shorten,
    warn_of_near,
)
from raters.judgements.reading.columns import (
    Column,
    Columns,
    did_you_mean,
    is_column,
    one_each,
    read_columns,
    repeated,
    where,
)

Repeats = Literal["keep", "drop", "error"]


# ------------------------------------------------------------------ columns


def place(column: Column, known: Names, plural: str, advice: str) -> Codes:
    """The codes of a column among the names known, −1 where it is empty."""
    lookup = {name_text(name): code for code, name in enumerate(known)}
    table = np.array([*(lookup.get(name_text(value), -1) for value in column.values), -1], np.int32)
    code: np.ndarray = table[column.code]
    wrong = (code < 0) & (column.code >= 0)
    if wrong.any():
        near = did_you_mean(name_text(column.values[column.code[np.argmax(wrong)]]), lookup)
        why = f", which is none of the {plural} {shorten(map(repr, known))}"
        column.refuse_rows(wrong, f"{advice}{near}", why=why)
    return code


def classes(
    label: Column, truth: Column | None, known: Iterable[Any] | None
) -> tuple[Codes, Codes | None, Names]:
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
    codes: Sequence[Codes], names: Sequence[Names], count: Numbers | None, repeats: Repeats
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


def known_truth(
    table: Any, item: str, truth: str, items: Names, classes: Names
) -> Int[np.ndarray, " item"] | None:
    """The true class of each item, −1 where it is unknown, of a table with two columns or of a
    mapping of items to classes."""
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
    columns = read_columns(table, {"item": item, "truth": truth}, empty=("truth",))
    gold = columns["truth"]
    if not gold.values:
        return None
    named = columns["item"].only(gold.code >= 0)
    code = place(named, items, "items", "leave them out, or name all items when labels are read")
    true = place(gold, classes, "classes", "name all classes when labels are read")
    return one_each(code, gold, true, items)


def record(
    columns: Columns, annotators: Names, classes: Names
) -> Float[np.ndarray, "annotator true_class label"]:
    """Number of times that each annotator gave each label to items of each true class, shape
    (annotator, true class, label)."""
    advice = "leave these rows out, or name all of them when labels are read"
    who = place(columns["annotator"], annotators, "annotators", advice).astype(np.int64)
    truth, given = (place(columns[role], classes, "classes", advice) for role in ("truth", "label"))
    shape = len(annotators), len(classes), len(classes)
    cell = np.ravel_multi_index((who, truth, given), shape)
    number = np.bincount(cell, columns.counts(), int(np.prod(shape))).astype(np.float64)
    return number.reshape(shape)
