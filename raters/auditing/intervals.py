"""Means of posterior draws, and central intervals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def mean_and_interval(
    name: str, draws: Float[np.ndarray, "draw ..."], level: float
) -> dict[str, Float[np.ndarray, " ..."]]:
    """Columns of a table that describe a posterior."""
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return {name: draws.mean(0), f"{name}_low": low, f"{name}_high": high}
