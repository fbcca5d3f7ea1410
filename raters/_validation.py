"""Checks of settings, at the border."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from raters.errors import SettingError, public_name


def positive(name: str, value: float | None, *, optional: bool = False) -> None:
    """A finite number above 0 (or None when that is allowed)."""
    if value is None and optional:
        return
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
    if value is None or not number or not (math.isfinite(value) and value > 0):
        also = " or None, to learn it" if optional else ""
        raise SettingError(
            f"{name}={value!r} is not possible; it must be a number above 0{also}",
            parameter=name,
            value=value,
            expected="it must be a number above 0"
            + ("; leave it out to learn it" if optional else ""),
        )


def plain_positive(model: Any, *names: str, optional: bool = False) -> None:
    """Check settings, and write them as Python numbers, so that equal models have equal texts."""
    for name in names:
        value = getattr(model, name)
        positive(name, value, optional=optional)
        if value is not None:
            object.__setattr__(model, name, float(value))


def whole(name: str, value: int, least: int = 1) -> None:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(
            parameter=name, value=value, expected=f"it must be a whole number, at least {least}"
        )


def at_most(name: str, value: int, most: int, of: str) -> None:
    """A number that is not larger than the number of something."""
    if value > most:
        raise SettingError(
            parameter=name,
            value=value,
            problem=f"is not possible with {most} {of}",
            expected="it must be at most that",
        )


def finite(name: str, value: float, such: float) -> None:
    """A finite number, such as another one."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or not math.isfinite(value)
    ):
        raise SettingError(
            parameter=name, value=value, expected=f"it must be a finite number such as {such}"
        )


def seed_number(seed: int) -> None:
    """A seed of a random number generator."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise SettingError(
            parameter="seed",
            value=seed,
            expected="it must be a whole number from 0 to 2**32 - 1, such as 0",
        )


def instance(name: str, value: Any, base: type, what: str, such: str) -> None:
    """An object of a class; the class itself is none."""
    if isinstance(value, base):
        return
    own = isinstance(value, type) and issubclass(value, base)
    raise SettingError(
        parameter=name,
        value=value,
        expected=f"it must be {what}" + (", not its class" if own else ""),
        instead=f"{public_name(value)}()" if own else such,
    )


def share(name: str, value: float) -> None:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise SettingError(parameter=name, value=value, expected="it must lie between 0 and 1")


def boolean(name: str, value: bool) -> None:
    """True or False, and nothing that merely passes for one."""
    if not isinstance(value, bool):
        raise SettingError(
            parameter=name,
            value=value,
            expected="it must be true or false",
            instead=f"{name}=True or {name}=False",
        )


def one_of(name: str, value: Any, options: Iterable[str]) -> None:
    """One of the words offered; the nearest is named when it is none of them."""
    options = tuple(options)
    if value in options:
        return
    near = get_close_matches(str(value), options, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SettingError(
        parameter=name,
        value=value,
        problem="is unknown",
        expected=f"choose one of {', '.join(map(repr, options))}{hint}",
    )
