"""From a table and the options on its columns to judgements."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from raters.cli import tables
from raters.cli.generated import converted, keywords, model_names, shape_of
from raters.cli.kinds import (
    Shape,
    check_accepted,
    chosen_shape,
    described,
    guessed,
    kind_asked,
    optional_columns,
    shapes_of,
)
from raters.cli.options import ColumnOptions, ModelOptions
from raters.errors import DataError
from raters.errors.validation import is_list
from raters.judgements.base import Judgements
from raters.judgements.names import plural
from raters.judgements.reading import scan
from raters.judgements.scanned import Scanned
from raters.kinds import Kind, registered_kinds
from raters.model import Model


@dataclass(frozen=True)
class Source:
    """A table, the shape that it is read in, and what its reader is given."""

    table: pd.DataFrame
    shape: Shape
    given: Mapping[str, Any]
    options: ColumnOptions
    guessed: bool
    beside: Mapping[str, str]
    scanned: int | None = None

    @property
    def kind(self) -> Kind:
        """The kind of judgement in the table."""
        return self.shape.kind

    @property
    def columns(self) -> dict[str, Any]:
        """Columns by role."""
        accepted = self.shape.accepted
        return {
            name: value
            for name, value in self.given.items()
            if shape_of(accepted[name]).metavar == "COLUMN"
        }

    @property
    def written(self) -> str:
        """The roles that make the shape, and that of the judges, as options."""
        roles = (*self.shape.roles, *([self.shape.judge] if self.shape.judge else []))
        roles += tuple(self.beside) if self.guessed else ()
        named = {role: self.columns[role] for role in dict.fromkeys(roles) if role in self.columns}
        return described(self.options, named)

    @property
    def described(self) -> str:
        """The kind of the table and how it is read, for messages."""
        return f"a table of {self.kind.name} ({self.written})"


def source_of(file: Path, columns: ColumnOptions, model: ModelOptions | None = None) -> Source:
    """The table, and how to read it."""
    kind = kind_asked(columns.kind)
    if kind is None:
        name = None if model is None else model.model
        wanted = [one for one in registered_kinds() if name in model_names((one,))]
        shapes = shapes_of(registered_kinds(), wanted)
    else:
        shapes = shapes_of((kind,), (kind,))
    roles: dict[str, Any] = {}
    shape = chosen_shape(columns, shapes)
    is_large = tables.is_large(file)
    table = None if is_large else tables.read_table(file)
    names = scan.column_names(file) if table is None else list(map(str, table.columns))
    named = shape is not None
    if shape is None:
        shape, roles = guessed(columns, shapes, names)
    check_accepted(
        columns,
        shape,
        roles | {role: columns.given[role] for role in shape.roles if role in columns.given},
    )
    given = {
        name: converted(value, shape.accepted[name], name) for name, value in columns.given.items()
    }
    beside = optional_columns(shape, roles | given, names)
    given = (roles if named else roles | beside) | given
    if table is not None:
        return Source(table, shape, given, columns, not named, beside)
    source = Source(pd.DataFrame(), shape, given, columns, not named, beside)
    if not _is_counted(source):
        return dataclasses.replace(source, table=tables.read_table(file))
    keys = {role: name for role, name in source.columns.items() if role != "count"}
    table = scan.grouped(file, keys, given.get("count"))
    counted = given | {"count": table.columns[-1]}
    return dataclasses.replace(source, table=table, given=counted, scanned=scan.num_rows(file))


def _is_counted(source: Source) -> bool:
    """True if equal rows may be put together before they are read."""
    kind, given = source.kind.data, source.given
    return (
        issubclass(kind, Scanned)
        and source.shape.reader.read == kind.from_frame  # type: ignore[attr-defined]
        and all(isinstance(name, str) for name in source.columns.values())
        and given.get("repeats") != "drop"
    )


def source_for(source: Source, model: Model[Any]) -> Source:
    """The table as this model takes it: with what its settings imply, unless it was given."""
    accepted = source.shape.accepted
    own = source.kind.implied(model).items()
    settings = {name: value for name, value in own if name in accepted}
    return dataclasses.replace(source, given=settings | dict(source.given))


class Table(NamedTuple):
    """Judgements, and notes on how they were read."""

    data: Judgements
    notes: tuple[str, ...]


def read(source: Source, **names: Sequence[Any]) -> Table:
    """The judgements in the table."""
    table, left_out, reason = _usable_rows(source)
    given = dict(source.given) | names
    reader = source.shape.reader
    accepted = keywords(reader.read)
    try:
        data = reader.read(table, **{name: one for name, one in given.items() if name in accepted})
    except DataError as error:
        if not (source.guessed and error.parameter in source.beside):
            raise
        text = error.worded(source.options.flag)
        raise DataError(f"{text}; if it is something else, {_without(source)}") from error
    for step in reader.steps:
        accepted = keywords(step)
        data = step(data, table, **{name: one for name, one in given.items() if name in accepted})
    notes = [f"no columns were named; reading {source.written}"] * source.guessed
    notes += [] if source.guessed else _unread(source)
    notes += [reader.on_request] if reader.on_request else []
    if source.scanned is not None:
        notes.append(f"{source.scanned:,} rows, of which {len(source.table):,} are different")
    if left_out:
        rows = "rows" if source.scanned is None else "different rows"
        of = f", of {plural(reader.part_of)}" if reader.part_of else ","
        notes.append(f"left out {left_out} of {len(source.table)} {rows}{of} with {reason}")
    return Table(data, tuple(notes))


def _without(source: Source) -> str:
    """Option that leaves an optional role without a column."""
    roles = {role: name for role, name in source.columns.items() if role not in source.beside}
    return f"name the columns to read: {described(source.options, roles)}"


def _unread(source: Source) -> list[str]:
    """Notes on columns that have the name of a role, and are in none."""
    return [
        f"the column {name!r} is not read; to read it, add {source.options.flag(role)} {name}"
        for role, name in source.beside.items()
    ]


def _usable_rows(source: Source) -> tuple[pd.DataFrame, int, str]:
    """Rows that hold a judgement, how many others there are, and what is wrong with those."""
    table, reader = source.table.reset_index(drop=True), source.shape.reader
    single = {role: name for role, name in source.columns.items() if isinstance(name, str)}
    used = [
        name
        for role, listed in source.columns.items()
        if role in keywords(reader.read) and role not in reader.may_be_empty
        for name in ([listed] if isinstance(listed, str) else listed if is_list(listed) else ())
        if name in table.columns
    ]
    empty = table[used].isna() | (table[used] == "")
    missing = empty.any(axis=1).to_numpy(bool)
    reason, wrong = "", np.zeros(len(table), bool)
    if reader.bad_rows is not None:
        reason, wrong = reader.bad_rows(table, single)
        wrong = wrong & ~missing
    bad, both = missing | wrong, "a missing value" + (f" or {reason}" if wrong.any() else "")
    if bad.any() and not source.options.drop_bad_rows:
        row = int(np.flatnonzero(bad)[0])
        also = f", {int(wrong.sum())} with {reason}" if wrong.any() else ""
        what = f"a missing value in {used[int(empty.loc[row].argmax())]!r}"
        what = what if missing[row] else reason
        # Rows of a file that was put together have no place in it.
        first = f"data row {row + 1} has {what}"
        if source.scanned is not None:
            cells = table.loc[row, [name for name in used if name != source.columns["count"]]]
            shown = (f"{n} {'empty' if pd.isna(v) else repr(v)}" for n, v in cells.items())
            first = f"the row with {', '.join(shown)} has {what}"
        out = f"{plural(reader.part_of)} with such rows" if reader.part_of else "such rows"
        raise DataError(
            f"{first} ({int(missing.sum())} row(s) with a missing value{also}); correct the table,"
            f" or leave {out} out with --drop-bad-rows"
        )
    if reader.part_of and bad.any():
        of = table[source.columns[reader.part_of]]
        bad = bad | of.isin(of[bad & of.notna()]).to_numpy(bool)
    if bad.all() and len(table):
        raise DataError(f"every row has {both}, so nothing is left to read")
    return table[~bad], int(bad.sum()), both
