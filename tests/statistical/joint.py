"""Geweke's joint test on short chains, and p-values of ranks, as several files need them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np
import pytest
import xarray as xr

from raters.checking import geweke, uniformity

# False-alarm rate 1e-4 for each statistic of `short` (|z| > 4.2 under Student's t with 78 degrees
# of freedom), and for each set of ranks, all quantities together.
BOUND = 4.2
LEVEL = 1e-4


def cases(names: Iterable[str], at_every_change: Container[str]) -> list[Any]:
    """The cases of a test, of which CI leaves all but some to `make test-all`."""
    return [
        name if name in at_every_change else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in names
    ]


def short(model, questions, chains: int = 80) -> xr.Dataset:
    """Geweke's test with as few and as short chains as it takes."""
    return geweke(model, questions, seed=1, chains=chains, sweeps=15, prior_draws=30_000)


def worst(result: xr.Dataset) -> float:
    """The largest |z|."""
    return float(np.abs(result["z"]).max())


def smallest(ranks: xr.Dataset) -> float:
    """The smallest p-value, times the number of tests (Bonferroni)."""
    p_values = np.concatenate([np.ravel(values) for values in uniformity(ranks).data_vars.values()])
    return float(p_values.min() * len(p_values))
