"""Journals: the questions and answers of a campaign in one SQLite file, which survives crashes."""

from __future__ import annotations

import io
import os
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from raters.errors import DataError, refuse_data
from raters.fitting.storage import shown

# Written into the header of the file, so that no other database passes for a journal: "RTRS".
_APPLICATION = 0x52545253
_FORMAT = 2
# Seconds to wait for another process.
_PATIENCE = 30.0

_WITHDRAW = (
    "UPDATE question SET withdrawn = ? WHERE number = ? AND withdrawn IS NULL"
    " AND NOT EXISTS (SELECT * FROM answer WHERE question = number)"
)
# Settings of a new journal where none are given.
_DEFAULTS = {"batch_size": "10", "budget": "", "stop": ""}
Arrays = Mapping[str, Shaped[np.ndarray, " ..."]]


class Question(NamedTuple):
    """Question to hand out: its row in the pool, its annotator, its score and its cost."""

    row: int
    annotator: int
    score: float
    cost: float


class TellResult(NamedTuple):
    """Ids of the questions that were answered, by what became of the answers."""

    new: tuple[str, ...]
    again: tuple[str, ...]
    corrected: tuple[str, ...]
    late: tuple[str, ...]


class Seen(NamedTuple):
    """Question that arrived in a stream: its row in the pool, and what was decided."""

    row: int
    score: float  # NaN where it could not be asked, which is NULL in the file.
    threshold: float
    level: float
    rate: float
    question: int | None
    reason: str


# All questions in the order in which they were handed out, with these columns as arrays of shape
# (question,); NULL becomes NaN.
Snapshot = np.recarray
_COLUMNS = [(name, "i8") for name in ("row", "annotator", "batch")]
_COLUMNS += [(name, "f8") for name in ("score", "cost", "value")]
_COLUMNS += [(name, "?") for name in ("withdrawn", "answered", "open")]


def journal_path(path: Any) -> Path:
    """The path of a journal; `DataError` for what can be none."""
    with suppress(UnicodeError):  # of half a character, which no system has in a path
        if isinstance(path, (str, Path)) and b"\0" not in os.fsencode(path):
            return Path(path)
    return refuse_data("path", path, expected="it must be the path of a file")


class Journal:
    """File of a campaign, with texts that it was started with; `tag` marks its ids."""

    def __init__(self, path: str | Path) -> None:
        self.path = journal_path(path)
        if not self.path.is_file():
            problem = "is no file" if self.path.exists() else "does not exist"
            such = f"rt.Campaign({str(path)!r}, model, pool)"
            refuse_data("path", str(path), problem, "start a campaign first", instead=such)
        with transaction(self.path) as db:
            names = "application_id", "user_version", "quick_check(1)", "page_size"
            states = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
            application, version, verdict, page_size = states
            if (application, version) != (_APPLICATION, _FORMAT):
                problem = "is no journal of this version of raters"
                refuse_data("path", str(path), problem, "name the file of a campaign")
            if verdict != "ok" or self.path.stat().st_size % page_size:
                raise self.damaged(verdict if verdict != "ok" else "its end is missing")
            # Read now: a fault on the way to it after a write would look as if nothing was written.
            facts = db.execute("SELECT name, value FROM fact").fetchall()
            self.identity, self.tag = named(facts, "identity/"), dict(facts)["tag"]

    @classmethod
    def start(
        cls, path: str | Path, identity: Mapping[str, str], settings: dict[str, str], parts: Arrays
    ) -> Journal:
        """Make a journal, or open an existing one that has this identity."""
        if is_new(path):
            facts = {f"identity/{name}": value for name, value in identity.items()}
            facts |= {f"setting/{name}": text for name, text in (_DEFAULTS | settings).items()}
            # Read from a table, "282e-1" would be the number 28.2.
            facts |= {"tag": f"q{uuid.uuid4().hex[:3]}", "started": _now()}
            _create(Path(path), facts, parts)
        journal = cls(path)
        for name, value in identity.items():
            if (theirs := journal.identity.get(name)) != value:
                stored = None if theirs is None else shown(theirs)
                problem = f"belongs to another campaign: its {name} is {stored}, not {shown(value)}"
                such = f"rt.Campaign.open({str(path)!r}) to go on with that one"
                refuse_data("path", str(path), problem, "name another file", instead=such)
        journal.change(settings)
        return journal

    def damaged(self, why: object) -> DataError:
        """Error for a journal whose content cannot be right."""
        problem = f"the journal {str(self.path)!r} is damaged ({why})"
        return DataError(f"{problem}; put a copy of it in its place")

    # ---------------------------------------------------------------- reading

    @property
    def settings(self) -> dict[str, str]:
        """Texts that may change from one session to the next, by name."""
        with transaction(self.path) as db:
            return named(db.execute("SELECT name, value FROM fact"), "setting/")

    @cached_property
    def parts(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays that the campaign was started with, by name."""
        with transaction(self.path) as db:
            rows = db.execute("SELECT name, value FROM part").fetchall()
        stored = {name: io.BytesIO(zlib.decompress(value)) for name, value in rows}
        return {name: np.load(file, allow_pickle=False) for name, file in stored.items()}

    def read(self) -> Snapshot:
        """All questions and answers until now."""
        with transaction(self.path) as db:
            # Of several answers to a question the last counts.
            rows = db.execute(
                "WITH last AS (SELECT *, (SELECT value FROM answer WHERE question = number"
                " ORDER BY revision DESC LIMIT 1) AS value FROM question ORDER BY number)"
                " SELECT row, annotator, batch, score, cost, value, withdrawn IS NOT NULL,"
                " value IS NOT NULL, value IS NULL AND withdrawn IS NULL FROM last"
            ).fetchall()
        return np.array(rows, _COLUMNS).view(np.recarray)

    def read_seen(self, last: int = -1) -> pd.DataFrame:
        """The `last` questions that arrived (by default all), by number; the fields of `Seen`."""
        with transaction(self.path) as db:
            query = "SELECT * FROM seen ORDER BY number DESC LIMIT ?"
            rows = db.execute(query, (last,)).fetchall()
        frame = pd.DataFrame(rows[::-1], columns=["number", *Seen._fields, "seen"])
        numbers = "score", "threshold", "level", "rate", "question"
        return frame.set_index("number").astype(dict.fromkeys(numbers, float))

    def id_of(self, place: int) -> str:
        """Id of the question in this place, counted from 1."""
        return f"{self.tag}-{place}"

    def ids_of(self, places: Int[np.ndarray, " question"]) -> list[str]:
        """Ids of the questions in these places, counted from 0."""
        return [self.id_of(place + 1) for place in places.tolist()]

    def place_of(self, question: Any, known: int) -> int:
        """Place of a question, counted from 1, from its id; `known` questions were handed out."""
        text = str(question).strip()
        place = text.removeprefix(f"{self.tag}-")
        if place.isdecimal() and 1 <= int(place) <= known and text == self.id_of(int(place)):
            return int(place)
        ids = f"they are {self.id_of(1)} to {self.id_of(known)}" if known else "none was yet"
        raise DataError(f"no question {question!r} was handed out: {ids}. Nothing was written")

    # ---------------------------------------------------------------- writing

    def change(self, settings: Mapping[str, str]) -> None:
        """Write settings that differ from those in the journal."""
        changed = dict(settings.items() - self.settings.items())
        if changed:
            with transaction(self.path, write=True) as db:
                for name, value in changed.items():
                    db.execute("REPLACE INTO fact VALUES (?, ?)", (f"setting/{name}", value))

    def ask(
        self, questions: Sequence[Question], *, known: int, seen: tuple[int, Seen] | None = None
    ) -> list[str] | None:
        """Write open questions and return ids; None if there are more than `known`, or with `seen`,
        which writes a decision on an arrival too, if others have arrived."""
        with transaction(self.path, write=True) as db:
            last, batch, arrived = db.execute(
                "SELECT coalesce(max(number), 0), coalesce(max(batch), -1),"
                " (SELECT coalesce(max(number), 0) FROM seen) FROM question"
            ).fetchone()
            if last != known or (seen is not None and seen[0] != arrived):
                return None
            now, places = _now(), range(known + 1, known + 1 + len(questions))
            # A score that is no number is NULL.
            for place, (row, annotator, score, cost) in zip(places, questions, strict=True):
                asked = place, row, annotator, batch + 1, score, cost, now, None
                db.execute("INSERT INTO question VALUES (?, ?, ?, ?, ?, ?, ?, ?)", asked)
            if seen is not None:
                decision = seen[1]._replace(question=places[0] if places else None)
                values = (arrived + 1, *decision, now)
                db.execute("INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        return [self.id_of(place) for place in places]

    def tell(
        self, answers: Mapping[int, float], *, correct: bool, words_of: Callable[[int, float], str]
    ) -> TellResult:
        """Write answers to the questions in these places, all or none."""
        ids: dict[str, list[str]] = {name: [] for name in TellResult._fields}
        with transaction(self.path, write=True) as db:
            now = _now()
            for place, value in answers.items():
                name = self.id_of(place)
                revision, stored, moment, withdrawn = db.execute(
                    "SELECT coalesce(revision, -1), value, told, withdrawn FROM question"
                    " LEFT JOIN answer ON question = number WHERE number = ?"
                    " ORDER BY revision DESC LIMIT 1",
                    (place,),
                ).fetchone()
                if stored == value:
                    ids["again"].append(name)
                    continue
                if stored is not None and not correct:
                    has = f"has the answer {words_of(place, stored)} (told {moment})"
                    problem = f"keeps what was told: question {name} {has}; nothing was written"
                    expected = f"where {words_of(place, value)} is right, let it replace that"
                    refuse_data("correct", False, problem, expected, instead="correct=True")
                row = (place, revision + 1, value, now)
                db.execute("INSERT INTO answer VALUES (?, ?, ?, ?)", row)
                ids["new" if stored is None else "corrected"].append(name)
                if withdrawn is not None:
                    ids["late"].append(name)
        return TellResult(**{name: tuple(some) for name, some in ids.items()})

    def withdraw(self, questions: Sequence[Any]) -> tuple[str, ...]:
        """Withdraw open questions, all or none."""
        with transaction(self.path, write=True) as db:
            (known,) = db.execute("SELECT coalesce(max(number), 0) FROM question").fetchone()
            places = [self.place_of(question, known) for question in questions]
            taken = [place for place in places if db.execute(_WITHDRAW, (_now(), place)).rowcount]
        return tuple(map(self.id_of, taken))


def named[Fact](facts: Iterable[tuple[str, Fact]], prefix: str) -> dict[str, Fact]:
    """Facts whose names have a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): fact for name, fact in facts if name.startswith(prefix)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def transaction(
    path: Path, *, write: bool = False, create: bool = False
) -> Iterator[sqlite3.Connection]:
    """A connection and a transaction, committed or rolled back; SQLite's errors as `DataError`."""
    settings: dict[str, Any] = {"uri": True, "timeout": _PATIENCE, "isolation_level": None}
    try:
        # A journal that has gone must not come back empty.
        address = f"{path.resolve().as_uri()}?mode={'rwc' if create else 'rw'}"
        with closing(sqlite3.connect(address, **settings)) as db:
            db.execute("PRAGMA synchronous=EXTRA")
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield db
            except BaseException:
                if db.in_transaction:  # SQLite has rolled back already when the disk is full
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last of a broken name
        problem = f"the journal {str(path)!r} cannot be used: {error}; nothing was written"
        expected = "name a file in a folder that is there, or try again if it is locked"
        raise DataError(f"{problem}; {expected}") from error


def is_new(path: str | Path) -> bool:
    """True where there is no file, or one that a process was about to fill when it was killed."""
    path = journal_path(path)
    if not path.is_file():
        return not path.exists()
    with suppress(DataError), transaction(path) as db:  # Opening the journal says what is wrong.
        return db.execute("SELECT * FROM sqlite_master").fetchone() is None
    return False


def _create(path: Path, facts: Mapping[str, str], parts: Arrays) -> None:
    """Fill a new journal, in one transaction, unless another process does so meanwhile."""
    with transaction(path, write=True, create=True) as db:
        if db.execute("SELECT * FROM sqlite_master").fetchone() is None:
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(f"PRAGMA user_version={_FORMAT}")
            schema = files("raters.acquisition.campaign").joinpath("journal.sql").read_text("utf-8")
            for statement in schema.split(";")[:-1]:
                db.execute(statement)
            db.executemany("INSERT INTO fact VALUES (?, ?)", facts.items())
            for name, array in parts.items():
                out = io.BytesIO()
                np.save(out, array, allow_pickle=False)
                part = name, zlib.compress(out.getvalue(), 1)  # all pairs: to a hundredth
                db.execute("INSERT INTO part VALUES (?, ?)", part)
