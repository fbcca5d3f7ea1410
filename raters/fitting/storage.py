"""Models, back-ends, policies and kinds as text in a file, and back: a qualified name and fields as
JSON.

Nothing in a file is executed, and no module is imported for it: only classes that are there
already, and of a type that the reader expects, are built.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import numpyro.distributions as dist

from raters.distributions.priors import made, parameters_of
from raters.errors import SettingError
from raters.errors.words import words_of
from raters.inference import Backend
from raters.judgements.stored import imported_class, qualified_name
from raters.program.functions import FUNCTIONS, function_name, short_name
from raters.terms import Term

worded = words_of("raters.fitting")


def to_json(thing: Any) -> str:
    """Text of a frozen dataclass whose fields are literals, or such dataclasses."""
    return json.dumps(_encoded(thing))


def _encoded(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _encoded(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not (field.kw_only and getattr(value, field.name) == field.default)
        }
        return {"class": qualified_name(type(value)), "fields": fields}
    if isinstance(value, dist.Distribution):
        parameters = {name: _encoded(part) for name, part in parameters_of(value).items()}
        return {"distribution": type(value).__name__, "parameters": parameters}
    if isinstance(value, (tuple, list)):
        return [_encoded(part) for part in value]
    if isinstance(value, dict):
        return {"mapping": [[_encoded(key), _encoded(part)] for key, part in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value) and not isinstance(value, type):
        return {"function": function_name(value)}
    raise SettingError(worded("not_stored", value=repr(value)))


def from_json(text: str, expected: tuple[type, ...], what: str) -> Any:
    """Build what `to_json` wrote."""
    try:
        thing = _decoded(json.loads(text), expected)
        if not isinstance(thing, expected):
            raise TypeError(f"it holds {thing!r}")
        return thing
    except SettingError as error:
        parts = error.parts | {"problem": f"{error.problem}, so the {what} cannot be rebuilt"}
        raise SettingError(f"cannot rebuild the {what}: {error}", **parts) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        said = worded("altered", what=what, text=shown(text), error=error)
        raise SettingError(said) from error


def _decoded(value: Any, expected: tuple[type, ...]) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(part, expected) for part in value)
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {_decoded(key, expected): _decoded(part, expected) for key, part in value["mapping"]}
    if "function" in value:
        return _known_function(value["function"])
    if "distribution" in value:
        parameters = {name: _decoded(part, ()) for name, part in value["parameters"].items()}
        return made(value["distribution"], parameters)
    cls = imported_class(value["class"], (*expected, Term))
    fields = value["fields"]
    if issubclass(cls, Backend):  # Settings that this version does not have any more are left out.
        known = {field.name for field in dataclasses.fields(cls)}
        fields = {name: part for name, part in fields.items() if name in known}
    return cls(**{name: _decoded(part, expected) for name, part in fields.items()})


def _known_function(name: Any) -> Any:
    """The function of a name, if `raters.models.numpyro_model` was called with it."""
    if (function := FUNCTIONS.get(str(name))) is None:
        raise SettingError(worded("unknown_function", name=str(name).partition("#")[0]))
    return function


def stored_class(text: str, expected: tuple[type, ...]) -> type:
    """The class of what `to_json` wrote, without building it."""
    try:
        name = str(json.loads(text)["class"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SettingError(f"{text!r} names no class: the file was altered") from error
    return imported_class(name, expected)


def shown(text: str) -> str:
    """The text of `to_json` as Python would write it, for people."""
    try:
        return _as_call(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return text


def _as_call(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_as_call, value))}{',' if len(value) == 1 else ''})"
    if not isinstance(value, dict):
        return repr(value)
    if "function" in value:
        return short_name(value["function"])
    if "distribution" in value:
        pairs = (f"{name}={_as_call(part)}" for name, part in value["parameters"].items())
        return f"dist.{value['distribution']}({', '.join(pairs)})"
    if "mapping" in value:
        pairs = (f"{_as_call(key)}: {_as_call(part)}" for key, part in value["mapping"])
        return f"{{{', '.join(pairs)}}}"
    fields = ", ".join(f"{name}={_as_call(part)}" for name, part in value["fields"].items())
    return f"{value['class'].rpartition(':')[2]}({fields})"
