"""Markov decision processes with finitely many states and actions: what demonstrations are of."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike

from raters.errors import refuse, refuse_data
from raters.errors.validation import checked, is_number, numbers, whole
from raters.judgements.names import (
    check_names,
    check_once,
    encode_names,
    name_list,
    name_text,
    shorten,
    warn_of_each,
)
from raters.judgements.reading.columns import read_columns, read_numbers, repeated, where
from raters.judgements.roles import number_of, static

# Name of the state that is added where episodes end.
END = "end"
_MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
# Sums of single-precision probabilities are 1 within this.
_ROUNDING = 1e-6
# What is left of it after the division by the sum.
_EXACT = 1e-12


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False, repr=False)
class MDP:
    r"""Markov decision process with tables of transitions and features.

    In state :math:`s` an action :math:`a` leads to :math:`s'` with probability
    :math:`P(s' \mid s, a)`, and its reward is linear in features,
    :math:`r(s, a) = \theta^\top \phi(s, a)`; which weights :math:`\theta` people have is what their
    demonstrations tell. Build it with `from_arrays`, `from_frame`, `from_gymnasium` or `grid`; the
    constructor takes arrays that are already right.

    Parameters
    ----------
    transition : float array, shape (state, action, next_state)
        Probabilities of the next states. They add up to 1, and are 0 for actions that are not
        allowed.
    features : float array, shape (state, action, feature)
    start : float array, shape (state,)
        Probability of each state to be the first.
    allowed : bool array, shape (state, action)
        Which actions there are in each state, at least one.
    discount : float
        Weight :math:`\gamma` of the reward of the next step beside that of this one, above 0 and
        at most 1.
    states, actions, feature_names : tuple
        The names, in code order.

    Attributes
    ----------
    num_states, num_actions, num_features : int
    ends : bool array, shape (state,)
        States that every allowed action keeps.

    Notes
    -----
    With a discount of 1 the return is finite only where a process ends: from each state an end must
    be reached with probability 1 under some policy, and an end has features of 0 and one allowed
    action. Where an end is reached under *every* policy, soft value iteration converges for each
    reward; where some policy walks in a circle for ever, it converges if each round costs enough:
    rewards below :math:`-\lambda \log A` with :math:`A` actions always do, with :math:`\lambda` the
    price of entropy.

    Examples
    --------
    >>> import raters as rt
    >>> rt.MDP.grid(3, 3, ends=[(2, 2)])
    MDP(10 states, 4 actions, 9 features, discount=0.95)
    """

    transition: Any
    features: Any
    start: Any
    allowed: Any
    discount: float = static(0.95)
    states: tuple[Any, ...] = static(())
    actions: tuple[Any, ...] = static(())
    feature_names: tuple[Any, ...] = static(())

    # ---------------------------------------------------------------- building

    @classmethod
    @checked
    def from_arrays(
        cls,
        transition: ArrayLike,
        *,
        features: ArrayLike | None = None,
        discount: float = 0.95,
        start: ArrayLike | None = None,
        allowed: ArrayLike | None = None,
        states: Iterable[Any] | None = None,
        actions: Iterable[Any] | None = None,
        feature_names: Iterable[Any] | None = None,
    ) -> Self:
        """Make a process of arrays.

        Parameters
        ----------
        transition : array, shape (state, action, next_state)
            Probabilities of the next states. Sums that differ from 1 by rounding, up to 1e-6, are
            made 1.
        features : array, shape (state, action, feature) or (state, feature), optional
            Those of states are the same for all actions. By default an indicator of each state;
            with a discount of 1 those of ends are 0.
        discount : float
            Above 0 and at most 1.
        start : array, shape (state,), optional
            Probability of each state to be the first; by default all that are no ends alike.
        allowed : bool array, shape (state, action), optional
            Which actions there are in each state; by default all. With a discount of 1 an end has
            one by default.
        states, actions, feature_names : iterable, optional
            Names in code order; by default numbers from 0, and the names of the states for the
            default features.

        Raises
        ------
        DataError, SettingError
            When probabilities are negative or do not add up to 1, shapes disagree, names come
            twice, an action is allowed nowhere or a state has none, or the discount is 1 and some
            state leads to no end; see the notes of `MDP`.

        Examples
        --------
        >>> import raters as rt
        >>> stay_or_go = [[[1, 0], [0.1, 0.9]], [[0, 1], [0, 1]]]
        >>> room = rt.MDP.from_arrays(stay_or_go, states=["in", "out"], actions=["stay", "go"])
        >>> room.ends.tolist(), room.start.tolist()
        ([False, True], [1.0, 0.0])
        """
        mdp = cls._of(
            discount,
            transition=transition,
            features=features,
            start=start,
            allowed=allowed,
            states=states,
            actions=actions,
            feature_names=feature_names,
        )
        mdp.warn()
        return mdp

    @classmethod
    @checked
    def from_frame(
        cls,
        frame: Any,
        *,
        state: str,
        action: str,
        next_state: str,
        probability: str | None = None,
        features: Sequence[str] = (),
        discount: float = 0.95,
        start: Any = None,
        states: Iterable[Any] | None = None,
        actions: Iterable[Any] | None = None,
    ) -> Self:
        """Read a process from a table with one row for each transition.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        state, action, next_state : str
            Columns with names. An action without a row in a state is not allowed there, and a state
            without rows is an end.
        probability : str, optional
            Column with the probability of the transition. Without it each has probability 1.
        features : sequence of str, optional
            Columns with features of the transitions, such as a reward, of which the expectation
            over the next states is taken. By default an indicator of each state, as in
            `from_arrays`.
        discount : float
            Above 0 and at most 1.
        start : name of a state, or mapping from names to probabilities, optional
            By default all states that are no ends alike.
        states, actions : iterable, optional
            All names in the order wanted.

        Examples
        --------
        >>> import raters as rt
        >>> table = {"at": ["home", "home", "road", "road"], "do": ["go", "rest", "go", "go"],
        ...          "then": ["road", "home", "work", "home"], "p": [1, 1, 0.9, 0.1]}
        >>> trip = rt.MDP.from_frame(table, state="at", action="do", next_state="then",
        ...                          probability="p", start="home")
        >>> trip.states, trip.allowed[trip.states.index("road")].tolist()
        (('home', 'road', 'work'), [True, False])
        """
        columns = {"state": state, "action": action, "next_state": next_state}
        known = {"state": states, "action": actions}
        tables = _of_frame(frame, columns, probability, tuple(features), start, known)
        mdp = cls._of(discount, **tables)
        mdp.warn()
        return mdp

    @classmethod
    @checked
    def from_gymnasium(cls, env: Any, *, discount: float = 0.95) -> Self:
        """Read the tables of an environment of Gymnasium, such as FrozenLake, Taxi or CliffWalking.

        An episode that terminates leads to an end: to the state itself where that is one for the
        environment, and otherwise to an additional state ``"end"``, as in Taxi and CliffWalking,
        where the last state goes on if it is asked to. States have the numbers of the environment;
        some may never be reached, such as the cliff. The one feature, ``"reward"``, is the expected
        reward, 0 in ends.

        Parameters
        ----------
        env : environment, or str
            One with tables, ``env.unwrapped.P[state][action]`` a list of (probability, next state,
            reward, terminated); or the id of one, such as ``"FrozenLake-v1"``.
        discount : float
            Above 0 and at most 1. Time limits of environments are not part of it.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import raters as rt
        >>> tables = {0: {0: [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]},
        ...           1: {0: [(1.0, 1, 0.0, True)]}}
        >>> coin = SimpleNamespace(P=tables, initial_state_distrib=[1.0, 0.0])
        >>> mdp = rt.MDP.from_gymnasium(SimpleNamespace(unwrapped=coin), discount=1.0)
        >>> mdp.features[:, 0].tolist(), mdp.ends.tolist()
        ([[0.5], [0.0]], [False, True])
        """
        return cls._of(discount, **_of_gymnasium(env))

    @classmethod
    @checked
    def grid(
        cls,
        rows: int,
        columns: int,
        *,
        slip: float = 0.1,
        features: Mapping[str, ArrayLike] | ArrayLike | None = None,
        ends: Sequence[tuple[int, int]] = (),
        discount: float = 0.95,
        start: tuple[int, int] | Sequence[tuple[int, int]] | None = None,
    ) -> Self:
        """Make a grid of cells, with a move to each of the four sides.

        A move that would leave the grid stays where it is. From an end every action
        leads to the additional state ``"end"``, in which there is nothing to choose and no
        reward: what an end is worth is had once.

        Parameters
        ----------
        rows, columns : int
        slip : float
            Probability that a move goes to one of its two sides instead, half each.
        features : mapping, or array, optional
            From the name of each feature to an array (row, column) of its values; or an array
            (row, column, feature) or (cell, feature), with the cells row by row. By
            default an indicator of each cell.
        ends : sequence of (row, column)
            Cells in which an episode ends.
        discount : float
            Above 0 and at most 1.
        start : (row, column), or a sequence of these, optional
            Cells in which episodes begin, all alike; by default all that are no ends.

        Returns
        -------
        MDP
            States have names such as ``"(0, 1)"`` for row 0 and column 1; actions are "up",
            "right", "down" and "left".

        Examples
        --------
        >>> import raters as rt
        >>> mdp = rt.MDP.grid(2, 3, slip=0.2, ends=[(1, 2)], start=(0, 0))
        >>> mdp.states
        ('(0, 0)', '(0, 1)', '(0, 2)', '(1, 0)', '(1, 1)', '(1, 2)', 'end')
        >>> mdp.transition[0, mdp.actions.index("right")].tolist()
        [0.1, 0.8, 0.0, 0.1, 0.0, 0.0, 0.0]
        """
        mdp = cls._of(discount, **_of_grid(rows, columns, slip, features, ends, start))
        mdp.warn()
        return mdp

    @classmethod
    def _of(cls, discount: float, **tables: Any) -> Self:
        """Process of tables of which all but the transitions may be left out."""
        _check_discount(discount)
        arrays = _completed(tables, undiscounted=discount == 1)
        size = arrays["transition"].shape
        states = _names("states", tables.get("states"), size[0])
        feature_names = tables.get("feature_names")
        if feature_names is None and tables.get("features") is None:
            feature_names = states
        mdp = cls(
            **arrays,
            discount=float(discount),
            states=states,
            actions=_names("actions", tables.get("actions"), size[1]),
            feature_names=_names("feature_names", feature_names, arrays["features"].shape[-1]),
        )
        mdp.check()
        return mdp

    # ---------------------------------------------------------------- facts

    num_states = number_of("states", "Number of states.")
    num_actions = number_of("actions", "Number of actions, allowed everywhere or not.")
    num_features = number_of("feature_names", "Number of features.")

    @property
    def ends(self) -> Bool[np.ndarray, " state"]:
        """States that every allowed action keeps, shape (state,). With a discount below 1 only
        those whose actions have the same features: otherwise there is something to choose for ever,
        as at a row of slot machines."""
        allowed, features = np.asarray(self.allowed), np.asarray(self.features)
        kept = _keeping(np.asarray(self.transition), allowed)
        if self.discount == 1:
            return kept
        first = features[np.arange(len(features)), allowed.argmax(-1)]
        differs = (features != first[:, None]).any(-1) & allowed
        return np.asarray(kept & ~differs.any(-1))

    def reward(self, weights: ArrayLike) -> Float[np.ndarray, "state action"]:
        """Reward of each action in each state, linear in the features, shape (state, action)."""
        array = numbers("weights", weights)
        _check_shape("weights", array, (self.num_features,), "(feature,)")
        _check_finite("weights", array)
        return np.asarray(self.features @ array)

    def check(self) -> None:
        """Raise unless the arrays fit together; see `from_arrays`."""
        _check_discount(self.discount)
        transition, allowed = np.asarray(self.transition), np.asarray(self.allowed)
        _check_transition(transition)
        size = transition.shape[:2]
        _check_allowed(allowed, size)
        _check_shape("start", self.start, size[:1], "(state,)")
        features = np.asarray(self.features)
        if features.ndim != 3 or features.shape[:2] != size or not features.size:
            refuse_data(
                "features",
                problem=f"has shape {features.shape}",
                expected=f"it must be (state, action, feature) or (state, feature), with {size[0]}"
                f" states and {size[1]} actions",
            )
        lengths = {"states": size[0], "actions": size[1], "feature_names": features.shape[-1]}
        for parameter, length in lengths.items():
            _check_names(parameter, getattr(self, parameter), length)
        for name in ("transition", "features", "start"):
            _check_finite(name, np.asarray(getattr(self, name)))
        _check_done(self, allowed)
        _check_probabilities(self, transition, allowed)
        if self.discount == 1:
            _check_ends(self)

    def warn(self) -> None:
        """Warn of states that are never reached from the start."""
        seen = _reached(_edges_of(self), np.asarray(self.start) > 0)
        sentence = (
            "state(s) are never reached from the start, so that no demonstration passes through"
            " them"
        )
        warn_of_each({sentence: (self.states, ~seen)})

    def __repr__(self) -> str:
        if not hasattr(self.transition, "shape"):  # a tree of something else
            return f"MDP(transition={self.transition!r})"
        return (
            f"MDP({self.num_states} states, {self.num_actions} actions, {self.num_features}"
            f" features, discount={self.discount:g})"
        )

    def __eq__(self, other: object) -> bool:
        names = [field.name for field in dataclasses.fields(self)]
        return isinstance(other, MDP) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    def __hash__(self) -> int:
        return hash((self.discount, self.states, self.actions, self.feature_names))


def _names(parameter: str, given: Iterable[Any] | None, size: int) -> tuple[Any, ...]:
    """Names that are given, as whole numbers or text, or numbers from 0."""
    if given is None:
        return tuple(range(size))
    listed = name_list(given, parameter, ordered=True)
    return tuple(name if isinstance(name, int) else name_text(name) for name in listed)


# ---------------------------------------------------------------- reading


def _completed(tables: Mapping[str, Any], *, undiscounted: bool) -> dict[str, np.ndarray]:
    """Arrays in double precision, with what is left out filled in."""
    transition = numbers("transition", tables["transition"])
    _check_transition(transition)
    size = transition.shape[:2]
    allowed = np.ones(size, bool)
    if (given := tables.get("allowed")) is not None:
        numbers("allowed", given)  # refuses rows of several lengths
        allowed = np.array(given)
        _check_allowed(allowed, size)
    ends = _keeping(transition, allowed)
    if undiscounted and given is None:
        allowed[ends, 1:] = False
    features = tables.get("features")
    if features is None:
        features = np.eye(size[0]) * ~(ends & undiscounted)
    features = numbers("features", features)
    if features.ndim == 2:
        features = np.repeat(features[:, None], size[1], 1)
    start = tables.get("start")
    if start is None:
        first = ~ends if not ends.all() else np.ones_like(ends)
        start = first / first.sum()
    return {
        "transition": _scaled_rows(np.where(allowed[..., None], transition, 0.0)),
        "features": features,
        "start": _scaled_rows(numbers("start", start)),
        "allowed": allowed,
    }


# ---------------------------------------------------------------- a long table


def _of_frame(
    frame: Any,
    columns: Mapping[str, str],
    probability: str | None,
    features: tuple[str, ...],
    start: Any,
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """Tables and names of a table with one row for each transition; see `MDP.from_frame`."""
    read = read_columns(frame, columns, several={"features": features}, probability=probability)
    ends = [read["state"], read["next_state"]]
    (first, after), states = encode_names(ends, known["state"], "state")
    action, actions = read.codes("action", known["action"])
    if (twice := repeated(first, action, after)).any():
        read["next_state"].refuse(
            f"has a transition that came before in {where(twice)}",
            "give each transition one row, with its probability",
            "frame.groupby([state, action, next_state], as_index=False)[probability].sum()",
        )
    size = (len(states), len(actions))
    weight = np.ones(len(first))
    if probability is not None:
        weight = read_numbers(read["probability"])
    transition, allowed = np.zeros((*size, size[0])), np.zeros(size, bool)
    transition[first, action, after] = weight
    allowed[first, action] = True
    final = np.flatnonzero(~allowed.any(1))
    transition[final, 0, final] = 1.0
    allowed[final, 0] = True
    table = None
    if features:
        table = np.zeros((*size, len(features)))
        for place, column in enumerate(read.lists["features"]):
            np.add.at(table[..., place], (first, action), weight * read_numbers(column))
    return {
        "transition": transition,
        "features": table,
        "start": _start_named(start, states),
        "allowed": allowed,
        "states": states,
        "actions": actions,
        "feature_names": features or None,
    }


def _start_named(start: Any, states: Sequence[Any]) -> Float[np.ndarray, " state"] | None:
    """Probabilities of the first state from a name, or from a mapping by name."""
    if start is None:
        return None
    code = {name_text(name): place for place, name in enumerate(states)}
    weights = start if isinstance(start, Mapping) else {name_text(start): 1.0}
    table = np.zeros(len(states))
    for name, weight in weights.items():
        if name_text(name) not in code or not is_number(weight):
            refuse_data(
                "start",
                start,
                f"gives {name!r} the probability {weight!r}",
                "name a state, or give probabilities by name of a state",
                instead=f"start={states[0]!r}",
            )
        table[code[name_text(name)]] = weight
    return table


# ---------------------------------------------------------------- Gymnasium


def _of_gymnasium(env: Any) -> dict[str, Any]:
    """Tables and names of an environment; see `MDP.from_gymnasium`."""
    rows, start = _tables_of(env)
    size = (len(rows), max(map(len, rows)))
    # An end is a state that every action keeps without a reward.
    final = np.array(
        [
            all(
                after == state and gain == 0
                for outcomes in of_state.values()
                for share, after, gain, _ in outcomes
                if share > 0
            )
            for state, of_state in enumerate(rows)
        ]
    )
    # The last column and row are those of the additional end.
    transition = np.zeros((size[0] + 1, size[1], size[0] + 1))
    reward, allowed = np.zeros((size[0] + 1, size[1])), np.zeros((size[0] + 1, size[1]), bool)
    for state, of_state in enumerate(rows):
        for action, outcomes in of_state.items():
            allowed[state, action] = not final[state] or action == min(of_state)
            for probability, after, gain, terminated in outcomes:
                place = size[0] if terminated and not final[after] else after
                transition[state, action, place] += probability
                reward[state, action] += probability * gain
    transition[-1, 0, -1] = allowed[-1, 0] = 1
    kept = np.append(np.ones(size[0], bool), transition[:-1, :, -1].any())
    table = np.where(np.append(final, True)[:, None], 0.0, reward)[..., None]
    return {
        "transition": transition[kept][..., kept],
        "features": table[kept],
        "start": np.append(start, 0.0)[kept],
        "allowed": allowed[kept],
        "states": [*range(size[0]), END][: int(kept.sum())],
        "actions": range(size[1]),
        "feature_names": ["reward"],
    }


def _tables_of(env: Any) -> tuple[list[Mapping[int, Any]], Float[np.ndarray, " state"]]:
    """Outcomes by action of each state, and the probabilities of the first state."""
    if isinstance(env, str):
        try:
            gymnasium = importlib.import_module("gymnasium")
            env = gymnasium.make(env)
        except Exception as error:  # Gymnasium is optional, and has errors of its own.
            refuse(
                "env",
                env,
                f"is no environment that can be made ({error})",
                "install Gymnasium, and name one of its tabular environments, or pass one",
                instead="pip install gymnasium, and env='FrozenLake-v1'",
            )
    environment = getattr(env, "unwrapped", env)
    outcomes = getattr(environment, "P", None)
    start = getattr(environment, "initial_state_distrib", None)
    if not isinstance(outcomes, Mapping) or not outcomes or start is None:
        refuse_data(
            "env",
            type(environment).__name__,
            "has no tables P and initial_state_distrib",
            "pass one of Gymnasium's tabular environments",
            instead="rt.MDP.from_gymnasium(gymnasium.make('FrozenLake-v1'))",
        )
    rows: list[Mapping[int, Any]] = [dict(outcomes[state]) for state in range(len(outcomes))]
    return rows, numbers("initial_state_distrib", start)


# ---------------------------------------------------------------- a grid


def _of_grid(
    rows: int, columns: int, slip: float, features: Any, ends: Any, start: Any
) -> dict[str, Any]:
    """Tables and names of a grid; see `MDP.grid`."""
    whole("rows", rows)
    whole("columns", columns)
    if not is_number(slip) or not 0 <= slip <= 1:
        refuse("slip", slip, expected="it must be a probability, from 0 to 1")
    code = np.arange(rows * columns).reshape(rows, columns)
    final = [code[cell] for cell in _cells("ends", ends, code.shape)]
    size = code.size + bool(final)
    transition = np.zeros((size, len(_MOVES), size))
    for cell in np.ndindex(code.shape):
        transition[code[cell], :, : code.size] = _moves(cell, code, slip)
    allowed = np.ones((size, len(_MOVES)), bool)
    if final:
        transition[final] = 0.0
        transition[final, :, -1] = 1.0
        transition[-1, 0, -1], allowed[-1, 1:] = 1.0, False
    names = [f"({row}, {column})" for row, column in np.ndindex(code.shape)]
    table, feature_names = _cell_features(features, code.shape, names)
    table = np.concatenate([table, np.zeros((size - len(table), table.shape[1]))])
    begin = np.zeros(size)
    inner = [place for place in range(code.size) if place not in final]
    first = [code[cell] for cell in _cells("start", start, code.shape)] or inner or [0]
    begin[first] = 1 / len(set(first))
    return {
        "transition": transition,
        "features": table,
        "start": begin,
        "allowed": allowed,
        "states": [*names, END][:size],
        "actions": list(_MOVES),
        "feature_names": feature_names,
    }


def _moves(
    cell: tuple[int, ...], code: Int[np.ndarray, "row column"], slip: float
) -> Float[np.ndarray, "action cell"]:
    """Probabilities of the next cells after each move."""
    after = []
    for step in _MOVES.values():
        row, column = cell[0] + step[0], cell[1] + step[1]
        inside = 0 <= row < code.shape[0] and 0 <= column < code.shape[1]
        after.append(code[row, column] if inside else code[cell])
    table = np.zeros((len(after), code.size))
    for move in range(len(after)):  # The sides of a move are its neighbours among the moves.
        for turn, share in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
            table[move, after[(move + turn) % len(after)]] += share
    return table


def _cells(parameter: str, cells: Any, shape: tuple[int, ...]) -> list[Any]:
    """Cells that are given as pairs, or as one pair."""
    if cells is None or len(cells) == 0:
        return []
    pairs = [cells] if all(isinstance(one, (int, np.integer)) for one in cells) else list(cells)
    for pair in pairs:
        numbered = np.ndim(pair) == 1 and len(pair) == 2 and np.asarray(pair).dtype.kind in "iu"
        if not numbered or not all(0 <= at < size for at, size in zip(pair, shape, strict=True)):
            refuse_data(
                parameter,
                pair,
                "is no cell of the grid",
                f"name cells by row and column, counted from 0, of {shape[0]} rows"
                f" and {shape[1]} columns",
                instead=f"{parameter}=[(0, 1)]",
            )
    return [tuple(map(int, pair)) for pair in pairs]


def _cell_features(
    given: Any, shape: tuple[int, ...], names: list[str]
) -> tuple[Float[np.ndarray, "cell feature"], list[Any]]:
    """Features of the cells and their names; by default an indicator of each."""
    if given is None:
        return np.eye(len(names)), list(names)
    labels = list(given) if isinstance(given, Mapping) else None
    if isinstance(given, Mapping):
        layers = [numbers("features", layer) for layer in given.values()]
        same = bool(layers) and all(layer.shape == shape for layer in layers)
        given = np.stack(layers, -1) if same else np.zeros(0)
    table = numbers("features", given)
    if table.ndim == 3 and table.shape[:2] == shape:
        table = table.reshape(len(names), -1)
    if table.ndim != 2 or len(table) != len(names):
        refuse_data(
            "features",
            problem="does not have a value for each cell",
            expected=f"give arrays of {shape[0]} rows and {shape[1]} columns by name, or"
            " one of (row, column, feature)",
            instead=f"features={{'mud': np.zeros({shape})}}",
        )
    return table, labels if labels is not None else list(range(table.shape[1]))


# ---------------------------------------------------------------- checks


def _scaled_rows(table: Float[np.ndarray, "*batch state"]) -> np.ndarray:
    """Probabilities whose sums over the last axis are 1 but for rounding, made exactly so."""
    total = table.sum(-1, keepdims=True)
    near = (np.abs(total - 1) <= _ROUNDING) & (total > 0)
    return np.asarray(np.where(near, table / np.where(near, total, 1.0), table))


def _keeping(
    transition: Float[np.ndarray, "state action next_state"],
    allowed: Bool[np.ndarray, "state action"],
) -> Bool[np.ndarray, " state"]:
    """Mask of the states that every allowed action keeps, shape (state,)."""
    stays = np.einsum("sas->sa", transition) >= 1 - _EXACT
    return np.asarray((stays | ~allowed).all(-1))


def _reached(
    edges: Bool[np.ndarray, "state next_state"], first: Bool[np.ndarray, " state"]
) -> Bool[np.ndarray, " state"]:
    """Mask of the states that edges lead to from the first ones, themselves included."""
    seen = first.copy()
    frontier = first
    while frontier.any():
        frontier = edges[frontier].any(0) & ~seen
        seen |= frontier
    return seen


def _edges_of(process: MDP) -> Bool[np.ndarray, "state next_state"]:
    """Mask of the states that may follow a state under some allowed action."""
    return np.asarray((process.transition > 0).any(1))


def _check_discount(discount: float) -> None:
    """A number above 0 and at most 1."""
    if not is_number(discount) or not 0 < discount <= 1:
        refuse(
            "discount",
            discount,
            expected="it must be above 0 and at most 1",
            instead="discount=0.95",
        )


def _check_transition(transition: Shaped[np.ndarray, " ..."]) -> None:
    """Raise unless a table of transitions has its axes."""
    if transition.ndim != 3 or transition.shape[0] != transition.shape[2] or not transition.size:
        refuse_data(
            "transition",
            problem=f"has shape {transition.shape}",
            expected="it must be (state, action, next_state), as many states first as last",
            instead="np.stack([of_action_0, of_action_1], axis=1) of tables (state, next_state)",
        )


def _check_allowed(allowed: Shaped[np.ndarray, " ..."], size: tuple[int, ...]) -> None:
    """Raise unless these are flags of each action in each state."""
    _check_shape("allowed", allowed, size, "(state, action)")
    if allowed.dtype != bool:
        refuse_data(
            "allowed",
            problem=f"has entries of type {allowed.dtype}",
            expected="it must hold flags",
            instead="allowed=allowed.astype(bool)",
        )


def _check_shape(name: str, array: Any, shape: tuple[int, ...], axes: str) -> None:
    if np.shape(array) != shape:
        refuse_data(
            name,
            problem=f"has shape {np.shape(array)}",
            expected=f"it must be {axes}, which is {shape}",
        )


def _check_names(parameter: str, names: Any, length: int) -> None:
    check_names(names, parameter, parameter.removesuffix("_names").removesuffix("s"))
    check_once(names, parameter)  # Tables name them as text.
    if len(names) != length:
        refuse_data(
            parameter,
            problem=f"has {len(names)} names, and the arrays have {length}",
            expected="give one name for each, in code order",
        )


def _check_finite(name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        refuse_data(
            name,
            problem="has NaN or infinite entries",
            expected="all must be finite numbers",
            instead=f"np.argwhere(~np.isfinite({name})) to see where",
        )


def _check_done(process: MDP, allowed: Bool[np.ndarray, "state action"]) -> None:
    """Raise unless something is to be done in each state, and each action somewhere."""
    for names, axis in ((process.states, 1), (process.actions, 0)):
        if (none := ~allowed.any(axis)).any():
            refuse_data(
                "allowed",
                problem=f"has no action in a state, or an action in none: {_some(names, none)}",
                expected="allow one action at least in each state (an end has one that keeps it),"
                " and leave out actions that there are not",
            )


def _check_probabilities(
    process: MDP,
    transition: Float[np.ndarray, "state action next_state"],
    allowed: Bool[np.ndarray, "state action"],
) -> None:
    """Raise unless no probability is below 0, and they add up to 1."""
    total = transition.sum(-1)
    wrong = (allowed & (np.abs(total - 1) > _EXACT * 100)) | (transition < 0).any(-1)
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        refuse_data(
            "transition",
            problem=f"has probabilities from {transition[state, action].min():g} that add up to"
            f" {total[state, action]:.6g} after action {process.actions[action]!r} in state"
            f" {process.states[state]!r} ({int(wrong.sum())} such in all)",
            expected="the probabilities of the next states must be at least 0 and add up to 1; an"
            " action that there is not is left out by `allowed`",
            instead="transition / transition.sum(-1, keepdims=True) of counts",
        )
    start = np.asarray(process.start)
    if start.min() < 0 or abs(start.sum() - 1) > _EXACT * 100:
        refuse_data(
            "start",
            problem=f"has probabilities from {start.min():g} that add up to {start.sum():.6g}",
            expected="it must hold probabilities of the states, which add up to 1",
            instead="start / start.sum()",
        )


def _check_ends(process: MDP) -> None:
    """Raise unless sums without weights are finite."""
    ends = process.ends
    # Backwards from the ends: where some policy gets to one with probability 1, the policy that
    # does everything at random does, since an end stays within reach.
    astray = ~_reached(_edges_of(process).T, ends)
    if astray.any():
        refuse_data(
            "discount",
            1.0,
            f"needs ends, and none is reached from state(s) {_some(process.states, astray)}",
            "give a discount below 1, or actions that lead to a state that all actions keep",
            instead="discount=0.95",
        )
    busy = ends & (process.allowed.sum(1) > 1)
    paid = ends & (np.where(process.allowed[..., None], process.features, 0) != 0).any((1, 2))
    for parameter, which, problem, expected in (
        ("allowed", busy, "has several actions in", "with a discount of 1 an end has one"),
        ("features", paid, "are not 0 in", "with a discount of 1 they are in ends"),
    ):
        if which.any():
            refuse_data(
                parameter,
                problem=f"{problem} end(s) {_some(process.states, which)}",
                expected=f"{expected}, so that nothing is added up there for ever",
                instead="discount=0.95" if parameter == "allowed" else "features[mdp.ends] = 0",
            )


def _some(names: tuple[Any, ...], which: Bool[np.ndarray, " name"]) -> str:
    return shorten([names[code] for code in np.flatnonzero(which)])
