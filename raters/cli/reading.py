"""From what was typed to a model with its judgements, and to a fit of it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import sys
import typing
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import xarray as xr

import raters as rt
from raters import datasets, inference
from raters.cli.app import Parser
from raters.cli.files import note, read_result
from raters.errors import SettingError, refuse
from raters.errors.validation import instance
from raters.fitting.result import data_of, model_of
from raters.inference import Backend
from raters.inference.defaults import default_backend, quick_backend
from raters.judgements.names import dashed, name_text
from raters.judgements.reading.files import names_in, read_table
from raters.kinds import Kind, kind_named, kind_of, register, registered_kinds
from raters.kinds import reading as tables
from raters.kinds.reading import Reading, Role, Shape
from raters.model import Model
from raters.program import Program

_SWITCHES = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


# ---------------------------------------------------------------- what there is to choose from


def models() -> dict[str, type[Model[Any]]]:
    """Models of all kinds by their names on the command line."""
    return {dashed(one.__name__): one for kind in registered_kinds() for one in kind.models}


def backends() -> dict[str, type[Backend]]:
    """Back-ends by their names on the command line: those of the classes without ``PG``."""
    classes = [getattr(inference, name) for name in inference.__all__]
    real = [one for one in classes if issubclass(one, Backend) and one is not Backend]
    return {one.__name__.removeprefix("PG").lower(): one for one in real}


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
        problem = f"--{option} {text} cannot be imported ({type(error).__name__}: {error})"
        raise SettingError(f"{problem}; write MODULE:NAME") from error


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
    for part in tables.alternatives(annotation):
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


def fields(owner: Any) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field of a dataclass, or of an instance with its values, or of
    each parameter of a generator."""
    if not dataclasses.is_dataclass(owner):
        every = inspect.signature(owner, eval_str=True).parameters.values()
        return {one.name: (one.annotation, one.default) for one in every if one.name != "seed"}
    cls = owner if isinstance(owner, type) else type(owner)
    hints, known = typing.get_type_hints(cls), [one for one in dataclasses.fields(cls) if one.init]
    values = [one.default if owner is cls else getattr(owner, one.name) for one in known]
    return {one.name: (hints[one.name], value) for one, value in zip(known, values, strict=True)}


def built(texts: Mapping[str, str], *owners: Any) -> list[Any]:
    """Objects of dataclasses, changed copies of objects, or what generators give, each with the
    settings that it has."""
    known = [fields(owner) for owner in owners]
    every = [field for one in known for field in one]
    if unknown := [name for name in texts if name not in every]:
        refuse("set", unknown[0], "is no setting here", f"choose among {', '.join(every)}")
    objects = []
    for owner, one in zip(owners, known, strict=True):
        values = {name: value_of(texts[name], one[name][0]) for name in texts if name in one}
        copied = dataclasses.is_dataclass(owner) and not isinstance(owner, type)
        objects.append((partial(dataclasses.replace, owner) if copied else owner)(**values))
    return objects


def model_given(given: Namespace, kind: Kind, roles: Collection[str]) -> Model[Any]:
    """The model of a kind that is asked for, with its settings; without, the first that reads all
    columns that some model needs, or the default one."""
    readers = [one for one, needed in kind.needs.items() if {*needed} <= {*roles}]
    owner: Any = readers[0] if readers and readers[0] in kind.models else kind.default
    if ":" in (given.model or ""):
        owner = model_asked(given.model)
    elif given.model is not None:
        owner = chosen("model", given.model, models())
        if owner not in kind.models:
            expected = f"choose {', '.join(dashed(one.__name__) for one in kind.models)}"
            refuse("model", given.model, f"is no model of {kind.name}", expected)
        owner = kind.default if type(kind.default) is owner else owner
    known, texts = fields(owner), settings_of(given)
    return built({name: texts[name] for name in texts if name in known}, owner)[0]


def backends_given(given: Namespace) -> list[type[Backend]]:
    """The back-end that is asked for, if one is."""
    return [chosen("backend", given.backend, backends())] if given.backend else []


# ---------------------------------------------------------------- roles of a table


def role_value(role: Role, texts: Sequence[str], name: str) -> Any:
    """Texts of an option as the value that a reader takes."""
    if role.origin == "Sequence":
        return list(texts)
    if role.origin == "Mapping":
        if str in typing.get_args(role.part)[-1:]:
            return pairs(texts, name)
        named = pairs(texts, name, "NAME=COLUMN,COLUMN")
        return {name: tuple(text.split(",")) for name, text in named.items()}
    if len(texts) > 1:
        refuse(name, texts, "is given more than once", "give it once")
    if role.part is pd.DataFrame:
        return read_table(Path(texts[0]))
    if role.origin == "Iterable":
        return names_in(texts[0])
    return value_of(texts[0], role.annotation)


def options_of(shape: Shape) -> str:
    """The options that name the required columns of a shape."""
    roles = shape.roles
    return " ".join(f"{flag_of(name, roles[name])} COLUMN" for name in shape.required)


def flags() -> dict[str, str]:
    """Options that name columns, and the roles that they stand for: ``--feature`` of features."""
    roles: dict[str, Role] = {}
    for shape in tables.shapes_of(registered_kinds(), registered_kinds()):
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
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("FILE", nargs="*")
    for flag, role in flags().items():
        parser.add_argument(flag, dest=role, action="append")
    parsed, unknown = parser.parse_known_intermixed_args(words)
    files, given = vars(parsed).pop("FILE"), vars(parsed)
    if unknown:
        flag = unknown[0].partition("=")[0]
        setting = f"write settings as --set {flag.lstrip('-').replace('-', '_')}=VALUE"
        raise SettingError(f"there is no option {flag}; see `raters audit --help`, or {setting}")
    if len(files) > 1:
        raise SettingError(f"one file is read, and there are {len(files)}: {', '.join(files)}")
    roles = {role: texts for role, texts in given.items() if texts is not None}
    return (Path(files[0]) if files else None), roles


# ---------------------------------------------------------------- judgements, and a fit of them


def read_given(given: Namespace, fitted: Model[Any] | None = None) -> tuple[Model[Any], Reading]:
    """A model, unless one is fitted already, and the judgements of a table or an export."""
    asked, named = kind_asked(given.kind), fitted or model_asked(given.model)
    kinds = registered_kinds() if asked is None else (asked,)
    if fitted is not None:
        kinds = tuple(kind for kind in kinds if kind.data is fitted.data_type)
    of_data = named.data_type if isinstance(named, Model) else None
    wanted = [one for one in kinds if one is asked or named in one.models or one.data is of_data]
    shapes = tables.shapes_of(kinds, wanted)
    (repeats,) = given.roles.pop("repeats", [None])
    table = tables.opened(given.file, shapes, given.roles, given.control)
    shape, own = tables.shape_of(table, shapes, given.roles)
    roles = shape.roles
    values = {name: role_value(roles[name], texts, name) for name, texts in given.roles.items()}
    model = fitted or model_given(given, shape.kind, [*own, *given.roles])
    implied, drop = shape.kind.implied(model), given.drop_bad_rows
    read = tables.read_as(shape, table, own, values, implied=implied, drop=drop, repeats=repeats)
    if given.model is None and fitted is None:
        model = _that_suits(read.judgements, model, shape.kind, settings_of(given))
    of_role = {name: flag_of(name, role) for name, role in roles.items()}
    named = {name: value for name, value in read.roles.items() if isinstance(value, str)}
    options = [f"{of_role[name]} {value}" for name, value in named.items()]
    notes = read.worded_notes(lambda name: of_role.get(name, f"--{dashed(name)}"))
    if table.form:
        notes = ["; ".join([read.summary, *notes, f"reading {' '.join(options)}"])]
    elif not set(shape.required) <= set(given.roles):
        notes.insert(0, f"no columns were named; reading {' '.join(options)}")
    for line in notes:
        note(line, given.quiet)
    return model, read


def _that_suits(data: Any, usual: Model[Any], kind: Kind, texts: Mapping[str, str]) -> Model[Any]:
    """The usual model; that of one judge where there is one, and the first other one where it does
    not take the data, such as a fine scale."""
    if type(usual) is type(kind.default) and kind.alone is not None and len(data.judges) == 1:
        settings = {name: texts[name] for name in texts if name in fields(usual)}
        if settings.keys() <= fields(kind.alone).keys():
            return built(settings, kind.alone)[0]
    if usual != kind.default or usual.why_not(data) is None:
        return usual
    others = (one() for one in kind.models if one is not type(usual))
    return next((one for one in others if one.why_not(data) is None), usual)


@dataclass(frozen=True)
class Task:
    """A model with its judgements, and its fit, stored or still to be made."""

    given: Namespace
    program: Program[Any]
    backend: Backend | None = None
    stored: xr.DataTree | None = field(default=None, repr=False)
    gold: pd.DataFrame | None = field(default=None, repr=False)

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
            raise SettingError(f"{file!r} is a saved result; leave out columns, model, back-end")
        kind = kind_asked(given.kind)
        result = read_result(given.file)
        program = Program(model_of(result), data_of(result))
        if kind not in (None, kind_of(program.data)):
            raise SettingError(f"--kind {given.kind} is not the kind of {file!r}; leave it out")
        return Task(given, program, stored=result), built(settings, *owners)
    named = backends_given(given)
    model, read = read_given(given)
    program = Program(model, read.judgements)
    for role, axis in (("features", "feature"), ("family", "family")):
        if role in given.roles and axis not in program.axes:
            problem = f"is of no use to {dashed(type(model).__name__)}"
            refuse(role, given.roles[role], problem, "name a model that reads it")
    quick = getattr(given, "quick", False)
    if named and quick:
        raise SettingError("--quick chooses the back-end; leave out --quick or --backend")
    suited = quick_backend if quick else default_backend
    backend = named[0] if named else suited(program)
    _, backend, *others = built(settings, model, backend, *owners)
    return Task(given, program, backend, gold=read.gold), others
