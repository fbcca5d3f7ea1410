"""Audits that are killed or interrupted at each call that writes, one after another into the same
folder: run by `test_faults.py`, in a process of its own.

One process imports everything and forks those that are killed, before any of them computes.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from raters.cli import app
from raters.cli.fitting import read_result
from tests.cli import faults
from tests.cli.faults import Fault
from tests.cli.writing import VOTES, compute_nothing

# Exit code of an audit in which there are fewer calls.
ENDED = 71
AUDIT = ["audit", "votes.csv", "--out", "out", "--report", "page.html", "--quiet"]


def picture(number: int) -> bytes:
    """Draw a figure of an audit that shows whether it is whole, and of which audit."""
    return b"%06d " % number * 50_000


def audit(number: int, log: Path, how: signal.Signals | None, at: int) -> int:
    """Exit code of an audit that gets a signal at a call; minus the signal when it was killed."""
    if process := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 70
    try:
        for handle, path in ((1, os.devnull), (2, log)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
        compute_nothing(pytest.MonkeyPatch(), picture(number))
        send = functools.partial(os.kill, os.getpid(), how or signal.SIGCONT)
        with faults.injected(Fault(lambda _: send(), at, (Path.cwd(),))) as fault:
            code = app.main(AUDIT)
        if not fault.happened:
            code = ENDED
    finally:
        os._exit(code)


def check(last: int) -> None:
    """Every file that is there is whole, and of this audit or one before."""
    out = Path("out")
    if (out / "result.nc").exists():
        read_result(out / "result.nc")
    if (out / "summary.json").exists():
        json.loads((out / "summary.json").read_text())
    if (out / "competences.png").exists():
        drawn = (out / "competences.png").read_bytes()
        assert drawn == picture(int(drawn[:6]))
        assert int(drawn[:6]) <= last
    if Path("page.html").exists():
        assert Path("page.html").read_text() == "a page"
    assert Path("votes.csv").read_text() == VOTES
    assert (out / "mine.txt").read_text() == "mine"


def main(folder: Path) -> None:
    """Print how the audits ended."""
    os.chdir(folder)
    Path("votes.csv").write_text(VOTES)
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine")
    log, ends = folder.with_name("log"), Counter()
    assert audit(0, log, None, 1) == 0, log.read_text()
    for number in itertools.count(1):
        how = signal.SIGINT if number % 4 == 0 else signal.SIGKILL
        code = audit(number, log, how, number)
        said = log.read_text()
        assert code in (0, ENDED, 130, -signal.SIGKILL), said
        if code == 130:
            assert re.fullmatch("raters: interrupted.*\n", said), said
        check(number)
        ends[code] += 1
        if code in (0, ENDED):
            assert Path("out/competences.png").read_bytes() == picture(number), said
        if code == ENDED:
            break
    print(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
