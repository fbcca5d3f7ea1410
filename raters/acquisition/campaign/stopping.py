"""Stopping rules, which read a `Posterior`.

Rules on probabilities count one further draw that disagrees, so that a threshold beyond the
resolution of the effective draws is not met by accident.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from raters.acquisition.policy import Policy
from raters.acquisition.posterior import Posterior, sample_of
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scores import Bald, Criterion, order_site
from raters.errors import DataError, refuse
from raters.errors.validation import at_most, instance, positive, share, whole

# With more pairs of items than this a random sample of so many stands for all; numbers held at a
# time; questions of which the best is sought.
_MOST_PAIRS, _NUMBERS, _MOST_QUESTIONS = 2_000_000, 1 << 22, 20_000


@dataclass(frozen=True)
class Stop(abc.ABC):
    """Stopping rule, called with the `Posterior` so far. ``one | other`` stops when either is met,
    ``one & other`` when both are.

    A subclass is a frozen dataclass that writes `value`, and has a threshold `at_least` or writes
    `met` and `describe` too.
    """

    @abc.abstractmethod
    def value(self, posterior: Posterior) -> float:
        """Value that is compared with the threshold; `SettingError` where it has no meaning."""

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return bool(value >= self.at_least)  # type: ignore[attr-defined]

    def describe(self, value: float) -> str:
        """Describe a value and the threshold in words."""
        return f"{self!r}, and it is {value:.3f}"

    def __call__(self, posterior: Posterior) -> bool:
        """True if the campaign stops."""
        return self.met(self.value(posterior))

    def __or__(self, other: Stop) -> Stop:
        return Several((self, other), "or")

    def __and__(self, other: Stop) -> Stop:
        return Several((self, other), "and")


@dataclass(frozen=True)
class Several(Stop):
    """Rules of which one must be met, or all; the value is the number of rules that are met."""

    rules: tuple[Stop, ...]
    word: str

    def __post_init__(self) -> None:
        for rule in self.rules:
            instance("stop", rule, Stop, "a rule to stop by", "ExpectedTau(0.9)")

    def value(self, posterior: Posterior) -> float:
        """Number of rules that are met."""
        return float(sum(rule(posterior) for rule in self.rules))

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value >= (1 if self.word == "or" else len(self.rules))

    def describe(self, value: float) -> str:
        """Describe the value in words."""
        return f"{value:g} of {f' {self.word} '.join(map(repr, self.rules))}"


@dataclass(frozen=True)
class _AtLeast(Stop):
    """Rules that stop at a value of `at_least` so much."""

    at_least: float

    def __post_init__(self) -> None:
        share("at_least", self.at_least)


@dataclass(frozen=True)
class OrderIsRight(_AtLeast):
    """Stop when the order of posterior means is right with at least this probability; for few
    items.

    Parameters
    ----------
    at_least : float
        Between 0 and 1. With n effective draws at most 1 − 1/(n + 1) is ever met.
    top : int, optional
        Only whether so many items of the highest posterior means are the best, in any order.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import OrderIsRight, Posterior
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> posterior = Posterior.of(rt.BTL(), result, draws=200)
    >>> OrderIsRight(0.5)(posterior)
    True
    """

    top: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top is not None:
            whole("top", self.top)

    def value(self, posterior: Posterior) -> float:
        """Share of draws with the order of the means, with one further draw that disagrees."""
        reward, weight = _rewards(posterior)
        if self.at_least > 1 - 1 / (len(weight) + 1):
            problem = f"would never be met by {len(weight)} draws"
            refuse("at_least", self.at_least, problem, "ask for less, or for `ExpectedTau`")
        drawn, estimate = (
            np.argsort(-values, axis=-1, kind="stable") for values in (reward, weight @ reward)
        )
        if self.top is not None:
            at_most("top", self.top, reward.shape[1], "items")
            drawn, estimate = (np.sort(order[..., : self.top], -1) for order in (drawn, estimate))
        number = min(posterior.effective_draws, posterior.independent)
        return float(weight[(drawn == estimate).all(1)].sum()) * number / (number + 1)


@dataclass(frozen=True)
class ExpectedTau(_AtLeast):
    """Stop when the expected Kendall's τ between the order of posterior means and the true order is
    at least this. It is a mean over pairs and draws, so few draws suffice."""

    def value(self, posterior: Posterior) -> float:
        """Expected τ: 2s − 1 with s the expected share of all pairs, two million at most, that are
        in the right order; a pair of equal means counts as half right."""
        reward, weight = _rewards(posterior)
        mean, num_items = weight @ reward, reward.shape[1]
        if num_items < 2:
            refuse("stop", self, "needs an order of two items or more", "leave it out")
        if num_items * (num_items - 1) // 2 <= _MOST_PAIRS:
            first, second = np.triu_indices(num_items, 1)
        else:
            rng = np.random.default_rng(0)
            first = rng.integers(num_items, size=_MOST_PAIRS)
            second = (first + rng.integers(1, num_items, size=_MOST_PAIRS)) % num_items
        columns, total = np.ascontiguousarray(reward.T), 0.0
        step = max(1, _NUMBERS // len(weight))
        for begin in range(0, len(first), step):
            i, j = first[begin : begin + step], second[begin : begin + step]
            # P(i better) − P(j better)
            agreement = np.sign(columns[i] - columns[j]) @ weight
            total += float((np.sign(mean[i] - mean[j]) * agreement).sum())
        return 2 * ((1 + total / len(first)) / 2) - 1


@dataclass(frozen=True)
class ExpectedAccuracy(_AtLeast):
    """Stop when the expected share of right labels, by most probable class, is at least this.

    Probabilities are those of `raters.calibrate`, which allow for mistakes that the crowd makes
    together. Without known classes some labels are always expected to be wrong, however many agree:
    to stop above that, give classes of items that were drawn at random
    (`raters.Labels.with_truth`).
    """

    def value(self, posterior: Posterior) -> float:
        """Mean over items of the probability of the most probable class."""
        if not posterior.program.has_truth:
            problem = "is of true classes, and the model has none"
            refuse("at_least", self.at_least, problem, "choose another, such as `ExpectedTau`")
        return float(posterior.true_classes().max(-1).mean())


@dataclass(frozen=True)
class GainBelow(Stop):
    """Stop when no question has an expected gain per cost above this.

    The maximum is taken over the questions that can still be asked, or 20,000 of them, drawn at
    random: in a campaign those that its pool and budget leave, with the open ones, at its costs;
    elsewhere all questions about the items and annotators of the data, of labels those that were
    not asked.

    Parameters
    ----------
    bits_per_cost : float
        Above 0.
    score : Criterion, optional
        ``Bald()`` by default: bits about all parameters.
    """

    bits_per_cost: float
    score: Criterion | None = None

    def __post_init__(self) -> None:
        positive("bits_per_cost", self.bits_per_cost)
        Policy(score=self.score)  # checks it

    def value(self, posterior: Posterior) -> float:
        """Highest expected gain per cost; 0 when there is nothing left to ask."""
        if posterior.pool is not None:
            questions: Any = sample_of(posterior.pool, _MOST_QUESTIONS, np.random.default_rng(0))
        else:
            try:
                questions = Candidates.of(posterior.data, limit=_MOST_QUESTIONS)
            except DataError:  # everything was asked
                return 0.0
        if not questions.num_rows:
            return 0.0
        gain = (self.score or Bald())(posterior, questions, seed=0)
        cost = np.ones(1) if posterior.cost is None else posterior.cost
        judge = np.asarray(questions.codes(posterior.data.judge)) if len(cost) > 1 else 0
        return float((gain / cost[judge]).max())

    def met(self, value: float) -> bool:
        """True if the campaign stops at this value."""
        return value < self.bits_per_cost

    def describe(self, value: float) -> str:
        """Describe the value and its threshold in words."""
        return f"{self!r}, and the best question gains {value:.3g} bits per cost"


# ---------------------------------------------------------------- the order


Rewards = tuple[Float[np.ndarray, "draw item"], Float[np.ndarray, " draw"]]


def _rewards(posterior: Posterior) -> Rewards:
    """Draws of the rewards or worths, and their weights, in double precision."""
    reward = np.asarray(posterior.site(order_site(posterior), "stop"), np.float64)
    if reward.ndim != 2:
        problem = "needs one order of the items, and there is one for each type"
        refuse("stop", problem=problem, expected="choose another rule, such as `GainBelow`")
    return reward, posterior.share
