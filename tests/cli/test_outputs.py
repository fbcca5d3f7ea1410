"""Outputs appear whole or not at all, in place of nothing that raters did not write."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from raters.cli import outputs
from raters.cli.fitting import read_result
from raters.cli.tables import companion
from raters.errors import DataError, SettingError
from tests.cli import faults
from tests.cli.faults import Fault
from tests.cli.test_app import run

VOTES = "winner,loser,annotator\n" + "a,b,ann\nb,c,bob\na,c,ann\nc,a,bob\n" * 3
QUICK = ("--backend", "em", "--draws", 10, "--quiet")


def refused(capsys, *arguments: object) -> str:
    """The line of a command that is refused."""
    code, _, err = run(capsys, *arguments)
    line = err.splitlines()[-1]
    assert (code, line.startswith("raters: warning:")) == (2, False), err
    return line


def text(content: str):
    return lambda path: path.write_text(content)


def files(folder: Path) -> dict[str, str]:
    """Contents of the files of a folder, without the list of what raters wrote."""
    return {path.name: path.read_text() for path in folder.iterdir() if path.name[0] != "."}


# ---------------------------------------------------------------- what is replaced


def test_what_raters_wrote_is_replaced(tmp_path):
    for content in ("one", "two"):
        outputs.write_file(tmp_path / "a.csv", text(content))
    assert files(tmp_path) == {"a.csv": "two"}


def test_the_companion_of_another_file_is_not_replaced(tmp_path):
    path, refused = tmp_path / "a-truth.json", r"was written with 'a\.csv', and .* 'a\.tsv'"

    def write(content: str, of: str, **how: bool) -> None:
        def fill(folder: Path) -> None:
            (folder / path.name).write_text(content)

        outputs.write_folder(tmp_path, fill, whole=False, of=of, **how)

    for content in ("one", "two"):
        write(content, "a.csv")
    with pytest.raises(SettingError, match=refused):
        write("three", "a.tsv")
    with pytest.raises(SettingError, match=refused):
        outputs.check_writable(path, folder=False, of="a.tsv")
    with pytest.raises(SettingError, match=r"was written with 'a\.csv'"):
        outputs.write_file(path, text("three"))
    assert path.read_text() == "two"
    write("three", "a.tsv", force=True)
    write("four", "a.tsv")
    assert path.read_text() == "four"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("votes.1.csv", "votes.1"),
        ("votes.1.csv.gz", "votes.1"),
        ("Votes.TSV", "Votes"),
        ("votes.v2.parquet", "votes.v2"),
        ("tasks.1.json", "tasks.1"),
        ("tasks.1", "tasks.1"),
    ],
)
def test_a_companion_has_the_name_of_its_file(name, stem):
    assert companion(Path("here", name), "-truth.json") == Path("here", f"{stem}-truth.json")


def test_simulated_tables_keep_their_own_truths(tmp_path, capsys):
    def simulate(name: str, seed: int) -> tuple[object, ...]:
        return ("simulate", "--votes", 20, "--seed", seed, "--out", tmp_path / name, "--quiet")

    for seed in (1, 2):
        assert run(capsys, *simulate(f"votes.{seed}.csv", seed)) == (0, "", "")
    for seed in (1, 2):
        truth = json.loads((tmp_path / f"votes.{seed}-truth.json").read_text())
        assert truth["seed"] == seed
    assert "was written with 'votes.1.csv'" in refused(capsys, *simulate("votes.1.parquet", 3))
    assert not (tmp_path / "votes.1.parquet").exists()


@pytest.mark.parametrize("change", ["foreign", "changed", "read-only"])
def test_what_raters_did_not_write_is_not_replaced(change, tmp_path):
    path = tmp_path / "a.csv"
    if change != "foreign":
        outputs.write_file(path, text("one"))
    if change == "read-only":
        path.chmod(0o444)
    else:
        path.write_text("mine")
    before = files(tmp_path)
    with pytest.raises(SettingError, match="--force"):
        outputs.check_writable(path, folder=False)
    with pytest.raises(SettingError, match="what was made") as caught:
        outputs.write_file(path, text("two"))
    assert path.read_text() == before["a.csv"]
    kept = Path(str(caught.value).rpartition("is in ")[2].strip("'"))
    assert files(kept) == {"a.csv": "two"}
    outputs.check_writable(path, folder=False, force=True)
    outputs.write_file(path, text("two"), force=True)
    assert path.read_text() == "two"


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_regular_file_is_never_replaced(kind, tmp_path):
    path, target = tmp_path / "a.csv", tmp_path / "mine"
    target.write_text("mine")
    {
        "link": lambda: path.symlink_to(target),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
    }[kind]()
    with pytest.raises(SettingError, match=r"is not replaced|is a folder"):
        outputs.check_writable(path, folder=False, force=True)
    with pytest.raises(SettingError, match="is not replaced"):
        outputs.write_file(path, text("two"), force=True)
    assert target.read_text() == "mine"
    assert os.path.lexists(path)


def test_files_of_an_earlier_run_do_not_stay_and_others_do(tmp_path):
    def first(folder):
        for name in ("a", "b", "c"):
            (folder / name).write_text(name)

    outputs.write_folder(tmp_path, first)
    outputs.write_file(tmp_path / "single", text("single"))
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "c").write_text("changed")
    outputs.write_folder(tmp_path, lambda folder: (folder / "a").write_text("again"))
    assert files(tmp_path) == {"a": "again", "c": "changed", "single": "single", "mine": "mine"}


# ---------------------------------------------------------------- faults


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def written(content: str) -> Callable[[Path], None]:
    """A function that writes two files."""

    def write(folder: Path) -> None:
        for name in ("a", "b"):
            (folder / name).write_text(content)

    return write


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_at_any_step_loses_nothing(earlier, lasting, tmp_path, monkeypatch):
    """New files are beside the folder, or in that for temporary files."""
    for at in itertools.count(1):
        base = tmp_path / str(at)
        out, temporary = base / "place" / "out", base / "temporary"
        temporary.mkdir(parents=True)
        out.parent.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        if earlier:
            outputs.write_folder(out, written("old"))
        fault = Fault(faults.failing(errno.ENOSPC), at, (out.parent,), lasting)
        with faults.injected(fault):
            try:
                outputs.write_folder(out, written("new"))
            except SettingError as error:
                assert re.search("No space left on device; what was made", str(error))  # noqa: PT017
        held = sorted(path.read_text() for path in base.rglob("[ab]"))
        assert held.count("new") == 2, fault.last
        assert set(held) <= {"old", "new"}
        outputs.write_folder(out, written("again"))
        assert (out / "a").read_text() == (out / "b").read_text() == "again"
        if not fault.happened:
            break
    assert at > 8


def test_a_folder_for_temporary_files_is_not_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", full)
    outputs.write_file(tmp_path / "a", text("new"))
    assert files(tmp_path) == {"a": "new"}


def interrupted_at(call: str, folder: Path, content: str) -> str:
    """Write two files, interrupted at a call that matches; gives what is said of it."""

    def stop(_: str) -> None:
        if re.search(call, fault.calls[-1]):
            raise KeyboardInterrupt

    fault = Fault(stop, 1, (folder,), lasting=True)
    with faults.injected(fault), pytest.raises(KeyboardInterrupt) as caught:
        outputs.write_folder(folder, written(content))
    return str(caught.value)


def test_what_was_made_stays_when_the_move_is_interrupted(tmp_path):
    said = interrupted_at("os.link .*/b$", tmp_path, "new")
    kept = Path(re.findall(r"what was made \(b\) is in '(.*)'; a in", said)[0])
    assert (files(kept), (tmp_path / "a").read_text()) == ({"b": "new"}, "new")


def test_raters_knows_its_files_after_faults_between_them(tmp_path):
    """The list of files is there before the first is moved, also when that is all, twice."""
    outputs.write_folder(tmp_path, written("first"))
    for content in ("second", "third"):
        interrupted_at("os.rename .*/a$", tmp_path, content)
    outputs.write_folder(tmp_path, written("last"))
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "last"


def test_two_commands_in_one_folder_know_the_files_of_both(tmp_path):
    """Another that starts while one moves its files waits for it."""
    other = threading.Thread(target=outputs.write_file, args=(tmp_path / "b", text("two")))

    def meanwhile(_: str) -> None:
        moves = re.search(f"os.rename .*/{outputs.MANIFEST}$", fault.calls[-1])
        if moves and other.ident is None:
            other.start()
            other.join(0.3)

    fault = Fault(meanwhile, 1, (tmp_path,), lasting=True)
    with faults.injected(fault):
        outputs.write_file(tmp_path / "a", text("one"))
    other.join()
    note = json.loads((tmp_path / outputs.MANIFEST).read_text())
    assert set(note["files"]) == {"a", "b"}


def test_nothing_stays_of_what_was_interrupted(tmp_path):
    def write(folder):
        (folder / "a").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outputs.write_folder(tmp_path, write)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_everywhere(tmp_path, monkeypatch):
    with pytest.raises(SettingError, match=r"nothing could be written to .*No space left"):
        outputs.write_folder(tmp_path, full)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- commands


@pytest.fixture
def votes(tmp_path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def test_a_command_does_not_write_over_what_it_reads(votes, tmp_path, capsys):
    for command in (
        ("fit", votes, *QUICK, "--out", votes),
        ("fit", votes, *QUICK, "--force", "--out", votes),
        ("audit", votes, *QUICK, "--out", tmp_path / "out", "--report", tmp_path / "votes.csv"),
    ):
        assert run(capsys, *command)[0] == 2
    assert votes.read_text() == VOTES


def test_a_fit_is_replaced_and_a_foreign_file_is_not(votes, tmp_path, capsys):
    out = tmp_path / "fit.nc"
    for _ in range(2):
        assert run(capsys, "fit", votes, *QUICK, "--out", out)[0] == 0
    out.write_text("mine")
    assert "was not written by raters" in refused(capsys, "fit", votes, *QUICK, "--out", out)
    assert out.read_text() == "mine"
    assert run(capsys, "fit", votes, *QUICK, "--out", out, "--force")[0] == 0


def test_an_audit_leaves_the_users_files_alone(votes, tmp_path, capsys):
    (tmp_path / "rewards.png").write_text("mine")
    line = refused(capsys, "audit", votes, *QUICK, "--out", tmp_path)
    assert "rewards.png" in line
    assert "what was made" in line
    assert (tmp_path / "rewards.png").read_text() == "mine"
    assert run(capsys, "audit", votes, *QUICK, "--out", tmp_path / "new")[0] == 0
    assert run(capsys, "audit", votes, *QUICK, "--out", tmp_path / "new")[0] == 0


def test_a_journal_and_answers_filled_in_are_not_lost(tmp_path, capsys):
    journal, table = tmp_path / "a.db", tmp_path / "q.csv"
    start = ("campaign", "start", "--items", "a,b,c", "--annotators", "ann,bob", "--quiet")
    assert run(capsys, *start, "--target", "random", "--out", journal)[0] == 0
    ask = ("campaign", "ask", journal, "--number", 2, "--out", table, "--quiet")
    assert run(capsys, *ask)[0] == 0
    filled = table.read_text().replace(",\n", ",first\n")
    table.write_text(filled)
    assert "has changed" in refused(capsys, *ask)
    assert table.read_text() == filled
    content = journal.read_bytes()
    export = ("campaign", "export", journal, "--to", "csv", "--out", journal, "--force")
    assert run(capsys, *export)[0] == 2
    assert journal.read_bytes() == content
    note = json.loads((tmp_path / outputs.MANIFEST).read_text())
    assert set(note["files"]) == {"q.csv"}


@pytest.mark.parametrize(
    ("size", "words"), [(errno.ENOSPC, "No space left on device"), (None, "HDF error")]
)
def test_a_full_disk_is_not_blamed_on_a_library(size, words, tmp_path, monkeypatch):
    def failing(self, path):
        Path(path).touch()
        raise RuntimeError("NetCDF: HDF error")

    def synced(handle):
        if size is not None:
            raise OSError(size, os.strerror(size))

    monkeypatch.setattr(xr.DataTree, "to_netcdf", failing)
    monkeypatch.setattr(os, "fsync", synced)
    tree = xr.DataTree(xr.Dataset({"x": ("a", np.zeros(9))}))
    with pytest.raises(OSError, match=words):
        outputs.to_netcdf(tree, tmp_path / "result.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_is_not_as_it_was_written_is_refused(tmp_path) -> None:
    """A damaged file, which netCDF may never return from; a copy is read, whatever it holds."""
    path = tmp_path / "result.nc"
    path.write_bytes(b"whole")
    whole = hashlib.sha256(b"whole").hexdigest()
    entry = {"sha256": [whole], "whole": False, "of": None}
    note = json.dumps({"files": {"result.nc": entry}})
    (tmp_path / outputs.MANIFEST).write_text(note, "utf-8")
    assert not outputs.has_changed(path)
    path.write_bytes(b"wh\0le")
    with pytest.raises(DataError, match="is not as raters wrote it"):
        read_result(path)
    copy = path.rename(tmp_path / "copy.nc")
    assert not outputs.has_changed(copy)
    with pytest.raises(DataError, match="is not a netCDF file"):
        read_result(copy)
