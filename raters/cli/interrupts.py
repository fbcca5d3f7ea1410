"""Handling of an interrupt while something runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_interrupt(handler: Callable[..., Any]) -> Iterator[None]:
    """Let an interrupt call `handler`."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which alone may handle signals
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
