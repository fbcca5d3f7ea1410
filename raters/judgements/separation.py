"""Votes that tell no distances or no order of items, or no position bias apart from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from jaxtyping import Float

if TYPE_CHECKING:
    from raters.judgements.comparisons import Comparisons

# Rows in which two votes mostly contradict each other, if any do.
_FEW = 100_000
# Share of the information about a position bias below which rewards imitate most of it.
MIXED_ORDER = 0.5


def is_even(votes: Comparisons) -> bool:
    """True if each row has as many wins for the one side as for the other."""
    for piece in votes.halved().chunks(_FEW):
        count = np.ones(piece.num_rows) if piece.count is None else np.asarray(piece.count)
        if not np.array_equal(2 * np.asarray(piece.wins), count):
            return False
    return True


def is_separated(votes: Comparisons) -> bool:
    """True if the graph of who won against whom has several arcs and no cycle."""
    number = votes.num_items
    arcs = np.empty(0, np.int64)  # winner · number of items + loser
    for piece in votes.halved().chunks(_FEW):
        first, second = (np.asarray(side, np.int64) for side in (piece.first, piece.second))
        wins = np.asarray(piece.wins)
        lost = (np.ones(len(wins)) if piece.count is None else np.asarray(piece.count)) - wins
        ends = [(first, second, wins), (second, first, lost)]
        new = [(one * number + other)[won > 0] for one, other, won in ends]
        arcs = np.unique(np.concatenate([arcs, *new]))
        if np.isin(arcs % number * number + arcs // number, arcs).any():
            return False
    if len(arcs) < 2:
        return False
    graph = scipy.sparse.coo_array(
        (np.ones(len(arcs), bool), np.divmod(arcs, number)), shape=(number, number)
    )
    parts = scipy.sparse.csgraph.connected_components(graph, connection="strong")[0]
    return bool(parts == number)


def order_share(votes: Comparisons) -> float:
    """Share of the information about a position's advantage that rewards cannot imitate, 0 to 1."""
    return free_share(votes, None)


def free_share(votes: Comparisons, values: Float[np.ndarray, " comparison"] | None) -> float:
    """Share of the information about a coefficient that rewards cannot imitate."""
    return 1 - imitated(votes, values)[1]


def imitated(
    votes: Comparisons, values: Float[np.ndarray, " comparison"] | None
) -> tuple[Float[np.ndarray, " item"], float]:
    """Rewards that imitate a feature best, and the share of its information that they imitate."""
    number = votes.num_items
    moment, total, begin = np.zeros(number), 0.0, 0
    across = scipy.sparse.csr_array((number, number))
    for piece in votes.chunks(_FEW):
        count = np.asarray(piece.weight, float)
        value = np.ones(len(count)) if values is None else values[begin : begin + len(count)]
        begin += len(count)
        sides = np.asarray(piece.first), np.asarray(piece.second)
        moment += np.bincount(sides[0], count * value, number)
        moment -= np.bincount(sides[1], count * value, number)
        across = across + scipy.sparse.csr_array((count, sides), shape=(number, number))
        total += (count * value**2).sum()
    across = across + across.T
    laplacian = scipy.sparse.diags_array(np.asarray(across.sum(1)).ravel()) - across
    # The moment is orthogonal to the constant rewards that the Laplacian does not see.
    reward, _ = scipy.sparse.linalg.cg(laplacian, moment, rtol=1e-6, maxiter=500)
    return reward, float(np.clip(moment @ reward / total, 0, 1)) if total else 0.0
