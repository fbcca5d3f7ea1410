"""Sets of items that could be put in order."""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Int

from raters.errors import DataError, refuse
from raters.errors.validation import boolean, whole
from raters.judgements.rankings import Rankings

# Random numbers that are drawn at a time.
_NUMBERS = 10_000_000
# Items of a set that is asked for unless another number is given.
_MOST_USUAL = 10


def shape_of(
    rankings: Rankings, size: int | None, depth: int | None, lowest: bool | None, num_items: int
) -> tuple[int, int, bool]:
    """Items of a set, places to fill, and whether the worst is asked for; by default most often."""
    if num_items < 2:
        expected = "a set has at least two items"
        refuse("items", problem="is a single item", expected=expected, error=DataError)
    usual_size, usual_depth, usual_lowest = _usual(rankings, num_items)
    size = min(usual_size, num_items) if size is None else size
    whole("size", size, least=2)
    if size > num_items:
        refuse("size", size, expected=f"it must be at most the number of items, {num_items}")
    if lowest is not None:
        boolean("lowest", lowest)
    asked = usual_lowest if lowest is None else lowest
    most = size - asked
    if depth is None:
        if asked and not usual_lowest:
            usual_depth = 1
        depth = min(usual_depth, most) if usual_depth < usual_size else most
    whole("depth", depth)
    if depth > most:
        refuse("depth", depth, expected=f"it must be at most {most} in sets of {size} items")
    return size, depth, asked


def _usual(rankings: Rankings, num_items: int) -> tuple[int, int, bool]:
    """Number of items, of places, and whether the worst is named, of the most frequent shape."""
    if not rankings.num_rows:
        return num_items, num_items, False
    sizes = (np.asarray(rankings.offered) >= 0).sum(1)
    lowest = np.zeros(len(sizes), int) if rankings.lowest is None else np.asarray(rankings.lowest)
    shapes = np.stack([sizes, np.asarray(rankings.depth), lowest], 1)
    each, place = np.unique(shapes, axis=0, return_inverse=True)
    size, depth, named = each[np.bincount(place.ravel(), np.asarray(rankings.weight)).argmax()]
    if size > _MOST_USUAL:
        # Of a race of dozens only some are worth a question; all of these are to be placed.
        return _MOST_USUAL, _MOST_USUAL if depth + named >= _MOST_USUAL else int(depth), bool(named)
    return int(size), int(depth), bool(named)


def subsets(
    num_items: int, size: int, most: int, rng: np.random.Generator
) -> Int[np.ndarray, "set position"]:
    """All sets of places of items, ascending; at most `most`, drawn at random."""
    if math.comb(num_items, size) <= most:
        return np.array(list(itertools.combinations(range(num_items), size)))
    parts = []
    rows = max(1, _NUMBERS // num_items)
    for begin in range(0, most, rows):
        noise = rng.random((min(rows, most - begin), num_items))
        parts.append(np.sort(noise.argpartition(size - 1, axis=1)[:, :size], axis=1))
    return np.unique(np.concatenate(parts), axis=0)
