"""Means of posterior draws, central intervals, tables of them, and ranks of items: of each alone,
and of all at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from raters.judgements.names import names_array

PerItem = Int[np.ndarray, " item"]


def mean_and_interval(
    name: str, draws: Float[np.ndarray, "draw ..."], level: float
) -> dict[str, Float[np.ndarray, " ..."]]:
    """Columns of a table that describe a posterior."""
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return {name: draws.mean(0), f"{name}_low": low, f"{name}_high": high}


def table(
    axis: str,
    names: Sequence[Any],
    columns: Mapping[str, np.ndarray],
    draws: Mapping[str, np.ndarray] | None = None,
    level: float = 0.9,
) -> xr.Dataset:
    """Columns along one axis of names, and means and intervals of draws."""
    every = dict(columns)
    for name, values in (draws or {}).items():
        every |= mean_and_interval(name, values, level)
    return xr.Dataset(
        {name: (axis, column) for name, column in every.items()}, {axis: names_array(names)}
    )


# ---------------------------------------------------------------- ranks


def ranked(draws: xr.DataArray, level: float) -> pd.DataFrame:
    """Items from the highest to the lowest mean, with intervals of their values and ranks, those of
    each rank alone and those that hold for all items at once."""
    stacked = draws.stack(sample=("chain", "draw")).transpose("sample", "item")
    order = np.argsort(-stacked.values.mean(0), kind="stable")
    values = stacked.values[:, order]
    ranks = np.argsort(np.argsort(-values, axis=1), axis=1) + 1
    tails = ((1 - level) / 2, (1 + level) / 2)
    rank_low, rank_high = np.quantile(ranks, tails, axis=0, method="nearest")
    joint_low, joint_high = joint_bounds(ranks, level)
    return pd.DataFrame(
        {
            "item": stacked["item"].values[order],
            "rank": np.arange(1, len(order) + 1),
            **mean_and_interval(str(draws.name), values, level),
            "rank_low": rank_low,
            "rank_high": rank_high,
            "joint_low": joint_low,
            "joint_high": joint_high,
            "tier": tiers(joint_low, joint_high),
            "p_best": (ranks == 1).mean(0),
            "p_above_next": np.append((values[:, :-1] > values[:, 1:]).mean(0), np.nan),
        }
    )


def ranked_by(draws: xr.DataArray, axis: str, level: float) -> pd.DataFrame:
    """Rankings within each entry of an axis, one below the other."""
    names = draws[axis].values.tolist()
    tables = [ranked(draws.sel({axis: name}, drop=True), level) for name in names]
    whole = [table.assign(**{axis: name}) for name, table in zip(names, tables, strict=True)]
    return pd.concat(whole, ignore_index=True)


def joint_bounds(ranks: Int[np.ndarray, "draw item"], level: float) -> tuple[PerItem, PerItem]:
    """Bounds between which the ranks of all items lie at once with a probability of `level`, each
    between order statistics of the same places (Besag, Green, Higdon and Mengersen 1995)."""
    ordered, last = np.sort(ranks, axis=0), len(ranks) - 1

    def too_narrow(cut: int) -> bool:
        inside = (ranks >= ordered[cut]) & (ranks <= ordered[last - cut])
        return bool(inside.all(1).mean() < level)

    cut = bisect_left(range(1, last // 2 + 1), True, key=too_narrow)
    return ordered[cut], ordered[last - cut]


def tiers(low: PerItem, high: PerItem) -> PerItem:
    """Number the groups of items, best first, that these bounds of ranks keep apart."""
    place = np.arange(1, len(low))
    above = np.maximum.accumulate(high)[:-1] <= place
    below = np.minimum.accumulate(low[::-1])[::-1][1:] > place
    return np.cumsum(np.append(1, above & below))
