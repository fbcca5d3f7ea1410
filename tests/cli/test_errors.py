"""Errors of the library, as the command line words them: with its own options, and no Python."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from raters.cli.options import worded
from raters.errors import SettingError
from raters.fitting.storage import from_json
from raters.model import Model
from tests.cli.test_app import refused

VOTES = ("--winner", "winner", "--loser", "loser", "--annotator", "annotator")
START = ("campaign", "start", "--out", "c.db", "--annotators", "ann,bob")
DRINKS = (*START, "--items", "tea,milk,beer")
LABELS = (*START, "--items", "1,2", "--classes", "ham,spam")
SIMULATE = ("simulate", "--out", "v.csv", "--design")
# Calls, keywords and names of the library, as they are written in Python.
PYTHON = re.compile(r"\brt\.|\braters\.\w+\(|\w+\(.*\)$|\b[a-z_]+=|\bNone\b")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with votes, labels and modules that are no kinds."""
    monkeypatch.chdir(tmp_path)
    votes = {"winner": [*"abab"], "loser": [*"bcca"], "annotator": [*"xyxy"]}
    pd.DataFrame(votes).to_csv("votes.csv", index=False)
    Path("broken_kind.py").write_text("raise RuntimeError('no licence')")
    Path("empty_kind.py").write_text("KIND = None")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ((*SIMULATE, "paper", "--items", "1"), "--items 1 is not possible"),
        ((*SIMULATE, "crowd", "--guessers", "0.9"), "--guessers 0.9 and --adversaries"),
        (
            (*SIMULATE, "label-crowd", "--labels-per-item", "9", "--annotators", "3"),
            "--labels-per-item 9 is not possible with 3 annotators",
        ),
        ((*DRINKS, "--top", "3"), "--top 3 has a meaning with --target 'top_k' alone"),
        ((*DRINKS, "--target", "top_k", "--top", "3"), "--top 3 is not possible with 3 items"),
        ((*DRINKS, "--target", "truth"), "--target truth needs true classes"),
        ((*LABELS, "--target", "ranking"), "--target needs draws of reward"),
        ((*DRINKS, "--least-share", "0.9"), "--least-share 0.9 is not possible with 2"),
        ((*DRINKS, "--cost", "ann=-1"), "--cost -1.0 is not possible for 'ann'"),
        ((*DRINKS, "--cost", "eve=1"), "--cost eve is not among the 2 annotators known"),
        ((*DRINKS, "--until", "2"), "--until 2.0 is not possible"),
        ((*DRINKS, "--budget", "-1"), "--budget -1.0 is not possible"),
        ((*START, "--items", "tea"), "--items tea is not possible; a question needs two items"),
        ((*LABELS[:-1], "ham"), "--classes ham is not possible"),
        (("audit", "votes.csv", *VOTES, "--level", "2"), "--level 2.0 is not possible"),
        (("audit", "votes.csv", *VOTES, "--threshold", "nan"), "--threshold nan is not possible"),
        (("audit", "votes.csv", *VOTES, "--cost-review", "0"), "--cost-review 0.0 is not possible"),
        (
            ("audit", "votes.csv", "--backend", "svi", "--svi-batch-size", "0"),
            "--svi-batch-size 0 is not possible",
        ),
        (("types", "votes.csv", *VOTES, "--num-types", "9"), "--num-types 9 is not possible"),
        (("fit", "votes.csv", "--out", "r.nc", "--draws", "0"), "--draws 0 is not possible"),
        (
            ("fit", "votes.csv", "--out", "r.nc", "--backend", "gibs"),
            "Invalid value for '--backend': 'gibs' is not one of",
        ),
        (
            ("fit", "votes.csv", "--out", "r.nc", "--kind", "broken_kind:KIND"),
            "--kind broken_kind:KIND cannot be imported (RuntimeError: no licence)",
        ),
        (
            ("fit", "votes.csv", "--out", "r.nc", "--kind", "empty_kind:KIND"),
            "--kind empty_kind:KIND is no raters.kinds.Kind; define a raters.kinds.Kind in empty_kind",
        ),
        (
            ("fit", "votes.csv", "--out", "r.nc", "--kind", "empty_kind:NAME"),
            "--kind empty_kind:NAME names nothing in empty_kind",
        ),
    ],
)
def test_errors_name_the_option_and_speak_no_python(folder, capsys, arguments, start):
    line = refused(capsys, folder, *arguments)
    assert line.startswith(f"raters: {start}")
    assert not PYTHON.search(line.strip())


def test_what_was_asked_already_is_asked_again_by_an_option(folder, capsys):
    labels = {"item": [1, 1, 2, 2], "annotator": [*"abab"], "label": ["ham", "ham", "spam", "ham"]}
    pd.DataFrame(labels).to_csv("labels.csv", index=False)
    columns = ("--item", "item", "--label", "label", "--annotator", "annotator")
    line = refused(capsys, folder, *START[:4], "labels.csv", *columns, "--model", "pooled")
    assert line.startswith("raters: --again is not given, and every annotator has labelled every")
    assert not PYTHON.search(line.strip())


def test_a_class_of_an_unknown_module_asks_for_its_kind():
    with pytest.raises(SettingError) as caught:
        from_json('{"class": "academy:Rasch", "fields": {}}', (Model,), "model of the journal")
    assert "import the module that defines it first" in str(caught.value)
    assert worded(caught.value, {"kind": "--kind"}) == (
        "--kind does not bring class 'Rasch' of module 'academy', so the model of the journal"
        " cannot be rebuilt; name a kind whose module imports it, as MODULE:NAME, such as"
        " academy:KIND"
    )
