"""Rewards by stratum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import raters as rt

REWARD = np.array([-1.0, -0.3, 0.3, 1.0])
DEVIATION = np.array([[0.6, -0.2, 0.2, -0.6], [-0.5, 1.0, -1.0, 0.5]])


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """1,200 votes of two annotators in two strata, in which items two and three change places."""
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=1200)
    second = (first + rng.integers(1, 4, size=1200)) % 4
    stratum = rng.integers(2, size=1200)
    reward = REWARD + DEVIATION
    won = rng.random(1200) < 1 / (1 + np.exp(reward[stratum, second] - reward[stratum, first]))
    table = pd.DataFrame(
        {
            "a": first,
            "b": second,
            "won": np.where(won, "first", "second"),
            "topic": np.array(["code", "talk"])[stratum],
            "who": rng.integers(2, size=1200),
        }
    )
    return rt.Comparisons.from_frame(
        table, first="a", second="b", outcome="won", annotator="who", stratum="topic"
    )


def test_strata_are_read_and_kept_apart(votes) -> None:
    assert votes.strata == ("code", "talk")
    assert votes.num_votes == 1200
    assert votes.num_rows == 4 * 3 * 2 * 2
    votes.check()
    columns = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    again = rt.Comparisons.from_frame(votes.to_frame(), **columns, stratum="stratum")
    for name in ("first", "second", "annotator", "stratum", "wins", "count"):
        np.testing.assert_array_equal(getattr(votes, name), getattr(again, name))


@pytest.mark.slow
def test_orders_within_strata_are_recovered(votes, fit_quietly) -> None:
    """Each within 4.5 posterior standard deviations; false-alarm rate below 1e-4."""
    model = rt.BTL(strata=True)
    result = fit_quietly(model, votes, rt.PGGibbs(draws=300, chains=2))
    posterior = result.posterior
    own = (posterior["reward"] + posterior["deviation"]).transpose("stratum", "item", ...)
    truth = REWARD + DEVIATION
    truth = truth - truth.mean(1, keepdims=True)
    mean, sd = (getattr(own, of)(("chain", "draw")).values for of in ("mean", "std"))
    assert np.abs((mean - truth) / sd).max() < 4.5
    # Centred, in each stratum and in common.
    for name in ("reward", "deviation"):
        assert np.abs(posterior[name].sum("item")).max() < 1e-4
    # Questions of a stratum by its rewards, those of none by the common ones.
    asked = dataclasses.replace(rt.Candidates.pairs(votes), stratum=None)
    for questions, reward in (
        (asked, posterior["reward"]),
        (asked.in_stratum("talk"), own.sel(stratum="talk").transpose("chain", "draw", "item")),
    ):
        gap = reward.values[..., asked.first] - reward.values[..., asked.second]
        table = rt.predict(model, result, questions)
        np.testing.assert_allclose(table, 1 / (1 + np.exp(-gap)), atol=1e-5)
