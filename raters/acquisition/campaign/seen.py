"""Questions that arrived in a stream, and what was decided on each, in the journal of a
campaign."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

from raters.acquisition.campaign.database import insert
from raters.acquisition.campaign.journal import Journal, Question, insert_questions

# Made with the first question of a stream: journals of campaigns without one do not have it.
_TABLE = """CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY, row INTEGER NOT NULL,
    score REAL, threshold REAL NOT NULL, level REAL NOT NULL, rate REAL NOT NULL,
    question INTEGER, reason TEXT NOT NULL, seen TEXT NOT NULL, checksum INTEGER NOT NULL)"""


class Seen(NamedTuple):
    """Question that arrived: its row in the pool, and what was decided."""

    row: int
    score: float | None
    threshold: float
    level: float
    rate: float
    question: int | None
    reason: str


def read_seen(journal: Journal, last: int | None = None) -> tuple[list[Seen], int]:
    """The `last` questions that arrived (all of them by default), in order, and the number of
    all."""
    with journal.database.transaction() as db:
        (there,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'seen'").fetchone()
        if not there:
            return [], 0
        number, total = db.execute("SELECT count(*), coalesce(max(number), 0) FROM seen").fetchone()
        first = 0 if last is None else total - last
        rows = journal.database.rows(
            db, "SELECT * FROM seen WHERE number > ? ORDER BY number", (first,)
        )
    if number != total:
        raise journal.damaged("questions that arrived are missing from it")
    return [Seen(*row[1:-1]) for row in rows], int(total)


def write_seen(
    journal: Journal, seen: Seen, question: Question | None, *, known: int, known_seen: int
) -> str | None:
    """Write a decision, together with the question where it is asked."""
    with journal.database.transaction(write=True) as db:
        db.execute(_TABLE)
        (total,) = db.execute("SELECT coalesce(max(number), 0) FROM seen").fetchone()
        (handed_out,) = db.execute("SELECT coalesce(max(number), 0) FROM question").fetchone()
        if (total, handed_out) != (known_seen, known):
            return None
        place = None
        if question is not None:
            (place,) = insert_questions(db, [question])
        values = seen._replace(question=place, level=float(seen.level), rate=float(seen.rate))
        score = None if seen.score is None or math.isnan(seen.score) else float(seen.score)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        insert(db, "seen", total + 1, *values._replace(score=score), now)
    return "" if place is None else journal.id_of(place)
