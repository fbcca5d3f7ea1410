"""Outputs appear whole or not at all, in place of nothing that raters did not write."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from raters.cli import outputs
from raters.errors import SettingError
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


@pytest.mark.parametrize("place", ["mkdtemp", "write", "mkdir", "digest", "replace", "note"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_at_any_step_loses_nothing(place, earlier, tmp_path, monkeypatch):
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(outputs.tempfile, "gettempdir", lambda: str(temporary))
    if earlier:
        outputs.write_folder(out, lambda folder: (folder / "a").write_text("old"))
    made = outputs.tempfile.mkdtemp

    def write(folder):
        if place == "write" and folder.parent != temporary:
            full()
        (folder / "a").write_text("new")

    if place == "mkdtemp":
        monkeypatch.setattr(
            outputs.tempfile,
            "mkdtemp",
            lambda **where: made(**where) if where["dir"] == temporary else full(),
        )
    elif place == "note":
        monkeypatch.setattr(outputs.json, "dumps", full)
    elif place != "write":
        owner = {"mkdir": (outputs.Path, "mkdir"), "digest": (outputs, "_digest")}
        monkeypatch.setattr(*owner.get(place, (outputs.os, "replace")), full)
    if place == "digest" and earlier:
        with pytest.raises(OSError, match="No space"):
            outputs.check_writable(out / "a", folder=False)
    with pytest.raises(SettingError, match="No space left on device; what was made"):
        outputs.write_folder(out, write)
    held = [path.read_text() for path in tmp_path.rglob("a")]
    assert "new" in held
    assert not earlier or "old" in held
    monkeypatch.undo()
    outputs.write_folder(out, lambda folder: (folder / "a").write_text("again"))
    assert not list(tmp_path.rglob(".raters-[!f]*"))


def test_raters_knows_its_files_after_a_fault_between_them(tmp_path, monkeypatch):
    """The list of files is there before the first is moved."""

    def write(folder):
        for name in ("a", "b"):
            (folder / name).write_text("new")

    real = os.replace

    def stops(source, target):
        if Path(target).name == "b":
            full()
        real(source, target)

    monkeypatch.setattr(outputs.os, "replace", stops)
    with pytest.raises(SettingError, match=r"what was made \(b\)"):
        outputs.write_folder(tmp_path, write)
    monkeypatch.undo()
    outputs.write_folder(tmp_path, write)
    assert (tmp_path / "b").read_text() == "new"


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
