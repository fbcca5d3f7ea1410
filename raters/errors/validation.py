"""Checks at the border: of settings, and of the arguments of public functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast

import jax
import numpy as np
from jaxtyping import AbstractArray, Float, Shaped, jaxtyped

from raters.errors import public_name, refuse, refuse_data

# Objects of a class in words, and the line that makes one, by the name of the class.
_OBJECTS = {
    "Audit": ("an audit", "rt.audit(model, result)"),
    "Backend": ("a back-end", "rt.PGGibbs(), or rt.NUTS()"),
    "Comparisons": ("comparisons", "rt.Comparisons.from_frame(table, ...)"),
    "Labels": ("labels", "rt.Labels.from_frame(table, ...)"),
    "Model": ("a model", "rt.BTL()"),
    "Policy": ("a policy", "rt.Policy(target='ranking')"),
    "Stop": ("a rule to stop by", "rt.acquisition.ExpectedTau(0.9)"),
}
# Settings of models lie between this and its inverse: beyond, matrices are singular.
_LEAST = 1e-6
# More than their type counts, so they are checked where they are used.
_ELSEWHERE = ("Any", "Array", "DataTree", "Judgements", "ndarray", "object")


# ---------------------------------------------------------------- settings


def is_number(value: Any) -> bool:
    """True for a finite number: no flag, not NaN."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def is_list(value: Any) -> bool:
    """True for what holds several values: no text, no array of one number."""
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return several and getattr(value, "ndim", 1) > 0


def numbers(
    name: str, value: Any, such: str = "np.array([[0.5, 0.5]])"
) -> Float[np.ndarray, " ..."]:
    """An array of numbers in double precision, such as that of a line of Python."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(value)
        none = array.dtype == object and any(one is None for one in array.flat)
        if array.dtype.kind != "c" and not none:
            return array.astype(np.float64)
    return refuse_data(name, value, "is no array", "give rows of numbers", instead=f"{name}={such}")


def places(name: str, index: Any, size: int) -> Any:
    """An index of some of so many: a slice, whole numbers, or flags; a traced one unread."""
    if isinstance(index, (slice, jax.core.Tracer)):
        return index
    try:
        array = np.asarray(index)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.size == 0 and array.ndim == 1:
        return array.astype(int)
    flags = array.dtype == bool and array.shape == (size,)
    whole_numbers = array.dtype.kind in "iu" and array.ndim == 1
    if not flags and not (whole_numbers and -size <= array.min() and array.max() < size):
        refuse(name, index, expected=f"it must be a slice, numbers below {size}, or {size} flags")
    return index if hasattr(index, "ndim") else array


def positive(name: str, value: float | None, *, optional: bool = False) -> None:
    """A finite number above 0 (or None when that is allowed)."""
    if (value is None and optional) or (is_number(value) and value is not None and value > 0):
        return
    learnt = "; leave it out to learn it" if optional else ""
    refuse(name, value, expected=f"it must be a number above 0{learnt}")


def plain_positive(model: Any, *names: str, optional: bool = False) -> None:
    """Check settings, and write them as Python numbers, so that equal models have equal texts."""
    for name in names:
        value = getattr(model, name)
        positive(name, value, optional=optional)
        if value is not None:
            if not _LEAST < value < 1 / _LEAST:
                refuse(name, value, expected=f"it must be between {_LEAST:g} and {1 / _LEAST:g}")
            object.__setattr__(model, name, float(value))


def whole(name: str, value: int, least: int = 1) -> None:
    """A whole number of at least `least`, as large as an array can be at most."""
    number = isinstance(value, Integral) and not isinstance(value, bool)
    if not number or not least <= value < 2**31:
        most = " and less than 2**31" if number and value > least else ""
        refuse(name, value, expected=f"it must be a whole number, at least {least}{most}")


def plain_whole(thing: Any, *names: str, least: int = 1, optional: bool = False) -> None:
    """Check settings, and write them as Python numbers: those of NumPy may overflow in products."""
    for name in names:
        if (value := getattr(thing, name)) is not None or not optional:
            whole(name, value, least)
            object.__setattr__(thing, name, int(value))


def at_most(name: str, value: int, most: int, of: str) -> None:
    """A number that is not larger than the number of something."""
    if value > most:
        refuse(name, value, f"is not possible with {most} {of}", "it must be at most that")


def finite(name: str, value: float, such: float) -> None:
    """A finite number, such as another one."""
    if not is_number(value):
        refuse(name, value, expected=f"it must be a finite number such as {such}")


def seed_number(seed: int) -> None:
    """A seed of a random number generator."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        refuse("seed", seed, expected="it must be a whole number from 0 to 2**32 - 1, such as 0")


def instance(name: str, value: Any, base: type, what: str, such: str) -> None:
    """An object of a class; the class itself is none."""
    if isinstance(value, base):
        return
    if isinstance(value, type) and issubclass(value, base):
        what, such = f"{what}, not its class", f"{public_name(value)}()"
    refuse(name, value, expected=f"it must be {what}", instead=such)


def share(name: str, value: float) -> None:
    """A number strictly between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        refuse(name, value, expected="it must lie between 0 and 1, both excluded")


def boolean(name: str, value: bool) -> None:
    """True or False, and nothing that merely passes for one."""
    if not isinstance(value, bool):
        instead = f"{name}=True or {name}=False"
        refuse(name, value, expected="it must be true or false", instead=instead)


def one_of(name: str, value: Any, options: Iterable[str]) -> None:
    """One of the words offered; the nearest is named when it is none of them."""
    options = tuple(options)
    if isinstance(value, str) and value in options:
        return
    near = nearest(value, options)
    hint = f"; did you mean {near!r}?" if near else ""
    refuse(name, value, "is unknown", f"choose one of {', '.join(map(repr, options))}{hint}")


def nearest(value: Any, options: Iterable[str], least: float = 0.6) -> str | None:
    """The word offered that is nearest to a value; None where none is near."""
    return next(iter(get_close_matches(str(value), tuple(options), n=1, cutoff=least)), None)


# ---------------------------------------------------------------- arguments


class _Choice(NamedTuple):
    """One alternative of an annotation."""

    accepts: Callable[[Any], bool]
    words: str
    base: type | None = None
    options: tuple[str, ...] = ()


def checked[F: Callable[..., Any]](function: F) -> F:
    """Let a public function refuse arguments that its annotations do not allow."""
    signature = inspect.signature(function)
    rules = functools.cache(lambda: _rules(function, signature))

    @functools.wraps(function)
    def entered(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError:
            return function(*args, **options)  # Python says what is missing, or unknown.
        with jaxtyped("context"):  # Axes of one name are equally long.
            for name, choices in rules().items():
                if name in given:
                    own = [_object(type(given["self"])) if c is _OWN else c for c in choices]
                    _check(name, given[name], own)
        return function(*args, **options)

    return cast(F, entered)


def _check(name: str, value: Any, choices: Sequence[_Choice]) -> None:
    """Raise unless a value is one of the alternatives of a parameter."""
    if name == "seed":
        seed_number(value)
        return
    if any(choice.accepts(value) for choice in choices):
        return
    named = [choice for choice in choices if choice.words]
    if options := [option for choice in named for option in choice.options]:
        one_of(name, value, options)
    if len(named) == 1 and (base := named[0].base) is not None:
        instance(name, value, base, *_described(base))
    words = " or ".join(dict.fromkeys(choice.words for choice in named))
    also = ", or left out" if len(named) < len(choices) else ""
    refuse(name, value, expected=f"it must be {words}{also}")


# ---------------------------------------------------------------- annotations


def _rules(function: Any, signature: inspect.Signature) -> dict[str, list[_Choice]]:
    """Alternatives of each parameter whose annotation can be checked."""
    rules = {}
    inner = inspect.unwrap(function)
    annotations = {name: one for name, one in inner.__annotations__.items() if name != "return"}
    own = types.SimpleNamespace(__annotations__=annotations)
    for name, annotation in typing.get_type_hints(own, inner.__globals__).items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        choices = [_choice(option) for option in _alternatives(annotation)]
        if None not in choices:
            rules[name] = cast(list[_Choice], choices)
    return rules


def _alternatives(annotation: Any) -> list[Any]:
    """Members of a union and of the unions in it."""
    if isinstance(annotation, typing.TypeVar):
        return _alternatives(annotation.__bound__ or object)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [part for one in typing.get_args(annotation) for part in _alternatives(one)]
    return [annotation]


def _choice(annotation: Any) -> _Choice | None:
    """An alternative; None for one that no value can be held against."""
    origin = typing.get_origin(annotation) or annotation
    if origin is Self:
        return _OWN
    if origin is Literal:
        options = typing.get_args(annotation)
        texts = tuple([option for option in options if isinstance(option, str)])
        words = "one of the words" if texts else ""
        return _Choice(functools.partial(_is_word, options), words, options=texts)
    if origin in _PLAIN:
        return _PLAIN[origin]
    if not isinstance(origin, type) or origin.__name__ in _ELSEWHERE:
        return None
    if issubclass(origin, AbstractArray):
        axes = annotation.dim_str
        words = f"an array of numbers with the axes ({', '.join(axes.split())})"
        return _Choice(functools.partial(_has_axes, axes), words)
    return None if getattr(origin, "_is_protocol", False) else _object(origin)


def _is_word(options: tuple[Any, ...], value: Any) -> bool:
    """True for one of some words, or for False where that is among them."""
    return isinstance(value, (str, bool)) and value in options


def _object(base: type) -> _Choice:
    """An object of a class."""
    return _Choice(lambda value: isinstance(value, base), _described(base)[0], base)


def _described(base: type) -> tuple[str, str]:
    return _OBJECTS.get(base.__name__, (f"a {base.__name__}", f"{base.__name__}(...)"))


# ---------------------------------------------------------------- values


def _has_axes(axes: str, value: Any) -> bool:
    """True for an array of numbers with axes as long as those of the same names elsewhere."""
    if not isinstance(value, (np.ndarray, jax.Array)):
        return False
    numeric = value.dtype == bool or np.issubdtype(value.dtype, np.number)
    kinds: tuple[Any, ...] = Shaped[np.ndarray, axes], Shaped[jax.Array, axes]
    return bool(numeric and isinstance(value, kinds))


def _is_real(value: Any) -> bool:
    """True for a number that a float can hold, and for an array of one."""
    if isinstance(value, (np.ndarray, jax.Array)):
        return value.ndim == 0 and bool(np.issubdtype(value.dtype, np.number))
    return is_number(value) or (isinstance(value, Real) and abs(value) == math.inf)


def _is_text(value: Any) -> bool:
    """True for text that can be written as UTF-8."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeError:
        return False


def _is_count(value: Any) -> bool:
    """True for a whole number that an array can be as long as."""
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 2**31


def _is_sequence(value: Any) -> bool:
    return is_list(value) and hasattr(value, "__len__") and not isinstance(value, Mapping)


_OWN = _Choice(lambda value: False, "judgements of the same kind")
_LIST = _Choice(_is_sequence, "a list")
_MAPPING = _Choice(lambda value: isinstance(value, Mapping), "a mapping, such as a dict")
_PLAIN: dict[Any, _Choice] = {
    type(None): _Choice(lambda value: value is None, ""),
    bool: _Choice(lambda value: isinstance(value, (bool, np.bool_)), "true or false"),
    int: _Choice(_is_count, "a whole number below 2**31"),
    float: _Choice(_is_real, "a number"),
    str: _Choice(_is_text, "text"),
    Path: _Choice(lambda value: isinstance(value, os.PathLike), "a path"),
    Callable: _Choice(callable, "a function"),
    Iterable: _Choice(is_list, "a list"),
    **dict.fromkeys((Sequence, tuple, list), _LIST),
    **dict.fromkeys((Mapping, dict), _MAPPING),
}
