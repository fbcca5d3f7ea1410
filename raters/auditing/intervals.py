"""Means of posterior draws, central intervals, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from raters.judgements.names import names_array


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
