r"""Hyper-parameters of normal priors, at the mode of their marginal posterior (MacKay 1992).

.. math:: \log p(v) + \tfrac12 \sum_i \left[\log \lambda_i(v)
    - \lambda_i(v) \left((x_i - m_i(v))^2 + C_i\right)\right]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from raters.inference.arrays import Entries, EntryArray, Flat, FlatPoint, Rng, Scalar
from raters.inference.polya_gamma import unconstrained
from raters.inference.polya_gamma.laplace import block_sites, information
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, block_prior
from raters.model import Values
from raters.program import Supports, log_prior, placing

# EM stops when the limit of its steps, as two of them foretell it, is no farther than this from the
# last of them, in unconstrained coordinates, or after so many steps.
_SHORTEST, _MOST_STEPS = 2e-3, 60
# Longest extrapolation of a step, and of all coordinates together.
_FARTHEST, _LONGEST = 30.0, 2.0
# In more doubt than this the scale is left to a short Gibbs run, as it is of few
# rows, where that costs little. At 1.3 (1,000 items, 100,000 votes) the logarithm of the mode is
# .00 standard deviations from its mean, and the mean of the draws .05.
_MOST_DOUBT = 1.5
# Fewest rows.
_MANY_ROWS = 20_000
# Random vectors that estimate the variances of a large block.
_PROBES = 16

Climb = Callable[[Values], Values]


def applies(plan: Plan, data: Any, values: Values) -> bool:
    """Return whether there are many data, and the hyper-parameters are those of normal priors."""
    if not plan.hyper or not plan.blocks or plan.classes or plan.scales or plan.steep:
        return False
    if data.num_rows < _MANY_ROWS or any(block.kind != "rows" for block in plan.blocks):
        return False
    prior = block_prior(plan.model, placing.first_unit(data), values, Block(block_sites(plan)))
    bounded = np.isfinite(prior.low).any() or np.isfinite(prior.high).any()
    return prior.across is None and not bool(bounded)


def fixed_point(plan: Plan, data: Any, values: Values, climb: Climb, rng: Rng) -> Values | None:
    """Return the values at the mode of the hyper-parameters, and of the other sites given them."""
    marginal = _Marginal(plan, data, climb, values, int(rng.integers(2**32)))
    point = marginal.start
    for _ in range(_MOST_STEPS // 2):
        first, values, shares = marginal.ahead(point, values)
        # How far the mode may be from the mean, in standard deviations, but for a factor.
        doubt = max(np.mean(part) * np.sqrt(2 * len(part)) for part in shares)
        if doubt > _MOST_DOUBT:
            return None
        # Steps shrink by a factor of about twice the share of the prior.
        rate = 2 * max(float(np.mean(part)) for part in shares)
        if rate < 0.5 and rate / (1 - rate) * np.max(np.abs(first - point)) < _SHORTEST:
            return values | marginal.at(first)
        second, values, _ = marginal.ahead(first, values)
        far = leap(point, first, second, _FARTHEST)
        point = point + far * min(1.0, _LONGEST / max(np.linalg.norm(far), 1e-300))
        if np.max(np.abs(point - second)) < _SHORTEST:
            break
    return values | marginal.at(point)


class _Marginal:
    """Steps of EM in the unconstrained coordinates of the hyper-parameters."""

    def __init__(self, plan: Plan, data: Any, climb: Climb, values: Values, seed: int) -> None:
        self.plan, self.data, self.climb, self.seed = plan, data, climb, seed
        self.row, self.like = placing.first_unit(data), values
        self.supports = Supports({name: plan.supports[name] for name in plan.hyper})
        self.start: FlatPoint = np.asarray(unconstrained.flat_of(self.supports, values))

    def at(self, point: FlatPoint) -> Values:
        """Return the hyper-parameters at a point."""
        there = unconstrained.sites_at(self.supports, self.like, jnp.asarray(point))[0]
        return {name: np.asarray(value) for name, value in there.items()}

    def ahead(self, point: FlatPoint, values: Values) -> tuple[FlatPoint, Values, list[Entries]]:
        """Return the point after a step, the mode of the other sites, and the prior's shares."""
        values = self.climb(values | self.at(point))
        normal = information(self.plan, self.data, values)
        variance = normal.variances(np.random.default_rng(self.seed), _PROBES)
        ends = np.cumsum([np.size(values[name]) for name in block_sites(self.plan)])
        shares = np.split(variance * normal.prior.precision, ends[:-1])
        given = self.plan, self.supports, self.row, values, variance
        return (
            np.asarray(unconstrained.maximised(partial(_expected, *given), point).x),
            values,
            shares,
        )


def leap(x0: np.ndarray, x1: np.ndarray, x2: np.ndarray, farthest: float = np.inf) -> np.ndarray:
    """Return SQUAREM's S3 step of at most so many steps (Varadhan and Roland 2008)."""
    step, curvature = x1 - x0, x2 - 2 * x1 + x0
    length = np.linalg.norm(step) / max(np.linalg.norm(curvature), 1e-300)
    length = min(max(length, 1.0), farthest)
    return np.asarray(2 * length * step + length**2 * curvature)


@partial(jax.jit, static_argnums=(0, 1))
def _expected(
    plan: Plan, supports: Supports, row: Any, values: Values, variance: EntryArray, flat: Flat
) -> tuple[Scalar, Flat]:
    """Return the expected log density of the hyper-parameters, and its gradient."""
    sites = block_sites(plan)
    entries = jnp.concatenate([jnp.ravel(values[name]) for name in sites])

    def density(flat: Flat) -> Scalar:
        own_hyper, volume = unconstrained.sites_at(supports, values, flat)
        there = values | own_hyper
        prior = block_prior(plan.model, row, there, Block(sites))
        square = (entries - prior.mean) ** 2 + variance
        of_blocks = jnp.log(prior.precision) - prior.precision * square
        own = log_prior(plan.model, row, there, without=sites)
        return own + volume + jnp.where(prior.precision > 0, of_blocks, 0.0).sum() / 2

    return jax.value_and_grad(density)(flat)
