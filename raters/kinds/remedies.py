"""Discrepancies of single kinds of judgement, and the models that mend them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.program import Program

#: Sentence on what mends a discrepancy, with the classes of models that have it already.
Remedy = tuple[type | tuple[type, ...], str]


def remedy(*high: Remedy, low: Sequence[Remedy] = ()) -> Callable[[Program[Any], bool], str]:
    """Say what would mend a discrepancy that is too high, or too low."""

    def mend(program: Program[Any], is_high: bool) -> str:
        texts = high if is_high else low
        return "; ".join(text for has, text in texts if not isinstance(program.model, has))

    return mend


def excess(
    cell: Int[np.ndarray, " row"],
    residual: Float[np.ndarray, " row"],
    variance: Float[np.ndarray, " row"],
) -> float:
    """Mean over cells of the squared sum of residuals over its variance under the model."""
    total, expected = np.bincount(cell, residual), np.bincount(cell, variance)
    # One more: what nobody is expected to choose would decide alone.
    return float((total**2 / (expected + 1.0)).mean())
