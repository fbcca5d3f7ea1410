"""Several kinds of judgement together: common names, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import DataWarning, SettingError
from raters.judgements.together import axis_name
from raters.kinds import kind_of
from tests import hand
from tests.refusals import raises_about


def votes_of(pairs: str, who: str, **options) -> rt.Comparisons:
    """A vote for each pair of letters, the winner first."""
    return hand.votes(*zip(pairs[::2], pairs[1::2], who, strict=True), **options)


def labels_of(items: str, who: str, says: str, **options) -> rt.Labels:
    return hand.labels(*zip(items, who, says, strict=True), **options)


@pytest.fixture(scope="module")
def both() -> rt.judgements.Together:
    """Three annotators and four items, of which each part knows some."""
    return rt.judgements.Together.of(
        {"votes": votes_of("abbc", "xy"), "labels": labels_of("dac", "yzz", "nym")}
    )


def test_annotators_and_items_have_one_code_in_all_parts(both) -> None:
    votes, labels = both.part("votes"), both.part("labels")
    assert votes.annotators == labels.annotators == ("x", "y", "z")
    assert votes.items == labels.items == ("a", "b", "c", "d")
    named = {
        (labels.items[item], labels.annotators[who])
        for item, who in zip(
            np.asarray(labels.codes("item")), np.asarray(labels.annotator), strict=True
        )
    }
    assert named == {("d", "y"), ("a", "z"), ("c", "z")}
    assert labels.num_units == 4
    both.check()


def test_labels_stay_with_their_items_in_another_order() -> None:
    votes = votes_of("dcca", "xy", items=["d", "c", "a"])
    labels = labels_of("acad", "xyyx", "nyyn")
    moved = rt.judgements.Together.of({"votes": votes, "labels": labels}).part("labels")
    moved.check()
    assert moved.items == ("d", "c", "a")
    for one in (labels, moved):
        rows = zip(np.asarray(one.codes("item")), one.annotator, one.label, strict=True)
        said = {(one.items[i], one.annotators[k], one.classes[c]) for i, k, c in rows}
        assert said == {("a", "x", "n"), ("c", "y", "y"), ("a", "y", "y"), ("d", "x", "n")}


def test_judgements_are_counted_over_all_parts(both) -> None:
    assert both.judgements_by("annotator").tolist() == [1, 2, 2]
    assert both.num_judgements == 5
    assert both.has_answers
    assert not both.unanswered().has_answers


def test_names_that_are_the_same_get_one_order() -> None:
    table = {"w": ["a"], "l": ["b"], "p1": [1.0], "p2": [0.0], "q1": [2.0], "q2": [0.0]}
    parts = {
        name: rt.Comparisons.from_frame(
            table | {"who": [name]}, winner="w", loser="l", annotator="who", features=features
        )
        for name, features in (
            ("one", {"p": ("p1", "p2"), "q": ("q1", "q2")}),
            ("two", {"q": ("q1", "q2"), "p": ("p1", "p2")}),
            ("three", {"q": ("q1", "q2")}),
        )
    }
    both = rt.judgements.Together.of({name: parts[name] for name in ("one", "two")})
    assert both.part("two").feature_names == ("p", "q")
    assert both.part("two").features.tolist() == [[1.0, 2.0]]
    assert axis_name(both, "two", "feature") == "feature"
    other = rt.judgements.Together.of({name: parts[name] for name in ("one", "three")})
    assert axis_name(other, "three", "feature") == "three.feature"


def test_annotators_leave_all_parts(both) -> None:
    less = both.without_judges(["z"])
    assert less.coords["annotator"] == ("x", "y")
    assert less.part("labels").num_rows == 1


def test_those_who_judge_in_no_part_are_warned_of() -> None:
    votes = votes_of("ab", "x", annotators=["x", "idle"])
    both = rt.judgements.Together.of({"votes": votes, "labels": labels_of("ab", "xz", "ny")})
    with pytest.warns(DataWarning, match="judged in no part, and keep their prior: idle"):
        both.warn()


def test_what_is_of_one_part_says_so(both) -> None:
    for ask in (
        both.to_frame,
        both.questions,
        lambda: both.rows([0]),
        lambda: both.padded(9),
        lambda: both.recoded(both, ["item"]),
        lambda: kind_of(both),
    ):
        with raises_about(SettingError, "data"):
            ask()


def test_parts_are_joined_by_name(both) -> None:
    twice = both.joined(both)
    assert twice.num_judgements == 2 * both.num_judgements
    assert twice.part("labels").num_rows == 2 * both.part("labels").num_rows


def test_rankings_keep_the_place_of_each_item_under_other_codes() -> None:
    def rankings(*orders: str) -> rt.Rankings:
        places = {f"place {at}": list(items) for at, items in enumerate(zip(*orders, strict=True))}
        return rt.Rankings.from_wide(places, places=list(places), unranked="not offered")

    one, two = rankings("db", "bd"), rankings("bad", "dab", "cad")
    both = rt.judgements.Together.of({"one": one, "two": two})
    both.check()
    for name, orders in (("one", ("db", "bd")), ("two", ("bad", "dab", "cad"))):
        part = both.part(name)
        for offered, place, order in zip(part.offered, part.place, orders, strict=True):
            ranked = zip(place[place > 0], offered[place > 0], strict=True)
            assert "".join(part.items[code] for _, code in sorted(ranked)) == order


def test_known_classes_and_records_follow_classes_in_another_order() -> None:
    past = {"annotator": ["x", "x"], "truth": ["n", "y"], "label": ["n", "n"]}
    one = labels_of("ab", "xy", "ny", classes=["n", "y"])
    two = labels_of("cd", "xy", "ny", classes=["y", "n"]).with_truth({"c": "n"}).with_record(past)
    moved = rt.judgements.Together.of({"one": one, "two": two}).part("two")
    moved.check()
    assert (moved.classes, moved.items) == (("n", "y"), ("a", "b", "c", "d"))
    assert (moved.label.tolist(), moved.truth.tolist()) == ([0, 1], [-1, -1, 0, -1])
    assert moved.record[0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
