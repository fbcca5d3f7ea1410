"""Demonstrations: which action was taken in which state, as codes, and the decision process."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num
from numpy.typing import ArrayLike

from raters.errors import refuse_data
from raters.errors.validation import checked, instance, numbers, whole
from raters.judgements import names as naming
from raters.judgements.base import Judgements
from raters.judgements.counts import Codes, Numbers, place_within
from raters.judgements.mdp import MDP
from raters.judgements.names import Names
from raters.judgements.reading.columns import Columns, place, read_columns, read_numbers, where
from raters.judgements.roles import number_of, of_axes, same_as, static

_STEPS = ("state", "action", "annotator", "trajectory", "time")
# Distance from 1 of a sum of probabilities that is rounding.
_ROUNDING = 1e-6
# Fields of the process.
_PROCESS = tuple(one.name for one in dataclasses.fields(MDP))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Demonstrations(Judgements):
    """Actions that demonstrators took in the states of a decision process.

    One row for each step: the action that was taken in a state. Given the state an action does not
    depend on how the state was reached, so that the likelihood is a product over steps. Build it
    with `from_frame` or `rollouts`; the constructor takes codes that are already right.

    Parameters
    ----------
    state, action, annotator : int array, shape (step,)
        Codes of the state, of the action taken in it, and of the demonstrator. `action` is None
        when it is not known yet, as for `raters.simulate`.
    count : float array, shape (step,), or None
        Number of times that the action was taken. None means once each.
    trajectory : int array, shape (step,), or None
        Code of the trajectory that each step belongs to, −1 for none.
    time : int array, shape (step,), or None
        Number of the step in its trajectory.
    transition : float array, shape (state, action, next_state)
    features : float array, shape (state, action, feature)
    start : float array, shape (state,)
    allowed : bool array, shape (state, action)
        Tables of the process, as of `MDP`.
    discount : float
    states, actions, feature_names, annotators, trajectories : tuple
        The names, in code order.

    Examples
    --------
    >>> import raters as rt
    >>> mdp = rt.MDP.grid(1, 3, ends=[(0, 2)])
    >>> table = {"walk": [1, 1, 2], "t": [0, 1, 0], "at": ["(0, 0)", "(0, 1)", "(0, 1)"],
    ...          "move": ["right", "right", "left"], "who": ["ann", "ann", "bob"]}
    >>> demonstrations = rt.Demonstrations.from_frame(
    ...     table, mdp=mdp, trajectory="walk", step="t", state="at", action="move",
    ...     annotator="who")
    >>> demonstrations.num_steps, demonstrations.annotators
    (3, ('ann', 'bob'))
    """

    state: Any
    action: Any
    annotator: Any
    count: Any
    trajectory: Any
    time: Any
    transition: Any = of_axes("state", "action", "next_state")
    features: Any = of_axes("state", "action", "feature")
    start: Any = of_axes("state")
    allowed: Any = of_axes("state", "action")
    discount: float = static()
    states: tuple[Any, ...] = static()
    actions: tuple[Any, ...] = static()
    feature_names: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    trajectories: tuple[Any, ...] = static(())

    axes = {"state": "state", "annotator": "annotator", "action": "action"}
    names = {"state": "states", "action": "actions", "annotator": "annotators"}
    names |= {"feature": "feature_names", "trajectory": "trajectories"}
    answer = "action"
    row = "step"
    again = True

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        mdp: MDP,
        state: str,
        action: str,
        trajectory: str | None = None,
        step: str | None = None,
        annotator: str | None = None,
        count: str | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Demonstrations:
        """Read demonstrations from a table with one row for each step.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        mdp : MDP
            The process that was demonstrated in. States and actions have its names.
        state, action : str
            Columns with the state, and with the action that was taken in it.
        trajectory : str, optional
            Column that names the trajectory that a step belongs to; each is by one demonstrator.
            Without it every row is a step by itself, and what follows what is not read.
        step : str, optional
            Column with the number of the step in its trajectory, in any order of the rows.
            Without it the steps of a trajectory are in the order of the rows.
        annotator : str, optional
            Column that names the demonstrator. Without it all steps are by one, called ``all``.
        count : str, optional
            Column with the number of equal steps that a row stands for.
        annotators : iterable, optional
            All names of demonstrators in the order wanted, also of those without a step.

        Returns
        -------
        Demonstrations
            With the steps in the order of the rows.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; the process has no state or
            action of a name; an action is not allowed in its state; the steps of a trajectory are
            not consecutive, or one comes twice; a trajectory is of several demonstrators; or a
            step cannot lead to the state of the next: then the process is not the one that was
            demonstrated in, or the steps are in another order. Leave `trajectory` out where the
            transitions of the process are not exact.

        Examples
        --------
        >>> import raters as rt
        >>> mdp = rt.MDP.grid(1, 3, ends=[(0, 2)])
        >>> counted = {"at": ["(0, 0)", "(0, 1)"], "move": ["right", "right"], "times": [12, 9]}
        >>> rt.Demonstrations.from_frame(counted, mdp=mdp, state="at", action="move",
        ...                              count="times").num_steps
        21
        """
        instance("mdp", mdp, MDP, "a decision process", "rt.MDP.from_arrays(transition)")
        others: dict[str, Any] = {"trajectory": trajectory, "step": step, "annotator": annotator}
        required = {"state": state, "action": action}
        columns = read_columns(frame, required, count=count, **others)
        who, people = columns.annotators(annotators)
        code, time, names = _trajectories(columns)
        taken = [
            place(columns[role], known, f"{role}s of `mdp`", "name one of these")
            for role, known in (("state", mdp.states), ("action", mdp.actions))
        ]
        steps = dict(zip(_STEPS, (*taken, who, code, time), strict=True))
        data = cls._of(mdp, steps, columns.counts(), people, names)
        data._check_allowed()
        data._check_trajectories()
        return data._slim()

    @classmethod
    @checked
    def rollouts(
        cls,
        mdp: MDP,
        policy: ArrayLike,
        *,
        trajectories: int,
        steps: int,
        seed: int,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Draw demonstrations of policies.

        Parameters
        ----------
        mdp : MDP
        policy : array, shape (state, action) or (annotator, state, action)
            Probabilities of the actions in each state, of one demonstrator or of each.
        trajectories : int
            Number of trajectories of each demonstrator.
        steps : int
            Number of steps of each trajectory, fewer where it comes to an end.
        seed : int
            Seed of ``numpy.random.default_rng``.
        annotators : iterable, optional
            Names of the demonstrators; by default numbers from 0, and ``all`` of one.

        Raises
        ------
        DataError
            When the policy is no probability over the allowed actions of each state.

        Examples
        --------
        >>> import numpy as np, raters as rt
        >>> mdp = rt.MDP.grid(2, 2)
        >>> rt.Demonstrations.rollouts(mdp, np.full((4, 4), 0.25), trajectories=3, steps=5,
        ...                            seed=0).num_steps
        15
        """
        instance("mdp", mdp, MDP, "a decision process", "rt.MDP.from_arrays(transition)")
        whole("trajectories", trajectories)
        whole("steps", steps)
        probs, people = _policies(policy, mdp, annotators)
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(len(probs)), trajectories)
        state = rng.choice(mdp.num_states, len(who), p=np.asarray(mdp.start))
        states, actions = walked(rng, mdp, probs[who], state, steps)
        walk, time = np.nonzero(states >= 0)
        if not len(walk):
            problem = "starts in ends alone, where there is nothing to demonstrate"
            expected = "let it start where actions lead elsewhere"
            refuse_data("mdp", problem=problem, expected=expected)
        columns = states[walk, time], actions[walk, time], who[walk], walk, time
        table = dict(zip(_STEPS, columns, strict=True))
        return cls._of(mdp, table, None, people, tuple(range(int(walk.max()) + 1)))

    @classmethod
    def _of(
        cls,
        mdp: MDP,
        steps: Mapping[str, Codes],
        count: Numbers | None,
        annotators: Names,
        trajectories: Names,
    ) -> Self:
        columns: dict[str, Any] = {name: steps[name].astype(np.int32) for name in _STEPS}
        if not trajectories:
            columns |= {"trajectory": None, "time": None}
        columns |= {"annotators": annotators, "trajectories": trajectories}
        process = {name: getattr(mdp, name) for name in _PROCESS}
        return cls(**columns, count=count, **process)

    def _check_allowed(self) -> None:
        """Raise for an action that is not allowed in its state."""
        wrong = ~np.asarray(self.allowed, bool)[self.state, self.action]
        if wrong.any():
            state, action = (codes[np.argmax(wrong)] for codes in (self.state, self.action))
            allowed = [self.actions[code] for code in np.flatnonzero(self.allowed[state])]
            problem = f"is not allowed in state {self.states[state]!r}, in {where(wrong)}"
            expected = f"allowed there are {naming.shorten(allowed, 10)}"
            refuse_data("action", self.actions[action], problem, expected)

    def _check_trajectories(self) -> None:
        """Raise for trajectories that no demonstrator can have walked."""
        if self.trajectory is None:
            return
        steps = self.rows(np.lexsort((self.time, self.trajectory)))
        before, after = steps.rows(slice(None, -1)), steps.rows(slice(1, None))
        same = before.trajectory == after.trajectory
        gap = np.diff(steps.time.astype(np.int64))
        chance = np.asarray(self.transition)[before.state, before.action, after.state]
        unneeded = "leave `trajectory` and `step` out, which the likelihood does not need"
        problems = {
            "is of several demonstrators": (
                before.annotator != after.annotator,
                "where numbers begin anew with every demonstrator, put the demonstrator into the"
                " name of the trajectory",
            ),
            "has steps that do not follow each other": (
                gap != 1,
                f"each step comes once, and its number is one more than the last; or {unneeded}",
            ),
            "has a step that cannot lead to the state of the next": (
                chance == 0,
                "correct the transitions of the process, or the order of the steps; where"
                f" transitions are not exact, {unneeded}",
            ),
        }
        for problem, (wrong, expected) in problems.items():
            if (same & wrong).any():
                row = int(np.argmax(same & wrong))
                step = f"{steps.time[row]} (state {self.states[steps.state[row]]!r}, action"
                step += f" {self.actions[steps.action[row]]!r})"
                problem = f"{problem}, after step {step} ({int((same & wrong).sum())} such step(s))"
                name = naming.name_text(self.trajectories[steps.trajectory[row]])
                refuse_data("trajectory", name, problem, expected)

    # ---------------------------------------------------------------- facts

    @property
    def mdp(self) -> MDP:
        """The process that was demonstrated in."""
        return MDP(**{name: getattr(self, name) for name in _PROCESS})

    num_states = number_of("states", "Number of states of the process.")
    num_actions = number_of("actions", "Number of actions of the process.")
    num_features = number_of("feature_names", "Number of features of the process.")
    num_steps = same_as("num_judgements", "Number of steps, counts included.")

    def trajectory_features(self) -> pd.DataFrame:
        r"""Discounted sum of the features along each trajectory, which is what a reward that is
        linear in features depends on: for comparisons of trajectories, with
        `Comparisons.with_features`.

        .. math:: \phi(\tau) = \sum_t \gamma^t \phi(s_t, a_t)

        Returns
        -------
        pandas.DataFrame
            One row for each trajectory: ``trajectory``, and a column for each feature.

        Raises
        ------
        DataError
            When the steps belong to no trajectories, or their actions are not known.

        Examples
        --------
        >>> import raters as rt
        >>> mdp = rt.MDP.grid(1, 3, features={"sun": [[0, 1, 4]]}, discount=0.5)
        >>> table = {"walk": ["w", "w"], "at": ["(0, 1)", "(0, 2)"], "move": ["right", "left"]}
        >>> walks = rt.Demonstrations.from_frame(table, mdp=mdp, trajectory="walk", state="at",
        ...                                      action="move")
        >>> walks.trajectory_features().to_dict("records")
        [{'trajectory': 'w', 'sun': 3.0}]
        """
        known = np.asarray(-1 if self.trajectory is None else self.trajectory) >= 0
        lacking = self.trajectory is None or self.action is None
        if lacking or (np.asarray(self.weight)[known] != 1).any():
            problem = "has no trajectories, no actions, or counts of steps"
            expected = "read demonstrations with their trajectories, a row for each step"
            line = "rt.Demonstrations.from_frame(table, trajectory=..., ...)"
            refuse_data("data", problem=problem, expected=expected, instead=line)
        code, time = (np.asarray(column)[known] for column in (self.trajectory, self.time))
        state, action = (np.asarray(column)[known] for column in (self.state, self.action))
        # Steps may be numbered from any number on.
        begin = np.full(len(self.trajectories), np.iinfo(np.int64).max)
        np.minimum.at(begin, code, time)
        weight = float(self.discount) ** (time - begin[code])
        total = np.zeros((len(self.trajectories), self.num_features))
        np.add.at(total, code, weight[:, None] * np.asarray(self.features)[state, action])
        columns = dict(zip(self.feature_names, total.T, strict=True))
        return pd.DataFrame({"trajectory": naming.names_array(self.trajectories), **columns})

    def row_axes(self) -> tuple[str, ...]:
        """Axes of one code a step: trajectories too, to be left out whole."""
        known = self.trajectory is not None and bool((np.asarray(self.trajectory) >= 0).all())
        return (*super().row_axes(), *(["trajectory"] if known else []))

    def codes(self, axis: str) -> Any:
        """Codes of each step along an axis; see `Judgements.codes`."""
        if axis == "trajectory" and self.trajectory is not None:
            return self.trajectory
        return super().codes(axis)

    def num_choices(self) -> Int[np.ndarray, " state"]:
        """Number of actions that are allowed in each state, shape (state,)."""
        return np.asarray(self.allowed).sum(1)

    def check(self) -> None:
        """Raise unless the columns fit together; see `Judgements.check`."""
        super().check()
        self.mdp.check()
        if self.action is not None:
            self._check_allowed()

    @property
    def warned_axes(self) -> set[str]:
        """That of the demonstrators: nothing is said of states that nobody was in."""
        return {self.judge}

    def warn(self) -> None:
        """Warn about what these data cannot tell: demonstrators who hardly chose."""
        steps = self.judgements_by("annotator")
        free = np.asarray(self.num_choices() > 1)[np.asarray(self.state)]
        chosen = np.bincount(
            np.asarray(self.annotator), free * np.asarray(self.weight, float), len(steps)
        )
        sentences = {
            "annotator(s) demonstrated nothing, and keep their prior": steps == 0,
            "annotator(s) demonstrated one step, which tells next to nothing of them": steps == 1,
            "annotator(s) never had a choice, and keep their prior": (steps > 1) & (chosen == 0),
        }
        naming.warn_of_each({text: (self.annotators, which) for text, which in sentences.items()})

    # ---------------------------------------------------------------- questions

    def answer_words(self, row: int) -> dict[str, float]:
        """Names of the actions that are allowed in the state of a question."""
        allowed = np.flatnonzero(np.asarray(self.allowed)[int(self.state[self._place(row)])])
        return {naming.name_text(self.actions[code]): float(code) for code in allowed.tolist()}

    def plain_columns(self) -> tuple[str, ...]:
        """None: the trajectory of a step, and its number, are no part of what is asked."""
        return ()

    def _question(self, without: tuple[str, ...] = ()) -> list[Num[np.ndarray, "step ..."]]:
        return super()._question((*without, "trajectory", "time"))

    def _alone(self) -> Self:
        """Each step by itself."""
        return replace(self, trajectory=None, time=None)

    def unanswered(self) -> Self:
        """The states without the actions, each by itself: others would lead elsewhere."""
        return super().unanswered()._alone()

    def aggregate(self) -> Self:
        """Equal steps as one row with a count, sorted, without trajectories."""
        return super(Demonstrations, self._alone()).aggregate()

    def _alike(self, other: Self) -> tuple[Self, Self]:
        if (self.trajectory is None) == (other.trajectory is None):
            return self, other
        if other.trajectory is None:
            return other._alike(self)[::-1]
        none = np.zeros(self.num_rows, np.int32)  # Steps of the one are in no trajectory.
        names = other.trajectories
        return replace(self, trajectory=none - 1, time=none, trajectories=names), other

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes; see `Judgements.recoded`."""
        axes = tuple(axes)
        moved = super().recoded(like, axes)
        if "state" not in axes:
            return moved
        return replace(moved, **{name: getattr(like, name) for name in _PROCESS})

    def to_frame(self) -> pd.DataFrame:
        """The steps as a table by name: ``trajectory`` and ``step``, where they are known,
        ``state``, ``annotator``, ``action`` and ``count``; rows of count 0 are left out."""
        real = np.asarray(self.weight) > 0
        columns: dict[str, Any] = {}
        if self.trajectory is not None:
            code = np.asarray(self.trajectory)[real]
            # Steps in none are each a trajectory by themselves.
            alone = (f"step {place}" for place in range(int((code < 0).sum())))
            code = np.where(code < 0, len(self.trajectories) + np.cumsum(code < 0) - 1, code)
            names = naming.names_array((*self.trajectories, *alone))
            columns = {"trajectory": names[code], "step": np.asarray(self.time)[real]}
        table = super().to_frame()
        return pd.DataFrame(columns | {name: table[name] for name in table})


def _trajectories(columns: Columns) -> tuple[Codes, Codes, Names]:
    """Trajectories and numbers of steps, by rows without a column of numbers; else −1 and 0."""
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


def _policies(
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
        problem = "is no probability over the actions that are allowed in each state"
        expected = f"it must be (state, action) = {shape}, or one such table for each annotator,"
        expected += " not negative, 0 for actions not allowed, and add up to 1 in each state"
        refuse_data("policy", problem=problem, expected=expected)
    default = ("all",) if probs.ndim == 2 else tuple(range(len(every)))
    names = default if annotators is None else tuple(naming.name_list(annotators, "annotators"))
    naming.check_once(names, "annotators")
    if len(names) != len(every):
        problem = f"has {len(names)} names, and there are {len(every)} policies"
        refuse_data("annotators", problem=problem, expected="give one name for each policy")
    return every / every.sum(-1, keepdims=True), names


def walked(
    rng: np.random.Generator,
    mdp: MDP,
    policies: Float[np.ndarray, "walk state action"],
    state: Codes,
    steps: int,
) -> tuple[Int[np.ndarray, "walk step"], Int[np.ndarray, "walk step"]]:
    """States and actions of walks from some states, −1 after their last steps."""
    states, actions = np.full((2, len(state), steps), -1)
    ends, transition = np.asarray(mdp.ends), np.asarray(mdp.transition)
    for step in range(steps):
        on = np.flatnonzero(~ends[state])
        states[on, step] = state[on]
        actions[on, step] = drawn(rng, policies[on, state[on]])
        state[on] = drawn(rng, transition[state[on], actions[on, step]])
    return states, actions


def drawn(rng: np.random.Generator, probs: Float[np.ndarray, "row value"]) -> Codes:
    """One value of each row, by its probabilities."""
    total = probs.cumsum(-1)
    place: np.ndarray = (rng.random(len(probs))[:, None] * total[:, -1:] >= total).sum(-1)
    return np.asarray(np.minimum(place, probs.shape[-1] - 1))
