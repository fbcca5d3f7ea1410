"""From what was typed to a model with its judgements, and to a fit of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

import raters as rt
from raters.cli import outputs, tables
from raters.cli.columns import given_roles, kind_asked, read, source_of
from raters.cli.console import note
from raters.cli.settings import backends, built, chosen, dashed, fields, model_of, pairs, split
from raters.errors import SettingError, refuse
from raters.fitting.result import data_of
from raters.fitting.result import model_of as fitted_model
from raters.inference import Backend
from raters.inference.defaults import default_backend
from raters.kinds import Kind, kind_of
from raters.program import Program


@dataclass(frozen=True)
class Typed:
    """What was typed about a table, or a saved result, and how to fit it."""

    words: Sequence[str]
    kind: str | None = None
    model: str | None = None
    backend: str | None = None
    settings: Sequence[str] = ()
    drop_bad_rows: bool = False
    seed: int = 0
    quiet: bool = False

    @property
    def set(self) -> dict[str, str]:
        """Settings by name; ``--set`` without an equals sign names the column of sets."""
        return pairs([text for text in self.settings if "=" in text], "set")

    @property
    def roles(self) -> tuple[Path | None, dict[str, list[str]]]:
        """The file, and what was given for each role."""
        file, given = given_roles(self.words)
        columns = [text for text in self.settings if "=" not in text]
        return file, given | ({"set": columns} if columns else {})

    @property
    def file(self) -> Path:
        """The file that is read."""
        file, _ = self.roles
        if file is None:
            raise SettingError("name a file to read: a table, or RESULT.nc")
        return file


@dataclass(frozen=True)
class Task:
    """A model with its judgements, and its fit, stored or still to be made."""

    typed: Typed
    program: Program[Any]
    backend: Backend | None = None
    stored: xr.DataTree | None = field(default=None, repr=False)

    @property
    def kind(self) -> Kind:
        """The kind of judgement."""
        return kind_of(self.program.data)

    @property
    def bars(self) -> bool:
        """True if progress bars are shown: in a log they are noise."""
        return not self.typed.quiet and sys.stderr.isatty()

    def fit(self, *, log_likelihood: bool | None = None) -> xr.DataTree:
        """The stored result, or a fit."""
        if self.stored is not None:
            return self.stored
        return rt.fit(
            self.program.model,
            self.program.data,
            self.backend,
            seed=self.typed.seed,
            progress=self.bars,
            log_likelihood=log_likelihood,
        )


def task_of(typed: Typed) -> Task:
    """Read a table or a result, and say what to fit."""
    file, given = typed.roles
    if not tables.is_result(typed.file):
        return _from_table(typed)
    if given or typed.model or typed.backend or typed.settings:
        raise SettingError(
            f"{str(file)!r} is a saved result, which has its data and its fit; leave out the"
            " options of columns, models and back-ends"
        )
    asked = kind_asked(typed.kind)
    result = outputs.read_result(typed.file)
    program = Program(fitted_model(result), data_of(result))
    if asked is not None and asked is not kind_of(program.data):
        stored = kind_of(program.data).name
        refuse("kind", asked.name, f"is not the kind of what is stored, {stored}", "leave it out")
    return Task(typed, program, stored=result)


def _from_table(typed: Typed) -> Task:
    _, given = typed.roles
    source = source_of(typed.file, given, kind_asked(typed.kind), typed.model)
    owner = model_of(typed.model, source.kind)
    named = chosen("backend", typed.backend, backends()) if typed.backend else None
    known = fields(owner)
    model = built(owner, {name: text for name, text in typed.set.items() if name in known})
    implied = source.kind.implied(model)
    data, notes = read(source, drop_bad_rows=typed.drop_bad_rows, **implied)
    note(notes, typed.quiet)
    program = Program(model, data)
    _check_features(program, given)
    backend = named or default_backend(model, data)
    _, of_backend = split(typed.set, owner, backend)
    return Task(typed, program, built(backend, of_backend))


def _check_features(program: Program[Any], given: dict[str, Any]) -> None:
    """`SettingError` when features or families are given that the model does not read."""
    for role, axis in (("features", "feature"), ("family", "family")):
        if role in given and axis not in program.axes:
            needs = kind_of(program.data).needs.items()
            users = [
                f"--set {one}=yes" if isinstance(one, str) else f"--model {dashed(one.__name__)}"
                for one, roles in needs
                if role in roles
            ]
            problem = f"is of no use to {dashed(type(program.model).__name__)}"
            refuse(role, given[role], problem, f"leave it out, or write {' or '.join(users)}")
