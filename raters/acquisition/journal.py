"""The journal of a campaign: what was asked and what was answered, in one SQLite file that no crash can tear."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raters._frame import shorten
from raters.errors import DataError

# What SQLite writes into the header of the file, so that no other database passes for a journal: "RTRS".
_APPLICATION = 0x52545253
_FORMAT = 1
# Every row carries a checksum: SQLite's own check sees a torn page, and not a digit that has changed.
_SCHEMA = (
    "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE part (name TEXT PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE question (number INTEGER PRIMARY KEY, row INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER,
       annotator INTEGER NOT NULL, batch INTEGER NOT NULL, score REAL, cost REAL NOT NULL, asked TEXT NOT NULL,
       withdrawn TEXT, checksum INTEGER NOT NULL)""",
    """CREATE TABLE answer (question INTEGER NOT NULL REFERENCES question, revision INTEGER NOT NULL, value REAL NOT NULL,
       told TEXT NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (question, revision)) WITHOUT ROWID""",
)
# The columns that tell rows apart, the first of each table.
_KEYS = {"fact": ("name",), "part": ("name",), "question": ("number",), "answer": ("question", "revision")}


class Question(NamedTuple):
    """A question to hand out: its row in the pool, the codes in it, and what it scored.

    `first` is the code of the first item, or of the item to label, and then `second` is None.
    """

    row: int
    first: int
    second: int | None
    annotator: int
    score: float
    cost: float


class Told(NamedTuple):
    """What became of the answers told: ids of questions.

    `new` were not answered before; `again` had this answer already, and it was ignored; `corrected` had another answer, which
    is kept in the journal and counts no longer; `late`, of all these, had been withdrawn.
    """

    new: tuple[str, ...]
    again: tuple[str, ...]
    corrected: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(frozen=True)
class Snapshot:
    """All questions in the order in which they were handed out, as arrays of shape (question,).

    `value` is the answer as the journal holds it, NaN where there is none. Question number n (from 1) is in place n − 1.
    """

    row: np.ndarray
    annotator: np.ndarray
    batch: np.ndarray
    score: np.ndarray
    cost: np.ndarray
    withdrawn: np.ndarray
    value: np.ndarray
    asked: tuple[str, ...]
    told: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def answered(self) -> np.ndarray:
        """Which questions have an answer."""
        return ~np.isnan(self.value)

    @property
    def open(self) -> np.ndarray:
        """Which questions wait for an answer."""
        return ~self.answered & ~self.withdrawn


class Journal:
    """The file that holds a campaign. What a method has written when it returns outlives the process and the machine.

    One transaction for each call that writes, with ``synchronous=EXTRA``: the file, and the folder that held SQLite's rollback
    journal, are on the disk before it returns (https://www.sqlite.org/pragma.html#pragma_synchronous). Connections
    are opened for each call, so a journal may be used from several processes and threads at once, and after a fork.

    Parameters
    ----------
    path : path
        A journal that is there; `Journal.start` makes a new one.
    patience : float
        Seconds to wait while another process writes.

    Raises
    ------
    DataError
        When there is no file, or it is no journal, or a damaged one, or stays locked by another process.
    """

    def __init__(self, path: str | Path, *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._patience = patience
        self._seen: tuple[tuple[int, ...], Snapshot] | None = None
        if self.path.is_dir():
            raise DataError(f"{str(path)!r} is a folder; name a file in it")
        if not self.path.exists():
            raise DataError(f"there is no journal {str(path)!r}; start one with rt.Campaign({str(path)!r}, model, pool)")
        if self.path.stat().st_size == 0:
            raise DataError(f"{str(path)!r} is empty, and no journal; delete it, or name another file")
        with self._transaction() as db:
            self._check(db)

    @classmethod
    def start(
        cls,
        path: str | Path,
        identity: Mapping[str, str],
        settings: Mapping[str, str],
        parts: Mapping[str, np.ndarray],
        *,
        patience: float = 30.0,
    ) -> Journal:
        """A new journal, or the one that is there when its identity is this one.

        Parameters
        ----------
        path : path
        identity : mapping
            What must be equal for two campaigns to be one.
        settings : mapping
            What may change from one session to the next; written in either case.
        parts : mapping of arrays
            The pool and earlier judgements; written once.

        Raises
        ------
        DataError
            As for `Journal`, and when the journal is that of another campaign: which field differs, and both values.
        """
        path = Path(path)
        if not path.exists():
            cls._create(path, identity, settings, parts)
        journal = cls(path, patience=patience)
        for name, value in identity.items():
            if (theirs := journal.identity.get(name)) != value:
                raise DataError(
                    f"the journal {str(path)!r} belongs to another campaign: {_difference(name, theirs, value)}. Name another "
                    f"file, or go on with that campaign by rt.Campaign.open({str(path)!r})"
                )
        journal.change(settings)
        return journal

    @staticmethod
    def _create(path: Path, identity: Mapping[str, str], settings: Mapping[str, str], parts: Mapping[str, np.ndarray]) -> None:
        # Made beside its place and linked there once it is whole, so that a journal is never seen half made, and an
        # empty file under its name is always an error.
        if not path.parent.is_dir():
            raise DataError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
        stage = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
        # The tag tells ids of this campaign from those of others.
        facts = {f"identity/{name}": value for name, value in identity.items()}
        facts |= {f"setting/{name}": value for name, value in settings.items()}
        facts |= {"tag": uuid.uuid4().hex[:4], "started": _now()}
        try:
            with closing(sqlite3.connect(stage, isolation_level=None)) as db:
                db.execute(f"PRAGMA application_id={_APPLICATION}")
                db.execute(f"PRAGMA user_version={_FORMAT}")
                db.execute("PRAGMA synchronous=EXTRA")
                db.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    db.execute(statement)
                for name, value in facts.items():
                    _insert(db, "fact", name, value)
                for name, array in parts.items():
                    _insert(db, "part", name, _packed(array))
                db.execute("COMMIT")
            _link(stage, path)
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"{str(path)!r} cannot be written: {error}") from error
        finally:
            stage.unlink(missing_ok=True)

    # ---------------------------------------------------------------- reading

    @cached_property
    def identity(self) -> dict[str, str]:
        """What the campaign was started with, by name."""
        return self._facts("identity/")

    @property
    def settings(self) -> dict[str, str]:
        """What may change from one session to the next, by name."""
        return self._facts("setting/")

    @cached_property
    def tag(self) -> str:
        """What the ids of this campaign begin with."""
        return self._facts("")["tag"]

    def _facts(self, prefix: str) -> dict[str, str]:
        with self._transaction() as db:
            rows = [self._sound(row) for row in db.execute("SELECT name, value, checksum FROM fact")]
        return {name.removeprefix(prefix): value for name, value in rows if name.startswith(prefix)}

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """The arrays that the campaign was started with, by name."""
        with self._transaction() as db:
            rows = [self._sound(row) for row in db.execute("SELECT name, value, checksum FROM part")]
        return {name: _unpacked(value) for name, value in rows}

    def read(self) -> Snapshot:
        """Everything that was asked and answered until now."""
        with self._transaction() as db:
            # None of the three ever gets smaller, so together they say whether anything was written since.
            (stamp,) = db.execute("SELECT count(*), count(withdrawn), (SELECT count(*) FROM answer) FROM question").fetchall()
            if self._seen is not None and self._seen[0] == stamp:
                return self._seen[1]
            asked = [self._sound(row) for row in db.execute("SELECT * FROM question ORDER BY number")]
            told = [self._sound(row) for row in db.execute("SELECT * FROM answer ORDER BY question, revision")]
        if [row[0] for row in asked] != list(range(1, len(asked) + 1)):
            raise self._damaged("questions are missing from it")
        value, when = np.full(len(asked), np.nan), [None] * len(asked)
        for number, _, answer, moment in told:  # the last revision counts
            value[number - 1], when[number - 1] = answer, moment
        _, row, _, _, annotator, batch, score, cost, moment, withdrawn = zip(*asked, strict=True) if asked else [()] * 10
        found = Snapshot(
            row=np.array(row, np.int64),
            annotator=np.array(annotator, np.int64),
            batch=np.array(batch, np.int64),
            score=np.array([np.nan if one is None else one for one in score], float),
            cost=np.array(cost, float),
            withdrawn=np.array([one is not None for one in withdrawn], bool),
            value=value,
            asked=tuple(moment),
            told=tuple(when),
        )
        self._seen = stamp, found
        return found

    def id_of(self, number: int) -> str:
        """The id of question number `number`, counted from 1."""
        return f"{self.tag}-{number}"

    def number_of(self, question: Any, known: int) -> int:
        """The number of a question that was handed out, from its id; `known` of them were."""
        tag, _, number = str(question).strip().partition("-")
        if tag == self.tag and number.isdecimal() and 1 <= int(number) <= known and str(int(number)) == number:
            return int(number)
        if tag != self.tag and number.isdecimal():
            why = f"it is of another campaign; ids here begin with {self.tag}-"
        else:
            why = f"{known} were, {self.id_of(1)} to {self.id_of(known)}" if known else "none was yet"
        raise DataError(f"no question {question!r} was handed out: {why}. Nothing was written")

    # ---------------------------------------------------------------- writing

    def change(self, settings: Mapping[str, str]) -> None:
        """Write settings that differ from those in the journal."""
        there = self.settings
        if changed := {name: value for name, value in settings.items() if there.get(name) != value}:
            with self._transaction(write=True) as db:
                for name, value in changed.items():
                    db.execute("DELETE FROM fact WHERE name = ?", (f"setting/{name}",))
                    _insert(db, "fact", f"setting/{name}", value)

    def ask(self, questions: Sequence[Question], *, known: int) -> list[str] | None:
        """Write questions down as open, as one batch; gives their ids.

        None when others were handed out since there were `known`, for then these may be among them; choose again.
        """
        with self._transaction(write=True) as db:
            number, batch = db.execute("SELECT coalesce(max(number), 0), coalesce(max(batch), -1) FROM question").fetchone()
            if number != known:
                return None
            now = _now()
            for place, question in enumerate(questions, 1):
                row, first, second, annotator, score, cost = question
                known_score = None if np.isnan(score) else float(score)
                _insert(
                    db,
                    "question",
                    number + place,
                    row,
                    first,
                    second,
                    annotator,
                    batch + 1,
                    known_score,
                    float(cost),
                    now,
                    None,
                )
        return [self.id_of(number + place) for place in range(1, len(questions) + 1)]

    def tell(
        self, answers: Mapping[str, float], *, correct: bool = False, say: Callable[[int, float], str] | None = None
    ) -> Told:
        """Write answers down, all or none.

        Parameters
        ----------
        answers : mapping
            From the id of a question to its answer as a number.
        correct : bool
            Whether an answer may take the place of another.
        say : callable, optional
            The words for an answer, from the number of a question and the answer.

        Raises
        ------
        DataError
            For an id that was not handed out; for another answer than the one that is there, unless `correct`.
        """
        found: dict[str, list[str]] = {name: [] for name in Told._fields}
        with self._transaction(write=True) as db:
            (known,) = db.execute("SELECT coalesce(max(number), 0) FROM question").fetchone()
            now = _now()
            for question, value in answers.items():
                number, value = self.number_of(question, known), float(value)
                told = db.execute("SELECT * FROM answer WHERE question = ? ORDER BY revision", (number,)).fetchall()
                _, revision, there, moment = self._sound(told[-1]) if told else (number, -1, None, None)
                if there == value:
                    found["again"].append(self.id_of(number))
                    continue
                if there is not None and not correct:
                    before, after = (repr(one) if say is None else say(number, one) for one in (there, value))
                    raise DataError(
                        f"question {self.id_of(number)} has the answer {before} (told {moment}), and now {after}; nothing "
                        "was written. Write correct=True when the new answer is right, or leave it out when the old one is"
                    )
                _insert(db, "answer", number, revision + 1, value, now)
                found["new" if there is None else "corrected"].append(self.id_of(number))
                (withdrawn,) = db.execute("SELECT withdrawn FROM question WHERE number = ?", (number,)).fetchone()
                if withdrawn is not None:
                    found["late"].append(self.id_of(number))
        return Told(**{name: tuple(ids) for name, ids in found.items()})

    def withdraw(self, questions: Sequence[str]) -> tuple[str, ...]:
        """Take open questions back, all or none; gives those that were open. An answer that comes later still counts."""
        found = []
        with self._transaction(write=True) as db:
            (known,) = db.execute("SELECT coalesce(max(number), 0) FROM question").fetchone()
            for question in questions:
                number = self.number_of(question, known)
                columns = self._sound(db.execute("SELECT * FROM question WHERE number = ?", (number,)).fetchone())
                (answered,) = db.execute("SELECT count(*) FROM answer WHERE question = ?", (number,)).fetchone()
                if columns[-1] is None and not answered:
                    db.execute("DELETE FROM question WHERE number = ?", (number,))
                    _insert(db, "question", *columns[:-1], _now())
                    found.append(self.id_of(number))
        return tuple(found)

    # ---------------------------------------------------------------- SQLite

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            # Never created here: a journal that has gone must not come back empty.
            address = f"{self.path.resolve().as_uri()}?mode=rw"
            with closing(sqlite3.connect(address, uri=True, timeout=self._patience, isolation_level=None)) as db:
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
            raise self._damaged(str(error)) from error
        except sqlite3.Error as error:
            raise self._said(error) from error

    def _check(self, db: sqlite3.Connection) -> None:
        (application,), (version,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
        if application != _APPLICATION:
            raise DataError(f"{str(self.path)!r} is an SQLite database, but no journal of a campaign; name another file")
        if version != _FORMAT:
            raise DataError(f"{str(self.path)!r} has format {version}, and this raters reads {_FORMAT}; install a newer raters")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged(verdict)

    def _sound(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row without its checksum; `DataError` when that does not fit."""
        if row[-1] != _checksum(row[:-1]):
            raise self._damaged("a checksum does not fit")
        return row[:-1]

    def _damaged(self, why: str) -> DataError:
        return DataError(f"the journal {str(self.path)!r} is damaged ({' '.join(why.split())}); put a copy of it in its place")

    def _said(self, error: sqlite3.Error) -> DataError:
        name, kind = repr(str(self.path)), getattr(error, "sqlite_errorname", "") or ""
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return DataError(
                f"the journal {name} is locked: another process has been writing to it for more than {self._patience:g} s. "
                "Try again, or end that process; nothing was written"
            )
        if kind.startswith("SQLITE_NOTADB"):
            return DataError(f"{name} is no journal of a campaign ({error}); name another file, or put a copy in its place")
        if kind.startswith(("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return DataError(f"the journal {name} cannot be read or written: {error}; nothing was written")
        return self._damaged(str(error))


def _insert(db: sqlite3.Connection, table: str, *values: Any) -> None:
    """Write a row, and read it back: one that would not pass its checksum later is refused before it is there."""
    # SQLite gives -0.0 back as 0.0, which + 0.0 makes of it, and NaN as NULL.
    values = tuple(value + 0.0 if isinstance(value, float) else value for value in values)
    row = (*values, _checksum(values))
    if not any(isinstance(value, float) and np.isnan(value) for value in values):
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        key = _KEYS[table]
        where = " AND ".join(f"{name} = ?" for name in key)
        if db.execute(f"SELECT * FROM {table} WHERE {where}", values[: len(key)]).fetchall() == [row]:
            return
    raise DataError(
        f"the journal cannot keep the {table} {shorten(map(repr, values))}: it would not come back as it is; expected plain "
        "numbers and text, such as an answer of 0.0, 0.5 or 1.0. Nothing was written"
    )


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogateescape"))


def _packed(array: np.ndarray) -> bytes:
    """An array as bytes; a pool of all pairs shrinks to a hundredth."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return zlib.compress(out.getvalue(), 1)


def _unpacked(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)


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
        finally:
            os.close(folder)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _difference(name: str, theirs: str | None, ours: str) -> str:
    """In which field two campaigns differ, and both values, cut to where they differ when they are long lists of names."""
    if theirs is not None and theirs.startswith("[") and ours.startswith("["):
        there, here = json.loads(theirs), json.loads(ours)
        lost, added = ([one for one in left if one not in right] for left, right in ((there, here), (here, there)))
        if lost or added:
            parts = [f"has {shorten(map(repr, lost))}, which this one has not"] if lost else []
            parts += [f"has not {shorten(map(repr, added))}, which this one has"] if added else []
            return f"of the {name} it {' and '.join(parts)}"
        return f"its {name} come in another order, {shorten(map(repr, there))} and not {shorten(map(repr, here))}"
    return f"its {name} is {theirs}, not {ours}"
