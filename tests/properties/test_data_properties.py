"""Properties of any table of votes."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, gammaln

import raters as rt

ITEMS = ["a", "b", "c", "d", "e"]
PEOPLE = ["x", "y", "z"]
SETTINGS = settings(deadline=None, max_examples=60)

row = st.tuples(
    st.permutations(ITEMS).map(lambda order: order[:2]),
    st.sampled_from(PEOPLE),
    st.sampled_from([1.0, 0.5, 0.0]),
)
rows = st.lists(row, min_size=1, max_size=40)
ratings = st.lists(
    st.tuples(st.sampled_from(ITEMS), st.sampled_from(PEOPLE), st.integers(1, 4)),
    min_size=1,
    max_size=25,
)


def read(rows, *, swap=False, aggregate=True, **options):
    """Votes with an outcome column, the sides of every row swapped on request."""
    sides = [pair[::-1] if swap else pair for pair, _, _ in rows]
    table = {
        "one": [one for one, _ in sides],
        "two": [two for _, two in sides],
        "who": [who for _, who, _ in rows],
        "won": [1 - won if swap else won for _, _, won in rows],
    }
    options = {"ties": "half", "items": ITEMS, "annotators": PEOPLE} | options
    return rt.Comparisons.from_frame(
        table,
        first="one",
        second="two",
        outcome="won",
        annotator="who",
        aggregate=aggregate,
        **options,
    )


def log_likelihood(
    votes: rt.Comparisons, reward: dict, competence: dict, bias: float = 0.0
) -> float:
    """Of Extended-BTL, by names, binomial constants included."""
    r = np.array([reward[name] for name in votes.items])
    beta = np.array([competence[name] for name in votes.annotators])
    p = expit(beta[votes.annotator] * (r[votes.first] - r[votes.second]) + bias)
    n = np.ones(votes.num_comparisons) if votes.count is None else np.asarray(votes.count, float)
    y = np.asarray(votes.wins, float)
    constant = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
    return float(np.sum(constant + y * np.log(p) + (n - y) * np.log1p(-p)))


def binomial_constant(votes: rt.Comparisons) -> float:
    n = np.ones(votes.num_comparisons) if votes.count is None else np.asarray(votes.count, float)
    y = np.asarray(votes.wins, float)
    return float(np.sum(gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)))


REWARD = dict(zip(ITEMS, [0.3, -1.0, 2.0, 0.0, -0.4], strict=True))
COMPETENCE = dict(zip(PEOPLE, [1.0, 0.2, -0.7], strict=True))


def cells(votes: rt.Comparisons) -> dict:
    """(first, second, annotator) by name → (wins, votes), summed."""
    found: dict = {}
    count = np.ones(votes.num_comparisons) if votes.count is None else votes.count
    for i, j, k, wins, number in zip(
        votes.first, votes.second, votes.annotator, votes.wins, count, strict=True
    ):
        key = (votes.items[i], votes.items[j], votes.annotators[k])
        before = found.get(key, (0.0, 0.0))
        found[key] = (before[0] + float(wins), before[1] + float(number))
    return found


@SETTINGS
@given(rows, st.permutations(ITEMS), st.permutations(PEOPLE))
def test_the_order_of_names_changes_codes_and_nothing_else(rows, items, people):
    votes, other = read(rows), read(rows, items=items, annotators=people)
    assert cells(votes) == cells(other)
    assert np.isclose(
        log_likelihood(votes, REWARD, COMPETENCE), log_likelihood(other, REWARD, COMPETENCE)
    )
    assert sorted(votes.judgements_by("item")) == sorted(other.judgements_by("item"))
    assert {frozenset(part) for part in votes.components()} == {
        frozenset(part) for part in other.components()
    }


@SETTINGS
@given(rows)
def test_renaming_changes_names_and_nothing_else(rows):
    renamed = [
        (tuple(f"item {name}" for name in pair), f"person {who}", won) for pair, who, won in rows
    ]
    votes = read(rows)
    other = read(
        renamed,
        items=[f"item {name}" for name in ITEMS],
        annotators=[f"person {name}" for name in PEOPLE],
    )
    for column in ("first", "second", "annotator", "wins", "count"):
        assert np.array_equal(getattr(votes, column), getattr(other, column))


@SETTINGS
@given(rows)
def test_swapping_the_sides_with_the_outcomes_changes_nothing(rows):
    unordered = dataclasses.replace(read(rows, aggregate=False), ordered=False).aggregate()
    swapped = dataclasses.replace(read(rows, aggregate=False, swap=True), ordered=False).aggregate()
    for column in ("first", "second", "annotator", "wins", "count"):
        assert np.array_equal(getattr(unordered, column), getattr(swapped, column))
    assert np.isclose(
        log_likelihood(read(rows), REWARD, COMPETENCE, bias=0.3),
        log_likelihood(read(rows, swap=True), REWARD, COMPETENCE, bias=-0.3),
    )


@SETTINGS
@given(st.lists(st.tuples(row, st.integers(1, 4)), min_size=1, max_size=15))
def test_repeated_rows_equal_counts(counted):
    table = {
        "one": [pair[0] for (pair, _, _), _ in counted],
        "two": [pair[1] for (pair, _, _), _ in counted],
        "who": [who for (_, who, _), _ in counted],
        "won": [won for (_, _, won), _ in counted],
        "n": [number for _, number in counted],
    }
    roles = {"first": "one", "second": "two", "outcome": "won", "annotator": "who", "ties": "half"}
    short = rt.Comparisons.from_frame(table, **roles, count="n")
    repeated = {
        name: [v for v, n in zip(values, table["n"], strict=True) for _ in range(n)]
        for name, values in table.items()
    }
    long = rt.Comparisons.from_frame(repeated, **roles)
    assert cells(short) == cells(long)
    assert short.num_votes == long.num_votes == sum(table["n"])


@SETTINGS
@given(rows, st.booleans())
def test_aggregating_keeps_the_likelihood_up_to_the_binomial_constant(rows, ordered):
    raw = dataclasses.replace(read(rows, aggregate=False), ordered=ordered)
    packed = raw.aggregate()
    bias = 0.4 if ordered else 0.0
    assert packed.num_votes == raw.num_votes
    assert packed.num_comparisons == len(cells(packed)) <= raw.num_comparisons
    np.testing.assert_allclose(
        log_likelihood(raw, REWARD, COMPETENCE, bias) - binomial_constant(raw),
        log_likelihood(packed, REWARD, COMPETENCE, bias) - binomial_constant(packed),
        atol=1e-9,
    )
    assert np.array_equal(raw.judgements_by("item"), packed.judgements_by("item"))
    assert np.array_equal(raw.judgements_by("annotator"), packed.judgements_by("annotator"))
    again = packed.aggregate()
    assert cells(again) == cells(packed)


@SETTINGS
@given(ratings, st.sampled_from(["drop", "half"]))
def test_ratings_against_a_double_loop(ratings, ties):
    expected: dict = {}
    for (item, who, score), (other, by, rated) in itertools.combinations(ratings, 2):
        if who != by or item == other or (score == rated and ties == "drop"):
            continue
        key = (*sorted((item, other)), who)
        lower_wins = 0.5 if score == rated else float((score > rated) == (item < other))
        before = expected.get(key, (0.0, 0.0))
        expected[key] = (before[0] + lower_wins, before[1] + 1.0)
    table = {
        "item": [i for i, _, _ in ratings],
        "who": [w for _, w, _ in ratings],
        "score": [s for _, _, s in ratings],
    }
    try:
        votes = rt.Comparisons.from_ratings(
            table, item="item", rating="score", annotator="who", ties=ties
        )
    except rt.errors.DataError:
        assert expected == {}
    else:
        assert cells(votes) == expected


@SETTINGS
@given(rows, st.sets(st.sampled_from(PEOPLE), max_size=2))
def test_leaving_annotators_out_leaves_the_others_alone(rows, names):
    votes = read(rows)
    kept = {key: value for key, value in cells(votes).items() if key[2] not in names}
    if not kept:
        return
    rest = votes.without_judges(names)
    assert cells(rest) == kept
    assert rest.items == votes.items
    assert rest.annotators == tuple(name for name in votes.annotators if name not in names)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(1, 6))
def test_candidates_are_exactly_all_pairs(items, annotators):
    votes = rt.Comparisons(
        np.array([0]),
        np.array([1]),
        np.array([0]),
        np.array([1.0]),
        None,
        tuple(range(items)),
        tuple(range(annotators)),
    )
    found = rt.Candidates.pairs(votes)
    asked = list(
        zip(found.first.tolist(), found.second.tolist(), found.annotator.tolist(), strict=True)
    )
    assert len(asked) == len(set(asked))
    assert set(asked) == {
        (i, j, k) for i, j in itertools.combinations(range(items), 2) for k in range(annotators)
    }


@SETTINGS
@given(rows, st.booleans(), st.sampled_from([0, 50]))
def test_a_table_of_the_votes_is_read_as_the_same_votes(rows, aggregate, empty) -> None:
    votes = read(rows, aggregate=aggregate)
    table = (votes.padded(votes.num_comparisons + empty) if empty else votes).to_frame()
    columns = {
        "first": "first",
        "second": "second",
        "annotator": "annotator",
        "outcome": "outcome",
        "count": "count",
    }
    again = rt.Comparisons.from_frame(table, **columns, ties="half", items=ITEMS, annotators=PEOPLE)
    assert table["count"].sum() == len(rows)
    expected = votes.aggregate()
    for name in ("first", "second", "annotator", "wins", "count"):
        np.testing.assert_array_equal(getattr(again, name), getattr(expected, name))
