"""Numbered questions, and samples of numbers: no array is longer than what was asked for and a
chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from raters.judgements.labels import Labels

# Questions looked at at a time.
_CHUNK = 1 << 16
# So many questions are looked at one by one, or drawn at random, before the search for some that
# may be asked is given up.
_MOST = 1 << 25

Codes = Int[np.ndarray, " question"]
Names = Int[np.ndarray, " annotator"]
# Which of some numbered questions are to be kept.
Keep = Callable[[Codes], Bool[np.ndarray, " question"]]


class Abilities(NamedTuple):
    """Items that each annotator can judge: those of annotator ``judges[k]`` are ``items[start[k] :
    start[k] + size[k]]``, ascending. Questions about one item are numbered by annotator."""

    judges: Names
    items: Int[np.ndarray, " entry"]
    start: Names
    size: Names
    limited: bool

    @classmethod
    def of(
        cls,
        items: Int[np.ndarray, " item"],
        judges: Names,
        lists: Mapping[int, Int[np.ndarray, " _able"]],
    ) -> Abilities:
        """Abilities from the lists of those annotators who cannot judge all items."""
        limited = [code for code in judges.tolist() if code in lists]
        parts = [items, *(lists[code] for code in limited)]
        sizes = np.array([len(part) for part in parts])
        of_list = np.zeros(len(judges), np.int64)
        of_list[np.isin(judges, limited)] = np.arange(1, len(parts))
        start = np.cumsum(sizes) - sizes
        return cls(judges, np.concatenate(parts), start[of_list], sizes[of_list], bool(limited))

    @property
    def total(self) -> int:
        """Number of questions about one item."""
        return int(self.size.sum())

    def of_numbers(self, number: Codes) -> tuple[Codes, Codes]:
        """Item and annotator of each numbered question."""
        before = np.concatenate([[0], np.cumsum(self.size)])
        place = np.searchsorted(before, number, side="right") - 1
        return self.items[self.start[place] + number - before[place]], self.judges[place]

    def answered(self, labels: Labels) -> Codes:
        """Numbers of the questions that labels have answered, ascending."""
        numbers = [np.zeros(0, np.int64)]
        labelled, by = np.asarray(labels.item), np.asarray(labels.annotator)
        before = np.cumsum(self.size) - self.size
        order = np.argsort(by, kind="stable")
        ends = np.searchsorted(by[order], self.judges), np.searchsorted(by[order], self.judges + 1)
        for place, (begin, end) in enumerate(zip(*ends, strict=True)):
            able = self.items[self.start[place] : self.start[place] + self.size[place]]
            items = np.unique(labelled[order[begin:end]])
            at = np.searchsorted(able, items)
            at, items = at[at < len(able)], items[at < len(able)]
            numbers.append(before[place] + at[able[at] == items])
        return np.concatenate(numbers)


class Pairs(NamedTuple):
    """Every pair of the items that each annotator can judge, numbered."""

    can: Abilities
    before: Int[np.ndarray, " 1+annotator"]

    @classmethod
    def of(cls, can: Abilities) -> Pairs:
        """Pairs of the items that each annotator can judge."""
        return cls(can, np.concatenate([[0], np.cumsum(can.size * (can.size - 1) // 2)]))

    def of_numbers(self, number: Codes) -> tuple[Codes, Codes, Codes]:
        """Both items and the annotator of each numbered question."""
        if self.can.limited:
            place = np.searchsorted(self.before, number, side="right") - 1
            pair = number - self.before[place]
        else:  # All annotators of a pair come together.
            pair, place = np.divmod(number, len(self.can.judges))
        # Pair (i, j), i < j, has number j(j−1)/2 + i.
        larger = ((1 + np.sqrt(1 + 8 * pair.astype(np.float64))) / 2).astype(np.int64)
        larger -= larger * (larger - 1) // 2 > pair
        larger += (larger + 1) * larger // 2 <= pair
        smaller, start = pair - larger * (larger - 1) // 2, self.can.start[place]
        items = self.can.items
        return items[start + smaller], items[start + larger], self.can.judges[place]


def sample(rng: np.random.Generator, total: int, limit: int, keep: Keep | None) -> Codes:
    """Return the numbers below `total` that `keep` allows, in order; beyond `limit` of them, a
    uniform sample of that size."""
    if keep is None and total <= limit:
        return np.arange(total)
    if total > 4 * limit + _CHUNK:
        drawn = _drawn(rng, total, limit, keep)
        if len(drawn) == limit or total > _MOST:
            return drawn
    return _passed(rng, total, limit, keep)


def _drawn(rng: np.random.Generator, total: int, limit: int, keep: Keep | None) -> Codes:
    """Draw at random and reject; fewer than `limit` when it takes too long."""
    kept = np.zeros(0, np.int64)
    fresh: list[np.ndarray] = []
    for _ in range(-(-min(total, max(_MOST, 4 * limit)) // _CHUNK)):
        number = rng.integers(total, size=_CHUNK)
        fresh.append(number if keep is None else number[keep(number)])
        # So many that numbers drawn twice seldom call for another round: each sorts all that
        # are kept.
        if sum(map(len, fresh)) >= limit - len(kept) + limit // 4:
            kept, fresh = np.unique(np.concatenate([kept, *fresh])), []
            if len(kept) >= limit:
                return np.sort(rng.choice(kept, limit, replace=False))
    kept = np.unique(np.concatenate([kept, *fresh]))
    return kept if len(kept) <= limit else np.sort(rng.choice(kept, limit, replace=False))


def _passed(rng: np.random.Generator, total: int, limit: int, keep: Keep | None) -> Codes:
    """Pass over all numbers: each gets a random rank, and the `limit` lowest ranks stay."""
    kept, ranks, highest = np.zeros(0, np.int64), np.zeros(0), np.inf
    for begin in range(0, total, _CHUNK):
        number = np.arange(begin, min(begin + _CHUNK, total))
        if keep is not None:
            number = number[keep(number)]
        rank = rng.random(len(number))
        low = rank < highest
        kept, ranks = np.concatenate([kept, number[low]]), np.concatenate([ranks, rank[low]])
        if len(kept) > limit:
            lowest = np.argpartition(ranks, limit - 1)[:limit]
            kept, ranks = kept[lowest], ranks[lowest]
            highest = ranks.max()
    return np.sort(kept)
