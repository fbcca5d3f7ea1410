"""Rankings in audits, reports and agreement."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import raters as rt
from raters.auditing.verdicts import DIFFERS
from raters.errors import DataWarning
from raters.kinds import rankings as auditing

MODEL = rt.ExtendedPlackettLuce(worth_scale=1.0)
DRINKS = ["tea", "milk", "beer", "mead"]


def table() -> pd.DataFrame:
    """Ann, bob and cat put tea first and mead last, more or less; eve is upside down."""
    rng, rows = np.random.default_rng(0), []
    for number in range(48):
        who = ["ann", "bob", "cat", "eve"][number % 4]
        utility = (-1 if who == "eve" else 1) * np.array([1.5, 0.5, -0.5, -1.5])
        order = np.argsort(-utility - rng.gumbel(size=4))
        rows.append([who, *np.array(DRINKS)[order]])
    return pd.DataFrame(rows, columns=["who", "pos1", "pos2", "pos3", "pos4"])


@pytest.fixture(scope="module")
def rankings() -> rt.Rankings:
    return rt.Rankings.from_wide(table(), places=["pos*"], annotator="who")


@pytest.fixture(scope="module")
def result(rankings, fit_quietly):
    return fit_quietly(MODEL, rankings, rt.PGGibbs(draws=300, warmup=50, chains=2))


@pytest.fixture(scope="module")
def audit(result):
    return rt.audit(MODEL, result)


def test_an_audit_finds_who_ranks_upside_down(audit, result) -> None:
    frame = audit.table.to_dataframe()
    assert audit.judged == "competence"
    # The crowd alone does not tell who is right.
    assert not audit.flagged
    assert frame.loc["eve", "verdict"] == DIFFERS
    assert rt.audit(MODEL, result, reference="crowd").flagged == ["eve"]
    assert frame.loc["eve", "judgements"] == 12
    assert frame.loc["eve", "p_adversarial"] > 0.9
    assert frame.loc["eve", "agreement"] < 0.5 < frame.loc["ann", "agreement"]


def test_known_orders_tell_who_is_wrong(result) -> None:
    gold = {"tea": 4, "milk": 3, "beer": 2, "mead": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit = rt.audit(MODEL, result, [("tea", "mead"), ("milk", "beer")])
    assert audit.anchor.is_missing  # Two known orders do not tell whether the crowd is right.
    assert audit.table.sel(annotator="eve")["verdict"] == DIFFERS
    every = rt.calibrate(MODEL, result, gold, level=0.8)
    assert every.anchor.known == 6
    assert every.annotators["accuracy"].sel(annotator="ann") > 0.7
    eve = every.annotators.sel(annotator="eve")
    assert eve["accuracy_high"] < 0.5
    assert every.p_above("tea", "mead") > 0.99
    with pytest.warns(DataWarning, match="contradict the crowd"):
        turned = rt.calibrate(MODEL, result, {name: -value for name, value in gold.items()})
    assert turned.p_above("mead", "tea") > 0.9


def test_agreement_with_an_order_counts_pairs() -> None:
    """Of x before y, and both before z: pairs of two without a place do not count."""
    data = rt.Rankings.from_wide(
        {"who": ["a", "b", "b"], "p1": ["x", "y", "z"], "p2": ["y", None, "x"]},
        places=["p1", "p2"],
        annotator="who",
        unranked="below",
    )
    share = auditing.agreement(data, np.array([1.0, 0.0, -1.0]))
    # a: x > y, x > z, y > z; b: y > x, y > z, and z > x, z > y, x > y.
    np.testing.assert_allclose(share, [1.0, 2 / 5])


def test_kendall_w_of_full_rankings_is_friedmans_statistic(rankings) -> None:
    rank = rankings.place[np.repeat(np.arange(rankings.num_rows), rankings.weight.astype(int))]
    chi_squared = stats.friedmanchisquare(*rank.T).statistic
    found = rt.agreement(rankings)
    assert found.loc["kendall_w", "estimate"] == pytest.approx(chi_squared / (48 * 3))
    assert found.loc["kendall_w", "low"] < found.loc["kendall_w", "estimate"]
    assert found["rankings"].tolist() == [48, 48]


def test_agreement_on_pairs_is_that_of_two_annotators() -> None:
    """By hand: a and b agree on two of three pairs, a and c on the one that they share, and b and c
    not; d orders no pair that another one orders."""
    data = rt.Rankings.from_wide(
        {
            "who": ["a", "b", "c", "d"],
            "p1": ["x", "x", "y", "v"],
            "p2": ["y", "z", "z", "w"],
            "p3": ["z", "y", None, None],
        },
        places=["p*"],
        annotator="who",
        unranked="not offered",
    )
    found = rt.agreement(data)
    # Pairs xy and xz: alike by a and b. Pair yz: a and c alike, and b against both.
    assert found.loc["observed_agreement", "estimate"] == pytest.approx(3 / 5)
    assert found.loc["observed_agreement", ["rankings", "rankings_left_out"]].tolist() == [3, 1]
    # Without a: 0 of 1; without b: 1 of 1; without c: 2 of 3.
    without = np.array([0, 1, 2 / 3])
    deviation = np.sqrt(2 / 3 * ((without - without.mean()) ** 2).sum())
    high = min(3 / 5 + stats.norm.ppf(0.95) * deviation, 1)
    assert found.loc["observed_agreement", "high"] == pytest.approx(high)


def test_kendall_w_of_partial_rankings_ties_what_has_no_place() -> None:
    """By scipy's correction of Friedman's statistic for ties."""
    best = rt.Rankings.from_wide(
        {"p1": ["a", "a", "b", "c"], "p2": ["b", "c", "a", "a"]},
        places=["p1", "p2"],
        unranked="below",
        items=list("abcd"),
    )
    rank = np.where(best.place > 0, best.place, 3.5)
    chi_squared = stats.friedmanchisquare(*rank.T).statistic
    assert rt.agreement(best).loc["kendall_w", "estimate"] == pytest.approx(chi_squared / (4 * 3))
