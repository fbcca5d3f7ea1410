"""From what was typed to a model with its judgements, and to a fit of it."""

from __future__ import annotations

import sys
from argparse import Namespace
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
from raters.judgements.base import Judgements
from raters.kinds import Kind, kind_of
from raters.model import Model
from raters.program import Program


def roles_given(given: Namespace) -> tuple[Path | None, dict[str, list[str]]]:
    """The file, and what was given for each role; ``--set`` may name the column of sets."""
    file, roles = given_roles(given.words)
    columns = [text for text in given.set if "=" not in text]
    return file, roles | ({"set": columns} if columns else {})


def file_of(given: Namespace) -> Path:
    """The file that is read."""
    file, _ = roles_given(given)
    if file is None:
        raise SettingError("name a FILE to read: a table, or RESULT.nc")
    return file


def settings_of(given: Namespace) -> dict[str, str]:
    """Settings by name."""
    return pairs([text for text in given.set if "=" in text], "set")


def model_given(given: Namespace, kind: Kind) -> Model[Any]:
    """The model of a kind that is asked for, with its settings."""
    owner, texts = model_of(given.model, kind), settings_of(given)
    known = fields(owner)
    model: Model[Any] = built(owner, {name: texts[name] for name in texts if name in known})
    return model


def read_given(given: Namespace) -> tuple[Model[Any], Judgements]:
    """A model, and the judgements of a table."""
    _, roles = roles_given(given)
    source = source_of(file_of(given), roles, kind_asked(given.kind), given.model)
    model = model_given(given, source.kind)
    implied = source.kind.implied(model)
    data, notes = read(source, drop_bad_rows=given.drop_bad_rows, **implied)
    note(notes, given.quiet)
    return model, data


def with_settings(given: Namespace, *owners: Any) -> list[Any]:
    """Objects, each with those of the settings that are its own."""
    parts = split(settings_of(given), *owners)
    return [built(owner, part) for owner, part in zip(owners, parts, strict=True)]


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
    def bars(self) -> bool:
        """True if progress bars are shown: in a log they are noise."""
        return not self.given.quiet and sys.stderr.isatty()

    def fit(self, *, log_likelihood: bool | None = None) -> xr.DataTree:
        """The stored result, or a fit."""
        if self.stored is not None:
            return self.stored
        return rt.fit(
            self.program.model,
            self.program.data,
            self.backend,
            seed=self.given.seed,
            progress=self.bars,
            log_likelihood=log_likelihood,
        )


def task_of(given: Namespace, *owners: Any) -> tuple[Task, list[Any]]:
    """Read a table or a result, and say what to fit; with other objects that have settings."""
    file, others = file_of(given), list(owners)
    if tables.is_result(file):
        if roles_given(given)[1] or given.model or given.backend or (given.set and not others):
            raise SettingError(
                f"{str(file)!r} is a saved result, which has its data and its fit; leave out the"
                " options of columns, models and back-ends"
            )
        asked = kind_asked(given.kind)
        result = outputs.read_result(file)
        program = Program(fitted_model(result), data_of(result))
        if asked not in (None, kind_of(program.data)):
            raise SettingError(
                f"--kind {given.kind} is not the kind of {str(file)!r}; leave it out"
            )
        return Task(given, program, stored=result), with_settings(given, *others)
    named = chosen("backend", given.backend, backends()) if given.backend else None
    model, data = read_given(given)
    program = Program(model, data)
    _check_features(program, roles_given(given)[1])
    backend = named or default_backend(model, data)
    _, backend, *others = with_settings(given, model, backend, *others)
    return Task(given, program, backend), others


def _check_features(program: Program[Any], given: dict[str, Any]) -> None:
    """`SettingError` when features or families are given that the model does not read."""
    for role, axis in (("features", "feature"), ("family", "family")):
        if role in given and axis not in program.axes:
            problem = f"is of no use to {dashed(type(program.model).__name__)}"
            refuse(role, given[role], problem, "leave it out, or choose a model that reads it")
