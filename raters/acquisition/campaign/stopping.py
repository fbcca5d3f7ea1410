"""Stopping rules, which read a `Posterior`, and their combinations."""

from __future__ import annotations

import abc
import itertools
from dataclasses import dataclass
from typing import ClassVar

from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError


@dataclass(frozen=True)
class Stop(abc.ABC):
    """Stopping rule, called with the `Posterior` so far. ``one | other`` stops when either is met,
    ``one & other`` when both are.

    A subclass is a frozen dataclass that writes `value`, `describe` and `met`.
    """

    @abc.abstractmethod
    def value(self, posterior: Posterior) -> float:
        """Value that the rule compares with its threshold.

        Parameters
        ----------
        posterior : Posterior

        Returns
        -------
        float

        Raises
        ------
        SettingError
            When the rule has no meaning for the model.
        """

    @abc.abstractmethod
    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words.

        Parameters
        ----------
        posterior : Posterior

        Returns
        -------
        str
        """

    @abc.abstractmethod
    def met(self, value: float) -> bool:
        """True if the campaign stops at this value.

        Parameters
        ----------
        value : float
            As of `value`.

        Returns
        -------
        bool
        """

    def check(self, posterior: Posterior, draws: int) -> None:  # noqa: B027
        """Raise unless the rule has a meaning for this model and data, and can be met.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Number of draws of a fit.

        Raises
        ------
        SettingError
            When it has no meaning, or its threshold is beyond what so many draws can show.
        DataError
            When it names unknown annotators.
        """

    def __call__(self, posterior: Posterior) -> bool:
        """True if the campaign stops."""
        return self.met(self.value(posterior))

    def __or__(self, other: Stop) -> AnyOf:
        return AnyOf((self, other))

    def __and__(self, other: Stop) -> AllOf:
        return AllOf((self, other))


@dataclass(frozen=True)
class _Several(Stop):
    """Combination of rules; its value is the number of rules that are met."""

    rules: tuple[Stop, ...]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        _check_rules(self)

    def value(self, posterior: Posterior) -> float:
        """Number of rules that are met."""
        return float(sum(rule(posterior) for rule in self.rules))

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise the error of the first rule that has no meaning."""
        for rule in self.rules:
            rule.check(posterior, draws)

    def describe(self, posterior: Posterior) -> str:
        """Describe all rules in words."""
        return f"; {self.word} ".join(rule.describe(posterior) for rule in self.rules)


@dataclass(frozen=True)
class AnyOf(_Several):
    """Stop when one of several rules is met: ``TopIsRight(3, 0.95) | Budget(2000)``."""

    word = "or"

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= 1


@dataclass(frozen=True)
class AllOf(_Several):
    """Stop when all of several rules are met."""

    word = "and"

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= len(self.rules)


def _check_rules(given: _Several) -> None:
    """Check the rules, and flatten combinations of the same kind within."""
    rules = given.rules if isinstance(given.rules, tuple) else tuple(given.rules)
    if wrong := [rule for rule in rules if not isinstance(rule, Stop)]:
        raise SettingError(
            parameter="rules",
            value=wrong[0],
            expected="it must be a rule to stop by",
            instead="rt.acquisition.ExpectedTau(0.9)",
        )
    if not rules:
        raise SettingError(
            parameter="rules",
            problem="is empty",
            expected="give at least one rule",
            instead=f"{type(given).__name__}(rt.acquisition.Budget(1000))",
        )
    parts = [rule.rules if isinstance(rule, type(given)) else (rule,) for rule in rules]
    object.__setattr__(given, "rules", tuple(itertools.chain.from_iterable(parts)))
