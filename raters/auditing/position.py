"""Position bias of those who compare: the share of choices of what is shown first, where nothing
else decides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from raters.fitting.result import draws_of
from raters.program import Program

#: Site of the bias, in logits for what is shown first.
SITE = "position_bias"


class PositionBias(NamedTuple):
    """Draws of the position bias."""

    bias: Float[np.ndarray, "draw judge"]
    first_share: Float[np.ndarray, "draw judge"]
    shared: bool


def position_bias(program: Program[Any], result: xr.DataTree) -> PositionBias | None:
    """Read the position bias of a fit off its site ``position_bias``."""
    site = program.sites.get(SITE)
    if site is None or site.dims not in ((), (program.data.judge,)):
        return None
    draws, _ = draws_of(program, result)
    bias = draws[SITE].reshape(len(draws[SITE]), -1)
    return PositionBias(bias, expit(bias), shared=not site.dims)
