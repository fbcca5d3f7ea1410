"""Orders as one number each, as a journal of answers holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from raters.errors import refuse_data

# Up to here whole numbers are exact in double precision.
_MOST = 2**53


def check_codes(size: int, depth: int) -> None:
    """Raise where the orders have more numbers than double precision tells apart."""
    if math.perm(size, depth) > _MOST:
        refuse_data(
            "depth",
            depth,
            f"places of {size} items have more orders than a journal can hold",
            "ask for fewer places, or offer fewer items at a time",
            instead="rt.Candidates.sets(rankings, size=6)",
        )


def order_code(positions: Sequence[int], size: int) -> int:
    """Number of an order: that of its first position among all, then of the next among the rest,
    and so on, as the digits of a mixed radix."""
    code, rest = 0, list(range(size))
    for position in positions:
        code = code * len(rest) + rest.index(position)
        rest.remove(position)
    return code


def order_of(code: int, size: int, depth: int) -> list[int]:
    """The order of a number."""
    digits = []
    left = code
    for number in range(size - depth + 1, size + 1):
        left, digit = divmod(left, number)
        digits.append(digit)
    if left:
        refuse_data(
            "outcomes",
            code,
            f"is the number of no order of {depth} of {size} items",
            f"it must be at least 0 and below {math.perm(size, depth)}",
        )
    rest = list(range(size))
    return [rest.pop(digit) for digit in reversed(digits)]
