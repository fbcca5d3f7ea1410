"""Bad inputs as rows of a table: each is refused with a class of error, about a parameter, with a
remedy in one short line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from raters.errors import RatersError

HUGE = 10**30
HALF = "\ud800"  # half a character, which no file holds
THING = object()

# One bad value of each type that a parameter of a simple type may be given.
NO_NUMBER = (None, "x", b"x", [1], {}, float("nan"), THING, 1j, np.zeros(2), HUGE**20)
NO_COUNT = (*NO_NUMBER, 1.5, HUGE, True)
NO_FLAG = (None, 0, "yes", [True], np.zeros(2))
NO_TEXT = (None, 3, b"x", ["x"], HALF)
NO_LIST = (None, 3, "x", np.array(3), THING)
NO_OBJECT = (None, 3, "x", {}, [], THING)
NO_SEED = (None, "x", -1, 1.5, True, 2**32, [0], float("nan"))
NO_SHARE = (0, 1, 2, -0.5, float("inf"), "x", None, float("nan"))
NO_ARRAY = (None, "x", ["x"], {}, [[1], [1, 2]], THING)


def without(values: Iterable[Any], *left_out: Any) -> tuple[Any, ...]:
    """Bad values but for those that are good here, by type and value."""
    return tuple(
        value
        for value in values
        if not any(type(value) is type(good) and value is good for good in left_out)
    )


def rows(
    function: Callable[..., Any],
    good: Mapping[str, Any],
    kind: type[RatersError],
    remedy: str,
    /,
    about: str | None = "",
    **bad: Iterable[Any],
) -> list[Any]:
    """Rows of the table: a call that is good but for one argument, one row for each bad value.

    The error is about the parameter that has the value, unless another is named, or None.
    """
    return [
        pytest.param(
            function,
            {**good, name: value},
            kind,
            name if about == "" else about,
            remedy,
            id=f"{getattr(function, '__qualname__', 'call')}-{name}-{_short(value)}",
        )
        for name, values in bad.items()
        for value in values
    ]


def _short(value: Any) -> str:
    text = ascii(value)
    return (
        text if len(text) <= 24 and "\\" not in text and "0x" not in text else type(value).__name__
    )


TABLE = ("function", "arguments", "kind", "parameter", "remedy")


def check_refused(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    kind: type[RatersError],
    parameter: str | None,
    remedy: str,
) -> None:
    """Assert that a call is refused as its row says."""
    with pytest.raises(kind) as caught:
        function(**arguments)
    message = str(caught.value)
    assert caught.value.parameter == parameter, message
    assert re.search(remedy, message, re.IGNORECASE), message
    assert len(message) <= 600, message
    assert "\n" not in message, message
