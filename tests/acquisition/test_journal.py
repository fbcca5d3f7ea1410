"""The journal: nothing acknowledged is lost, nothing counts twice, and a file that is wrong is
refused in one sentence."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from raters.acquisition.campaign import journal as journals
from raters.acquisition.campaign.journal import Journal, Question
from raters.errors import DataError
from tests.acquisition import crashing
from tests.refusals import raises_about

IDENTITY = {"model": "BTL()", "items": '["tea", "milk"]', "pool": "2 questions (abc)"}
PARTS = {"pool/first": np.arange(3), "votes/wins": np.zeros(0, np.float32)}
ROOT = Path(__file__).parents[2]


def question(row: int = 0, annotator: int = 0) -> Question:
    return Question(row, annotator, 0.5, 1.0)


@pytest.fixture
def journal(tmp_path) -> Journal:
    return Journal.start(tmp_path / "campaign.db", IDENTITY, {"batch_size": "3"}, PARTS)


@pytest.fixture
def filled(journal) -> Journal:
    ids = journal.ask([question(row) for row in range(5)], known=0)
    journal.tell({ids[0]: 1.0, ids[3]: 0.5})
    journal.withdraw([ids[4]])
    return journal


def content(journal: Journal) -> tuple:
    """Everything that a journal says."""
    seen, parts = journal.read(), {name: part.tolist() for name, part in journal.parts.items()}
    columns = (
        seen.row,
        seen.annotator,
        seen.batch,
        seen.score,
        seen.cost,
        seen.withdrawn,
        seen.value,
    )
    facts = (journal.identity, journal.settings, journal.tag, parts)
    return facts, [np.nan_to_num(column, nan=-1.0).tolist() for column in columns]


# ---------------------------------------------------------------- asking and telling


def test_what_was_written_is_read_back(filled):
    again = Journal(filled.path)
    assert content(again) == content(filled)
    assert again.identity == IDENTITY
    assert again.parts["pool/first"].tolist() == [0, 1, 2]
    seen = again.read()
    assert seen.answered.tolist() == [True, False, False, True, False]
    assert seen.open.tolist() == [False, True, True, False, False]
    assert seen.value[[0, 3]].tolist() == [1.0, 0.5]
    assert [file.name for file in filled.path.parent.iterdir()] == ["campaign.db"]


def test_an_answer_that_comes_twice_counts_once(filled):
    one = filled.id_of(1)
    assert filled.tell({one: 1.0}) == ((), (one,), (), ())
    with raises_about(DataError, "correct"):
        filled.tell({filled.id_of(2): 1.0, one: 0.0})
    assert filled.read().answered.sum() == 2  # all or nothing
    assert filled.tell({one: 0.0}, correct=True).corrected == (one,)
    assert filled.read().value[0] == 0.0
    assert Journal(filled.path).read().value[0] == 0.0


def test_an_answer_may_come_after_its_question_was_withdrawn(filled):
    late = filled.id_of(5)
    assert filled.tell({late: 1.0}) == ((late,), (), (), (late,))
    assert filled.read().value[4] == 1.0
    assert (
        filled.withdraw([late, filled.id_of(1)]) == ()
    )  # answered, so there is nothing to take back


def test_questions_are_not_handed_out_by_one_who_has_not_seen_the_last(filled):
    assert filled.ask([question()], known=4) is None
    assert filled.ask([question()], known=5) == [filled.id_of(6)]
    assert filled.read().batch.tolist() == [0, 0, 0, 0, 0, 1]


def test_ids_that_were_not_handed_out(filled):
    tag = filled.tag
    for wrong in (f"{tag}-6", f"{tag}-0", f"{tag}-01", f"{tag}-x", "zzzz-1", 3):
        with pytest.raises(DataError, match="was handed out"):
            filled.tell({filled.id_of(2): 1.0, wrong: 1.0})
        with pytest.raises(DataError, match="was handed out"):
            filled.withdraw([filled.id_of(2), wrong])
    assert filled.read().open.sum() == 2


def test_nothing_was_asked_yet(journal):
    with pytest.raises(DataError, match="none was yet"):
        journal.tell({journal.id_of(1): 1.0})


# ---------------------------------------------------------------- files that are wrong


def test_no_journal(tmp_path):
    with raises_about(DataError, "path"):
        Journal(tmp_path / "none.db")
    with raises_about(DataError, "path"):
        Journal(tmp_path)
    with pytest.raises(DataError, match="there is no folder"):
        Journal.start(tmp_path / "none" / "campaign.db", IDENTITY, {}, {})
    (tmp_path / "empty.db").touch()
    with pytest.raises(DataError, match="is no journal"):
        Journal.start(tmp_path / "empty.db", IDENTITY, {}, {})
    (tmp_path / "text.db").write_text("a letter to a friend\n" * 100)
    with pytest.raises(DataError, match="is no journal of a campaign"):
        Journal(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE question (number)")
    other.close()
    with pytest.raises(DataError, match="is no journal"):
        Journal(tmp_path / "other.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["empty.db", "other.db", "text.db"]


def test_a_journal_of_a_later_format(journal):
    with sqlite3.connect(journal.path) as db:
        db.execute("PRAGMA user_version=9")
    db.close()
    with pytest.raises(DataError, match="of this version"):
        Journal(journal.path)


def test_a_journal_that_has_gone_does_not_come_back_empty(filled):
    filled.path.unlink()
    with pytest.raises(DataError, match="cannot be read or written"):
        filled.tell({filled.id_of(2): 1.0})
    assert not filled.path.exists()


def test_a_truncated_journal(filled):
    whole = filled.path.read_bytes()
    for share in (0.01, 0.3, 0.5, 0.9):
        filled.path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DataError, match=r"is damaged|is no journal"):
            content(Journal(filled.path))


def test_a_read_only_journal_can_be_read(filled):
    filled.path.chmod(0o444)
    if os.access(filled.path, os.W_OK):
        pytest.skip("this user may write everything")
    assert Journal(filled.path).read().answered.sum() == 2
    with pytest.raises(DataError, match="cannot be read or written"):
        filled.tell({filled.id_of(2): 1.0})


# ---------------------------------------------------------------- several processes


def test_a_lock_that_stays_is_reported(filled, monkeypatch):
    monkeypatch.setattr(journals, "_PATIENCE", 0.1)
    impatient = Journal(filled.path)
    other = sqlite3.connect(filled.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DataError, match="is locked"):
        impatient.tell({filled.id_of(2): 1.0})
    other.execute("ROLLBACK")
    other.close()
    assert impatient.tell({filled.id_of(2): 1.0}).new


def test_threads_may_share_a_journal(filled):
    ids = filled.ask([question(row) for row in range(20)], known=5)
    threads = [threading.Thread(target=filled.tell, args=({one: 1.0},)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert filled.read().answered.sum() == 22


def test_of_two_that_start_one_makes_the_journal(tmp_path, monkeypatch):
    path, make = tmp_path / "campaign.db", journals._create
    tags = []

    def late(*arguments):
        tags.append(Journal.start(path, IDENTITY, {}, PARTS).tag)  # meanwhile another process
        make(*arguments)

    monkeypatch.setattr(
        journals, "_create", lambda *arguments: (monkeypatch.undo(), late(*arguments))
    )
    assert Journal.start(path, IDENTITY, {}, PARTS).tag == tags[0]
    assert [file.name for file in tmp_path.iterdir()] == ["campaign.db"]


@pytest.mark.slow
@pytest.mark.parametrize("moments", [12, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_killed_at_any_moment_it_loses_no_answer_and_repeats_none(moments, tmp_path):
    """Two processes ask and tell, and one after the other is killed; the log of each says what was
    acknowledged. `benchmarks/campaign_kills.py` does it a thousand times."""
    worker = [sys.executable, "-W", "ignore", "-m", "tests.acquisition.crashing", tmp_path]
    worker.append(str(moments))
    done = subprocess.run(worker, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    wrong = {name: found[name] for name in crashing.WRONG}
    assert not any(wrong.values()), wrong
    # Most processes got to work, and were killed at it.
    assert found["asked"] > moments / 2
    assert found["told"] > 0.3 * moments
    assert found["in_ask"] + found["in_tell"] > 0.4 * moments
