"""Pairs of items whose true order is known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from raters.errors import DataError, refuse
from raters.judgements.names import Names, shorten
from raters.judgements.reading.columns import (
    column_names,
    is_column,
    place,
    read_columns,
    read_numbers,
)

# Columns of tables that are read, those of one form together.
FORMS = (("winner", "loser"), ("first", "second", "winner"), ("item", "value"))
#: All of them.
COLUMNS = tuple(dict.fromkeys(chain(*FORMS)))
_ADVICE = "give orders of items that were judged"
# Link to an item above and to one below that each item keeps.
_LINKS = 1


class KnownOrders(NamedTuple):
    """Pairs of items whose true order is known, as codes."""

    better: Int[np.ndarray, " pair"]
    worse: Int[np.ndarray, " pair"]
    chain: Int[np.ndarray, "link 2"]

    @classmethod
    def read(cls, gold: Any, items: Names) -> KnownOrders:
        """Known orders from what a user has."""
        table = _table({"winner": [], "loser": []} if gold is None else gold)
        names = column_names(table)
        form = next((form for form in FORMS if set(form) <= set(names)), None)
        if form is None:
            expected = "it must have winner and loser; first, second and winner; or item and value"
            refuse("gold", shorten(names), "are its columns", expected, error=DataError)
        if "probability" in names:
            problem = "has a column `probability`, and only known classes of labels are weighted"
            expected = "draw the orders at random, and leave the column out"
            refuse("gold", problem=problem, expected=expected, error=DataError)
        if form == ("item", "value"):
            return cls._by_value(table, items)
        columns = read_columns(table, {role: role for role in form}, empty=form)
        codes = {role: place(columns[role], items, "items", _ADVICE).astype(int) for role in form}
        pairs = _sided(codes, items) if "first" in codes else _complete(codes)
        pairs = np.unique(pairs, axis=0)
        _check_order(pairs, items)
        return cls(pairs[:, 0], pairs[:, 1], pairs)

    @classmethod
    def _by_value(cls, table: Any, items: Names) -> KnownOrders:
        """Orders of all items of known value."""
        columns = read_columns(table, empty=("value",), item="item", value="value")
        code, column = place(columns["item"], items, "items", _ADVICE), columns["value"]
        given = column.code >= 0
        code, value = code[given].astype(int), read_numbers(column)[given]
        if (twice := np.bincount(code, minlength=len(items)) > 1).any():
            several = shorten([items[one] for one in np.flatnonzero(twice)])
            expected = "give each item one value"
            refuse("gold", several, "have several values", expected, error=DataError)
        one, other = np.triu_indices(len(code), 1)
        swap, apart = value[one] < value[other], value[one] != value[other]
        pairs = code[np.stack([np.where(swap, other, one), np.where(swap, one, other)], 1)[apart]]
        return cls(pairs[:, 0], pairs[:, 1], links(pairs))

    def links(self, most: int) -> Int[np.ndarray, "link 2"]:
        """Pairs that all orders follow from; of more items or many pairs, links of at most so many
        random items."""
        if len(self.chain) <= 2 * most and len(np.unique(self.chain)) <= most:
            return self.chain
        some = np.random.default_rng(0).permutation(len(self.better))[: most // 2]
        items = np.concatenate([self.better[some], self.worse[some]])
        among = np.isin(self.better, items) & np.isin(self.worse, items)
        return links(np.stack([self.better, self.worse], 1)[among])

    def signs(
        self, first: Int[np.ndarray, " row"], second: Int[np.ndarray, " row"], num_items: int
    ) -> Int[np.ndarray, " row"]:
        """1 where the first item is known to be better, −1 where the second is, and 0 elsewhere."""
        keys = np.concatenate(
            [self.better * num_items + self.worse, self.worse * num_items + self.better]
        )
        signs = np.repeat([1, -1], len(self.better))
        order = np.argsort(keys)
        asked = np.asarray(first, np.int64) * num_items + np.asarray(second)
        if not len(keys):
            return np.zeros(len(asked), int)
        place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
        return np.where(keys[order][place] == asked, signs[order][place], 0)


def links(pairs: Int[np.ndarray, "pair 2"]) -> Int[np.ndarray, "link 2"]:
    """Few pairs that most of the others follow from, so that no answer counts many times."""
    codes, place = np.unique(pairs, return_inverse=True)
    ends = place.reshape(-1, 2)
    above = np.zeros((len(codes), len(codes)), np.float32)
    above[ends[:, 0], ends[:, 1]] = 1
    ends = ends[(above @ above)[ends[:, 0], ends[:, 1]] == 0]
    ends = np.random.default_rng(0).permutation(ends)
    kept = np.zeros(len(ends), bool)
    for side in ends.T:
        order = np.argsort(side, kind="stable")
        start = np.searchsorted(side[order], side[order])
        kept[order] |= np.arange(len(order)) - start < _LINKS
    return np.unique(codes[ends[kept]], axis=0)


def _table(gold: Any) -> Any:
    """Known orders as a table."""
    if hasattr(gold, "columns") or hasattr(gold, "column_names"):
        return gold
    if isinstance(gold, (Mapping, pd.Series)):
        if isinstance(gold, Mapping) and any(map(is_column, gold.values())):
            return gold
        known = list(gold.items())
        return {"item": [name for name, _ in known], "value": [value for _, value in known]}
    pairs = []
    if isinstance(gold, (list, tuple)):
        pairs = [tuple(one) if is_column(one) else () for one in gold]
    if not isinstance(gold, (list, tuple)) or any(len(pair) != 2 for pair in pairs):
        expected = (
            "give a list of pairs (better, worse), a table with columns winner and loser, or"
            " the known value of each of some items"
        )
        instead = 'gold=[("tea", "coffee")]'
        refuse(
            "gold", gold, "is no set of known orders", expected, instead=instead, error=DataError
        )
    return {role: [pair[end] for pair in pairs] for end, role in enumerate(FORMS[0])}


def _complete(codes: Mapping[str, Int[np.ndarray, " row"]]) -> Int[np.ndarray, "pair 2"]:
    """Pairs of a winner and a loser; rows that have neither are left out."""
    pairs = np.stack([codes["winner"], codes["loser"]], axis=1)
    half = np.flatnonzero((pairs < 0).sum(1) == 1)
    if len(half):
        problem = f"has only one of winner and loser in row {half[0]} (counted from 0)"
        refuse("gold", problem=problem, expected="give both, or neither", error=DataError)
    return pairs[pairs[:, 0] >= 0]


def _sided(codes: Mapping[str, Int[np.ndarray, " row"]], items: Names) -> Int[np.ndarray, "pair 2"]:
    """Pairs in the order that their winner tells; rows without one are left out."""
    first, second, winner = (codes[role] for role in ("first", "second", "winner"))
    other = np.where(winner == first, second, first)
    wrong = np.flatnonzero((winner >= 0) & (winner != first) & (winner != second))
    if len(wrong):
        row = wrong[0]
        problem = f"is the winner in row {row} (counted from 0), of which it is no side"
        expected = "the winner must be one of the two"
        refuse("gold", items[winner[row]], problem, expected, error=DataError)
    pairs = np.stack([winner, other], axis=1)[winner >= 0]
    if (pairs < 0).any():
        problem = "has a row with a winner and only one side"
        refuse("gold", problem=problem, expected="give both sides", error=DataError)
    return pairs


def _check_order(pairs: Int[np.ndarray, "pair 2"], items: Names) -> None:
    """`DataError` where an item would be above itself."""
    if (own := pairs[:, 0] == pairs[:, 1]).any():
        problem = "is known to be above itself"
        expected = "give pairs of two items"
        refuse("gold", items[pairs[np.flatnonzero(own)[0], 0]], problem, expected, error=DataError)
    number = len(items)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (number, number))
    _, part = connected_components(graph, directed=True, connection="strong")
    within = pairs[part[pairs[:, 0]] == part[pairs[:, 1]]]
    if len(within):
        those = np.flatnonzero(part == part[within[0, 0]])
        problem = "are known in orders that contradict each other"
        expected = "give each pair one order, and leave out those that are equal"
        refuse("gold", shorten([items[one] for one in those]), problem, expected, error=DataError)
