"""Settings of models, back-ends and others, as text, and what there is to choose from."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from raters import datasets, inference
from raters.cli.tables import names_in, read_table
from raters.errors import refuse
from raters.inference import Backend
from raters.judgements.names import name_text
from raters.kinds import Kind, registered_kinds
from raters.model import Model

_FLAGS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


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


def pairs(texts: Iterable[str] | None, option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Names and values of an option such as ``--set draws=500``."""
    named: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not (sign and name.strip() and value.strip()) or name.strip() in named:
            refuse(option, text, "cannot be read, or names something twice", f"write {form}")
        named[name.strip()] = value.strip()
    return named


# ---------------------------------------------------------------- text as values


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Members of a union; the annotation alone where it is none."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def value_of(text: str, annotation: Any) -> Any:
    """Text as a value of this annotation; as it is where nothing fits, for its owner to refuse."""
    for part in alternatives(annotation):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if part is type(None) and text.lower() == "none":
            return None
        if part is bool and text.lower() in _FLAGS:
            return _FLAGS[text.lower()]
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


def values_of(texts: Sequence[str], annotation: Any, role: str) -> Any:
    """Texts of an option about columns as the value that a reader takes."""
    (part, *_) = [one for one in alternatives(annotation) if one is not type(None)]
    origin = typing.get_origin(part)
    if origin is Sequence:
        return list(texts)
    if origin is typing.get_origin(Mapping[str, str]):
        several = str not in typing.get_args(part)[-1:]
        named = pairs(texts, role, "NAME=COLUMN,COLUMN" if several else "NAME=VALUE")
        return {name: tuple(text.split(",")) for name, text in named.items()} if several else named
    if len(texts) > 1:
        refuse(role, texts, "is given more than once", "give it once")
    if part is pd.DataFrame:
        return read_table(Path(texts[0]))
    if origin is Iterable:
        return names_in(texts[0])
    return value_of(texts[0], annotation)


def fields(owner: Any) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field of a dataclass, or of an instance with its values."""
    cls = owner if isinstance(owner, type) else type(owner)
    hints = typing.get_type_hints(cls)
    return {
        one.name: (hints[one.name], one.default if owner is cls else getattr(owner, one.name))
        for one in dataclasses.fields(cls)
        if one.init
    }


def built(owner: Any, texts: Mapping[str, str]) -> Any:
    """An object of a dataclass, or a changed copy of one, with some fields from text."""
    known = fields(owner)
    split(texts, owner)
    given = {name: value_of(text, known[name][0]) for name, text in texts.items()}
    return owner(**given) if isinstance(owner, type) else dataclasses.replace(owner, **given)


def model_of(name: str | None, kind: Kind) -> Any:
    """The default model of a kind, or the class of this name among those of the kind."""
    if name is None:
        return kind.default
    cls = chosen("model", name, models())
    if cls not in kind.models:
        others = ", ".join(dashed(one.__name__) for one in kind.models)
        refuse("model", name, f"is no model of {kind.name}", f"choose one of {others}")
    return kind.default if type(kind.default) is cls else cls


def split(texts: Mapping[str, str], *owners: Any) -> list[dict[str, str]]:
    """Settings by the dataclass that has the field."""
    for name in texts:
        if not any(name in fields(owner) for owner in owners):
            classes = [one if isinstance(one, type) else type(one) for one in owners]
            listed = " or ".join(dashed(one.__name__) for one in classes)
            known = ", ".join(field for owner in owners for field in fields(owner))
            refuse("set", name, f"is no setting of {listed}", f"they have {known}")
    return [{name: texts[name] for name in texts if name in fields(owner)} for owner in owners]
