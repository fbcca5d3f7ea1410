"""Bad exports of Label Studio and Argilla, and bad questions to write for them."""

from __future__ import annotations

from functools import partial

import pytest
import xarray as xr

from raters.acquisition import formats
from raters.errors import DataError, RatersError
from tests.hostile.table import NO_FLAG, NO_OBJECT
from tests.hostile.test_acquisition import not_refused

QUESTIONS = xr.Dataset(
    {"first": ("id", ["a", "b"]), "second": ("id", ["b", "c"]), "by": ("id", ["x", "y"])},
    {"id": ["a3f1-1", "a3f1-2"]},
    {"pair": ["first", "second"]},
)
CHOICE = {"type": "choices", "value": {"choices": ["first"]}}
ANNOTATION = {"completed_by": 1, "result": [CHOICE], "was_cancelled": False}
TASK = {"id": 1, "data": {"question_id": "a3f1-1", "by": "x"}, "annotations": [ANNOTATION]}
RESPONSE = {"value": "first", "user_id": "u", "status": "submitted"}
NESTED = {"id": "a3f1-1", "metadata": {"by": "x"}, "responses": {"answer": [RESPONSE]}}
NO_PEOPLE = (3, "x", [], [1], {"u": ["x"]}, {"u": None}, {1: {}})


def of_annotation(**changes):
    return formats.from_label_studio([TASK | {"annotations": [ANNOTATION | changes]}])


def of_region(**changes):
    return of_annotation(result=[CHOICE | changes])


def of_response(**changes):
    return formats.from_argilla([NESTED | {"responses": {"answer": [RESPONSE | changes]}}])


# Readers, and for each the bad values of one part.
BAD = [
    (formats.from_label_studio, (None, {}, [1], "x", [{"id": 1}], 3, [[]], [NESTED])),
    (formats.from_argilla, (None, {}, [1], "x", 3, [[]], [{"a": 1}], [TASK])),
    *(
        (lambda value, name=name: formats.from_label_studio([TASK | {name: value}]), values)
        for name, values in {
            "data": (3, "x", ["x"], {}, {"question_id": ["a"]}, {"question_id": 5}),
            "annotations": (3, "x", ["x"], {"a": 1}),
        }.items()
    ),
    *(
        (lambda value, name=name: of_annotation(**{name: value}), values)
        for name, values in {
            "completed_by": ([1], ["x"], {"id": [1]}, {"email": {}}),
            "result": (3, "x", ["x"], {"a": 1}),
            "was_cancelled": ("no", 3, [1]),
        }.items()
    ),
    (lambda value: of_region(type=value), (None, 3, "rating", [1], {})),
    (lambda value: of_region(value=value), (3, "x", ["x"])),
    (
        lambda value: of_region(value={"choices": value}),
        (3, "x", [], [1], [["a"]], ["a", "b"], {"a": 1}, None),
    ),
    (
        lambda value: of_region(type="pairwise", value=value),
        ({}, {"selected": "up"}, {"selected": ["left"]}, {"selected": 1}),
    ),
    (
        lambda value: formats.from_argilla([NESTED | {"id": value}]),
        (None, 3, [], {}, ["a3f1-1"], True),
    ),
    *(
        (lambda value, name=name: of_response(**{name: value}), values)
        for name, values in {
            "value": (3, [], {}, ["a"]),
            "user_id": ([], {}, ["u"]),
            "status": (3, "pending", [], True),
        }.items()
    ),
    (
        lambda value: formats.from_argilla([NESTED | {"responses": value}]),
        (3, "x", ["x"], {"answer": 3}, {"answer": ["x"]}),
    ),
]


def test_exports():
    wrong = []
    for place, (read, values) in enumerate(BAD):
        for value in values:
            try:
                content = read(value)
            except DataError as error:
                if len(str(error)) > 600 or "\n" in str(error):
                    wrong.append(f"{place} {value!r}: {error}")
            except Exception as error:
                wrong.append(f"{place} {value!r}: {type(error).__name__}: {error}")
            else:
                wrong.append(f"{place} {value!r}: {content}")
    assert not wrong, "\n".join(wrong)


def test_writing():
    writers = (
        formats.to_label_studio,
        formats.to_argilla,
        formats.label_studio_config,
        formats.argilla_settings,
    )
    texts = (3, "x", [1], {"a": "A"}, {"a": ""}, {"a": None}, {"a": 3})
    calls = [(write, {}, {"questions": (*NO_OBJECT, xr.Dataset())}) for write in writers]
    calls += [(write, {"questions": QUESTIONS}, {"texts": texts}) for write in writers[:2]]
    calls += [(write, {"questions": QUESTIONS}, {"ties": NO_FLAG}) for write in writers[2:]]
    people = {"people": NO_PEOPLE}
    calls += [(partial(formats.from_label_studio, [TASK]), {}, people)]
    calls += [(partial(formats.from_argilla, [NESTED]), {}, people)]
    assert not (wrong := not_refused(calls)), "\n".join(wrong)


def test_what_is_good_is_read():
    for read in (of_annotation, of_response):
        assert read().answers == {"a3f1-1": "first"}
    assert formats.from_argilla([]).answers == {}
    with pytest.raises(RatersError):
        formats.from_argilla([TASK])
