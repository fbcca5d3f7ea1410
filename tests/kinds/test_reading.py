"""`rt.read`: each form is recognised by its content, read as it is meant, and said."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from itertools import cycle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import raters as rt
from raters.errors import DataError, DataWarning, RatersError
from tests.judgements import exports as ex

pytestmark = pytest.mark.filterwarnings("ignore::raters.errors.DataWarning")


def rows(data) -> set[tuple]:
    """Judgements by name, with the winner and the loser of votes."""
    table = data.to_frame().drop(columns="count", errors="ignore")
    if "outcome" in table:
        table = table[["first", "second", "annotator", "outcome"]]
    return {tuple(map(str, row)) for row in table.itertuples(index=False)}


# Content, how it is read, and all judgements of it, each followed by a word of the sentence.
READ = {
    "Label Studio": (
        ex.LABEL_STUDIO,
        {"control": "mood"},
        {
            *(("1", "1", "good"), ("1", "bob@x.org", "bad"), ("1", "bert", "good")),
            *(("2", "1", "bad"), ("2", "bob@x.org", "bad"), ("2", "3", "good")),
            ("3", "3", "good"),
        },
        "1 annotation(s) cancelled",
    ),
    "stars": (
        ex.LABEL_STUDIO,
        {"control": "stars"},
        {("1", "1", "4"), ("2", "1", "2")},
        "(rating)",
    ),
    "JSON-MIN": (
        ex.JSON_MIN,
        {"control": "mood"},
        {("1", "1", "good"), ("1", "2", "bad"), ("2", "1", "bad")},
        "JSON-MIN",
    ),
    "several choices": (
        ex.JSON_MIN,
        {"control": "topics=b"},
        {("1", "1", "yes"), ("1", "2", "yes"), ("2", "1", "no")},
        "'b' or not",
    ),
    "each of several choices": (
        ex.JSON_MIN,
        {"control": "topics"},
        {
            *((f"1={topic}", who, "yes") for topic in "ab" for who in "12"),
            *(("2=a", "1", "yes"), ("2=b", "1", "no")),
        },
        "each of 2 or not",
    ),
    "none of several choices": (
        ex.LABEL_STUDIO_TOPICS,
        {"control": "topics"},
        {
            *(
                (f"1={topic}", who, said)
                for topic in "ab"
                for who, said in (("1", "yes"), ("2", "no"))
            ),
            *(("2=a", "1", "yes"), ("2=b", "1", "no")),
        },
        "gold: 2 known truths",
    ),
    "Argilla": (
        ex.ARGILLA,
        {"control": "mood"},
        {
            *((f"r{number}", "5a4b", "good") for number in (1, 2, 3)),
            *((f"r{number}", "bert", "good") for number in (1, 2, 3)),
            *(("r1", "6c7d", "good"), ("r2", "6c7d", "bad"), ("r3", "6c7d", "bad")),
        },
        "Argilla",
    ),
    "rows of Argilla": (
        ex.ARGILLA_FLAT,
        {},
        {
            *(("r1", "5a4b", "good"), ("r1", "6c7d", "bad"), ("r2", "5a4b", "bad")),
            *(("r1", "bert", "good"), ("r2", "bert", "good"), ("r3", "suggestion", "bad")),
        },
        "1 response(s) that are discarded",
    ),
    "Prodigy": (
        ex.PRODIGY,
        {},
        {("1001", "news-ann", "GOOD"), ("1001", "news-bob", "BAD"), ("1002", "news-ann", "BAD")},
        "1 example(s) with the answer ignore",
    ),
    "binary": (
        ex.PRODIGY_BINARY,
        {},
        {
            ("1001", "news-ann", "accept"),
            ("1001", "news-bob", "reject"),
            ("1002", "news-ann", "reject"),
        },
        "'SPORT'",
    ),
    "crowd form": (
        ex.MTURK_FORM,
        {"control": "mood"},
        {("H1", "W1", "good"), ("H1", "W2", "bad"), ("H2", "W1", "bad")},
        "Mechanical Turk",
    ),
    "inspect_ai": (
        ex.INSPECT,
        {},
        {
            *((str(number), "model_graded_fact", one) for number, one in enumerate("CIC", 1)),
            *((str(number), "match", one) for number, one in enumerate("CCI", 1)),
        },
        "inspect_ai",
    ),
    "lists": (
        ex.LISTS,
        {},
        {("1", "a", "0"), ("1", "b", "1"), ("1", "c", "1"), ("2", "a", "1"), ("2", "c", "1")},
        "'labels'",
    ),
    "wide": (
        ex.WIDE,
        {},
        {
            *(("x", "ann", "no"), ("y", "ann", "no"), ("z", "ann", "yes")),
            *(("x", "bob", "no"), ("y", "bob", "yes")),
        },
        "a column for each annotator",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_exports_are_read_as_they_are(name, tmp_path):
    content, options, expected, word = READ[name]
    found = rt.read(content, **options)
    assert rows(found.judgements) == expected
    assert word in str(found)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(content))
    assert rows(rt.read(path, **options).judgements) == expected
    assert str(rt.read(str(path), **options)) == str(found)


def test_votes_of_arenas_keep_their_order_and_ties():
    votes = rt.read(ex.ARENA).judgements
    assert votes.ordered
    assert votes.annotators == ("arena_user_0", "arena_user_1")
    assert votes.num_votes == 4
    tied = rt.read(ex.ARENA, ties="keep").judgements
    assert (np.asarray(tied.wins) == 0.5).sum() == 2
    assert rt.read(ex.ARENA, ties="drop").judgements.num_votes == 2
    pairs = rt.read(ex.LABEL_STUDIO_PAIRS).judgements
    assert pairs.items == ("claude", "gpt", "llama")
    assert rows(pairs) >= {("llama", "claude", "1", "second"), ("llama", "claude", "2", "first")}
    kaggle = rt.read(pd.DataFrame(ex.KAGGLE))
    assert kaggle.judgements.num_votes == 2
    games = rt.read(ex.FASTCHAT_PAIRS)
    assert "1 failed game(s)" in str(games)
    assert rows(games.judgements) == {
        ("alpaca-13b", "gpt-4", "gpt-4 pair-v2", "second"),
        ("gpt-4", "alpaca-13b", "gpt-4 pair-v2", "first"),
        ("alpaca-13b", "gpt-4", "gpt-4 pair-v2", "first"),
    }


def test_ground_truth_is_gold_and_no_label():
    found = rt.read(ex.LABEL_STUDIO, control="mood")
    assert found.gold.to_dict("records") == [{"item": 2, "truth": "bad"}]
    assert "9" not in map(str, found.judgements.annotators)
    table = pd.DataFrame(ex.WIDE | {"gold": ["no", None, "yes"], "cid": [None, 1.0, 2.0]})
    found = rt.read(table)
    assert found.gold["truth"].tolist() == ["no", "yes"]
    assert found.judgements.annotators == ("ann", "bob")


def test_a_file_of_each_annotator_is_named_by_it(tmp_path):
    for name, lines in ex.DOCCANO.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for path in tmp_path.glob("*.jsonl"):
            file.write(path, path.name)
    expected = {
        *(("1", "admin", "good"), ("3", "admin", "bad")),
        *(("1", "ann", "bad"), ("2", "ann", "bad"), ("3", "ann", "bad")),
    }
    assert rows(rt.read(tmp_path).judgements) == expected
    assert rows(rt.read(sorted(tmp_path.glob("*.jsonl"))).judgements) == expected
    (tmp_path / "all.zip").write_bytes(packed.getvalue())
    assert rows(rt.read(tmp_path / "all.zip").judgements) == expected
    logs = tmp_path / "logs"
    logs.mkdir()
    for model in ("small", "large"):
        log = ex.inspect_log(model, "CC", (0, 1))
        (logs / f"{model}.json").write_text(json.dumps(log))
    found = rt.read(logs).judgements
    assert found.items[0] == "security_guide/large/1"
    responses = rt.read(logs, kind="responses", item="sample", person="model", correct="right")
    assert responses.judgements.num_items == 2


def test_results_of_mechanical_turk(tmp_path):
    path = tmp_path / "Batch_1_batch_results.csv"
    path.write_text(ex.MTURK)
    found = rt.read(path, control="mood")
    assert rows(found.judgements) == {
        *(("H1", "W1", "good"), ("H1", "W2", "bad")),
        *(("H2", "W1", "good"), ("H2", "W2", "good")),
    }
    assert "1 assignment(s) rejected" in str(found)
    stars = rt.read(path, control="stars", item="Input.text").judgements
    assert stars.levels == (2, 3, 4)
    assert stars.items == ("text 1", "text 2")


def test_tables_of_every_library_and_ending_are_read_alike(tmp_path):
    table = pd.DataFrame({"id": [1, 2, 3], "ann": [1, 2, 5], "bob": [None, 2, 4]}, dtype="Int64")
    expected = {("1", "ann", "1"), ("2", "ann", "2"), ("3", "ann", "5"), *(("2", "bob", "2"),)}
    expected |= {("3", "bob", "4")}
    given = [table, pl.from_pandas(table), pl.from_pandas(table).lazy(), table.to_dict("list")]
    table.to_csv(tmp_path / "a.csv", index=False)
    table.astype({"ann": float, "bob": float}).to_csv(tmp_path / "b.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "c.parquet")
    table.to_json(tmp_path / "d.json")
    table.to_json(tmp_path / "e.jsonl.gz", orient="records", lines=True)
    given += sorted(tmp_path.iterdir())
    for one in given:
        assert rows(rt.read(one).judgements) == expected, one
    labels = rt.read(table, kind="labels").judgements
    assert labels.classes == (1, 2, 4, 5)


def test_rows_with_lists_are_of_doccano_where_nobody_is_named():
    expected = {("1", "a", "good"), ("1", "b", "bad"), ("2", "a", "bad")}
    lines = [
        {"id": 1, "text": "text 1", "label": ["good", "bad"], "annotators": ["a", "b"]},
        {"id": 2, "text": "text 2", "label": ["bad"], "annotators": ["a"]},
    ]
    assert rows(rt.read(lines).judgements) == expected


def test_sheets_of_excel(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    pd.DataFrame(ex.WIDE).to_excel(path, index=False)
    assert rows(rt.read(path).judgements) == READ["wide"][2]


def test_plain_tables_are_read_by_roles_or_usual_names():
    table = {"judge": ["x", "y"], "winner": ["a", "b"], "loser": ["b", "a"]}
    assert rt.read(table).roles == {"winner": "winner", "loser": "loser", "annotator": "judge"}
    given = {"who": ["x", "y"], "best": ["a", "b"], "worst": ["b", "a"]}
    roles = {"winner": "best", "loser": "worst", "annotator": "who"}
    assert rt.read(given, **roles).judgements.annotators == ("x", "y")


# What is refused, how it is read, and a word of the message.
REFUSED = [
    ([], {}, "no table"),
    ([1, 2], {}, "no table"),
    ({}, {}, "no table"),
    (3, {}, "nothing that can be read"),
    ("none.csv", {}, "no file"),
    (ex.LABEL_STUDIO, {}, "control='mood'"),
    (ex.LABEL_STUDIO, {"control": "box"}, "is no question"),
    (ex.JSON_MIN, {"control": "topics=c"}, "nobody chose"),
    ([*ex.LABEL_STUDIO, 3], {"control": "mood"}, "3"),
    ([*ex.LABEL_STUDIO, ex.LABEL_STUDIO[0] | {"project": 7}], {}, "projects"),
    ([ex.LABEL_STUDIO[0], ex.LABEL_STUDIO[0] | {"data": {}}], {}, "two tasks"),
    ([ex.LABEL_STUDIO_PAIRS[0] | {"data": {"x": 1}}], {}, "`first` `second`"),
    (ex.ARENA, {"control": "mood"}, "plain table"),
    (ex.WIDE, {"colour": "x"}, "no role"),
    ({"a": [1, 2], "b": [2, 1]}, {"winner": "a"}, "loser"),
    ({"a": [1, 2], "b": ["x", "y"]}, {}, "the columns a, b (first row: 1, x)"),
    ({"winner": [["a"], ["b"]], "loser": ["b", "a"]}, {}, "lists"),
    (ex.KAGGLE | {"winner_tie": ["1", "1"]}, {}, "data row 1"),
    (ex.DOCCANO["admin"][1:2], {}, "no answer"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_not_known_is_refused_with_what_was_found(place):
    content, options, word = REFUSED[place]
    with pytest.raises(RatersError) as caught:
        rt.read(content, **options)
    assert word.replace("`", "") in str(caught.value)


@pytest.mark.slow
def test_no_damage_of_an_export_is_a_traceback():
    """Every place of every export holds something else in turn."""
    wrong, values = [], cycle((None, 3, "x", [], {}, [1], {"a": 1}, True, float("nan"), [None], ""))
    for name, content in ex.EXPORTS.items():
        control = "mood" if name in ("Label Studio", "JSON-MIN", "Argilla") else None
        for place in ex.places(content):
            value = next(values)
            try:
                rt.read(ex.changed(content, place, value), control=control)
            except DataError:
                pass
            except Exception as error:
                wrong.append((name, place, value, repr(error)))
    assert not wrong, "\n".join(map(str, wrong))


def test_rows_that_stand_twice_are_warned_of_and_settled():
    labels = pd.DataFrame({"item": [*range(12)] * 2, "annotator": ["x"] * 12 + ["y"] * 12})
    labels["label"] = ["a", "b"] * 12
    twice = pd.concat([labels, labels.iloc[:5]])
    with pytest.warns(DataWarning, match="5 of 29 rows repeat an earlier one"):
        assert rt.read(twice).judgements.num_labels == 29
    assert rt.read(twice, repeats="keep").judgements.num_labels == 29
    assert rt.read(twice, repeats="drop").judgements.num_labels == 24
    with pytest.raises(DataError, match="data row 25"):
        rt.read(twice, repeats="error")
    ratings = twice.assign(rating=[*range(1, 6)] * 5 + [1, 2, 3, 4]).drop(columns="label")
    assert rt.read(ratings, repeats="drop").judgements.num_ratings == 24
    votes = pd.DataFrame({"id": range(12), "winner": ["a", "b"] * 6, "loser": ["b", "c"] * 6})
    with pytest.warns(DataWarning, match="12 of 24 rows"):
        rt.read(pd.concat([votes, votes]))
    assert rt.read(pd.concat([votes, votes]), repeats="drop").judgements.num_votes == 12
    with warnings.catch_warnings():  # the same vote on other questions is no copy
        warnings.simplefilter("error")
        rt.read(votes.drop(columns="id"))
        rt.read(votes)


def test_a_column_that_is_not_there_is_refused() -> None:
    table = pd.DataFrame({"item": ["a", "b"], "who": ["x", "x"], "says": ["y", "n"]})
    for roles in ({"label": "nothing"}, {"item": "nothing"}, {"columns": ["nothing"]}):
        with pytest.raises(DataError, match="nothing"):
            rt.read(table, **{"item": "item", "annotator": "who", "label": "says"} | roles)
