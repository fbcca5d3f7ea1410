"""Parts of judgements that share neither judges nor what is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Int
from scipy.sparse.csgraph import connected_components

from raters.judgements.base import PIECE, Judgements
from raters.judgements.counts import Codes
from raters.judgements.names import shorten, warn_data

# Least number of rows of a part that counts as one.
_FEWEST = 2


class Connected(NamedTuple):
    """Parts of judgements, the one with most rows first."""

    number: int
    part: dict[str, Int[np.ndarray, " name"]]


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
        ends = [
            _linked(codes, real, judges, offset[axis])
            for axis in axes
            for codes in piece.code_arrays(axis)
        ]
        one, other = label[np.concatenate(ends, axis=1)]
        graph = scipy.sparse.coo_array((np.ones(len(one), bool), (one, other)), (len(label),) * 2)
        label = connected_components(graph, directed=False)[1][label]
    in_part = np.bincount(label, rows, len(label))
    number = int((in_part >= _FEWEST).sum())
    rank = np.empty(len(in_part), int)
    rank[np.argsort(-in_part, kind="stable")] = np.arange(len(in_part))
    place = np.minimum(rank[label], number)
    part = {axis: place[offset[axis] : offset[axis] + len(data.coords[axis])] for axis in axes}
    return Connected(number, part)


def _linked(
    codes: Int[np.ndarray, "row ..."], real: np.ndarray, judges: Codes, offset: int
) -> Int[np.ndarray, "end link"]:
    """Pairs of nodes: the judge of each row, and each name of an axis in that row."""
    codes = codes[real].reshape(len(judges), int(np.prod(codes.shape[1:])))
    named = codes >= 0
    return np.stack([np.broadcast_to(judges[:, None], codes.shape)[named], codes[named] + offset])


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
