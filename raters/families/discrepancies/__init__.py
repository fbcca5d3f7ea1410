"""Discrepancies of single kinds of judgement, and the models that mend them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raters.program import Program

#: Sentences on what mends a discrepancy, each with the classes of models that have it already.
Remedies = tuple[tuple[type | tuple[type, ...], str], ...]


def remedy(high: Remedies, low: Remedies = ()) -> Callable[[Program[Any], bool], str]:
    """Say what would mend a discrepancy that is too high, or too low."""

    def mend(program: Program[Any], is_high: bool) -> str:
        texts = high if is_high else low
        return "; ".join(text for has, text in texts if not isinstance(program.model, has))

    return mend
