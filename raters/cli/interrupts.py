"""Interrupts: they end the process at once, but for files that are being written."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130


def _end(*_: object) -> None:
    os.write(2, b"\nraters: interrupted\n")
    os._exit(INTERRUPTED)


@contextmanager
def ending() -> Iterator[None]:
    """Let an interrupt end the process: an exception could be lost in a callback of JAX."""
    with _handled(_end):
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
def _handled(handler: object) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or before not in (signal.default_int_handler, _end):  # Another program's.
        yield
        return
    signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
