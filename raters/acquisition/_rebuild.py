"""Models, back-ends, policies and stopping rules back from the text that a journal holds of them."""

from __future__ import annotations

import ast
from typing import Any

from raters.errors import SettingError


def rebuilt(text: str, what: str) -> Any:
    """A model, back-end, policy or stopping rule from its ``repr``.

    Only calls of raters' own dataclasses, with literals and such calls as arguments, are read; nothing is executed.

    Raises
    ------
    SettingError
        When it is something else.
    """
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        how = "rt.Campaign.open(path, stop=...)" if what == "stop" else "rt.Campaign(path, model, pool, ...)"
        raise SettingError(
            f"cannot rebuild the {what} {text!r} of the journal; give what the campaign started with: {how}"
        ) from error


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            keywords = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
            return _known()[name](*map(_value, node.args), **keywords)
        case ast.Tuple(elts=parts):
            return tuple(map(_value, parts))
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case _:
            return ast.literal_eval(node)


def _known() -> dict[str, type]:
    """The dataclasses that a journal may name."""
    from raters import acquisition, inference, models

    found = [value for module in (models, inference, acquisition) for value in vars(module).values()]
    return {kind.__name__: kind for kind in found if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")}
