"""Tables of Markov decision processes: read, filled in, refused, and stored."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError, RatersError, SettingError
from tests.refusals import raises_about

# Two states: to go from the first leads to the second, an end, nine times in ten.
TWO = np.array([[[1, 0], [0.1, 0.9]], [[0, 1], [0, 1]]])

# Two states that lead to each other for ever.
AROUND = np.array([[[0, 1]], [[1, 0]]])


def changed(place, value, table=TWO):
    """The table with one entry changed."""
    other = np.array(table, float)
    other[place] = value
    return other


# ---------------------------------------------------------------- arrays


def test_what_is_left_out_is_filled_in():
    mdp = rt.MDP.from_arrays(TWO)
    assert (mdp.states, mdp.actions, mdp.feature_names) == ((0, 1), (0, 1), (0, 1))
    assert (mdp.num_states, mdp.num_actions, mdp.num_features) == (2, 2, 2)
    np.testing.assert_array_equal(mdp.features, np.eye(2)[:, None].repeat(2, 1))
    np.testing.assert_array_equal(mdp.start, [1, 0])
    np.testing.assert_array_equal(mdp.reward([3, -1]), [[3, 3], [-1, -1]])
    assert mdp.allowed.all()
    assert mdp.transition.dtype == mdp.features.dtype == mdp.start.dtype == np.float64


def test_without_discount_an_end_has_no_feature_and_one_action():
    mdp = rt.MDP.from_arrays(TWO, discount=1.0)
    assert mdp.features[1].tolist() == [[0, 0], [0, 0]]
    assert mdp.allowed.tolist() == [[True, True], [True, False]]
    assert mdp.transition[1, 1].tolist() == [0, 0]
    features = np.array([[1.0], [0.0]])
    assert rt.MDP.from_arrays(TWO, discount=1.0, features=features).num_features == 1


def test_sums_that_round_are_made_exact():
    single = np.full((3, 1, 3), 1 / 3, np.float32)
    mdp = rt.MDP.from_arrays(single, start=np.full(3, 1 / 3, np.float32))
    np.testing.assert_allclose(mdp.transition.sum(-1), 1, rtol=0, atol=1e-15)
    assert mdp.start.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("transition", {"transition": changed((0, 1, 0), 0.2)}),
        ("transition", {"transition": changed((0, 1), [1.5, -0.5])}),
        ("transition", {"transition": changed((0, 0, 0), np.nan)}),
        ("transition", {"transition": TWO[:, :, :1]}),
        ("transition", {"transition": np.zeros((0, 2, 0))}),
        ("transition", {"transition": "often"}),
        ("transition", {"transition": [1.0]}),
        ("features", {"features": np.eye(3)}),
        ("features", {"features": [1.0, 2.0]}),
        ("features", {"features": [[np.inf], [0]]}),
        ("start", {"start": [0.5, 0.4]}),
        ("start", {"start": [1.5, -0.5]}),
        ("start", {"start": [1.0]}),
        ("allowed", {"allowed": [[True, True], [False, False]]}),
        ("allowed", {"allowed": [[True, False], [True, False]]}),
        ("allowed", {"allowed": [[1, 1], [1, 1]]}),
        ("allowed", {"allowed": [[True, True]]}),
        ("allowed", {"allowed": [[True], [True, True]]}),
        ("states", {"states": ["in"]}),
        ("states", {"states": ["in", "in"]}),
        ("states", {"states": {"in", "out"}}),
        ("actions", {"actions": "go"}),
        ("feature_names", {"feature_names": ["warm"]}),
        ("discount", {"discount": 1.0, "transition": AROUND}),
    ],
)
def test_tables_that_disagree_are_refused(parameter, options):
    options = {"transition": TWO} | options
    with raises_about(RatersError, parameter):
        rt.MDP.from_arrays(options.pop("transition"), **options)


def test_a_state_in_which_there_is_something_to_choose_is_no_end():
    """One state of three slot machines, and a state that keeps itself and offers nothing else."""
    arms = rt.MDP.from_arrays(np.ones((1, 3, 1)), features=[[[0], [1], [2]]], discount=0.5)
    assert arms.ends.tolist() == [False]
    assert rt.MDP.from_arrays(np.ones((1, 3, 1)), features=[[1.0]], discount=0.5).ends.all()
    policy = np.array([[0.2, 0.3, 0.5]])
    walks = rt.Demonstrations.rollouts(arms, policy, trajectories=2, steps=4, seed=0)
    assert walks.num_steps == 8
    # A feature of an action that is not allowed is none to choose.
    moves = [[[0, 1], [0, 1]], [[0, 1], [0, 1]]]
    allowed, features = [[True, True], [True, False]], [[[0], [1]], [[0], [1]]]
    shut = rt.MDP.from_arrays(moves, features=features, allowed=allowed, discount=0.5)
    assert shut.ends.tolist() == [False, True]


# ---------------------------------------------------------------- trees and files


def test_it_is_a_tree_of_its_arrays():
    mdp = rt.MDP.grid(2, 2, ends=[(1, 1)])
    assert len(jax.tree.leaves(mdp)) == 4
    with jax.enable_x64(True):
        doubled = jax.jit(lambda process: process.features * 2 * process.discount)(mdp)
        np.testing.assert_array_equal(doubled, mdp.features * 2 * 0.95)
        moved = jax.tree.map(jnp.asarray, mdp)
    assert isinstance(moved, rt.MDP)
    assert moved == mdp
    assert hash(moved) == hash(mdp)
    assert mdp != rt.MDP.grid(2, 2, ends=[(1, 0)])
    assert mdp != dataclasses.replace(mdp, discount=0.5)
    assert "transition" in repr(jax.tree.map(lambda _: None, mdp))


# ---------------------------------------------------------------- long tables


def test_a_long_table_says_what_an_array_says():
    rows = [
        (state, action, after, TWO[state, action, after], 10.0 * after)
        for state in (0,)
        for action in range(2)
        for after in range(2)
        if TWO[state, action, after]
    ]
    frame = pd.DataFrame(rows, columns=["s", "a", "t", "p", "gain"])
    roles = {"state": "s", "action": "a", "next_state": "t", "probability": "p"}
    mdp = rt.MDP.from_frame(frame.sample(frac=1, random_state=0), **roles, features=["gain"])
    np.testing.assert_array_equal(mdp.transition[0], TWO[0])
    assert mdp.transition[1].tolist() == [[0, 1], [0, 0]]  # an end has one action
    assert mdp.allowed[1].tolist() == [True, False]
    np.testing.assert_allclose(mdp.features[..., 0], [[0, 9], [0, 0]])  # expected gain
    assert mdp.feature_names == ("gain",)
    with raises_about(DataError, "next_state"):
        rt.MDP.from_frame(pd.concat([frame, frame[:1]]), **roles)
    with raises_about(DataError, "transition"):
        rt.MDP.from_frame(frame[:2], **roles)
    for start in ("home", {0: "likely"}, [0, 1]):
        with raises_about(DataError, "start"):
            rt.MDP.from_frame(frame, **roles, start=start)
    assert rt.MDP.from_frame(frame, **roles, start={0: 0.25, 1: 0.75}).start.tolist() == [
        0.25,
        0.75,
    ]


# ---------------------------------------------------------------- grids


def test_moves_slip_to_their_sides():
    mdp = rt.MDP.grid(3, 3, slip=0.2)
    place = {name: code for code, name in enumerate(mdp.states)}
    up = mdp.transition[place["(1, 1)"], mdp.actions.index("up")]
    # The sides of up are left and right.
    expected = {"(0, 1)": 0.8, "(1, 0)": 0.1, "(1, 2)": 0.1}
    assert {mdp.states[code]: up[code] for code in np.flatnonzero(up)} == pytest.approx(expected)
    corner = mdp.transition[place["(2, 2)"], mdp.actions.index("down")]
    assert corner[place["(2, 2)"]] == pytest.approx(0.9)
    assert corner[place["(2, 1)"]] == pytest.approx(0.1)
    assert not mdp.ends.any()


def test_what_an_end_is_worth_is_had_once():
    mdp = rt.MDP.grid(1, 3, slip=0, ends=[(0, 2)], discount=1.0, start=(0, 0))
    assert mdp.ends.tolist() == [False, False, False, True]
    assert mdp.transition[2, :, 3].tolist() == [1, 1, 1, 1]
    assert mdp.features[3].sum() == 0
    assert mdp.start.tolist() == [1, 0, 0, 0]


# ---------------------------------------------------------------- Gymnasium


def environment(tables, start):
    return SimpleNamespace(unwrapped=SimpleNamespace(P=tables, initial_state_distrib=start))


def test_a_last_state_with_a_life_of_its_own_leads_to_an_end():
    tables = {
        0: {0: [(1.0, 1, -1.0, False)], 1: [(0.5, 1, 20.0, True), (0.5, 0, -1.0, False)]},
        1: {0: [(1.0, 0, -1.0, False)], 1: [(1.0, 1, -1.0, False)]},
    }
    mdp = rt.MDP.from_gymnasium(environment(tables, [1, 0]), discount=1.0)
    assert mdp.states == (0, 1, "end")
    assert mdp.transition[0].tolist() == [[0, 1, 0], [0.5, 0, 0.5]]
    assert mdp.features[..., 0].tolist() == [[-1, 9.5], [-1, -1], [0, 0]]
    assert mdp.feature_names == ("reward",)
    assert mdp.allowed.tolist() == [[True, True], [True, True], [True, False]]


@pytest.mark.parametrize(
    ("name", "size", "added"),
    [("FrozenLakeEnv", 16, False), ("TaxiEnv", 500, True), ("CliffWalkingEnv", 48, True)],
)
def test_environments_of_gymnasium(name, size, added):
    pytest.importorskip("gymnasium")
    env = getattr(importlib.import_module("gymnasium.envs.toy_text"), name)()
    mdp = rt.MDP.from_gymnasium(env, discount=1.0)
    assert mdp.num_states == size + added
    assert ("end" in mdp.states) == added
    assert mdp.features[mdp.ends].max() == 0
    with raises_about(SettingError, "env", "NoSuchLake-v1"):
        rt.MDP.from_gymnasium("NoSuchLake-v1")
    if name == "FrozenLakeEnv":
        assert mdp == rt.MDP.from_gymnasium("FrozenLake-v1", discount=1.0)
        assert [mdp.states[code] for code in np.flatnonzero(mdp.ends)] == [5, 7, 11, 12, 15]
