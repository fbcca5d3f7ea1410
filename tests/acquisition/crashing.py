"""Processes that ask and tell until they are killed: run by `test_journal.py`, in a process of its
own.

Importing JAX takes seconds, so one process imports it and forks the others, before any of them
computes.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import raters as rt
from raters.acquisition import Policy, Random
from raters.acquisition.campaign import campaign as campaigns
from raters.acquisition.campaign.campaign import Campaign

ITEMS, ANNOTATORS = 40, 5


def campaign(path: Path) -> Campaign:
    """A campaign that fits nothing; 3,900 questions, each to be asked once."""
    names = rt.Comparisons([], [], [], None, None, tuple(range(ITEMS)), tuple(range(ANNOTATORS)))
    settings = {"policy": Policy(score=Random()), "batch_size": 3, "again": False}
    return Campaign(path, rt.BTL(), rt.Candidates.pairs(names), **settings)


def answer_to(question: str) -> str:
    """The answer that everybody gives to it, so that anybody may."""
    return ("first", "second", "tie")[int(question.partition("-")[2]) % 3]


def work(path: Path, log: Path, seed: int) -> None:
    """Ask and tell for ever, and write down what was acknowledged."""
    rng = random.Random(seed)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    told: list[str] = []

    def log_down(what: str, questions: list[str]) -> None:
        os.write(file, "".join(f"{what} {question}\n" for question in questions).encode())

    def tell(questions: list[str]) -> None:
        log_down("trying", questions)
        running.tell({question: answer_to(question) for question in questions})
        log_down("told", questions)
        told.extend(questions)

    running = campaign(path)
    tell(
        rng.sample(left := running.outstanding()["id"].values.tolist(), k=len(left) // 2)
    )  # what the dead have left
    while True:
        asked = running.ask(rng.randint(1, 4))["id"].values.tolist()
        log_down("asked", asked)
        if rng.random() < 0.2:
            running.withdraw(rng.sample(asked, k=1))  # and told all the same
        tell(rng.sample(asked, k=rng.randint(0, len(asked))))
        if told and rng.random() < 0.3:
            tell(rng.sample(told, k=1))  # once more


def main(folder: Path, kills: int) -> None:
    """Four processes at a time, each killed at a moment of its own.

    The moment is one of the process's own time on the CPU, so that a busy machine changes nothing.
    """
    # That the back-end can run the model takes JAX a second to say, which is longer than most of
    # them live.
    campaigns.check_possible = lambda *_: None
    rng = random.Random(0)
    path = folder / "campaign.db"
    for number in range(0, kills, 4):
        processes = []
        for place in range(number, number + 4):
            moment = rng.uniform(0.02, 0.25)
            process = os.fork()
            if not process:
                try:
                    signal.signal(signal.SIGPROF, signal.SIG_DFL)
                    signal.setitimer(signal.ITIMER_PROF, moment)
                    work(path, folder / f"{place}.log", place)
                finally:
                    os._exit(1)  # only an error gets here
            processes.append(process)
        for process in processes:
            _, status = os.waitpid(process, 0)
            if not os.WIFSIGNALED(status):
                raise SystemExit("a process ended by itself")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
