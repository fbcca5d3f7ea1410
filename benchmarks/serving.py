"""Waiting times of people at `raters serve`, with many questions.

Twenty people answer questions about pairs of 100 items, of which there are some 10⁵; every five
seconds another one comes, and thinks for eight seconds on average about each. Written to
``benchmarks/results/serving.md``::

    python benchmarks/serving.py
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from _common import report, table

import raters as rt
from raters.acquisition.server import Desk

ITEMS, PEOPLE, EACH = 100, 20, 12
THINKING, ARRIVING = 8.0, 5.0


def waits() -> tuple[int, np.ndarray, np.ndarray]:
    """Number of questions, and seconds of each `ask` and `tell`."""
    people = [f"p{place}" for place in range(PEOPLE)]
    pool = rt.Candidates.pairs(items=list(range(ITEMS)), annotators=people)
    asks, tells = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        campaign = rt.Campaign(Path(folder) / "pairs.db", rt.BTL(), pool)
        desk = Desk(campaign, None, ties=False)

        def work(person: str) -> None:
            rng = np.random.default_rng(int(person[1:]))
            time.sleep(ARRIVING * int(person[1:]))
            for _ in range(EACH):
                begin = time.perf_counter()
                (question,) = desk.ask(person, 1)
                asks.append(time.perf_counter() - begin)
                time.sleep(THINKING * rng.exponential())
                better = min(("first", "second"), key=lambda side: int(question["about"][side]))
                begin = time.perf_counter()
                desk.tell(person, question["id"], better)
                tells.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=work, args=(person,)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return pool.num_rows, np.array(asks), np.array(tells)


def main() -> None:
    number, asks, tells = waits()
    rows = [
        [f"`{name}`", *(1e3 * np.quantile(one, [0.5, 0.99, 1.0]))]
        for name, one in (("ask", asks), ("tell", tells))
    ]
    text = (
        f"{number:,} questions, {PEOPLE} people, one more every {ARRIVING:g} s, who think for"
        f" {THINKING:g} s on average, {len(asks)} answers; milliseconds."
    )
    header = ["", "median", "99 %", "longest"]
    report("serving", "Waits at raters serve", [text, table(header, rows)], quick=False)


if __name__ == "__main__":
    main()
