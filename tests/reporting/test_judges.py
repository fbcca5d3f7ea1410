"""Boards of judges find what was planted: biases, copies, drift, people who agree."""

from __future__ import annotations

import functools
import json

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError, DataWarning, SettingError
from raters.reporting.judges.cheapest_panel import cheapest_panel
from raters.reporting.judges.drift import drifts
from raters.reporting.judges.verdicts import Verdicts, times

ACCURACY = {"ann": 0.85, "bob": 0.85, "good": 0.9, "copy": 0.9, "first": 0.7, "long": 0.7}
NUM_QUESTIONS = 300


@functools.cache
def verdicts() -> tuple[pd.DataFrame, np.ndarray]:
    """Verdicts on pairs of answers, each in both orders, by two people and four judges: one copies
    another, one favours what is shown first, and one the longer answer."""
    rng = np.random.default_rng(0)
    truth, gap = rng.integers(0, 2, NUM_QUESTIONS), rng.normal(size=NUM_QUESTIONS)
    rows = []
    for judge, accuracy in ACCURACY.items():
        right = rng.random(NUM_QUESTIONS) < accuracy
        for swapped in (0, 1):
            says = np.where(right, truth, 1 - truth)
            shift = rng.random(NUM_QUESTIONS) < 0.4
            if judge == "first":
                says = np.where(shift, swapped, says)
            if judge == "long":
                says = np.where(shift, (gap < 0).astype(int), says)
            columns = {"question": np.arange(NUM_QUESTIONS), "judge": judge, "winner": says}
            columns |= {"chars_0": 100 + gap, "chars_1": np.full(NUM_QUESTIONS, 100)}
            rows.append(pd.DataFrame(columns | {"swapped": swapped}))
    table = pd.concat(rows)
    copy = table[table["judge"] == "good"].assign(judge="copy")
    return pd.concat([table[table["judge"] != "copy"], copy]), truth


@functools.cache
def board(with_gold: bool) -> rt.reporting.judges.Judges:
    table, truth = verdicts()
    labels = rt.Labels.from_frame(
        table,
        item="question",
        annotator="judge",
        label="winner",
        columns=["swapped", "chars_0", "chars_1"],
    )
    result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(), seed=0, progress=False)
    gold = {place: int(truth[place]) for place in range(100)} if with_gold else None
    price = {"good": 3.0, "first": 1.0}
    return rt.judges(
        result,
        people=["ann", "bob"],
        gold=gold,
        swapped="swapped",
        lengths=("chars_0", "chars_1"),
        cost=price,
    )


def test_a_board_has_the_judges_and_the_planted_accuracies() -> None:
    table = board(with_gold=True).table
    assert set(table.index) == {"good", "copy", "first", "long"}
    assert table["accuracy"].is_monotonic_decreasing
    # Intervals of 90 %, widened by a half: a false alarm of 1 in 100 each, under this seed.
    for judge in ("good", "copy"):
        row = table.loc[judge]
        reach = 0.75 * (row["accuracy_high"] - row["accuracy_low"])
        assert abs(row["accuracy"] - 0.9) < reach
    assert table.loc["good", "cost_per_right"] == pytest.approx(3 / table.loc["good", "accuracy"])


def test_biases_are_the_judges_that_have_them() -> None:
    table = board(with_gold=True).table
    assert table.loc["first", "position_bias_low"] > 0.1
    assert table.loc["long", "length_bias_low"] > 0.1
    for judge, other in (("first", "length_bias"), ("long", "position_bias")):
        assert abs(table.loc[judge, other]) < 0.1
    assert table.loc["good", "consistency"] == 1.0
    # Of both orders, .4 · .4 show a bias in both, which then contradict one another, and so on.
    assert table.loc["first", "consistency"] == pytest.approx(0.6, abs=0.1)


def test_copies_are_most_alike() -> None:
    found = board(with_gold=True)
    assert found.table.loc["good", "most_alike"] == "copy"
    assert found.table.loc["good", "correlation"] == pytest.approx(1.0)
    assert found.shared is not None
    assert found.shared.judges == 4


def test_agreement_with_people_is_beside_that_of_people() -> None:
    found = board(with_gold=False)
    assert "ann" in found.truth
    expected = 0.85 * 0.85 + 0.15 * 0.15
    assert found.table["people_agreement"].iloc[0] == pytest.approx(expected, abs=0.08)
    assert found.table.loc["first", "p_below_people"] > found.table.loc["good", "p_below_people"]
    # Of each person with the other alone.
    assert found.people["agreement"].nunique() == 1


def test_forms_have_the_same_numbers(tmp_path) -> None:
    found = board(with_gold=True)
    rows = json.loads(found.to_json())["rows"]
    assert [row["accuracy"] for row in rows] == found.table["accuracy"].tolist()
    for form in (found.to_text(), found.to_markdown(), found.to_html(), found._repr_html_()):
        assert all(judge in form for judge in found.table.index)
    found.save(tmp_path / "board.md")
    assert (tmp_path / "board.md").read_text(encoding="utf-8") == found.to_markdown()


def test_what_is_no_judge_or_no_column_is_refused() -> None:
    table, _ = verdicts()
    labels = rt.Labels.from_frame(table, item="question", annotator="judge", label="winner")
    result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(), seed=0, progress=False)
    with pytest.raises(SettingError):
        rt.judges(result, people=["eve"])
    with pytest.raises(SettingError):
        rt.judges(result, people=list(ACCURACY))
    with pytest.raises(DataError):
        rt.judges(result, swapped="swapped")
    for wrong in ({"lengths": ("one",)}, {"cost": {"good": -1.0}}, {"cost": {"good": np.nan}}):
        with pytest.raises(SettingError):
            rt.judges(result, **wrong)
    texts = table.assign(swapped="first", day="11/29/2026")
    labels = rt.Labels.from_frame(
        texts, item="question", annotator="judge", label="winner", columns=["swapped", "day"]
    )
    result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(), seed=0, progress=False)
    for wrong in ({"swapped": "swapped"}, {"time": "day"}, {"lengths": ("day", "swapped")}):
        with pytest.raises(DataError):
            rt.judges(result, **wrong)
    with pytest.raises(SettingError):
        rt.judges(result, cost={"eve": 1.0})


def test_a_judge_without_a_bias_is_not_accused() -> None:
    table = board(with_gold=True).table.loc["good"]
    for name in ("position_bias", "length_bias"):
        assert table[f"{name}_low"] < 0 < table[f"{name}_high"]


def test_unix_seconds_are_times_as_dates_are() -> None:
    table, _ = verdicts()
    seconds = 1_700_000_000 + 60 * table["question"]
    table = table.assign(seconds=seconds, date=pd.to_datetime(seconds, unit="s").astype(str))
    labels = rt.Labels.from_frame(
        table, item="question", annotator="judge", label="winner", columns=["seconds", "date"]
    )
    np.testing.assert_array_equal(times(labels, "seconds"), times(labels, "date"))
    assert len(np.unique(times(labels, "seconds"))) == NUM_QUESTIONS


def test_one_judge_is_measured_by_gold_and_votes_by_the_crowd() -> None:
    table, truth = verdicts()
    alone = table[table["judge"] == "good"]
    labels = rt.Labels.from_frame(alone, item="question", annotator="judge", label="winner")
    with pytest.warns(DataWarning, match="two annotators"):
        result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(), seed=0, progress=False)
    found = rt.judges(result, gold={place: int(truth[place]) for place in range(100)})
    assert found.shared is None
    assert found.table.loc["good", "accuracy"] == pytest.approx(0.9, abs=0.08)
    votes = rt.datasets.separated(num_items=6, num_annotators=4, num_votes=400, seed=0)[0]
    fitted = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    by_crowd = rt.judges(fitted)
    assert "crowd alone" in by_crowd.truth
    assert "consistency" not in by_crowd.table
    orders = pd.DataFrame({"winner": votes.items[:-1], "loser": votes.items[1:]})
    assert rt.judges(fitted, gold=orders).shared is not None


def test_halved_ties_are_ties_that_agree(fit_quietly) -> None:
    rows = [
        ("tea", "mead", "tie"),
        ("mead", "tea", "tie"),
        ("tea", "mead", "tea"),
        ("mead", "tea", "tea"),
    ] * 3
    frame = pd.DataFrame(rows, columns=["left", "right", "says"])
    frame = pd.concat([frame.assign(who=who) for who in ("x", "y")])
    frame["question"] = np.tile(np.repeat(np.arange(6), 2), 2)
    votes = rt.Comparisons.from_frame(
        frame,
        first="left",
        second="right",
        outcome="says",
        annotator="who",
        ties="half",
        columns=["question"],
    )
    result = fit_quietly(rt.ExtendedBTL("signed"), votes, rt.PGEM(), seed=0)
    assert (rt.judges(result, question="question").table["consistency"] == 1.0).all()


def drifting(seed: int, after: float) -> tuple[Verdicts, list[int]]:
    """Five judges who are right on four of five questions, the first from the middle on less."""
    rng = np.random.default_rng(seed)
    number = 600
    tables = []
    for judge in range(5):
        right = np.full(number, 0.8)
        if judge == 0:
            right[number // 2 :] = after
        answer = (rng.random(number) < right).astype(int)
        columns = {"judge": judge, "question": np.arange(number), "answer": answer}
        tables.append(pd.DataFrame(columns | {"time": np.arange(number) // 20, "weight": 1.0}))
    truth = np.ones((3, number), int)
    return Verdicts(pd.concat(tables, ignore_index=True), truth, tuple("abcde")), list(range(5))


def test_drift_is_found_and_seldom_where_there_is_none() -> None:
    rng = np.random.default_rng(1)
    table = drifts(*drifting(0, after=0.55), rng)
    assert table.loc[0, "drift_p"] < 0.01
    assert abs(table.loc[0, "drift_time"] - 15) <= 3
    assert (table.loc[1:, "drift_p"] > 0.01).all()
    # With the probability of one false alarm at most .1, more than 7 of 20 have 4e-4.
    alarms = sum(
        bool((drifts(*drifting(s, 0.8), rng)["drift_p"] < 0.1).any()) for s in range(1, 21)
    )
    assert alarms <= 7


def test_a_cheap_panel_is_chosen_where_it_reaches_the_accuracy() -> None:
    rng = np.random.default_rng(0)
    number, tables = 1000, []
    for judge, accuracy in enumerate((0.95, 0.8, 0.8, 0.8, 0.5)):
        answer = (rng.random(number) < accuracy).astype(int)
        columns = {"judge": judge, "question": np.arange(number), "answer": answer}
        tables.append(pd.DataFrame(columns | {"weight": 1.0}))
    table = Verdicts(pd.concat(tables), np.ones((50, number), int), tuple("abcde"))
    cost = np.array([10.0, 1.0, 1.0, 1.0, 1.0])
    # Three independent judges of .8 are right together on .896 of all questions.
    cheap = cheapest_panel(table, list(range(5)), cost, 0.87, 0.9, rng)
    assert cheap is not None
    assert set(cheap.members) == {"b", "c", "d"}
    assert cheap.accuracy_low < 0.896 < cheap.accuracy_high
    dear = cheapest_panel(table, list(range(5)), cost, 0.93, 0.9, rng)
    assert dear is not None
    assert dear.members == ("a",)
