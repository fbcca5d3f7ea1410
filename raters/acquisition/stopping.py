"""Rules that say when to stop asking, read off a `Posterior`.

A share of draws says nothing finer than one draw. The rules on probabilities count one disagreeing draw beside those that there
are, so that a demand that the draws cannot bear out is not met by accident: ``OrderIsRight(0.999)`` takes a thousand effective
draws. Draws of a chain that mixes slowly count for as few as its diagnostics say.
"""

from __future__ import annotations

import abc
import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from raters._check import positive, share, whole
from raters.acquisition.candidates import Candidates
from raters.acquisition.certainty import expected_share_of_right_pairs, probability_of_order, probability_of_top
from raters.acquisition.criteria import Bald, Criterion
from raters.acquisition.policy import Policy, check_names
from raters.acquisition.posterior import Posterior, sample_of
from raters.data import Comparisons
from raters.errors import DataError, SettingError
from raters.labels import Labels
from raters.predict import latent_of


@dataclass(frozen=True)
class Stop(abc.ABC):
    """A rule that says when to stop, called with the `Posterior` so far. ``one | other`` stops at either, ``one & other`` when
    both say so."""

    @abc.abstractmethod
    def value(self, posterior: Posterior) -> float:
        """What the rule looks at."""

    @abc.abstractmethod
    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""

    @abc.abstractmethod
    def met(self, value: float) -> bool:
        """Whether to stop at this value."""

    def check(self, posterior: Posterior, draws: int) -> None:  # noqa: B027
        """`SettingError` when the rule has no meaning for this model and data, or asks for more than so many draws can show."""

    def __call__(self, posterior: Posterior) -> bool:
        """Whether to stop."""
        return self.met(self.value(posterior))

    def __or__(self, other: Stop) -> AnyOf:
        return AnyOf((self, other))

    def __and__(self, other: Stop) -> AllOf:
        return AllOf((self, other))


@dataclass(frozen=True)
class OrderIsRight(Stop):
    """Stop when the order of posterior means is right with at least this probability; for few items.

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
        """The probability, one draw that disagrees counted in."""
        return _cautious(probability_of_order(_rewards(posterior), posterior.weight).probability, posterior)

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for a model without one order, and for a probability that so many draws cannot show."""
        _rewards(posterior)
        _check_shown(self, self.probability, draws)

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        number = _rewards(posterior).shape[-1]
        return f"the order of the {number} items is right with probability {_against(self, self.probability, posterior)}"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= self.probability


@dataclass(frozen=True)
class TopIsRight(Stop):
    """Stop when the k items of the highest posterior means are the k best with at least this probability.

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
        """The probability, one draw that disagrees counted in."""
        return _cautious(probability_of_top(_rewards(posterior), posterior.weight, k=self.k).probability, posterior)

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for a model without one order, fewer items, and for a probability that so many draws cannot show."""
        probability_of_top(_rewards(posterior), posterior.weight, k=self.k)
        _check_shown(self, self.probability, draws)

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        return f"the {self.k} best items are known with probability {_against(self, self.probability, posterior)}"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= self.probability


@dataclass(frozen=True)
class ExpectedTau(Stop):
    """Stop when Kendall's τ between the order of posterior means and the true order is expected to be at least this.

    Parameters
    ----------
    at_least : float
        Between 0 and 1. A mean over pairs and draws, so few draws do.
    """

    at_least: float

    def __post_init__(self) -> None:
        share("at_least", self.at_least)

    def value(self, posterior: Posterior) -> float:
        """Expected τ."""
        return 2 * expected_share_of_right_pairs(_rewards(posterior), posterior.weight) - 1

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for a model without one order."""
        _rewards(posterior)

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        return (
            f"the order is expected to have a τ of {self.value(posterior):.3f} with the true one (asked for {self.at_least:g})"
        )

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= self.at_least


@dataclass(frozen=True)
class ExpectedAccuracy(Stop):
    """Stop when at least this share of the items' most probable classes are expected to be right; for labels.

    Parameters
    ----------
    at_least : float
        Between 0 and 1.
    """

    at_least: float

    def __post_init__(self) -> None:
        share("at_least", self.at_least)

    def value(self, posterior: Posterior) -> float:
        """The mean over items of the probability of the most probable class."""
        self.check(posterior, 0)
        return float(posterior.responsibility().max(-1).mean())

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for comparisons, and for a model without classes."""
        if not isinstance(posterior.data, Labels):
            raise SettingError("ExpectedAccuracy is for labels; for comparisons use ExpectedTau(at_least=...)")
        if latent_of(posterior.model, posterior.data) is None:
            raise SettingError(
                f"{type(posterior.model).__name__} sums out no classes, which ExpectedAccuracy looks at; use GainBelow(0.01)"
            )

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        return f"{self.value(posterior):.1%} of the items' labels are expected to be right (asked for {self.at_least:.1%})"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= self.at_least


@dataclass(frozen=True)
class GainBelow(Stop):
    """Stop when no question is expected to tell more than this for what it costs.

    Looked for among what can still be asked, up to `limit` questions, drawn at random: in a campaign what is left of its pool
    and of its budget, with the questions that wait for an answer; elsewhere all questions about the items and annotators of the
    data, of labels those that were not asked.

    Parameters
    ----------
    bits_per_cost : float
        Above 0.
    costs : mapping, optional
        What an answer of each annotator costs, 1 where nothing is said; without it what it costs in the campaign.
    score : Criterion, optional
        ``Bald()`` by default: bits about all parameters.
    limit : int
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
        """The highest expected gain per cost; 0 when there is nothing left to ask."""
        data, questions = posterior.data, self._questions(posterior)
        if questions is None:
            return 0.0
        gain = (self.score or Bald())(posterior, questions, seed=0)
        cost = posterior.cost
        if self.costs is not None or cost is None:
            cost = Policy(costs=self.costs).cost_of(data.annotators)
        return float((gain / cost[np.asarray(questions.annotator)]).max())

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for a score that the model does not have or that is negative, `DataError` for unknown annotators."""
        check_names(Policy(costs=self.costs), posterior.data.annotators)
        if self.value(posterior) < 0:
            raise SettingError(f"{self!r} needs a score of at least 0, and this one can be negative; use score=Epig()")

    def _questions(self, posterior: Posterior) -> Any:
        """Where it is looked for; None when nothing is left."""
        if (pool := posterior.pool) is not None:
            return sample_of(pool, self.limit, np.random.default_rng(0)) if len(pool.annotator) else None
        if isinstance(posterior.data, Comparisons):
            return Candidates.pairs(posterior.data, limit=self.limit)
        try:
            return Candidates.labels(posterior.data, limit=self.limit)
        except DataError:  # everything was asked
            return None

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        return f"the best question gains {self.value(posterior):.3g} bits per cost (stop below {self.bits_per_cost:g})"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value < self.bits_per_cost


@dataclass(frozen=True)
class Budget(Stop):
    """Stop when this much was spent.

    Parameters
    ----------
    cost : float
        Above 0.
    costs : mapping, optional
        What an answer of each annotator costs, 1 where nothing is said.
    before : float
        What the judgements from before would cost, which are in the data and are not counted.
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
        """`DataError` for costs of unknown annotators."""
        check_names(Policy(costs=self.costs), posterior.data.annotators)

    def value(self, posterior: Posterior) -> float:
        """What was spent."""
        data = posterior.data
        return float(data.votes_by_annotator() @ Policy(costs=self.costs).cost_of(data.annotators)) - self.before

    def describe(self, posterior: Posterior) -> str:
        """The value and what is asked of it, in words."""
        return f"{self.value(posterior):g} of {self.cost:g} are spent"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= self.cost


@dataclass(frozen=True)
class _Several(Stop):
    """Rules put together; its value is how many of them say so."""

    rules: tuple[Stop, ...]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        _check_rules(self)

    def value(self, posterior: Posterior) -> float:
        """How many rules say so."""
        return float(sum(rule(posterior) for rule in self.rules))

    def check(self, posterior: Posterior, draws: int) -> None:
        """`SettingError` for the first rule that cannot be."""
        for rule in self.rules:
            rule.check(posterior, draws)

    def describe(self, posterior: Posterior) -> str:
        """All rules in words."""
        return f"; {self.word} ".join(rule.describe(posterior) for rule in self.rules)


@dataclass(frozen=True)
class AnyOf(_Several):
    """Stop when one of several rules says so: ``TopIsRight(3, 0.95) | Budget(2000)``."""

    word = "or"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= 1


@dataclass(frozen=True)
class AllOf(_Several):
    """Stop when all of several rules say so."""

    word = "and"

    def met(self, value: float) -> bool:
        """Whether to stop at this value."""
        return value >= len(self.rules)


def _check_rules(given: _Several) -> None:
    """Rules, those of the same kind within taken out of their brackets."""
    rules = given.rules if isinstance(given.rules, tuple) else tuple(given.rules)
    if wrong := [rule for rule in rules if not isinstance(rule, Stop)]:
        raise SettingError(f"{wrong[0]!r} is no rule to stop by; give such as rt.acquisition.ExpectedTau(0.9)")
    if not rules:
        raise SettingError(f"{type(given).__name__} needs a rule, such as Budget(1000)")
    parts = [rule.rules if isinstance(rule, type(given)) else (rule,) for rule in rules]
    object.__setattr__(given, "rules", tuple(itertools.chain.from_iterable(parts)))


def _rewards(posterior: Posterior) -> np.ndarray:
    """Draws of the rewards, shape (chain, draw, item)."""
    reward = np.asarray(posterior.site("reward", "whose order to be sure of"))
    if reward.ndim != 3:
        raise SettingError(
            f"{type(posterior.model).__name__} has several orders, of axes {reward.shape[2:]}; these rules know one"
        )
    return reward


def _check_shown(rule: OrderIsRight | TopIsRight, probability: float, draws: int) -> None:
    """`SettingError` for a probability that is never met, though all of so many draws agreed."""
    most = 1 - 1 / (draws + 1)
    if probability > most:
        raise SettingError(
            f"{rule!r} would never be met: the {draws} draws of a fit show at most {np.floor(1e3 * most) / 1e3:g}; ask for "
            f"probability={np.floor(1e2 * most) / 1e2:g}, or use ExpectedTau(0.99)"
        )


def _cautious(probability: float, posterior: Posterior) -> float:
    """A share of draws with one more that disagrees."""
    number = posterior.independent_draws
    return probability * number / (number + 1)


def _against(rule: OrderIsRight | TopIsRight, probability: float, posterior: Posterior) -> str:
    """A probability, what is asked of it, and what the draws can tell."""
    number = posterior.independent_draws
    most = 1 - 1 / (number + 1)
    said = f"{rule.value(posterior):.3f} (asked for {probability:g}; {number:.0f} draws tell at most {most:.4g})"
    return said if most >= probability else f"{said}: never met, use more draws"
