"""Posterior predictive checks: discrepancies against counts by hand, p-values, sentences, refusals,
and kinds of judgement outside the package."""

from __future__ import annotations

import dataclasses
from itertools import combinations, permutations

import numpy as np
import pytest

import raters as rt
from raters.checking import discrepancies as generic
from raters.checking.discrepancies import Draw, Layout
from raters.checking.predictive import Check, holm
from raters.fitting.predict import answer_counts, single, source_rows
from raters.judgements.counts import pairs_within
from raters.kinds import registered_kinds
from raters.kinds.comparisons import discrepancies as of_pairs
from tests import hand

pytestmark = pytest.mark.filterwarnings("ignore:.*draws:raters.errors.ConvergenceWarning")
RNG = np.random.default_rng(0)


def votes(number: int = 60, **options) -> rt.Comparisons:
    """Votes of three annotators on four items, in either order."""
    rng = np.random.default_rng(1)
    first = rng.integers(4, size=number)
    second = (first + rng.integers(1, 4, size=number)) % 4
    columns = {"a": first, "b": second, "who": rng.integers(3, size=number)}
    columns["won"] = rng.choice(["first", "second"], number)
    return rt.Comparisons.from_frame(
        columns, first="a", second="b", outcome="won", annotator="who", **options
    )


VOTES = votes(aggregate=False)
REWARD = np.array([1.0, 0.3, -0.2, -1.1])
GAP = REWARD[VOTES.first] - REWARD[VOTES.second]
PROB = 1 / (1 + np.exp(-GAP))


def layout(data, model=None, time=None) -> Layout:
    return Layout(rt.program.Program(model or rt.BTL(), single(data)), time)


def measured(discrepancy, data=VOTES, prob=PROB, time=None) -> float:
    measure = discrepancy.prepare(layout(data, time=time))
    assert not isinstance(measure, str), measure
    draw = Draw(answer_counts(single(data)), np.stack([prob, 1 - prob]), None)
    return measure(draw)


# ---------------------------------------------------------------- values by hand


def rows() -> list[tuple[int, int, int, float, float]]:
    """Smaller item, larger item, annotator, vote for the smaller, and its probability."""
    every = []
    for row in range(VOTES.num_rows):
        one, two, won = int(VOTES.first[row]), int(VOTES.second[row]), float(VOTES.wins[row])
        prob = float(PROB[row])
        if one > two:
            one, two, won, prob = two, one, 1 - won, 1 - prob
        every.append((one, two, int(VOTES.annotator[row]), won, prob))
    return every


def test_agreement_is_the_share_of_agreeing_pairs_less_its_expectation_but_for_linear_terms():
    products = [
        2 * (won - p) * (other - q)
        for (a, b, k, won, p), (c, d, m, other, q) in combinations(rows(), 2)
        if (a, b) == (c, d) and k != m
    ]
    assert measured(generic.agreement) == pytest.approx(np.mean(products))


def test_votes_of_one_annotator_on_one_item():
    products = []
    for (a, b, k, won, p), (c, d, m, other, q) in permutations(rows(), 2):
        for item in {a, b} & {c, d} if k == m else ():
            sides = [1 if item == low else -1 for low in (a, c)]
            products.append(2 * sides[0] * sides[1] * (won - p) * (other - q))
    assert measured(of_pairs.judge_items) == pytest.approx(np.mean(products))


def test_pairs_of_annotators():
    cells: dict = {}
    for a, b, k, won, p in rows():
        cells[a, b, k] = cells.get((a, b, k), 0) + won - p
    products: dict = {}
    for ((a, b, k), one), ((c, d, m), other) in combinations(cells.items(), 2):
        if (a, b) == (c, d) and k != m:
            products.setdefault(frozenset((k, m)), []).append(2 * one * other)
    mean = np.mean(np.concatenate(list(products.values())))
    pairs = [
        (x - mean) * (y - mean) for each in products.values() for x, y in permutations(each, 2)
    ]
    value = measured(generic.judge_pairs)
    assert np.sign(value) * value**2 == pytest.approx(np.mean(pairs))


def test_competence_is_the_score_of_a_competence_of_each_annotator():
    """For votes, log p(y) − E log p = (y − p) · gap."""
    total, variance = np.zeros(3), 0.0
    for row in range(VOTES.num_rows):
        total[VOTES.annotator[row]] += (VOTES.wins[row] - PROB[row]) * GAP[row]
        variance += PROB[row] * (1 - PROB[row]) * GAP[row] ** 2
    assert measured(generic.competence) == pytest.approx((total**2).sum() / variance)


def test_cycles_by_majority():
    lead: dict = {}
    for a, b, _, won, _ in rows():
        lead[a, b] = lead.get((a, b), 0) + 2 * won - 1
    cyclic = decided = 0
    for a, b, c in combinations(range(4), 3):
        one, two, across = (np.sign(lead[pair]) for pair in ((a, b), (b, c), (a, c)))
        decided += bool(one and two and across)
        cyclic += bool(one and one == two == -across)
    assert measured(of_pairs.intransitivity) == pytest.approx(cyclic / decided)


def test_position_is_the_share_of_the_first_beyond_its_probability():
    assert measured(of_pairs.position) == pytest.approx((VOTES.wins - PROB).mean())
    assert "shown first" in of_pairs.position.prepare(
        layout(dataclasses.replace(VOTES, ordered=False))
    )


def test_drift_is_a_slope_within_annotators():
    time = RNG.permutation(VOTES.num_rows).astype(float)
    surprise = (VOTES.wins - PROB) * GAP
    centred = time.copy()
    for code in range(3):
        own = VOTES.annotator == code
        centred[own] -= time[own].mean()
    slope = (surprise * centred).sum() / np.sqrt((centred**2).mean()) / len(time)
    assert measured(generic.drift, time=time) == pytest.approx(slope)
    assert measured(generic.drift, time=3 * time + 5) == pytest.approx(slope)


def test_equal_rows_in_one_cell_measure_the_same():
    cells = VOTES.aggregate()
    gap = REWARD[cells.first] - REWARD[cells.second]
    own = (generic.agreement, generic.competence, generic.judge_pairs)
    for one in (*own, of_pairs.judge_items, of_pairs.intransitivity, of_pairs.position):
        value = measured(one, cells, 1 / (1 + np.exp(-gap)))
        assert value == pytest.approx(measured(one), abs=1e-12), one.name


def test_answers_of_annotators_are_counted_by_drawn_class():
    labels = rt.datasets.label_crowd(10, 3, 3, 2, seed=0).labels
    classes = RNG.integers(2, size=10)
    prob = RNG.dirichlet(np.ones(2), labels.num_rows).T
    counts = answer_counts(labels)
    measure = generic.judge_answers.prepare(layout(labels, rt.DawidSkene()))
    cells: dict = {}
    for row in range(labels.num_rows):
        key = int(labels.annotator[row]), int(classes[labels.item[row]])
        cells[key] = cells.get(key, 0) + counts[:, row] - prob[:, row]
    expected = sum((cell**2).sum() for cell in cells.values()) / (prob * (1 - prob)).sum()
    assert measure(Draw(counts, prob, classes)) == pytest.approx(expected)


def test_every_pair_of_a_group_comes_once():
    group = np.repeat([0, 1, 2, 3], [3, 1, 0, 5])
    pairs = set(zip(*pairs_within(np.sort(group), 10**6), strict=True))
    expected = {(i, j) for i, j in combinations(range(9), 2) if group[i] == group[j]}
    assert pairs == expected
    assert set(zip(*pairs_within(np.sort(group), 12), strict=True)) < expected


def test_what_has_a_remedy_is_a_model_or_a_setting():
    for kind in registered_kinds():
        known = {cls.__name__ for cls in kind.models}
        known |= {field.name for cls in kind.models for field in dataclasses.fields(cls)}
        for one in kind.discrepancies:
            for has, _ in (*one.mends, *(one.low_mends or ())):
                assert set(has) <= known, (one.name, has)


def test_labels_with_counts_are_single_labels():
    frame = {"i": [1, 1, 2], "who": ["a", "a", "b"], "says": ["x", "x", "y"], "n": [1, 2, 1]}
    labels = rt.Labels.from_frame(frame, item="i", annotator="who", label="says", count="n")
    assert single(labels).num_rows == 4
    assert source_rows(labels).tolist() == [0, 0, 0, 1]
    padded = labels.padded(5)
    assert source_rows(padded).tolist() == [0, 0, 0, 1]
    assert single(padded).num_rows == 4


# ---------------------------------------------------------------- the verb


@pytest.fixture(scope="module")
def result():
    return rt.fit(rt.BTL(), VOTES, rt.PGEM(draws=100), seed=0, progress=False)


@pytest.fixture(scope="module")
def found(result) -> Check:
    return rt.check(rt.BTL(), result, replicates=500, time=np.arange(VOTES.num_rows))


def test_the_table_has_each_discrepancy_and_prints(found):
    names = ["agreement", "competence", "judge_items", "intransitivity", "position", "drift"]
    assert found.table["discrepancy"].values.tolist() == names
    assert dict(found.draws.sizes) == {"discrepancy": 6, "draw": 500}
    mean = found.draws["observed"].mean("draw")
    np.testing.assert_allclose(found.table["observed"], mean)
    assert ((found.table["p_value"] > 0) & (found.table["p_value"] <= 1)).all()
    assert (found.table["p_adjusted"] >= found.table["p_value"]).all()
    assert "agreement" in str(found)
    # Votes by chance fail nowhere.
    assert not found.failed


def test_p_values_are_adjusted_together():
    p = np.array([0.04, 0.001, 0.3, 0.02])
    np.testing.assert_allclose(holm(p), [0.08, 0.004, 0.3, 0.06])


def test_failures_name_the_model_that_mends_them():
    """Of three annotators, one votes against the other two."""
    rows = [
        (one, two, who) if who != "c" else (two, one, who)
        for who in "abc"
        for one, two in combinations("pqrst", 2)
        for _ in range(9)
    ]
    data = hand.votes(*rows)
    result = rt.fit(rt.BTL(), data, rt.PGEM(draws=100), seed=0, progress=False)
    found = rt.check(rt.BTL(), result, replicates=500)
    assert "competence" in found.failed
    assert 'rt.ExtendedBTL(competence="signed")' in str(found)


def test_every_failure_has_a_sentence_for_every_model():
    """Also for models to which no better one is known."""
    for kind in map(rt.kinds.kind_of, (rt.Comparisons, rt.Labels)):
        data = VOTES if kind.name == "comparisons" else rt.datasets.anesthesia("labels")
        for model in kind.models:
            program = rt.program.Program(model(), data)
            for one in kind.discrepancies:
                for is_high in (True, *([False] if one.low else [])):
                    assert isinstance(one.mend(program.model, is_high), str)
                    assert f"rt.{model.__name__}()" not in one.mend(program.model, is_high)
