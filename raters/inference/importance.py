"""Checks of the draws of approximate back-ends, and their correction by importance weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from raters.inference.arrays import PerDraw, Rng
from raters.inference.base import Draws, warn, worded
from raters.inference.mixing import FEWEST_DRAWS, beyond

# With fewer effective draws than one in so many, a correction would repeat few draws often.
_WORST = 10
# From here on a mean over the posterior by weights rests on a few draws, and is worse than none.
_ROUGHEST = 0.8


def largest_k(number: int) -> float:
    r"""Largest :math:`\hat k` at which weights of so many draws can be relied on."""
    return float(min(1 - 1 / np.log10(number), 0.7))


def corrected(draws: Draws, rng: Rng) -> Draws:
    """Draws of an approximation, checked against the density, and corrected where possible."""
    number = next(iter(draws.values.values())).shape[1]
    if number == 1:  # The mode.
        return draws
    broken = [name for name, values in draws.values.items() if not all_finite(values)]
    if broken:
        warn(worded("not_finite", names=broken), 3)
        return _with_facts(draws, pareto_k=np.nan, min_ess=0.0)
    if "log_q" not in draws.stats:
        size = sum(values[0, 0].size for values in draws.values.values())
        warn(worded("unchecked", size=size), 3)
        return _with_facts(draws, pareto_k=np.nan)
    if number < FEWEST_DRAWS:  # They show no tail of their weights.
        warn(worded("few_to_check", number=number, least=FEWEST_DRAWS), 3)
        return _with_facts(draws, pareto_k=np.nan)
    log_weight, k = smoothed(draws.stats["log_p"].ravel() - draws.stats["log_q"].ravel())
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    ess = float(1 / (weight**2).sum())
    limit = largest_k(number)
    written = beyond(k, limit, 2) if np.isfinite(k) else "beyond all bounds"
    if not k <= limit or ess < number / _WORST:
        digits = max(len(written.partition(".")[2]), 2)
        passed = None if k <= limit else f"{limit:.{digits}f}"
        warn(worded("far", k=written, limit=passed, number=number, ess=np.floor(ess)), 3)
        return _with_facts(draws, pareto_k=k)
    if ess < FEWEST_DRAWS:
        warn(worded("few_effective", k=k, ess=np.floor(ess), least=FEWEST_DRAWS), 3)
    return _with_facts(_resampled(draws, weight, rng), pareto_k=k, min_ess=ess)


def all_finite(values: Float[np.ndarray, " ..."]) -> bool:
    """Return whether all values are finite numbers."""
    # A sum is finite only of finite values, and needs no array of its own.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(values)) or np.isfinite(values).all())


def log_weights(draws: Draws) -> PerDraw:
    """Log of the smoothed importance weights of draws, of mean 1."""
    number = next(iter(draws.values.values())).shape[1]
    if "log_q" in draws.stats and number >= FEWEST_DRAWS:
        log_weight, k = smoothed(draws.stats["log_p"].ravel() - draws.stats["log_q"].ravel())
        if k < _ROUGHEST:
            return log_weight - float(logsumexp(log_weight)) + float(np.log(number))
    return np.zeros(number)


def smoothed(log_ratio: PerDraw) -> tuple[PerDraw, float]:
    """Pareto-smoothed log weights, and the shape; infinite where a ratio is no number."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    if not np.isfinite(log_ratio).any() or np.isnan(log_ratio).any():
        return np.zeros_like(log_ratio), np.inf
    # Draws outside of the support have weight 0, which smoothing takes as a very small one.
    finite = np.isfinite(log_ratio)
    log_ratio = np.where(finite, log_ratio, log_ratio[finite].min() - 100)
    if np.ptp(log_ratio) < 1e-9:
        return log_ratio, -np.inf
    # ArviZ takes log densities that the ratios have in their denominator, as of leave-one-out.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            log_weight, k = array_stats.psislw(-log_ratio)
        except ValueError:  # All ratios in the tail are the same.
            return log_ratio, np.inf
    return np.asarray(log_weight), float(k) if np.isfinite(k) else np.inf


def _resampled(draws: Draws, weight: PerDraw, rng: Rng) -> Draws:
    """Draws in proportion to weights, by systematic resampling in random order."""
    number = len(weight)
    places = (rng.random() + np.arange(number)) / number
    source = rng.permutation(np.searchsorted(np.cumsum(weight), places).clip(max=number - 1))
    stats = {name: value[:, source] for name, value in draws.stats.items()}
    values = {name: value[:, source] for name, value in draws.values.items()}
    # They are now draws from the posterior.
    return draws._replace(values=values, stats=stats | {"log_q": stats["log_p"]})


def _with_facts(draws: Draws, **facts: Any) -> Draws:
    return draws._replace(facts=draws.facts | facts)
