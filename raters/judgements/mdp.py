"""Markov decision processes with finitely many states and actions: what demonstrations are of."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import jax
import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy.typing import ArrayLike

from raters.errors import refuse, refuse_data
from raters.errors.validation import checked, is_number, numbers, whole
from raters.judgements import names as naming
from raters.judgements.reading.columns import read_columns, read_numbers, refuse_where, repeated
from raters.judgements.roles import number_of, static

# Name of the state that is added where episodes end.
END = "end"
_NAMES = ("states", "actions", "feature_names")
_MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
_Probs = Float[np.ndarray, "state action next_state"]
_Flags = Bool[np.ndarray, "state action"]
_States = Bool[np.ndarray, " state"]
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
        tables: dict[str, Any] = {"transition": transition, "features": features}
        tables |= {"start": start, "allowed": allowed, "states": states, "actions": actions}
        return cls._of(discount, **tables, feature_names=feature_names)

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
        listed = tuple(features)
        read = read_columns(frame, columns, several={"features": listed}, probability=probability)
        ends = [read["state"], read["next_state"]]
        (first, after), state_names = naming.encode_names(ends, states, "state")
        act, action_names = read.codes("action", actions)
        refuse_where(
            read["next_state"],
            repeated(first, act, after),
            "has a transition that came before",
            "give each transition one row, with its probability",
            "frame.groupby([state, action, next_state], as_index=False)[probability].sum()",
        )
        size = (len(state_names), len(action_names))
        weight = np.ones(len(first)) if probability is None else read_numbers(read["probability"])
        transition, allowed = np.zeros((*size, size[0])), np.zeros(size, bool)
        transition[first, act, after] = weight
        allowed[first, act] = True
        final = np.flatnonzero(~allowed.any(1))
        transition[final, 0, final] = allowed[final, 0] = 1
        table = np.zeros((*size, len(listed)))
        for place, column in enumerate(read.lists["features"]):
            np.add.at(table[..., place], (first, act), weight * read_numbers(column))
        described: dict[str, Any] = {}
        if listed:
            described = {"features": table, "feature_names": listed}
        tables: dict[str, Any] = {"start": _start_named(start, state_names), "allowed": allowed}
        tables |= {"transition": transition, "states": state_names, "actions": action_names}
        return cls._of(discount, **tables, **described)

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
        rows, start = _tables_of(env)
        number, actions = len(rows), max(map(len, rows))
        outcomes = [
            (state, action, *outcome)
            for state, of_state in enumerate(rows)
            for action, every in of_state.items()
            for outcome in every
        ]
        state, action, after = np.array([(one[0], one[1], one[3]) for one in outcomes], int).T
        share, gain, terminated = np.array([(one[2], *one[4:]) for one in outcomes], float).T
        # An end is a state that every action keeps without a reward.
        final = np.ones(number, bool)
        final[state[(share > 0) & ((after != state) | (gain != 0))]] = False
        # The last column and row are those of the additional end.
        transition = np.zeros((number + 1, actions, number + 1))
        reward, allowed = np.zeros((number + 1, actions)), np.zeros((number + 1, actions), bool)
        place = np.where((terminated != 0) & ~final[after], number, after)
        np.add.at(transition, (state, action, place), share)
        np.add.at(reward, (state, action), share * gain)
        allowed[state, action] = ~final[state] | (action == np.array([*map(min, rows)])[state])
        transition[-1, 0, -1] = allowed[-1, 0] = 1
        kept = np.append(np.ones(number, bool), transition[:-1, :, -1].any())
        table = np.where(np.append(final, True)[:, None], 0.0, reward)[..., None]
        tables = {
            "transition": transition[kept][..., kept],
            "features": table[kept],
            "start": np.append(start, 0.0)[kept],
            "allowed": allowed[kept],
            "states": [*range(number), END][: int(kept.sum())],
            "actions": range(actions),
            "feature_names": ["reward"],
        }
        return cls._of(discount, warn=False, **tables)

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
        return cls._of(discount, **_of_grid(rows, columns, slip, features, ends, start))

    @classmethod
    def _of(cls, discount: float, *, warn: bool = True, **tables: Any) -> Self:
        """Process of tables of which all but the transitions may be left out."""
        arrays: dict[str, Any] = _completed(tables, undiscounted=discount == 1)
        size = arrays["transition"].shape[:2]
        sizes = dict(zip(_NAMES, (*size, arrays["features"].shape[-1]), strict=True))
        if tables.get("feature_names") is None and tables.get("features") is None:
            tables["feature_names"] = tables.get("states") or range(sizes["states"])
        names = {name: _names(name, tables.get(name), size) for name, size in sizes.items()}
        mdp = cls(**arrays, discount=float(discount), **names)
        mdp.check()
        if warn:
            mdp.warn()
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
        if not is_number(self.discount) or not 0 < self.discount <= 1:
            expected = "it must be above 0 and at most 1"
            refuse("discount", self.discount, expected=expected, instead="discount=0.95")
        transition, allowed = np.asarray(self.transition), np.asarray(self.allowed)
        features = np.asarray(self.features)
        _check_transition(transition)
        states, actions = transition.shape[:2]
        _check_allowed(allowed, (states, actions))
        _check_shape("start", self.start, (states,), "(state,)")
        depth = max(features.shape[-1:], default=0) or 1
        _check_shape("features", features, (states, actions, depth), "(state, action, feature)")
        for parameter, length in zip(_NAMES, features.shape, strict=True):
            _check_names(parameter, getattr(self, parameter), length)
        for name in ("transition", "features", "start"):
            _check_finite(name, np.asarray(getattr(self, name)))
        _check_probabilities(self, transition, allowed)
        if self.discount == 1:
            _check_ends(self)

    def warn(self) -> None:
        """Warn of states that are never reached from the start."""
        seen = _reached(_edges_of(self), np.asarray(self.start) > 0)
        sentence = "state(s) are never reached from the start, so that no demonstration is in them"
        naming.warn_of_each({sentence: (self.states, ~seen)})

    def __repr__(self) -> str:
        if not hasattr(self.transition, "shape"):  # a tree of something else
            return f"MDP(transition={self.transition!r})"
        sizes = f"{self.num_states} states, {self.num_actions} actions"
        return f"MDP({sizes}, {self.num_features} features, discount={self.discount:g})"

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
    listed = naming.name_list(given, parameter, ordered=True)
    return tuple(name if isinstance(name, int) else naming.name_text(name) for name in listed)


# ---------------------------------------------------------------- reading


def _completed(tables: Mapping[str, Any], *, undiscounted: bool) -> dict[str, np.ndarray]:
    """Arrays in double precision, with what is left out filled in."""
    transition = numbers("transition", tables["transition"])
    _check_transition(transition)
    size = transition.shape[:2]
    allowed, features, start = (tables.get(name) for name in ("allowed", "features", "start"))
    given = allowed is not None
    if given:
        numbers("allowed", allowed)  # refuses rows of several lengths
    allowed = np.array(allowed) if given else np.ones(size, bool)
    _check_allowed(allowed, size)
    ends = _keeping(transition, allowed)
    if undiscounted and not given:
        allowed[ends, 1:] = False
    if features is None:
        features = np.eye(size[0]) * ~(ends & undiscounted)
    features = numbers("features", features)
    if features.ndim == 2:
        features = np.repeat(features[:, None], size[1], 1)
    first = np.ones_like(ends) if ends.all() else ~ends
    return {
        "transition": _scaled_rows(np.where(allowed[..., None], transition, 0.0)),
        "features": features,
        "start": _scaled_rows(first / first.sum() if start is None else numbers("start", start)),
        "allowed": allowed,
    }


def _start_named(start: Any, states: Sequence[Any]) -> Float[np.ndarray, " state"] | None:
    """Probabilities of the first state from a name, or from a mapping by name."""
    if start is None:
        return None
    code = {naming.name_text(name): place for place, name in enumerate(states)}
    weights = start if isinstance(start, Mapping) else {naming.name_text(start): 1.0}
    table = np.zeros(len(states))
    for name, weight in weights.items():
        if naming.name_text(name) not in code or not is_number(weight):
            problem = f"gives {name!r} the probability {weight!r}"
            expected = "name a state, or give probabilities by name of a state"
            refuse_data("start", start, problem, expected, instead=f"start={states[0]!r}")
        table[code[naming.name_text(name)]] = weight
    return table


# ---------------------------------------------------------------- Gymnasium


def _tables_of(env: Any) -> tuple[list[Mapping[int, Any]], Float[np.ndarray, " state"]]:
    """Outcomes by action of each state, and the probabilities of the first state."""
    if isinstance(env, str):
        try:
            env = importlib.import_module("gymnasium").make(env)
        except Exception as error:  # Gymnasium is optional, and has errors of its own.
            problem = f"is no environment that can be made ({error})"
            expected = "install Gymnasium, and name one of its tabular environments, or pass one"
            line = "pip install gymnasium, and env='FrozenLake-v1'"
            refuse("env", env, problem, expected, instead=line)
    environment = getattr(env, "unwrapped", env)
    outcomes = getattr(environment, "P", None)
    start = getattr(environment, "initial_state_distrib", None)
    if not isinstance(outcomes, Mapping) or not outcomes or start is None:
        problem = "has no tables P and initial_state_distrib"
        expected = "pass one of Gymnasium's tabular environments"
        line = "rt.MDP.from_gymnasium(gymnasium.make('FrozenLake-v1'))"
        refuse_data("env", type(environment).__name__, problem, expected, instead=line)
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
    shape, number = (rows, columns), rows * columns
    final = _cells("ends", ends, shape)
    size = number + bool(final)
    cell, moves = np.arange(number)[:, None], np.array(list(_MOVES.values()))
    after = np.clip(cell // columns + moves[:, 0], 0, rows - 1) * columns
    after += np.clip(cell % columns + moves[:, 1], 0, columns - 1)
    transition = np.zeros((size, len(moves), size))
    # The sides of a move are its neighbours among the moves.
    for turn, share in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
        transition[cell, np.arange(len(moves)), np.roll(after, -turn, axis=1)] += share
    allowed = np.ones((size, len(moves)), bool)
    if final:
        transition[final] = 0.0
        transition[final, :, -1] = 1.0
        transition[-1, 0, -1], allowed[-1, 1:] = 1.0, False
    names = [f"({row}, {column})" for row, column in np.ndindex(shape)]
    table, feature_names = _cell_features(features, shape, names)
    begin = np.zeros(size)
    first = _cells("start", start, shape) or sorted({*range(number)} - {*final}) or [0]
    begin[first] = 1 / len(set(first))
    return {
        "transition": transition,
        "features": np.concatenate([table, np.zeros((size - len(table), table.shape[1]))]),
        "start": begin,
        "allowed": allowed,
        "states": [*names, END][:size],
        "actions": list(_MOVES),
        "feature_names": feature_names,
    }


def _cells(parameter: str, cells: Any, shape: tuple[int, int]) -> list[int]:
    """Numbers of cells that are given as pairs, or as one pair."""
    if cells is None or len(cells) == 0:
        return []
    pairs = [cells] if all(isinstance(one, (int, np.integer)) for one in cells) else list(cells)
    for pair in pairs:
        numbered = np.shape(pair) == (2,) and np.asarray(pair).dtype.kind in "iu"
        if not numbered or not all(0 <= at < size for at, size in zip(pair, shape, strict=True)):
            expected = "name cells by row and column, counted from 0, of {} rows and {} columns"
            such = f"{parameter}=[(0, 1)]"
            refuse_data(
                parameter, pair, "is no cell of the grid", expected.format(*shape), instead=such
            )
    return [int(row * shape[1] + column) for row, column in pairs]


def _cell_features(
    given: Any, shape: tuple[int, int], names: list[str]
) -> tuple[Float[np.ndarray, "cell feature"], list[Any]]:
    """Features of the cells and their names; by default an indicator of each."""
    if given is None:
        return np.eye(len(names)), list(names)
    labels = list(given) if isinstance(given, Mapping) else None
    if labels is not None:
        layers = [numbers("features", layer) for layer in given.values()]
        same = bool(layers) and all(layer.shape == shape for layer in layers)
        given = np.stack(layers, -1) if same else np.zeros(0)
    table = numbers("features", given)
    if table.ndim == 3 and table.shape[:2] == shape:
        table = table.reshape(len(names), -1)
    if table.ndim != 2 or len(table) != len(names):
        problem = "does not have a value for each cell"
        expected = "give arrays of {} rows and {} columns by name, or one of (row, column, feature)"
        such = f"features={{'mud': np.zeros({shape})}}"
        expected = expected.format(*shape)
        refuse_data("features", problem=problem, expected=expected, instead=such)
    return table, labels if labels is not None else list(range(table.shape[1]))


# ---------------------------------------------------------------- checks


def _scaled_rows(table: Float[np.ndarray, "*batch state"]) -> np.ndarray:
    """Probabilities whose sums over the last axis are 1 but for rounding, made exactly so."""
    total = table.sum(-1, keepdims=True)
    near = (np.abs(total - 1) <= _ROUNDING) & (total > 0)
    return np.asarray(np.where(near, table / np.where(near, total, 1.0), table))


def _keeping(transition: _Probs, allowed: _Flags) -> _States:
    """Mask of the states that every allowed action keeps, shape (state,)."""
    stays = np.einsum("sas->sa", transition) >= 1 - _EXACT
    return np.asarray((stays | ~allowed).all(-1))


def _reached(edges: Bool[np.ndarray, "state next_state"], first: _States) -> _States:
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


def _check_transition(transition: Shaped[np.ndarray, " ..."]) -> None:
    """Raise unless a table of transitions has its axes."""
    if transition.ndim != 3 or transition.shape[0] != transition.shape[2] or not transition.size:
        expected = "it must be (state, action, next_state), as many states first as last"
        line = "np.stack([of_action_0, of_action_1], axis=1) of tables (state, next_state)"
        problem = f"has shape {transition.shape}"
        refuse_data("transition", problem=problem, expected=expected, instead=line)


def _check_allowed(allowed: Shaped[np.ndarray, " ..."], size: tuple[int, int]) -> None:
    """Raise unless these are flags of each action in each state."""
    _check_shape("allowed", allowed, size, "(state, action)")
    if allowed.dtype != bool:
        problem, line = f"has entries of type {allowed.dtype}", "allowed=allowed.astype(bool)"
        refuse_data("allowed", problem=problem, expected="it must hold flags", instead=line)


def _check_shape(name: str, array: Any, shape: tuple[int, ...], axes: str) -> None:
    if np.shape(array) != shape:
        expected = f"it must be {axes}, which is {shape}"
        refuse_data(name, problem=f"has shape {np.shape(array)}", expected=expected)


def _check_names(parameter: str, names: Any, length: int) -> None:
    naming.check_names(names, parameter, parameter.removesuffix("_names").removesuffix("s"))
    naming.check_once(names, parameter)  # Tables name them as text.
    if len(names) != length:
        problem = f"has {len(names)} names, and the arrays have {length}"
        refuse_data(parameter, problem=problem, expected="give one name for each, in code order")


def _check_finite(name: str, array: np.ndarray) -> None:
    if not np.isfinite(array).all():
        expected, line = "all must be finite", f"np.argwhere(~np.isfinite({name})) to see where"
        refuse_data(name, problem="has NaN or infinite entries", expected=expected, instead=line)


def _check_probabilities(process: MDP, transition: _Probs, allowed: _Flags) -> None:
    """Raise unless states have actions, actions states, and probabilities sum to 1."""
    for names, axis in ((process.states, 1), (process.actions, 0)):
        if (none := ~allowed.any(axis)).any():
            problem = f"has no action in a state, or an action in none: {_some(names, none)}"
            expected = "allow one action at least in each state, and each action in some state"
            refuse_data("allowed", problem=problem, expected=expected)
    total, start = transition.sum(-1), np.asarray(process.start)
    wrong = (allowed & (np.abs(total - 1) > _EXACT * 100)) | (transition < 0).any(-1)
    if wrong.any():
        state, action = np.argwhere(wrong)[0]
        where = f"{process.actions[action]!r} in state {process.states[state]!r}"
        where = f" after action {where} ({int(wrong.sum())} such in all)"
        _refuse_sum("transition", transition[state, action], where)
    if start.min() < 0 or abs(start.sum() - 1) > _EXACT * 100:
        _refuse_sum("start", start)


def _refuse_sum(name: str, probs: Float[np.ndarray, " state"], where: str = "") -> NoReturn:
    problem = f"has probabilities from {probs.min():g} that add up to {probs.sum():.6g}{where}"
    expected = "the probabilities of states must be at least 0 and add up to 1"
    line = f"{name} / {name}.sum(-1, keepdims=True) of counts"
    refuse_data(name, problem=problem, expected=expected, instead=line)


def _check_ends(process: MDP) -> None:
    """Raise unless sums without weights are finite."""
    ends = process.ends
    # Backwards from the ends: where some policy gets to one with probability 1, the policy that
    # does everything at random does, since an end stays within reach.
    astray = ~_reached(_edges_of(process).T, ends)
    busy = ends & (process.allowed.sum(1) > 1)
    paid = ends & (np.where(process.allowed[..., None], process.features, 0) != 0).any((1, 2))
    for parameter, which, problem, line in (
        ("discount", astray, "needs ends, and none is reached from state(s)", "discount=0.95"),
        ("allowed", busy, "has several actions in end(s)", "discount=0.95"),
        ("features", paid, "are not 0 in end(s)", "features[mdp.ends] = 0"),
    ):
        if which.any():
            problem = f"{problem} {_some(process.states, which)}"
            expected = "with a discount of 1 an end, in which one action keeps it at a reward of 0,"
            expected += " must be reached from each state"
            refuse_data(parameter, problem=problem, expected=expected, instead=line)


def _some(names: tuple[Any, ...], which: Bool[np.ndarray, " name"]) -> str:
    return naming.shorten([names[code] for code in np.flatnonzero(which)])
