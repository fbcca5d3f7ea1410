"""The command ``raters joint``: what it writes, what it prints, and mistakes in one line."""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli import app as cli
from tests.cli.test_app import refused, run
from tests.hand import stored, visible

LABELS = "labels=labels.csv --item page --label says --annotator who --model one-coin"
VOTES = "votes=votes.csv --winner better --loser worse --annotator who --competence signed"
TIED = ("--tied", "labels.accuracy=votes.competence")
FITTED = ("--backend", "em", "--draws", 150, "--seed", 3)
TOLD = ("--gold", "labels=truths.csv")
MODEL = rt.models.JointModel(
    {"labels": rt.models.OneCoin(), "votes": rt.ExtendedBTL(competence="signed")},
    tied=[{"labels": "accuracy", "votes": "competence"}],
)


def truths(pages: list[str]) -> pd.DataFrame:
    """The classes of six of the pages."""
    return pd.DataFrame({"item": pages[:6], "truth": list("yyyyyx")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Labels and votes of the same five people about the same eight pages."""
    folder = tmp_path_factory.mktemp("joint")
    rng = np.random.default_rng(0)
    pages = [f"page {number}" for number in range(8)]
    rows = [(page, who, "xy"[rng.random() < 0.7]) for page in pages for who in "abcde"]
    labels = pd.DataFrame(rows, columns=["page", "who", "says"])
    labels.to_csv(folder / "labels.csv", index=False)
    truths(pages).to_csv(folder / "truths.csv", index=False)
    with_a_hole = pd.concat([labels, labels.iloc[:1].assign(says=None)])
    with_a_hole.to_csv(folder / "hole.csv", index=False)
    pairs = [rng.choice(pages, 2, replace=False) for _ in range(60)]
    votes = [(*pair, "abcde"[number % 5]) for number, pair in enumerate(pairs)]
    pd.DataFrame(votes, columns=["better", "worse", "who"]).to_csv(
        folder / "votes.csv", index=False
    )
    return folder


@pytest.fixture(scope="module")
def found(folder) -> Path:
    """The folder of one run that the tests share; what it printed is beside it."""
    out = folder.parent / "found"
    labels = f"{LABELS} --drop-bad-rows".replace("labels.csv", "hole.csv")
    parts = ("--part", labels, "--part", VOTES)
    arguments = ("joint", *parts, *TIED, *TOLD, *FITTED, "--out", out)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as notes,
    ):
        code = cli.main([str(word) for word in arguments])
    (folder.parent / "printed.txt").write_text(printed.getvalue())
    (folder.parent / "notes.txt").write_text(notes.getvalue())
    assert code == 0, notes.getvalue()
    return out


def test_it_is_the_fit_of_the_library(found, folder):
    table = pd.read_csv(folder / "labels.csv")
    labels = rt.Labels.from_frame(table, item="page", label="says", annotator="who")
    votes = rt.Comparisons.from_frame(
        pd.read_csv(folder / "votes.csv"), winner="better", loser="worse", annotator="who"
    )
    both = rt.judgements.Together.of({"labels": labels, "votes": votes})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(MODEL, both, rt.PGEM(draws=150), seed=3, progress=False)
    written = stored(found / "result.nc")
    assert rt.fitting.model_of(written) == MODEL
    for name, draws in result.posterior.items():
        np.testing.assert_allclose(written.posterior[name], draws, rtol=1e-6)


def test_each_part_is_a_result_that_verbs_take(found):
    names = {"result.nc", "labels.nc", "votes.nc", "annotators.csv", "summary.json"}
    assert visible(found) == names
    whole = stored(found / "result.nc")
    for name in ("labels", "votes"):
        own = stored(found / f"{name}.nc")
        assert rt.fitting.model_of(own) == MODEL.parts[name]
        again = rt.fitting.part(MODEL, whole, name).result
        for site, draws in own.posterior.items():
            np.testing.assert_array_equal(again.posterior[site], draws)
    votes = stored(found / "votes.nc")
    assert rt.predict(rt.fitting.model_of(votes), votes).sizes["draw"] == 150


def test_it_prints_the_correlation_and_says_which_part_a_note_is_about(found):
    draws = stored(found / "result.nc").posterior["accuracy_correlation"]
    low, high = np.quantile(draws, [0.05, 0.95])
    printed = (found.parent / "printed.txt").read_text().split()
    place = printed.index("votes.competence")
    ends = [f"{float(draws.mean()):.2f}", f"{low:.2f}…{high:.2f}"]
    assert printed[place + 1 : place + 3] == ends
    notes = (found.parent / "notes.txt").read_text()
    assert "raters: labels: left out 1 of 41 rows" in notes


def test_the_verdicts_are_those_of_the_library(found, folder):
    gold = {"labels": truths([f"page {number}" for number in range(8)])}
    audit = rt.audit(MODEL, stored(found / "result.nc"), gold, seed=3)
    table = pd.read_csv(found / "annotators.csv").set_index("annotator")
    expected = audit.table.to_dataframe().loc[table.index]
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, check_index_type=False)
    summary = json.loads((found / "summary.json").read_text())
    assert summary["settings"]["gold"] == ["labels=truths.csv"]
    assert summary["audit"]["stands_on"] == audit.anchor.sentence
    printed = " ".join((found.parent / "printed.txt").read_text().split())
    assert "labels: Annotators were measured against 6 known truths" in printed
    assert "votes: Annotators were measured against the crowd alone" in printed
    for name, verdict in audit.table["verdict"].to_series().items():
        assert re.search(f"{name} .* {verdict.split()[0]}", printed)


def test_without_anybody_to_judge_it_says_why(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    pooled = ("--part", LABELS.replace("one-coin", "pooled"))
    pooled += ("--part", VOTES.replace("--competence signed", "--model btl"))
    words = ("joint", *pooled, *FITTED[:2], "--draws", 0, "--out", tmp_path / "pooled")
    code, printed, _ = run(capsys, *words)
    assert code == 0
    why = "the model takes all annotators as alike in every part"
    assert f"Nobody is judged: {why}" in " ".join(printed.split())
    assert visible(tmp_path / "pooled") == {"result.nc", "labels.nc", "votes.nc", "summary.json"}
    assert why in refused(capsys, folder, *words[:-1], "new", "--trust-crowd")


WRONG = {
    "one part": (("--part", VOTES), "give --part once more"),
    "no file": (("--part", "votes", "--part", LABELS), "--part votes names no part and no file"),
    "nothing": (("--part", ""), "names no part and no file"),
    "a quotation mark": (("--part", "votes=votes.csv --winner 'a"), "no closing quotation"),
    "a name": (("--part", "my-votes=votes.csv"), "must be letters, digits and _"),
    "a name twice": (("--part", VOTES, "--part", VOTES), "give each part a name of its own"),
    "the name of the whole": (
        ("--part", "result=votes.csv", "--part", LABELS),
        "the name of the whole, result.nc",
    ),
    "a file": (("--part", "votes=no.csv", "--part", LABELS), "--part votes: there is no file"),
    "an option": (
        ("--part", f"{VOTES} --nope", "--part", LABELS),
        "--part votes: No such option: --nope",
    ),
    "an option of the whole": (
        ("--part", f"{VOTES} --draws 3", "--part", LABELS),
        "--part votes: No such option: --draws",
    ),
    "a column": (
        ("--part", VOTES.replace("better", "best"), "--part", LABELS),
        "--part votes: --winner best names no column of the table",
    ),
    "a model": (
        ("--part", f"{VOTES} --model dawid-skene", "--part", LABELS),
        "--part votes: --model dawid-skene takes labels",
    ),
    "a switch": (
        ("--part", f"{VOTES} --drop-bad-rows yes", "--part", LABELS),
        "--part votes: --drop-bad-rows is given the value 'yes'",
    ),
    "a group of one": (
        ("--part", VOTES, "--part", LABELS, "--tied", "votes.competence"),
        "--tied votes.competence does not name one site in each of two parts",
    ),
    "a part of a group": (
        ("--part", VOTES, "--part", LABELS, "--tied", "vote.competence=labels.accuracy"),
        "--tied vote is no part; choose among 'votes', 'labels'",
    ),
    "a shared site": (
        ("--part", VOTES, "--part", LABELS, "--shared", "reward"),
        "--shared reward is no site of part 'labels'",
    ),
    "truths of no part": (
        ("--part", VOTES, "--part", LABELS, "--gold", "truths.csv"),
        "--gold truths.csv names no part and no file; write NAME=FILE, with a part out of votes",
    ),
    "truths of a part where nobody is judged": (
        *(("--part", VOTES, "--part", LABELS.replace("one-coin", "pooled"), *TOLD),),
        "nobody is judged by the part 'labels'; give known truths of 'votes'",
    ),
    "truths of another part": (
        ("--part", VOTES, "--part", LABELS, "--gold", "votes=truths.csv"),
        "--gold: item, truth are its columns; it must have columns winner and loser",
    ),
    "a trusted annotator": (
        ("--part", VOTES, "--part", LABELS, "--reference", "zoe"),
        "--reference zoe is not among the annotators",
    ),
    "a cost": (
        ("--part", VOTES, "--part", LABELS, "--cost-review", "-1"),
        "--cost-review -1.0 is not possible",
    ),
    "a correlation": (
        ("--part", VOTES, "--part", LABELS, "--correlation", "0.5"),
        "--correlation 0.5 is that of tied sites",
    ),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_mistakes(folder, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    assert words in refused(capsys, folder, "joint", *arguments, "--quiet", "--out", "new")


def test_rows_without_a_judgement_are_said_of_their_part(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    line = refused(
        capsys,
        folder,
        *("joint", "--part", LABELS.replace("labels.csv", "hole.csv"), "--part", VOTES),
    )
    assert "--part labels: data row 41 has a missing value in 'says'" in line


def test_help_of_a_part(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    code, printed, _ = run(capsys, "joint", "--part", f"{VOTES} --help", "--part", LABELS)
    assert code == 0
    assert "--winner" in printed
    assert "--draws" not in printed
