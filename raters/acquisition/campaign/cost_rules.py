"""Rules that stop when answers cost more than they are worth, or than is left to spend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raters.acquisition.campaign.stopping import Stop
from raters.acquisition.policy.policy import Policy, check_names
from raters.acquisition.questions.candidates import Candidates
from raters.acquisition.scoring.criteria import Bald, Criterion
from raters.acquisition.scoring.posterior import Posterior, sample_of
from raters.errors import DataError, SettingError
from raters.errors.validation import positive, whole


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
        """Raise unless the score has a meaning for the model, and the costs name annotators: see
        `Stop.check`."""
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
        """Raise unless the costs name annotators: see `Stop.check`."""
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
