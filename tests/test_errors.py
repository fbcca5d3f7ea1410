"""Sentences of errors: one test for each check of a value, and for each front end."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import BackendError, DataError, RatersError, Reason, SettingError
from raters.errors import validation as check
from raters.model import Model


@pytest.mark.parametrize(
    ("call", "sentence", "parameter", "value"),
    [
        (
            lambda: check.positive("scale", 0),
            "scale=0 is not possible; it must be a number above 0",
            "scale",
            0,
        ),
        (
            lambda: check.positive("scale", -1, optional=True),
            "scale=-1 is not possible; it must be a number above 0; leave it out to learn it",
            "scale",
            -1,
        ),
        (
            lambda: check.whole("draws", 2.5, least=2),
            "draws=2.5 is not possible; it must be a whole number, at least 2",
            "draws",
            2.5,
        ),
        (
            lambda: check.share("level", 1),
            "level=1 is not possible; it must lie between 0 and 1, both excluded",
            "level",
            1,
        ),
        (
            lambda: check.boolean("again", "yes"),
            "again='yes' is not possible; it must be true or false: write again=True or"
            " again=False",
            "again",
            "yes",
        ),
        (
            lambda: check.one_of("guide", "lowrank", ["low_rank", "full_rank"]),
            "guide='lowrank' is unknown; choose one of 'low_rank', 'full_rank'; did you mean"
            " 'low_rank'?",
            "guide",
            "lowrank",
        ),
        (
            lambda: check.at_most("k", 7, 5, "items"),
            "k=7 is not possible with 5 items; it must be at most that",
            "k",
            7,
        ),
        (
            lambda: check.finite("threshold", "low", 0.25),
            "threshold='low' is not possible; it must be a finite number such as 0.25",
            "threshold",
            "low",
        ),
        (
            lambda: check.seed_number(-1),
            "seed=-1 is not possible; it must be a whole number from 0 to 2**32 - 1, such as 0",
            "seed",
            -1,
        ),
        (
            lambda: check.instance("model", "BTL", Model, "a model", "rt.BTL()"),
            "model='BTL' is not possible; it must be a model: write rt.BTL()",
            "model",
            "BTL",
        ),
        (
            lambda: check.instance("model", rt.BTL, Model, "a model", "rt.models.OneCoin()"),
            "model=BTL is not possible; it must be a model, not its class: write rt.BTL()",
            "model",
            rt.BTL,
        ),
    ],
)
def test_what_is_wrong_what_is_expected_and_what_to_write(call, sentence, parameter, value):
    with pytest.raises(SettingError) as caught:
        call()
    assert str(caught.value) == sentence
    assert (caught.value.parameter, caught.value.value) == (parameter, value)


def test_a_front_end_has_its_own_names_and_no_lines_of_python():
    error = SettingError(
        parameter="k",
        value=3,
        problem="has no meaning with this `target`",
        expected="leave it out, or choose `target` 'top_k'",
        instead="k=1",
    )
    assert str(error) == (
        "k=3 has no meaning with this target; leave it out, or choose target 'top_k': write k=1"
    )
    names = {"k": "--top", "target": "--target"}
    assert error.worded(names.__getitem__) == (
        "--top 3 has no meaning with this --target; leave it out, or choose --target 'top_k'"
    )


@pytest.mark.parametrize(
    ("value", "python", "typed"),
    [
        (None, "None", ""),
        (True, "True", ""),
        (["a", "b"], "['a', 'b']", "a,b"),
        ("", "''", "''"),
        (["", "b"], "['', 'b']", "'',b"),
        (0.5, "0.5", "0.5"),
        (rt.BTL, "BTL", "BTL"),
        ("x" * 500, "str(...)", "str(...)"),
        ("two\nlines", r"'two\nlines'", "str(...)"),
    ],
)
def test_texts_of_values(value, python, typed):
    error = DataError(parameter="names", value=value, expected="look")
    assert str(error) == f"names={python} is not possible; look"
    assert error.worded(str) == f"names {typed}".rstrip() + " is not possible; look"
    assert error.value is value


def test_an_error_without_a_value_names_the_parameter():
    error = DataError(parameter="names", problem="is empty", expected="give a name")
    assert (str(error), error.value) == ("names is empty; give a name", None)


def test_an_error_without_a_parameter_is_the_same_everywhere():
    assert RatersError("two things do not fit").worded("--{}".format) == "two things do not fit"


def test_a_reason_of_a_model_says_which_parameter_it_is_about():
    reason = Reason("n", 9, "is large", "less")
    error = BackendError(reason)
    assert str(error) == reason == "n=9 is large; less"
    assert error.worded("--{}".format) == "--n 9 is large; less"
    assert SettingError("again", **error.parts).worded("--{}".format) == "--n 9 is large; less"


@pytest.mark.parametrize("number", [np.int64(3), np.uint8(3)])
def test_whole_numbers_of_numpy_are_whole_numbers(number):
    check.whole("draws", number)
    names = {name: getattr(room, name) for room in (rt, rt.models) for name in dir(room)}
    for made in (
        rt.NUTS(draws=number, max_tree_depth=number),
        rt.HMC(warmup=number),
        rt.SVI(batch_size=number),
        rt.models.FactorBTL(num_dimensions=number),
        rt.models.IdealPoint(num_dimensions=number),
        rt.MixtureBTL(num_types=number),
        rt.models.LatentClassLogit(num_types=number),
        rt.Raykar(hidden=number),
    ):
        assert "=3" in repr(made)
        assert eval(repr(made), names) == made
    for backend in (rt.PGGibbs(draws=number), rt.PGEM(draws=number)):
        assert backend.draws == 3
