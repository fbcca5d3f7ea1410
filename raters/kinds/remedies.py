"""Excess over cells, and the models that would mend it, for discrepancies of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raters.checking.discrepancies import Measure, PerRow, Rows
from raters.program import Program


def excesses(code: Rows, of_draw: Callable[[Any], tuple[PerRow, PerRow]]) -> Measure:
    """Mean over codes of the squared sum of residuals over its variance under the model; `of_draw`
    gives both. What has a code below 0 is left out."""
    there = code >= 0
    cell = np.unique(code[there], return_inverse=True)[1]

    def measure(draw: Any) -> float:
        total, expected = (np.bincount(cell, one[there]) for one in of_draw(draw))
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
