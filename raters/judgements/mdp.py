"""Markov decision processes with finitely many states and actions: what demonstrations are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from raters.errors.validation import checked
from raters.judgements import mdp_tables
from raters.judgements.names import check_ordered, name_list, name_text, warn_of_each
from raters.judgements.roles import static


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
        tables = mdp_tables.of_frame(frame, columns, probability, tuple(features), start, known)
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
        return cls._of(discount, **mdp_tables.of_gymnasium(env))

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
        mdp = cls._of(discount, **mdp_tables.of_grid(rows, columns, slip, features, ends, start))
        mdp.warn()
        return mdp

    @classmethod
    def _of(cls, discount: float, **tables: Any) -> Self:
        """Process of tables of which all but the transitions may be left out."""
        mdp_tables.check_discount(discount)
        arrays = mdp_tables.completed(tables, undiscounted=discount == 1)
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

    @property
    def num_states(self) -> int:
        """Number of states."""
        return int(self.transition.shape[0])

    @property
    def num_actions(self) -> int:
        """Number of actions, allowed everywhere or not."""
        return int(self.transition.shape[1])

    @property
    def num_features(self) -> int:
        """Number of features."""
        return int(self.features.shape[-1])

    @property
    def ends(self) -> Bool[np.ndarray, " state"]:
        """States that every allowed action keeps, shape (state,). With a discount below 1 only
        those whose actions have the same features: otherwise there is something to choose for ever,
        as at a row of slot machines."""
        allowed, features = np.asarray(self.allowed), np.asarray(self.features)
        kept = mdp_tables.keeping(np.asarray(self.transition), allowed)
        if self.discount == 1:
            return kept
        first = features[np.arange(len(features)), allowed.argmax(-1)]
        differs = (features != first[:, None]).any(-1) & allowed
        return np.asarray(kept & ~differs.any(-1))

    def reward(self, weights: ArrayLike) -> Float[np.ndarray, "state action"]:
        """Reward of each action in each state, linear in the features, shape (state, action)."""
        return np.asarray(self.features @ mdp_tables.check_weights(weights, self))

    def check(self) -> None:
        """Raise unless the arrays fit together; see `from_arrays`."""
        mdp_tables.check_process(self)

    def warn(self) -> None:
        """Warn of states that are never reached from the start."""
        seen = mdp_tables.reached(mdp_tables.edges_of(self), np.asarray(self.start) > 0)
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
        if not isinstance(other, MDP):
            return NotImplemented
        same_arrays = all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS
        )
        return same_arrays and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        """Fields that are no arrays."""
        return self.discount, self.states, self.actions, self.feature_names


_ARRAYS = ("transition", "features", "start", "allowed")


def _names(parameter: str, given: Iterable[Any] | None, size: int) -> tuple[Any, ...]:
    """Names that are given, as whole numbers or text, or numbers from 0."""
    if given is None:
        return tuple(range(size))
    check_ordered(given, parameter)
    return tuple(
        name if isinstance(name, int) else name_text(name) for name in name_list(given, parameter)
    )
