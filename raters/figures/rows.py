"""Rows of names, of which the first and the last are shown; nothing here is drawn."""

from __future__ import annotations

from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from jaxtyping import Float, Int

from raters.judgements.display import display_name

# Columns that the figure of an auditor shows.
AUDITED = frozenset({"competence", "accuracy", "accuracy_low", "accuracy_high", "p_adversarial"})


def short(name: Any, most: int = 28) -> str:
    """Shorten a name to `most` letters (half as many where there are wide ones), and keep
    Matplotlib from reading formulas in it."""
    shown = display_name(name, most)
    if len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown) > most:
        shown = display_name(name, max(most // 2, 1))
    return shown.replace("$", r"\$")


def ends(
    num_rows: int, most: int, head: int | None = None
) -> tuple[Int[np.ndarray, " shown"], int, int]:
    """Choose rows from both ends of a list; also how many at its head, and how many are left
    out."""
    if num_rows <= most:
        return np.arange(num_rows), num_rows, 0
    head = (most + 1) // 2 if head is None else head
    return np.r_[:head, num_rows - (most - head) : num_rows], head, num_rows - most


class Rows(NamedTuple):
    """Which of the names are shown, one in a row, with a blank row for those left out."""

    names: list[str]
    shown: Int[np.ndarray, " shown"]
    position: Float[np.ndarray, " shown"]
    head: int
    left_out: int

    @property
    def height(self) -> float:
        """Height of a figure of these rows, in inches."""
        return 1.9 + 0.21 * (len(self.shown) + bool(self.left_out))


def rows_of(
    names: np.ndarray, order: Int[np.ndarray, " name"], most: int = 60, head: int | None = None
) -> Rows:
    """Choose at most `most` rows in this order; of more names, the first `head` and the last."""
    chosen, head, left_out = ends(len(order), most, head)
    shown = order[chosen]
    position = np.arange(len(shown), dtype=float)
    position[head:] += bool(left_out)
    return Rows([short(name) for name in names[shown]], shown, position, head, left_out)
