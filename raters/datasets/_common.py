"""Checks of sizes, and kinds of annotators, of all generators."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from raters.errors import refuse
from raters.errors.validation import whole

# Values drawn at most, which take about a gigabyte.
_MOST = 100_000_000
# The kind of an annotator by the name of its share.
_KINDS = {
    "guessers": "guesser",
    "spammers": "spammer",
    "careless": "careless",
    "adversaries": "adversary",
}

# The generating values, by the names that the models give them.
Truth = dict[str, np.ndarray]


def check_sizes(least: int = 1, **sizes: int) -> None:
    """Check whole numbers of at least `least`, none of which is too large for memory."""
    for name, size in sizes.items():
        whole(name, size, least)
        check_amount(name, size, size)


def check_amount(name: str, size: int, amount: int) -> None:
    """Check that the number of values that a size leads to is not too large for memory."""
    if amount > _MOST:
        problem = "is too large" if amount == size else f"makes {amount:,} values"
        refuse(name, size, problem, f"there may be {_MOST:,} at most")


def draw_kinds(
    rng: np.random.Generator, num_annotators: int, **shares: float
) -> Shaped[np.ndarray, " annotator"]:
    """Draw the kind of each annotator: these shares of each kind, and the others competent."""
    if min(shares.values()) < 0 or sum(shares.values()) >= 1:
        name, value = next(iter(shares.items()))
        others = ", ".join(f"`{other}` {share:g}" for other, share in shares.items())
        expected = "shares must not be negative, and must leave someone competent"
        refuse(name, value, f"is not possible (of {others})", expected)
    kinds: list[str] = []
    for name, share in shares.items():
        kinds += [_KINDS[name]] * round(share * num_annotators)
    kinds += ["competent"] * (num_annotators - len(kinds))
    return rng.permutation(np.array(kinds, dtype=object))
