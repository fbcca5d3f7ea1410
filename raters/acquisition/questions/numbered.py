"""Numbered questions, and samples of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from raters.acquisition.questions.pool import codes_of
from raters.errors import refuse_data
from raters.errors.validation import at_most, is_list, whole
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.names import check_once, match_names, name_list
from raters.judgements.rankings import Rankings

# Questions looked at at a time.
_CHUNK = 1 << 16
# Of more questions than these so many are drawn at random, in search of some that may be asked.
_MOST = 1 << 25

Available = Mapping[Any, Iterable[Any] | None]
Codes = Int[np.ndarray, " question"]
Names = Int[np.ndarray, " name"]
# Which of some numbered questions are to be kept.
Keep = Callable[[Codes], Bool[np.ndarray, " question"]]


class Abilities(NamedTuple):
    """Items that ``judges[k]`` can judge: ``items[start[k] : start[k] + size[k]]``, ascending."""

    judges: Names
    items: Int[np.ndarray, " entry"]
    start: Names
    size: Names
    limited: bool

    @classmethod
    def of(
        cls, available: Available | None, items: Any, annotators: Any, data: Comparisons | Labels
    ) -> Abilities:
        """Abilities of some annotators among some items, by the names of what each can judge."""
        codes = codes_of(items, data.items, "item")
        judges = codes_of(annotators, data.annotators, "annotator")
        check_once(available or {}, "available")
        given = {name: some for name, some in (available or {}).items() if some is not None}
        numbers = np.arange(len(given))
        whose = match_names(numbers, tuple(given), data.annotators, "annotator", "available")
        of_list, parts = np.zeros(len(data.annotators), np.int64), [codes]
        for code, (name, some) in zip(whose.tolist(), given.items(), strict=True):
            if not is_list(some):
                refuse_data("available", some, f"is no list of items for {name!r}", "give one")
            able = tuple(name_list(some, "available"))
            known = match_names(np.arange(len(able)), able, data.items, "item", "available")
            if code in judges:
                of_list[code] = len(parts)
                parts.append(np.intersect1d(known.astype(np.int64), codes))
        sizes = np.array([len(part) for part in parts])
        start, place = np.cumsum(sizes) - sizes, of_list[judges]
        return cls(judges, np.concatenate(parts), start[place], sizes[place], len(parts) > 1)

    @property
    def num_pairs(self) -> Names:
        """Number of pairs of the items that each annotator can judge."""
        return np.asarray(self.size * (self.size - 1) // 2)

    def of_numbers(self, number: Codes) -> tuple[Codes, Codes]:
        """Item and annotator of each numbered question."""
        number, place = _divided(number, self.size)
        return self.items[self.start[place] + number], self.judges[place]

    def pairs_of_numbers(self, number: Codes) -> tuple[Codes, Codes, Codes]:
        """Both items and the annotator of each question about a pair, numbered."""
        if self.limited:
            pair, place = _divided(number, self.num_pairs)
        else:  # All annotators of a pair come together.
            pair, place = np.divmod(number, len(self.judges))
        # Pair (i, j), i < j, has number j(j−1)/2 + i.
        larger = ((1 + np.sqrt(1 + 8 * pair.astype(np.float64))) / 2).astype(np.int64)
        larger -= larger * (larger - 1) // 2 > pair
        larger += (larger + 1) * larger // 2 <= pair
        smaller, start = pair - larger * (larger - 1) // 2, self.start[place]
        items = self.items
        return items[start + smaller], items[start + larger], self.judges[place]


def _divided(number: Codes, sizes: Names) -> tuple[Codes, Codes]:
    """Numbers within consecutive blocks of these sizes, and the block of each."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    place = np.searchsorted(before, number, side="right") - 1
    return number - before[place], place


def sample(rng: np.random.Generator, total: int, limit: int, keep: Keep | None) -> Codes:
    """Numbers below `total` that `keep` allows, in order; a uniform sample where over `limit`."""
    whole("limit", limit)
    if keep is None:
        if total <= limit:
            return np.arange(total)
        return np.sort(rng.choice(total, limit, replace=False, shuffle=False))
    kept = np.zeros(0, np.int64)
    for begin in range(0, min(total, _MOST), _CHUNK):
        number = np.arange(begin, min(begin + _CHUNK, total))
        if total > _MOST:
            number = rng.integers(total, size=_CHUNK)
        kept = np.concatenate([kept, number[keep(number)]])
        if total > _MOST and len(kept) > 2 * limit:
            break
    kept = np.unique(kept)
    return kept if len(kept) <= limit else np.sort(rng.choice(kept, limit, replace=False))


# ---------------------------------------------------------------- sets

# Random numbers that are drawn at a time.
_NUMBERS = 10_000_000
# Items of a set that is asked for unless another number is given.
_MOST_USUAL = 10


def shape_of(
    rankings: Rankings, size: int | None, depth: int | None, lowest: bool | None, num_items: int
) -> tuple[int, int, bool]:
    """Items of a set, places to fill, and whether the worst is asked for; by default most often."""
    if num_items < 2:
        refuse_data("items", problem="is a single item", expected="a set has at least two")
    usual_size, usual_depth, usual_lowest = _usual(rankings, num_items)
    size = min(usual_size, num_items) if size is None else size
    whole("size", size, least=2)
    at_most("size", size, num_items, "items")
    asked = usual_lowest if lowest is None else lowest
    most = size - asked
    if depth is None:
        if asked and not usual_lowest:
            usual_depth = 1
        depth = min(usual_depth, most) if usual_depth < usual_size else most
    whole("depth", depth)
    at_most("depth", depth, most, f"places to fill in sets of {size} items")
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
    # Of a race of dozens only some are worth a question; all of these are to be placed.
    if size > _MOST_USUAL and depth + named >= _MOST_USUAL:
        depth = _MOST_USUAL
    return min(int(size), _MOST_USUAL), int(depth), bool(named)


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
