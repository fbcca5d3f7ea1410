"""Rankings as comparisons, features of items and of comparisons, and what votes with features keep
through every change."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.program import likelihood_of
from tests import hand

PLACES = ["best", "next", "last"]


def rankings(table, **options) -> rt.Comparisons:
    return rt.Comparisons.from_rankings(table, **({"places": PLACES} | options))


def cells(votes: rt.Comparisons) -> dict:
    """Wins of the one over the other by each annotator, and the other way round, by names."""
    count = np.ones(votes.num_comparisons) if votes.count is None else votes.count
    found: dict = {}
    for i, j, k, won, n in zip(
        votes.first, votes.second, votes.annotator, votes.wins, count, strict=True
    ):
        one, two, who = votes.items[i], votes.items[j], votes.annotators[k]
        found[one, two, who] = found.get((one, two, who), 0) + float(won)
        found[two, one, who] = found.get((two, one, who), 0) + float(n - won)
    return {key: wins for key, wins in found.items() if wins}


# ------------------------------------------------------------------ rankings


def test_a_full_ranking_becomes_every_pair():
    votes = rankings({"best": ["tea"], "next": ["milk"], "last": ["beer"]})
    assert cells(votes) == {("tea", "milk", 0): 1, ("tea", "beer", 0): 1, ("milk", "beer", 0): 1}
    assert (votes.items, votes.annotators, votes.num_votes) == (("beer", "milk", "tea"), (0,), 3)
    assert not votes.ordered


def test_rankings_by_one_annotator_add_up():
    table = {"best": ["a", "a", "b"], "next": ["b", "b", "a"], "who": ["x", "x", "y"]}
    votes = rankings(table, places=["best", "next"], annotator="who")
    assert cells(votes) == {("a", "b", "x"): 2, ("b", "a", "y"): 1}
    assert votes.annotators == ("x", "y")


def test_rankings_agree_with_votes_written_out():
    """A permutation of 6 items for each of 20 annotators against the pairs read as winners and
    losers."""
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(6) for _ in range(20)])
    kept = rng.integers(0, 7, 20)
    pairs = [
        (order[i], order[j], k)
        for k, order in enumerate(orders)
        for i in range(kept[k])
        for j in range(i + 1, kept[k])
    ]
    written = hand.votes(*pairs, items=range(6), annotators=range(20))
    table = {
        f"place {at}": [int(o[at]) if at < n else None for o, n in zip(orders, kept, strict=True)]
        for at in range(6)
    }
    read = rankings(table, places=list(table), items=range(6))
    for role in ("first", "second", "annotator", "wins"):
        assert np.array_equal(getattr(read, role), getattr(written, role))


# ------------------------------------------------------------------ features of each comparison

COMPARED = {
    "w": ["a", "b", "a"],
    "l": ["b", "a", "c"],
    "xa": [1.0, 2.0, 3.0],
    "xb": [0.0, 1.0, 1.0],
}
SIDES = {"x": ("xa", "xb")}


def compared(table=COMPARED, features=SIDES, **options) -> rt.Comparisons:
    return rt.Comparisons.from_frame(table, winner="w", loser="l", features=features, **options)


def test_features_are_those_of_the_first_side_less_the_second():
    votes = compared(aggregate=False)
    assert (votes.feature_names, votes.features.tolist()) == (("x",), [[1.0], [1.0], [2.0]])
    assert votes.features.dtype == np.float32
    assert list(votes.coords["feature"]) == ["x"]


# ------------------------------------------------------------------ features of the items

ITEM_VALUES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
TABLE = {"drink": ["c", "a", "b"], "warmth": [5.0, 1.0, 3.0], "price": [7, 2, 4]}


@pytest.fixture(scope="module")
def plain() -> rt.Comparisons:
    table = {"w": ["a", "b", "a"], "l": ["b", "c", "c"], "who": ["x", "y", "x"]}
    return rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who")


@pytest.mark.parametrize(
    "as_table",
    [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda t: pd.DataFrame(t, index=[4, 4, 4])],
)
def test_a_table_is_matched_by_name(plain, as_table):
    votes = plain.with_features(as_table(TABLE), item="drink")
    assert votes.feature_names == ("warmth", "price")
    assert np.array_equal(votes.features, plain.with_features(ITEM_VALUES).features)
    votes = plain.with_features(as_table(TABLE), item="drink", names=["price"])
    assert (votes.feature_names, votes.features.tolist()) == (("price",), [[-2.0], [-5.0], [-3.0]])


def test_features_of_items_follow_the_presentation():
    votes = hand.ordered_votes(("b", "a", 1, "x"), ("a", "b", 1, "x"))
    votes = votes.with_features(np.array([[0.0], [1.0]]))
    assert votes.ordered
    assert dict(zip(votes.first.tolist(), votes.features.ravel().tolist(), strict=True)) == {
        0: -1.0,
        1: 1.0,
    }


# ------------------------------------------------------------------ equal rows put together


ITEMS, PEOPLE = ["a", "b", "c"], ["x", "y"]
number = st.sampled_from([0.0, -0.0, 1.0, -1.5])
described = st.tuples(
    st.permutations(ITEMS).map(lambda order: order[:2]),
    st.sampled_from(PEOPLE),
    st.sampled_from([1.0, 0.5, 0.0]),
    st.integers(1, 3),
    st.tuples(number, number),
    st.tuples(number, number),
)


@pytest.mark.slow
@given(rows=st.lists(described, min_size=1, max_size=25), ordered=st.booleans())
@settings(deadline=None, max_examples=40)
def test_aggregation_leaves_the_likelihood_of_contextual_rewards(rows, ordered):
    """The difference between two points of the parameters, in which binomial coefficients cancel;
    and nothing is split."""
    pairs, who, won, count, x, y = zip(*rows, strict=True)
    table = {
        "one": [one for one, _ in pairs],
        "two": [two for _, two in pairs],
        "who": who,
        "won": won,
        "n": count,
        **{
            f"{name}{side}": [pair[side] for pair in pairs_of]
            for name, pairs_of in (("x", x), ("y", y))
            for side in (0, 1)
        },
    }
    votes = rt.Comparisons.from_frame(
        {name: list(values) for name, values in table.items()},
        first="one",
        second="two",
        outcome="won",
        annotator="who",
        count="n",
        features={"x": ("x0", "x1"), "y": ("y0", "y1")},
        ties="half",
        items=ITEMS,
        annotators=PEOPLE,
        aggregate=False,
    )
    votes = dataclasses.replace(votes, ordered=ordered)
    together = votes.aggregate()
    assert together.num_votes == votes.num_votes
    questions = list(
        zip(
            together.first,
            together.second,
            together.annotator,
            map(tuple, together.features),
            strict=True,
        )
    )
    assert len(set(questions)) == len(questions)
    if not ordered:
        assert (together.first < together.second).all()
    model = rt.models.ContextualBTL(num_types=2, coefficient_scale=1.0)
    points = [
        {"type_weight": np.array([0.7, 0.3]), "coefficient": np.array([[0.4, -1.0], [2.0, 0.3]])},
        {"type_weight": np.array([0.2, 0.8]), "coefficient": np.array([[-0.5, 0.1], [0.6, -1.2]])},
    ]
    with jax.enable_x64(True):
        raw, joint = (
            float(likelihood_of(model, data, points[0]))
            - float(likelihood_of(model, data, points[1]))
            for data in (votes, together)
        )
    assert joint == pytest.approx(raw, abs=1e-4)
