"""Behavioural cloning, its bound, and positive with negative demonstrations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

import raters as rt
from raters import imitation
from raters.errors import DataError, SettingError
from tests.imitation.worlds import SETTINGS, discounted_worlds, world, worlds
from tests.refusals import raises_about


@SETTINGS
@given(worlds, st.integers(0, 2**32 - 1))
def test_clones_are_shares(given_world, seed):
    mdp = given_world.mdp
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2.0, mdp.allowed.shape) * mdp.allowed
    counts[0] = 0
    likely = imitation.clone(mdp, counts, pseudo_counts=0.0)
    shown = counts.sum(1) > 0
    expected = counts[shown] / counts[shown].sum(1, keepdims=True)
    np.testing.assert_allclose(likely[shown], expected, atol=1e-15)
    np.testing.assert_array_equal(likely[~shown], imitation.uniform_policy(mdp)[~shown])
    # No policy near it has a larger likelihood.
    for share in (0.01, 0.3):
        other = (1 - share) * likely + share * given_world.policy
        done = counts > 0
        change = counts[done] @ (np.log(other[done]) - np.log(likely[done]))
        assert change <= 1e-12
    smooth = imitation.clone(mdp, counts, pseudo_counts=2.0)
    np.testing.assert_allclose(smooth.sum(1), 1)
    assert (smooth[mdp.allowed] > 0).all()
    assert (smooth[~mdp.allowed] == 0).all()


@SETTINGS
@given(worlds)
def test_the_clone_of_an_occupancy_has_it(given_world):
    mdp, _, own, other = given_world
    visits = [imitation.occupancy(mdp, policy) for policy in (own, other)]
    mixed = 0.3 * visits[0] + 0.7 * visits[1]
    policy = imitation.clone(mdp, mixed, pseudo_counts=0.0)
    np.testing.assert_allclose(imitation.occupancy(mdp, policy), mixed, atol=1e-9)


@SETTINGS
@given(discounted_worlds, st.integers(0, 2**32 - 1))
def test_the_loss_of_cloning_is_bounded(given_world, seed):
    mdp, reward, own, other = given_world
    best = imitation.optimal_policy(mdp, reward).policy
    rng = np.random.default_rng(seed)
    wrong = np.eye(mdp.num_actions)[[rng.choice(np.flatnonzero(row)) for row in mdp.allowed]]
    for state in range(mdp.num_states):
        found = imitation.cloning_bound(mdp, reward, best, wrong, start=state)
        # Proposition 3.1 for deterministic policies and rewards in [-1, 1].
        visits = imitation.occupancy(mdp, best, start=state, normalised=True).sum(1)
        disagreement = visits @ (best.argmax(1) != wrong.argmax(1))
        span = np.ptp(reward[mdp.allowed])
        assert found.bound == pytest.approx(span * disagreement / (1 - mdp.discount) ** 2)
        assert found.bound <= 2 * disagreement / (1 - mdp.discount) ** 2
        assert -1e-9 <= found.gap <= found.bound + 1e-9
        values = [imitation.state_values(mdp, reward, of)[state] for of in (best, wrong)]
        assert found.gap == pytest.approx(values[0] - values[1], abs=1e-9)
        soft = imitation.cloning_bound(mdp, reward, own, other, start=state)
        assert abs(soft.gap) <= soft.bound + 1e-9


def test_the_bound_is_nearly_reached():
    # One mistake at the start, and all is lost: 1 a step or -1.
    mdp = rt.MDP.from_arrays(
        [[[1, 0], [0, 1]], [[0, 1], [0, 1]]], discount=0.9, start=[1, 0], features=np.eye(2)
    )
    good, wrong = np.array([[1.0, 0], [1, 0]]), np.array([[0.99, 0.01], [1, 0]])
    found = imitation.cloning_bound(mdp, [1.0, -1.0], good, wrong)
    assert found.bound == pytest.approx(2 * 0.01 / 0.1**2)
    assert found.gap > 0.8 * found.bound


# ---------------------------------------------------------------- positive and negative


def objective(flat, mdp, weight, penalty):
    logits = np.where(mdp.allowed, 0.0, -np.inf)
    logits[mdp.allowed] = flat
    log_probs = log_softmax(logits, 1)[mdp.allowed]
    return penalty / 2 * flat @ flat - weight[mdp.allowed] @ log_probs


@pytest.mark.parametrize("seed", range(3))
def test_positive_and_negative_with_a_penalty(seed):
    mdp = world(seed).mdp
    rng = np.random.default_rng(seed)
    good, bad = (rng.poisson(3.0, mdp.allowed.shape) * mdp.allowed for _ in range(2))
    policy = imitation.positive_negative_cloning(mdp, good, bad, penalty=2.0)
    weight = (good - bad).astype(float)
    begin = rng.normal(size=int(mdp.allowed.sum()))
    found = minimize(objective, begin, (mdp, weight, 2.0), method="BFGS", options={"gtol": 1e-8})
    logits = np.where(mdp.allowed, 0.0, -np.inf)
    logits[mdp.allowed] = found.x
    np.testing.assert_allclose(policy, np.exp(log_softmax(logits, 1)), atol=1e-4)


def test_without_a_penalty_the_objective_has_no_bottom():
    one = rt.MDP.from_arrays(np.ones((1, 3, 1)), actions=["a", "b", "c"])
    weight = np.array([[6.0, 0.0, -1.0]])
    levels = [
        objective(np.array([0.0, 0.0, -far]), one, weight, 0.0) for far in (10, 1e3, 1e6, 1e9)
    ]
    assert (np.diff(levels) < 0).all()
    assert levels[-1] < -1e8
    with raises_about(SettingError, "penalty", None) as caught:
        imitation.positive_negative_cloning(one, [[6, 0, 0]], [[0, 0, 1]])
    assert "unbounded below: action 'c' in state 0" in str(caught.value)


def test_without_what_is_worse_it_is_cloning():
    one = rt.MDP.from_arrays(np.ones((1, 3, 1)))
    policy = imitation.positive_negative_cloning(one, [[6, 3, 1]], [[1, 1, 1]])
    np.testing.assert_allclose(policy, [[5 / 7, 2 / 7, 0]])
    # Nothing else can be done in the second state.
    two = rt.MDP.from_arrays(np.ones((2, 2, 2)) / 2, allowed=[[True, True], [True, False]])
    policy = imitation.positive_negative_cloning(two, [[1, 1], [0, 0]], [[0, 0], [3, 0]])
    np.testing.assert_allclose(policy, [[0.5, 0.5], [1, 0]])


SOME = [[1, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("kind", "parameter", "call"),
    [
        (DataError, "counts", lambda mdp: imitation.clone(mdp, [[1, 2]])),
        (DataError, "counts", lambda mdp: imitation.clone(mdp, [[1, 2, 0], [1, 2, -1]])),
        (DataError, "counts", lambda mdp: imitation.clone(mdp, [[0, 0, 1], [0, 0, 1]])),
        (SettingError, "pseudo_counts", lambda mdp: imitation.clone(mdp, SOME, pseudo_counts=-1)),
        (
            SettingError,
            "penalty",
            lambda mdp: imitation.positive_negative_cloning(mdp, SOME, SOME, penalty=0),
        ),
        (
            SettingError,
            "discount",
            lambda mdp: imitation.cloning_bound(
                rt.MDP.grid(1, 2, ends=[(0, 1)], discount=1.0), [0, 1], np.eye(4)[[0, 0, 0]], [[1]]
            ),
        ),
    ],
)
def test_what_does_not_fit_is_refused(kind, parameter, call):
    table = np.ones((2, 3, 2)) / 2
    mdp = rt.MDP.from_arrays(table, allowed=[[True, True, False], [True] * 3])
    with raises_about(kind, parameter):
        call(mdp)
