"""Excess over cells, and the models that would mend it, for discrepancies of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raters.checking.discrepancies import Measure, PerRow, Rows
from raters.program import Program


def excesses(cell: Rows, of_draw: Callable[[Any], tuple[PerRow, PerRow]]) -> Measure:
    """Mean over cells of the squared sum of residuals over its variance under the model; `of_draw`
    gives both by row."""

    def measure(draw: Any) -> float:
        residual, variance = of_draw(draw)
        total, expected = np.bincount(cell, residual), np.bincount(cell, variance)
        # One more: what nobody is expected to choose would decide alone.
        return float((total**2 / (expected + 1.0)).mean())

    return measure


#: Sentence on what mends a discrepancy, with the classes of models that have it already.
Remedy = tuple[type | tuple[type, ...], str]


def remedy(*high: Remedy, low: Sequence[Remedy] = ()) -> Callable[[Program[Any], bool], str]:
    """Say what would mend a discrepancy that is too high, or too low."""

    def mend(program: Program[Any], is_high: bool) -> str:
        texts = high if is_high else low
        return "; ".join(text for has, text in texts if not isinstance(program.model, has))

    return mend
