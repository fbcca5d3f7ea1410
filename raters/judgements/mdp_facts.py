"""Facts of a process that follow from its tables, and storing it, as a mixin of `MDP`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy.typing import ArrayLike

from raters.judgements.mdp_checks import check_process, check_weights, keeping, warn_of_unreached
from raters.judgements.names import names_to_json


class Process:
    """Facts of an `MDP`, equality, and its arrays and names as files hold them."""

    transition: Any
    features: Any
    start: Any
    allowed: Any
    discount: float
    states: tuple[Any, ...]
    actions: tuple[Any, ...]
    feature_names: tuple[Any, ...]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

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
        """States that every allowed action keeps, shape (state,)."""
        return keeping(np.asarray(self.transition), np.asarray(self.allowed))

    def reward(self, weights: ArrayLike) -> Float[np.ndarray, "state action"]:
        """Reward of each action in each state, linear in the features.

        Parameters
        ----------
        weights : array, shape (feature,)

        Returns
        -------
        array, shape (state, action)
        """
        return np.asarray(self.features @ check_weights(weights, self))

    def check(self) -> None:
        """Raise unless the arrays fit together; see `from_arrays`.

        Raises
        ------
        DataError, SettingError
        """
        check_process(self)

    def warn(self) -> None:
        """Warn of states that are never reached from the start.

        Warns
        -----
        DataWarning
        """
        warn_of_unreached(self)

    def __repr__(self) -> str:
        if not hasattr(self.transition, "shape"):  # a tree of something else
            return f"MDP(transition={self.transition!r})"
        return (
            f"MDP({self.num_states} states, {self.num_actions} actions, {self.num_features}"
            f" features, discount={self.discount:g})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Process):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            if name in self._arrays()
            else getattr(self, name) == getattr(other, name)
            for name in (*self._arrays(), *self._statics())
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self._statics()))

    # ---------------------------------------------------------------- storing

    def packed(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Copies of the arrays by field, which `unpack` puts together."""
        return {name: np.array(getattr(self, name)) for name in self._arrays()}

    def flags(self) -> dict[str, str]:
        """Names and discount as JSON by field, which `unpack` reads.

        Names that are neither whole numbers nor text become text.
        """
        values = {name: getattr(self, name) for name in self._statics()}
        return {
            name: names_to_json(value) if isinstance(value, tuple) else json.dumps(value)
            for name, value in values.items()
        }

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Shaped[np.ndarray, " ..."]], flags: Mapping[str, str]
    ) -> Self:
        """The process that `packed` and `flags` took apart.

        Parameters
        ----------
        arrays : mapping of str to array
            By field. Other entries are left alone.
        flags : mapping of str to str
            JSON by field. Other entries are left alone.

        Returns
        -------
        MDP

        Raises
        ------
        DataError, SettingError, KeyError
            When they do not fit together, or one is missing.
        """
        read = {name: json.loads(flags[name]) for name in cls._statics()}
        static_fields = {
            name: tuple(value) if isinstance(value, list) else value for name, value in read.items()
        }
        columns = {
            name: np.asarray(arrays[name], bool if name == "allowed" else np.float64)
            for name in cls._arrays()
        }
        mdp = cls(**columns, **static_fields)
        mdp.check()
        return mdp

    @classmethod
    def _statics(cls) -> tuple[str, ...]:
        """Fields that are no arrays."""
        own = cls.__dataclass_fields__.items()
        return tuple(name for name, field in own if field.metadata.get("static"))

    @classmethod
    def _arrays(cls) -> tuple[str, ...]:
        """Fields that are arrays."""
        return tuple(name for name in cls.__dataclass_fields__ if name not in cls._statics())
