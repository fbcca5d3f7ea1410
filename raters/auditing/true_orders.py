r"""True rewards of items, which differ from the crowd's by errors that annotators share.

Votes show what the crowd prefers, however many there are. The true reward of an item is the crowd's
plus an error that all annotators share,

.. math::

    t_i = r_i + s \, \sigma_r \, u_i, \qquad u_i \sim \mathrm{Normal}(0, 1), \qquad
    \log s \sim \mathrm{Normal}(m, v^2),

with :math:`\sigma_r` the standard deviation of the crowd's rewards among the items. Nothing that
can be seen of votes tells the size s; its prior is that of public crowds whose true order is known
(``benchmarks/order_calibration.py``). Known orders of some pairs update it: given s, the order of a
pair is known to be what it is with probability

.. math::

    \Phi\left(\frac{\operatorname{E}[r_i - r_j]}
    {\sqrt{\operatorname{Var}[r_i - r_j] + 2 s^2 \sigma_r^2}}\right),

pairs taken as independent for s alone. The rewards of their items are then drawn given all known
orders together, each of which counts as :math:`\Phi((t_i - t_j) / (0.1\, \sigma_r))`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr

from raters.auditing import slice_sampling
from raters.auditing.known_orders import KnownOrders

ItemDraws = Float[np.ndarray, "draw item"]

# Mean and standard deviation of log s, by benchmarks/order_calibration.py.
SIZE = (-0.5, 0.8)
# Standard deviation of what a known order leaves open, and ridge of covariances, in units of the
# spread of the rewards.
_SOFT, _RIDGE = 0.1, 1e-4
# Places of log s in standard deviations about its mean, and steps of elliptical slice sampling.
_GRID, _STEPS = np.linspace(-4, 4, 161), 150


def draw_true_rewards(
    reward: ItemDraws,
    orders: KnownOrders,
    num_draws: int,
    rng: np.random.Generator,
    size: tuple[float, float] = SIZE,
) -> tuple[ItemDraws, Float[np.ndarray, " draw"]]:
    """Draw the true rewards given known orders."""
    reward = np.asarray(reward, float)
    spread = float(reward.std(axis=1).mean()) or 1.0
    sizes = draw_sizes(reward, orders, num_draws, rng, size)
    crowd = reward[rng.choice(len(reward), num_draws, replace=len(reward) < num_draws)]
    known = np.unique(orders.chain)
    error = sizes[:, None] * spread * rng.standard_normal(crowd.shape)
    if not len(known):
        return crowd + error, sizes
    own = reward[:, known]
    mean, centred = own.mean(0), own - own.mean(0)
    covariance = centred.T @ centred / len(own) + (_RIDGE * spread) ** 2 * np.eye(len(known))
    values, axes = np.linalg.eigh(covariance)
    shared = (sizes[:, None] * spread) ** 2
    better, worse = np.searchsorted(known, orders.chain).T

    def truth_of(points: Float[np.ndarray, "draw known"]) -> Float[np.ndarray, "draw known"]:
        return np.asarray(mean + (points * np.sqrt(values + shared)) @ axes.T)

    def log_likelihood(points: Float[np.ndarray, "draw known"]) -> Float[np.ndarray, " draw"]:
        truth = truth_of(points)
        return np.asarray(log_ndtr((truth[:, better] - truth[:, worse]) / (_SOFT * spread)).sum(1))

    points = rng.standard_normal((num_draws, len(known)))
    value = log_likelihood(points)
    for _ in range(_STEPS):
        points, value = slice_sampling.step(log_likelihood, points, value, rng)
    # The crowd's rewards given the true ones, along the axes of their covariance.
    along = points * values / np.sqrt(values + shared)
    left = np.sqrt(values * shared / (values + shared)) * rng.standard_normal(points.shape)
    of_crowd = mean + (along + left) @ axes.T
    gain = np.linalg.solve(covariance, centred.T @ (reward - reward.mean(0)) / len(reward))
    truth = crowd + (of_crowd - crowd[:, known]) @ gain + error
    truth[:, known] = truth_of(points)
    return truth, sizes


def draw_true_rewards_of_worlds(
    reward: ItemDraws,
    other: Bool[np.ndarray, " draw"],
    orders: KnownOrders,
    num_draws: int,
    rng: np.random.Generator,
) -> tuple[ItemDraws, Float[np.ndarray, " draw"]]:
    """Draw the true rewards of two mirrored worlds, in the shares that known orders leave."""
    if not (other.any() and len(orders.better)):
        return draw_true_rewards(reward, orders, num_draws, rng)
    worlds = [reward[~other], reward[other]]
    # How many of the known orders the means of each world have, at the typical size of errors.
    log_odds = np.array([_log_fit(world.mean(0), orders) for world in worlds])
    weight = np.array([1 - other.mean(), other.mean()]) * np.exp(log_odds - log_odds.max())
    numbers = rng.multinomial(num_draws, weight / weight.sum())
    parts = [
        draw_true_rewards(world, orders, number, rng)
        for world, number in zip(worlds, numbers, strict=True)
        if number
    ]
    truth, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = rng.permutation(len(truth))
    return truth[order], sizes[order]


def _log_fit(reward: Float[np.ndarray, " item"], orders: KnownOrders) -> float:
    """Log-probability of known orders given rewards, at the typical size of shared errors."""
    gap = reward[orders.better] - reward[orders.worse]
    return float(log_ndtr(gap / (np.sqrt(2) * np.exp(-0.5) * (reward.std() or 1.0))).sum())


def draw_sizes(
    reward: ItemDraws,
    orders: KnownOrders,
    num_draws: int,
    rng: np.random.Generator,
    size: tuple[float, float] = SIZE,
) -> Float[np.ndarray, " draw"]:
    """Draw the size of the errors that annotators share, relative to the spread of the rewards."""
    grid = size[0] + size[1] * _GRID
    gap = reward[:, orders.chain[:, 0]] - reward[:, orders.chain[:, 1]]
    spread = float(reward.std(axis=1).mean()) or 1.0
    width = np.sqrt(gap.var(0) + 2 * (np.exp(grid[:, None]) * spread) ** 2)
    log_weight = log_ndtr(gap.mean(0) / width).sum(1) - _GRID**2 / 2
    weight = np.exp(log_weight - log_weight.max())
    chosen = rng.choice(grid, num_draws, p=weight / weight.sum())
    step = size[1] * (_GRID[1] - _GRID[0])
    return np.asarray(np.exp(chosen + step * (rng.random(num_draws) - 0.5)))
