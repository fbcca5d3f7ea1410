"""The journal: nothing acknowledged is lost, nothing counts twice, and a file that is wrong is
refused."""

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


def tell(journal: Journal, answers: dict[int, float], correct: bool = False):
    return journal.tell(answers, correct=correct, words_of=lambda place, outcome: str(outcome))


@pytest.fixture
def journal(tmp_path) -> Journal:
    return Journal.start(tmp_path / "campaign.db", IDENTITY, {"batch_size": "3"}, PARTS)


@pytest.fixture
def filled(journal) -> Journal:
    ids = journal.ask([question(row) for row in range(5)], known=0)
    tell(journal, {1: 1.0, 4: 0.5})
    journal.withdraw([ids[4]])
    return journal


def test_what_was_written_is_read_back(filled):
    again = Journal(filled.path)
    settings = {"batch_size": "3", "budget": "", "stop": ""}
    assert (again.identity, again.settings) == (IDENTITY, settings)
    np.testing.assert_equal(again.parts, PARTS)
    seen = again.read()
    assert seen.row.tolist() == [0, 1, 2, 3, 4]
    assert seen.answered.tolist() == [True, False, False, True, False]
    assert seen.open.tolist() == [False, True, True, False, False]
    assert seen.value[[0, 3]].tolist() == [1.0, 0.5]
    assert [file.name for file in filled.path.parent.iterdir()] == ["campaign.db"]


def test_an_answer_that_comes_twice_counts_once(filled):
    one = filled.id_of(1)
    assert tell(filled, {1: 1.0}) == ((), (one,), (), ())
    with raises_about(DataError, "correct"):
        tell(filled, {2: 1.0, 1: 0.0})
    assert filled.read().answered.sum() == 2  # all or nothing
    assert tell(filled, {1: 0.0}, correct=True).corrected == (one,)
    assert Journal(filled.path).read().value[0] == filled.read().value[0] == 0.0


def test_questions_are_not_handed_out_by_one_who_has_not_seen_the_last(filled):
    assert filled.ask([question()], known=4) is None
    assert filled.ask([question()], known=5) == [filled.id_of(6)]
    assert filled.read().batch.tolist() == [0, 0, 0, 0, 0, 1]


def test_ids_that_were_not_handed_out(filled):
    tag = filled.tag
    assert filled.place_of(f" {tag}-2", 5) == 2
    for wrong in (f"{tag}-6", f"{tag}-0", f"{tag}-01", f"{tag}-x", "zzzz-1", 3):
        with pytest.raises(DataError):
            filled.withdraw([filled.id_of(2), wrong])
    assert filled.read().open.sum() == 2


# ---------------------------------------------------------------- files that are wrong


def test_no_journal(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE question (number)")
    other.close()
    (tmp_path / "text.db").write_text("a letter to a friend\n" * 100)
    for name in ("none.db", "", "text.db", "other.db"):
        with pytest.raises(DataError):
            Journal(tmp_path / name)
    for name in ("none/campaign.db", "text.db", "other.db"):
        with pytest.raises(DataError):
            Journal.start(tmp_path / name, IDENTITY, {}, {})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.db", "text.db"]


def test_a_journal_of_a_later_format(journal):
    with sqlite3.connect(journal.path) as db:
        db.execute("PRAGMA user_version=9")
    db.close()
    with pytest.raises(DataError):
        Journal(journal.path)


def test_a_journal_that_has_gone_does_not_come_back_empty(filled):
    filled.path.unlink()
    with pytest.raises(DataError):
        tell(filled, {2: 1.0})
    assert not filled.path.exists()


def test_a_truncated_journal(filled):
    whole = filled.path.read_bytes()
    for share in (0.01, 0.3, 0.5, 0.9):
        filled.path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DataError):
            Journal(filled.path)
        with pytest.raises(DataError):
            Journal.start(filled.path, IDENTITY, {}, PARTS)


def test_a_read_only_journal_can_be_read(filled):
    filled.path.chmod(0o444)
    if os.access(filled.path, os.W_OK):
        pytest.skip("this user may write everything")
    assert Journal(filled.path).read().answered.sum() == 2
    with pytest.raises(DataError):
        tell(filled, {2: 1.0})


def test_a_full_disk_loses_nothing(filled, monkeypatch):
    """Nothing is acknowledged, and what was told before is there."""
    make = journals.transaction
    few = (filled.path.stat().st_size // 4096) + 1

    @journals.contextmanager
    def small(path, **settings):
        with make(path, **settings) as db:
            db.execute(f"PRAGMA max_page_count={few}")
            yield db

    monkeypatch.setattr(journals, "transaction", small)
    with pytest.raises(DataError):
        filled.ask([question(row) for row in range(5000)], known=5)
    monkeypatch.undo()
    assert filled.read().value[[0, 3]].tolist() == [1.0, 0.5]
    assert len(filled.read()) == 5


# ---------------------------------------------------------------- several processes


def test_a_lock_that_stays_is_reported(filled, monkeypatch):
    monkeypatch.setattr(journals, "_PATIENCE", 0.1)
    other = sqlite3.connect(filled.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DataError, match="locked"):
        tell(filled, {2: 1.0})
    other.execute("ROLLBACK")
    other.close()
    assert tell(filled, {2: 1.0}).new


def test_threads_may_share_a_journal(filled):
    filled.ask([question(row) for row in range(20)], known=5)
    threads = [threading.Thread(target=tell, args=(filled, {place: 1.0})) for place in range(6, 26)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert filled.read().answered.sum() == 22


def test_of_two_that_start_one_makes_the_journal(tmp_path, monkeypatch):
    """Both find no file; and a process that was killed at its start left an empty one."""
    path, tags = tmp_path / "campaign.db", []
    path.touch()
    monkeypatch.setattr(journals, "is_new", lambda path: True)
    for _ in range(2):
        tags.append(Journal.start(path, IDENTITY, {}, PARTS).tag)
    assert tags[0] == tags[1]


@pytest.mark.slow
@pytest.mark.parametrize("moments", [12, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_killed_at_any_moment_it_loses_no_answer_and_repeats_none(moments, tmp_path):
    """Two processes ask and tell, and one after the other is killed; the log of each says what was
    acknowledged. `benchmarks/campaign_kills.py` does it a thousand times."""
    worker = [sys.executable, "-W", "ignore", "-m", "tests.acquisition.crashing", tmp_path]
    worker.append(str(moments))
    done = subprocess.run(worker, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    wrong = {name: counts[name] for name in crashing.WRONG}
    assert not any(wrong.values()), wrong
    # Most processes got to work, and were killed at it.
    assert counts["asked"] > moments / 2
    assert counts["told"] > 0.3 * moments
    assert counts["in_ask"] + counts["in_tell"] > 0.4 * moments
