"""Every command that writes, with a fault at each call that writes: what was there stays whole,
what was made is kept, and the exit code and one line say so."""

from __future__ import annotations

import errno
import functools
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raters.cli import app, outputs
from raters.cli.fitting import read_result
from tests.cli import faults
from tests.cli.faults import Fault
from tests.cli.writing import COMMANDS, VOTES, Command, State, compute_nothing, make_template, renew


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("template")
    make_template(folder)
    return folder


@pytest.fixture
def place(template, tmp_path, monkeypatch) -> Path:
    """A copy of it as the current folder."""
    folder = tmp_path / "place"
    renew(folder, template)
    compute_nothing(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(folder)
    return folder


def run(command: Command, capsys: Any) -> tuple[int, str]:
    """Exit code, and what was printed on standard error."""
    code = app.main([*command.words.split(), "--quiet"])
    return code, capsys.readouterr().err


# The list of what raters wrote, a journal, and what SQLite leaves to undo what was not finished.
HIDDEN = {outputs.MANIFEST, "c.db", "new.db", "c.db-journal", "new.db-journal"}
# A line that names no place is right only where nothing changed.
PLACED = r"what was made|(is|are|was) written|wrote |are open;|status c.db says|'new.db'"


def check(command: Command, before: State, clean: State, fault: Fault, code: int, err: str) -> None:
    """Assert that older files are whole, and new ones in their place or where the line says."""
    after = State.of(Path.cwd(), command.journal)
    if code == 0:
        assert err == ""
        assert {name: after.files[name] for name in clean.files} == clean.files
        assert after.journal == clean.journal
        return
    assert code in (2, 130), (code, err)
    assert re.fullmatch(r"raters: .+\n", err), err
    for name, content in before.files.items():
        new = clean.files.get(name, None if name.endswith("stale") else content)
        assert after.files.get(name) in (content, new), name
    assert after.journal in (before.journal, clean.journal)
    if "nothing was written" in err or not re.search(PLACED, err):
        assert after == before, err
    # What is new is whole and where it should be, or in a folder that the line names.
    (kept,) = re.findall(r"is in '(/[^']+)'", err) or [None]
    for path in [*Path.cwd().rglob("*"), *Path(tempfile.gettempdir()).rglob("*")]:
        name = str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else None
        if path.is_dir() or name in before.files or path.name in HIDDEN:
            continue
        if name in clean.files:
            assert path.read_bytes() == clean.files[name]
        elif kept is not None and path.is_relative_to(kept):
            wanted = [one for one in command.writes if Path(one).name == path.name]
            assert path.read_bytes() == clean.files[wanted[0]]
        else:  # what could not be removed
            assert fault.lasting or fault.last.startswith(("os.remove", "os.rmdir")), path
    if kept is not None:
        there = {path.name for path in Path(kept).iterdir()} - {outputs.MANIFEST}
        listed = re.findall(r"what was made \(([^)]+)\)", err)[0].split(", ")
        assert there >= set(listed) if fault.lasting else there == set(listed)


def earlier(command: Command) -> None:
    """Outputs of an earlier run, and one that this run does not write."""
    for folder in {str(Path(name).parent) for name in command.writes}:
        names = [Path(name).name for name in command.writes if str(Path(name).parent) == folder]
        whole = folder != "."

        def write(stage: Path, names: list[str] = names + ["stale"] * whole) -> None:
            for name in names:
                (stage / name).write_text("old")

        outputs.write_folder(Path(folder), write, whole=whole)


def swept(
    command: Command,
    place: Path,
    template: Path,
    capsys: Any,
    action: Callable[[str], None],
    **how: Any,
) -> int:
    """Run the command with the fault at the first call that writes, at the second, and so on until
    there are no more; gives how many there were."""
    old, everywhere = how.pop("old", False), how.pop("everywhere", False)
    renew(place, template)
    assert run(command, capsys)[0] == 0
    clean = State.of(place, command.journal)
    folders = (place, place.with_name("temporary")) if everywhere else (place,)
    for at in range(1, 200):
        renew(place, template)
        if old:
            earlier(command)
        before = State.of(place, command.journal)
        with faults.injected(Fault(action, at, folders, **how)) as fault:
            code, err = run(command, capsys)
        try:
            check(command, before, clean, fault, code, err)
        except BaseException as error:
            error.add_note(f"at {at}, {fault.last}: {code}, {err}")
            raise
        if not fault.happened:
            assert code == 0
            return at - 1
    raise AssertionError("it never ends")


EVERY = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
FEW = ("fit", "audit", "ask")
SOME = pytest.mark.parametrize("command", [COMMANDS[name] for name in FEW])
# Some at every change, all of them at `make test-all`.
SOME_OR_ALL = pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if name in FEW else pytest.mark.exhaustive)
        for name, command in COMMANDS.items()
    ],
    ids=COMMANDS,
)


@EVERY
def test_a_disk_that_gets_full(command, place, template, capsys):
    action = faults.failing(errno.ENOSPC)
    assert swept(command, place, template, capsys, action, lasting=True, old=True) > 5


@SOME
def test_a_disk_that_gets_full_everywhere(command, place, template, capsys):
    action = faults.failing(errno.ENOSPC)
    assert swept(command, place, template, capsys, action, lasting=True, everywhere=True) > 5


@SOME
def test_a_file_system_that_becomes_read_only(command, place, template, capsys):
    swept(command, place, template, capsys, faults.failing(errno.EROFS), lasting=True)


@SOME
def test_a_call_that_fails_once(command, place, template, capsys):
    swept(command, place, template, capsys, faults.failing(errno.EACCES), old=True)


@SOME_OR_ALL
def test_an_interruption(command, place, template, capsys):
    swept(command, place, template, capsys, faults.interrupt, old=True)


@pytest.mark.parametrize("size", [0, 1, 500, 4096, 9000, 20_000, 40_000])
@EVERY
def test_a_disk_with_room_for_small_files_only(command, size, place, template, capsys):
    """Also for what libraries in C write, such as netCDF and SQLite."""
    assert run(command, capsys)[0] == 0
    clean = State.of(place, command.journal)
    renew(place, template)
    before = State.of(place, command.journal)
    with faults.no_larger(size):
        code, err = run(command, capsys)
    largest = max(map(len, [b"", *(clean.files[name] for name in command.writes)]))
    assert size == 0 or code == 2 or largest <= size
    check(command, before, clean, Fault(faults.interrupt, 0, (place,), lasting=True), code, err)


@pytest.mark.parametrize("command", [one for one in COMMANDS.values() if one.writes])
def test_a_file_of_another_that_comes_meanwhile(command, place, template, capsys):
    """At each call, one comes under each name that is still free."""
    for at in range(1, 200):
        renew(place, template)
        come: list[Path] = []
        put = functools.partial(put_there, command.writes, come)
        with faults.injected(Fault(put, at, (place,))) as fault:
            code, err = run(command, capsys)
        assert all(path.read_text() == "mine" for path in come), (fault.last, err)
        assert code == (2 if come else 0), (fault.last, err)
        if not fault.happened:
            return


def put_there(names: tuple[str, ...], come: list[Path], _: str) -> None:
    """Write files of another under the names that are free."""
    for path in map(Path, names):
        if path.parent.is_dir() and not path.exists():
            path.write_text("mine")
            come.append(path)


@pytest.mark.parametrize("closed", [False, True])
def test_questions_that_cannot_be_printed_are_open(closed, place, capsys, monkeypatch):
    """The line says so; where something was written, it says that."""
    full = None if closed else open("/dev/full", "w")  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", full)
    code, err = run(COMMANDS["ask on screen"], capsys)
    assert code == 2
    assert re.fullmatch(r"raters: .+; 2 question\(s\) are open; write them with .+\n", err)
    if closed:
        sys.stdout.close()
    else:
        with pytest.raises(OSError, match="No space"):
            full.close()
    monkeypatch.setattr(sys, "stdout", open("/dev/full", "w"))  # noqa: SIM115
    code, err = run(COMMANDS["suggest"], capsys)
    assert (code, err) == (2, "raters: No space left on device; wrote next.csv\n")
    with pytest.raises(OSError, match="No space"):
        sys.stdout.close()


# ---------------------------------------------------------------- processes

ROOT = Path(__file__).parents[2]


@pytest.mark.exhaustive
def test_audits_that_are_killed_leave_whole_files(tmp_path):
    (tmp_path / "place").mkdir()
    worker = [sys.executable, "-W", "ignore", "-m", "tests.cli.killing", tmp_path / "place"]
    done = subprocess.run(worker, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["-9"] > 20


def test_an_audit_that_is_stopped_at_any_moment(tmp_path):
    """As a person would stop it; the moment is one of the machine's."""
    votes, out = tmp_path / "votes.csv", tmp_path / "out"
    votes.write_text(VOTES)
    command = [sys.executable, "-m", "raters.cli.app", "audit", votes, "--out", out, "--progress"]
    command += ["--backend", "em", "--draws", "20"]
    pipe, rng = subprocess.PIPE, random.Random(0)
    for how in (signal.SIGINT, signal.SIGKILL, signal.SIGINT, None):
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
            # This line comes once the table is read.
            assert process.stderr.readline().startswith("raters: no columns were named")
            if how is not None:
                time.sleep(rng.uniform(0, 4))
                process.send_signal(how)
            _, err = process.communicate(timeout=120)
        assert (
            process.returncode
            in {
                signal.SIGINT: (0, 130, -signal.SIGINT),
                signal.SIGKILL: (0, -signal.SIGKILL),
                None: (0,),
            }[how]
        ), err
        if process.returncode == 130:
            assert err.splitlines()[-1].startswith("raters: interrupted")
        there = {path.name for path in out.iterdir() if path.name[0] != "."} if out.exists() else {}
        assert not there or there >= {"result.nc", "summary.json", "rewards.png"}
        if there:
            read_result(out / "result.nc")
