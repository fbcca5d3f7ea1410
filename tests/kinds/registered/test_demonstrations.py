"""Demonstrations in every verb: audits, reports, checks, questions and campaigns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError
from raters.kinds.demonstrations import at_random, read_demonstrations
from tests import hand
from tests.refusals import raises_about
from tests.reporting.test_report import check_forms

_SVI = rt.SVI(steps=700, draws=1500)


@pytest.fixture(scope="module")
def crowd() -> tuple[rt.Demonstrations, dict[str, Any]]:
    return rt.datasets.demonstration_crowd(
        3, 3, 6, 6, 10, seed=3, num_features=2, careless=0.17, adversaries=0.17
    )


@pytest.fixture(scope="module")
def model() -> rt.MaxEntIRL:
    return rt.MaxEntIRL()


@pytest.fixture(scope="module")
def result(crowd, model, fit_quietly):
    return fit_quietly(model, crowd[0], _SVI)


# ---------------------------------------------------------------- audits


def test_the_audit_tells_adversaries_and_the_careless(crowd, model, result) -> None:
    audit = rt.audit(model, result)
    table, kind = audit.table.to_dataframe(), crowd[1]["kind"]
    assert audit.judged == "rationality"
    # Nothing but the crowd tells which goal is the right one, so that nobody is dropped.
    assert set(table.loc[kind != "competent", "verdict"]) <= {"differs from the crowd", "review"}
    assert set(table.loc[kind == "competent", "verdict"]) == {"keep"}
    assert (table.loc[kind == "adversary", "p_adversarial"] > 0.95).all()
    relative = table["rationality"] / table["rationality"].abs().mean()
    np.testing.assert_allclose(table["relative"], relative, atol=0.1)
    # One in four actions by chance.
    assert table.loc[kind == "competent", "agreement"].mean() > 0.3
    assert table.loc[kind == "adversary", "agreement"].max() < 0.2
    reward, policy = audit.tables["reward"], audit.tables["policy"]
    assert reward["identified"].values.tolist() == [1, 1]
    np.testing.assert_allclose(policy["probability"].sum("action"), 1, atol=1e-6)
    assert int(policy["steps"].sum()) == crowd[0].num_steps


def test_nobody_is_kept_where_all_act_at_random() -> None:
    """Rationalities are then those of the prior, near 1, about a reward of nearly none."""
    mdp = rt.MDP.grid(3, 3, features={"sun": np.eye(3), "mud": np.eye(3)[::-1]})
    model, rng = rt.MaxEntIRL(), np.random.default_rng(0)
    rewards, who = rng.normal(0, 0.03, (300, 2)), rng.normal(1, 0.2, (300, 6))
    chance, goal = np.full((6, 9, 4), 0.25), np.tile(_towards(mdp, model, [2.0, -2.0]), (6, 1, 1))
    found = {}
    for name, policy in (("random", chance), ("good", goal)):
        shown = rt.Demonstrations.rollouts(mdp, policy, trajectories=6, steps=10, seed=0)
        found[name] = rt.program.Program(model, shown)
    draws = {"coefficient": rewards, "rationality": who}
    assert at_random(found["random"], draws, 0.1).all()
    strong = np.tile([2.0, -2.0], (300, 1))
    assert not at_random(found["random"], draws | {"coefficient": strong}, 0.1).any()
    # Where demonstrations are far more probable under a goal, weak ones are not called random.
    near = np.where(np.arange(300)[:, None] < 150, strong, rewards)
    assert not at_random(found["good"], draws | {"coefficient": near}, 0.1).any()


def _towards(mdp: rt.MDP, model: rt.MaxEntIRL, coefficient: list[float]) -> np.ndarray:
    """The policy of a rationality of 1, shape (state, action)."""
    data = rt.Demonstrations.rollouts(mdp, np.full((9, 4), 0.25), trajectories=1, steps=1, seed=0)
    policy = np.exp(model.log_policies(data, np.array(coefficient), np.ones(1))[0], dtype=float)
    return policy / policy.sum(1, keepdims=True)


def test_the_report_has_the_reward_and_the_policy(model, result) -> None:
    report = rt.report(model, result, rt.audit(model, result))
    sections = report.facts["sections"]
    assert {"reward", "policy"} <= set(sections)
    assert sections["reward"]["findings"][0]["down"] == [0, 1]
    reasons = [row["reason"] for row in report.facts["annotators"] if row["reason"]]
    assert "adversarial" in [reason["code"] for reason in reasons]
    check_forms(report)
    assert " votes" not in report.to_html()


def test_cloning_is_audited_predicted_and_checked(crowd, fit_quietly) -> None:
    model, data = rt.models.BehaviouralCloning(), crowd[0]
    result = fit_quietly(model, data, rt.PGEM(draws=100))
    audit = rt.audit(model, result)
    assert audit.judged == "competence"
    assert {"p_guessing", "agreement"} <= set(audit.table)
    check_forms(rt.report(model, result, audit))
    probability = rt.predict(model, result)
    assert probability.dims == ("chain", "draw", "answer", "step")
    np.testing.assert_allclose(probability.sum("answer"), 1, atol=1e-5)
    assert rt.check(model, result, replicates=400).table["observed"].notnull().all()
    drawn = rt.simulate(model, data, seed=0)
    assert drawn.data.num_steps == data.num_steps
    assert drawn.data.trajectory is None


# ---------------------------------------------------------------- tables


def test_features_beside_transitions(crowd, tmp_path) -> None:
    data = crowd[0]
    hand.write_demonstrations(data, tmp_path)
    steps, moves, cells = (
        pd.read_csv(tmp_path / f"{name}.csv") for name in ("demos", "transitions", "features")
    )
    roles = {"state": "st", "action": "a", "annotator": "who", "discount": 0.9}
    read = read_demonstrations(steps, transitions=moves, state_features=cells, **roles)
    assert read.feature_names == ("warm", "high")
    order = [read.actions.index(name) for name in data.actions]
    np.testing.assert_allclose(read.transition[:, order], data.transition, atol=1e-12)
    np.testing.assert_allclose(read.features, data.features, atol=1e-12)
    paid = read_demonstrations(
        steps, transitions=moves.assign(pay=2.0), state_features=cells, **roles
    )
    assert paid.feature_names == ("pay", "warm", "high")
    np.testing.assert_allclose(paid.features[..., 0], 2.0)
    assert read_demonstrations(steps, transitions=moves, **roles).num_features == 9
    twice = pd.concat([cells, cells[:1]])
    for wrong in (
        cells.drop(index=0),
        cells.assign(warm="x"),
        twice,
        cells.rename(columns={"state": "z"}),
    ):
        with raises_about(DataError, "state_features"):
            read_demonstrations(steps, transitions=moves, state_features=wrong, **roles)
    with raises_about(DataError, "transitions"):
        read_demonstrations(steps, transitions=cells, **roles)
