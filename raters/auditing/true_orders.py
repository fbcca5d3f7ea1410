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

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import log_ndtr

from raters.auditing import slice_sampling
from raters.errors import DataError
from raters.judgements.names import Names, name_text, shorten

# Mean and standard deviation of log s, by benchmarks/order_calibration.py.
SIZE = (-0.5, 0.8)
# Standard deviation of what a known order leaves open, and ridge of covariances, in units of the
# spread of the rewards.
_SOFT, _RIDGE = 0.1, 1e-4
# Places of log s in standard deviations about its mean, and steps of elliptical slice sampling.
_GRID, _STEPS = np.linspace(-4, 4, 161), 150


class KnownOrders(NamedTuple):
    """Pairs of items whose true order is known, as codes.

    Attributes
    ----------
    better, worse : int array, shape (pair,)
        All of them.
    chain : array, shape (link, 2)
        Those among them that all the others follow from.
    """

    better: Int[np.ndarray, " pair"]
    worse: Int[np.ndarray, " pair"]
    chain: Int[np.ndarray, "link 2"]

    @classmethod
    def read(cls, gold: Any, items: Names) -> KnownOrders:
        """Known orders from what a user has.

        Parameters
        ----------
        gold : mapping, pandas.Series, pandas.DataFrame, sequence of pairs, or None
            The known value of items, the higher the better; or pairs (better, worse); or a table of
            pairs, with columns winner and loser, or first, second and winner, of which pairs
            without a winner are left out.
        items : tuple of names

        Returns
        -------
        KnownOrders

        Raises
        ------
        DataError
            When there are other items, or two orders contradict each other.
        """
        if isinstance(gold, (Mapping, pd.Series)):
            return cls._by_value(gold, items)
        pairs = [] if gold is None else _pairs(gold)
        lookup = {name_text(name): code for code, name in enumerate(items)}
        unknown = {name for pair in pairs for name in pair if name_text(name) not in lookup}
        if unknown:
            raise DataError(
                parameter="gold",
                value=shorten(sorted(map(str, unknown))),
                problem="are none of the items",
                expected=f"give orders of the items that were compared ({shorten(items)})",
            )
        codes = {(lookup[name_text(one)], lookup[name_text(other)]) for one, other in pairs}
        for one, other in codes:
            if (other, one) in codes:
                raise DataError(
                    parameter="gold",
                    value=(items[one], items[other]),
                    problem="is known in both orders",
                    expected="give each pair one order, and leave out those that are equal",
                )
        found = np.array(sorted(codes), int).reshape(-1, 2)
        return cls(found[:, 0], found[:, 1], found)

    @classmethod
    def _by_value(cls, gold: Any, items: Names) -> KnownOrders:
        """Orders of all items of known value."""
        values = {name_text(name): float(value) for name, value in gold.items()}
        codes = {name_text(name): code for code, name in enumerate(items)}
        if unknown := sorted(set(values) - set(codes)):
            raise DataError(
                parameter="gold",
                value=shorten(unknown),
                problem="are none of the items",
                expected=f"give values of the items that were compared ({shorten(items)})",
            )
        code = np.array([codes[name] for name, value in values.items() if value == value], int)
        value = np.array([value for value in values.values() if value == value])
        one, other = np.triu_indices(len(code), 1)
        swap, apart = value[one] < value[other], value[one] != value[other]
        better, worse = np.where(swap, other, one)[apart], np.where(swap, one, other)[apart]
        levels = [code[value == level] for level in np.unique(value)]
        links = [
            (above, below)
            for low, high in pairwise(levels)
            for place in range(max(len(low), len(high)))
            for above, below in [(high[place % len(high)], low[place % len(low)])]
        ]
        return cls(code[better], code[worse], np.array(links, int).reshape(-1, 2))

    def signs(
        self, first: Int[np.ndarray, " row"], second: Int[np.ndarray, " row"], num_items: int
    ) -> Int[np.ndarray, " row"]:
        """1 where the first item is known to be better, −1 where the second is, and 0 elsewhere."""
        keys = np.concatenate(
            [self.better * num_items + self.worse, self.worse * num_items + self.better]
        )
        signs = np.repeat([1, -1], len(self.better))
        order = np.argsort(keys)
        asked = np.asarray(first, np.int64) * num_items + np.asarray(second)
        if not len(keys):
            return np.zeros(len(asked), int)
        place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
        return np.where(keys[order][place] == asked, signs[order][place], 0)


def _pairs(gold: Any) -> list[tuple[Any, Any]]:
    """Pairs (better, worse) from a table or a sequence."""
    if isinstance(gold, pd.DataFrame):
        table = gold.astype(object).where(gold.notna(), "")
        if {"winner", "loser"} <= set(table):
            return [
                (one, other)
                for one, other in zip(table["winner"], table["loser"], strict=True)
                if one != "" and other != ""
            ]
        if {"first", "second", "winner"} <= set(table):
            return [_sided(*row) for row in _asked(table)]
        raise DataError(
            parameter="gold",
            value=shorten(map(str, table.columns)),
            problem="are its columns",
            expected="it must have columns winner and loser, or first, second and winner",
        )
    if isinstance(gold, Sequence) and not isinstance(gold, str):
        pairs = [tuple(one) for one in gold if isinstance(one, Sequence) and not _is_text(one)]
        if len(pairs) == len(gold) and all(len(pair) == 2 for pair in pairs):
            return [(one, other) for one, other in pairs]
    raise DataError(
        parameter="gold",
        value=gold,
        problem="is no set of known orders",
        expected="give a list of pairs (better, worse), a table with columns winner and loser, or"
        " the known value of each of some items",
        instead='gold=[("tea", "coffee")]',
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _asked(table: pd.DataFrame) -> list[tuple[Any, Any, Any]]:
    """Rows of a table of pairs that have a winner."""
    rows = zip(table["first"], table["second"], table["winner"], strict=True)
    return [row for row in rows if row[2] != ""]


def _sided(first: Any, second: Any, winner: Any) -> tuple[Any, Any]:
    """A pair, the winner first."""
    one, other, best = map(name_text, (first, second, winner))
    if best not in (one, other):
        raise DataError(
            parameter="gold",
            value=winner,
            problem=f"is the winner of {first!r} and {second!r}",
            expected="the winner must be one of the two",
        )
    return (first, second) if best == one else (second, first)


def draw_true_rewards(
    reward: Float[np.ndarray, "draw item"],
    orders: KnownOrders,
    num_draws: int,
    rng: np.random.Generator,
    size: tuple[float, float] = SIZE,
) -> tuple[Float[np.ndarray, "draw item"], Float[np.ndarray, " draw"]]:
    r"""Draw the true rewards given known orders.

    Those of the items of known order, with the crowd's rewards normal about their posterior mean,
    are drawn by elliptical slice sampling; the others follow by their covariance under the draws
    (Matheron's rule), :math:`r^d_o + \Sigma_{og} \Sigma_{gg}^{-1} (r_g - r^d_g)`.

    Parameters
    ----------
    reward : array, shape (draw, item)
        Posterior draws of the crowd's rewards.
    orders : KnownOrders
    num_draws : int
    rng : numpy.random.Generator
    size : tuple of (float, float)
        Mean and standard deviation of log s.

    Returns
    -------
    truth : array, shape (draw, item)
    size : array, shape (draw,)
        Draws of s.
    """
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


def draw_sizes(
    reward: Float[np.ndarray, "draw item"],
    orders: KnownOrders,
    num_draws: int,
    rng: np.random.Generator,
    size: tuple[float, float] = SIZE,
) -> Float[np.ndarray, " draw"]:
    """Draw the size of the errors that annotators share, relative to the spread of the rewards.

    Parameters
    ----------
    reward : array, shape (draw, item)
    orders : KnownOrders
    num_draws : int
    rng : numpy.random.Generator
    size : tuple of (float, float)
        Mean and standard deviation of its logarithm without known orders.

    Returns
    -------
    array, shape (draw,)
    """
    grid = size[0] + size[1] * _GRID
    gap = reward[:, orders.chain[:, 0]] - reward[:, orders.chain[:, 1]]
    spread = float(reward.std(axis=1).mean()) or 1.0
    width = np.sqrt(gap.var(0) + 2 * (np.exp(grid[:, None]) * spread) ** 2)
    log_weight = log_ndtr(gap.mean(0) / width).sum(1) - _GRID**2 / 2
    weight = np.exp(log_weight - log_weight.max())
    chosen = rng.choice(grid, num_draws, p=weight / weight.sum())
    step = size[1] * (_GRID[1] - _GRID[0])
    return np.asarray(np.exp(chosen + step * (rng.random(num_draws) - 0.5)))
