"""Interrupts: they end the process at once, but for files that are being written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_interrupt(handler: Callable[..., Any]) -> Iterator[None]:
    """Let an interrupt call `handler`."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def deferred() -> Iterator[None]:
    """Let an interrupt wait until files are written."""
    came: list[object] = []
    with on_interrupt(lambda *_: came.append(True)):
        yield
    if came:
        signal.raise_signal(signal.SIGINT)
