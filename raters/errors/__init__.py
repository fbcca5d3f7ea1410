"""Errors and warnings of raters. A message says what was wrong with the value, what was expected,
and what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self

# Texts of values longer than this are not repeated in a message, and longer messages are cut in
# the middle, where names stand: at the end is what to do.
_LONG, _LONGEST = 120, 600
# Warnings that skip these prefixes name the first line outside of the package.
PACKAGE = (str(Path(__file__).parent.parent),)
_PARTS = ("parameter", "value", "problem", "expected")

__all__ = [
    "BackendError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "RatersError",
    "SettingError",
]


_NOT_GIVEN: Any = object()  # of a value that a message does not repeat


class RatersError(Exception):
    """Base class of all errors that raters raises on purpose.

    Parameters
    ----------
    message : str, optional
        For a reader of Python; made of the others where it is not given.
    parameter : str, optional
        Parameter whose value is wrong.
    value : object, optional
        The value.
    expected : str, optional
        What the value must be, in words that suit every front end. Other parameters stand in
        backquotes.
    problem : str
        What is wrong with the value: the verb of the sentence.
    instead : str, optional
        The line of Python to write instead; other front ends leave it out.

    Examples
    --------
    >>> from raters.errors import SettingError
    >>> error = SettingError(parameter="level", value=2, expected="it must lie between 0 and 1",
    ...                      instead="level=0.9")
    >>> str(error)
    'level=2 is not possible; it must lie between 0 and 1: write level=0.9'
    >>> error.worded("--{}".format)
    '--level 2 is not possible; it must lie between 0 and 1'
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        parameter: str | None = None,
        value: Any = _NOT_GIVEN,
        expected: str | None = None,
        problem: str = "is not possible",
        instead: str | None = None,
    ) -> None:
        self.parameter, self.expected, self.problem = parameter, expected, problem
        self.value = None if value is _NOT_GIVEN else value
        if message is None:
            given = "" if value is _NOT_GIVEN else f"={_written(value)}"
            message = self._sentence(f"{parameter}{given}", str)
            message += f": write {instead}" if instead else ""
        elif value is not _NOT_GIVEN and not isinstance(value, str):
            message = message.replace(repr(value), _written(value))  # A message is one line.
        for name, part in getattr(message, "parts", {}).items():  # of a Reason
            setattr(self, name, part)
        super().__init__(one_line(message))

    @property
    def parts(self) -> dict[str, Any]:
        """Parameter, value, problem and expectation, for an error of another message."""
        return {name: getattr(self, name) for name in _PARTS}

    def worded(self, name_of: Callable[[str], str]) -> str:
        """Message in the words of a front end, by its names of parameters; ``str(error)`` where no
        parameter or expectation is known."""
        if self.parameter is None or self.expected is None:
            return str(self)
        subject = f"{name_of(self.parameter)} {typed(self.value)}"
        return self._sentence(subject.rstrip(), name_of)

    def _sentence(self, subject: str, name_of: Callable[[str], str]) -> str:
        """Problem and expectation, with the names of a front end."""
        named = partial(re.sub, r"`(\w+)`", lambda match: name_of(match[1]))
        return one_line(f"{subject} {named(self.problem)}; {named(self.expected or '')}")


class Reason(str):
    """Sentence of a ``why_not`` about the value of a parameter, worded as by `refuse`."""

    parts: dict[str, Any]

    def __new__(cls, *parts: Any, **named: Any) -> Self:
        # Parameter, value, problem and expectation, in this order.
        error = RatersError(**dict(zip(_PARTS, parts, strict=False)), **named)
        reason = super().__new__(cls, str(error))
        reason.parts = error.parts
        return reason


def _written(value: Any) -> str:
    """A value as it would be written in Python."""
    return value.__name__ if isinstance(value, type) else _shortened(repr(value), value)


def one_line(text: str) -> str:
    """A text in one line of bounded length."""
    line = re.sub(r"\s*\n\s*", " ", text)
    half = _LONGEST // 2 - 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


def public_name(thing: Any) -> str:
    """Name of a class or a function as one writes it after ``import raters as rt``."""
    package, *rooms = thing.__module__.split(".")
    if package != "raters":
        return str(thing.__qualname__)
    import raters

    room = "" if thing.__qualname__ in raters.__all__ else f"{rooms[0]}."
    return f"rt.{room}{thing.__qualname__}"


def typed(value: Any) -> str:
    """A value as typed: nothing for none and flags, names by commas, quotes for no text."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, (list, tuple)):
        return _shortened(",".join(str(one) or "''" for one in value), value)
    return _written(value) if isinstance(value, type) else _shortened(str(value) or "''", value)


def _shortened(text: str, value: Any) -> str:
    """The text of a value, or its type where that is long."""
    return f"{type(value).__name__}(...)" if len(text) > _LONG or "\n" in text else text


class DataError(RatersError, ValueError):
    """Data that cannot be read, or do not fit what is asked of them."""


class SettingError(RatersError, ValueError):
    """An option of a model, a back-end or a verb has a value that it cannot have."""


class NotConjugateError(RatersError):
    """A block that a model declares as conjugate is not: its logits are not affine in it, or its
    prior is not Gaussian."""


class BackendError(RatersError):
    """A back-end cannot run this model on this data; the message is the sentence of ``why_not``."""


class DataWarning(UserWarning):
    """The data can be fitted, but something about them limits what can be learned."""


class ConvergenceWarning(UserWarning):
    """A back-end finished, but its own diagnostics say that the result should not be trusted
    yet."""


def refuse(
    parameter: str,
    value: Any = _NOT_GIVEN,
    problem: str = "is not possible",
    expected: str | None = None,
    *,
    instead: str | None = None,
    error: type[RatersError] = SettingError,
) -> NoReturn:
    """Raise an error about the value of a parameter, in words that suit every front end."""
    named = dict(zip(_PARTS, (parameter, value, problem, expected), strict=True))
    raise error(**named, instead=instead)


def refuse_data(*parts: Any, **named: Any) -> NoReturn:
    """As `refuse`, with the error of data."""
    refuse(*parts, error=DataError, **named)
