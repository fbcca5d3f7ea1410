"""From what people have to judgements: one way for Python and for the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_list, nearest, one_of
from raters.judgements import scanned
from raters.judgements.base import Judgements
from raters.judgements.display import Tabled
from raters.judgements.labels import Repeats
from raters.judgements.names import counted, plural, shown, warn_data
from raters.judgements.reading.answers import Table, no_question
from raters.judgements.reading.exports import recognised
from raters.judgements.reading.files import (
    as_table,
    content_of,
    is_large,
    is_nested,
    nested,
    several,
)
from raters.judgements.reading.wide import wide
from raters.kinds import Kind, kind_named, kind_of, registered_kinds
from raters.kinds.shapes import (
    Shape,
    beside,
    roles_of,
    shape_of,
    shapes_of,
    usable_rows,
    usual_roles,
)

__all__ = ["Reading", "read"]

# Rows of a large file that its form is recognised by.
_FIRST = 1000
# Of fewer different rows it is no surprise that all stand equally often.
_FEW = 10


@dataclass(frozen=True)
class Reading(Tabled):
    """Judgements as they were read, and how.

    Attributes
    ----------
    judgements : Judgements
    gold : pandas.DataFrame or None
        Known truths beside them, for ``raters.audit(..., gold=)``.
    form : str
        What was recognised; empty for a plain table.
    roles : mapping
        Columns and settings that were read, by role: those that another call may correct.
    notes : tuple of str
        What was left out or not read.
    """

    judgements: Judgements
    gold: pd.DataFrame | None = None
    form: str = ""
    roles: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        read = [f"{role}={value!r}" for role, value in self.roles.items() if isinstance(value, str)]
        return "; ".join([self.summary, *self.worded_notes(str), f"read by {', '.join(read)}"])

    __repr__ = __str__

    def _head(self) -> pd.DataFrame:
        return self.judgements._head()

    @property
    def summary(self) -> str:
        """Form that was recognised, and numbers of judgements and of names."""
        data, words = self.judgements, kind_of(self.judgements).words
        axes = [axis for axis in ("item", data.judge) if axis in data.names]
        numbers = [counted(data.num_judgements, words.one, words.many)]
        numbers += [counted(len(data.coords[axis]), axis, plural(axis)) for axis in axes]
        gold = [] if self.gold is None else [f"gold: {counted(len(self.gold), 'known truth')}"]
        return "; ".join([f"{self.form or 'table'}: {', '.join(numbers)}", *gold])

    def worded_notes(self, name_of: Callable[[str], str]) -> list[str]:
        """The notes, with the names that a front end has for roles."""
        return [re.sub(r"`(\w+)`", lambda match: name_of(match[1]), note) for note in self.notes]


def read(
    table: Any,
    *,
    kind: str | Kind | None = None,
    control: str | None = None,
    repeats: Repeats | None = None,
    drop_bad_rows: bool = False,
    **roles: Any,
) -> Reading:
    """Read judgements from what people have: a file, the export of a tool, or a table.

    What it holds is recognised by its content: exports of Label Studio (JSON, JSON-MIN, CSV),
    Argilla 2 (records, or rows of a Hugging Face dataset), doccano, Prodigy, Mechanical Turk and
    inspect_ai, votes of arenas (also of MT-bench and LMSYS), tables whose columns have the usual
    names (``item``, ``annotator``, ``label``, ``winner``, ...), tables with a column for each
    annotator, and tables whose cells are lists. Spans, boxes and texts are not read.

    Parameters
    ----------
    table : path, list of paths, data frame, or content of JSON
        Files are .csv, .tsv, .json, .jsonl (each also .gz), .parquet and .xlsx (by openpyxl), a
        folder or a .zip of JSON files (one for each annotator of doccano), or a folder of Parquet.
    kind : str or Kind, optional
        Kind of judgement, such as ``"ratings"``, where columns can be read in several ways.
    control : str, optional
        Of an export with several questions, the one to read. Where answers have several choices,
        items are choices for items, ``"12=sport"``, with the labels yes and no, and the choices are
        features: `raters.Raykar` learns how often each is right, and confusion matrices that hold
        for all. ``"topics=sport"`` reads whether that one was chosen.
    repeats : {"keep", "drop", "error"}, optional
        What to do with rows that repeat an earlier one: count each, count the first, or refuse the
        table. Labels, ratings and responses repeat the item and whoever answered, other judgements
        all columns of the table. Without it each counts, with a warning of rows that look like
        copies.
    drop_bad_rows : bool
        Leave out rows without a judgement.
    **roles
        Columns, and settings of the reader of the kind (``from_frame`` of its container), in place
        of those that were recognised: ``annotator="judge"``, ``ties="keep"``.

    Returns
    -------
    raters.kinds.reading.Reading
        With ``judgements``, ``gold`` (known truths of the export, or None), and a sentence that
        says what was understood.

    Raises
    ------
    DataError
        When the content is nothing that is known, with what was found and what is missing; and for
        values that the reader refuses.

    Examples
    --------
    >>> import raters as rt
    >>> tasks = [
    ...     {"id": 1, "data": {"text": "Great!"}, "annotations": [
    ...         {"completed_by": who, "result": [{"from_name": "mood", "type": "choices",
    ...                                           "value": {"choices": [mood]}}]}
    ...         for who, mood in [(1, "good"), (2, "bad"), (3, "good")]]}]
    >>> export = rt.read(tasks)
    >>> export.summary
    "Label Studio JSON, question 'mood' (choice): 3 labels, 1 item, 3 annotators"
    >>> export.judgements.classes
    ('bad', 'good')
    """
    if kind is not None and not isinstance(kind, Kind):
        kind = kind_named(kind)
    kinds = registered_kinds() if kind is None else (kind,)
    shapes = shapes_of(kinds, kinds if kind else ())
    known = {name for shape in shapes for name in shape.roles}
    for name in roles:
        if name not in known:
            near = nearest(name, known)
            expected = f"did you mean {near!r}?" if near else f"use {', '.join(sorted(known))}"
            refuse(name, roles[name], "is no role of a column, nor a setting", expected)
    source = opened(table, shapes, roles, control)
    shape, own = shape_of(source, shapes, roles)
    return read_as(shape, source, own, roles, drop=drop_bad_rows, repeats=repeats)


def opened(
    source: Any, shapes: Sequence[Shape], given: Collection[str], control: str | None = None
) -> Table:
    """Table of a source: a path, or several, content of JSON, or any table."""
    listed = isinstance(source, (list, tuple)) and bool(source)
    if listed and all(isinstance(one, (str, Path)) for one in source):
        source = several([Path(one) for one in source])
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is not None and is_large(path):
        data = scanned.opened(path)
        head = data.head(_FIRST).to_pandas()
        table = recognised(head, control) or Table(head)
        if table.frame is head:
            return replace(table, path=path)
        source, path = data.to_table().to_pandas(integer_object_nulls=True), None
    content = _in_memory(source) if path is None else content_of(path)
    if (known := recognised(content, control)) is not None:
        return known
    no_question(control)
    if (frame := as_table(content)) is None:
        where = "" if path is None else f" of {str(path)!r}"
        problem = f"holds {shown(content)}{where}, which is no table, nor an export that is known"
        expected = "give rows with a column for each role, or the export as its tool wrote it"
        refuse_data("table", problem=problem, expected=expected)
    plain = Table(frame.rename(columns=str))
    if given or any(usual_roles(shape, {}, plain.names) for shape in shapes):
        return plain
    return wide(frame) or plain


def _in_memory(source: Any) -> Any:
    """Content of JSON as it is, and a table of any library as that of pandas."""
    if isinstance(source, (pd.DataFrame, dict, list)):
        return source
    if isinstance(source, np.ndarray) and source.dtype.names:
        return pd.DataFrame(source)
    if hasattr(source, "to_pandas") and hasattr(source, "features"):  # of Hugging Face datasets
        return source.to_pandas()
    try:
        frame = nw.from_native(source, allow_series=False)
    except TypeError:
        expected = "give a path, a table, or the content of an export"
        refuse_data("table", shown(source), "is nothing that can be read", expected)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return frame.to_arrow().to_pandas(integer_object_nulls=True)


def read_as(
    shape: Shape,
    source: Table,
    own: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    implied: Mapping[str, Any] = {},
    drop: bool = False,
    repeats: Repeats | None = None,
) -> Reading:
    """Judgements of a table in a shape, by the roles of its own and those that a person gave."""
    values, notes = {**own, **given}, list(source.notes)
    if set(shape.required) <= set(values):
        for name, column in beside(shape, values, source.names).items():
            notes.append(f"the column {column!r} is not read; to read it, name it by `{name}`")
    else:
        values = (usual_roles(shape, values, source.names) or {}) | values
        values = beside(shape, values, source.names) | values
    notes += [shape.reader.on_request] * bool(shape.reader.on_request)
    read_by = {**values}
    table = _rows(shape, source, values, notes, repeats)
    columns = shape.columns(values)
    for role, listed in columns.items():
        for name in listed if is_list(listed) else [listed]:
            if name in table and table[name].dtype == object and any(map(is_nested, table[name])):
                refuse_data(role, name, "holds lists or objects", "a cell must hold one value")
    table = usable_rows(table, shape, columns, drop, notes)
    table = _settled(table, shape, columns, repeats, notes)
    values = {**own, **implied, **{name: values[name] for name in values if name not in own}}
    values |= {} if repeats is None else {"repeats": repeats}

    def accepted(function: Callable[..., Any]) -> dict[str, Any]:
        return {name: values[name] for name in values if name in roles_of(function)}

    reader = shape.reader
    data = reader.read(table, **accepted(reader.read))
    for step in reader.steps:
        data = step(data, table, **accepted(step))
    return Reading(data, source.gold, source.form, read_by, tuple(notes))


def _rows(
    shape: Shape, source: Table, values: dict[str, Any], notes: list[str], repeats: Repeats | None
) -> pd.DataFrame:
    """The rows of a table; of a large file, equal ones together with their number."""
    kind, columns = shape.kind.data, shape.columns(values)
    if source.path is None:
        return source.frame
    if (
        not hasattr(kind, "scan")
        or shape.reader.read != kind.from_frame  # type: ignore[attr-defined]
        or not all(isinstance(name, str) for name in columns.values())
        or repeats not in (None, "keep")
    ):
        return scanned.opened(source.path).to_table().to_pandas(integer_object_nulls=True)
    keys = {role: name for role, name in columns.items() if role != "count"}
    table = scanned.grouped(source.path, keys, values.get("count"))
    values["count"] = table.columns[-1]
    number = scanned.opened(source.path).count_rows()
    notes.append(f"{number:,} rows, of which {len(table):,} are different")
    return table


# ---------------------------------------------------------------- rows that stand twice


def _settled(
    table: pd.DataFrame,
    shape: Shape,
    columns: Mapping[str, Any],
    repeats: Repeats | None,
    notes: list[str],
) -> pd.DataFrame:
    """The rows without those that repeat an earlier one, where `repeats` says so; a warning of
    them where it says nothing."""
    if repeats is not None:
        one_of("repeats", repeats, get_args(Repeats))
    roles = ["item", shape.judge, shape.kind.data.answer]
    names = [columns.get(role) for role in roles]
    are_answers = all(isinstance(name, str) and name in table for name in names)
    # Further columns, such as a time, tell rows apart, unless it is said what repeats.
    further = [] if repeats else [name for name in columns.get("columns", ()) if name in table]
    plain = table[[*names, *further]] if are_answers else table.drop(columns=nested(table))
    number = 2 if repeats else 3  # those of another answer repeat as well, where that is asked
    again = plain.duplicated([*names[:number], *further] if are_answers else None)
    about = f"the same {' and '.join(roles[:number])}" if are_answers else "in every column"
    if repeats is None and again.any() and (are_answers or _are_copies(plain)):
        warn_data(
            f"{int(again.sum()):,} of {len(table):,} rows repeat an earlier one ({about}): as"
            " answers of their own they narrow the intervals; where they are copies, set repeats"
            " to drop, and otherwise to keep"
        )
    if repeats in (None, "keep") or not again.any():
        return table
    if repeats == "error":
        row = int(np.argmax(again)) + 1
        problem = f"does not allow data row {row}, which repeats an earlier one ({about})"
        refuse_data("repeats", "error", problem, "'keep' counts each row, 'drop' the first")
    notes.append(f"left out {int(again.sum()):,} rows that repeat an earlier one")
    return table[~again]


def _are_copies(table: pd.DataFrame) -> bool:
    """True for rows that stand twice though some column tells them apart, or all equally often:
    the same vote on two questions is no copy."""
    numbers = table.value_counts(dropna=False, sort=False).to_numpy()
    distinct = table.drop_duplicates()
    named = any(distinct[name].is_unique for name in distinct)
    return len(distinct) >= _FEW and (named or np.gcd.reduce(numbers) > 1)
