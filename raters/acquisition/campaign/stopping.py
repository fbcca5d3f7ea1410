"""Stopping rules, which read a `Posterior`.

A share of draws resolves no more than one draw. The rules on probabilities count one further draw
that disagrees, so that a threshold beyond the resolution is not met by accident:
``OrderIsRight(0.999)`` needs a thousand effective draws. The effective number of draws is that of
the diagnostics of the fit.
"""

from __future__ import annotations

import abc
import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from raters._validation import positive, share, whole
from raters.acquisition.policy.policy import Policy, check_names
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scoring.certainty import (
    expected_share_of_right_pairs,
    probability_of_order,
    probability_of_top,
)
from raters.acquisition.scoring.criteria import Bald, Criterion
from raters.acquisition.scoring.posterior import Posterior, sample_of
from raters.errors import DataError, SettingError


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
        """True if the campaign stops.

        Parameters
        ----------
        posterior : Posterior

        Returns
        -------
        bool
        """
        return self.met(self.value(posterior))

    def __or__(self, other: Stop) -> AnyOf:
        return AnyOf((self, other))

    def __and__(self, other: Stop) -> AllOf:
        return AllOf((self, other))


@dataclass(frozen=True)
class OrderIsRight(Stop):
    """Stop when the order of posterior means is right with at least this probability; for few
    items.

    Parameters
    ----------
    probability : float
        Between 0 and 1. With n effective draws at most 1 − 1/(n + 1) is ever met.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import OrderIsRight, Posterior
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> posterior = Posterior.of(rt.BTL(), result, draws=200)
    >>> OrderIsRight(0.5)(posterior)
    True
    """

    probability: float

    def __post_init__(self) -> None:
        share("probability", self.probability)

    def value(self, posterior: Posterior) -> float:
        """Probability, with one further draw that disagrees."""
        return _cautious(
            probability_of_order(_rewards(posterior), posterior.weight).probability, posterior
        )

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the model has one order, and so many draws can show the probability.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Number of draws of a fit.

        Raises
        ------
        SettingError
            For a model without one order, and for a probability above 1 − 1 / (draws + 1).
        """
        _rewards(posterior)
        _check_shown(self, self.probability, draws)

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        num_items = _rewards(posterior).shape[-1]
        return (
            f"the order of the {num_items} items is right with probability"
            f" {_against(self, self.probability, posterior)}"
        )

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= self.probability


@dataclass(frozen=True)
class TopIsRight(Stop):
    """Stop when the k items of the highest posterior means are the k best with at least this
    probability.

    Parameters
    ----------
    k : int
    probability : float
        Between 0 and 1. With n effective draws at most 1 − 1/(n + 1) is ever met.
    """

    k: int
    probability: float

    def __post_init__(self) -> None:
        whole("k", self.k)
        share("probability", self.probability)

    def value(self, posterior: Posterior) -> float:
        """Probability, with one further draw that disagrees."""
        return _cautious(
            probability_of_top(_rewards(posterior), posterior.weight, k=self.k).probability,
            posterior,
        )

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the model has one order of enough items, and so many draws can show the
        probability.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Number of draws of a fit.

        Raises
        ------
        SettingError
            For a model without one order, for fewer items, and for a probability above 1 − 1 /
            (draws + 1).
        """
        probability_of_top(_rewards(posterior), posterior.weight, k=self.k)
        _check_shown(self, self.probability, draws)

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        return (
            f"the {self.k} best items are known with probability"
            f" {_against(self, self.probability, posterior)}"
        )

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= self.probability


@dataclass(frozen=True)
class ExpectedTau(Stop):
    """Stop when the expected Kendall's τ between the order of posterior means and the true order is
    at least this.

    Parameters
    ----------
    at_least : float
        Between 0 and 1. It is a mean over pairs and draws, so few draws suffice.
    """

    at_least: float

    def __post_init__(self) -> None:
        share("at_least", self.at_least)

    def value(self, posterior: Posterior) -> float:
        """Expected value of Kendall's τ."""
        return 2 * expected_share_of_right_pairs(_rewards(posterior), posterior.weight) - 1

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the model has one order.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Not used.

        Raises
        ------
        SettingError
            For a model without one order.
        """
        _rewards(posterior)

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        return (
            f"the order is expected to have a τ of {self.value(posterior):.3f} with the true one"
            f" (asked for {self.at_least:g})"
        )

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= self.at_least


@dataclass(frozen=True)
class ExpectedAccuracy(Stop):
    """Stop when the expected share of right labels, by most probable class, is at least this.

    Parameters
    ----------
    at_least : float
        Between 0 and 1.
    """

    at_least: float

    def __post_init__(self) -> None:
        share("at_least", self.at_least)

    def value(self, posterior: Posterior) -> float:
        """Mean over items of the probability of the most probable class."""
        self.check(posterior, 0)
        return float(posterior.responsibility().max(-1).mean())

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the model has classes of items.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Not used.

        Raises
        ------
        SettingError
            For a model without classes of items.
        """
        if not posterior.has_truth:
            kind = type(posterior.model).__name__
            raise SettingError(
                parameter="at_least",
                value=self.at_least,
                problem=(
                    f"is an accuracy of classes that a likelihood sums out, and {kind} has none"
                ),
                expected="choose another rule to stop by, or another model",
                instead="rt.acquisition.ExpectedTau(0.9), or rt.acquisition.GainBelow(0.01)",
            )

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        return (
            f"{self.value(posterior):.1%} of the items' labels are expected to be right (asked for"
            f" {self.at_least:.1%})"
        )

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= self.at_least


@dataclass(frozen=True)
class GainBelow(Stop):
    """Stop when no question has an expected gain per cost above this.

    The maximum is taken over the questions that can still be asked, or `limit` of them, drawn at
    random: in a campaign those that its pool and budget leave, with the open ones; elsewhere all
    questions about the items and annotators of the data, of labels those that were not asked.

    Parameters
    ----------
    bits_per_cost : float
        Above 0.
    costs : mapping, optional
        Cost of an answer of each annotator, 1 for those it does not name; by default the costs of
        the campaign.
    score : Criterion, optional
        ``Bald()`` by default: bits about all parameters.
    limit : int
        Number of questions beyond which a sample of this size is used.
    """

    bits_per_cost: float
    costs: Any = None
    score: Criterion | None = None
    limit: int = 20_000

    def __post_init__(self) -> None:
        positive("bits_per_cost", self.bits_per_cost)
        whole("limit", self.limit)
        policy = Policy(costs=self.costs, score=self.score)  # checks both
        object.__setattr__(self, "costs", policy.costs)

    def value(self, posterior: Posterior) -> float:
        """Highest expected gain per cost; 0 when there is nothing left to ask."""
        data, questions = posterior.data, self._questions(posterior)
        if questions is None:
            return 0.0
        gain = (self.score or Bald())(posterior, questions, seed=0)
        cost = posterior.cost
        if self.costs is not None or cost is None:
            cost = Policy(costs=self.costs).cost_of(data.judges)
        return float((gain / cost[np.asarray(questions.codes(data.judge))]).max())

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the score has a meaning for the model, and the costs name annotators.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Not used.

        Raises
        ------
        SettingError
            For a score that the model does not have, or that is negative.
        DataError
            For costs of unknown annotators.
        """
        check_names(Policy(costs=self.costs), posterior.data.judges)
        if self.value(posterior) < 0:
            raise SettingError(
                parameter="score",
                value=self.score,
                problem="can be negative",
                expected="it must be at least 0",
                instead="score=rt.acquisition.Epig()",
            )

    def _questions(self, posterior: Posterior) -> Any:
        """Questions over which the maximum is taken; None when nothing is left."""
        if (pool := posterior.pool) is not None:
            if not pool.num_rows:
                return None
            return sample_of(pool, self.limit, np.random.default_rng(0))
        try:
            return Candidates.of(posterior.data, limit=self.limit)
        except DataError:  # everything was asked
            return None

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        return (
            f"the best question gains {self.value(posterior):.3g} bits per cost (stop below"
            f" {self.bits_per_cost:g})"
        )

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value < self.bits_per_cost


@dataclass(frozen=True)
class Budget(Stop):
    """Stop when the total cost of the answers reaches this.

    Parameters
    ----------
    cost : float
        Above 0.
    costs : mapping, optional
        Cost of an answer of each annotator, 1 for those it does not name.
    before : float
        Cost of the judgements from before the campaign, which are in the data and do not count.
    """

    cost: float
    costs: Any = None
    before: float = 0.0

    def __post_init__(self) -> None:
        positive("cost", self.cost)
        if self.before != 0:
            positive("before", self.before)
        object.__setattr__(self, "costs", Policy(costs=self.costs).costs)

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the costs name annotators.

        Parameters
        ----------
        posterior : Posterior
        draws : int
            Not used.

        Raises
        ------
        DataError
            For costs of unknown annotators.
        """
        check_names(Policy(costs=self.costs), posterior.data.judges)

    def value(self, posterior: Posterior) -> float:
        """Total cost of the answers."""
        data = posterior.data
        return (
            float(data.judgements_by(data.judge) @ Policy(costs=self.costs).cost_of(data.judges))
            - self.before
        )

    def describe(self, posterior: Posterior) -> str:
        """Describe the value and its threshold in words."""
        return f"{self.value(posterior):g} of {self.cost:g} are spent"

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= self.cost


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


def _rewards(posterior: Posterior) -> Float[np.ndarray, "chain draw item"]:
    """Draws of the rewards, shape (chain, draw, item)."""
    reward = np.asarray(posterior.site("reward", "whose order to be sure of", "stop"))
    if reward.ndim != 3:
        raise SettingError(
            parameter="stop",
            problem=(
                f"needs one order of the items, and {type(posterior.model).__name__} has several,"
                f" of axes {reward.shape[2:]}"
            ),
            expected="choose a rule that reads no order",
            instead="stop=rt.acquisition.GainBelow(0.01)",
        )
    return reward


def _check_shown(rule: OrderIsRight | TopIsRight, probability: float, draws: int) -> None:
    """Raise `SettingError` for a probability that is never met, though all of so many draws
    agreed."""
    most = 1 - 1 / (draws + 1)
    if probability > most:
        raise SettingError(
            parameter="probability",
            value=probability,
            problem=(
                f"would never be met: the {draws} draws of a fit show at most"
                f" {np.floor(1e3 * most) / 1e3:g}"
            ),
            expected=("ask for less, or stop by an expected tau"),
            instead=(
                f"probability={np.floor(1e2 * most) / 1e2:g}, or rt.acquisition.ExpectedTau(0.99)"
            ),
        )


def _cautious(probability: float, posterior: Posterior) -> float:
    """Share of draws with one further draw that disagrees."""
    num_draws = posterior.independent_draws
    return probability * num_draws / (num_draws + 1)


def _against(rule: OrderIsRight | TopIsRight, probability: float, posterior: Posterior) -> str:
    """Probability, its threshold, and the highest value that the draws can show, in words."""
    num_draws = posterior.independent_draws
    most = 1 - 1 / (num_draws + 1)
    words = (
        f"{rule.value(posterior):.3f} (asked for {probability:g}; {num_draws:.0f} draws tell at"
        f" most {most:.4g})"
    )
    return words if most >= probability else f"{words}: never met, use more draws"
