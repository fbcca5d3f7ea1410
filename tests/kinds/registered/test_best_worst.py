"""Best–worst answers in audits, agreement, reports and results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.kinds import rankings as auditing

MODEL = rt.ExtendedPlackettLuce(worth_scale=1.0)
DRINKS = ["tea", "milk", "beer", "mead", "wine"]
ROLES = {"offered": ["Item*"], "best": "BestItem", "worst": "WorstItem"}


def table() -> pd.DataFrame:
    """Ann, bob and cat prefer tea, and wine least, more or less; eve swaps the best and the
    worst."""
    rng, rows = np.random.default_rng(0), []
    worth = np.linspace(1.6, -1.6, 5)
    for number in range(60):
        who = ["ann", "bob", "cat", "eve"][number % 4]
        shown = rng.permutation(5)[:4]
        utility = 1.2 * worth[shown]
        best = int(np.argmax(utility + rng.gumbel(size=4)))
        low = np.where(np.arange(4) == best, -np.inf, rng.gumbel(size=4) - utility)
        named = [best, int(np.argmax(low))][:: -1 if who == "eve" else 1]
        names = np.array(DRINKS)[shown]
        rows.append([*names, *names[named], who])
    return pd.DataFrame(
        rows, columns=[*(f"Item{n}" for n in range(1, 5)), "BestItem", "WorstItem", "who"]
    )


@pytest.fixture(scope="module")
def answers() -> rt.Rankings:
    return rt.Rankings.from_best_worst(table(), **ROLES, annotator="who")


@pytest.fixture(scope="module")
def result(answers, fit_quietly):
    return fit_quietly(MODEL, answers, rt.PGGibbs(draws=300, warmup=50, chains=2))


def test_who_swaps_the_best_and_the_worst_has_a_negative_competence(result) -> None:
    """By 15 answers of each; the order of the items is that of the crowd."""
    audit = rt.audit(MODEL, result, reference="crowd")
    frame = audit.table.to_dataframe()
    assert audit.flagged == ["eve"]
    assert frame.loc["eve", "p_adversarial"] > 0.95
    assert frame.loc["eve", "competence_high"] < 0 < frame.loc["ann", "competence_low"]
    assert frame.loc["eve", "agreement"] < 0.5 < frame.loc["ann", "agreement"]
    order = result["posterior"]["worth"].mean(("chain", "draw")).to_series()
    assert order.idxmax() == "tea"
    assert order.idxmin() == "wine"


def test_agreement_counts_the_pairs_of_the_best_and_the_worst() -> None:
    """Of x first and z last of four, five of six pairs; w and y are open."""
    data = rt.Rankings.from_best_worst(
        {"a": ["x"], "b": ["y"], "c": ["z"], "d": ["w"], "best": ["x"], "worst": ["z"]},
        offered=list("abcd"),
        best="best",
        worst="worst",
        items=["w", "x", "y", "z"],
    )
    # In the order x > z > y > w, z is wrongly below y and w.
    np.testing.assert_allclose(auditing.agreement(data, np.array([0, 3, 1, 2])), [3 / 5])
