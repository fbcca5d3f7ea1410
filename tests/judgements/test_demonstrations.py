"""Demonstrations read from tables and drawn from policies, what is refused, and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import raters as rt
from raters.errors import DataError, DataWarning, SettingError
from tests.refusals import raises_about

# Two walks of ann's and one of bob's through a corridor of four cells.
TABLE: dict[str, Any] = {
    "walk": ["x", "x", "x", "y", "y", "z"],
    "t": [3, 4, 5, 0, 1, 7],
    "at": ["(0, 0)", "(0, 1)", "(0, 2)", "(0, 1)", "(0, 0)", "(0, 2)"],
    "move": ["right", "right", "up", "left", "up", "left"],
    "who": ["ann", "ann", "ann", "ann", "ann", "bob"],
}
ROLES = {"state": "at", "action": "move", "trajectory": "walk", "step": "t", "annotator": "who"}


def corridor(**options: Any) -> rt.MDP:
    return rt.MDP.grid(1, 4, **{"slip": 0.0, "discount": 0.9} | options)


def read(changes: dict | None = None, **options: Any) -> rt.Demonstrations:
    roles = {name: role for name, role in (ROLES | options).items() if role is not None}
    return rt.Demonstrations.from_frame(
        TABLE | (changes or {}), mdp=roles.pop("mdp", corridor()), **roles
    )


@pytest.fixture(scope="module")
def walked() -> rt.Demonstrations:
    policy = np.full((3, 4, 4), 0.25)
    return rt.Demonstrations.rollouts(
        corridor(), policy, trajectories=2, steps=3, seed=0, annotators=["a", "b", "c"]
    )


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "order", [np.arange(6)[::-1], *(np.random.default_rng(seed).permutation(6) for seed in (0, 1))]
)
def test_rows_in_any_order(order) -> None:
    shuffled = {name: [column[row] for row in order] for name, column in TABLE.items()}
    one, other = read(), read(shuffled)
    one.check()
    assert [one.states[code] for code in one.state] == TABLE["at"]
    assert [one.actions[code] for code in one.action] == TABLE["move"]
    assert one.time.tolist() == TABLE["t"]
    assert [other.states[code] for code in other.state] == shuffled["at"]  # As times= are given.
    for name in ("state", "action", "annotator", "trajectory", "time"):
        np.testing.assert_array_equal(getattr(one, name)[order], getattr(other, name))
    assert one.mdp == corridor()
    with raises_about(DataError, "trajectory"):
        read(shuffled | {"t": [{5: 6}.get(step, step) for step in shuffled["t"]]})


def test_steps_by_themselves() -> None:
    counted = TABLE | {"times": [3, 1, 1, 1, 1, 2]}
    alone = read(counted, trajectory=None, step=None, annotator=None, count="times")
    assert alone.trajectory is None
    assert alone.annotators == ("all",)
    assert alone.num_steps == 9
    cells = alone.aggregate()
    assert cells.num_rows == 6
    assert cells.num_steps == 9


@pytest.mark.parametrize("roles", [{}, {"trajectory": None, "step": None}])
def test_a_table_comes_back(roles) -> None:
    one = read(**roles)
    frame = one.to_frame()
    again = rt.Demonstrations.from_frame(
        frame, mdp=one.mdp, count="count", **{name: name for name in ROLES if name in frame}
    )
    for name in ("state", "action", "annotator", "trajectory", "time", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"at": ["(0, 9)", *TABLE["at"][1:]]}, "state"),
        ({"move": ["jump", *TABLE["move"][1:]]}, "action"),
        ({"t": [3, 4, 4, 0, 1, 7]}, "trajectory"),
        ({"t": [3, 4, 6, 0, 1, 7]}, "trajectory"),
        ({"t": [3, 4.5, 6, 0, 1, 7]}, "step"),
        ({"t": [4, 3, 5, 0, 1, 7]}, "trajectory"),
        ({"who": ["ann", "bob", *TABLE["who"][2:]]}, "trajectory"),
        ({"move": [None, *TABLE["move"][1:]]}, "action"),
        ({name: [] for name in TABLE}, None),
    ],
)
def test_what_is_refused(changes, parameter) -> None:
    with pytest.raises(DataError) as caught:
        read(changes)
    if parameter is not None:
        assert caught.value.parameter == parameter


def test_demonstrators_with_little_to_tell_are_warned_of() -> None:
    with pytest.warns(DataWarning, match="one step"):
        read().warn()
    with pytest.warns(DataWarning, match="nothing"):
        read(annotators=["ann", "bob", "eve"]).warn()


# ---------------------------------------------------------------- rollouts


def test_rollouts_are_demonstrations(walked) -> None:
    walked.check()
    frame = walked.to_frame().drop(columns="count")
    again = rt.Demonstrations.from_frame(frame, mdp=walked.mdp, **{name: name for name in ROLES})
    np.testing.assert_array_equal(walked.action, again.action)
    assert walked.num_steps == 18


@pytest.mark.parametrize("policy", [np.ones((4, 4)), np.ones((4, 3)), [[1, 2], [3]]])
def test_policies_that_are_none(policy) -> None:
    with pytest.raises((DataError, SettingError)):
        rt.Demonstrations.rollouts(corridor(), policy, trajectories=1, steps=1, seed=0)


# ---------------------------------------------------------------- parts


def test_parts_keep_the_process(walked) -> None:
    part = walked.take(slice(2, 5))
    part.check()
    assert part.num_rows == 3
    assert part.mdp == walked.mdp
    padded = walked.padded(32)
    padded.check()
    assert padded.num_steps == walked.num_steps
    assert padded.unpadded().num_rows == walked.num_rows
    fewer = walked.without_judges(["b"])
    fewer.check()
    assert fewer.annotators == ("a", "c")
    assert fewer.num_steps == 12


def test_other_codes_of_states_take_their_process_along(walked) -> None:
    order = [2, 0, 3, 1]
    mdp = walked.mdp
    other = rt.MDP.from_arrays(
        mdp.transition[order][:, :, order],
        features=mdp.features[order],
        states=[mdp.states[code] for code in order],
        actions=mdp.actions,
        discount=mdp.discount,
    )
    like = rt.Demonstrations.rollouts(
        other, np.full((3, 4, 4), 0.25), trajectories=1, steps=1, seed=0, annotators=list("cab")
    )
    asked = walked.asked_of(like)
    assert asked.mdp == like.mdp
    assert [asked.states[code] for code in asked.state] == [
        walked.states[code] for code in walked.state
    ]
    assert [asked.annotators[code] for code in asked.annotator] == [
        walked.annotators[code] for code in walked.annotator
    ]


def test_answers_to_questions_join_trajectories(walked) -> None:
    questions = rt.Candidates.of(walked)
    assert questions.num_rows == 12
    assert questions.answer_words(0) == {"up": 0.0, "right": 1.0, "down": 2.0, "left": 3.0}
    both = walked.joined(questions.answered(np.zeros(12)))
    both.check()
    assert both.num_steps == 30
    frame = both.to_frame()
    assert frame["trajectory"].nunique() == 6 + 12
    again = rt.Demonstrations.from_frame(
        frame, mdp=walked.mdp, count="count", **{name: name for name in ROLES}
    )
    assert again.num_steps == 30


def test_features_along_trajectories_are_discounted_sums() -> None:
    walks = rt.datasets.demonstration_crowd(3, 3, 3, 2, 5, seed=0, num_features=2).demonstrations
    table = walks.trajectory_features()
    assert table["trajectory"].tolist() == list(walks.trajectories)
    expected = np.zeros((len(table), 2))
    for row in range(walks.num_rows):
        phi = walks.features[walks.state[row], walks.action[row]]
        first = walks.time[walks.trajectory == walks.trajectory[row]].min()
        expected[walks.trajectory[row]] += 0.9 ** (walks.time[row] - first) * phi
    np.testing.assert_allclose(table[[0, 1]].to_numpy(), expected)
    shuffled = walks.rows(np.random.default_rng(0).permutation(walks.num_rows))
    np.testing.assert_allclose(shuffled.trajectory_features()[[0, 1]].to_numpy(), expected)
