"""The command `raters agreement`: what it prints is what the library computes."""

from __future__ import annotations

import pandas as pd
import pytest

import raters as rt
from tests.cli.test_app import refused, run

NAMED = ("--item", "page", "--label", "says", "--annotator", "who")


@pytest.fixture
def labels(tmp_path):
    """Labels of three ordered classes by three people."""
    file = tmp_path / "labels.csv"
    says = ["low", "low", "mid", "mid", "high", "mid", "high", "high", "high", "low", "mid", "low"]
    rows = [
        f"{page},{who},{says[3 * page + place]}\n"
        for page in range(4)
        for place, who in enumerate(("ann", "bob", "cy"))
    ]
    file.write_text("page,who,says\n" + "".join(rows))
    return file


@pytest.fixture
def votes(tmp_path):
    """Votes by two people on the same pairs, one of them in both orders."""
    file = tmp_path / "votes.csv"
    file.write_text(
        "left,right,better,who\n"
        "a,b,left,ann\na,b,left,bob\nb,a,left,ann\nb,a,right,bob\na,c,right,ann\na,c,right,bob\n"
    )
    return file


def test_it_prints_the_statistics_and_writes_them(labels, tmp_path, capsys):
    out = tmp_path / "agreement.csv"
    code, printed, err = run(capsys, "agreement", labels, *NAMED, "--out", out, "--level", 0.8)
    assert code == 0
    assert "80% interval" in printed
    assert err == f"raters: wrote {out}\n"
    read = rt.Labels.from_frame(pd.read_csv(labels), item="page", annotator="who", label="says")
    expected = rt.agreement(read, level=0.8)
    pd.testing.assert_frame_equal(pd.read_csv(out).set_index("statistic"), expected)
    assert "Krippendorff's alpha     0.31   -0.19…0.60" in printed


def test_the_order_of_the_classes_is_said(labels, capsys):
    order = ("--metric", "ordinal", "--classes", "low,mid,high")
    code, printed, err = run(capsys, "agreement", labels, *NAMED, *order)
    assert (code, err) == (0, "")
    assert "Distances are ordinal; the order of the classes is low < mid < high." in printed
    assert "observed" not in printed
    code, printed, err = run(capsys, "agreement", labels, *NAMED, "--metric", "ordinal")
    assert code == 0
    assert "raters: warning: the order of the classes is that of the alphabet" in err


def test_each_class_has_a_row(labels, capsys):
    code, printed, _ = run(capsys, "agreement", labels, *NAMED, "--by-class")
    assert code == 0
    assert "Agreement between annotators on each class" in printed
    rows = [line.split()[:2] for line in printed.splitlines()]
    assert [row for row in rows if row[:1] in (["low"], ["mid"], ["high"])] == [
        ["high", "33%"],
        ["low", "33%"],
        ["mid", "33%"],
    ]


def test_votes_in_an_order(votes, capsys):
    sides = ("--first", "left", "--second", "right", "--outcome", "better", "--annotator", "who")
    code, printed, _ = run(capsys, "agreement", votes, *sides)
    assert code == 0
    assert "A question is a pair of items in the order in which it was shown" in printed
    assert "observed agreement       0.67" in printed


def test_votes_without_an_order(tmp_path, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser,annotator\na,b,x\na,b,y\nb,c,x\nc,b,y\nc,d,x\n")
    code, printed, _ = run(capsys, "agreement", file)
    assert code == 0
    assert "A question is a pair of items in either order; agreement by chance is one" in printed
    assert "From 2 questions; 1 has answers by fewer than two annotators." in printed


def test_what_cannot_be_measured_is_one_line(labels, votes, tmp_path, capsys):
    error = refused(capsys, tmp_path, "agreement", labels, *NAMED, "--metric", "interval")
    assert "are no numbers" in error
    both = ("--metric", "ordinal", "--by-class")
    assert "--metric" in refused(capsys, tmp_path, "agreement", labels, *NAMED, *both)
    refused(capsys, tmp_path, "agreement", labels, *NAMED, "--level", 90)
    assert "wide.pdf" in refused(capsys, tmp_path, "agreement", labels, *NAMED, "--out", "wide.pdf")
