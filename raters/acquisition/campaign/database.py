"""SQLite file behind a journal: its schema, its transactions, and a checksum in every row."""

from __future__ import annotations

import io
import os
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from raters.errors import DataError
from raters.judgements.names import shorten

# Written into the header of the file, so that no other database passes for a journal: "RTRS".
_APPLICATION = 0x52545253
_FORMAT = 1
# Every row carries a checksum: SQLite's own check detects a torn page, but not a changed digit.
_SCHEMA = (
    (
        "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL)"
        " WITHOUT ROWID"
    ),
    (
        "CREATE TABLE part (name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL)"
        " WITHOUT ROWID"
    ),
    """CREATE TABLE question (number INTEGER PRIMARY KEY, row INTEGER NOT NULL,
       first INTEGER NOT NULL, second INTEGER, annotator INTEGER NOT NULL, batch INTEGER NOT NULL,
       score REAL, cost REAL NOT NULL, asked TEXT NOT NULL, withdrawn TEXT,
       checksum INTEGER NOT NULL)""",
    """CREATE TABLE answer (question INTEGER NOT NULL REFERENCES question,
       revision INTEGER NOT NULL, value REAL NOT NULL, told TEXT NOT NULL,
       checksum INTEGER NOT NULL, PRIMARY KEY (question, revision)) WITHOUT ROWID""",
)
# The columns that tell rows apart, the first of each table.
_KEYS = {
    "fact": ("name",),
    "part": ("name",),
    "question": ("number",),
    "answer": ("question", "revision"),
    "seen": ("number",),
}
_UNUSABLE = ("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM")


class Database:
    """Transactions on the file of a journal; errors of SQLite become sentences."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a connection and a transaction, which is committed at the end or rolled back."""
        try:
            # Never created here: a journal that has gone must not come back empty.
            address = f"{self.path.resolve().as_uri()}?mode=rw"
            with closing(
                sqlite3.connect(address, uri=True, timeout=self.patience, isolation_level=None)
            ) as db:
                db.execute("PRAGMA synchronous=EXTRA")
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield db
                except BaseException:
                    if db.in_transaction:  # SQLite has rolled back already when the disk is full
                        db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
        except UnicodeDecodeError as error:  # in a message about a broken name
            raise self.damaged(str(error)) from error
        except sqlite3.Error as error:
            raise self._error(error, "; nothing was written" if write else "") from error

    def check(self) -> None:
        """Raise `DataError` unless the file is a sound journal of this format."""
        with self.transaction() as db:
            (application,), (version,) = (
                db.execute(f"PRAGMA {name}").fetchone()
                for name in ("application_id", "user_version")
            )
            if application != _APPLICATION:
                raise DataError(
                    f"{str(self.path)!r} is an SQLite database, but no journal of a campaign; name"
                    " another file"
                )
            if version != _FORMAT:
                raise DataError(
                    f"{str(self.path)!r} has format {version}, and this raters reads {_FORMAT};"
                    " install a newer raters"
                )
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise self.damaged(verdict)

    def sound(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a row without its checksum; `DataError` when that does not fit."""
        if row[-1] != _checksum(row[:-1]):
            raise self.damaged("a checksum does not fit")
        return row[:-1]

    def rows(
        self, db: sqlite3.Connection, query: str, parameters: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose last column is the checksum, without it."""
        return [self.sound(row) for row in db.execute(query, parameters)]

    def damaged(self, why: str) -> DataError:
        """Error for a file whose content cannot be right."""
        return DataError(
            f"the journal {str(self.path)!r} is damaged ({' '.join(why.split())}); put a copy of it"
            " in its place"
        )

    def _error(self, error: sqlite3.Error, written: str) -> DataError:
        """Error of SQLite as a sentence, with what was written by then."""
        name, kind = repr(str(self.path)), getattr(error, "sqlite_errorname", "") or ""
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return DataError(
                f"the journal {name} is locked: another process has been writing to it for more"
                f" than {self.patience:g} s. Try again, or end that process{written}"
            )
        if kind.startswith("SQLITE_NOTADB"):
            return DataError(
                f"{name} is no journal of a campaign ({error}); name another file, or put a copy in"
                " its place"
            )
        if kind.startswith(_UNUSABLE):
            return DataError(f"the journal {name} cannot be read or written: {error}{written}")
        return self.damaged(str(error))


class Facts(dict[str, str]):
    """Texts of a journal by name; an error for one that is not there, or is no number."""

    def __init__(self, damaged: Callable[[str], DataError]) -> None:
        super().__init__()
        self._damaged = damaged

    def __missing__(self, name: str) -> str:
        raise self._damaged(f"{name!r} is missing from it")

    def number(self, name: str) -> float:
        """Return the number of this name."""
        try:
            return float(self[name])
        except ValueError as error:
            raise self._damaged(f"{name!r} is {self[name]!r} in it") from error


def create(
    path: Path, facts: Mapping[str, str], parts: Mapping[str, Shaped[np.ndarray, " ..."]]
) -> None:
    """Create the file of a journal, unless another process creates it meanwhile."""
    # Made beside its place and linked there once it is whole, so that a journal is never seen half
    # made, and an empty file under its name is always an error.
    if not path.parent.is_dir():
        raise DataError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    stage = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(stage, isolation_level=None)) as db:
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(f"PRAGMA user_version={_FORMAT}")
            db.execute("PRAGMA synchronous=EXTRA")
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                db.execute(statement)
            for name, value in facts.items():
                insert(db, "fact", name, value)
            for name, array in parts.items():
                insert(db, "part", name, _packed(array))
            db.execute("COMMIT")
        _link(stage, path)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{str(path)!r} cannot be written: {error}") from error
    finally:
        for left in (stage, stage.with_name(f"{stage.name}-journal")):
            with suppress(OSError):
                left.unlink(missing_ok=True)


def insert(db: sqlite3.Connection, table: str, *values: Any) -> None:
    """Write a row, and read it back, so that one which would fail its checksum later is refused."""
    # SQLite gives -0.0 back as 0.0, which + 0.0 makes of it, and NaN as NULL.
    values = tuple(value + 0.0 if isinstance(value, float) else value for value in values)
    row = (*values, _checksum(values))
    if not any(isinstance(value, float) and np.isnan(value) for value in values):
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        key = _KEYS[table]
        query = f"SELECT * FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in key)}"
        if db.execute(query, values[: len(key)]).fetchall() == [row]:
            return
    raise DataError(
        f"the journal cannot keep the {table} {shorten(map(repr, values))}: it would not come back"
        " as it is; expected plain numbers and text, such as an answer of 0.0, 0.5 or 1.0. Nothing"
        " was written"
    )


def unpacked(content: bytes) -> Shaped[np.ndarray, " ..."]:
    """Return the array of a part."""
    array: np.ndarray = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return array


def _packed(array: Shaped[np.ndarray, " ..."]) -> bytes:
    """Compress an array; a pool of all pairs shrinks to a hundredth."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return zlib.compress(out.getvalue(), 1)


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogateescape"))


def _link(stage: Path, path: Path) -> None:
    """Give a whole file its name, unless another has taken it meanwhile."""
    try:
        os.link(stage, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        if not path.exists():
            os.replace(stage, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError as error:
            raise DataError(
                f"{str(path)!r} was written, but a power cut may still lose it: {error.strerror};"
                " go on with it, or delete it and start again"
            ) from error
        finally:
            os.close(folder)
