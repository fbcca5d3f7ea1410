"""Votes on pairs that give an order of the items and no distances, or not even an order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    from raters.judgements.comparisons import Comparisons

# Rows in which two votes mostly contradict each other, if any do.
_FEW = 100_000


def is_even(votes: Comparisons) -> bool:
    """True if each row has as many wins for the one side as for the other.

    Parameters
    ----------
    votes : Comparisons
        With outcomes.

    Returns
    -------
    bool
    """
    for piece in votes.chunks(_FEW):
        count = np.ones(piece.num_rows) if piece.count is None else np.asarray(piece.count)
        if not np.array_equal(2 * np.asarray(piece.wins), count):
            return False
    return True


def is_separated(votes: Comparisons) -> bool:
    """True if the graph of who won against whom has several arcs and no cycle.

    Ford (1957), American Mathematical Monthly 64, 28–33: without such a cycle through all items
    there are no most likely finite rewards.

    Parameters
    ----------
    votes : Comparisons
        With outcomes.

    Returns
    -------
    bool
    """
    number = votes.num_items
    arcs = np.empty(0, np.int64)  # winner · number of items + loser
    for piece in votes.chunks(_FEW):
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
