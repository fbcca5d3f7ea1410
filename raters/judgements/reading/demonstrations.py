"""Steps of demonstrations from columns of a table, or drawn from policies, and checks of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.errors import refuse_data
from raters.errors.validation import numbers
from raters.judgements.counts import Codes, place_within
from raters.judgements.mdp import MDP
from raters.judgements.names import check_once, name_list, name_text, shorten
from raters.judgements.reading.columns import Columns, read_numbers, where

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


def trajectories_of(
    columns: Columns,
) -> tuple[Int[np.ndarray, " step"], Int[np.ndarray, " step"], Names]:
    """Trajectories and numbers of steps; without a column of numbers, those of the rows of each
    trajectory; without one of trajectories, −1 and 0."""
    if "trajectory" not in columns:
        if "step" in columns:
            columns["step"].refuse(
                "numbers the steps of trajectories, and no column names these",
                "name the column of the trajectories, or leave both out",
                "trajectory='trajectory'",
            )
        return np.full(columns.rows, -1), np.zeros(columns.rows, np.int64), ()
    code, names = columns.codes("trajectory")
    if "step" not in columns:
        return code, place_within(code), names
    values = read_numbers(columns["step"])
    columns["step"].refuse_rows(
        (values != np.round(values)) | (np.abs(values) >= 2**31),
        "it must hold whole numbers that count the steps of each trajectory",
    )
    return code, values.astype(np.int64), names


# ---------------------------------------------------------------- checks


def check_allowed(steps: Steps, mdp: MDP) -> None:
    """Raise for an action that is not allowed in its state."""
    wrong = ~np.asarray(mdp.allowed, bool)[steps.state, steps.action]
    if wrong.any():
        state, action = (codes[np.argmax(wrong)] for codes in (steps.state, steps.action))
        allowed = [mdp.actions[code] for code in np.flatnonzero(np.asarray(mdp.allowed)[state])]
        problem = f"is not allowed in state {mdp.states[state]!r}, in {where(wrong)}"
        refuse_data(
            "action", mdp.actions[action], problem, f"allowed there are {shorten(allowed, 10)}"
        )


def check_trajectories(steps: Steps, mdp: MDP, names: Names) -> None:
    """Raise for trajectories that no demonstrator can have walked."""
    if not names:
        return
    steps = steps.taken_at(np.lexsort((steps.time, steps.trajectory)))
    rows = np.arange(len(steps.state))
    before, after = steps.taken_at(rows[:-1]), steps.taken_at(rows[1:])
    same, gap = before.trajectory == after.trajectory, after.time - before.time
    chance = np.asarray(mdp.transition)[before.state, before.action, after.state]
    unneeded = "leave `trajectory` and `step` out, as the likelihood does not need them"
    problems = {
        "is of several demonstrators": (
            before.annotator != after.annotator,
            "each trajectory is by one; where the numbers of trajectories begin anew with every"
            " demonstrator, put the demonstrator into the name",
        ),
        "has steps that do not follow each other": (
            gap != 1,
            f"each step comes once, and its number is one more than the last; or {unneeded}",
        ),
        "has a step that cannot lead to the state of the next": (
            chance == 0,
            "correct the transitions of the process, or the order of the steps; where transitions"
            f" are not exact, {unneeded}",
        ),
    }
    for problem, (wrong, expected) in problems.items():
        if (same & wrong).any():
            row = int(np.argmax(same & wrong))
            step = f"{steps.time[row]} (state {mdp.states[steps.state[row]]!r}, action"
            step += f" {mdp.actions[steps.action[row]]!r})"
            refuse_data(
                "trajectory",
                name_text(names[steps.trajectory[row]]),
                f"{problem}, after step {step} ({int((same & wrong).sum())} such step(s))",
                expected,
            )


# ---------------------------------------------------------------- rollouts


def policies(
    policy: ArrayLike, mdp: MDP, annotators: Iterable[Any] | None
) -> tuple[Float[np.ndarray, "annotator state action"], Names]:
    """Policies that are checked, and the names of the demonstrators."""
    probs = numbers("policy", policy)
    shape = (mdp.num_states, mdp.num_actions)
    if probs.ndim not in (2, 3) or probs.shape[-2:] != shape:
        probs = np.zeros((0, *shape))
    every = probs.reshape(-1, *shape)
    wrong = (every < 0).any() or (np.abs(every.sum(-1) - 1) > _ROUNDING).any()
    if wrong or not len(every) or (every * ~np.asarray(mdp.allowed, bool)).any():
        refuse_data(
            "policy",
            problem="is no probability over the actions that are allowed in each state",
            expected=f"it must be (state, action) = {shape}, or one such table for each annotator,"
            " not negative, 0 for actions that are not allowed, and add up to 1 in each state",
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


def _drawn(rng: np.random.Generator, probs: Float[np.ndarray, "row value"]) -> Codes:
    """One value of each row, by its probabilities."""
    total = probs.cumsum(-1)
    place: np.ndarray = (rng.random(len(probs))[:, None] * total[:, -1:] >= total).sum(-1)
    return np.asarray(np.minimum(place, probs.shape[-1] - 1))
