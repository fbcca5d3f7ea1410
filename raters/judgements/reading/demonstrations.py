"""Steps of demonstrations from columns of a table, or drawn from policies, and checks of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from raters.errors import refuse_data
from raters.errors.validation import numbers
from raters.judgements.mdp import MDP
from raters.judgements.names import check_once, encode_names, match_names, name_list, name_text
from raters.judgements.reading.columns import Column, first_row, read_numbers

Names = tuple[Any, ...]
# Distance from 1 of a sum of probabilities that is rounding.
_ROUNDING = 1e-6


class Steps(NamedTuple):
    """Steps as codes."""

    state: Int[np.ndarray, " step"]
    action: Int[np.ndarray, " step"]
    annotator: Int[np.ndarray, " step"]
    trajectory: Int[np.ndarray, " step"]
    time: Int[np.ndarray, " step"]

    def taken_at(self, place: Int[np.ndarray, " some"]) -> Self:
        """The steps at these places."""
        return type(self)(*(column[place] for column in self))


class Ways(NamedTuple):
    """Trajectory of each row, the number of the step in it, and the names of the trajectories."""

    code: Int[np.ndarray, " step"]
    time: Int[np.ndarray, " step"]
    names: Names


def check_roles(trajectory: str | None, step: str | None) -> None:
    """Raise for numbers of steps without trajectories."""
    if step is not None and trajectory is None:
        refuse_data(
            "step",
            step,
            "numbers the steps of trajectories, and no column names these",
            "name the column of the trajectories, or leave both out",
            instead="trajectory='trajectory'",
        )


def codes_in(
    mdp: MDP, columns: Mapping[str, Column]
) -> tuple[Int[np.ndarray, " step"], Int[np.ndarray, " step"]]:
    """Codes of the states and actions in the process."""
    codes = []
    for role, known in (("state", mdp.states), ("action", mdp.actions)):
        (code,), names = encode_names([columns[role]], None, role)
        codes.append(np.asarray(match_names(code, names, known, role), np.int32))
    return codes[0], codes[1]


def trajectories_of(columns: Mapping[str, Column]) -> Ways:
    """Trajectories and numbers of steps; without a column of numbers, those of the rows of each
    trajectory; without one of trajectories, −1 and 0."""
    rows = len(columns["state"])
    if "trajectory" not in columns:
        return Ways(np.full(rows, -1), np.zeros(rows, np.int64), ())
    (code,), names = encode_names([columns["trajectory"]], None, "trajectory")
    if "step" in columns:
        return Ways(code, _whole_steps(columns["step"]), names)
    order = np.argsort(code, kind="stable")
    size = np.bincount(code, minlength=len(names))
    time = np.empty(rows, np.int64)
    time[order] = np.arange(rows) - np.repeat(np.cumsum(size) - size, size)
    return Ways(code, time, names)


def _whole_steps(column: Column) -> Int[np.ndarray, " step"]:
    """Numbers of steps."""
    values = read_numbers(column)
    wrong = (values != np.round(values)) | (np.abs(values) >= 2**31)
    if wrong.any():
        value = column.values[column.code[int(np.flatnonzero(wrong)[0])]]
        refuse_data(
            "step",
            column.name,
            f"holds {value!r} in row {first_row(column, value)} (counted from 0)",
            "it must hold whole numbers that count the steps of each trajectory",
        )
    return values.astype(np.int64)


# ---------------------------------------------------------------- checks


def check_allowed(steps: Steps, mdp: MDP) -> None:
    """Raise for an action that is not allowed in its state."""
    wrong = ~np.asarray(mdp.allowed, bool)[steps.state, steps.action]
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        own = np.flatnonzero(np.asarray(mdp.allowed)[steps.state[row]])
        refuse_data(
            "action",
            name_text(mdp.actions[steps.action[row]]),
            f"is not allowed in state {name_text(mdp.states[steps.state[row]])!r}, in row"
            f" {row} (counted from 0; {int(wrong.sum())} such row(s))",
            "allowed there are "
            + ", ".join(repr(name_text(mdp.actions[code])) for code in own[:10]),
        )


def check_trajectories(steps: Steps, mdp: MDP, names: Names) -> None:
    """Raise for trajectories that no demonstrator can have walked."""
    if not names:
        return
    steps = steps.taken_at(np.lexsort((steps.time, steps.trajectory)))
    before, after = (steps.taken_at(np.arange(len(steps.state))[part]) for part in _PAIRS)
    same = before.trajectory == after.trajectory
    words = _Words(steps, mdp, names)
    _refuse(
        same & (before.annotator != after.annotator),
        words,
        "trajectory",
        lambda row: f"of {words.trajectory(row)} is of several demonstrators",
        "each trajectory is by one; where the numbers of trajectories begin anew with every"
        " demonstrator, put the demonstrator into the name",
    )
    gap = after.time - before.time
    _refuse(
        same & (gap == 0),
        words,
        "step",
        lambda row: f"names step {steps.time[row]} of {words.trajectory(row)} twice",
        "each step of a trajectory comes once",
    )
    _refuse(
        same & (gap > 1),
        words,
        "step",
        lambda row: (
            f"goes from {steps.time[row]} to {steps.time[row + 1]} in {words.trajectory(row)}"
        ),
        "the steps of a trajectory are consecutive; give each part a trajectory of its own, or"
        " leave `trajectory` and `step` out, as the likelihood does not need them",
    )
    chance = np.asarray(mdp.transition)[before.state, before.action, after.state]
    _refuse(
        same & (chance == 0),
        words,
        "mdp",
        lambda row: (
            f"never leads from state {words.state(row)} by action {words.action(row)} to"
            f" {words.state(row + 1)}, where step {steps.time[row]} of {words.trajectory(row)}"
            " leads"
        ),
        "correct the transitions, or the order of the steps; where transitions are not exact, leave"
        " `trajectory` and `step` out, as the likelihood does not need them",
    )


_PAIRS = (slice(None, -1), slice(1, None))


class _Words(NamedTuple):
    """Names of steps in messages."""

    steps: Steps
    mdp: MDP
    names: Names

    def trajectory(self, row: int) -> str:
        return f"trajectory {name_text(self.names[self.steps.trajectory[row]])!r}"

    def state(self, row: int) -> str:
        return repr(name_text(self.mdp.states[self.steps.state[row]]))

    def action(self, row: int) -> str:
        return repr(name_text(self.mdp.actions[self.steps.action[row]]))


def _refuse(
    wrong: Bool[np.ndarray, " pair"], words: _Words, parameter: str, problem: Any, expected: str
) -> None:
    """Raise for the first step that is wrong beside the next one."""
    if wrong.any():
        refuse_data(
            parameter,
            problem=f"{problem(int(np.flatnonzero(wrong)[0]))} ({int(wrong.sum())} such step(s))",
            expected=expected,
        )


# ---------------------------------------------------------------- rollouts


def policies(
    policy: ArrayLike, mdp: MDP, annotators: Iterable[Any] | None
) -> tuple[Float[np.ndarray, "annotator state action"], Names]:
    """Policies that are checked, and the names of the demonstrators."""
    probs = numbers("policy", policy)
    shape = (mdp.num_states, mdp.num_actions)
    if probs.ndim not in (2, 3) or probs.shape[-2:] != shape or not len(probs):
        refuse_data(
            "policy",
            problem=f"has the shape {probs.shape}",
            expected=f"it must be (state, action) = {shape}, or one such table for each annotator",
        )
    every = probs.reshape(-1, *shape)
    forbidden = (every * ~np.asarray(mdp.allowed, bool)).any()
    if forbidden or (every < 0).any() or (np.abs(every.sum(-1) - 1) > _ROUNDING).any():
        refuse_data(
            "policy",
            problem="is no probability over the actions that are allowed in each state",
            expected="it must not be negative, 0 for actions that are not allowed, and add up to 1"
            " in each state",
        )
    default = ("all",) if probs.ndim == 2 else tuple(range(len(every)))
    names = default if annotators is None else tuple(name_list(annotators, "annotators"))
    check_once(names, "annotators")
    if len(names) != len(every):
        refuse_data(
            "annotators",
            problem=f"has {len(names)} names, and there are {len(every)} policies",
            expected="give one name for each policy",
        )
    return every / every.sum(-1, keepdims=True), names


def rolled_out(
    mdp: MDP,
    policy: Float[np.ndarray, "annotator state action"],
    trajectories: int,
    steps: int,
    rng: np.random.Generator,
) -> Steps:
    """Steps of drawn trajectories, one trajectory after the other."""
    who = np.repeat(np.arange(len(policy)), trajectories)
    transition, ends = np.asarray(mdp.transition), np.asarray(mdp.ends)
    state = rng.choice(mdp.num_states, len(who), p=np.asarray(mdp.start))
    walked, lead = [], np.arange(len(who))
    for time in range(steps):
        lead = lead[~ends[state[lead]]]
        action = _drawn(rng, policy[who[lead], state[lead]])
        walked.append(Steps(state[lead], action, who[lead], lead, np.full(len(lead), time)))
        state[lead] = _drawn(rng, transition[state[lead], action])
    table = Steps(*(np.concatenate(columns) for columns in zip(*walked, strict=True)))
    if not len(table.state):
        refuse_data(
            "mdp",
            problem="starts in ends alone, where there is nothing to demonstrate",
            expected="let it start where actions lead elsewhere",
        )
    return table.taken_at(np.lexsort((table.time, table.trajectory)))


def _drawn(
    rng: np.random.Generator, probs: Float[np.ndarray, "row value"]
) -> Int[np.ndarray, " row"]:
    """One value of each row, by its probabilities."""
    total = probs.cumsum(-1)
    place: np.ndarray = (rng.random(len(probs))[:, None] * total[:, -1:] >= total).sum(-1)
    return np.asarray(np.minimum(place, probs.shape[-1] - 1))
