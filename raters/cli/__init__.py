"""The command line. Its modules import JAX and others for seconds; an interrupt ends them in one
line too."""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let an interrupt end the process at once, with its line, while there is nothing to clean
    up."""
    before = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or before is not signal.default_int_handler:  # Ignored, or another program's.
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(*_: object) -> None:
    if sys.stderr is not None:
        os.write(2, b"raters: interrupted\n")
    os._exit(130)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Let an interrupt be raised once more where Python ignored it: in a destructor, or in a
    callback of garbage collection, of which JAX has one."""
    before = sys.unraisablehook

    def hook(ignored: Any) -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            # Not at once, since it would be raised in here and be ignored again.
            threading.Timer(0.05, interrupt_main).start()
        else:
            before(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def main() -> int:
    """Run the command line; the value is the exit code: see `raters.cli.app.main`."""
    with ended_by_interrupt():
        from raters.cli import app
    return app.main()
