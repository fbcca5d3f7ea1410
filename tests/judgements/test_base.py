"""Methods that follow from the roles of columns, for any kind of judgement."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

import raters as rt
from raters.errors import DataError
from tests.kinds.choices import Choices


def choices(*rows: tuple[str, str, str]) -> Choices:
    """Choices from rows of chooser, menu and what was taken."""
    columns = zip(*rows, strict=True)
    table = dict(zip(("who", "menu", "took"), map(list, columns), strict=True))
    return Choices.from_frame(table, chooser="who", offered="menu", chosen="took")


def test_an_outcome_that_a_question_cannot_have_has_no_word():
    data = choices(("ann", "a|b", "a"), ("ann", "b|c", "c"))
    assert data.words_of(1, 2.0) == "c"
    with pytest.raises(DataError) as caught:
        data.words_of(0, 2.0)
    assert caught.value.parameter == "outcome"


def test_parts_with_different_columns_are_not_joined():
    data = choices(("ann", "a|b", "a"), ("bob", "b|a", "b"))
    both = data.joined(data)
    assert (both.num_rows, both.has_answers) == (4, True)
    for first, second in ((data, data.unanswered()), (data.unanswered(), data)):
        with pytest.raises(DataError) as caught:
            first.joined(second)
        assert caught.value.parameter == "chosen"
    twice = dataclasses.replace(data, count=np.array([2.0, 1.0]))
    np.testing.assert_array_equal(data.joined(twice).count, [1, 1, 2, 1])


def test_names_that_are_used_are_not_left_out() -> None:
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=20, seed=0)
    with pytest.raises(DataError):
        votes.with_names("item", votes.items[:2])


def test_traced_containers_can_be_shown() -> None:
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=20, seed=0)
    shown = []
    jax.jit(lambda data: shown.append(repr(data)))(votes)
    jax.vmap(lambda data: shown.append(repr(data)))(votes)
    assert shown == ["Comparisons(...)"] * 2
