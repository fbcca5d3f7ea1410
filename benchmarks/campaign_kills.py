"""Processes of a campaign that are killed while they ask and tell: what is lost, and how long the
next takes to go on."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from _common import options, report, table

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.acquisition.crashing import WRONG, Findings, findings, kill

_WORDS = {
    "questions_lost": "acknowledged questions that are lost",
    "questions_doubled": "questions handed out twice",
    "answers_lost": "acknowledged answers that are lost",
    "answers_doubled": "answers that count twice",
    "answers_changed": "answers that are not those told",
    "answers_invented": "answers that nobody told",
    "damaged": "faults that SQLite finds in the file",
}


def parts(found: Findings, kills: int, megabytes: float, seconds: float) -> list[str]:
    """Tables of what happened and of what is wrong."""
    took = sorted(found.reopening)
    done = [
        ["kills (SIGKILL)", kills],
        ["of processes that were asking", found.in_ask],
        ["of processes that were telling", found.in_tell],
        ["questions acknowledged", found.asked],
        ["answers acknowledged", found.told],
        ["size of the journal, megabytes", megabytes],
        ["seconds to open it again: median", statistics.median(took)],
        ["seconds to open it again: 95 % below", took[int(0.95 * len(took))]],
        ["seconds to open it again: most", took[-1]],
        ["seconds in all", seconds],
    ]
    wrong = [[_WORDS[name], getattr(found, name) or 0] for name in WRONG]
    note = (
        "Two processes ask and tell on one journal without a pause; one after the other is killed"
        " at a random moment, and another takes its place. Each writes down, outside of the"
        " journal, what it was told was done. A kill ends a process, not the machine: that the disk"
        " keeps what it was given in a power cut is not tested here. To open the journal again"
        " includes a transaction of the dead that is rolled back, and waiting for the other one."
    )
    return [note, table(["", "number"], done), table(["", "must be 0"], wrong)]


def main() -> None:
    """Kill a thousand processes, and count."""
    arguments = options(__doc__ or "", kills=(1000, "how many processes are killed"))
    kills, items = (20, 40) if arguments.quick else (arguments.kills, 120)
    with tempfile.TemporaryDirectory() as name:
        folder, begin = Path(name), time.perf_counter()
        kill(folder, kills, items)
        seconds = time.perf_counter() - begin
        found = findings(folder, items)
        megabytes = (folder / "campaign.db").stat().st_size / (1 << 20)
    title = "Campaigns: processes killed while they ask and tell"
    report("campaign_kills", title, parts(found, kills, megabytes, seconds), arguments.quick)
    if any(getattr(found, name) for name in WRONG):
        raise SystemExit("something was lost, or is there twice")


if __name__ == "__main__":
    main()
