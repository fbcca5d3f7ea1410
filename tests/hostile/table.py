"""Bad inputs as rows of a table: each is refused with a class of error, about a parameter, in one
short line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    /,
    about: str | None = "",
    **bad: Iterable[Any],
) -> list[Any]:
    """One row of the table: calls that are good but for one argument, one call for each bad value.

    The error is about the parameter that has the value, unless another is named, or None.
    """
    calls = [
        ({**good, name: value}, name if about == "" else about)
        for name, values in bad.items()
        for value in values
    ]
    arguments, parameters = zip(*calls, strict=True)
    name = f"{getattr(function, '__qualname__', 'call')}-{'-'.join(bad)}"
    return [pytest.param(function, arguments, kind, parameters, id=name)]


TABLE = ("function", "arguments", "kind", "parameter")


def check_refused(
    function: Callable[..., Any],
    arguments: Sequence[Mapping[str, Any]],
    kind: type[RatersError],
    parameter: Sequence[str | None],
) -> None:
    """Assert that calls are refused as their row says, and report each that is not."""
    wrong = []
    for given, about in zip(arguments, parameter, strict=True):
        try:
            function(**given)
        except kind as error:
            message = str(error)
            if error.parameter != about or len(message) > 600 or "\n" in message:
                wrong.append(f"{about}: {error.parameter}: {message}")
        except Exception as error:
            wrong.append(f"{about}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{about} is not refused: {given!r}"[:300])
    assert not wrong, "\n".join(wrong)
