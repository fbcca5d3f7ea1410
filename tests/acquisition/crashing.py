"""Processes that ask and tell on one journal until they are killed, and what the journal must hold
then: for `test_journal.py` and `benchmarks/campaign_kills.py`, each in a process of its own.

Importing JAX takes seconds, so one process imports it and forks the others, before any of them
computes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import raters as rt
from raters.acquisition import Policy, Random
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.settings import Setup

ITEMS, ANNOTATORS = 40, 5


def campaign(path: Path, items: int = ITEMS) -> Campaign:
    """A campaign that fits nothing; each question, 3,900 of 40 items, is to be asked once."""
    names = rt.Comparisons([], [], [], None, None, tuple(range(items)), tuple(range(ANNOTATORS)))
    settings = {"policy": Policy(score=Random()), "batch_size": 3, "again": False}
    return Campaign(path, rt.BTL(), rt.Candidates.pairs(names), **settings)


def answer_to(question: str) -> str:
    """The answer that everybody gives to it, so that anybody may."""
    return ("first", "second", "tie")[int(question.partition("-")[2]) % 3]


# ---------------------------------------------------------------- processes


def work(path: Path, log: Path, seed: int, items: int) -> None:
    """Ask and tell for ever, and write down what is begun and what was acknowledged."""
    rng = random.Random(seed)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    told: list[str] = []

    def log_down(what: str, entries: list[str]) -> None:
        os.write(file, "".join(f"{what} {entry}\n" for entry in entries).encode())

    def tell(questions: list[str]) -> None:
        log_down("trying", questions)
        running.tell({question: answer_to(question) for question in questions})
        log_down("told", questions)
        told.extend(questions)

    begin = time.perf_counter()
    running = campaign(path, items)
    log_down("opened", [str(time.perf_counter() - begin)])
    tell(
        rng.sample(left := running.outstanding()["id"].values.tolist(), k=len(left) // 2)
    )  # what the dead have left
    while True:
        log_down("asking", ["some"])
        asked = running.ask(rng.randint(1, 4))["id"].values.tolist()
        log_down("asked", asked)
        if rng.random() < 0.2:
            running.withdraw(rng.sample(asked, k=1))  # and told all the same
        tell(rng.sample(asked, k=rng.randint(0, len(asked))))
        if told and rng.random() < 0.3:
            tell(rng.sample(told, k=1))  # once more


def started(folder: Path, number: int, items: int) -> int:
    """A process that works."""
    process = os.fork()
    if not process:
        try:
            work(folder / "campaign.db", folder / f"{number}.log", number, items)
        finally:
            os._exit(1)  # only an error gets here
    return process


def kill(folder: Path, kills: int, items: int = ITEMS) -> None:
    """Let two processes work, and kill one of them at a random moment, so many times."""
    # That the back-end can run the model takes JAX a second to say, which is longer than most of
    # them live.
    Setup.check_possible = lambda _: None
    rng = random.Random(0)
    running = [started(folder, number, items) for number in range(2)]
    for number in range(kills):
        log = folder / f"{number}.log"
        early = rng.random() < 0.1  # while it opens the campaign
        while not early and not (log.exists() and log.stat().st_size):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.15))
        process = running.pop(0)
        os.kill(process, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(process, 0)[1]):
            raise SystemExit("a process ended by itself")
        running.append(started(folder, number + 2, items))
    for process in running:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


# ---------------------------------------------------------------- what must hold


class Findings(NamedTuple):
    """Counts of kills and of acknowledged answers, and faults of the journal.

    Attributes
    ----------
    in_ask, in_tell, elsewhere : int
        Processes that were killed while they asked, told, or did something else, such as open the
        campaign.
    asked, told : int
        Questions and answers that were acknowledged.
    questions_lost, questions_doubled : int
        Acknowledged questions that are not in the journal; that were handed out twice.
    answers_lost, answers_doubled, answers_changed, answers_invented : int
        Acknowledged answers that are not in the journal; that count twice; answers in the journal
        that are others than those told, and that nobody told.
    damaged : str
        What SQLite finds wrong with the file; empty for nothing.
    reopening : list of float
        Seconds until the campaign was open, of each process that lived so long.
    """

    in_ask: int
    in_tell: int
    elsewhere: int
    asked: int
    told: int
    questions_lost: int
    questions_doubled: int
    answers_lost: int
    answers_doubled: int
    answers_changed: int
    answers_invented: int
    damaged: str
    reopening: list[float]


# What must be nothing.
WRONG = (
    *("questions_lost", "questions_doubled", "answers_lost", "answers_doubled"),
    *("answers_changed", "answers_invented", "damaged"),
)


def findings(folder: Path, items: int = ITEMS) -> Findings:
    """Compare the logs of the processes with the journal."""
    logs = [file.read_text().splitlines() for file in folder.glob("*.log")]
    entries = [tuple(line.split(" ", 1)) for log in logs for line in log]
    of = {what: [one for key, one in entries if key == what] for what, _ in entries}
    last = Counter(log[-1].split()[0] if log else "" for log in logs)
    asked, told, tried = of.get("asked", []), set(of.get("told", [])), set(of.get("trying", []))

    running = campaign(folder / "campaign.db", items)
    journal = running._journal
    seen = journal.read()
    ids = [journal.id_of(place) for place in range(1, len(seen) + 1)]
    words = {1.0: "first", 0.0: "second", 0.5: "tie"}
    stored = dict(zip(ids, seen.value.tolist(), strict=True))
    answered = {one: words[value] for one, value in stored.items() if value == value}
    once = seen.row[~seen.withdrawn]
    with closing(sqlite3.connect(journal.path)) as db:
        verdict = db.execute("PRAGMA integrity_check").fetchall()
    return Findings(
        last["asking"],
        last["trying"],
        len(logs) - last["asking"] - last["trying"],
        len(asked),
        len(told),
        len(set(asked) - set(ids)),
        len(asked) - len(set(asked)) + len(once) - len(set(once.tolist())),
        len(told - set(answered)),
        running.data.num_votes - len(answered),
        sum(said != answer_to(one) for one, said in answered.items()),
        len(set(answered) - tried),
        "" if verdict == [("ok",)] else str(verdict),
        [float(seconds) for seconds in of.get("opened", [])],
    )


if __name__ == "__main__":
    kill(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(findings(Path(sys.argv[1]))._asdict()))
