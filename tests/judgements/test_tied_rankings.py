"""Equal ranks: the ways to write them, their numbers and words, and what is read off them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.auditing.agreement import kendall_w
from raters.errors import DataError
from tests.refusals import raises_about


def read(rank, segments=(1, 1, 1, 1), who=("ann",) * 4, **options) -> rt.Rankings:
    """Ranks of four systems, or of as many for each judge of a segment."""
    table = {"segment": segments, "judge": who, "rank": rank}
    table["system"] = list("abcd") * (len(rank) // 4)
    roles = {"ranking": "segment", "item": "system", "rank": "rank", "annotator": "judge"}
    return rt.Rankings.from_frame(table, **roles, **options)


@pytest.mark.parametrize("rank", [[1, 2, 2, 3], [1, 2, 2, 4], [1, 2.5, 2.5, 4], [10, 20, 20, 99]])
def test_dense_competition_and_mean_ranks_are_one_order(rank: list[float]) -> None:
    rankings = read(rank)
    assert rankings.place.tolist() == [[1, 2, 2, 4]]
    assert (rankings.depth.tolist(), rankings.most_tied) == ([4], 2)
    rankings.check()
    again = rt.Rankings.from_frame(
        rankings.to_frame(), ranking="ranking", item="item", rank="rank", annotator="annotator"
    )
    assert again.place.tolist() == rankings.place.tolist()


def test_each_judge_of_a_segment_gives_a_ranking() -> None:
    rankings = read([1, 2, 2, 4, 1, 1, 1, 4], [7] * 8, ["ann"] * 4 + ["bob"] * 4)
    assert rankings.place.tolist() == [[1, 2, 2, 4], [1, 1, 1, 4]]
    assert rankings.most_tied == 3
    with raises_about(DataError, "item"):
        read([1, 2, 2, 4] * 2, [7] * 8, ["ann"] * 8)


def test_items_without_a_rank_do_not_tie() -> None:
    rankings = read([1, 1, None, None])
    assert rankings.place.tolist() == [[1, 1, 0, 0]]
    assert rankings.most_tied == 2
    assert rankings.unanswered().most_tied == 2
    with pytest.raises(DataError, match="tie"):
        rankings.stages()


@pytest.mark.parametrize("place", [[1, 1, 2, 4], [1, 2, 2, 3], [1, 1, 1, 4], [2, 2, 3, 4]], ids=str)
def test_places_must_leave_a_gap_behind_ties(place: list[int]) -> None:
    wrong = dataclasses.replace(read([1, 1, 3, 4]), place=np.array([place]))
    with raises_about(DataError, "place"):
        wrong.check()


def test_orders_with_ties_have_numbers_and_words() -> None:
    """Those without ties have the numbers that they have where none may tie."""
    asked = read([1, 2, 2, 4]).unanswered()
    words = ["a > b > c > d", "d = c > a = b", "a > b = d > c", "b > a > c = d"]
    codes = [asked.outcome_of(0, one) for one in words]
    strict = dataclasses.replace(asked, most_tied=1)
    assert codes[0] == strict.outcome_of(0, words[0])
    assert len(set(codes)) == 4
    every = asked.rows(np.zeros(4, int)).answered(np.array(codes))
    assert every.place.tolist() == [[1, 2, 3, 4], [3, 3, 1, 1], [1, 2, 4, 2], [2, 1, 3, 3]]
    every.check()
    assert every.single_outcomes()[1].tolist() == codes
    assert [asked.words_of(0, one) for one in codes][1:3] == ["c = d > a = b", "a > b = d > c"]
    assert asked.outcome_of(0, [["c", "d"], ["a", "b"]]) == codes[1]
    for answer in ("a = b = c > d", "a = b", "a = a > b > c"):
        with raises_about(DataError, "answer"):
            asked.outcome_of(0, answer)
    with raises_about(DataError, "answer"):
        strict.outcome_of(0, words[1])


def test_rankings_with_and_without_ties_join() -> None:
    strict, tied = read([1, 2, 3, 4]), read([1, 2, 2, 4])
    assert strict.joined(tied).most_tied == 2
    assert strict.joined(tied).place.tolist() == [[1, 2, 3, 4], [1, 2, 2, 4]]


def test_concordance_has_the_correction_for_ties() -> None:
    """W of two rankings, 12 S / (m²(n³ − n) − m ΣT), with T = t³ − t of each tie."""
    rankings = read([1, 2, 2, 4, 1, 2, 3, 4], [1] * 4 + [2] * 4, ["ann"] * 4 + ["bob"] * 4)
    total = pd.DataFrame([[1, 2.5, 2.5, 4], [1, 2, 3, 4]]).sum()
    expected = 12 * ((total - total.mean()) ** 2).sum() / (4 * 60 - 2 * 6)
    assert kendall_w(rankings, 0.9)["estimate"].item() == pytest.approx(expected)
