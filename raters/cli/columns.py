"""From a table, and options that name its columns, to judgements."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from raters.cli import tables
from raters.cli.settings import alternatives, dashed, models, values_of
from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import is_list
from raters.judgements import scanned
from raters.judgements.base import Judgements
from raters.judgements.names import plural
from raters.judgements.scanned import Scanned
from raters.kinds import Kind, Reader, kind_named, register, registered_kinds

# Usual names of the column of those who judge.
_JUDGES = ("annotator", "worker", "judge", "rater")
_COLLECTIONS = ("Sequence", "Mapping", "Iterable", "Literal")


def kind_asked(text: str | None) -> Kind | None:
    """The kind of this name, or the object MODULE:NAME of the user's, registered."""
    if text is None or ":" not in text:
        return None if text is None else kind_named(text)
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        kind = getattr(importlib.import_module(module), name)
    except Exception as error:  # The user's code may raise anything.
        raise SettingError(
            f"--kind {text} cannot be imported ({type(error).__name__}: {error}); write"
            " MODULE:NAME, such as school:KIND for the KIND of school.py"
        ) from error
    return kind if kind in registered_kinds() else register(kind)


# ---------------------------------------------------------------- roles and readers


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


def roles_of(function: Callable[..., Any]) -> dict[str, Role]:
    """Keyword-only parameters of a reader that options can give."""
    every = inspect.signature(function, eval_str=True).parameters.values()
    keywords = [one for one in every if one.kind is inspect.Parameter.KEYWORD_ONLY]
    roles = {one.name: Role(one.annotation, one.default) for one in keywords}
    scalars = (str, int, float, bool, pd.DataFrame)
    return {
        name: role
        for name, role in roles.items()
        if role.part in scalars or role.origin in _COLLECTIONS
    }


class Shape(NamedTuple):
    """Roles that a table must have to be read by one reader of a kind."""

    kind: Kind
    reader: Reader
    required: tuple[str, ...]

    @property
    def roles(self) -> dict[str, Role]:
        """Roles of the reader, and of the steps that follow."""
        roles: dict[str, Role] = {}
        for function in (*self.reader.steps, self.reader.read):
            roles |= roles_of(function)
        return roles

    @property
    def judge(self) -> str:
        """Role of those who judge; empty where the reader has none."""
        return self.kind.data.judge if self.kind.data.judge in self.roles else ""

    @property
    def judges(self) -> tuple[str, ...]:
        """Usual names of the judges' column: a person who answers items is no annotator."""
        return (self.judge, *_JUDGES) if self.judge in _JUDGES else (self.judge,)

    @property
    def options(self) -> str:
        """The options that name the required columns."""
        roles = self.roles
        return " ".join(f"{flag_of(name, roles[name])} COLUMN" for name in self.required)


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


def flags() -> dict[str, str]:
    """Options that name columns, and the roles that they stand for: ``--feature`` of features."""
    roles: dict[str, Role] = {}
    for shape in shapes_of(registered_kinds(), registered_kinds()):
        for name, role in shape.roles.items():
            roles[name] = role if name not in roles or role.origin != "Iterable" else roles[name]
    return {flag_of(name, role, roles): name for name, role in roles.items()}


def flag_of(name: str, role: Role, known: Collection[str] = ()) -> str:
    """The option of a role; of one that may be given several times, its singular."""
    several = role.origin in ("Sequence", "Mapping") and name.removesuffix("s") not in known
    return f"--{dashed(name.removesuffix('s') if several else name)}"


def given_roles(words: Sequence[str]) -> tuple[Path | None, dict[str, list[str]]]:
    """The file, and the values of each role, from words such as ``votes.csv --winner winner``."""
    known, files, given = flags(), [], dict[str, list[str]]()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, sign, value = word.partition("=")
        if not word.startswith("--"):
            files.append(word)
        elif flag not in known:
            raise SettingError(
                f"there is no option {flag}; `raters audit --help` lists them, and settings of a"
                f" model or back-end are written --set {flag[2:].replace('-', '_')}=VALUE"
            )
        elif not sign and not rest:
            raise SettingError(f"{flag} needs a value, such as the name of a column")
        else:
            given.setdefault(known[flag], []).append(value if sign else rest.pop(0))
    if len(files) > 1:
        raise SettingError(f"one file is read, and there are {len(files)}: {', '.join(files)}")
    return (Path(files[0]) if files else None), given


# ---------------------------------------------------------------- the shape of a table


def _shape(shapes: Sequence[Shape], given: Mapping[str, Any], names: Sequence[str]) -> Shape:
    """The shape that the options describe, or the only one whose roles are columns."""
    judges = {shape.judge for shape in shapes}
    if {name for shape in shapes for name in shape.required} & set(given) - judges:
        whole = [one for one in shapes if set(one.required) <= set(given)]
        whole.sort(key=lambda shape: -len(shape.required))
        possible = [one for one in whole if set(given) <= set(one.roles)]
        if whole and not possible:
            extra = min(set(given) - set(whole[0].roles))
            refuse(extra, given[extra], f"does not go with {whole[0].options}", "leave it out")
        problem = f"{', '.join(given)} are not the columns of one kind of judgement"
    else:
        possible = [one for one in shapes if _usual_roles(one, given, names) is not None]
        problem = "the table has no usual column names"
        if len(possible) > 1:
            possible, problem = [], "the table can be read in several ways"
    if not possible:
        some = dict.fromkeys(shape.options for shape in shapes)
        raise DataError(
            f"{problem}; say which columns to read: {', or '.join(some)}. It has {sorted(names)}"
        )
    return possible[0]


def _usual_roles(
    shape: Shape, given: Mapping[str, Any], names: Sequence[str]
) -> dict[str, str] | None:
    """Columns of the required roles and of the judge by their usual names; None without them."""
    by_lower, roles = {name.lower(): name for name in names}, dict[str, str]()
    for role in dict.fromkeys((*shape.required, shape.judge)):
        if not role or role in given:
            continue
        words = shape.judges if role == shape.judge else (role,)
        columns = [by_lower[word] for word in dict.fromkeys(words) if word in by_lower]
        if len(columns) > 1:
            flag = flag_of(role, shape.roles[role])
            raise DataError(f"the columns {columns} may each say who judged; write {flag} NAME")
        if columns and shape.roles[role].part is str:
            roles[role] = columns[0]
        elif role in shape.required:
            return None
    return roles if shape.required else None


def _beside(shape: Shape, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
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


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Source:
    """A table, the shape that it is read in, and what its reader is given."""

    table: pd.DataFrame
    shape: Shape
    given: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """The kind of judgement in the table."""
        return self.shape.kind

    @property
    def columns(self) -> dict[str, Any]:
        """Columns by role."""
        roles = self.shape.roles
        return {name: value for name, value in self.given.items() if roles[name].is_column}


def source_of(
    file: Path,
    given: Mapping[str, Sequence[str]],
    kind: Kind | None = None,
    model: str | None = None,
) -> Source:
    """The table, and how to read it."""
    named = models().get(model or "")
    wanted = [kind] if kind else [one for one in registered_kinds() if named in one.models]
    shapes = shapes_of(registered_kinds() if kind is None else (kind,), wanted)
    large = tables.is_large(file)
    table = pd.DataFrame() if large else tables.read_table(file)
    names = scanned.opened(file).schema.names if large else list(map(str, table.columns))
    shape = _shape(shapes, given, names)
    roles, notes = shape.roles, []
    values = {name: values_of(texts, roles[name].annotation, name) for name, texts in given.items()}
    if set(shape.required) <= set(values):
        for name, column in _beside(shape, values, names).items():
            flag = f"--{dashed(name)} {column}"
            notes.append(f"the column {column!r} is not read; to read it, add {flag}")
    else:
        values = (_usual_roles(shape, values, names) or {}) | values
        values = _beside(shape, values, names) | values
        shown = {name: one for name, one in values.items() if roles[name].is_column}
        written = " ".join(f"{flag_of(name, roles[name])} {one}" for name, one in shown.items())
        notes.append(f"no columns were named; reading {written}")
    notes += [shape.reader.on_request] if shape.reader.on_request else []
    source = Source(table, shape, values, tuple(notes))
    return _scanned(source, file) if large else source


def _scanned(source: Source, file: Path) -> Source:
    """A large table, of which equal rows are put together before they are read, if they may be."""
    columns, kind = source.columns, source.kind.data
    counted = (
        issubclass(kind, Scanned)
        and source.shape.reader.read == kind.from_frame  # type: ignore[attr-defined]
        and all(isinstance(name, str) for name in columns.values())
        and source.given.get("repeats") != "drop"
    )
    if not counted:
        return replace(source, table=tables.read_table(file))
    keys = {role: name for role, name in columns.items() if role != "count"}
    table = scanned.grouped(file, keys, source.given.get("count"))
    note = f"{scanned.opened(file).count_rows():,} rows, of which {len(table):,} are different"
    given = source.given | {"count": table.columns[-1]}
    return Source(table, source.shape, given, (*source.notes, note))


def read(
    source: Source, *, drop_bad_rows: bool = False, **more: Any
) -> tuple[Judgements, tuple[str, ...]]:
    """The judgements in the table, and notes on how they were read."""
    table, notes = _usable_rows(source, drop_bad_rows)
    given, reader = more | source.given, source.shape.reader

    def accepted(function: Callable[..., Any]) -> dict[str, Any]:
        return {name: given[name] for name in given if name in roles_of(function)}

    data = reader.read(table, **accepted(reader.read))
    for step in reader.steps:
        data = step(data, table, **accepted(step))
    return data, (*source.notes, *notes)


def _usable_rows(source: Source, drop: bool) -> tuple[pd.DataFrame, list[str]]:
    """Rows that hold a judgement, and a note on those that do not."""
    table, reader = source.table.reset_index(drop=True), source.shape.reader
    columns, used = source.columns, list[str]()
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
        return table, []
    if not drop:
        what = f"{plural(reader.part_of)} with such rows" if reader.part_of else "such rows"
        raise DataError(
            f"data row {int(np.flatnonzero(bad)[0]) + 1} has {reason} ({int(bad.sum())} such"
            f" row(s), columns {', '.join(used)}); correct the table, or leave {what} out with"
            " --drop-bad-rows"
        )
    if reader.part_of:
        of = table[columns[reader.part_of]]
        bad = bad | of.isin(of[bad & of.notna()]).to_numpy(bool)
    return table[~bad], [f"left out {int(bad.sum())} of {len(table)} rows with {reason}"]
