"""Numbered questions, and samples of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from raters.errors import DataError, refuse
from raters.errors.validation import is_list
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.names import check_once, match_names, name_list

# Questions looked at at a time.
_CHUNK = 1 << 16
# Of more questions than these so many are drawn at random, in search of some that may be asked.
_MOST = 1 << 25

Available = Mapping[Any, Iterable[Any] | None]
Codes = Int[np.ndarray, " question"]
Names = Int[np.ndarray, " annotator"]
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
        cls,
        available: Available | None,
        items: Int[np.ndarray, " item"],
        judges: Names,
        data: Comparisons | Labels,
    ) -> Abilities:
        """Abilities of some annotators among some items, by the names of what each can judge."""
        if available is not None and not isinstance(available, Mapping):
            expected, such = "it must map names of annotators to lists of items", "{'ann': [...]}"
            refuse("available", available, expected=expected, instead=such, error=DataError)
        check_once(available or {}, "available")
        given = {name: some for name, some in (available or {}).items() if some is not None}
        codes = np.arange(len(given))
        whose = match_names(codes, tuple(given), data.annotators, "annotator", "available")
        of_list, parts = np.zeros(len(data.annotators), np.int64), [items]
        for code, (name, some) in zip(whose.tolist(), given.items(), strict=True):
            if not is_list(some):
                problem, expected = f"is no list of items for {name!r}", "give a list of items"
                refuse("available", some, problem, expected, error=DataError)
            able = tuple(name_list(some, "available"))
            known = match_names(np.arange(len(able)), able, data.items, "item", "available")
            if code in judges:
                of_list[code] = len(parts)
                parts.append(np.intersect1d(known.astype(np.int64), items))
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
