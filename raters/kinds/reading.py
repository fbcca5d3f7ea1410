"""From what people have to judgements: one way for Python and for the command line."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_list, nearest, one_of
from raters.judgements import scanned
from raters.judgements.base import Judgements
from raters.judgements.display import Tabled
from raters.judgements.labels import Repeats
from raters.judgements.names import counted, plural, shorten, shown, warn_data
from raters.judgements.reading.answers import Table, no_question
from raters.judgements.reading.exports import recognised
from raters.judgements.reading.files import as_table, content_of, is_large, nested, several
from raters.judgements.reading.wide import wide
from raters.kinds import Kind, Reader, kind_named, kind_of, registered_kinds

__all__ = ["Reading", "read"]

# Rows of a large file that its form is recognised by.
_FIRST = 1000
# Of fewer different rows it is no surprise that all stand equally often.
_FEW = 10


# Usual names of the column of those who judge; a person who answers items is no annotator.
_JUDGES = ("annotator", "worker", "judge", "rater")
# Roles of who judged and of what was said, as exports have them whatever the kind.
_SAID = ("label", "rating")
# Roles of what is compared, of which two are read.
_SIDES = ("winner", "loser", "first", "second")


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
            if name in table and nested(table[[name]]):
                refuse_data(role, name, "holds lists or objects", "a cell must hold one value")
    table = usable_rows(table, shape, columns, drop, notes)
    table = _settled(table, shape, columns, repeats, notes)
    values = {**own, **implied, **{name: values[name] for name in values if name not in own}}
    values |= {} if repeats is None else {"repeats": repeats}
    roles = shape.roles
    data = shape.reader.read(table, **{name: values[name] for name in values if name in roles})
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


# ---------------------------------------------------------------- roles, and shapes of tables


class Role(NamedTuple):
    """A column or a setting that readers take: keyword parameter of one of their functions."""

    annotation: Any
    default: Any

    @property
    def part(self) -> Any:
        """The annotation without None."""
        return next(one for one in alternatives(self.annotation) if one is not type(None))

    @property
    def origin(self) -> str:
        """Name of the collection that it takes; empty for a single value."""
        return getattr(getattr(self.part, "__origin__", None), "__name__", "")

    @property
    def is_column(self) -> bool:
        """True for the name of a column, or of several."""
        return self.part is str or self.origin == "Sequence"


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Members of a union; the annotation alone where it is none."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def roles_of(function: Callable[..., Any]) -> dict[str, Role]:
    """Keyword-only parameters of a reader that a person can give."""
    roles = {}
    for one in inspect.signature(function, eval_str=True).parameters.values():
        role = Role(one.annotation, one.default)
        listed = role.origin in ("Sequence", "Mapping", "Iterable", "Literal")
        plain = listed or role.part in (str, int, float, bool, pd.DataFrame)
        if one.kind is one.KEYWORD_ONLY and plain:
            roles[one.name] = role
    return roles


@dataclass(frozen=True)
class Shape:
    """Roles that a table must have to be read by one reader of a kind."""

    kind: Kind
    reader: Reader
    required: tuple[str, ...]

    @property
    def roles(self) -> dict[str, Role]:
        """Roles of the reader."""
        return roles_of(self.reader.read)

    @property
    def judge(self) -> str:
        """Role of those who judge; empty where the reader has none."""
        return self.kind.data.judge if self.kind.data.judge in self.roles else ""

    def columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the values that name columns, by role."""
        roles = self.roles
        return {name: value for name, value in values.items() if roles[name].is_column}


def shapes_of(kinds: Iterable[Kind], wanted: Iterable[Kind] = ()) -> list[Shape]:
    """Shapes of table that these kinds can be read from, those of the kinds wanted in front."""
    wanted, shapes = list(wanted), []
    for kind in sorted(kinds, key=lambda kind: kind not in wanted):
        for reader in kind.readers:
            if reader.on_request and kind not in wanted:
                continue
            roles, empty = roles_of(reader.read), inspect.Parameter.empty
            needed = tuple(name for name, role in roles.items() if role.default is empty)
            shapes += [Shape(kind, reader, required) for required in reader.shapes or (needed,)]
    return shapes


def shape_of(
    table: Table, shapes: Sequence[Shape], given: Mapping[str, Any]
) -> tuple[Shape, Mapping[str, Any]]:
    """The shape that the roles given describe, together with those of a table that was recognised,
    or the only one whose roles are columns; and the roles of the table that it takes."""
    if table.roles and not any(set(shape.required) <= set(given) for shape in shapes):
        as_another = [(shape, _in_words_of(shape, table.roles)) for shape in shapes]
        for shape, roles in [*((shape, table.roles) for shape in shapes), *as_another]:
            own = {name: value for name, value in roles.items() if name not in given}
            if set(shape.required) <= {*own, *given} and {*own, *given} <= set(shape.roles):
                return shape, own
        known = {*table.roles, *given}
        near = max(shapes, key=lambda shape: (len(known & {*shape.required}), -len(shape.required)))
        lacking = _quoted(role for role in near.required if role not in known)
        problem = f"is {table.form}, and does not say what to read as {near.kind.words.many}"
        refuse_data("table", problem=problem, expected=f"name {lacking}; it has {_shown(table)}")
    judges = {shape.judge for shape in shapes}
    if {name for shape in shapes for name in shape.required} & set(given) - judges:
        whole = [one for one in shapes if set(one.required) <= set(given)]
        whole.sort(key=lambda shape: -len(shape.required))
        possible = [one for one in whole if set(given) <= set(one.roles)]
        if whole and not possible:
            extra = min(set(given) - set(whole[0].roles))
            problem = f"does not go with {_quoted(whole[0].required)}"
            refuse(extra, given[extra], problem, "leave it out")
        problem = f"are not wholly described by {_quoted(given)}"
    else:
        possible = [one for one in shapes if usual_roles(one, given, table.names) is not None]
        problem = "are no usual names"
        if len(possible) > 1:
            possible, problem = [], "can be read in several ways"
    if not possible:
        some = dict.fromkeys(_quoted(shape.required) for shape in shapes)
        expected = f"say which columns to read: {', or '.join(some)}"
        refuse_data("table", problem=f"has {_shown(table)}; they {problem}", expected=expected)
    return possible[0], {}


def _in_words_of(shape: Shape, roles: Mapping[str, Any]) -> dict[str, Any]:
    """Roles of who judged, and of what was said, in the words of another kind."""
    words = {"annotator": shape.judge} | dict.fromkeys(_SAID, shape.kind.data.answer)
    return {words.get(name, name): value for name, value in roles.items()}


def _quoted(roles: Iterable[str]) -> str:
    """Roles in backquotes, which each front end words in its own way."""
    return " ".join(f"`{role}`" for role in roles)


def _shown(table: Table) -> str:
    """Columns of a table, and its first row, shortened."""
    frame = table.frame
    cells = [str(cell)[:20] for cell in frame.iloc[0]] if len(frame) else []
    return f"the columns {shorten(table.names, 12)} (first row: {shorten(cells, 12) or 'none'})"


def usual_roles(
    shape: Shape, given: Mapping[str, Any], names: Sequence[str]
) -> dict[str, str] | None:
    """Columns of the required roles and of the judge by their usual names; None without them."""
    by_lower, roles = {name.lower(): name for name in names}, dict[str, str]()
    for role in dict.fromkeys((*shape.required, shape.judge)):
        if not role or role in given:
            continue
        words = _JUDGES if role == shape.judge and role in _JUDGES else ()
        columns = [by_lower[word] for word in dict.fromkeys((role, *words)) if word in by_lower]
        if len(columns) > 1:
            problem = f"may be each of the columns {columns}"
            refuse_data(role, problem=problem, expected="name the one that says who judged")
        if columns and shape.roles[role].part is str:
            roles[role] = columns[0]
        elif role in shape.required:
            return None
    return roles if shape.required else None


def beside(shape: Shape, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Columns that have the names of optional roles, such as ``count``, and are in no role."""
    by_lower = {name.lower(): name for name in names}
    others = {role for roles in (shape.required, *shape.reader.shapes) for role in roles}
    used = [one for value in given.values() for one in (value if is_list(value) else [value])]
    return {
        name: by_lower[name]
        for name, role in shape.roles.items()
        if name in by_lower and by_lower[name] not in used and role.is_column
        if name not in (*others, *given, shape.judge) and role.default is None
    }


def usable_rows(
    table: pd.DataFrame, shape: Shape, columns: Mapping[str, Any], drop: bool, notes: list[str]
) -> pd.DataFrame:
    """Rows that hold a judgement, with a note on those that do not."""
    table, reader, used = table.reset_index(drop=True), shape.reader, list[str]()
    for role, listed in columns.items():
        if role not in reader.may_be_empty:
            used += [name for name in (listed if is_list(listed) else [listed]) if name in table]
    bad = (table[used].isna() | (table[used] == "")).any(axis=1).to_numpy(bool)
    reason = "a missing value"
    sides = [columns[role] for role in _SIDES if role in columns]
    if len(sides) == 2 and {*sides} <= {*table}:
        one, other = (table[side].astype(str).to_numpy() for side in sides)
        reason += " or an item compared with itself" if ((one == other) & ~bad).any() else ""
        bad = bad | (one == other)
    if not bad.any():
        return table
    if not drop:
        what = f"{plural(reader.part_of)} with such rows" if reader.part_of else "such rows"
        problem = (
            f"has {reason} in data row {int(np.flatnonzero(bad)[0]) + 1} ({int(bad.sum())} such"
            f" row(s), columns {', '.join(used)})"
        )
        expected = f"correct it, or leave {what} out with `drop_bad_rows`"
        refuse_data("table", problem=problem, expected=expected, instead="drop_bad_rows=True")
    if reader.part_of:
        of = table[columns[reader.part_of]]
        bad = bad | of.isin(of[bad & of.notna()]).to_numpy(bool)
    notes.append(f"left out {int(bad.sum())} of {len(table)} rows with {reason}")
    return table[~bad]
