"""Facts of a process that follow from its tables, as a mixin of `MDP`."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from raters.judgements.mdp_checks import check_process, check_weights, keeping, warn_of_unreached


class Process:
    """Facts of an `MDP`, and equality."""

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
        """States that every allowed action keeps, shape (state,). With a discount below 1 only
        those whose actions have the same features: otherwise there is something to choose for ever,
        as at a row of slot machines."""
        allowed, features = np.asarray(self.allowed), np.asarray(self.features)
        kept = keeping(np.asarray(self.transition), allowed)
        if self.discount == 1:
            return kept
        first = features[np.arange(len(features)), allowed.argmax(-1)]
        differs = (features != first[:, None]).any(-1) & allowed
        return np.asarray(kept & ~differs.any(-1))

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

    @classmethod
    def _statics(cls) -> tuple[str, ...]:
        """Fields that are no arrays."""
        own = cls.__dataclass_fields__.items()
        return tuple(name for name, field in own if field.metadata.get("static"))

    @classmethod
    def _arrays(cls) -> tuple[str, ...]:
        """Fields that are arrays."""
        return tuple(name for name in cls.__dataclass_fields__ if name not in cls._statics())
