"""Errors that say which parameter they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from raters.errors import RatersError

_ANY = object()


@contextmanager
def raises_about(
    kind: type[RatersError], parameter: str, value: Any = _ANY
) -> Iterator[pytest.ExceptionInfo[RatersError]]:
    """Expect an error about a parameter (of a value), in words that suit every front end."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.parameter == parameter, str(error)
    assert error.expected, str(error)
    assert value is _ANY or _equal(error.value, value), error.value


def _equal(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True
