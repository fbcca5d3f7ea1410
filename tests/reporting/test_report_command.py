"""Reports written by the command line."""

from __future__ import annotations

import shlex

import pytest

import raters as rt
from tests.cli.test_app import refused, run
from tests.reporting.test_report import strict


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "votes.csv"
    rows = ["winner,loser,annotator"] + [
        "tea,milk,ann",
        "milk,water,bob",
        "tea,water,ann",
        "tea,water,bob",
    ] * 4
    file.write_text("\n".join(rows) + "\n")
    return file


@pytest.mark.slow
def test_the_command_writes_reports(table, tmp_path, capsys):
    out = tmp_path / "out"
    page, inside = tmp_path / "page.html", out / "facts.json"
    options = ("--backend", "em", "--draws", 40, "--out", out, "--batch-size", 2)
    code, _, err = run(capsys, "audit", table, *options, "--report", page, "--report", inside)
    assert code == 0, err
    assert f"and {page} and {inside}" in err
    facts, summary = strict(inside.read_text()), strict((out / "summary.json").read_text())
    assert [row["annotator"] for row in facts["annotators"]] == [
        row["annotator"] for row in summary["audit"]["annotators"]
    ]
    assert (
        facts["sections"]["items"]["tables"][0]["rows"]
        == summary["sections"]["items"]["tables"][0]["rows"]
    )
    assert facts["next"]["questions"] == summary["suggestions"]
    typed = (
        f"raters audit {table} --backend em --draws 40 --report {page} --report {inside}"
        f" --batch-size 2 --out {out}"
    )
    assert sorted(shlex.split(facts["how"]["command"])) == sorted(shlex.split(typed))
    assert page.read_text() == rt.reporting.Report(facts).to_html()


@pytest.mark.slow
def test_the_command_writes_a_report_of_labels(tmp_path, capsys):
    file = tmp_path / "labels.csv"
    rows = [
        f"{item},{who},{(item + who) % 2 if who == 2 else item % 2}"
        for item in range(9)
        for who in range(3)
    ]
    file.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    options = ("--backend", "em", "--draws", 40, "--out", tmp_path / "out", "--quiet")
    code, _, err = run(capsys, "audit", file, *options, "--report", tmp_path / "r.md")
    assert code == 0, err
    text = (tmp_path / "r.md").read_text()
    assert "Krippendorff's alpha" in text
    assert "item labels" in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("report.pdf", "end it in .html (a page), .md (Markdown) or .json, such as report.html"),
        ("none/report.html", "--report "),
        ("none/report.html", "there is no folder"),
        ("votes.csv/report.html", "there is no folder"),
        ("there.html", "is a folder; name a file"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_fit(
    path, message, table, tmp_path, monkeypatch, capsys
):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(rt, "fit", fit)
    (tmp_path / "there.html").mkdir()
    assert message in refused(
        capsys, tmp_path, "audit", table, "--out", tmp_path / "out", "--report", tmp_path / path
    )


@pytest.mark.slow
def test_the_report_of_a_model_without_competences_has_no_audit(table, tmp_path, capsys):
    page = tmp_path / "r.html"
    options = ("--model", "btl", "--backend", "em", "--out", tmp_path / "out", "--report", page)
    code, _, err = run(capsys, "audit", table, *options)
    assert code == 0, err
    text = page.read_text()
    assert "BTL treats all annotators alike" in text
    assert "ExtendedBTL tells them apart" in text
    for part in ("Ranking", "Krippendorff", "What to do next", "The next questions"):
        assert part in text, part
    assert "Audit of" not in text
