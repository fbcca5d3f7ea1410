"""From what was typed to a model with its judgements, and to a fit of it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import sys
import types
import typing
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import datasets, inference
from raters.cli.files import is_large, names_in, note, read_result, read_table
from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import instance, is_list
from raters.fitting.result import data_of, model_of
from raters.inference import Backend
from raters.inference.defaults import default_backend, quick_backend
from raters.judgements import scanned
from raters.judgements.base import Judgements
from raters.judgements.names import name_text, plural
from raters.kinds import Kind, Reader, kind_named, kind_of, register, registered_kinds
from raters.model import Model
from raters.program import Program

_SWITCHES = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
# Usual names of the column of those who judge; a person who answers items is no annotator.
_JUDGES = ("annotator", "worker", "judge", "rater")


# ---------------------------------------------------------------- what there is to choose from


def dashed(name: str) -> str:
    """Name of a class or parameter on the command line: ``ExtendedBTL`` is ``extended-btl``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").lower()


def models() -> dict[str, type[Model[Any]]]:
    """Models of all kinds by their names on the command line."""
    return {dashed(one.__name__): one for kind in registered_kinds() for one in kind.models}


def backends() -> dict[str, type[Backend]]:
    """Back-ends by their names on the command line: those of the classes without ``PG``."""
    classes = [getattr(inference, name) for name in inference.__all__]
    return {
        one.__name__.removeprefix("PG").lower(): one
        for one in classes
        if issubclass(one, Backend) and one is not Backend
    }


def designs() -> dict[str, Callable[..., Any]]:
    """Generators of judgements by their names on the command line."""
    kinds = ("label", "rating", "ranking", "choice", "response")
    names = ["paper", "separated", "position_biased", "crowd", *map("{}_crowd".format, kinds)]
    return {dashed(name): getattr(datasets, name) for name in names}


def chosen(option: str, text: str, choices: Mapping[str, Any]) -> Any:
    """Value of this name, which may be that of a class in Python: PGEM or DawidSkene."""
    loose = re.sub("[-_ ]", "", text).lower()
    by_name = {name.replace("-", ""): one for name, one in choices.items()}
    for spelling in (loose, loose.removeprefix("pg")):
        if spelling in by_name:
            return by_name[spelling]
    return refuse(option, text, "is unknown", f"choose one of {', '.join(choices)}")


def kind_asked(text: str | None) -> Kind | None:
    """The kind of this name, or the object MODULE:NAME of the user's, registered."""
    if text is None or ":" not in text:
        return None if text is None else kind_named(text)
    kind = imported("kind", text)
    return kind if kind in registered_kinds() else register(kind)


def imported(option: str, text: str) -> Any:
    """The object MODULE:NAME of the user's."""
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # The user's code may raise anything.
        raise SettingError(
            f"--{option} {text} cannot be imported ({type(error).__name__}: {error}); write"
            f" MODULE:NAME, such as school:{option.upper()} for the {option.upper()} of school.py"
        ) from error


def model_asked(text: str | None) -> Any:
    """The class of the model of this name, or the model MODULE:NAME of the user's, or None."""
    if text is None or ":" not in text:
        return models().get(text or "")
    model = imported("model", text)
    instance("model", model, Model, "a model", "rt.models.PairwiseModel(...)")
    return model


# ---------------------------------------------------------------- settings from text


def pairs(texts: Iterable[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Names and values of an option such as ``--set draws=500``."""
    named: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (sign and name and value) or name in named:
            refuse(option, text, "cannot be read, or names something twice", f"write {form}")
        named[name] = value
    return named


def settings_of(given: Namespace) -> dict[str, str]:
    """Settings by name; ``--set`` may also name the column of sets."""
    return pairs([text for text in given.set if "=" in text], "set")


def value_of(text: str, annotation: Any) -> Any:
    """Text as a value of this annotation; as it is where nothing fits, for its owner to refuse."""
    for part in _alternatives(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if part is type(None) and text.lower() == "none":
            return None
        if part is bool and text.lower() in _SWITCHES:
            return _SWITCHES[text.lower()]
        if origin is Literal and text in arguments:
            return text
        for number in (int, float) if part is Any else (part,):
            if number in (int, float):
                with suppress(ValueError):
                    return number(text)
        if origin is tuple and arguments[-1:] == (...,):
            pieces = text.split(";") if arguments[0] is not str else [text]
            groups = tuple(tuple(map(name_text, names_in(piece))) for piece in pieces)
            return groups if arguments[0] is not str else groups[0]
    return text


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Members of a union; the annotation alone where it is none."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def fields(owner: Any) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field of a dataclass, or of an instance with its values."""
    cls = owner if isinstance(owner, type) else type(owner)
    hints = typing.get_type_hints(cls)
    return {
        one.name: (hints[one.name], one.default if owner is cls else getattr(owner, one.name))
        for one in dataclasses.fields(cls)
        if one.init
    }


def built(texts: Mapping[str, str], *owners: Any) -> list[Any]:
    """Objects of dataclasses, or changed copies of objects, each with the settings that it has."""
    known = [fields(owner) for owner in owners]
    for name in texts:
        if not any(name in one for one in known):
            classes = [one if isinstance(one, type) else type(one) for one in owners]
            listed = " or ".join(dashed(one.__name__) for one in classes)
            every = ", ".join(field for one in known for field in one)
            refuse("set", name, f"is no setting of {listed}", f"they have {every}")
    objects = []
    for owner, one in zip(owners, known, strict=True):
        values = {name: value_of(texts[name], one[name][0]) for name in texts if name in one}
        make = owner if isinstance(owner, type) else partial(dataclasses.replace, owner)
        objects.append(make(**values))
    return objects


def model_given(given: Namespace, kind: Kind) -> Model[Any]:
    """The model of a kind that is asked for, with its settings; without, the only one that reads a
    column that is named, or the default one."""
    readers = [one for one, roles in kind.needs.items() if set(roles) <= set(given.roles)]
    owner: Any = readers[0] if len(readers) == 1 and readers[0] in kind.models else kind.default
    if ":" in (given.model or ""):
        owner = model_asked(given.model)
    elif given.model is not None:
        owner = chosen("model", given.model, models())
        if owner not in kind.models:
            others = ", ".join(dashed(one.__name__) for one in kind.models)
            refuse("model", given.model, f"is no model of {kind.name}", f"choose one of {others}")
        owner = kind.default if type(kind.default) is owner else owner
    known, texts = fields(owner), settings_of(given)
    return built({name: texts[name] for name in texts if name in known}, owner)[0]


def backends_given(given: Namespace) -> list[type[Backend]]:
    """The back-end that is asked for, if one is."""
    return [chosen("backend", given.backend, backends())] if given.backend else []


# ---------------------------------------------------------------- roles and shapes of a table


class Role(NamedTuple):
    """A column or a setting that readers take: keyword parameter of one of their functions."""

    annotation: Any
    default: Any

    @property
    def part(self) -> Any:
        """The annotation without None."""
        return next(one for one in _alternatives(self.annotation) if one is not type(None))

    @property
    def origin(self) -> str:
        """Name of the collection that it takes; empty for a single value."""
        return getattr(getattr(self.part, "__origin__", None), "__name__", "")

    @property
    def is_column(self) -> bool:
        """True for the name of a column, or of several."""
        return self.part is str or self.origin == "Sequence"

    def value(self, texts: Sequence[str], name: str) -> Any:
        """Texts of the option as the value that a reader takes."""
        if self.origin == "Sequence":
            return list(texts)
        if self.origin == "Mapping":
            if str in typing.get_args(self.part)[-1:]:
                return pairs(texts, name)
            named = pairs(texts, name, "NAME=COLUMN,COLUMN")
            return {name: tuple(text.split(",")) for name, text in named.items()}
        if len(texts) > 1:
            refuse(name, texts, "is given more than once", "give it once")
        if self.part is pd.DataFrame:
            return read_table(Path(texts[0]))
        if self.origin == "Iterable":
            return names_in(texts[0])
        return value_of(texts[0], self.annotation)


def roles_of(*functions: Callable[..., Any]) -> dict[str, Role]:
    """Keyword-only parameters of readers that options can give."""
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
            if name not in roles or role.origin != "Iterable":
                roles[name] = role
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
        words = _JUDGES if role == shape.judge and role in _JUDGES else ()
        columns = [by_lower[word] for word in dict.fromkeys((role, *words)) if word in by_lower]
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


# ---------------------------------------------------------------- judgements, and a fit of them


def read_given(given: Namespace) -> tuple[Model[Any], Judgements]:
    """A model, and the judgements of a table."""
    file, asked, named = given.file, kind_asked(given.kind), model_asked(given.model)
    kinds = registered_kinds() if asked is None else (asked,)
    of_data = named.data_type if isinstance(named, Model) else None
    wanted = [
        kind for kind in kinds if kind is asked or named in kind.models or kind.data is of_data
    ]
    large = is_large(file)
    table = pd.DataFrame() if large else read_table(file)
    names = scanned.opened(file).schema.names if large else list(map(str, table.columns))
    shape = _shape(shapes_of(kinds, wanted), given.roles, names)
    values, notes = _values(shape, given.roles, names)
    if large and _may_be_counted(shape, values):
        # Equal rows are put together before they are read.
        columns = _columns(shape, values)
        keys = {role: name for role, name in columns.items() if role != "count"}
        table = scanned.grouped(file, keys, values.get("count"))
        values["count"] = table.columns[-1]
        number = scanned.opened(file).count_rows()
        notes.append(f"{number:,} rows, of which {len(table):,} are different")
    elif large:
        table = read_table(file)
    model = model_given(given, shape.kind)
    table = _usable_rows(table, shape, _columns(shape, values), given.drop_bad_rows, notes)
    values = shape.kind.implied(model) | values

    def accepted(function: Callable[..., Any]) -> dict[str, Any]:
        return {name: values[name] for name in values if name in roles_of(function)}

    reader = shape.reader
    data = reader.read(table, **accepted(reader.read))
    for step in reader.steps:
        data = step(data, table, **accepted(step))
    for line in notes:
        note(line, given.quiet)
    return model, data


def _values(
    shape: Shape, given: Mapping[str, Sequence[str]], names: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Values for the reader by role, and notes on them."""
    roles, notes = shape.roles, []
    values = {name: roles[name].value(texts, name) for name, texts in given.items()}
    if set(shape.required) <= set(values):
        for name, column in _beside(shape, values, names).items():
            flag = f"--{dashed(name)} {column}"
            notes.append(f"the column {column!r} is not read; to read it, add {flag}")
    else:
        values = (_usual_roles(shape, values, names) or {}) | values
        values = _beside(shape, values, names) | values
        shown = _columns(shape, values).items()
        written = " ".join(f"{flag_of(name, roles[name])} {column}" for name, column in shown)
        notes.append(f"no columns were named; reading {written}")
    return values, notes + [shape.reader.on_request] * bool(shape.reader.on_request)


def _columns(shape: Shape, values: Mapping[str, Any]) -> dict[str, Any]:
    """Columns by role."""
    roles = shape.roles
    return {name: value for name, value in values.items() if roles[name].is_column}


def _may_be_counted(shape: Shape, values: Mapping[str, Any]) -> bool:
    """True if equal rows of a large table may be put together."""
    kind = shape.kind.data
    return (
        hasattr(kind, "scan")
        and shape.reader.read == kind.from_frame  # type: ignore[attr-defined]
        and all(isinstance(name, str) for name in _columns(shape, values).values())
        and values.get("repeats") != "drop"
    )


def _usable_rows(
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
        raise DataError(
            f"data row {int(np.flatnonzero(bad)[0]) + 1} has {reason} ({int(bad.sum())} such"
            f" row(s), columns {', '.join(used)}); correct the table, or leave {what} out with"
            " --drop-bad-rows"
        )
    if reader.part_of:
        of = table[columns[reader.part_of]]
        bad = bad | of.isin(of[bad & of.notna()]).to_numpy(bool)
    notes.append(f"left out {int(bad.sum())} of {len(table)} rows with {reason}")
    return table[~bad]


@dataclass(frozen=True)
class Task:
    """A model with its judgements, and its fit, stored or still to be made."""

    given: Namespace
    program: Program[Any]
    backend: Backend | None = None
    stored: xr.DataTree | None = field(default=None, repr=False)

    @property
    def kind(self) -> Kind:
        """The kind of judgement."""
        return kind_of(self.program.data)

    @property
    def options(self) -> dict[str, Any]:
        """Options of a fit; progress bars are not shown in a log, where they are noise."""
        bars = not self.given.quiet and sys.stderr.isatty()
        return {"seed": self.given.seed, "progress": bars}

    def fit(self, *, log_likelihood: bool | None = None) -> xr.DataTree:
        """The stored result, or a fit."""
        if self.stored is not None:
            return self.stored
        model, data, options = self.program.model, self.program.data, self.options
        return rt.fit(model, data, self.backend, log_likelihood=log_likelihood, **options)


def task_of(given: Namespace, *owners: Any) -> tuple[Task, list[Any]]:
    """Read a table or a result, and say what to fit; with other objects that have settings."""
    file, settings = str(given.file), settings_of(given)
    if given.file.suffix == ".nc":
        own = model_asked(given.model)  # Its module knows the classes that the file names.
        asked = given.backend or getattr(given, "quick", False)
        if given.roles or isinstance(own, type) or asked or (given.set and not owners):
            raise SettingError(
                f"{file!r} is a saved result, which has its data and its fit; leave out the"
                " options of columns, models and back-ends"
            )
        kind = kind_asked(given.kind)
        result = read_result(given.file)
        program = Program(model_of(result), data_of(result))
        if kind not in (None, kind_of(program.data)):
            raise SettingError(f"--kind {given.kind} is not the kind of {file!r}; leave it out")
        return Task(given, program, stored=result), built(settings, *owners)
    named = backends_given(given)
    model, data = read_given(given)
    program = Program(model, data)
    for role, axis in (("features", "feature"), ("family", "family")):
        if role in given.roles and axis not in program.axes:
            problem = f"is of no use to {dashed(type(model).__name__)}"
            refuse(role, given.roles[role], problem, "leave it out, or name a model that reads it")
    quick = getattr(given, "quick", False)
    if named and quick:
        raise SettingError("--quick chooses the back-end; leave out --quick or --backend")
    suited = quick_backend if quick else default_backend
    backend = named[0] if named else suited(program)
    _, backend, *others = built(settings, model, backend, *owners)
    return Task(given, program, backend), others
