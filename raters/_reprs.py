"""Frozen dataclasses back from their ``repr``, without executing anything."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any


def read(text: str, known: Mapping[str, type]) -> Any:
    """What `text` is the ``repr`` of: calls of the `known` classes, with literals and such calls as arguments.

    Raises
    ------
    ValueError
        When it is something else, or the class refuses its arguments.
    """
    try:
        return _value(ast.parse(text, mode="eval").body, known)
    except (SyntaxError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{text!r} is no repr of {', '.join(known)}: {error}") from error


def _value(node: ast.expr, known: Mapping[str, type]) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            keywords = {str(keyword.arg): _value(keyword.value, known) for keyword in node.keywords}
            return known[name](*(_value(argument, known) for argument in node.args), **keywords)
        case ast.Tuple(elts=parts):
            return tuple(_value(part, known) for part in parts)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_value(key, known): _value(value, known) for key, value in pairs if key is not None}
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case _:
            return ast.literal_eval(node)
