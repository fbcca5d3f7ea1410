"""Rewards by stratum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import BackendError, DataError, SettingError
from raters.families.comparisons import by_stratum, stratum_rewards
from raters.kinds import AuditContext
from tests.refusals import raises_about

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


def test_padding_storing_and_joining_keep_strata(votes) -> None:
    padded = votes.padded(64)
    padded.check()
    np.testing.assert_array_equal(padded.aggregate().stratum, votes.stratum)
    assert rt.Comparisons.unpack(votes.packed(), votes.flags()).strata == votes.strata
    assert votes.joined(votes).aggregate().num_rows == votes.num_rows
    with pytest.raises(DataError, match="no stratum"):
        votes.joined(dataclasses.replace(votes, stratum=None))


def test_a_code_of_no_stratum_is_refused(votes) -> None:
    wrong = dataclasses.replace(votes, stratum=np.full(votes.num_rows, 2, np.int32))
    with pytest.raises(DataError, match="codes of the 2 strata"):
        wrong.check()


def test_questions_are_of_a_stratum_by_its_name(votes) -> None:
    every = rt.Candidates.pairs(votes)
    assert np.bincount(every.stratum).tolist() == [6 * 2 * 2] * 2  # pairs, orders, annotators
    assert len(np.unique(every.keys())) == every.num_rows
    ask = rt.Candidates.pairs(votes, items=[0, 1]).in_stratum("talk").recoded(votes, ["item"])
    assert set(ask.stratum.tolist()) == {1}
    assert set(ask.question_names()["stratum"]) == {"talk"}
    with pytest.raises(DataError, match="poems"):
        rt.Candidates.pairs(votes).in_stratum("poems")


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


def test_votes_without_strata_are_refused(votes) -> None:
    bare = dataclasses.replace(votes, stratum=None, strata=())
    with raises_about(BackendError, "strata"):
        rt.fit(rt.BTL(strata=True), bare, rt.PGEM(), seed=0)


def test_strata_that_are_not_used_or_alone_are_said(votes) -> None:
    with pytest.warns(rt.errors.DataWarning, match=r"does not use the strata .*BTL\(strata=True\)"):
        rt.fit(rt.BTL(reward_scale=1.0), votes, rt.PGEM(draws=0), seed=0, progress=False)
    assert rt.ExtendedBTL(strata=True).data_warnings(votes) == ()
    one = votes.rows(np.asarray(votes.stratum) == 0)
    assert "one stratum" in rt.BTL(strata=True).data_warnings(one)[0]


def test_a_spread_must_be_positive() -> None:
    with raises_about(SettingError, "deviation_spread", 0.0):
        rt.BTL(strata=True, deviation_spread=0.0)


@pytest.mark.slow
def test_reports_rank_by_stratum_and_audits_judge_by_it(votes, fit_quietly) -> None:
    model = rt.ExtendedBTL(competence="signed", strata=True)
    result = fit_quietly(model, votes, rt.PGGibbs(draws=100, chains=2))
    audit = rt.audit(model, result)
    section = by_stratum(AuditContext(rt.program.Program(model, votes), result, audit, 0.9))
    reward = stratum_rewards(result).mean(("chain", "draw")).values
    for name, own in zip(("code", "talk"), reward, strict=True):
        rows = section.table[section.table["stratum"] == name]
        assert rows["item"].tolist() == np.argsort(-own).tolist()
    right = np.where(
        reward[votes.stratum, votes.first] > reward[votes.stratum, votes.second],
        votes.wins,
        votes.count - votes.wins,
    )
    share = np.bincount(votes.annotator, right) / np.bincount(votes.annotator, votes.count)
    agreement = audit.table["agreement"].sel(annotator=list(votes.annotators))
    np.testing.assert_allclose(agreement, share, rtol=1e-6)


@pytest.mark.parametrize("settings", [{"deviation_spread": 0.5}, {"coefficient_scale": 3.0}])
@pytest.mark.parametrize("model", [rt.BTL, rt.ExtendedBTL])
def test_settings_without_effect_are_refused(model, settings) -> None:
    with raises_about(SettingError, *settings):
        model(**settings)
