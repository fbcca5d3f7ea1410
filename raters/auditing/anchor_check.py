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
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats
import xarray as xr
from jaxtyping import Float

from raters.auditing.intervals import table

# The statement about items, beside those about annotators.
WRONG_LABELS = "share of wrong labels"
# Estimate and ends of the interval of each statement.
Intervals = Float[np.ndarray, "statement 3"]


def jeffreys(
    successes: Float[np.ndarray, " statement"],
    number: Float[np.ndarray, " statement"],
    level: float,
) -> Intervals:
    """Shares of successes and Jeffreys' intervals; NaN and from 0 to 1 of none."""
    posterior = scipy.stats.beta(successes + 0.5, number - successes + 0.5)
    low, high = posterior.interval(level)
    with np.errstate(invalid="ignore"):
        mean = successes / number
    none = number <= 0
    return np.stack([mean, np.where(none, 0.0, low), np.where(none, 1.0, high)], axis=1)


def prediction_powered(
    success: Float[np.ndarray, " known"],
    predicted: Float[np.ndarray, " known"],
    others: Float[np.ndarray, " other"],
    level: float,
) -> Float[np.ndarray, " 3"]:
    """Share of successes and its prediction-powered interval; NaN and from 0 to 1 of fewer than
    two."""
    if min(len(success), len(others)) < 2:
        return np.array([np.nan, 0.0, 1.0])
    variance, ratio = others.var(ddof=1), len(success) / len(others)
    slope = np.cov(success, predicted)[0, 1] / max((1 + ratio) * variance, 1e-12)
    slope = np.clip(slope, 0.0, 1.0)
    left = success - slope * predicted
    error = np.sqrt(slope**2 * variance / len(others) + left.var(ddof=1) / len(success))
    mean, reach = slope * others.mean() + left.mean(), scipy.stats.norm.ppf((1 + level) / 2) * error
    return np.clip([mean, mean - reach, mean + reach], 0.0, 1.0)


def check_table(
    statements: Sequence[str],
    known: Float[np.ndarray, " statement"],
    intervals: dict[str, Intervals],
) -> xr.Dataset:
    """Intervals of each statement, and whether that of the calibration meets each of the others."""
    columns: dict[str, Any] = {"known": known}
    for name, values in intervals.items():
        for end, column in zip(("", "_low", "_high"), values.T, strict=True):
            columns[name + end] = column
    stated, *others = intervals.values()
    apart = [(one[:, 2] < stated[:, 1]) | (one[:, 1] > stated[:, 2]) for one in others]
    return table("statement", statements, columns | {"differs": np.any(apart, axis=0)})


def difference(checked: xr.Dataset) -> str:
    """Name the statements whose intervals do not meet those of the known truths; empty if none."""
    apart = checked["statement"].values[checked["differs"].values].tolist()
    if not apart:
        return ""
    named = ", ".join(apart[:5]) + f" and {len(apart) - 5} more" * (len(apart) > 5)
    return (
        "the known truths alone give other intervals, which do not meet those stated here"
        f" (anchor_check), of: {named}"
    )
