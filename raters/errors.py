"""Errors and warnings of raters. A message says what was wrong with the value, what was expected,
and what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RatersError(Exception):
    """Base class of all errors that raters raises on purpose.

    Parameters
    ----------
    message : str, optional
        For a reader of Python; made of the other three where it is not given.
    parameter : str, optional
        Parameter whose value is wrong.
    value : object, optional
        The value.
    expected : str, optional
        What the value must be, in words that suit every front end.
    problem : str
        What is wrong with the value: the verb of the sentence.

    Examples
    --------
    >>> from raters.errors import SettingError
    >>> error = SettingError(parameter="level", value=2, expected="it must lie between 0 and 1")
    >>> str(error)
    'level=2 is not possible; it must lie between 0 and 1'
    >>> error.worded("--{}".format)
    '--level 2 is not possible; it must lie between 0 and 1'
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        parameter: str | None = None,
        value: Any = None,
        expected: str | None = None,
        problem: str = "is not possible",
    ) -> None:
        self.parameter, self.value, self.expected = parameter, value, expected
        self.problem = problem
        if message is None:
            message = f"{parameter}={value!r} {problem}; {expected}"
        super().__init__(message)

    def worded(self, name_of: Callable[[str], str]) -> str:
        """Return the message in the words of a front end.

        Parameters
        ----------
        name_of : callable
            ``name_of(parameter)`` gives the front end's name of a parameter, such as ``"--level"``.

        Returns
        -------
        str
            ``str(error)`` where the error names no parameter, or not what was expected.
        """
        if self.parameter is None or self.expected is None:
            return str(self)
        subject = f"{name_of(self.parameter)} {_text(self.value)}".rstrip()
        return f"{subject} {self.problem}; {self.expected}"


def _text(value: Any) -> str:
    """A value as it would be typed: nothing for none and for a flag, names by commas."""
    if value is None or value is True:
        return ""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


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
