"""A kind of judgement in the user's own file, with every command; how a kind is found."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import raters as rt
from raters import kinds as registry
from raters.acquisition.campaign.campaign import Campaign
from raters.cli import kinds, tables
from raters.cli.options import ColumnOptions, GeneratedOptions
from raters.cli.reading import read, source_of
from raters.errors import DataError, SettingError
from tests.cli.test_app import refused, run

MODULE = '''
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import raters as rt
from raters.judgements.base import Judgements
from raters.judgements.roles import static
from raters.judgements.names import encode_names
from raters.judgements.reading.columns import read_columns, read_numbers
from raters.kinds import Column, Section, Table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replies(Judgements):
    pupil: Any
    task: Any
    right: Any
    count: Any
    pupils: tuple = static()
    tasks: tuple = static()

    axes = {"pupil": "pupil", "task": "task"}
    names = {"pupil": "pupils", "task": "tasks"}
    answer = "right"
    row = "reply"
    judge = "pupil"

    def answers(self):
        return np.array([0, 1])


def read(frame, *, pupil: str, task: str, right: str, flip: bool = False):
    """Read replies.

    Parameters
    ----------
    pupil, task : str
        Columns with who replied, and to what.
    right : str
        Column with 1 for a right reply.
    flip : bool
        Whether 1 is wrong.
    """
    columns = read_columns(frame, pupil=pupil, task=task, right=right)
    (who,), pupils = encode_names([columns["pupil"]], None, "pupil")
    (what,), tasks = encode_names([columns["task"]], None, "task")
    value = read_numbers(columns["right"])
    value = 1 - value if flip else value
    return Replies(who, what, value.astype("float32"), None, pupils, tasks)


@dataclass(frozen=True)
class Rasch(rt.Model[Replies]):
    """Ability against difficulty.

    Parameters
    ----------
    ability_scale : float
        Standard deviation of the abilities.
    """

    ability_scale: float = 1.0

    @property
    def blocks(self):
        return (("ability",), ("difficulty",))

    def start(self, data):
        return {"ability": np.zeros(len(data.pupils)), "difficulty": np.zeros(len(data.tasks))}

    def generate(self, data):
        with numpyro.plate("pupil", len(data.pupils)):
            ability = numpyro.sample("ability", dist.Normal(0.0, self.ability_scale))
        with numpyro.plate("task", len(data.tasks)):
            difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 1.0))
        logits = ability[data.pupil] - difficulty[data.task]
        with numpyro.plate("reply", data.num_rows):
            numpyro.sample("right", dist.Bernoulli(logits=logits), obs=data.right)


def tasks(context):
    mean = context.result["posterior"]["difficulty"].mean(("chain", "draw"))
    rows = [
        {"task": name, "difficulty": float(value), "share": None}
        for name, value in zip(mean["task"].values, mean.values)
    ]
    columns = (
        Column("task", "task", "name"),
        Column("difficulty", "difficulty", "number"),
        Column("share", "share of [b]all[/b]", "percent"),
    )
    return Section(
        "tasks",
        "Which tasks are hard",
        f"There are {len(rows)} [i]tasks[/i].",
        tables=(Table("tasks", "Tasks, as they come", columns, rows),),
        facts={"hardest": str(mean["task"].values[mean.values.argmax()])},
        files={"tasks.txt": lambda path: path.write_text(f"{len(rows)} tasks")},
    )


KIND = rt.kinds.Kind(
    data=Replies,
    readers=(rt.kinds.Reader(read),),
    models=(Rasch,),
    default=Rasch(),
    words=rt.kinds.Words("reply", "replies"),
    threshold=-1.0,
    sections=(tasks, lambda context: None),
)
'''
NAMED = ("--kind", "school:KIND", "--pupil", "who", "--task", "what", "--right", "ok")
QUICK = ("--backend", "em", "--draws", 200, "--quiet")


@pytest.fixture
def school(tmp_path, monkeypatch) -> Path:
    """A table of replies, in a folder with the module that defines their kind."""
    (tmp_path / "school.py").write_text(MODULE)
    rows = [
        f"{who},{what},{int((who * 3 + what * 5) % 7 < 3 + who)}"
        for who in range(5)
        for what in range(6)
    ]
    (tmp_path / "replies.csv").write_text("\n".join(["who,what,ok", *rows[:-4]]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    yield tmp_path / "replies.csv"
    sys.modules.pop("school", None)


def test_a_kind_of_the_user_is_fitted_and_audited(school, capsys):
    folder = school.parent
    arguments = (school, *NAMED, "--ability-scale", 2, *QUICK)
    code, printed, err = run(
        capsys, "audit", *arguments, "--out", folder / "out", "--min-judgements", 2
    )
    assert (code, err) == (0, "")
    assert "Pupils, least trusted first" in printed
    assert "Next questions" in printed
    lines = printed.splitlines()
    assert lines[0].startswith("Pupils were judged by what their model says")
    assert "Tasks, as they come" in lines
    assert "There are 6 [i]tasks[/i]." in lines
    assert "[b]all[/b]" in printed
    assert (folder / "out" / "tasks.txt").read_text() == "6 tasks"
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["model"] == "Rasch(ability_scale=2.0)"
    assert summary["data"] == {"pupils": 5, "tasks": 6, "replies": 26}
    assert len(summary["audit"]["pupils"]) == 5
    assert summary["sections"]["tasks"]["hardest"] in {"0", "1", "2", "3", "4", "5"}
    code, _, err = run(capsys, "fit", *arguments, "--flip", "--out", folder / "x.nc")
    assert (code, err) == (0, "")
    table = folder / "next.csv"
    asked = ("--kind", "school:KIND", "--pupil", 4, "--batch-size", 2, "--out", table)
    assert run(capsys, "suggest", folder / "x.nc", *asked)[0] == 0
    assert pd.read_csv(table)["by"].tolist() == [4, 4]


def test_a_campaign_of_the_users_kind(school, capsys):
    path, table = school.parent / "a.db", school.parent / "q.csv"
    started = ("campaign", "start", school, *NAMED, "--target", "random", "--quiet")
    assert run(capsys, *started, "--out", path) == (0, "", "")
    own = ("--kind", "school:KIND", "--quiet")
    assert run(capsys, "campaign", "ask", path, *own, "--number", 2, "--out", table)[0] == 0
    filled = pd.read_csv(table, dtype=str).assign(answer=["1", "0"])
    assert filled.columns.tolist() == ["id", "task", "by", "score", "answer"]
    filled.to_csv(table, index=False)
    assert run(capsys, "campaign", "tell", path, table, *own) == (0, "", "")
    assert Campaign.open(path).data.num_rows == 28
    votes = school.parent / "votes.csv"
    run(capsys, "campaign", "export", path, *own, "--to", "judgements", "--out", votes)
    assert pd.read_csv(votes).columns.tolist() == ["pupil", "task", "right", "count"]


def test_a_kind_that_cannot_be_had_costs_one_line(school, capsys):
    folder = school.parent
    for text, problem in (
        ("nowhere:KIND", "--kind nowhere:KIND cannot be imported"),
        (":KIND", "--kind :KIND is not possible; write MODULE:NAME"),
        ("school:", "--kind school: is not possible; write MODULE:NAME"),
        ("school:read", "--kind school:read is no raters.kinds.Kind; write school:KIND"),
        (
            "votes",
            "--kind votes is not possible; choose one of 'choices', 'comparisons',"
            " 'demonstrations', 'labels'",
        ),
    ):
        assert problem in refused(capsys, folder, "audit", school, "--kind", text)
    assert "--pupil needs" not in refused(capsys, folder, "audit", school, *NAMED[:2])
    text = (folder / "school.py").read_text().replace("threshold=-1.0", 'name="lower"')
    (folder / "lower.py").write_text(text)
    line = refused(capsys, folder, "audit", school, "--kind", "lower:KIND", *NAMED[2:])
    assert "--threshold is missing; say below which value" in line
    assert "--task needs --right as well" in refused(
        capsys, folder, "audit", school, *NAMED[:6], "--out", folder / "out"
    )


# ---------------------------------------------------------------- which kind a table is of


def options(**given: object) -> ColumnOptions:
    """Options on columns, as if they had been typed."""
    columns = GeneratedOptions.of(rt.kinds.registered_kinds()).columns
    return ColumnOptions(given=given, options=columns)


def shape_of(tmp_path: Path, header: str, **given: object) -> tuple[str, ...]:
    """Roles of the shape in which a table with this header is read."""
    file = tmp_path / "table.csv"
    file.write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    return source_of(file, options(**given)).shape.roles


def read_table(tmp_path: Path, text: str, **given: object):
    """Judgements of a table, and the notes on them."""
    file = tmp_path / "table.csv"
    file.write_text(text)
    return read(source_of(file, options(**given)))


VOTES = "winner,loser,annotator,Count\na,b,x,3\nb,c,x,1\n"
LABELS = "item,annotator,label,count,truth\n1,ann,p,3,p\n1,bob,q,1,\n2,bob,q,2,\n"


def test_counts_and_truths_by_their_usual_names_are_read_and_said(tmp_path):
    votes, (note,) = read_table(tmp_path, VOTES)
    assert votes.num_votes == 4
    assert note.endswith("--annotator annotator --count Count")
    labels, (note,) = read_table(tmp_path, LABELS)
    assert (labels.num_labels, labels.truth.tolist()) == (6, [0, -1])
    assert note.endswith("--count count --truth truth")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_that_raters_wrote_comes_back_with_its_counts_and_truths(ending, tmp_path):
    for text in (VOTES, LABELS):
        data = read_table(tmp_path, text).data
        file = tmp_path / f"export.{ending}"
        tables.write_table(data.to_frame(), file)
        again = read(source_of(file, options())).data
        assert again.to_frame().astype(str).equals(data.to_frame().astype(str))


def test_columns_of_a_usual_name_beside_columns_that_are_named_are_mentioned(tmp_path):
    named = {"item": "item", "annotator": "annotator", "label": "label"}
    labels, notes = read_table(tmp_path, LABELS, **named)
    assert labels.num_labels == 3
    assert [note.rpartition("; ")[2] for note in notes] == [
        "to read it, add --count count",
        "to read it, add --truth truth",
    ]
    assert read_table(tmp_path, LABELS, **named, count="count", truth="truth").notes == ()


def test_a_column_called_count_that_holds_other_numbers_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(DataError, match=r"0\.5.*name the columns to read: --winner winner --loser"):
        read_table(tmp_path, VOTES.replace("3", "0.5"))


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        ("winner,loser", {"winner", "loser"}),
        ("First,Second,Outcome,judge", {"first", "second", "outcome"}),
        ("item,rating,rater", {"item", "rating"}),
        ("item,label,worker", {"item", "label", "annotator"}),
    ],
)
def test_usual_names_say_the_kind(header, roles, tmp_path):
    assert set(shape_of(tmp_path, header)) == roles


def test_columns_that_are_named_say_the_kind(tmp_path):
    assert shape_of(tmp_path, "a,b", winner="a", loser="b") == ("winner", "loser")
    assert shape_of(tmp_path, "a,b", places=["a", "b"]) == ("places",)
    with pytest.raises(DataError, match="none of the standard column names"):
        shape_of(tmp_path, "a,b")
    with pytest.raises(SettingError, match="different shapes"):
        shape_of(tmp_path, "a,b", winner="a", item="b")


def test_kind_among_the_arguments():
    assert kinds.kind_in(["audit", "x.csv", "--kind", "a:B"]) == "a:B"
    assert kinds.kind_in(["audit", "--kind=a:B"]) == "a:B"
    assert kinds.kind_in(["audit"]) is None


def test_names_are_text(tmp_path):
    (tmp_path / "names.txt").write_bytes("tea, green\r\n\n007\na\u2028b\n c \nd\re".encode())
    assert tables.names_in("1,02") == ["1", "02"]
    assert tables.names_in("1,b") == ["1", "b"]
    assert tables.names_in(str(tmp_path / "names.txt")) == [
        *("tea, green", "007", "a\u2028b", " c ", "d\re")
    ]
    assert tables.names_in('"a, b", c,"5"" disk"') == [*("a, b", "c", '5" disk')]
    assert tables.names_in("org/one,two.txt") == ["org/one", "two.txt"]
    assert tables.names_in('"org/one"') == ["org/one"]
    assert len(tables.names_in(",".join(map(str, range(1000))))) == 1000
    for ending in (".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet"):
        table = tmp_path / f"names{ending}"
        table.write_text("item,grade\napple,3\n")
        with pytest.raises(DataError, match=r"is a table by its name, .* 'names\.txt'"):
            tables.names_in(str(table))
