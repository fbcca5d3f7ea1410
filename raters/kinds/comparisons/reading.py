"""Rows of a table that hold no comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def compared_with_itself(frame: Any, columns: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """Rows whose two sides are one item."""
    sides = [columns[role] for role in ("winner", "loser", "first", "second") if role in columns]
    if len(sides) != 2 or not set(sides) <= set(frame.columns):
        return "an item compared with itself", np.zeros(len(frame), bool)
    one, other = (frame[side].astype(str).to_numpy() for side in sides)
    return "an item compared with itself", one == other
