"""Names under which functions are stored."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

# Functions by the names under which results that were fitted with them find them.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def function_name(function: Callable[..., Any]) -> str:
    """Name under which a function is stored, with a digest of its text and values."""
    plain = _plain(function)
    name = getattr(plain, "__qualname__", type(plain).__qualname__)
    digest = hashlib.blake2b("\n".join(_parts(function)).encode(), digest_size=6).hexdigest()
    return f"{plain.__module__}:{name}#{digest}"


def short_name(name: str) -> str:
    """Name of a function as one writes it, of that under which it is stored."""
    return name.rpartition(":")[2].partition("#")[0]


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the arguments that are bound to it."""
    while isinstance(function, partial):
        function = function.func
    return function


def _parts(function: Any) -> list[str]:
    """Text of a function, and the values that it holds, as text."""
    if isinstance(function, partial):
        bound = [*function.args, *sorted(function.keywords.items())]
        return [*_parts(function.func), *map(_text, bound)]
    code = getattr(function, "__code__", None)
    if code is None:
        return [type(function).__qualname__]
    try:
        text = inspect.getsource(function)
    except OSError:  # Typed in, or executed from a text.
        text = f"{code.co_code!r} {code.co_names} {code.co_varnames}"
    contents = [cell.cell_contents for cell in function.__closure__ or ()]
    contents += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [text, *map(_text, contents)]


def _text(value: Any) -> str:
    """A value, or a container of values, as text that is the same in another session."""
    leaves, structure = jax.tree.flatten(value)
    return " ".join([str(structure), *map(_text_of_one, leaves)])


def _text_of_one(value: Any) -> str:
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    if hasattr(value, "__array__"):  # Its own text leaves out the middle of many numbers.
        array = np.asarray(value)
        content = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
        return f"{array.dtype} {array.shape} {hashlib.blake2b(content, digest_size=16).hexdigest()}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text
