"""Options read off signatures, fields and docstrings, and the words of errors about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import pandas as pd
import pytest

import raters as rt
from raters import inference, kinds
from raters.cli import app, generated
from raters.cli.options import GeneratedOptions
from raters.errors import DataError, RatersError, SettingError
from raters.inference import Backend


@pytest.fixture(scope="module")
def options() -> GeneratedOptions:
    """Options of the kinds that raters comes with."""
    return GeneratedOptions.of((rt.families.COMPARISONS, rt.families.LABELS))


def test_no_parameter_of_a_reader_is_forgotten(options):
    keywords = {
        name
        for kind in (rt.families.COMPARISONS, rt.families.LABELS)
        for reader, _ in generated.readers_of(kind)
        for name in generated.keywords(reader)
    }
    assert {one.name for one in options.columns} == keywords
    assert {one.flag for one in options.columns} >= {"--winner", "--place", "--feature", "--ties"}


def test_no_field_of_a_model_or_back_end_is_forgotten(options):
    fields = {
        (generated.dashed(model.__name__), name)
        for kind in (rt.families.COMPARISONS, rt.families.LABELS)
        for model in kind.models
        for name in generated.field_types(model)
    }
    assert {(owner, one.name) for one in options.model for owner in one.owners} == fields
    backends = [getattr(inference, name) for name in inference.__all__]
    concrete = {one for one in backends if isinstance(one, type) and issubclass(one, Backend)}
    assert set(generated.backend_names().values()) == concrete - {Backend}
    assert set(options.models) >= {"extended-btl", "dawid-skene", "contextual-btl"}


def test_a_name_that_is_taken_gets_its_owner_in_front(options):
    flags = {one.flag: one.name for one in options.backend}
    assert flags["--svi-batch-size"] == "batch_size"
    assert len({one.key for one in (*options.columns, *options.model, *options.backend)}) == len(
        [*options.columns, *options.model, *options.backend]
    )


def test_options_of_one_name_list_both_meanings(options):
    (competence,) = [one for one in options.model if one.name == "competence"]
    owners = ("extended-btl", "hierarchical-btl", "linear-extended-btl", "mixture-btl")
    assert competence.owners == owners
    assert "extended-btl: " in competence.help()
    assert "(default: signed) hierarchical-btl, mixture-btl: " in competence.help()


def test_a_list_of_names_may_be_given_in_parts():
    """Typer would keep the last."""
    (ignored,) = [
        one for one in GeneratedOptions.of((rt.families.CHOICES,)).model if one.name == "ignored"
    ]
    assert ignored.value({ignored.key: ["price", "time"]}) == "price,time"
    assert ignored.value({ignored.key: None}) is None


@dataclass(frozen=True)
class Documented:
    """A thing.

    Parameters
    ----------
    size, depth : int
        Number of things, in `units`. More is better.
    name : str
    """

    size: int = 1
    depth: int = 2
    name: str = ""


def test_the_first_sentence_of_each_parameter_is_its_help():
    docs = generated.parameter_docs(Documented)
    assert docs == {
        "size": "Number of things, in units.",
        "depth": "Number of things, in units.",
        "name": "",
    }


@pytest.mark.parametrize(
    ("annotation", "typed", "value"),
    [
        (float | None, 2.0, 2.0),
        (int | None, "3", 3),
        (float | Literal["auto"], "1.5", 1.5),
        (float | Literal["auto"], "auto", "auto"),
        (float | Literal["auto"], "wide", "wide"),
        (Sequence[str], ("a", "b"), ["a", "b"]),
        (Iterable[Any] | None, "1,2", ["1", "2"]),
        (Mapping[str, tuple[str, str]] | None, ["n=a,b"], {"n": ("a", "b")}),
        (Mapping[str, Any] | None, ["first=1"], {"first": "1"}),
    ],
)
def test_what_is_typed_becomes_what_a_parameter_takes(annotation, typed, value):
    assert generated.converted(typed, annotation, "name") == value


def test_a_name_that_is_typed_twice_is_refused():
    with pytest.raises(DataError, match="'first' comes twice in outcomes=; give each name once"):
        generated.converted(["first=1", "first=2"], Mapping[str, Any], "outcomes")


def test_what_cannot_be_typed_is_no_option():
    assert generated.shape_of(dict).form is None
    assert generated.shape_of(pd.DataFrame).metavar == "FILE"
    assert generated.shape_of(int | str).form is None


def test_models_have_their_names():
    names = {"ExtendedBTL": "extended-btl", "BTL": "btl", "OneCoin": "one-coin", "Yan": "yan"}
    assert {name: generated.dashed(name) for name in names} == names


# ---------------------------------------------------------------- errors


def raised(action, *arguments, **settings) -> RatersError:
    with pytest.raises(RatersError) as caught:
        action(*arguments, **settings)
    return caught.value


VOTES = {"w": ["a", "b"], "l": ["b", "c"], "n": [0.5, 1]}
SIDES = {"f": ["a", "b"], "s": ["b", "c"], "o": ["tie", "a"]}
LABELS = {"i": [1, 1], "a": ["x", "x"], "l": ["no", "yes"], "t": ["no", "yes"]}
OF_SIDES = {"first": "f", "second": "s", "outcome": "o"}
OF_LABELS = {"item": "i", "annotator": "a", "label": "l"}


@pytest.mark.parametrize(
    ("read", "table", "roles", "parameter"),
    [
        (rt.Comparisons.from_frame, VOTES, {"winner": "x", "loser": "l"}, "winner"),
        (rt.Comparisons.from_frame, VOTES, {"winner": 3, "loser": "l"}, "winner"),
        (rt.Comparisons.from_frame, VOTES, {"winner": "w", "loser": "l", "count": "n"}, "count"),
        (
            rt.Comparisons.from_frame,
            VOTES,
            {"winner": "w", "loser": "l", "items": ["a", "b"]},
            "items",
        ),
        (rt.Comparisons.from_frame, SIDES, OF_SIDES, "ties"),
        (rt.Comparisons.from_frame, SIDES, OF_SIDES | {"ties": "maybe"}, "ties"),
        (rt.Comparisons.from_frame, SIDES | {"o": ["x", "b"]}, OF_SIDES, "outcome"),
        (rt.Comparisons.from_ratings, LABELS, {"item": "i", "rating": "l"}, "rating"),
        (rt.Comparisons.from_rankings, SIDES, {"places": ["f"]}, "places"),
        (rt.Labels.from_frame, LABELS, OF_LABELS | {"repeats": "error"}, "repeats"),
        (rt.Labels.from_frame, LABELS, OF_LABELS | {"truth": "t"}, "truth"),
        (rt.Labels.from_frame, LABELS, OF_LABELS | {"classes": ["no"]}, "classes"),
        (rt.Labels.from_frame, LABELS, OF_LABELS | {"classes": ["no", "maybe"]}, "label"),
    ],
)
def test_errors_of_readers_name_the_parameter(read, table, roles, parameter):
    error = raised(read, table, **roles)
    assert error.parameter == parameter
    assert error.expected
    assert "=" not in error.worded("--{}".format).replace("f=", "")


@pytest.mark.parametrize(
    ("action", "settings", "parameter"),
    [
        (rt.BTL, {"reward_scale": -1}, "reward_scale"),
        (rt.BTL, {"position_bias": "yes"}, "position_bias"),
        (rt.ExtendedBTL, {"competence": "any"}, "competence"),
        (rt.PGGibbs, {"draws": 0}, "draws"),
        (rt.NUTS, {"target_accept": 2}, "target_accept"),
        (rt.Costs, {"review": 0}, "review"),
    ],
)
def test_errors_of_settings_name_the_parameter(action, settings, parameter):
    error = raised(action, **settings)
    assert isinstance(error, SettingError)
    assert (error.parameter, error.value) == next(iter(settings.items()))
    assert error.parameter == parameter
    assert f"--{parameter}" in error.worded("--{}".format)


# ---------------------------------------------------------------- what is kept, what is imported


def test_compiled_functions_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        app.keep_compiled()
        assert jax.config.jax_compilation_cache_dir == before  # a folder that is set wins
        jax.config.update("jax_compilation_cache_dir", None)
        app.keep_compiled()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "raters")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert "JAX_COMPILATION_CACHE_DIR" in app.EPILOG


def test_only_the_command_that_is_asked_for_has_its_options(monkeypatch):
    monkeypatch.setattr(kinds, "registered_kinds", lambda: pytest.fail("options were made"))
    listed = {command.name for command in app.command_line(["--help"]).registered_commands}
    assert listed == set(app.COMMANDS)


def test_groups_of_names_are_options_of_models() -> None:
    """Nests, each given once more, and alternatives that share an error."""
    choices = generated.model_options({"nested-logit": rt.models.NestedLogit})
    nests = next(one for one in choices if one.name == "nests")
    assert nests.flag == "--nest"
    annotation = nests.meanings[0].annotation
    groups = generated.converted(["train, car", "bus,tram"], annotation, "nests")
    assert groups == (("train", "car"), ("bus", "tram"))
    assert rt.models.NestedLogit(nests=groups).nests == groups
    ((shared, _),) = [
        value
        for name, value in generated.field_types(rt.models.MultinomialProbit).items()
        if name == "shared"
    ]
    assert generated.converted("red,blue", shared, "shared") == ("red", "blue")
