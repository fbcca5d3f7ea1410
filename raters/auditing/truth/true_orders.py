r"""True rewards of items, which differ from the crowd's by errors that annotators share.

Votes show what the crowd prefers, however many there are. The true reward of an item is the crowd's
plus an error that all annotators share,

.. math::

    t = r + s \, \sigma_r \left(\sqrt\rho \, S \beta + \sqrt{1 - \rho} \, u\right), \qquad
    \beta, u \sim \mathrm{Normal}(0, I), \qquad \log s \sim \mathrm{Normal}(m, v^2),

with :math:`\sigma_r` the standard deviation of the crowd's rewards among the items. The columns of
S are the scores of single annotators (`raters.auditing.truth.statements`): with the share ρ the
crowd errs as if it had weighed its annotators wrongly. Nothing that can be seen of votes tells the
size s or the share. The prior of s is that of public crowds whose true order is known
(``benchmarks/order_calibration.py``), and ρ is uniform on a grid; where no order is known, ρ is 0.

Known orders update both, and the rewards. On a grid of s and ρ, rewards are normal, and each known
order counts as :math:`\Phi(g_l)`, with

.. math::

    g_l = \frac{t_i - t_j}{0.1\, \sigma_r \min(1, 10 / n)} = m_l + f_l^\top x, \qquad
    x \sim \mathrm{Normal}(0, I),

where n is the number of items in known orders, because the neighbours among many are close. Their
joint probability is that of expectation propagation (Minka 2001, Expectation propagation for
approximate Bayesian inference; Cunningham, Hennig and Lacoste-Julien 2011, Gaussian probabilities
and expectation propagation): a site :math:`\exp(\nu_l g_l - \tau_l g_l^2 / 2)` stands for each, and
gives g the moments that :math:`\Phi(g_l)` gives it beside the sites of all others. Rewards of items
in known orders are then drawn by elliptical slice sampling about the normal distribution under the
sites (Nishihara, Murray and Adams 2014, Parallel MCMC with generalized elliptical slice sampling),
and those of other items given these.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_solve, solve_triangular
from scipy.sparse import csr_array
from scipy.special import log_ndtr, logsumexp, softmax

from raters.auditing.truth import slice_sampling
from raters.auditing.truth.statements import KnownOrders

ItemDraws = Float[np.ndarray, "draw item"]
PerDraw = Float[np.ndarray, " draw"]
Mask = Bool[np.ndarray, " draw"]
Rng = np.random.Generator
Links = Int[np.ndarray, "link 2"]
PerPoint = Float[np.ndarray, " point"]
Sites = Float[np.ndarray, "point link"]
Design = Float[np.ndarray, "point link known"]
Gaps = tuple[Float[np.ndarray, "point known known"], Float[np.ndarray, " link"], Design]

# Mean and standard deviation of log s, by benchmarks/order_calibration.py, and values of ρ.
SIZE, _SHARES = (-0.5, 0.8), (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
# Standard deviation of what a known order leaves open, and ridge of covariances, in units of the
# spread of the rewards; and items in known orders from which on these leave less open.
_SOFT, _RIDGE, _FEW = 0.1, 1e-4, 10
# Places of log s in standard deviations about its mean, and those where orders are known.
_GRID = np.linspace(-4, 4, 161)
_COARSE = _GRID[30:151:10]
# Most items whose known orders tell s and ρ, and whose rewards are drawn given known orders; and
# points of the grid that these are drawn at where they are more than those.
_FOR_SIZES, _FOR_REWARDS, _POINTS = 100, 500, 5
# Most sweeps of expectation propagation, weight of a new site, largest change in standard
# deviations that ends them; and steps of slice sampling.
_SWEEPS, _DAMPING, _CHANGE, _STEPS = 60, 0.7, 0.01, 6


def draw_true_rewards(
    reward: ItemDraws,
    orders: KnownOrders,
    num_draws: int,
    rng: Rng,
    size: tuple[float, float] = SIZE,
    scores: csr_array | None = None,
) -> tuple[ItemDraws, PerDraw]:
    """Draw the true rewards given known orders, and the sizes of shared errors."""
    reward = np.asarray(reward, float)
    scores = csr_array((reward.shape[1], 1)) if scores is None else scores
    log_size, shares, log_weight = _posterior(reward, orders, size, scores)
    links = orders.links(_FOR_REWARDS)
    few = num_draws if len(links) <= 2 * _FOR_SIZES else _POINTS
    chosen = np.resize(rng.choice(len(shares), few, p=softmax(log_weight)), num_draws)
    step = size[1] * (_GRID[1] - _GRID[0])
    sizes = np.exp(log_size[chosen] + step * (rng.random(num_draws) - 0.5))
    crowd = reward[rng.choice(len(reward), num_draws, replace=len(reward) < num_draws)]
    share, scale = shares[chosen, None], sizes[:, None] * _spread(reward)
    truth = crowd + scale * (np.sqrt(1 - share) * rng.standard_normal(crowd.shape))
    if not len(links):
        return truth, sizes
    truth += scale * np.sqrt(share) * (rng.standard_normal((num_draws, scores.shape[1])) @ scores.T)
    known, centred = np.unique(links), reward - reward.mean(0)
    covariance = centred[:, known].T @ centred / len(reward)
    for point in np.unique(chosen):
        at = np.flatnonzero(chosen == point)
        gaps = _gaps(reward, scores, log_size[[point]], shares[[point]], links)
        drawn = reward[:, known].mean(0) + _draw_known(gaps, len(at), rng)
        # The rewards of other items move by their covariance with those of known ones.
        missing = cho_solve((gaps[0][0], True), (drawn - truth[np.ix_(at, known)]).T).T
        shared = scale[at] ** 2 * shares[point] * (missing @ scores[known]) @ scores.T
        truth[at] += missing @ covariance + shared
        truth[np.ix_(at, known)] = drawn
    return truth, sizes


def draw_true_rewards_of_worlds(
    reward: ItemDraws, other: Mask, orders: KnownOrders, num_draws: int, rng: Rng, scores: csr_array
) -> tuple[ItemDraws, PerDraw]:
    """Draw the true rewards of two mirrored worlds, in the shares that known orders leave."""
    if not len(orders.better) or not 0 < other.mean() < 1:
        return draw_true_rewards(reward, orders, num_draws, rng, SIZE, scores)
    worlds = [reward[~other], reward[other]]
    log_fit = [logsumexp(_posterior(world, orders, SIZE, scores)[2]) for world in worlds]
    weight = softmax(np.log([1 - other.mean(), other.mean()]) + log_fit)
    drawn = [draw_true_rewards(world, orders, num_draws, rng, SIZE, scores) for world in worlds]
    truth, sizes = drawn[0]
    turned = rng.random(num_draws) < weight[1]
    truth[turned], sizes[turned] = (part[turned] for part in drawn[1])
    return truth, sizes


def _spread(reward: ItemDraws) -> float:
    """Standard deviation of the crowd's rewards among the items."""
    return float(reward.std(axis=1).mean()) or 1.0


def _posterior(
    reward: ItemDraws, orders: KnownOrders, size: tuple[float, float], scores: csr_array
) -> tuple[PerPoint, PerPoint, PerPoint]:
    """Values of log s and ρ, and logarithms of their weights given known orders."""
    links = orders.links(_FOR_SIZES)
    places = _COARSE if len(links) else _GRID
    values = _SHARES if len(links) and scores.nnz else (0.0,)
    place, share = np.repeat(places, len(values)), np.tile(values, len(places))
    log_size, log_weight = size[0] + size[1] * place, -(place**2) / 2
    if len(links):
        log_weight += _propagate(*_gaps(reward, scores, log_size, share, links)[1:])[2]
    return log_size, share, log_weight


def _gaps(
    reward: ItemDraws, scores: csr_array, log_size: PerPoint, share: PerPoint, links: Links
) -> Gaps:
    """Roots of the covariances of items in links, and means and roots of the gaps of these in units
    of what a known order leaves open, at points of a grid."""
    known, ends = np.unique(links, return_inverse=True)
    better, worse = ends.reshape(-1, 2).T
    own, spread, one = reward[:, known], _spread(reward), np.eye(len(known))
    alike = (scores[known] @ scores[known].T).toarray()
    covariance = share[:, None, None] * (alike - one) + one
    covariance *= (np.exp(log_size) * spread)[:, None, None] ** 2
    covariance += np.cov(own.T, bias=True) + (_RIDGE * spread) ** 2 * one
    root, mean = np.linalg.cholesky(covariance), own.mean(0)
    unit = _SOFT * spread * min(1.0, _FEW / len(known))
    return root, (mean[better] - mean[worse]) / unit, (root[:, better] - root[:, worse]) / unit


def _propagate(centre: Float[np.ndarray, " link"], design: Design) -> tuple[Sites, Sites, PerPoint]:
    """Site precisions and shifts, and log-probability of all orders, by expectation propagation."""
    turned, one = design.mT, np.eye(design.shape[2])
    precision, shift = np.full(design.shape[:2], 1e-3), np.zeros(design.shape[:2])
    for _ in range(_SWEEPS):
        inner = one + (turned * precision[:, None]) @ design
        gain = np.linalg.solve(inner, turned)
        left = shift - precision * centre
        mean = centre + (design @ (gain @ left[..., None]))[..., 0]
        variance = np.einsum("plk,pkl->pl", design, gain)
        # Each gap beside the sites of all other orders, and the slope and curvature of its order.
        cavity = 1 / np.maximum(1 / variance - precision, 1e-10)
        middle, width = cavity * (mean / variance - shift), np.sqrt(cavity + 1)
        place = middle / width
        log_order = log_ndtr(place)
        slope = np.exp(-(place**2 + np.log(2 * np.pi)) / 2 - log_order) / width
        curvature = slope * (middle / width**2 + slope)
        move = curvature / (1 - curvature * cavity) - precision
        move_shift = (slope + middle * curvature) / (1 - curvature * cavity) - shift
        if max((abs(move) * variance).max(), (abs(move_shift) ** 2 * variance).max()) < _CHANGE:
            break
        precision, shift = precision + _DAMPING * move, shift + _DAMPING * move_shift
    log_fit = log_order + np.log1p(precision * cavity) / 2 + left * (mean + centre) / 2
    lost = 2 * middle * shift + shift**2 * cavity - precision * middle**2
    log_fit += (precision * centre**2 - lost / (1 + precision * cavity)) / 2
    return precision, shift, log_fit.sum(1) - np.linalg.slogdet(inner)[1] / 2


def _draw_known(gaps: Gaps, num_draws: int, rng: Rng) -> ItemDraws:
    """Draw the rewards of items in known orders at one point, less the crowd's means."""
    (root,), centre, (design,) = gaps
    precision, shift, _ = (values[0] for values in _propagate(*gaps[1:]))
    one = np.eye(len(root))
    inner = np.linalg.cholesky(one + (design.T * precision) @ design)
    # Root of the covariance under the sites, and mean.
    spread = solve_triangular(inner, one, lower=True)
    middle = spread.T @ (spread @ (design.T @ (shift - precision * centre)))
    centre, design = centre + design @ middle, spread @ design.T

    def log_likelihood(points: ItemDraws) -> PerDraw:
        gap = centre + points @ design
        return np.asarray((log_ndtr(gap) + (precision * gap / 2 - shift) * gap).sum(1))

    points = rng.standard_normal((num_draws, len(root)))
    value = log_likelihood(points)
    for _ in range(_STEPS):
        points, value = slice_sampling.step(log_likelihood, points, value, rng)
    return np.asarray((middle + points @ spread) @ root.T)
