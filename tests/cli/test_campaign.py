"""The commands ``raters campaign ...``: a campaign from start to votes, other tools in between, and
mistakes in one line."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.acquisition.campaign.campaign import Campaign
from raters.errors import DataWarning
from tests.cli.test_app import RATERS, refused, run

ROOT = Path(__file__).parents[2]
STARTED = (
    "--items",
    "tea,milk,beer",
    "--annotators",
    "ann,bob",
    "--target",
    "random",
    "--model",
    "btl",
    "--quiet",
)
TWICE = ("--people", "7=ann", "--people", "7=bob")
LABELLED = ("--items", "one,two", "--annotators", "ann", "--target", "random")


@pytest.fixture
def journal(tmp_path, capsys) -> Path:
    """A campaign about three drinks, with two people, that asks at random."""
    path = tmp_path / "campaign.db"
    assert run(capsys, "campaign", "start", *STARTED, "--out", path) == (0, "", "")
    return path


@pytest.fixture
def asked(journal, capsys) -> Path:
    """Its first three questions, to fill in."""
    path = journal.with_name("questions.csv")
    assert run(capsys, "campaign", "ask", journal, "--number", 3, "--out", path, "--quiet") == (
        0,
        "",
        "",
    )
    return path


def fill(path: Path, answers: list[str], **changed: str) -> list[str]:
    """Fill in the column `answer`; gives the ids."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for row, answer in zip(rows, answers, strict=False):
        row |= {"answer": answer} | changed
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [row["id"] for row in rows]


# ---------------------------------------------------------------- the loop


def test_a_campaign_from_start_to_votes(journal, asked, capsys):
    assert asked.read_text().splitlines()[0] == "id,first,second,by,score,answer"
    fill(asked, ["first", "", "tie"])
    code, out, err = run(capsys, "campaign", "tell", journal, asked)
    assert (code, out, err) == (0, "", "raters: 2 new answer(s)\n")
    assert (
        run(capsys, "campaign", "tell", journal, asked)[2]
        == "raters: 0 new answer(s), 2 told before\n"
    )
    _, out, _ = run(capsys, "campaign", "status", journal, "--quick")
    for text in (
        "answered",
        "2 questions, in 1 batch(es)",
        "spent",
        "BTL(reward_scale=None",
        "Policy(score=Random())",
        "no",
    ):
        assert text in out
    votes = journal.with_name("votes.csv")
    assert (
        run(capsys, "campaign", "export", journal, "--to", "judgements", "--out", votes)[2]
        == f"raters: wrote 2 rows to {votes}\n"
    )
    read = rt.Comparisons.from_frame(
        pd.read_csv(votes),
        first="first",
        second="second",
        outcome="outcome",
        annotator="annotator",
        count="count",
        ties="half",
    )
    assert (read.num_votes, sorted(read.wins.tolist())) == (
        2,
        sorted(Campaign.open(journal).data.wins.tolist()),
    )


def test_questions_are_printed_without_a_file(journal, capsys):
    code, out, err = run(capsys, "campaign", "ask", journal, "--number", 2, "--annotator", "bob")
    assert code == 0
    assert out.count("bob") == 2
    assert "2 question(s); answers: raters campaign tell" in err


def test_questions_that_arrive(journal, capsys):
    arriving, out = journal.with_name("arriving.csv"), journal.with_name("taken.csv")
    arriving.write_text("first,second,by,note\ntea,milk,ann,x\nmilk,tea,ann,y\nbeer,tea,bob,\n")
    code, said, err = run(
        capsys, "campaign", "consider", journal, arriving, "--rate", 0.999, "--out", out
    )
    assert code == 0
    first, second, third = said.splitlines()
    assert first.startswith("ask ")
    assert "first tea, second milk, by ann: the lot asks it" in first
    assert second == "let go: first milk, second tea, by ann: it waits for an answer already"
    assert third.startswith("ask ")
    assert err.startswith("raters: 2 of 3 question(s) to be asked, in ")
    fill(out, ["first", "tie"])
    assert run(capsys, "campaign", "tell", journal, out)[2] == "raters: 2 new answer(s)\n"
    one = [
        part for name in ("first=milk", "second=beer", "by=bob") for part in ("--question", name)
    ]
    assert run(capsys, "campaign", "consider", journal, *one, "--quiet")[0] == 0
    assert "4 arrived, " in run(capsys, "campaign", "status", journal, "--quick")[1]


def test_the_table_keeps_what_an_earlier_call_asked(journal, capsys):
    arriving, out = journal.with_name("arriving.csv"), journal.with_name("taken.csv")
    words = ("campaign", "consider", journal, arriving, "--rate", 0.999, "--out", out)
    for rows, number in (("tea,milk,ann\n", 1), ("beer,tea,bob\nbeer,milk,ann\n", 3)):
        arriving.write_text(f"first,second,by\n{rows}")
        code, _, err = run(capsys, *words)
        assert code == 0
        assert len(pd.read_csv(out)) == number
    assert "2 of 2 question(s) to be asked" in err
    assert "with all 3 of the stream that are open" in err


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("tea,milk,ann\ntea,gin,ann\n", "row 2 of '{}': the question {{'first': 'tea', 'second':"),
        ("tea,milk,\n", "row 1 of '{}' has no by; fill it in"),
    ],
    ids=["a name", "a hole"],
)
def test_a_row_that_is_no_question_is_named(journal, capsys, rows, words):
    arriving = journal.with_name("arriving.csv")
    arriving.write_text(f"first,second,by\n{rows}")
    code, _, err = run(capsys, "campaign", "consider", journal, arriving, "--rate", 0.999)
    assert code == 2
    assert words.format(arriving) in err


def test_the_regret_of_a_stream_is_printed(tmp_path, capsys):
    path, arriving = tmp_path / "scored.db", tmp_path / "arriving.csv"
    assert run(capsys, "campaign", "start", *STARTED[:4], "--out", path)[0] == 0
    arriving.write_text("first,second,by\ntea,milk,ann\nbeer,tea,bob\n")
    code, _, err = run(capsys, "campaign", "consider", path, arriving, "--rate", 0.999)
    assert code == 0
    assert re.search(r"regret against a pool of those seen lately: \S+ of \S+, the scores", err)


def test_nothing_is_left_to_ask(journal, capsys):
    for _ in range(2):
        run(capsys, "campaign", "ask", journal, "--number", 3)
    code, out, _ = run(capsys, "campaign", "ask", journal)
    assert code == 0
    assert (
        out == "Nothing to ask: all questions of the pool have been asked, or the quotas of the"
        " annotators are used up; 6 wait for an answer.\n"
    )
    code, out, _ = run(
        capsys,
        "campaign",
        "ask",
        journal,
        "--annotator",
        "bob",
        "--annotator",
        "ann",
        "--budget",
        6,
    )
    assert out.startswith("Nothing to ask: ")
    assert Campaign.open(journal).budget == 6.0


def test_one_answer_and_its_correction(journal, asked, capsys):
    one = fill(asked, [])[0]
    told = ("campaign", "tell", journal, "--id", one, "--answer")
    assert run(capsys, *told, "first")[2] == "raters: 1 new answer(s)\n"
    assert "--correct is not given" in refused(capsys, journal.parent, *told, "second")
    assert run(capsys, *told, "second", "--correct")[2] == "raters: 0 new answer(s), 1 corrected\n"
    assert run(
        capsys, "campaign", "tell", journal, "--id", one, "--answer", "second", "--quiet"
    ) == (0, "", "")


def test_withdrawn_questions(journal, asked, capsys):
    one, other, _ = fill(asked, [])
    assert (
        run(capsys, "campaign", "withdraw", journal, one)[2] == "raters: withdrew 1 question(s)\n"
    )
    run(capsys, "campaign", "tell", journal, "--id", other, "--answer", "tie")
    assert (
        run(capsys, "campaign", "withdraw", journal, one, other)[2]
        == "raters: withdrew 0 question(s); 2 were not open\n"
    )
    told = run(capsys, "campaign", "tell", journal, "--id", one, "--answer", "tie")[2]
    assert told == "raters: 1 new answer(s), 1 to questions that had been withdrawn\n"
    run(capsys, "campaign", "withdraw", journal, "--annotator", "ann", "--annotator", "bob")
    assert Campaign.open(journal).outstanding().sizes["id"] == 0


def test_answers_are_asked_for_one_by_one(journal, asked, capsys, monkeypatch):
    typed = iter(["wine", "", "l", "s", "R"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    code, out, err = run(capsys, "campaign", "tell", journal)
    ids = fill(asked, [])
    assert (code, out.split()) == (0, ["noted", ids[0], "noted", ids[2]])
    assert (
        err.count("none of those possible") == 1
    )  # an empty line is no answer, and is asked again
    assert err.endswith("raters: 2 answer(s) taken\n")
    found = Campaign.open(journal).asked
    assert found["answer"].values[0] == found["first"].values[0]
    assert found["answer"].values[2] == found["second"].values[2]

    def gone(prompt):
        raise EOFError

    monkeypatch.setattr("builtins.input", gone)
    assert run(capsys, "campaign", "tell", journal)[2] == "raters: 0 answer(s) taken\n"
    run(capsys, "campaign", "withdraw", journal, "--annotator", "ann", "--annotator", "bob")
    assert run(capsys, "campaign", "tell", journal)[1].startswith("No question is open")


@pytest.mark.parametrize(
    ("items", "typed", "keys", "outcome"),
    [
        (("apple", "t"), ["t", "T", "tie"], "apple (l) or t (r)? tie (tie), skip (s)", 0.5),
        (("t", "apple"), ["t", "l"], "t (l) or apple (r)? tie (tie)", 1.0),
        (("apple", "l"), ["l", "left"], "apple (left) or l (r)? tie (t)", 1.0),
        (("l", "apple"), ["l"], "l (left) or apple (r)? tie (t)", 1.0),
        (("s", "Q"), ["s", "q", "Q", "skip"], "tie (t), skip (skip), quit (quit)", None),
        (("s", "skip"), ["s", ":skip"], "skip (:skip)", None),
        (("right", "left"), ["left", "l"], "right (l) or left (r)?", 1.0),
        (("first", "left"), ["left", "l"], "first (l) or left (r)?", 1.0),
        (("apple", "skip"), ["skip", "r"], "apple (l) or skip (r)? tie (t), skip (s)", 0.0),
        (("quit", "apple"), ["quit", "QUIT", "q"], "quit (l) or apple (r)?", None),
        (("apple", "tie"), ["tie", "r"], "apple (l) or tie (r)? skip (s)", 0.0),
    ],
)
def test_a_name_that_is_also_a_key_has_no_meaning(
    items, typed, keys, outcome, tmp_path, capsys, monkeypatch
):
    pool = rt.Candidates.pairs(items=items, annotators=["ann"])
    first, second = (np.array([pool.items.index(item)]) for item in items)
    pool = dataclasses.replace(pool, first=first, second=second)
    policy = rt.Policy(score=rt.acquisition.Random())
    campaign = rt.Campaign(tmp_path / "a.db", rt.BTL(), pool, policy=policy)
    (one,) = campaign.ask(1)["id"].values
    prompts, words = [], iter(typed)
    monkeypatch.setattr("builtins.input", lambda prompt: prompts.append(prompt) or next(words))
    _, _, err = run(capsys, "campaign", "tell", tmp_path / "a.db")
    assert keys in prompts[0]
    assert len(prompts) == len(typed)  # all but the last word were refused
    assert (
        err.count(" is a name and also a key for something else; type one of ")
        + err.count("is the name of an item and also a word for a side or a tie; write")
        == len(typed) - 1
    )
    answers = {1.0: items[0], 0.5: "tie", 0.0: items[1], None: ""}
    assert Campaign.open(tmp_path / "a.db").asked.sel(id=one)["answer"].item() == answers[outcome]


def test_a_class_that_is_also_a_key_is_quoted(tmp_path, capsys, monkeypatch):
    start = ("campaign", "start", *LABELLED, "--classes", "s,S", "--out", tmp_path / "a.db")
    assert "told apart by case" in run(capsys, *start)[2]
    assert run(capsys, "campaign", "ask", tmp_path / "a.db", "--number", 2)[0] == 0
    prompts, words = [], iter(["s", "'S'", "skip"])
    monkeypatch.setattr("builtins.input", lambda prompt: prompts.append(prompt) or next(words))
    _, _, err = run(capsys, "campaign", "tell", tmp_path / "a.db")
    assert prompts[0].endswith(": s ('s'), S ('S')? skip (skip), quit (q) > ")
    assert "'s' is a name and also a key for something else; type one of 's', 'S', skip, q" in err
    assert Campaign.open(tmp_path / "a.db").asked["answer"].values.tolist() == ["S", ""]


def test_a_class_that_is_also_an_action_is_quoted(tmp_path, capsys, monkeypatch):
    start = ("campaign", "start", *LABELLED, "--classes", "skip,keep", "--out", tmp_path / "a.db")
    assert run(capsys, *start)[0] == 0
    assert run(capsys, "campaign", "ask", tmp_path / "a.db", "--number", 2)[0] == 0
    prompts, words = [], iter(["skip", "'skip'", "s"])
    monkeypatch.setattr("builtins.input", lambda prompt: prompts.append(prompt) or next(words))
    _, _, err = run(capsys, "campaign", "tell", tmp_path / "a.db")
    assert prompts[0].endswith(": skip ('skip'), keep? skip (s), quit (q) > ")
    assert "'skip' is a name and also a key for something else; type one of 'skip', s, q" in err
    assert Campaign.open(tmp_path / "a.db").asked["answer"].values.tolist() == ["skip", ""]


def test_an_answer_that_was_noted_survives_the_process(journal, asked, capsys):
    process = subprocess.Popen(
        [*RATERS, "campaign", "tell", str(journal)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("l\n")
    process.stdin.flush()
    line = process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    one = fill(asked, [])[0]
    assert f"noted {one}" in line
    found = Campaign.open(journal)
    assert found.asked["status"].values.tolist() == ["answered", "open", "open"]
    assert run(capsys, "campaign", "tell", journal, "--id", one, "--answer", "first")[2].startswith(
        "raters: 0 new answer(s), 1 told"
    )


# ---------------------------------------------------------------- starting


def started(capsys, path: Path, *arguments: object) -> Campaign:
    code, out, err = run(capsys, "campaign", "start", *arguments, "--out", path, "--quiet")
    assert (code, out, err) == (0, "", "")
    return Campaign.open(path)


def test_it_goes_on_from_a_table_of_votes(tmp_path, capsys):
    table = tmp_path / "votes.csv"
    table.write_text("winner,loser,worker\n1,2,ann\n2,3,ann\n")
    options = (
        "--target",
        "random",
        "--cost",
        "carl=2.5",
        "--quota",
        4,
        "--budget",
        20,
        "--batch-size",
        3,
        "--seed",
        7,
    )
    found = started(
        capsys,
        tmp_path / "a.db",
        table,
        "--annotators",
        "carl,ann",
        "--items",
        "1,2,4",
        "--no-again",
        *options,
    )
    assert (found.data.items, found.data.annotators, found.data.num_votes) == (
        ("1", "2", "3", "4"),
        ("ann", "carl"),
        2,
    )
    pool = found.pool
    named = {
        frozenset((pool.items[i], pool.items[j]))
        for i, j in zip(pool.first.tolist(), pool.second.tolist(), strict=True)
    }
    assert named == {frozenset(pair) for pair in ["12", "14", "24"]}
    assert (found.policy.costs, found.policy.quota, found.budget) == ((("carl", 2.5),), 4, 20.0)
    assert (found.again, found.batch_size, found.seed) == (False, 3, 7)
    assert found.model == rt.ExtendedBTL(competence="signed")
    assert found.ask(annotator="ann").sizes["id"] == 2  # 1 and 2 were compared by ann


def test_either_item_may_be_shown_first(tmp_path, capsys):
    pool = started(
        capsys, tmp_path / "a.db", *STARTED[:-1], "--items", ",".join(map(str, range(12)))
    ).pool
    assert 0.3 < (pool.first < pool.second).mean() < 0.7


def test_it_starts_from_names_in_a_file(tmp_path, capsys):
    (tmp_path / "items.txt").write_text("tea, green\nmilk\n\n007\n")
    arguments = (
        "--items",
        tmp_path / "items.txt",
        "--annotators",
        "1,2",
        "--classes",
        "no,yes",
        "--until",
        0.9,
    )
    found = started(capsys, tmp_path / "a.db", *arguments, "--draws", 50, "--model", "one-coin")
    assert set(found.pool.items) == {"tea, green", "milk", "007"}
    assert set(found.pool.annotators) == {"1", "2"}
    assert found.pool.classes == ("no", "yes")
    assert found.model == rt.models.OneCoin()
    assert found.backend == rt.PGGibbs(draws=50)
    assert repr(found.stop) == "ExpectedAccuracy(at_least=0.9)"


def test_a_table_is_no_file_of_names(tmp_path, capsys):
    (tmp_path / "items.csv").write_text("item,grade\napple,3\npear,4\n")
    out = tmp_path / "a.db"
    arguments = ("start", "--items", tmp_path / "items.csv", "--annotators", "ann", "--out", out)
    assert "is a table by its name" in refused(capsys, tmp_path, "campaign", *arguments)


def test_it_goes_on_from_a_table_of_labels(tmp_path, capsys):
    table = tmp_path / "labels.csv"
    table.write_text("item,annotator,label\n1,ann,no\n1,bob,yes\n2,ann,no\n")
    path = tmp_path / "a.db"
    found = started(
        capsys,
        path,
        table,
        "--annotators",
        "ann,bob,carl",
        "--items",
        "1,2,3",
        "--target",
        "random",
    )
    assert (found.pool.items, found.pool.annotators, found.pool.classes) == (
        ("1", "2", "3"),
        ("ann", "bob", "carl"),
        ("no", "yes"),
    )
    assert len(found.pool.annotator) == 9 - 3
    questions = tmp_path / "questions.csv"
    run(capsys, "campaign", "ask", path, "--out", questions, "--number", 2)
    assert questions.read_text().startswith("id,item,by,score,answer\n")
    fill(questions, ["yes", "no"])
    run(capsys, "campaign", "tell", path, questions)
    assert Campaign.open(path).data.num_labels == 5
    run(capsys, "campaign", "export", path, "--to", "judgements", "--out", tmp_path / "votes.csv")
    assert (tmp_path / "votes.csv").read_text().startswith("item,annotator,label,count\n")


# ---------------------------------------------------------------- other tools


def test_through_label_studio_and_back(journal, asked, tmp_path, capsys):
    texts = tmp_path / "texts.csv"
    texts.write_text("item,text\ntea,a cup of tea\nmilk,a glass\nbeer,a pint\n")
    out = tmp_path / "tasks.json"
    run(
        capsys,
        "campaign",
        "export",
        journal,
        "--to",
        "label-studio",
        "--out",
        out,
        "--texts",
        texts,
    )
    tasks = json.loads(out.read_text())
    assert {task["data"]["first"] for task in tasks} <= {"a cup of tea", "a glass", "a pint"}
    assert "<Pairwise" in (tmp_path / "tasks-config.xml").read_text()
    users = {"ann": 4, "bob": 5}
    for task, side in zip(tasks, ("left", "right", None), strict=True):
        result = [{"type": "pairwise", "value": {"selected": side}}] if side else []
        who = users[task["data"]["by"]]
        task["annotations"] = [
            {"completed_by": who, "result": result, "was_cancelled": side is None}
        ]
    tasks[1]["annotations"].append(
        {"completed_by": 9, "result": [{"type": "pairwise", "value": {"selected": "left"}}]}
    )
    out.write_text(json.dumps(tasks))
    people = ("--people", "4=ann", "--people", "5=bob")
    _, _, err = run(capsys, "campaign", "import", journal, out, "--from", "label-studio", *people)
    skipped, doubtful = (tasks[place]["data"]["question_id"] for place in (2, 1))
    assert err.splitlines() == [
        "raters: 2 new answer(s)",
        f"raters: 1 were skipped: {skipped}; take them back with withdraw",
        f"raters: left out: {doubtful} was answered (first) by 9, who was not asked",
    ]
    _, _, err = run(capsys, "campaign", "import", journal, out, "--from", "label-studio")
    assert (
        f"left out: {doubtful} has different answers (second, first); say who is who with --people"
        in err
    )
    found = Campaign.open(journal).asked
    assert found["answer"].values.tolist() == [
        found["first"].values[0],
        found["second"].values[1],
        "",
    ]


def test_through_argilla_and_back(journal, asked, tmp_path, capsys):
    out = tmp_path / "records.json"
    run(
        capsys,
        "campaign",
        "export",
        journal,
        "--to",
        "argilla",
        "--out",
        out,
        "--ties",
        "--annotator",
        "ann",
    )
    settings = json.loads((tmp_path / "records-settings.json").read_text())
    assert [option["value"] for option in settings["questions"][0]["settings"]["options"]] == [
        "first",
        "second",
        "tie",
    ]
    records = json.loads(out.read_text())
    assert {record["metadata"]["by"] for record in records} == {"ann"}
    for record in records:
        record["responses"] = {"answer": [{"value": "tie", "user_id": "u"}]}
    out.write_text(json.dumps(records))
    assert (
        run(capsys, "campaign", "import", journal, out, "--from", "argilla")[2]
        == f"raters: {len(records)} new answer(s)\n"
    )
    assert set(Campaign.open(journal).data.wins.tolist()) == {0.5}


def test_each_export_keeps_its_interface(journal, asked, tmp_path, capsys):
    def export(name: str, *how: str) -> tuple[object, ...]:
        out = ("--out", tmp_path / name)
        return ("campaign", "export", journal, "--to", "label-studio", *out, "--quiet", *how)

    assert run(capsys, *export("tasks.1.json")) == (0, "", "")
    assert run(capsys, *export("tasks.2.json", "--ties")) == (0, "", "")
    assert "<Pairwise" in (tmp_path / "tasks.1-config.xml").read_text()
    assert "<Choices" in (tmp_path / "tasks.2-config.xml").read_text()
    code, _, err = run(capsys, *export("tasks.1"))
    assert (code, "was written with 'tasks.1.json'" in err) == (2, True)
    assert not (tmp_path / "tasks.1").exists()


def test_open_questions_can_be_written_again(journal, asked, tmp_path, capsys):
    run(capsys, "campaign", "export", journal, "--to", "csv", "--out", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == asked.read_text()
    fill(tmp_path / "again.csv", ["first", "second"])
    assert (
        run(capsys, "campaign", "import", journal, tmp_path / "again.csv", "--from", "csv")[2]
        == "raters: 2 new answer(s)\n"
    )


# ---------------------------------------------------------------- answers as people write them


def test_a_table_that_a_spreadsheet_has_saved(journal, asked, capsys):
    fill(asked, ["First", "tie"])
    asked.write_text("\ufeff" + asked.read_text().replace(",", ";"), "utf-8")
    assert run(capsys, "campaign", "tell", journal, asked)[2] == "raters: 2 new answer(s)\n"


def test_classes_called_none_are_answers(tmp_path, capsys):
    path, questions = tmp_path / "a.db", tmp_path / "q.csv"
    started(
        capsys,
        path,
        "--items",
        "1,2",
        "--annotators",
        "ann",
        "--classes",
        "None,NA",
        "--target",
        "random",
    )
    run(capsys, "campaign", "ask", path, "--out", questions)
    fill(questions, ["None", "NA"])
    assert run(capsys, "campaign", "tell", path, questions)[2] == "raters: 2 new answer(s)\n"


@pytest.mark.parametrize("name", ["q.jsonl", "q.tsv", "q.parquet", "q.csv.gz"])
def test_tables_of_other_kinds(journal, asked, capsys, name):
    fill(asked, ["first", "tie"])
    table, path = pd.read_csv(asked, dtype=str, keep_default_na=False), asked.with_name(name)
    if name.endswith("jsonl"):
        table.to_json(path, orient="records", lines=True)
    elif name.endswith("parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if name.endswith("tsv") else ",")
    assert run(capsys, "campaign", "tell", journal, path)[2] == "raters: 2 new answer(s)\n"


def test_tables_that_are_wrong(journal, asked, capsys):
    def told(*arguments):
        return refused(capsys, journal.parent, "campaign", "tell", journal, asked, *arguments)

    assert "holds no answer" in told()
    ids = fill(asked, ["first"])
    whole = asked.read_text()
    asked.write_text(whole + whole.splitlines()[1].replace("first", "second") + "\n")
    assert f"has two answers to question {ids[0]}: 'first' and 'second'" in told()
    asked.write_text(whole.replace(ids[0], "zzzz-1"))
    assert "it is of another campaign" in told()
    fill(asked, ["first"])
    asked.write_text(whole)
    fill(asked, ["first"], by="eve")
    assert "were columns sorted apart?" in told()
    asked.write_text("question,answer\n1,first\n")
    assert "has no column 'id'" in told()
    asked.write_bytes("id,answer\nx,Größe\n".encode("latin-1"))
    assert "save it as UTF-8" in told()
    assert Campaign.open(journal).data.num_votes == 0


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("start", "--items", "a,b"), "--annotators is missing"),
        (("start", "--annotators", "a,b"), "--items is missing"),
        (("start", "--items", "a", "--annotators", "x"), "two items"),
        (("start", "--items", "a,a", "--annotators", "x"), "--items a comes twice"),
        (("start", *STARTED, "--cost", "ann"), "write --cost NAME=NUMBER"),
        (("start", *STARTED, "--cost", "ann=much"), "write --cost ann=2.5"),
        (("start", *STARTED, "--cost", "ann=-1"), "--cost -1.0 is not possible for 'ann'"),
        (("start", *STARTED, "--cost", "eve=1"), "--cost eve is not among"),
        (
            ("start", *STARTED, "--cost", "ann=2", "--cost", "ann=5"),
            "--cost ann comes twice; give each name once",
        ),
        (("start", *STARTED, "--budget", 0), "--budget 0.0 is not possible"),
        (("start", *STARTED, "--least-share", 2), "--least-share 2"),
        (("start", *STARTED, "--until", 2), "--until 2.0 is not possible"),
        (("start", *STARTED, "--winner", "w"), "--winner is about FILE, and there is no FILE"),
        (
            ("start", *STARTED, "--model", "dawid-skene"),
            "--model dawid-skene takes labels, and this is a campaign of comparisons",
        ),
        (("start", *STARTED, "--position-bias"), "--position-bias needs --first"),
        (
            ("start", *STARTED[:4], "--classes", "a,b", "--competence", "unit"),
            "--competence belongs to --model extended-btl",
        ),
        (
            ("start", *STARTED[:4], "--classes", "a,b", "--target", "ranking"),
            "--target needs draws of reward, and DawidSkene has none",
        ),
        (("start", "none.csv"), "there is no file 'none.csv'"),
        (("ask", "none.db"), "there is no journal 'none.db'; write it with raters campaign start"),
        (("status", "none.db"), "there is no journal"),
    ],
)
def test_mistakes_cost_one_line(tmp_path, capsys, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, tmp_path, "campaign", *arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("start", *STARTED, "--out", "{journal}"), "is there already"),
        (("ask", "{journal}", "--annotator", "eve"), "--annotator eve is not among"),
        (("ask", "{journal}", "--out", "questions.txt"), "cannot tell the format"),
        (("ask", "{journal}", "--budget", "-1"), "--budget -1.0"),
        (("tell", "{journal}", "--id", "a"), "--id and --answer go together"),
        (("tell", "{journal}", "none.csv"), "there is no file"),
        (("tell", "{journal}", "none.csv", "--id", "a", "--answer", "b"), "give one of them"),
        (("withdraw", "{journal}"), "say which"),
        (("consider", "{journal}"), "give the questions that arrive in a table FILE, or one"),
        (("consider", "{journal}", "none.csv"), "there is no file"),
        (("consider", "{journal}", "none.csv", "--question", "by=ann"), "give the questions"),
        (("consider", "{journal}", "--question", "ann"), "write --question COLUMN=NAME"),
        (("consider", "{journal}", "--question", "by=ann"), "for each of first, second, by"),
        (("withdraw", "{journal}", "x-1"), "was handed out"),
        (("export", "{journal}", "--to", "csv", "--out", "a.csv"), "no question is open"),
        (("export", "{journal}", "--to", "csv", "--out", "a.csv", "--ties"), "--ties belongs to"),
        (("import", "{journal}", "{journal}", "--from", "argilla"), "is not JSON"),
        (
            ("import", "{journal}", "none.csv", "--from", "csv", "--people", "a=b"),
            "--people belongs to",
        ),
        (
            ("import", "{journal}", "none.json", "--from", "argilla", "--people", "a"),
            "write --people USER=NAME",
        ),
        (
            ("import", "{journal}", "a.json", "--from", "argilla", *TWICE),
            "--people 7 comes twice; give each name once",
        ),
    ],
)
def test_mistakes_with_a_campaign_cost_one_line(journal, capsys, monkeypatch, arguments, says):
    monkeypatch.chdir(journal.parent)
    arguments = [str(part).format(journal=journal) for part in arguments]
    assert says in refused(capsys, journal.parent, "campaign", *arguments)
    assert Campaign.open(journal).asked.sizes["id"] == 0


def test_no_command_is_a_question_for_help(capsys):
    code, out, err = run(capsys, "campaign")
    assert (code, err) == (0, "")
    assert "withdraw" in out


def test_every_answer_comes_back_whatever_the_items_are_called(tmp_path, capsys):
    """Names that break lines, look like a formula or like nothing, or differ by space only."""
    items = ["a\u2028b", "c\x85d", "e\x0bf", "g\nh", "i\r\nj", "=cmd", "+x", "'@y", "None", "NA"]
    items += ["00", "0", " tea", "tea", 'a "b", c;d', "1.0", "é", "e\u0301"]
    table, journal = tmp_path / "q.csv", tmp_path / "a.db"
    with pytest.warns(DataWarning, match="told apart by"):
        pool = rt.Candidates.pairs(items=items, annotators=["ann"])
    policy = rt.Policy(score=rt.acquisition.Random())
    rt.Campaign(journal, rt.BTL(), pool, policy=policy)
    number = 60
    ask = ("campaign", "ask", journal, "--number", number, "--out", table, "--quiet")
    assert run(capsys, *ask)[0] == 0
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answers = {}
    for place, row in enumerate(rows):
        row["answer"] = row[("first", "second")[place % 2]]
        answers[row["id"]] = place % 2 == 0
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    code, _, err = run(capsys, "campaign", "tell", journal, table)
    assert (code, err) == (0, f"raters: {number} new answer(s)\n")
    told = Campaign.open(journal)
    assert told.data.num_votes == number
    asked = told.asked.to_dataframe()
    for one, first in answers.items():
        assert asked.loc[one, "answer"] == asked.loc[one, "first" if first else "second"]
