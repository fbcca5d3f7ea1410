"""Pairs of members of groups."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def pairs_within(size: Int[np.ndarray, " group"], most: int) -> Int[np.ndarray, "2 pair"]:
    """Places of the members of pairs within groups of these sizes, one group after the other; of
    more, so many at random, each once."""
    begin, number = np.cumsum(size) - size, size * (size - 1) // 2
    if number.sum() <= most:
        groups = zip(size, begin, strict=True)
        parts = [np.stack(np.triu_indices(many, 1)) + first for many, first in groups if many > 1]
        return np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)
    rng = np.random.default_rng(0)
    of = rng.choice(len(size), most, p=number / number.sum())
    one = rng.integers(size[of])
    other = (one + rng.integers(1, size[of])) % size[of]
    return np.unique(begin[of] + np.sort([one, other], axis=0), axis=1)
