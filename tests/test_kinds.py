"""Kinds of judgement: what is registered, and of which kind a container is."""

from __future__ import annotations

import pytest

import raters as rt
from raters import kinds
from raters.errors import SettingError
from raters.reporting.facts import sections_of
from tests.refusals import raises_about


class Timed(rt.Comparisons):
    """Comparisons of a kind of their own."""


def kind(**changes: object) -> rt.kinds.Kind:
    fields = {
        "data": Timed,
        "readers": (rt.kinds.Reader(Timed.from_frame),),
        "models": (rt.BTL,),
        "default": rt.BTL(),
    }
    return rt.kinds.Kind(**fields | changes)


def test_a_subclass_has_its_own_kind(monkeypatch):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    assert kinds.kind_of(Timed).name == "comparisons"
    own = rt.kinds.register(kind())
    assert kinds.kind_of(Timed) is own
    assert own.name == "timed"
    assert kinds.kind_of(rt.Comparisons).name == "comparisons"


@pytest.mark.parametrize(
    ("parameter", "value"), [("data", dict), ("readers", ()), ("readers", (Timed.from_frame,))]
)
def test_a_kind_that_cannot_be_is_refused(parameter, value):
    with pytest.raises(SettingError) as caught:
        kind(**{parameter: value})
    assert caught.value.parameter == parameter


def test_a_name_belongs_to_one_container(monkeypatch):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    own = rt.kinds.register(kind())
    assert rt.kinds.register(kind(words=rt.kinds.Words("one", "more"))) is not own
    with raises_about(SettingError, "name", "labels"):
        rt.kinds.register(kind(name="labels"))
    assert kinds.kind_named("labels").data is rt.Labels


def test_sections_keep_apart(monkeypatch, tiny):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    made = kinds.Section("items", "Items")
    rt.kinds.register(
        kind(sections=(lambda context: made, lambda context: None, lambda context: made))
    )
    data = Timed(**vars(tiny))
    context = kinds.AuditContext(rt.program.Program(rt.BTL(), data), None, None, 0.9)
    with raises_about(SettingError, "sections", ["items"]):
        sections_of(context)
