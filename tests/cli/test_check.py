"""The command ``raters check``: what it writes, what it prints, and saved results."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pandas as pd
import pytest

import raters as rt
from raters.cli import app as cli
from raters.cli.simulate import votes_table
from tests.cli.test_app import refused, run
from tests.hand import stored, visible

NAMED = ("--winner", "winner", "--loser", "loser", "--annotator", "annotator")
FILES = {
    "result.nc",
    "summary.json",
    "checks.csv",
    "checks.png",
    "dependence.csv",
    "dependence.png",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Votes of a crowd in which some guess."""
    file = tmp_path_factory.mktemp("check") / "votes.csv"
    votes = rt.datasets.crowd(num_items=6, num_annotators=8, num_votes=900, seed=0).votes
    votes_table(votes, 0).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def found(table) -> Path:
    """The folder of one run that the tests share; what it printed is beside it."""
    out = table.parent / "found"
    arguments = ("check", table, *NAMED, "--model", "btl", "--draws", 100, "--out", out)
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as notes,
    ):
        code = cli.main([str(part) for part in arguments])
    (table.parent / "printed.txt").write_text(printed.getvalue())
    assert code == 0, notes.getvalue()
    return out


def test_it_writes_a_table_a_figure_and_a_result(found):
    assert visible(found) == FILES
    result = stored(found / "result.nc")
    again = rt.check(rt.fitting.model_of(result), result)
    written = pd.read_csv(found / "checks.csv")
    assert written["discrepancy"].tolist() == again.table["discrepancy"].values.tolist()
    assert written["p_value"].to_numpy() == pytest.approx(again.table["p_value"].values)
    summary = json.loads((found / "summary.json").read_text())
    assert summary["failed"] == again.failed
    assert summary["sentences"] == list(again.sentences)
    assert set(summary["not_measured"]) == {"position", "drift", "ties"}
    shared = rt.checking.dependence(rt.fitting.model_of(result), result)
    assert summary["dependence"]["effective"] == pytest.approx(shared.effective)
    assert summary["dependence"]["sentence"] == shared.sentence
    assert len(pd.read_csv(found / "dependence.csv")) == len(shared.pairs()) == 28


def test_it_says_what_fails_and_the_model_that_mends_it(found):
    printed = " ".join((found.parent / "printed.txt").read_text().split())
    assert "Checks of BTL" in printed
    assert 'rt.ExtendedBTL(competence="signed") has a competence' in printed
    assert "Not measured: position" in printed
    assert "8 annotators depart from the model together as" in printed


def test_a_saved_result_is_checked_without_a_fit(found, tmp_path, capsys):
    code, out, err = run(capsys, "check", found / "result.nc", "--out", tmp_path / "again")
    assert code == 0, err
    assert visible(tmp_path / "again") == FILES
    first, again = (pd.read_csv(folder / "checks.csv") for folder in (found, tmp_path / "again"))
    pd.testing.assert_frame_equal(first, again)
    assert "Checks of BTL" in out


def test_mistakes_cost_one_line_and_no_file(found, table, tmp_path, capsys):
    out = ("--out", tmp_path / "none")
    result = found / "result.nc"
    cases = {
        "leave out": ("--model", "btl"),
        "--replicates": ("--replicates", 20),
        "--level": ("--level", 3),
    }
    for words, options in cases.items():
        assert words in refused(capsys, tmp_path, "check", result, *options, *out)
    assert "annotator" in refused(capsys, tmp_path, "check", table, "--annotator", "nobody", *out)
    gold = tmp_path / "gold.csv"
    gold.write_text("item,truth\n0,1\n")
    said = refused(capsys, tmp_path, "check", table, *NAMED, "--gold", gold, *out)
    assert "true classes" in said
