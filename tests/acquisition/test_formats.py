"""Label Studio and Argilla: what is written, and what is made of what people did there."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters.acquisition import formats
from raters.errors import DataWarning, RatersError
from tests.judgements import exports as ex

PAIRS = xr.Dataset(
    {
        "first": ("id", ["tea", "milk"]),
        "second": ("id", ['"a" & <b>', "tea"]),
        "by": ("id", ["ann", "bob"]),
    },
    {"id": np.array(["a3f1-1", "a3f1-2"], object)},
    {"pair": ["first", "second"]},
)
ITEMS = xr.Dataset(
    {"item": ("id", [7, 8]), "by": ("id", [1, 2])},
    {"id": ["a3f1-1", "a3f1-2"]},
    {"answers": ["no", "a & b"]},
)
MENUS = xr.Dataset(
    {
        "menu": ("id", ["tea, rye", "tea, oat"]),
        "by": ("id", ["ann", "bob"]),
        "answers": ("id", np.array([("tea", "rye"), ("tea", "oat")], "O,O").astype(object)),
    },
    {"id": ["a3f1-1", "a3f1-2"]},
)
DRINKS = {"tea": "a cup of tea", "rye": "a glass of rye", "oat": "oat milk"}
TEXTS = {"tea": "a cup of tea", "milk": "a glass of milk", '"a" & <b>': "neither"}


def annotation(answer, who=1, at="2026-01-01", **more):
    """As Label Studio exports it: of a pair, or of a choice; None for nothing."""
    kind = "pairwise" if answer in ("left", "right") else "choices"
    value = {"selected": answer} if kind == "pairwise" else {"choices": [answer]}
    result = [] if answer is None else [{"type": kind, "value": value}]
    whole = {"completed_by": who, "result": result, "was_cancelled": False, "updated_at": at}
    return whole | more


def both_sides(*sides):
    """An annotation with a region for each side."""
    regions = [region for side in sides for region in annotation(side)["result"]]
    return annotation(None) | {"result": regions}


def task(*annotations, question="a3f1-1", by="ann"):
    return {"id": 1, "data": {"question_id": question, "by": by}, "annotations": list(annotations)}


def record(*responses, question="a3f1-1", by="ann"):
    """As argilla 2.8 exports it; responses are (value, user, status)."""
    keys = ("value", "user_id", "status")
    answer = [dict(zip(keys, response, strict=True)) for response in responses]
    return {"id": question, "metadata": {"by": by}, "responses": {"answer": answer}}


# ---------------------------------------------------------------- writing


def test_tasks_hold_the_question_and_what_to_show():
    tasks = json.loads(json.dumps(formats.to_label_studio(PAIRS, TEXTS)))
    assert tasks[0]["data"] == {
        "question_id": "a3f1-1",
        "by": "ann",
        "first_name": "tea",
        "second_name": '"a" & <b>',
        "first": "a cup of tea",
        "second": "neither",
    }
    assert tasks[1]["meta"] == {"question_id": "a3f1-2"}
    assert [one["data"]["item"] for one in formats.to_label_studio(ITEMS)] == ["7", "8"]
    assert formats.to_label_studio(ITEMS, {"7": "x", 8: "y"})[0]["data"]["item_name"] == 7


@pytest.mark.parametrize(
    ("questions", "settings", "control", "options"),
    [
        (PAIRS, {}, "Pairwise", []),
        (PAIRS, {"ties": True}, "Choices", ["first", "second", "tie"]),
        (ITEMS, {}, "Choices", ["no", "a & b"]),
    ],
)
def test_the_interface_shows_what_the_tasks_hold(questions, settings, control, options):
    interface = ET.fromstring(formats.label_studio_config(questions, **settings))
    found = interface.find(control)
    assert found.get("name") == "answer"
    shown = {text.get("name"): text.get("value") for text in interface.iter("Text")}
    assert set(found.get("toName").split(",")) <= set(shown)
    assert [choice.get("value") for choice in interface.iter("Choice")] == options
    data = formats.to_label_studio(questions)[0]["data"]
    assert all(value.removeprefix("$") in data for value in shown.values())


def test_records_and_settings_of_argilla():
    first = json.loads(json.dumps(formats.to_argilla(PAIRS, TEXTS)))[0]
    assert first["id"] == "a3f1-1"
    assert first["fields"] == {"first": "a cup of tea", "second": "neither"}
    assert first["metadata"] == {"by": "ann", "first_name": "tea", "second_name": '"a" & <b>'}
    for questions, chosen, options in [
        (PAIRS, {}, ["first", "second"]),
        (PAIRS, {"ties": True}, ["first", "second", "tie"]),
        (ITEMS, {}, ["no", "a & b"]),
    ]:
        settings = json.loads(json.dumps(formats.argilla_settings(questions, **chosen)))
        record = formats.to_argilla(questions)[0]
        assert {field["name"] for field in settings["fields"]} == set(record["fields"])
        assert {one["name"] for one in settings["metadata"]} == set(record["metadata"])
        choices = settings["questions"][0]["settings"]["options"]
        assert [choice["value"] for choice in choices] == options


def test_each_question_has_its_own_answers():
    data = json.loads(json.dumps(formats.to_label_studio(MENUS, DRINKS)))[1]["data"]
    assert data["answers"] == [{"value": "tea"}, {"value": "oat"}]
    assert data["menu"] == "tea: a cup of tea\n\noat: oat milk"
    choices = ET.fromstring(formats.label_studio_config(MENUS)).find("Choices")
    assert (choices.get("value"), choices.get("toName")) == ("$answers", "menu")
    settings = formats.argilla_settings(MENUS)["questions"][0]["settings"]
    assert [option["value"] for option in settings["options"]] == ["tea", "rye", "oat"]


# ---------------------------------------------------------------- reading

OPEN, SKIPPED = ("open", ["a3f1-1"]), ("skipped", ["a3f1-1"])
FIRST, TIE = (("answers", {"a3f1-1": word}) for word in ("first", "tie"))
DISPUTED = "disputed", {"a3f1-1": ["first", "second"]}


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ([annotation("left")], FIRST),
        ([annotation("tie")], TIE),
        ([], OPEN),
        ([annotation(None)], OPEN),  # submitted with nothing chosen
        ([annotation("left", was_cancelled=True)], SKIPPED),  # chosen, then skipped
        ([annotation("left", at="2"), annotation("right", at="1")], FIRST),  # the last counts
        ([annotation("left", at="1"), annotation(None, was_cancelled=True, at="2")], SKIPPED),
        ([annotation("left", 1), annotation("left", 2)], FIRST),
        ([annotation("left", 1), annotation("right", 2)], DISPUTED),
        # Of people who are not named.
        ([annotation("left", None), annotation("right", None)], DISPUTED),
        ([annotation("left", ""), annotation("right", "")], DISPUTED),
        ([both_sides("left", "left")], FIRST),
    ],
)
def test_annotations_of_one_task(done, expected):
    found = formats.from_label_studio([task(*done)])
    assert getattr(found, expected[0]) == expected[1]
    assert sum(len(part) for part in found) == 1


def test_annotations_by_others_are_reported():
    people = {7: "ann", "bob@site.org": "bob"}
    by_bob = annotation("right", {"id": 8, "email": "bob@site.org"})
    found = formats.from_label_studio([task(annotation("left", 7), by_bob)], people)
    assert found == ({"a3f1-1": "first"}, [], [], [("a3f1-1", "bob", "second")], {})
    tasks = [task(annotation("left", 99)), task(by_bob, question="a3f1-2", by="bob")]
    with pytest.warns(DataWarning, match="7: no such user"):
        found = formats.from_label_studio(tasks, people)
    assert found == ({"a3f1-2": "second"}, [], ["a3f1-1"], [("a3f1-1", 99, "first")], {})


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ([("first", "u", "submitted")], FIRST),
        ([("first", "u", None)], FIRST),
        ([], OPEN),
        ([("first", "u", "draft")], OPEN),
        ([("first", "u", "discarded")], SKIPPED),
        ([("first", "u", "submitted"), ("second", "v", "submitted")], DISPUTED),
        ([("first", None, "submitted"), ("second", None, "submitted")], DISPUTED),
    ],
)
def test_responses_to_one_record(responses, expected):
    found = formats.from_argilla([record(*responses)])
    assert getattr(found, expected[0]) == expected[1]


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize("export", [ex.LABEL_STUDIO, ex.ARGILLA], ids=["label-studio", "argilla"])
@pytest.mark.filterwarnings("ignore::raters.errors.DataWarning")
@pytest.mark.filterwarnings("ignore::raters.errors.ConvergenceWarning")
def test_labels_go_back_into_the_export_and_nothing_else_changes(export):
    """Predictions are those of one more judge; all other judgements are as before."""
    read = rt.read(export, control="mood")
    labels = rt.DawidSkene()
    result = rt.fit(labels, read.judgements, rt.PGEM(), seed=0, progress=False)
    items = rt.audit(labels, result, seed=0).items
    classes = [f"p_{name}" for name in read.judgements.classes]
    np.testing.assert_allclose(sum(items[name] for name in classes), 1.0, atol=1e-6)
    written = json.loads(json.dumps(formats.with_predictions(export, items, control="mood")))
    again = rt.read(written, control="mood").judgements
    before, after = (data.to_frame().astype(str) for data in (read.judgements, again))
    if export is ex.ARGILLA:  # of which a question has one suggestion
        before = before[before["annotator"] != "bert"]
    own = after[after["annotator"] == "raters"]
    pd.testing.assert_frame_equal(
        after.drop(own.index).reset_index(drop=True), before.reset_index(drop=True)
    )
    assert dict(zip(own["item"], own["label"], strict=True)) == {
        str(item): str(label)
        for item, label in zip(items["item"].values, items["label"].values, strict=True)
    }


@pytest.mark.parametrize("export", [ex.LABEL_STUDIO_TOPICS, ex.ARGILLA])
def test_several_choices_come_back_as_one_prediction(export):
    read = rt.read(export, control="topics")
    items = read.judgements.items
    labels = {"item": items, "label": ["yes"] * len(items), "probability": [0.5] * len(items)}
    written = formats.with_predictions(export, labels, control="topics")
    own = rt.read(written, control="topics").judgements.to_frame().query("annotator == 'raters'")
    assert dict(zip(own["item"], own["label"], strict=True)) == dict.fromkeys(items, "yes")


@pytest.mark.parametrize(
    ("export", "control"),
    [
        (ex.LABEL_STUDIO, "mood"),
        (ex.LABEL_STUDIO_TOPICS, "topics"),
        (ex.ARGILLA, "mood"),
        (ex.ARGILLA, "topics"),
    ],
)
def test_a_queue_has_the_tasks_without_their_answers(export, control):
    items = rt.read(export, control=control).judgements.items
    asked = {"item": [items[-1], items[0]], "by": ["ann", "bob"]}
    queue = formats.relabel_queue(export, asked, control=control)
    tasks = {entry["id"]: entry for entry in export}
    first, last = (str(items[place]).partition("=")[0] for place in (0, -1))
    assert [str(entry["id"]) for entry in queue] == [last, first]
    for entry, who in zip(queue, ["ann", "bob"], strict=True):
        before = tasks[entry["id"]]
        assert [entry.get(part) for part in ("data", "fields")] == [
            before.get(part) for part in ("data", "fields")
        ]
        assert not any(entry.get(part) for part in ("annotations", "responses"))
        assert (entry.get("meta") or entry.get("metadata"))["by"] == who
    with pytest.raises(RatersError, match="no item of this export"):
        formats.relabel_queue(export, {"item": ["nobody"], "by": ["ann"]}, control=control)
    with pytest.raises(RatersError, match="questions"):
        formats.relabel_queue(export, {"item": items[:1]}, control=control)


def test_labels_have_no_place_in_other_files():
    labels = {"item": [1], "label": ["good"], "probability": [0.9]}
    for export in (ex.JSON_MIN, ex.DOCCANO["admin"], [], 3, [1], [ex.ARGILLA_FLAT]):
        with pytest.raises(RatersError):
            formats.with_predictions(export, labels, control="mood")
