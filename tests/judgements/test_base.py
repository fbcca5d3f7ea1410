"""Methods that follow from the roles of columns, for any kind of judgement."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

import raters as rt
from raters.errors import DataError
from raters.judgements.grouped import Grouped
from raters.judgements.roles import of_axes, static
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


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scores(Grouped):
    """Scores that judges give to items, as numbers."""

    judge_code: Any
    score: Any
    count: Any
    group: Any
    unit_code: Any = of_axes("unit")
    items: tuple[Any, ...] = static()
    judges_: tuple[Any, ...] = static()
    most: int = static(1)
    even: bool = static(False)

    axes: ClassVar[dict[str, str]] = {"judge_code": "annotator", "unit_code": "item"}
    names: ClassVar[dict[str, str]] = {"item": "items", "annotator": "judges_"}
    answer: ClassVar[str] = "score"
    row: ClassVar[str] = "rating"
    unit: ClassVar[str] = "item"

    def answers(self) -> np.ndarray:
        return np.array([0.5, 1.5])


def test_equal_rows_of_numbers_are_put_together_within_groups():
    scores = Scores.of_all(
        np.array([1, 0, 1, 1, 0]),
        {
            "judge_code": np.array([0, 0, 0, 0, 1], np.int32),
            "score": np.array([1.5, 0.5, 1.5, 0.5, 0.5]),
            "count": None,
        },
        items=("x", "y"),
        judges_=("ann", "bob"),
    )
    cells = scores.aggregate()
    rows = zip(cells.group, cells.judge_code, cells.score, cells.count, strict=True)
    assert sorted(tuple(map(float, row)) for row in rows) == [
        (0, 0, 0.5, 1),
        (0, 1, 0.5, 1),
        (1, 0, 0.5, 1),
        (1, 0, 1.5, 2),
    ]


def test_a_container_is_shown_by_its_sizes() -> None:
    """In one line: judgements, rows where these are fewer or more, and names."""
    votes, _ = rt.datasets.crowd(num_items=6, num_annotators=3, num_votes=2000, seed=0)
    labels = rt.datasets.label_crowd(6, 3, 2, seed=0).labels
    offered = rt.datasets.choice_crowd(9, 2, seed=0, available=1).choices
    names = "6 items, 3 annotators"
    assert repr(votes) == f"Comparisons(2,000 judgements in 45 rows, {names})"
    assert repr(votes.padded(64)) == f"Comparisons(2,000 judgements in 64 rows, {names})"
    assert repr(rt.Candidates.pairs(votes)) == f"Comparisons(45 questions, {names})"
    assert repr(votes.rows([])) == f"Comparisons(0 judgements, {names})"
    assert repr(labels.take(slice(0, 1))) == (
        "Labels(2 judgements, 1 item, 3 annotators, 3 true classes)"
    )
    sizes = "4 alternatives, 9 annotators, 2 features"
    assert repr(offered) == f"Choices(18 judgements in 72 rows, 18 sets, {sizes})"
    assert repr(offered.take(slice(0, 1)).unanswered()) == (
        f"Choices(1 question in 4 rows, 1 set, {sizes})"
    )
    both = rt.judgements.Together.of({"votes": votes, "labels": labels})
    assert repr(both) == f"Together(votes={both.part('votes')!r}, labels={both.part('labels')!r})"
    own = choices(("ann", "a|b", "a"), ("ann", "b|c", "c"))
    assert repr(own).startswith("Choices(2 judgements")


@pytest.mark.parametrize(
    "change",
    [
        lambda array: None,
        lambda array: array[0],
        lambda array: array.dtype,
        lambda array: np.stack([array, array]),
    ],
)
def test_a_tree_of_something_else_can_be_shown(change) -> None:
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=20, seed=0)
    both = rt.judgements.Together.of({"votes": votes, "others": votes.take(slice(0, 5))})
    assert repr(jax.tree.map(change, votes)) == "Comparisons(...)"
    shown = "Together(votes=Comparisons(...), others=Comparisons(...))"
    assert repr(jax.tree.map(change, both)) == shown
    assert repr(dataclasses.replace(both, parts=None)) == "Together(...)"


def test_traced_containers_can_be_shown() -> None:
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=20, seed=0)
    shown = []
    jax.jit(lambda data: shown.append(repr(data)))(votes)
    jax.vmap(lambda data: shown.append(repr(data)))(votes)
    assert shown == ["Comparisons(...)"] * 2
