r"""Intervals that known truths give without any assumption about the crowd.

Of n known truths that were drawn at random, y of which are a success (a wrong label, a right
answer), Jeffreys' interval is that of :math:`\mathrm{Beta}(y + ½, n - y + ½)` (Brown, Cai and
DasGupta 2001, Interval estimation for a binomial proportion). The prediction-powered one takes
probabilities f of success, which do not know the truths, also of N other questions:

.. math::

    \hat\theta = \lambda \bar f_N + \overline{(y - \lambda f)}_n, \qquad
    \hat\lambda = \frac{\operatorname{Cov}_n(y, f)}{(1 + n / N) \operatorname{Var}_N f}, \qquad
    \operatorname{Var} \hat\theta =
        \frac{\hat\lambda^2 \operatorname{Var}_N f}{N}
        + \frac{\operatorname{Var}_n(y - \hat\lambda f)}{n}

(Angelopoulos, Duchi and Zrnic 2023, PPI++: efficient prediction-powered inference), with λ kept
between 0 and 1.

Those who look after each new truth need intervals that hold at all looks together. The confidence
sequence has each share p with

.. math::

    \frac{\int q^y (1 - q)^{n - y} \, \mathrm{Beta}(q \mid ½, ½) \, dq}{p^y (1 - p)^{n - y}}
        = \frac{B(y + ½, n - y + ½)}{B(½, ½) \, p^y (1 - p)^{n - y}} < \frac{1}{1 - \text{level}}.

At the true p the ratio is a martingale that starts at 1, and so it ever reaches 1 / (1 − level)
with probability 1 − level at most (Ville's inequality; Robbins 1970, Statistical methods related to
the law of the iterated logarithm; Howard, Ramdas, McAuliffe and Sekhon 2021, Time-uniform,
nonparametric, nonasymptotic confidence sequences). A question may also add any a to y and b to
n − y with a + b at most 1: as :math:`x^a z^b \le 1 + a (x - 1) + b (z - 1)`, the ratio is then a
supermartingale at p = E a / E (a + b). Two judges are compared so, with a and b by how much the
one, and the other, is right more often on a question that both answered: of single answers, the
questions that one of the two has right, each a fair coin between judges who are equally good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.special import betaincinv, betaln, ndtri, xlog1py, xlogy

from raters.auditing.intervals import table
from raters.auditing.words import worded

# The statement about items, beside those about annotators.
WRONG_LABELS = "share of wrong labels"
# Successes, and failures, from which on an interval by the normal distribution is one.
_FEWEST, _NOTHING = 5, np.array([np.nan, 0.0, 1.0])
PerStatement = Float[np.ndarray, " statement"]
PerKnown = Float[np.ndarray, " known"]
PerOther = Float[np.ndarray, " other"]
# Estimate and ends of the interval of each statement.
Intervals = Float[np.ndarray, "statement 3"]


def jeffreys(successes: PerStatement, number: PerStatement, level: float) -> Intervals:
    """Shares of successes and Jeffreys' intervals; NaN and from 0 to 1 of none."""
    ends = successes + 0.5, number - successes + 0.5
    low, high = (betaincinv(*ends, tail) for tail in ((1 - level) / 2, (1 + level) / 2))
    with np.errstate(invalid="ignore"):
        mean = successes / number
    none = number <= 0
    return np.stack([mean, np.where(none, 0.0, low), np.where(none, 1.0, high)], axis=1)


def anytime(
    successes: PerStatement, number: PerStatement, level: float
) -> Float[np.ndarray, "statement 2"]:
    """Ends of the confidence sequences of shares of successes; from 0 to 1 of none."""
    mixture = betaln(successes + 0.5, number - successes + 0.5) - betaln(0.5, 0.5)

    def lower(won: PerStatement) -> PerStatement:
        low, high = np.zeros(len(won)), won / np.maximum(number, 1e-9)
        for _ in range(50):  # Bisection: below the share the ratio falls.
            middle = (low + high) / 2
            log_ratio = mixture - xlogy(won, middle) - xlog1py(number - won, -middle)
            outside = log_ratio >= -np.log1p(-level)
            low, high = np.where(outside, middle, low), np.where(outside, high, middle)
        return np.asarray(low)

    return np.stack([lower(successes), 1 - lower(number - successes)], axis=1)


class JudgeComparison(NamedTuple):
    """Comparison of two judges, from `Audit.compare`.

    Attributes
    ----------
    p_better : float
        Posterior probability that the first one is right more often.
    discordant : float
        Number of known truths on which one of the two is right and the other is wrong.
    share_low, share_high : float
        Ends of the confidence sequence of the share of these on which the first one is right.
    decided : bool
        True if the confidence sequence excludes ½: one of the two is better.
    """

    p_better: float
    discordant: float
    share_low: float
    share_high: float
    decided: bool


def leads(answers: pd.DataFrame, one: int, other: int) -> tuple[float, float]:
    """By how much one annotator, and the other, is right more often on the same questions."""
    mine, theirs = (
        answers[answers["annotator"] == code].groupby("question").sum() for code in (one, other)
    )
    # Questions that one of the two did not answer are NaN, which sums leave out.
    gap = mine["right"] / mine["number"] - theirs["right"] / theirs["number"]
    gap *= np.minimum(mine["number"] / mine["answers"], theirs["number"] / theirs["answers"])
    return float(gap.clip(lower=0).sum()), float(-gap.clip(upper=0).sum())


def prediction_powered(
    success: PerKnown, predicted: PerKnown, weights: PerKnown, others: PerOther, level: float
) -> Float[np.ndarray, " 3"]:
    """Share of successes and its prediction-powered interval; NaN and from 0 to 1 of fewer than
    two, which weigh as so many equally likely ones (Kish 1965)."""
    number = weights.sum() ** 2 / max((weights**2).sum(), 1e-12)
    if min(len(success), number, len(others)) < 2:
        return _NOTHING
    variance, ratio = others.var(ddof=1), number / len(others)
    covariance = np.cov(success, predicted, aweights=weights)[0, 1]
    slope = np.clip(covariance / max((1 + ratio) * variance, 1e-12), 0.0, 1.0)
    left = success - slope * predicted
    error = np.sqrt(slope**2 * variance / len(others) + np.cov(left, aweights=weights) / number)
    mean = slope * others.mean() + np.average(left, weights=weights)
    reach = ndtri((1 + level) / 2) * error
    return np.asarray(np.clip([mean, mean - reach, mean + reach], 0.0, 1.0))


def check_table(
    statements: Sequence[str],
    successes: PerStatement,
    known: PerStatement,
    level: float,
    stated: Intervals,
    **others: Intervals,
) -> xr.Dataset:
    """Intervals of each statement, and whether that of the calibration meets each of the others."""
    few = np.minimum(successes, known - successes) < _FEWEST
    others = {name: np.where(few[:, None], _NOTHING, one) for name, one in others.items()}
    intervals = {"stated": stated, "gold": jeffreys(successes, known, level)} | others
    columns: dict[str, Any] = {"known": known}
    for name, values in intervals.items():
        for end, column in zip(("", "_low", "_high"), values.T, strict=True):
            columns[name + end] = column
    columns["anytime_low"], columns["anytime_high"] = anytime(successes, known, level).T
    apart = [(one[:, 2] < stated[:, 1]) | (one[:, 1] > stated[:, 2]) for one in intervals.values()]
    return table("statement", statements, columns | {"differs": np.any(apart, axis=0)})


def difference(checked: xr.Dataset) -> str:
    """Name the statements whose intervals do not meet those of the known truths; empty if none."""
    apart = checked["statement"].values[checked["differs"].values].tolist()
    return worded("difference", apart=apart) if apart else ""
