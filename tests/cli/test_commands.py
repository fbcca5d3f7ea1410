"""Each command from end to end on small data, in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli.app import main
from raters.cli.files import read_result
from raters.judgements.reading.files import read_table
from tests.judgements import exports as ex

EM = ("--backend", "em", "--set", "draws=50")
VOTES = ("votes.csv", "--winner", "winner", "--loser", "loser", "--annotator", "worker")
LABELS = ("labels.csv", "--item", "text", "--label", "says", "--annotator", "worker")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with small tables, which is the current one."""
    monkeypatch.chdir(tmp_path)
    crowd = rt.datasets.crowd(num_items=5, num_annotators=6, num_votes=120, seed=0)
    rows = crowd[0].to_frame()
    rows = rows.loc[rows.index.repeat(rows["count"])]
    sides = {"winner": rows["first"], "loser": rows["second"], "worker": rows["annotator"]}
    pd.DataFrame(sides).to_csv("votes.csv", index=False)
    labels = rt.datasets.label_crowd(12, 4, 3, 2, seed=0)[0].to_frame()
    labels = labels.rename(columns={"item": "text", "annotator": "worker", "label": "says"})
    labels.drop(columns="count").to_csv("labels.csv", index=False)
    return tmp_path


def run(capsys, *arguments: object, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of one command."""
    got = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert got == code, captured.err
    return captured.out, captured.err


def test_audit_writes_a_folder_prints_the_facts_and_says_more(capsys) -> None:
    more = ("--with", "agreement,check,types", "--report", "page.html", "--report", "page.json")
    printed, _ = run(capsys, "audit", *VOTES, *EM, *more, "--drop", "--cost", "drop_good=5")
    names = {path.name for path in Path("raters-audit").iterdir()}
    wanted = {"result.nc", "summary.json", "annotators.csv", "items.csv", "agreement.csv"}
    assert wanted | {"checks.csv", "types.csv", "profiles.png"} <= names
    facts = json.loads(Path("page.json").read_text())
    summary = json.loads(Path("raters-audit/summary.json").read_text())
    assert summary["answer"] == facts["answer"]
    assert facts["asked"]["costs"] == {"keep_bad": 1.0, "drop_good": 5.0, "review": 0.2}
    assert summary["settings"]["set"] == ["draws=50"]
    assert set(summary["with"]) == {"agreement", "check", "types"}
    assert "<html" in Path("page.html").read_text()
    for text in ("AGREEMENT", "krippendorff_alpha", "CHECK", "TYPES", "RANKING"):
        assert text in printed, text
    items = pd.read_csv("raters-audit/items.csv")
    assert items["rank"].tolist() == [1, 2, 3, 4, 5]


def test_equal_ranks_by_judges_of_the_same_segments_make_a_board(capsys) -> None:
    ranks = {"ann": (1, 2, 2), "bob": (1, 1, 3), "eve": (1, 2, 3)}
    table = ["segment,judge,system,rank"]
    for segment in range(4):
        for judge, given in ranks.items():
            table += [
                f"{segment},{judge},{name},{one}" for name, one in zip("xyz", given, strict=True)
            ]
    Path("wmt.csv").write_text("\n".join(table))
    columns = ("--ranking", "segment", "--item", "system", "--rank", "rank", "--annotator", "judge")
    few = ("--backend", "nuts", "--set", "draws=50", "--set", "warmup=100")
    run(capsys, "rank", "wmt.csv", *columns, *few, "--out", "board.csv")
    board = pd.read_csv("board.csv")
    assert board["item"].tolist() == ["x", "y", "z"]
    assert (board["judgements"] == 12).all()
    _, err = run(capsys, "rank", "wmt.csv", *columns, "--model", "plackett-luce", code=2)
    assert "--set ties=davidson" in err


def test_an_audit_fits_again_without_those_flagged(capsys) -> None:
    pairs = [(a, b) for a in "abcd" for b in "abcd" if a < b] * 8
    lines = [f"{a},{b},{who}" for who in "vwxy" for a, b in pairs]
    lines += [f"{b},{a},z" for a, b in pairs]
    Path("few.csv").write_text("\n".join(["winner,loser,annotator", *lines]))
    options = ("--trust-crowd", "--drop", "--backend", "em", "--set", "draws=2000")
    printed, _ = run(capsys, "audit", "few.csv", *options)
    assert "WITHOUT THOSE FLAGGED" in printed


def test_audit_of_labels_stands_on_known_truths(capsys) -> None:
    table = pd.read_csv("labels.csv").drop_duplicates("text")
    gold = table.rename(columns={"text": "item", "says": "truth"})[["item", "truth"]]
    gold.to_csv("gold.csv", index=False)
    run(capsys, "audit", *LABELS, *EM, "--gold", "gold.csv", "--out", "there", "--quiet")
    summary = json.loads(Path("there/summary.json").read_text())
    assert summary["answer"]["anchored"]


def test_a_saved_fit_is_ranked_suggested_from_and_reported(capsys) -> None:
    run(capsys, "fit", *VOTES, *EM, "--model", "ExtendedBTL", "--out", "fit.nc", "--seed", 3)
    result = read_result(Path("fit.nc"))
    assert result.attrs["seed"] == 3
    assert "log_likelihood" in result.children
    assert result["posterior"].sizes["draw"] == 50
    printed, _ = run(capsys, "rank", "fit.nc", "--out", "ranking.csv")
    ranking = pd.read_csv("ranking.csv")
    means = result["posterior"]["reward"].mean(("chain", "draw")).values
    np.testing.assert_allclose(ranking["score"], np.sort(means)[::-1], rtol=1e-6)
    assert ranking["p_best"].sum() == pytest.approx(1)
    lines = printed.splitlines()
    assert lines[1].startswith(f"{ranking['item'][0]} is first with probability")
    assert len(lines) <= 40
    for form, start in {"md": "Asked", "html": "<!doctype", "json": "{", "png": "\x89PNG"}.items():
        run(capsys, "rank", "fit.nc", "--unit", "elo", "--out", f"board.{form}", "--quiet")
        assert Path(f"board.{form}").read_bytes().decode("latin-1").startswith(start)
    _, err = run(capsys, "rank", "fit.nc", "--by", "category", code=2)
    assert "strata" in err
    wanted = ("--set", "target=top_k", "--set", "k=2", "--batch-size", 2)
    run(capsys, "suggest", "fit.nc", *wanted, "--out", "questions.csv")
    assert len(pd.read_csv("questions.csv")) == 2
    run(capsys, "report", "fit.nc", "--out", "page.md")
    assert Path("page.md").read_text().startswith("#")


def test_simulate_writes_judgements_and_their_truth_and_models_says_what_there_is(capsys) -> None:
    for design in ("crowd", "label-crowd", "ranking-crowd", "rating-crowd"):
        out = ("--set", "num_items=6", "--out", f"{design}.jsonl")
        run(capsys, "simulate", "--design", design, *out)
        assert read_table(Path(f"{design}.jsonl"))["annotator"].nunique() > 1
        truth = json.loads(Path(f"{design}-truth.json").read_text())
        assert len(truth["names"]["item"]) == 6
        assert 6 in map(len, truth["truth"].values())
    printed, _ = run(capsys, "models")
    for name in ("comparisons", "mixture-btl", "hierarchical-dawid-skene", "svi", "label-crowd"):
        assert name in printed, name
    wanted = {"MixtureBTL": "--set num_types=2", "crowd": "--set num_items", "labels": "--classes"}
    for name, setting in wanted.items():
        assert setting in run(capsys, "models", name)[0]


def test_columns_tell_the_kind_and_settings_reach_the_model(capsys) -> None:
    """Shapes of tables in one loop, by what is noted and written."""
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(list("abc")) for _ in range(12)])
    places = pd.DataFrame(orders, columns=["p1", "p2", "p3"]).assign(who=[*"xyz"] * 4)
    places.to_csv("places.csv", index=False)
    votes = pd.read_csv("votes.csv").rename(columns={"winner": "left", "loser": "right"})
    votes.assign(came=["left", "right", "tie"] * 40).to_csv("ties.csv", index=False)
    wide = pd.DataFrame(rng.integers(0, 2, (8, 4)), columns=["q1", "q2", "q3", "q4"])
    wide.rename_axis("person").to_csv("wide.csv")
    labels = pd.read_csv("labels.csv")
    labels.assign(vendor=labels["worker"] // 2).to_csv("families.csv", index=False)
    lines = {
        " ".join(("families.csv", *LABELS[1:], "--family vendor")): "SharedMistakes",
        "places.csv --place p* --annotator who": "PlackettLuce",
        "ties.csv --first left --second right --outcome came --set ties=davidson": "davidson",
        "wide.csv --person person --column q* --set difficulty_scale=2": "Rasch(difficulty_scale=2",
        "votes.csv --set num_types=2 --model mixture-btl": "num_types=2",
    }
    failed = []
    for place, (line, wanted) in enumerate(lines.items()):
        code = main(["fit", *line.split(), *EM, "--out", f"{place}.nc"])
        err = capsys.readouterr().err
        if code or wanted not in err:
            failed.append((line, err))
    assert not failed


# ---------------------------------------------------------------- campaigns


def test_a_campaign_goes_from_names_to_judgements(capsys, monkeypatch) -> None:
    names, journal = ("--items", "tea,milk,beer", "--annotators", "ann,bob"), "c.db"
    more = ("--until", 0.99, "--batch-size", 3, "--set", "quota=30", "--out", journal)
    run(capsys, "campaign", "start", *names, *more)
    assert rt.Campaign.open(journal).policy.quota == 30
    run(capsys, "campaign", "ask", journal, "--out", "q.csv")
    table = pd.read_csv("q.csv")
    table["answer"] = table["first"]
    table.to_csv("q.csv", index=False)
    run(capsys, "campaign", "tell", journal, "q.csv")
    assert "3" in run(capsys, "campaign", "status", journal, "--quick")[0]
    run(capsys, "campaign", "ask", journal, "--number", 2)
    first, second = rt.Campaign.open(journal).outstanding()["id"].values
    pd.DataFrame({"id": [first], "answer": ["tie"]}).to_csv("one.csv", index=False)
    run(capsys, "campaign", "tell", journal, "one.csv")
    run(capsys, "campaign", "withdraw", journal, second)
    run(capsys, "campaign", "ask", journal, "--number", 2)
    typed = iter(["perhaps", "second", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    printed, err = run(capsys, "campaign", "tell", journal)
    assert "noted" in printed
    assert "perhaps" in err
    run(capsys, "campaign", "export", journal, "--to", "label-studio", "--out", "t.json")
    tasks = json.loads(Path("t.json").read_text())
    selected = {"type": "pairwise", "value": {"selected": "left"}}
    tasks[0]["annotations"] = [{"completed_by": 1, "result": [selected]}]
    Path("t.json").write_text(json.dumps(tasks))
    people = ("--from", "label-studio", "--people", f"1={tasks[0]['data']['by']}")
    run(capsys, "campaign", "tell", journal, "t.json", *people)
    run(capsys, "campaign", "export", journal, "--to", "judgements", "--out", "all.csv")
    assert rt.Campaign.open(journal).status(probability=False).answered == 6
    assert len(pd.read_csv("all.csv")) >= 5


def test_a_campaign_from_a_table_takes_new_names_and_arriving_questions(capsys) -> None:
    new = ("--annotators", "0,1,2,3,4,5,eve", "--out", "t.db")
    run(capsys, "campaign", "start", *VOTES, *new)
    assert "eve" in map(str, rt.Campaign.open("t.db").pool.judges)
    pd.DataFrame({"first": [0], "second": [1], "by": ["eve"]}).to_csv("came.csv", index=False)
    printed, _ = run(capsys, "campaign", "consider", "t.db", "came.csv", "--rate", 0.99)
    assert printed.startswith("ask ")
    run(capsys, "campaign", "start", *VOTES, "--out", "t.db", code=2)


# ---------------------------------------------------------------- outputs


def test_what_raters_did_not_write_stays(capsys) -> None:
    Path("fit.nc").write_text("mine")
    _, err = run(capsys, "fit", *VOTES, *EM, "--out", "fit.nc", code=2)
    assert "--force" in err
    assert Path("fit.nc").read_text() == "mine"
    run(capsys, "fit", *VOTES, *EM, "--out", "fit.nc", "--force")
    run(capsys, "fit", *VOTES, *EM, "--out", "fit.nc")
    damaged = bytearray(Path("fit.nc").read_bytes())
    damaged[-100] ^= 1
    Path("fit.nc").write_bytes(damaged)
    _, err = run(capsys, "rank", "fit.nc", code=2)
    assert "not as raters wrote it" in err


def test_a_run_that_fails_while_writing_leaves_the_folder_as_it_was(capsys, monkeypatch) -> None:
    run(capsys, "audit", *VOTES, *EM, "--quiet")
    before = {path.name: path.read_bytes() for path in Path("raters-audit").iterdir()}

    def full(text: str, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("raters.cli.files.write_text", full)
    _, err = run(capsys, "audit", *VOTES, *EM, "--seed", 9, code=2)
    assert "No space left" in err
    after = {path.name: path.read_bytes() for path in Path("raters-audit").iterdir()}
    assert after == before
    assert not list(Path().glob(".raters-*"))


@pytest.mark.slow
def test_an_interrupt_ends_in_one_line_and_writes_nothing() -> None:
    line = [sys.executable, "-m", "raters.cli.app", "audit", *VOTES, "--set", "draws=1000000"]
    environment = os.environ | {"PYTHONPATH": str(Path(rt.__file__).parent.parent)}
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            process.wait(8)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(120) == 130, err
    assert err.splitlines()[-1] == "raters: interrupted"
    assert "Traceback" not in err
    assert not Path("raters-audit").exists()


def test_judges_are_compared_and_a_fit_is_updated(capsys) -> None:
    labels, _ = rt.datasets.label_crowd(60, 4, 4, 2, seed=0)
    labels.to_frame().to_csv("all.csv", index=False)
    columns = ["--item", "item", "--annotator", "annotator", "--label", "label"]
    quick = ["--model", "one-coin", "--backend", "em", "--quiet"]
    who = ["--people", "0,1", "--cost", "2=0.5"]
    out = ["--out", "board.json", "--out", "board.csv"]
    assert main(["judges", "all.csv", *columns, *quick, *who, *out]) == 0
    assert "judge" in capsys.readouterr().out
    board = json.loads(Path("board.json").read_text())
    assert {row["judge"] for row in board["rows"]} == {"2", "3"}
    assert set(pd.read_csv("board.csv")["judge"]) == {2, 3}
    assert main(["judges", "all.csv", *columns, *quick, "--card", "3"]) == 0
    assert "accuracy" in capsys.readouterr().out
    for wrong in (["--people", "0,zoe"], ["--lengths", "one"], ["--cost", "2=dear"]):
        assert main(["judges", "all.csv", *columns, *quick, *wrong]) == 2
    table = pd.read_csv("all.csv")
    table[::2].to_csv("old.csv", index=False)
    table[1::2].to_csv("new.csv", index=False)
    assert main(["fit", "old.csv", *columns, *quick, "--out", "old.nc"]) == 0
    updated = ["fit", "new.csv", *columns, "--update", "old.nc", "--out", "both.nc", "--quiet"]
    assert main(updated) == 0
    assert "before" in capsys.readouterr().out
    assert main([*updated, "--model", "one-coin"]) == 2


def test_an_export_is_audited_on_its_gold_and_takes_its_labels_back(capsys) -> None:
    """A line says what was understood; the labels are those of a judge of the new export."""
    tasks = []
    for item in range(12):
        said = [("good", "bad")[(item + (who == item % 5)) % 2] for who in range(4)]
        done = [ex.annotation(10 * item + who, who, ex.mood(one)) for who, one in enumerate(said)]
        truth = ex.annotation(10 * item + 9, 9, ex.mood(("good", "bad")[item % 2]))
        tasks.append(ex.task(item, *done, *[truth | {"ground_truth": True}] * (item < 11)))
    Path("export.json").write_text(json.dumps(tasks))
    out = ("--labels", "clean.csv", "--labels", "back.json", "--out", "there")
    _, err = run(capsys, "audit", "export.json", *EM, *out)
    assert "Label Studio JSON, question 'mood' (choice): 48 labels, 12 items, 4 annot" in err
    assert "gold: 11 known truths" in err
    assert json.loads(Path("there/summary.json").read_text())["answer"]["anchored"]
    clean = pd.read_csv("clean.csv")
    assert {"item", "label", "probability", "p_good", "p_bad"} <= set(clean.columns)
    again = rt.read("back.json").judgements.to_frame()
    assert len(again) == 60
    own = again[again["annotator"] == "raters"]
    assert own["label"].tolist() == clean["label"].tolist()
    back = json.loads(Path("back.json").read_text())
    assert [task["annotations"] for task in back] == [task["annotations"] for task in tasks]
    run(capsys, "suggest", "export.json", *EM, "--again", "--out", "queue.json")
    queue = json.loads(Path("queue.json").read_text())
    assert all(task["data"] in [one["data"] for one in tasks] for task in queue)
    assert not any(task.get("annotations") for task in queue)


def test_judgements_by_one_are_fitted_without_competences(capsys) -> None:
    votes = {"winner": ["a", "a", "b", "b", "c"], "loser": ["b", "b", "a", "c", "a"]}
    pd.DataFrame(votes).to_csv("votes.csv", index=False)
    printed, _ = run(capsys, "rank", "votes.csv", "--backend", "em", "--set", "reward_scale=1")
    assert "Model: BTL" in printed
