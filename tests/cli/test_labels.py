"""The command line on tables of labels: what it writes, what it prints, and that every mistake
costs one line and no file."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli import app as cli
from raters.cli.generated import dashed
from raters.cli.outputs import write_folder
from raters.cli.reading import read as read_table
from raters.cli.reading import source_of
from tests.cli.test_app import columns, refused, run
from tests.hand import stored, visible

ROLES = ("--item", "item", "--label", "label", "--annotator", "annotator")
QUICK = ("--backend", "em", "--draws", 200)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> Path:
    """Labels of a small crowd with spammers, and features, written by the command line itself."""
    file = tmp_path_factory.mktemp("labels") / "labels.csv"
    sizes = (
        "--items",
        "60",
        "--annotators",
        "10",
        "--labels-per-item",
        "5",
        "--classes",
        "3",
        "--features",
        "2",
    )
    assert (
        cli.main(
            [
                "simulate",
                "--design",
                "label-crowd",
                *sizes,
                "--out",
                str(file),
                "--seed",
                "4",
                "--quiet",
            ]
        )
        == 0
    )
    return file


@pytest.fixture(scope="module")
def audited(crowd) -> Path:
    """The folder of one audit that the tests share, of the model's own numbers; what it printed is
    beside it."""
    out = crowd.parent / "audit"
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as notes,
    ):
        code = cli.main(
            [
                str(part)
                for part in ("audit", crowd, *QUICK, "--trust-crowd", "--drop", "--out", out)
            ]
            + ["--rows", "8"]
        )
    (crowd.parent / "printed.txt").write_text(printed.getvalue())
    (crowd.parent / "notes.txt").write_text(notes.getvalue())
    assert code == 0, notes.getvalue()
    return out


@pytest.fixture
def labels(tmp_path) -> Path:
    """Four good labels."""
    file = tmp_path / "labels.csv"
    file.write_text(
        "page,who,says,gold,length\n1,ann,no,no,3\n1,bob,yes,no,3\n2,ann,yes,,5\n2,bob,yes,,5\n"
    )
    return file


NAMED = ("--item", "page", "--label", "says", "--annotator", "who")

# ---------------------------------------------------------------- what is written and printed


def test_the_audit_writes_tables_figures_and_a_result(audited):
    figures = {"confusions.png", "competences.png", "auditor.png", "certainty.png"}
    written = {"result.nc", "result-dropped.nc", "summary.json", "items.csv", "confusion.csv"}
    assert visible(audited) == figures | written
    assert all((audited / name).read_bytes().startswith(b"\x89PNG") for name in figures)
    result = stored(audited / "result.nc")
    assert result.posterior["confusion"].dims == (
        "chain",
        "draw",
        "annotator",
        "true_class",
        "label",
    )


def test_the_summary_and_the_tables_agree_with_the_library(audited):
    def no_constants(text):
        raise AssertionError(f"{text} is not JSON")

    summary = json.loads((audited / "summary.json").read_text(), parse_constant=no_constants)
    result = stored(audited / "result.nc")
    found = rt.audit(rt.DawidSkene(), result, reference="crowd")
    assert summary["model"] == repr(rt.DawidSkene())
    assert summary["settings"]["model"] == "dawid-skene"
    data = {
        "items": 60,
        "annotators": 10,
        "labels": 300,
        "classes": ["0", "1", "2"],
        "known_truths": 0,
        "features": [],
    }
    assert summary["data"] == data
    assert summary["sections"]["items"]["expected_wrong"] == pytest.approx(found.expected_wrong)
    assert summary["audit"]["flagged"] == found.flagged
    by_name = {entry["annotator"]: entry for entry in summary["audit"]["annotators"]}
    for name, information in zip(
        found.table["annotator"].values, found.table["information"].values, strict=True
    ):
        assert by_name[name]["information"] == pytest.approx(float(information))
    agreement = {entry["statistic"]: entry["estimate"] for entry in summary["agreement"]}
    assert agreement == pytest.approx(
        rt.agreement(rt.Labels.from_result(result))["estimate"].to_dict()
    )
    items = pd.read_csv(audited / "items.csv", dtype={"label": str})
    assert items["probability"].is_monotonic_increasing
    by_item = items.set_index("item")["label"].sort_index()
    assert by_item.tolist() == found.items["label"].values.tolist()
    confusion = pd.read_csv(audited / "confusion.csv").set_index(
        ["annotator", "true_class", "label"]
    )
    assert confusion.loc[(3, 1, 2), "mean"] == pytest.approx(
        float(found.confusion["mean"][3, 1, 2])
    )


def test_the_audit_finds_the_planted_spammer_and_does_not_ask_it(audited):
    truth = json.loads((audited.parent / "labels-truth.json").read_text())
    summary = json.loads((audited / "summary.json").read_text())
    spammers = {name for name, kind in truth["kind"].items() if kind == "spammer"}
    assert spammers
    assert spammers <= set(summary["audit"]["flagged"])
    asked = {(question["item"], question["by"]) for question in summary["suggestions"]}
    assert not {who for _, who in asked} & set(summary["audit"]["flagged"])
    table = pd.read_csv(audited.parent / "labels.csv")
    assert not asked & set(zip(table["item"], table["annotator"], strict=True))


def test_what_is_printed(audited):
    printed, notes = ((audited.parent / name).read_text() for name in ("printed.txt", "notes.txt"))
    assert "reading --item item --annotator annotator --label label" in notes
    assert max(map(len, printed.splitlines())) <= 80
    headings = (
        "The most doubtful items",
        "Annotators, least trusted first",
        "Agreement between annotators",
        "Next questions",
    )
    assert printed.startswith("The crowd was taken to be right")
    for text in (
        *headings,
        "If labelling stops now",
        "Krippendorff's alpha",
        "… 52 more …",
        "Without 1 annotator flagged",
    ):
        assert text in printed


def test_every_model_has_a_name():
    names = [
        dashed(model.__name__) for kind in rt.kinds.registered_kinds() for model in kind.models
    ]
    assert len(set(names)) == len(names)
    assert {"btl", "extended-btl", "contextual-btl", "one-coin", "dawid-skene", "yan"} <= set(names)


def test_features_reach_the_model(crowd, tmp_path, capsys):
    out = tmp_path / "result.nc"
    arguments = (*ROLES, "--feature", "x1", "--feature", "x2", "--model", "raykar", *QUICK)
    code, printed, _ = run(capsys, "fit", crowd, *arguments, "--out", out)
    assert (code, printed) == (0, "")
    result = stored(out)
    assert rt.fitting.model_of(result) == rt.Raykar()
    assert rt.Labels.from_result(result).feature_names == ("intercept", "x1", "x2")


@pytest.mark.parametrize("model", ["majority-vote", "pooled"])
def test_annotators_taken_as_alike_are_not_audited(model, crowd, tmp_path, capsys):
    write_folder(tmp_path, lambda folder: (folder / "confusion.csv").write_text("earlier"))
    (tmp_path / "notes.txt").write_text("keep me")
    code, printed, _ = run(capsys, "audit", crowd, "--model", model, *QUICK, "--out", tmp_path)
    assert code == 0
    assert f"--model {model} treats all annotators alike" in " ".join(printed.split())
    assert "anyone" in printed
    names = {"result.nc", "summary.json", "items.csv", "certainty.png", "notes.txt"}
    assert visible(tmp_path) == names


def test_suggest_reads_a_saved_result(audited, tmp_path, capsys):
    table = tmp_path / "next.csv"
    arguments = ("--batch-size", 3, "--annotator", 2, "--annotator", 3, "--out", table)
    code, printed, err = run(capsys, "suggest", audited / "result.nc", *arguments, "-q")
    assert (code, err) == (0, "")
    asked = pd.read_csv(table)
    assert list(asked.columns) == ["item", "by", "score", "label", "p_label"]
    assert len(asked) == 3
    assert set(asked["by"]) <= {2, 3}
    assert f"{asked['score'][0]:.3f}" in printed


def test_simulated_labels_read_back(crowd):
    labels, truth = rt.datasets.label_crowd(60, 10, 5, 3, seed=4, num_features=2)
    again, notes = read_table(source_of(crowd, columns(features=["x1", "x2"])))
    assert len(notes) == 1
    assert again.to_frame().astype(int).equals(labels.to_frame().astype(int))
    np.testing.assert_allclose(again.features, labels.features, rtol=1e-6)
    written = json.loads((crowd.parent / "labels-truth.json").read_text())
    assert list(written["true_class"].values()) == truth["true_class"].tolist()
    np.testing.assert_allclose(written["confusion"]["7"], truth["confusion"][7])


# ---------------------------------------------------------------- what an audit stands on


@pytest.fixture(scope="module")
def unanchored(crowd) -> Path:
    """The folder of an audit that stands on the crowd alone; what it printed is beside it."""
    out = crowd.parent / "unanchored"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        arguments = ("audit", crowd, *QUICK, "--out", out, "--quiet")
        assert cli.main([str(part) for part in arguments]) == 0
    (crowd.parent / "unanchored.txt").write_text(printed.getvalue())
    return out


@pytest.fixture(scope="module")
def truths(crowd) -> pd.Series:
    """True classes of the items of the crowd."""
    truth = json.loads((crowd.parent / "labels-truth.json").read_text())["true_class"]
    return pd.Series(truth, name="truth").rename_axis("item")


def summary_of(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())["audit"]


def test_families_are_a_column_of_the_command_line(crowd, tmp_path, capsys):
    """They reach the model that reads them, and are refused by one that does not."""
    table = pd.read_csv(crowd)
    table["vendor"] = np.where(
        table["annotator"].isin(sorted(set(table["annotator"]))[:4]), "A", ""
    )
    file, model = tmp_path / "kin.csv", ("--model", "shared-mistakes")
    table.to_csv(file, index=False)
    error = refused(capsys, tmp_path, "audit", file, *ROLES, "--family", "vendor", *QUICK)
    assert "--family is of no use to --model dawid-skene; leave it out" in error
    assert "write --model shared-mistakes" in error
    error = refused(capsys, tmp_path, "audit", file, *ROLES, *model)
    assert "--model shared-mistakes needs --family as well" in error
    out = tmp_path / "result.nc"
    code, printed, _ = run(
        capsys, "fit", file, *ROLES, "--family", "vendor", *model, *QUICK, "--out", out
    )
    assert (code, printed) == (0, "")
    result = stored(out)
    assert rt.fitting.model_of(result) == rt.SharedMistakes()
    assert rt.Labels.from_result(result).families == ("A",)


def test_without_known_truths_nobody_is_dropped_for_disagreement(unanchored):
    found, printed = summary_of(unanchored), (unanchored.parent / "unanchored.txt").read_text()
    assert found["flagged"] == []
    assert found["stands_on"].startswith("Annotators were measured against the crowd alone")
    assert printed.startswith("Annotators were measured against the crowd alone")
    assert "truths-wanted.csv" in printed


def test_known_truths_move_a_verdict(unanchored, crowd, truths, tmp_path, capsys):
    """Known classes in two tables, of which the second repeats an item of the first."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    truths[:20].to_csv(first)
    truths[19:30].to_csv(second)
    gold = ("--gold", first, "--gold", second)
    out = tmp_path / "out"
    code, printed, _ = run(capsys, "audit", crowd, *QUICK, *gold, "--out", out, "--quiet")
    assert code == 0
    assert printed.startswith("Annotators were measured against 30 known truths.")
    found = summary_of(out)
    assert found["stands_on"] == "Annotators were measured against 30 known truths."
    before, after = (
        {str(row["annotator"]): row["verdict"] for row in each["annotators"]}
        for each in (summary_of(unanchored), found)
    )
    kinds = json.loads((crowd.parent / "labels-truth.json").read_text())["kind"]
    spammer = next(name for name, kind in kinds.items() if kind == "spammer")
    assert before[spammer] in ("differs from the crowd", "review")
    assert after[spammer] == "drop"
    assert "differs from the crowd" not in after.values()


def test_wanted_truths_are_filled_in_and_given_back(unanchored, crowd, truths, tmp_path, capsys):
    """Truths that stay empty are left out."""
    wanted = pd.read_csv(unanchored / "truths-wanted.csv", dtype={"truth": "string"})
    assert list(wanted) == ["item", "truth"]
    assert wanted["truth"].isna().all()
    assert wanted["item"].is_unique
    known = wanted["item"].astype(str).map(truths).astype("string")
    wanted.assign(truth=known.where(wanted.index > 1)).to_csv(tmp_path / "truths.csv", index=False)
    out, gold = tmp_path / "out", tmp_path / "truths.csv"
    assert run(capsys, "audit", crowd, *QUICK, "--gold", gold, "--out", out, "-q")[0] == 0
    assert summary_of(out)["stands_on"] == (
        f"Annotators were measured against {len(wanted) - 2} known truths."
    )


def test_known_truths_with_exchanged_classes_are_doubted_on_the_terminal(
    crowd, truths, tmp_path, capsys
):
    gold, out = tmp_path / "gold.csv", tmp_path / "out"
    truths[:40].map(lambda code: (int(code) + 1) % 3).to_csv(gold)
    arguments = ("audit", crowd, *QUICK, "--gold", gold, "--out", out, "--quiet")
    code, printed, _ = run(capsys, *arguments)
    assert code == 0
    # The terminal breaks lines.
    _, _, doubt = " ".join(printed.split()).partition("Not final: ")
    assert "of 40 known classes contradict the crowd" in doubt.partition(".")[0]
    assert "of 40 known classes contradict the crowd" in summary_of(out)["doubts"][0]


def test_a_trusted_annotator_is_an_anchor(crowd, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("audit", crowd, *QUICK, "--reference", 3, "--out", out, "--quiet")
    code, printed, _ = run(capsys, *arguments)
    assert code == 0
    assert "truths, as told by 3" in printed.splitlines()[0]
    found = {str(row["annotator"]): row["verdict"] for row in summary_of(out)["annotators"]}
    assert found["3"] == "keep"
    assert "differs from the crowd" not in found.values()


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("item,truth\n1,no\n", ("--trust-crowd",), "--trust-crowd takes the crowd to be right"),
        ("page,truth\n1,no\n", (), "--gold: the column item names no column"),
        ("item,label\n1,no\n", (), "--gold: the column truth names no column"),
        (
            "item,truth\n1,no\n1,yes\n",
            (),
            "--gold: the column must tell one class for each item: item '1' has two true classes",
        ),
        ("item,truth\n9,no\n", (), "--gold: the column item holds 1 name(s)"),
        ("item,truth\n1,maybe\n", (), "none of the classes 'no', 'yes', e.g. 'maybe'"),
        ("item,truth\n1,\n2,\n", (), "--gold holds no truth"),
        ("item,truth\n1,no\n", ("--reference", "eve"), "--reference eve is not among"),
    ],
)
def test_what_cannot_be_stood_on_is_refused(content, arguments, message, labels, tmp_path, capsys):
    gold = tmp_path / "gold.csv"
    gold.write_text(content)
    given = (*NAMED, *QUICK, "--gold", gold, *arguments, "--out", tmp_path / "out")
    assert message in refused(capsys, tmp_path, "audit", labels, *given)


# ---------------------------------------------------------------- reading


def read(file: Path, **given: object) -> rt.Labels:
    drop = bool(given.pop("drop_bad_rows", False))
    options = columns(item="page", label="says", annotator="who", **given)
    return read_table(source_of(file, dataclasses.replace(options, drop_bad_rows=drop))).data


def test_truths_and_classes_and_features(labels):
    found = read(labels, truth="gold", classes=" yes, no,perhaps", features=["length"])
    assert found.classes == ("yes", "no", "perhaps")
    assert found.truth.tolist() == [1, -1]
    assert found.centre.tolist() == [0.0, 4.0]


def test_truths_may_be_missing(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("page,who,says,gold\n1,1,0,0\n1,2,1,\n2,1,1,\n")
    assert read(file, truth="gold").classes == ("0", "1")
    assert read(file, truth="gold", classes="1,0").classes == ("1", "0")
    assert read(file, truth="gold", classes="1,0").truth.tolist() == [1, -1]


def test_rows_without_a_label_are_left_out_on_request(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("page,who,says,gold\n1,ann,no,\n1,bob,,yes\n2,ann,yes,yes\n")
    found = read(file, truth="gold", drop_bad_rows=True)
    assert (found.num_labels, found.truth.tolist()) == (2, [-1, 1])


def test_repeats_and_counts(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("page,who,says,n\n1,ann,no,1\n1,ann,yes,1\n2,bob,yes,4\n")
    assert read(file, count="n").num_labels == 6
    assert read(file, repeats="drop").num_labels == 2


# ---------------------------------------------------------------- bad arguments and bad data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*NAMED, "--winner", "who"), "--winner and --item describe different shapes of table"),
        ((*NAMED, "--rating", "length"), "--label and --rating describe different shapes of table"),
        (NAMED[:4], "--item and --label need --annotator as well"),
        (NAMED[:2], "--item needs --annotator and --label, or --ranking and --rank"),
        (("--item", "pagee", *NAMED[2:]), "did you mean 'page'?"),
        (
            (*NAMED, "--model", "btl"),
            ("--model btl takes comparisons, and this is a table of labels (--item page"),
        ),
        ((*NAMED, "--competence", "unit"), "--competence belongs to --model extended-btl"),
        ((*NAMED, "--position-bias"), "--position-bias belongs to --model btl, extended-btl"),
        ((*NAMED, "--reward-scale", "0"), "--reward-scale belongs to --model btl, extended-btl"),
        ((*NAMED, "--ties", "drop"), "--ties belongs to comparisons"),
        ((*NAMED, "--model", "dawid"), "'dawid' is not one of"),
        ((*NAMED, "--model", "raykar"), "--model raykar needs --feature as well"),
        ((*NAMED, "--feature", "length"), "--feature is of no use to --model dawid-skene"),
        (
            (*NAMED, "--model", "yan", "--feature", "lengt"),
            "--feature lengt names no column of the table",
        ),
        ((*NAMED, "--model", "yan", "--feature", "gold"), "--feature gold holds 'no' for item '1'"),
        ((*NAMED, "--truth", "golden"), "did you mean 'gold'?"),
        ((*NAMED, "--truth", "length", "--classes", "no,yes"), "none of the classes"),
        ((*NAMED, "--classes", "no,maybe"), "e.g. 'yes' in row 1"),
        ((*NAMED, "--classes", "no"), "one class only: 'no'"),
        ((*NAMED, "--repeats", "twice"), "'twice' is not one of 'keep', 'drop', 'error'"),
        (
            (*NAMED, "--model", "pooled", "--drop"),
            "--drop needs annotators told apart, which --model pooled does not",
        ),
        ((*NAMED, "--level", "2"), "--level 2.0 is not possible"),
        (
            (*NAMED, "--backend", "em", "--chains", "2"),
            "--chains belongs to --backend gibbs, hmc, nuts",
        ),
    ],
)
def test_a_bad_option_is_refused(arguments, message, labels, tmp_path, capsys):
    assert message in refused(
        capsys, tmp_path, "audit", labels, "--out", tmp_path / "out", *arguments
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "page,who,says\n1,ann,\n1,bob,yes\n",
            "data row 1 has a missing value in 'says' (1 row(s) with a missing value); correct",
        ),
        ("page,who,says\n", "the table is empty"),
        ("page,who,says\n1,ann,yes\n2,ann,yes\n", "one class only: 'yes'"),
        (
            "page,who,says,x\n1,ann,yes,1\n1,bob,no,2\n",
            "--feature x is 1 and 2 for item '1'; a feature belongs to the item",
        ),
        ("page,who,says,x\n1,ann,yes,1\n2,bob,no,1\n", "have the same value for all 2 item(s)"),
        ("page,who,says,x\n1,ann,yes,\n2,bob,no,1\n", "it must hold numbers"),
        ("page,who,says,gold,x\n1,ann,yes,no,1\n1,bob,no,yes,1\n", "item '1' has two true classes"),
    ],
)
def test_a_bad_table_is_refused(content, message, tmp_path, capsys):
    file = tmp_path / "labels.csv"
    file.write_text(content)
    also = ("--truth", "gold") if "gold" in content else ()
    also += ("--model", "raykar", "--feature", "x") if ",x\n" in content else ()
    assert message in refused(
        capsys, tmp_path, "audit", file, *NAMED, *also, "--out", tmp_path / "out"
    )


def test_repeats_can_be_refused(tmp_path, capsys):
    file = tmp_path / "labels.csv"
    file.write_text("page,who,says\n1,ann,no\n1,ann,yes\n2,ann,no\n")
    said = refused(
        capsys, tmp_path, "fit", file, *NAMED, "--repeats", "error", "--out", tmp_path / "x.nc"
    )
    assert said.startswith("raters: --repeats error does not allow")


def test_options_of_labels_are_refused_on_comparisons(tmp_path, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser,annotator\na,b,x\nb,c,x\n")
    for option, value in (
        ("--truth", "winner"),
        ("--classes", "a,b"),
        ("--repeats", "keep"),
        ("--feature", "winner"),
    ):
        said = refused(capsys, tmp_path, "audit", file, option, value, "--out", tmp_path / "out")
        assert f"{option} belongs to labels" in said or option == "--feature"
    said = refused(capsys, tmp_path, "fit", file, "--model", "yan", "--out", tmp_path / "x.nc")
    assert "--model yan takes labels, and this is a table of comparisons" in said
    assert "try --model extended-btl" in said


def test_options_of_one_design_are_refused_for_the_other(tmp_path, capsys):
    out = ("--out", tmp_path / "x.csv")
    said = refused(capsys, tmp_path, "simulate", "--design", "label-crowd", "--votes", 10, *out)
    assert "--votes belongs to --design" in said
    said = refused(capsys, tmp_path, "simulate", "--design", "crowd", "--classes", 3, *out)
    assert "--classes belongs to --design label-crowd" in said
    said = refused(capsys, tmp_path, "simulate", "--design", "label-crowd", "--annotators", 2, *out)
    assert "--labels-per-item 5 is not possible with 2 annotators" in said


def test_again_is_for_labels_only(audited, tmp_path, capsys):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser,annotator\na,b,x\nb,c,x\nc,a,y\n")
    assert run(capsys, "fit", votes, *QUICK, "--out", tmp_path / "x.nc")[0] == 0
    assert "--again has no meaning for votes" in refused(
        capsys, tmp_path, "suggest", tmp_path / "x.nc", "--again"
    )
    assert run(capsys, "suggest", audited / "result.nc", "--again", "--item", 3)[0] == 0


def test_nobody_left_to_ask_is_said(tmp_path, capsys):
    file = tmp_path / "labels.csv"
    rows = [
        f"{item},{who},{(item + (who == 'eve')) % 2}"
        for item in range(12)
        for who in ("ann", "bob", "eve")
    ]
    file.write_text("\n".join(["item,worker,label", *rows]))
    code, printed, _ = run(capsys, "audit", file, *QUICK, "--out", tmp_path / "out", "--quiet")
    assert code == 0
    assert "has answered every question: there is nothing new to ask." in " ".join(printed.split())


def test_agreement_that_cannot_be_measured_is_said(tmp_path, capsys):
    file = tmp_path / "labels.csv"
    file.write_text("item,worker,label\n1,ann,no\n2,bob,yes\n3,ann,yes\n")
    code, printed, _ = run(capsys, "audit", file, *QUICK, "--out", tmp_path / "out", "--quiet")
    assert code == 0
    assert "no question has labels by two annotators" in " ".join(printed.split())
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["agreement"] is None


def test_an_interruption_while_writing_leaves_what_was_there(
    audited, crowd, tmp_path, monkeypatch, capsys
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    out.mkdir()
    (out / "items.csv").write_text("of yesterday")
    result = stored(audited / "result.nc")
    monkeypatch.setattr(rt, "fit", lambda *_, **__: result)
    monkeypatch.setattr("raters.figures.confusions", interrupt)
    code, _, err = run(capsys, "audit", crowd, "--out", out, "--quiet")
    assert (code, err) == (130, "raters: interrupted; nothing was written\n")
    assert [file.name for file in out.iterdir()] == ["items.csv"]
    assert (out / "items.csv").read_text() == "of yesterday"
