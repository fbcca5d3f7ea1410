"""Bad exports of Label Studio and Argilla, and bad questions to write for them."""

from __future__ import annotations

import pytest
import xarray as xr

import raters as rt
from raters.acquisition import formats
from raters.errors import DataError, RatersError, SettingError
from tests.hostile.table import (
    HALF,
    NO_FLAG,
    NO_OBJECT,
    NO_TEXT,
    TABLE,
    check_refused,
    rows,
    without,
)

QUESTIONS = xr.Dataset(
    {"first": ("id", ["a", "b"]), "second": ("id", ["b", "c"]), "by": ("id", ["x", "y"])},
    {"id": ["a3f1-1", "a3f1-2"]},
    {"pair": ["first", "second"]},
)
ITEMS = xr.Dataset({"item": ("id", [7]), "by": ("id", ["x"])}, {"id": ["a3f1-1"]})
CHOICE = {"type": "choices", "value": {"choices": ["first"]}}
ANNOTATION = {"completed_by": 1, "result": [CHOICE], "was_cancelled": False}
TASK = {"id": 1, "data": {"question_id": "a3f1-1", "by": "x"}, "annotations": [ANNOTATION]}
FLAT = {
    "id": "a3f1-1",
    "by": "x",
    "answer.responses": ["first"],
    "answer.responses.users": ["u"],
    "answer.responses.status": ["submitted"],
}
RESPONSE = {"value": "first", "user_id": "u", "status": "submitted"}
NESTED = {"id": "a3f1-1", "metadata": {"by": "x"}, "responses": {"answer": [RESPONSE]}}
NO_PEOPLE = (3, "x", [], [1], {"u": ["x"]}, {"u": None}, {1: {}})


def from_task(**changes):
    return formats.from_label_studio([TASK | changes])


def from_annotation(**changes):
    return formats.from_label_studio([TASK | {"annotations": [ANNOTATION | changes]}])


def from_region(**changes):
    return from_annotation(result=[CHOICE | changes])


def from_flat(**changes):
    return formats.from_argilla([FLAT | {name.replace("_", "."): v for name, v in changes.items()}])


def from_response(**changes):
    return formats.from_argilla([NESTED | {"responses": {"answer": [RESPONSE | changes]}}])


LABEL_STUDIO = [
    *rows(
        formats.from_label_studio,
        {},
        DataError,
        "expected a list of tasks|has no id|records of Argilla",
        None,
        export=(None, {}, [1], "x", [{"id": 1}], 3, [None], [[]], object()),
    ),
    *rows(formats.from_label_studio, {"export": [TASK]}, RatersError, "people", people=NO_PEOPLE),
    *rows(
        from_task,
        {},
        DataError,
        "dictionary|has no id",
        None,
        data=(
            3,
            "x",
            ["x"],
            {},
            {"a": 1},
            *({"question_id": bad} for bad in ([], ["a"], {"a": 1}, 5)),
        ),
    ),
    *rows(
        from_task,
        {},
        DataError,
        "list of dictionaries",
        None,
        annotations=(3, "x", ["x"], {"a": 1}),
    ),
    *rows(
        from_annotation,
        {},
        DataError,
        "names no user",
        None,
        completed_by=([1], ["x"], {"id": [1]}, {"email": {}}, [[]]),
    ),
    *rows(from_annotation, {}, DataError, "list of dict", None, result=(3, "x", ["x"], {"a": 1})),
    *rows(from_annotation, {}, DataError, "true or false", None, was_cancelled=("no", 3, [1])),
    *rows(from_region, {}, DataError, "'pairwise' or", None, type=(None, 3, "rating", [1], {})),
    *rows(from_region, {}, DataError, "dictionary", None, value=(3, "x", ["x"])),
    *rows(
        from_region,
        {},
        DataError,
        "one of them",
        None,
        value=(
            {"choices": part} for part in (3, "x", [], [1], [["a"]], ["a", "b"], {"a": 1}, None)
        ),
    ),
    *rows(
        from_region,
        {"type": "pairwise"},
        DataError,
        "'left' or 'right'",
        None,
        value=({}, {"selected": "up"}, {"selected": ["left"]}, {"selected": 1}),
    ),
]

ARGILLA = [
    *rows(
        formats.from_argilla,
        {},
        DataError,
        "expected a list of records",
        None,
        records=(None, {}, [1], "x", 3, [None], [[]], [{"a": 1}]),
    ),
    *rows(formats.from_argilla, {"records": [FLAT]}, RatersError, "people", people=NO_PEOPLE),
    *rows(
        lambda id: formats.from_argilla([FLAT | {"id": id}]),
        {},
        DataError,
        "no id of a question",
        None,
        id=(None, 3, [], {}, ["a3f1-1"], True),
    ),
    *rows(
        from_flat,
        {},
        DataError,
        "three lists of one length",
        None,
        answer_responses=(3, "first", {"a": 1}, ["first", "second"]),
        answer_responses_users=(3, "u", ["u", "v"], {"a": 1}),
        answer_responses_status=(3, ["submitted"] * 2),
    ),
    *rows(
        from_flat,
        {},
        DataError,
        "id of one user|expected one of 'submitted'",
        None,
        answer_responses_users=([["u"]], [{"id": 1}], [("u",)]),
        answer_responses_status=([3], ["done"], [["submitted"]], [{}]),
    ),
    *rows(
        from_flat,
        {},
        DataError,
        "the response to question",
        None,
        answer_responses=([3], [["a"]], [{}], [[1, 2]], [True], [float("nan")]),
    ),
    *rows(
        from_response,
        {},
        DataError,
        "the response to question|id of one user|expected one of",
        None,
        value=(3, [], {}, ["a"], [{"value": 1}, {"value": 2}]),
        user_id=([], {}, ["u"], {"id": 1}),
        status=(3, "pending", [], True),
    ),
    *rows(
        lambda responses: formats.from_argilla([NESTED | {"responses": responses}]),
        {},
        DataError,
        "dictionar",
        None,
        responses=(3, "x", ["x"], {"answer": 3}, {"answer": ["x"]}),
    ),
]

WRITING = [
    *[
        row
        for write in (
            formats.to_label_studio,
            formats.to_argilla,
            formats.label_studio_config,
            formats.argilla_settings,
        )
        for row in rows(
            write, {}, RatersError, "dataset|campaign.ask", questions=(*NO_OBJECT, xr.Dataset())
        )
    ],
    *rows(
        formats.to_label_studio,
        {"questions": QUESTIONS},
        RatersError,
        "mapping|one for every name|can read",
        texts=(3, "x", [1], {"a": "A"}, {"a": ""}, {"a": None}, {"a": 3}),
    ),
    *rows(
        formats.label_studio_config,
        {"questions": QUESTIONS},
        SettingError,
        "true or false|text",
        ties=NO_FLAG,
        title=without(NO_TEXT, None),
    ),
    *rows(
        formats.argilla_settings,
        {"questions": QUESTIONS},
        SettingError,
        "true or false|text",
        ties=NO_FLAG[:2],
        ranking=NO_FLAG[:2],
        title=(3, HALF),
    ),
    *rows(
        formats.label_studio_config,
        {"questions": ITEMS},
        RatersError,
        "name all|a list|no name|a name must be",
        answers=(None, 3, "ab", [], [None], [["a"]]),
    ),
]


@pytest.mark.parametrize(TABLE, [*LABEL_STUDIO, *ARGILLA, *WRITING])
def test_exchange(function, arguments, kind, parameter, remedy):
    check_refused(function, arguments, kind, parameter, remedy)


def test_what_is_good_is_read():
    for read in (from_task, from_flat, from_response):
        assert read().answers == {"a3f1-1": "first"}
    assert rt.acquisition.formats.from_argilla([]).answers == {}
