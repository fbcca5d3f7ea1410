"""Graphs of judgements: parts that share nothing, and votes that tell no distances, no order of
items, or no position bias apart from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from raters.judgements.base import PIECE, Judgements
from raters.judgements.counts import Codes
from raters.judgements.names import shorten, warn_data

if TYPE_CHECKING:
    from raters.judgements.comparisons import Comparisons

# Least number of rows of a part that counts as one.
_FEWEST = 2
# Rows in which two votes mostly contradict each other, if any do.
_FEW = 100_000
# Share of the information about a position bias below which rewards imitate most of it.
MIXED_ORDER = 0.5


class Connected(NamedTuple):
    """Parts of judgements, the one with most rows first."""

    number: int
    part: dict[str, Int[np.ndarray, " name"]]


def merged(label: Codes, one: Codes, other: Codes) -> Codes:
    """Labels of nodes, of which those that some links join are the same."""
    ends, number = (label[one], label[other]), len(label)
    graph = scipy.sparse.coo_array((np.ones(len(one), bool), ends), (number, number))
    return np.asarray(connected_components(graph, directed=False)[1][label])


def connected(data: Judgements) -> Connected:
    """Find the connected components of the graph of judges and of what they are asked about."""
    axes = [axis for axis in data.question_axes() if axis != data.axes.get(str(data.known))]
    size = [len(data.coords[axis]) for axis in axes]
    offset = dict(zip(axes, np.cumsum([0, *size]).tolist(), strict=False))
    label, rows = np.arange(sum(size)), np.zeros(sum(size))
    for piece in data.chunks(PIECE):
        real = np.asarray(piece.weight) > 0
        judges = np.asarray(piece.codes(str(data.judge)))[real] + offset[str(data.judge)]
        rows += np.bincount(judges, minlength=len(label))
        for axis in axes:
            for codes in piece._code_arrays(axis):
                # The judge of each row, and each name of the axis in that row.
                each = codes[real].reshape(len(judges), int(np.prod(codes.shape[1:])))
                row, place = np.nonzero(each >= 0)
                label = merged(label, judges[row], each[row, place] + offset[axis])
    in_part = np.bincount(label, rows, len(label))
    number = int((in_part >= _FEWEST).sum())
    rank = np.empty(len(in_part), int)
    rank[np.argsort(-in_part, kind="stable")] = np.arange(len(in_part))
    place = np.minimum(rank[label], number)
    part = {axis: place[offset[axis] : offset[axis] + len(data.coords[axis])] for axis in axes}
    return Connected(number, part)


def judges_by_part(data: Judgements) -> list[Int[np.ndarray, " judge"]]:
    """Codes of the judges of each part of two rows and more; of one part, of all judges."""
    components = connected(data)
    part = components.part[str(data.judge)]
    if components.number < 2:
        return [np.arange(len(part))]
    return [np.flatnonzero(part == place) for place in range(components.number)]


def warn_of_parts(
    data: Judgements, parts: Sequence[Int[np.ndarray, " judge"]], sentence: str
) -> None:
    """Warn of parts that share no item, with what that leaves to the prior."""
    if len(parts) > 1:
        listed = "; ".join(shorten([data.judges[code] for code in part]) for part in parts[:4])
        fall = f"annotators fall into {len(parts)} parts that share no item: {listed}."
        warn_data(f"{fall} {sentence}")


def part_of(parts: Sequence[Int[np.ndarray, " judge"]], place: int, data: Judgements) -> str:
    """Return the words that say which part of the crowd a sentence is about."""
    if len(parts) < 2:
        return ""
    names = [data.judges[code] for code in parts[place]]
    return f" in the part of {shorten(names)} (who share no item with the others)"


# ---------------------------------------------------------------- votes


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
    parts = connected_components(graph, connection="strong")[0]
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
