"""Interrupts: they end the process at once, but for files that are being written."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ending() -> Iterator[None]:
    """Let an interrupt end the process: an exception could be lost in a callback of JAX."""

    def end(*_: object) -> None:
        os.write(2, b"\nraters: interrupted\n")
        os._exit(130)

    with _handled(end):
        yield


@contextmanager
def deferred() -> Iterator[None]:
    """Let an interrupt wait until files are written."""
    came: list[object] = []
    with _handled(lambda *_: came.append(True)):
        yield
    if came:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _handled(handler: Callable[..., Any]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
