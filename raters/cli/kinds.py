"""Kind of judgement of a table: by its columns, or by ``--kind``."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from raters.cli.generated import NOTHING, dashed, is_column, keywords, shape_of
from raters.cli.options import ColumnOptions
from raters.errors import DataError, SettingError
from raters.errors.validation import is_list
from raters.judgements.base import Judgements
from raters.kinds import Kind, Reader, kind_named, kind_of, register, registered_kinds

# Usual names of the column of those who judge.
_JUDGES = ("annotator", "worker", "judge", "rater")


# ---------------------------------------------------------------- --kind


def kind_in(arguments: Sequence[str]) -> str | None:
    """The value of ``--kind`` among arguments that are not parsed yet."""
    for place, word in enumerate(arguments):
        if word == "--kind" and place + 1 < len(arguments):
            return arguments[place + 1]
        if word.startswith("--kind="):
            return word.removeprefix("--kind=")
    return None


def kind_asked(text: str | None) -> Kind | None:
    """The kind of this name, or the object MODULE:NAME of the user's, registered."""
    if text is None:
        return None
    if ":" not in text:
        return kind_named(text)
    module, _, name = text.partition(":")
    if not (module and name):
        raise SettingError(
            parameter="kind",
            value=text,
            expected="write MODULE:NAME, such as school:KIND for the KIND of school.py",
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    kind = _imported(text, module, name)
    return kind if kind in registered_kinds() else register(kind)


def _imported(text: str, module: str, name: str) -> Kind:
    """The object of this name in a module of the user's, whose code may raise anything."""
    try:
        every = vars(importlib.import_module(module))
    except Exception as error:
        raise SettingError(
            parameter="kind",
            value=text,
            problem=f"cannot be imported ({type(error).__name__}: {error})",
            expected=(
                "write MODULE:NAME of a module here or among the installed ones"
                if isinstance(error, ModuleNotFoundError) and error.name == module
                else f"correct the module {module}"
            ),
        ) from error
    kind = every.get(name)
    if not isinstance(kind, Kind):
        own = [word for word, value in every.items() if isinstance(value, Kind)]
        raise SettingError(
            parameter="kind",
            value=text,
            problem="is no raters.kinds.Kind" if name in every else f"names nothing in {module}",
            expected=f"write {module}:{own[0]}"
            if own
            else f"define a raters.kinds.Kind in {module}",
        )
    return kind


def check_asked(asked: Kind | None, data: Judgements) -> None:
    """`SettingError` when stored judgements are not of the kind that was asked for."""
    if asked is not None and (own := kind_of(data)) is not asked:
        raise SettingError(
            parameter="kind",
            value=asked.name,
            problem=f"is not the kind of what is stored, which is {own.name}",
            expected="leave it out",
        )


# ---------------------------------------------------------------- shapes of tables


class Shape(NamedTuple):
    """Roles that a table must have to be read by one reader of a kind."""

    kind: Kind
    reader: Reader
    roles: tuple[str, ...]

    @property
    def accepted(self) -> dict[str, Any]:
        """Annotation of each keyword of the reader and of the steps that follow."""
        accepted: dict[str, Any] = {}
        for function in (*self.reader.steps, self.reader.read):
            accepted |= {name: one.annotation for name, one in keywords(function).items()}
        return accepted

    @property
    def judge(self) -> str | None:
        """Role of those who judge, where the reader has it."""
        return self.kind.data.judge if self.kind.data.judge in self.accepted else None


def shapes_of(kinds: Iterable[Kind], wanted: Collection[Kind] = ()) -> tuple[Shape, ...]:
    """Shapes of table that these kinds can be read from, those of the kinds wanted in front."""
    shapes = []
    for kind in sorted(kinds, key=lambda kind: kind not in wanted):
        for reader in kind.readers:
            if reader.on_request and kind not in wanted:
                continue
            roles = keywords(reader.read).items()
            required = tuple(name for name, one in roles if one.default is NOTHING)
            shapes += [Shape(kind, reader, part) for part in reader.shapes or (required,)]
    return tuple(shapes)


def _sides(given: Iterable[str], shapes: Sequence[Shape]) -> list[str]:
    """Roles given that tell one shape from another: all of shapes but that of the judges."""
    roles = {role for shape in shapes for role in shape.roles}
    judges = {shape.judge for shape in shapes}
    return [name for name in given if name in roles and name not in judges]


def chosen_shape(columns: ColumnOptions, shapes: Sequence[Shape]) -> Shape | None:
    """The shape that the options describe, or None when they name no column of a side."""
    sides = _sides(columns.given, shapes)
    if not sides:
        only = [shape for shape in shapes if set(shape.roles) <= set(columns.given)]
        return only[0] if len(shapes) == len(only) == 1 else None
    for pair in combinations(sides, 2):
        if not any(set(pair) <= set(shape.roles) for shape in shapes):
            mixed = " and ".join(map(columns.flag, pair))
            raise SettingError(
                f"{mixed} describe different shapes of table; give one: {_written(columns, shapes)}"
            )
    possible = [shape for shape in shapes if set(sides) <= set(shape.roles)]
    whole = [shape for shape in possible if set(shape.roles) <= set(columns.given)]
    if whole:
        # Options that only one has use for, such as the levels of a scale, tell them apart.
        fitting = [shape for shape in whole if set(columns.given) <= set(shape.accepted)]
        return max(fitting or whole, key=lambda shape: len(shape.roles))
    lacking = [[role for role in shape.roles if role not in columns.given] for shape in possible]
    needs = ", or ".join(" and ".join(map(columns.flag, roles)) for roles in lacking)
    have = " and ".join(map(columns.flag, sides)) + (" needs" if len(sides) == 1 else " need")
    raise SettingError(f"{have} {needs or 'other columns'} as well")


def guessed(
    columns: ColumnOptions, shapes: Sequence[Shape], names: Sequence[str]
) -> tuple[Shape, dict[str, str]]:
    """The only shape whose roles are columns of the table, and those columns."""
    by_lower = {name.lower(): name for name in names}
    possible = [shape for shape in shapes if _has_columns(shape, by_lower, columns.given)]
    if len(possible) != 1:
        why = (
            "can be read in more than one way"
            if possible
            else "has none of the standard column names"
        )
        raise DataError(
            f"the table {why}; say which columns to read: {_written(columns, shapes)}. It has"
            f" {sorted(names)}"
        )
    shape, judge = possible[0], possible[0].judge
    roles = {role: by_lower[role] for role in shape.roles if role != judge}
    if judge is not None and judge not in columns.given:
        who = [by_lower[word] for word in _judge_words(judge) if word in by_lower]
        if len(who) > 1:
            raise DataError(
                f"the columns {who} may each say who judged; write {columns.flag(judge)} {who[0]},"
                " or another"
            )
        roles |= {judge: who[0]} if who else {}
    return shape, roles


def optional_columns(
    shape: Shape, given: Mapping[str, Any], names: Sequence[str]
) -> dict[str, str]:
    """Columns that have the names of optional roles, such as ``count``, and are in no role
    given."""
    by_lower = {name.lower(): name for name in names}
    others = {role for roles in (shape.roles, *shape.reader.shapes) for role in roles}
    used = [one for value in given.values() for one in (value if is_list(value) else [value])]
    return {
        role: by_lower[role]
        for role, one in keywords(shape.reader.read).items()
        if role in by_lower
        and by_lower[role] not in used
        and role not in (*others, *given, shape.judge)
        and one.default is None
        and is_column(one.annotation)
    }


def _has_columns(shape: Shape, by_lower: Mapping[str, str], given: Mapping[str, Any]) -> bool:
    """True if a table has a column for each role of a shape, by the usual names."""
    accepted = shape.accepted
    return (
        bool(shape.roles)
        and all(
            role in by_lower
            or (role == shape.judge and (role in given or set(_judge_words(role)) & set(by_lower)))
            for role in shape.roles
        )
        and all(is_column(accepted[role]) for role in shape.roles)
        and not any(shape_of(accepted[role]).several for role in shape.roles)
    )


def _judge_words(judge: str) -> tuple[str, ...]:
    """Usual names of the column of a judge: a person who answers items is no annotator."""
    return tuple(dict.fromkeys((judge, *_JUDGES))) if judge in _JUDGES else (judge,)


def _written(columns: ColumnOptions, shapes: Sequence[Shape]) -> str:
    """The shapes as one would type them."""
    return ", or ".join(
        " ".join(f"{columns.flag(role)} COLUMN" for role in shape.roles) for shape in shapes
    )


def check_accepted(columns: ColumnOptions, shape: Shape, roles: Mapping[str, Any]) -> None:
    """`SettingError` for an option that this shape of table has no use for."""
    for name in columns.given:
        if name in shape.accepted:
            continue
        flag, owners, kind = columns.flag(name), columns.owners(name), shape.kind.name
        if kind in owners:
            others = " and ".join(map(columns.flag, shape.roles))
            raise SettingError(f"{flag} does not go with {others}; leave it out")
        raise SettingError(
            f"{flag} belongs to {' and '.join(owners)}, and this is a table of {kind}"
            f" ({described(columns, roles)}); leave it out"
        )


def described(columns: ColumnOptions, roles: Mapping[str, Any]) -> str:
    """Roles and their columns as options."""
    shown = []
    for role, name in roles.items():
        for one in name if isinstance(name, list) else [name]:
            shown.append(f"{columns.flag(role)} {one}")
    return " ".join(shown)


def model_flag(model: type) -> str:
    """The option that asks for a model."""
    return f"--model {dashed(model.__name__)}"
