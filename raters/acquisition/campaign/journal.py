"""Journals: the questions and answers of a campaign in one SQLite file, which survives crashes."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from raters.acquisition.campaign.database import Database, Facts, create, insert, unpacked
from raters.errors import DataError
from raters.fitting.storage import shown
from raters.judgements.names import shorten


class Question(NamedTuple):
    """Question to hand out: its row in the pool, its codes, its score and its cost."""

    row: int
    first: int
    second: int | None
    annotator: int
    score: float
    cost: float


class TellResult(NamedTuple):
    """Ids of the questions that were answered, by what became of the answers."""

    new: tuple[str, ...]
    again: tuple[str, ...]
    corrected: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(frozen=True)
class Snapshot:
    """All questions in the order in which they were handed out, as arrays of shape (question,)."""

    row: Int[np.ndarray, " question"]
    annotator: Int[np.ndarray, " question"]
    batch: Int[np.ndarray, " question"]
    score: Float[np.ndarray, " question"]
    cost: Float[np.ndarray, " question"]
    withdrawn: Bool[np.ndarray, " question"]
    value: Float[np.ndarray, " question"]
    asked_at: tuple[str, ...]
    answered_at: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def answered(self) -> Bool[np.ndarray, " question"]:
        """True for the questions that have an answer, shape (question,)."""
        return ~np.isnan(self.value)

    @property
    def open(self) -> Bool[np.ndarray, " question"]:
        """True for the questions that wait for an answer, shape (question,)."""
        return np.asarray(~self.answered & ~self.withdrawn)


def journal_path(path: Any) -> Path:
    """The path of a journal; `DataError` for what can be none."""
    if isinstance(path, (str, Path)) and "\0" not in str(path):
        with contextlib.suppress(UnicodeError):  # half a character, which no system has in a path
            os.fsencode(path)
            return Path(path)
    raise DataError(
        parameter="path",
        value=path,
        expected="it must be the path of a file",
        instead="'campaign.db'",
    )


class Journal:
    """File that holds a campaign."""

    @staticmethod
    def is_there(path: str | Path) -> bool:
        """True if there is a file or a folder of this name."""
        return journal_path(path).exists()

    def __init__(self, path: str | Path, *, patience: float = 30.0) -> None:
        self.path = journal_path(path)
        self.database = Database(self.path, patience)
        self._last: tuple[tuple[int, ...], Snapshot] | None = None
        if self.path.is_dir():
            raise DataError(f"{str(path)!r} is a folder; name a file in it")
        if self.path.exists() and not self.path.is_file():
            raise DataError(f"{str(path)!r} is a device, and no file; name a file")
        if not self.path.exists():
            raise DataError(
                parameter="path",
                value=str(path),
                problem="is no file, so there is no journal",
                expected="start a campaign first",
                instead=f"rt.Campaign({str(path)!r}, model, pool)",
            )
        if self.path.stat().st_size == 0:
            raise DataError(
                f"{str(path)!r} is empty, and no journal; delete it, or name another file"
            )
        self.database.check()
        # Read now: a fault on the way to it after a write would look as if nothing was written.
        facts = self._facts("")
        if "tag" not in facts:
            raise self.database.damaged("the beginning of the ids is missing from it")
        self.tag = facts["tag"]

    @classmethod
    def start(
        cls,
        path: str | Path,
        identity: Mapping[str, str],
        settings: Mapping[str, str],
        parts: Mapping[str, Shaped[np.ndarray, " ..."]],
        *,
        patience: float = 30.0,
    ) -> Journal:
        """Make a journal, or open an existing one that has this identity."""
        path = Path(path)
        if not path.exists():
            # The tag tells ids of this campaign from those of others.
            facts = {f"identity/{name}": value for name, value in identity.items()}
            facts |= {f"setting/{name}": value for name, value in settings.items()}
            create(path, facts | {"tag": uuid.uuid4().hex[:4], "started": _now()}, parts)
        journal = cls(path, patience=patience)
        for name, value in identity.items():
            if (theirs := journal.identity.get(name)) != value:
                raise DataError(
                    parameter="path",
                    value=str(path),
                    problem=f"belongs to another campaign: {_difference(name, theirs, value)}",
                    expected="name another file, or go on with that campaign",
                    instead=f"rt.Campaign.open({str(path)!r})",
                )
        journal.change(settings)
        return journal

    # ---------------------------------------------------------------- reading

    @cached_property
    def identity(self) -> Facts:
        """Texts that the campaign was started with, by name."""
        return self._facts("identity/")

    @property
    def settings(self) -> Facts:
        """Texts that may change from one session to the next, by name."""
        return self._facts("setting/")

    def _facts(self, prefix: str) -> Facts:
        with self.database.transaction() as db:
            rows = self.database.rows(db, "SELECT name, value, checksum FROM fact")
        facts = Facts(self.damaged)
        facts.update(
            (name.removeprefix(prefix), value) for name, value in rows if name.startswith(prefix)
        )
        return facts

    def damaged(self, why: str) -> DataError:
        """Error for a journal whose content cannot be right."""
        return self.database.damaged(why)

    @cached_property
    def parts(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays that the campaign was started with, by name."""
        with self.database.transaction() as db:
            rows = self.database.rows(db, "SELECT name, value, checksum FROM part")
        try:
            return {name: unpacked(value) for name, value in rows}
        except (ValueError, TypeError, OSError, EOFError, zlib.error) as error:
            raise self.damaged(f"an array cannot be read: {error}") from error

    def read(self) -> Snapshot:
        """All questions and answers until now."""
        with self.database.transaction() as db:
            # None of the three ever gets smaller, so together they say whether anything was written
            # since.
            (stamp,) = db.execute(
                "SELECT count(*), count(withdrawn), (SELECT count(*) FROM answer) FROM question"
            ).fetchall()
            if self._last is not None and self._last[0] == stamp:
                return self._last[1]
            questions = self.database.rows(db, "SELECT * FROM question ORDER BY number")
            answers = self.database.rows(db, "SELECT * FROM answer ORDER BY question, revision")
        if [row[0] for row in questions] != list(range(1, len(questions) + 1)):
            raise self.database.damaged("questions are missing from it")
        try:
            snapshot = _snapshot(questions, answers)
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            raise self.damaged(f"a question or an answer is none: {error}") from error
        self._last = stamp, snapshot
        return snapshot

    def id_of(self, place: int) -> str:
        """Id of the question in this place, counted from 1."""
        return f"{self.tag}-{place}"

    def place_of(self, question: Any, known: int) -> int:
        """Place of a question, counted from 1, from its id; `known` questions were handed out."""
        tag, _, place = str(question).strip().partition("-")
        if (
            tag == self.tag
            and place.isdecimal()
            and 1 <= int(place) <= known
            and str(int(place)) == place
        ):
            return int(place)
        if tag != self.tag and place.isdecimal():
            why = f"it is of another campaign; ids here begin with {self.tag}-"
        else:
            why = (
                f"{known} were, {self.id_of(1)} to {self.id_of(known)}" if known else "none was yet"
            )
        raise DataError(f"no question {question!r} was handed out: {why}. Nothing was written")

    # ---------------------------------------------------------------- writing

    def change(self, settings: Mapping[str, str]) -> None:
        """Write settings that differ from those in the journal."""
        stored = self.settings
        changed = {name: value for name, value in settings.items() if stored.get(name) != value}
        if changed:
            with self.database.transaction(write=True) as db:
                for name, value in changed.items():
                    db.execute("DELETE FROM fact WHERE name = ?", (f"setting/{name}",))
                    insert(db, "fact", f"setting/{name}", value)

    def ask(self, questions: Sequence[Question], *, known: int) -> list[str] | None:
        """Write questions as open, as one batch."""
        with self.database.transaction(write=True) as db:
            if _num_questions(db) != known:
                return None
            return [self.id_of(place) for place in insert_questions(db, questions)]

    def tell(
        self,
        answers: Mapping[str, float],
        *,
        correct: bool = False,
        words_of: Callable[[int, float], str] | None = None,
    ) -> TellResult:
        """Write answers, all or none."""
        ids: dict[str, list[str]] = {name: [] for name in TellResult._fields}
        with self.database.transaction(write=True) as db:
            known, now = _num_questions(db), _now()
            for question, value in answers.items():
                place, value = self.place_of(question, known), float(value)
                revisions = self.database.rows(
                    db, "SELECT * FROM answer WHERE question = ? ORDER BY revision", (place,)
                )
                _, revision, stored, moment = (
                    revisions[-1] if revisions else (place, -1, None, None)
                )
                if stored == value:
                    ids["again"].append(self.id_of(place))
                    continue
                if stored is not None and not correct:
                    before, after = (
                        repr(outcome) if words_of is None else words_of(place, outcome)
                        for outcome in (stored, value)
                    )
                    raise DataError(
                        f"question {self.id_of(place)} has the answer {before} (told {moment}),"
                        f" and now {after}; nothing was written. Write correct=True when the new"
                        " answer is right, or leave it out when the old one is",
                        parameter="correct",
                        problem=f"is not given, and question {self.id_of(place)} has the answer"
                        f" {before} (told {moment}), and now {after}",
                        expected="nothing was written; give it when the new answer is right",
                    )
                insert(db, "answer", place, revision + 1, value, now)
                ids["new" if stored is None else "corrected"].append(self.id_of(place))
                (withdrawn,) = db.execute(
                    "SELECT withdrawn FROM question WHERE number = ?", (place,)
                ).fetchone()
                if withdrawn is not None:
                    ids["late"].append(self.id_of(place))
        return TellResult(**{name: tuple(own) for name, own in ids.items()})

    def withdraw(self, questions: Sequence[str]) -> tuple[str, ...]:
        """Withdraw open questions, all or none."""
        withdrawn = []
        with self.database.transaction(write=True) as db:
            known = _num_questions(db)
            for question in questions:
                place = self.place_of(question, known)
                (columns,) = self.database.rows(
                    db, "SELECT * FROM question WHERE number = ?", (place,)
                )
                (answered,) = db.execute(
                    "SELECT count(*) FROM answer WHERE question = ?", (place,)
                ).fetchone()
                if columns[-1] is None and not answered:
                    db.execute("DELETE FROM question WHERE number = ?", (place,))
                    insert(db, "question", *columns[:-1], _now())
                    withdrawn.append(self.id_of(place))
        return tuple(withdrawn)


def insert_questions(db: sqlite3.Connection, questions: Sequence[Question]) -> list[int]:
    """Write questions as open, as one batch, and return their places, counted from 1."""
    last, batch = db.execute(
        "SELECT coalesce(max(number), 0), coalesce(max(batch), -1) FROM question"
    ).fetchone()
    now, places = _now(), list(range(last + 1, last + 1 + len(questions)))
    for place, question in zip(places, questions, strict=True):
        score = None if np.isnan(question.score) else float(question.score)
        codes = (question.row, question.first, question.second, question.annotator)
        row = (place, *codes, batch + 1, score, float(question.cost), now, None)
        insert(db, "question", *row)
    return places


def _num_questions(db: sqlite3.Connection) -> int:
    (last,) = db.execute("SELECT coalesce(max(number), 0) FROM question").fetchone()
    return int(last)


def _snapshot(questions: list[tuple[Any, ...]], answers: list[tuple[Any, ...]]) -> Snapshot:
    """Columns of the tables as arrays; of several answers to a question the last counts."""
    value = np.full(len(questions), np.nan)
    answered_at: list[str | None] = [None] * len(questions)
    for place, _, outcome, moment in answers:
        value[place - 1], answered_at[place - 1] = outcome, moment
    _, row, _, _, annotator, batch, score, cost, asked_at, withdrawn = (
        zip(*questions, strict=True) if questions else [()] * 10
    )
    if any(code < 0 for code in (*row, *annotator)):
        raise ValueError("a code is below 0")
    return Snapshot(
        row=np.array(row, np.int64),
        annotator=np.array(annotator, np.int64),
        batch=np.array(batch, np.int64),
        score=np.array([np.nan if known is None else known for known in score], float),
        cost=np.array(cost, float),
        withdrawn=np.array([moment is not None for moment in withdrawn], bool),
        value=value,
        asked_at=tuple(asked_at),
        answered_at=tuple(answered_at),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _difference(name: str, theirs: str | None, ours: str) -> str:
    """Describe the difference of two campaigns in one field; of lists of names, only the names that
    differ."""
    if theirs is not None and theirs.startswith("[") and ours.startswith("["):
        stored, given = json.loads(theirs), json.loads(ours)
        lost, added = (
            [name for name in left if name not in right]
            for left, right in ((stored, given), (given, stored))
        )
        if lost or added:
            parts = [f"has {shorten(map(repr, lost))}, which this one has not"] if lost else []
            parts += [f"has not {shorten(map(repr, added))}, which this one has"] if added else []
            return f"of the {name} it {' and '.join(parts)}"
        return (
            f"its {name} come in another order, {shorten(map(repr, stored))} and not"
            f" {shorten(map(repr, given))}"
        )
    return f"its {name} is {None if theirs is None else shown(theirs)}, not {shown(ours)}"
