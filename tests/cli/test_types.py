"""The command ``raters types``: what it writes, what it prints, and that every mistake costs one
line and no file."""

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
from raters.cli import types as type_commands
from raters.cli.fitting import built
from raters.cli.options import ModelOptions
from raters.cli.outputs import write_folder
from raters.cli.reading import read, source_of
from raters.cli.simulate import votes_table
from tests.cli.test_app import columns, refused, run
from tests.hand import stored, visible

QUICK = ("--draws", 60, "--reward-scale", 1.5)
NAMED = ("--winner", "winner", "--loser", "loser", "--annotator", "annotator")


@pytest.fixture(scope="module")
def tasted(tmp_path_factory) -> Path:
    """Votes of 24 people of two tastes on five teas."""
    file = tmp_path_factory.mktemp("types") / "votes.csv"
    votes = rt.datasets.preference_types(5, 24, 30, 2, seed=3).votes
    table = votes_table(votes, 0)
    table.assign(**{side: "tea " + table[side].astype(str) for side in ("winner", "loser")}).to_csv(
        file, index=False
    )
    return file


@pytest.fixture(scope="module")
def found(tasted) -> Path:
    """The folder of one run that the tests share; what it printed is beside it."""
    out = tasted.parent / "found"
    arguments = ("types", tasted, "--num-types", 2, "--compare", "1,2", *QUICK, "--out", out)
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(io.StringIO()) as notes,
    ):
        code = cli.main([str(part) for part in arguments])
    (tasted.parent / "printed.txt").write_text(printed.getvalue())
    (tasted.parent / "notes.txt").write_text(notes.getvalue())
    assert code == 0, notes.getvalue()
    return out


def test_it_writes_tables_figures_and_a_result(found):
    figures = {"profiles.png", "responsibilities.png"}
    assert visible(found) == figures | {"result.nc", "summary.json", "types.csv", "annotators.csv"}
    assert all((found / name).read_bytes().startswith(b"\x89PNG") for name in figures)
    assert stored(found / "result.nc").posterior["reward"].dims == ("chain", "draw", "item", "type")


def test_the_tables_agree_with_the_result(found):
    result = stored(found / "result.nc")
    reward = result["posterior"]["reward"].mean(("chain", "draw"))
    items = pd.read_csv(found / "types.csv")
    assert len(items) == 10
    for row in items.itertuples():
        assert row.reward == pytest.approx(float(reward.sel(type=row.type, item=row.item)))
        assert row.reward_low < row.reward < row.reward_high
    assert items.groupby("type")["reward"].apply(lambda part: part.is_monotonic_decreasing).all()
    people = pd.read_csv(found / "annotators.csv", dtype={"annotator": str})
    chances = result["types"]["responsibility"].sel(annotator=people["annotator"].values)
    np.testing.assert_allclose(people[["p_type_0", "p_type_1"]].values, chances.values, atol=1e-12)
    assert people["votes"].tolist() == [30] * 24
    assert (people["type"] == chances.values.argmax(1)).all()


def test_the_types_that_were_planted_are_found(found):
    truth = rt.datasets.preference_types(5, 24, 30, 2, seed=3).truth["type"]
    people = pd.read_csv(found / "annotators.csv").sort_values("annotator")
    agree = np.mean(people["type"].values == truth)
    assert max(agree, 1 - agree) > 0.9
    summary = json.loads(
        (found / "summary.json").read_text(),
        parse_constant=lambda text: pytest.fail(f"{text} is not JSON"),
    )
    assert [row["num_types"] for row in summary["comparison"]] == [2, 1]
    assert summary["comparison"][1]["elpd_diff"] < -20
    assert [kind["annotators"] for kind in summary["types"]] == sorted(
        people["type"].value_counts(), reverse=True
    )
    assert summary["types"][0]["top"][0] not in summary["types"][0]["bottom"]


def test_what_is_printed(found):
    printed, notes = ((found.parent / name).read_text() for name in ("printed.txt", "notes.txt"))
    assert "reading --winner winner --loser loser --annotator annotator" in notes
    assert max(map(len, printed.splitlines())) <= 80
    for text in (
        "Types of annotators",
        "How many types: LOO",
        "2 type(s) predict best.",
        "A first look",
    ):
        assert text in printed


# ---------------------------------------------------------------- from options to objects


def test_options_reach_the_model():
    given = {
        "num_types": 4,
        "competence": "unit",
        "type_prior": "stick_breaking",
        "concentration": 0.5,
        "reward_scale": 2.0,
    }
    model = built(rt.MixtureBTL, type_commands.MODELS["comparisons"], ModelOptions(given=given), "")
    assert model == rt.MixtureBTL(**given)
    assert built(
        rt.MixtureBTL, type_commands.MODELS["comparisons"], ModelOptions(), ""
    ) == rt.MixtureBTL(3)


@pytest.mark.parametrize(("text", "numbers"), [(None, []), ("1,2", [1, 2, 3]), ("3, 5", [3, 5])])
def test_the_numbers_compared_include_the_one_fitted(text, numbers):
    assert type_commands.compared(text, 3) == numbers


def test_rankings_are_read_as_comparisons(tmp_path):
    file = tmp_path / "rankings.csv"
    file.write_text("who,best,next,last\nann,1,2,3\nbob,3,2,\n")
    places = ["best", "next", "last"]
    given = dataclasses.replace(columns(places=places, annotator="who"), kind="comparisons")
    votes, notes = read(source_of(file, given))
    assert "intervals are too narrow" in notes[0]
    assert (votes.annotators, votes.items, votes.num_votes) == (("ann", "bob"), ("1", "2", "3"), 4)
    given = dataclasses.replace(columns(places=places), kind="comparisons")
    assert read(source_of(file, given)).data.annotators == (0, 1)
    assert isinstance(
        read(source_of(file, columns(places=places, unranked="below"))).data, rt.Rankings
    )


def test_types_of_rankings_have_worths(tmp_path, capsys):
    """Of twelve people, who rank four teas twice, four like the opposite."""
    rows = ["who,best,next,third,last"]
    for person in range(12):
        order = "wxyz"[:: -1 if person < 4 else 1]
        rows += [
            ",".join([f"p{person}", *order]),
            ",".join([f"p{person}", *order[1::-1], *order[2:]]),
        ]
    (tmp_path / "rankings.csv").write_text("\n".join(rows) + "\n")
    places = [part for name in ("best", "next", "third", "last") for part in ("--place", name)]
    out = tmp_path / "out"
    code, printed, notes = run(
        capsys, "types", tmp_path / "rankings.csv", *places, "--annotator", "who", "--num-types", 2,
        "--worth-scale", 1.5, "--draws", 60, "--compare", "1,2", "--out", out,
    )  # fmt: skip
    assert code == 0, notes
    assert "one annotator with all rankings left out" in " ".join(printed.split())
    items, people = (pd.read_csv(out / name) for name in ("types.csv", "annotators.csv"))
    first = items.groupby("type")["item"].first()
    assert first[0] in ("w", "x")
    assert first[1] in ("y", "z")
    assert (items["worth_low"] < items["worth"]).all()
    assert people["rankings"].tolist() == [2] * 12
    smaller = people.loc[people["type"] == 1, "annotator"]
    assert sorted(smaller) == ["p0", "p1", "p2", "p3"]
    data = json.loads((out / "summary.json").read_text())["data"]
    assert data == {"items": 4, "annotators": 12, "rankings": 24}


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--winner", "winner", "--loser", "loser"), "with --annotator COLUMN; it has"),
        (
            (*NAMED, "--place", "winner", "--place", "loser"),
            "--winner and --place describe different shapes of table",
        ),
        (("--place", "winner"), "--unranked does not say"),
        (("--place", "winner", "--place", "nobody"), "--place nobody names no column of the table"),
        ((*NAMED, "--num-types", 0), "--num-types 0 is not possible"),
        ((*NAMED, "--concentration", -1), "--concentration -1.0 is not possible"),
        ((*NAMED, "--compare", "1,x"), "--compare 1,2,3,4"),
        ((*NAMED, "--compare", "3"), "leaves nothing to compare"),
        ((*NAMED, "--level", 2), "--level 2"),
        ((*NAMED, "--warmup", 5), "--warmup belongs to --backend gibbs, hmc, nuts"),
        (("--winner", "winner"), "--loser"),
    ],
)
def test_mistakes_cost_one_line(tasted, tmp_path, capsys, arguments, says):
    assert says in refused(
        capsys, tmp_path, "types", tasted, *arguments, "--out", tmp_path / "out", "--quiet"
    )


def test_labels_are_refused(tmp_path, capsys):
    file = tmp_path / "labels.csv"
    file.write_text("item,annotator,label\n1,ann,no\n1,bob,yes\n")
    assert "none of the standard column names" in refused(
        capsys, tmp_path, "types", file, "--out", tmp_path / "out"
    )


def test_figures_of_an_audit_do_not_stay_beside_types(found, tasted, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    write_folder(out, lambda folder: (folder / "auditor.png").write_text("of an audit"))
    result = stored(found / "result.nc")
    monkeypatch.setattr(rt, "fit", lambda *_, **__: result)
    code, _, err = run(capsys, "types", tasted, "--num-types", 2, *QUICK, "--out", out, "--quiet")
    assert (code, err) == (0, "")
    assert not (out / "auditor.png").exists()
    assert (out / "types.csv").exists()
