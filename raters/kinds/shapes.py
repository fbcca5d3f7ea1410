"""Readers of tables, chosen by the roles of columns that are named, or by usual names."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_list
from raters.judgements.names import plural, shorten
from raters.judgements.reading.answers import Table
from raters.kinds import Kind, Reader

# Usual names of the column of those who judge; a person who answers items is no annotator.
_JUDGES = ("annotator", "worker", "judge", "rater")
# Roles of who judged and of what was said, as exports have them whatever the kind.
_SAID = ("label", "rating")


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


def roles_of(*functions: Callable[..., Any]) -> dict[str, Role]:
    """Keyword-only parameters of readers that a person can give."""
    roles = {}
    for function in functions:
        for one in inspect.signature(function, eval_str=True).parameters.values():
            role = Role(one.annotation, one.default)
            listed = role.origin in ("Sequence", "Mapping", "Iterable", "Literal")
            if one.kind is one.KEYWORD_ONLY and (
                listed or role.part in (str, int, float, bool, pd.DataFrame)
            ):
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
        """Roles of the reader, and of the steps that follow."""
        return roles_of(*self.reader.steps, self.reader.read)

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
        for name, role in roles_of(shape.reader.read).items()
        if name in by_lower and by_lower[name] not in used and role.is_column
        if name not in (*others, *given, shape.judge) and role.default is None
    }


def usable_rows(
    table: pd.DataFrame, shape: Shape, columns: Mapping[str, Any], drop: bool, notes: list[str]
) -> pd.DataFrame:
    """Rows that hold a judgement, with a note on those that do not."""
    table, reader, used = table.reset_index(drop=True), shape.reader, list[str]()
    for role, listed in columns.items():
        if role in roles_of(reader.read) and role not in reader.may_be_empty:
            used += [name for name in (listed if is_list(listed) else [listed]) if name in table]
    bad = (table[used].isna() | (table[used] == "")).any(axis=1).to_numpy(bool)
    reason = "a missing value"
    if reader.bad_rows is not None:
        single = {role: name for role, name in columns.items() if isinstance(name, str)}
        why, wrong = reader.bad_rows(table, single)
        reason += f" or {why}" if (wrong & ~bad).any() else ""
        bad = bad | wrong
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
