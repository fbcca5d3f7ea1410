"""Faults at the calls that write: the n-th of a command fails, whichever library makes it."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

# Calls of Python that change a file system, with the places of paths and of their folders' handles
# among the arguments of their audit events (https://docs.python.org/3/library/audit_events.html).
_CALLS = {
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.chmod": ((0, 2),),
    "sqlite3.connect": ((0, None),),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_SQLITE = {
    "connect": "SQLITE_CANTOPEN",
    errno.ENOSPC: "SQLITE_FULL",
    errno.EROFS: "SQLITE_READONLY",
    errno.EACCES: "SQLITE_IOERR_WRITE",
}
# Nothing on a full disk takes room by going.
_FREES = {"os.remove", "os.rmdir"}


@dataclass
class Fault:
    """Fault at the `at`-th call that writes below one of the folders.

    Parameters
    ----------
    action : callable
        Called with the name of the call; raises, or does something else meanwhile.
    at : int
        Counted from 1.
    folders : tuple of pathlib.Path
    lasting : bool
        Whether it happens at all later calls too.
    """

    action: Callable[[str], None]
    at: int
    folders: tuple[Path, ...]
    lasting: bool = False
    calls: list[str] = field(default_factory=list)
    _busy: bool = False

    @property
    def happened(self) -> bool:
        return len(self.calls) >= self.at

    @property
    def last(self) -> str:
        """The call at which it happened."""
        return self.calls[self.at - 1] if self.happened else "nowhere"

    def watch(self, call: str, paths: list[str]) -> None:
        """Count a call, and let it fail when its time has come."""
        if self._busy or not any(
            Path(path).is_relative_to(folder) for path in paths for folder in self.folders
        ):
            return
        self._busy = True
        try:
            self.calls.append(f"{call} {' '.join(paths)}")
            if len(self.calls) == self.at or (self.lasting and self.happened):
                self.action(call)
        finally:
            self._busy = False


_active: list[Fault] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _active:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, (str, os.PathLike)) and flags & _WRITING:
            _active[-1].watch("open", [os.path.abspath(path)])
    elif event in _CALLS:
        paths = [
            _whole(arguments[path], -1 if folder is None else arguments[folder])
            for path, folder in _CALLS[event]
        ]
        _active[-1].watch(event, paths)


def _whole(path: Any, folder: int) -> str:
    """A path that may be relative to the handle of a folder."""
    path = os.fsdecode(path).removeprefix("file://").partition("?")[0]
    return (
        os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
        if folder >= 0
        else (os.path.abspath(path))
    )


@cache
def _listen() -> None:
    """Hear of the calls, from the first fault on: there is no way to stop it."""
    sys.addaudithook(_hook)


def _fsync(handle: int, _real: Callable[[int], None] = os.fsync) -> None:
    if _active:
        _active[-1].watch("os.fsync", [os.readlink(f"/proc/self/fd/{handle}")])
    _real(handle)


class _Connection(sqlite3.Connection):
    """A connection whose writing statements are calls, and moments after them too."""

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        writes = statement.startswith(("BEGIN IMMEDIATE", "CREATE", "INSERT", "DELETE", "COMMIT"))
        paths = [] if not (writes and _active) else [str(_active[-1].folders[0])]
        for path in paths:
            _active[-1].watch(f"sqlite {statement[:12]}", [path])
        cursor = super().execute(statement, *arguments)
        for path in paths:
            _active[-1].watch(f"after sqlite {statement[:12]}", [path])
        return cursor


_connect = sqlite3.connect


@contextmanager
def injected(fault: Fault) -> Iterator[Fault]:
    """Let it happen in here."""
    _listen()
    _active.append(fault)
    os.fsync, sqlite3.connect = _fsync, partial(_connect, factory=_Connection)
    try:
        yield fault
    finally:
        os.fsync, sqlite3.connect = _fsync.__defaults__[0], _connect
        _active.remove(fault)


def failing(code: int) -> Callable[[str], None]:
    """Raise an error of the system."""

    def fail(call: str) -> None:
        if call.startswith("sqlite"):
            error = sqlite3.OperationalError(os.strerror(code))
            error.sqlite_errorname = _SQLITE["connect" if "connect" in call else code]
            raise error
        if call.startswith("after") or (code == errno.ENOSPC and call in _FREES):
            return
        raise OSError(code, os.strerror(code))

    return fail


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


@contextmanager
def no_larger(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes, not even by a library in C: `write` fails there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
