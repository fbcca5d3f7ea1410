"""Rules that stop when the result is certain enough.

A share of draws resolves no more than one draw. The rules on probabilities count one further draw
that disagrees, so that a threshold beyond the resolution is not met by accident:
``OrderIsRight(0.999)`` needs a thousand effective draws. The effective number of draws is that of
the diagnostics of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from raters.acquisition.campaign.stopping import Stop
from raters.acquisition.scoring.certainty import (
    expected_share_of_right_pairs,
    probability_of_order,
    probability_of_top,
)
from raters.acquisition.scoring.criteria import order_site
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError
from raters.errors.validation import share, whole


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
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
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
        """Raise unless the model has one order, and so many draws show the probability: see
        `Stop.check`."""
        _rewards(posterior)
        _check_shown(self.probability, draws)

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
        """Raise unless the model has one order of enough items, and so many draws show the
        probability: see `Stop.check`."""
        probability_of_top(_rewards(posterior), posterior.weight, k=self.k)
        _check_shown(self.probability, draws)

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
        """Raise unless the model has one order: see `Stop.check`."""
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

    Probabilities are those of `raters.calibrate`, which allow for mistakes that the crowd makes
    together. Without known classes some labels are always expected to be wrong, however many agree:
    to stop above that, give classes of items that were drawn at random
    (`raters.Labels.with_truth`).

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
        return float(posterior.true_classes().max(-1).mean())

    def check(self, posterior: Posterior, draws: int) -> None:
        """Raise unless the model has classes of items: see `Stop.check`."""
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


def _rewards(posterior: Posterior) -> Float[np.ndarray, "chain draw item"]:
    """Draws of the rewards or worths, shape (chain, draw, item)."""
    name = order_site(posterior)
    reward = np.asarray(posterior.site(name, "so there is no order to be sure of", "stop"))
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


def _check_shown(probability: float, draws: int) -> None:
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
            expected="ask for less, or stop by an expected tau",
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
