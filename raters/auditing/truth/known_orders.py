"""Pairs of items whose true order is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from raters.errors import refuse_data
from raters.judgements.names import Names, shorten
from raters.judgements.reading import columns as reading

# Columns of tables that are read, those of one form together.
FORMS = (("winner", "loser"), ("first", "second", "winner"), ("item", "value"))
_ADVICE = "give orders of items that were judged"
# Link to an item above and to one below that each item keeps.
_LINKS = 1


Codes = Int[np.ndarray, " row"]
Pairs = Int[np.ndarray, "pair 2"]


class KnownOrders(NamedTuple):
    """Pairs of items whose true order is known, as codes."""

    better: Int[np.ndarray, " pair"]
    worse: Int[np.ndarray, " pair"]
    chain: Pairs

    @classmethod
    def read(cls, gold: Any, items: Names) -> KnownOrders:
        """Known orders from what a user has."""
        table = _table({"winner": [], "loser": []} if gold is None else gold)
        names = reading.column_names(table)
        form = next((form for form in FORMS if set(form) <= set(names)), None)
        if form is None:
            expected = "it must have winner and loser; first, second and winner; or item and value"
            refuse_data("gold", shorten(names), "are its columns", expected)
        if "probability" in names:
            problem = "has a column `probability`, and only known classes of labels are weighted"
            expected = "draw the orders at random, and leave the column out"
            refuse_data("gold", problem=problem, expected=expected)
        empty = ("value",) if "value" in form else form
        columns = reading.read_columns(table, {role: role for role in form}, empty=empty)
        of_items = [role for role in form if role != "value"]
        codes = {role: reading.place(columns[role], items, "items", _ADVICE) for role in of_items}
        codes = {role: code.astype(int) for role, code in codes.items()}
        if "value" in form:
            pairs = _by_value(codes["item"], columns["value"], items)
            return cls(pairs[:, 0], pairs[:, 1], links(pairs))
        pairs = np.unique(_pairs(codes, items), axis=0)
        _check_order(pairs, items)
        return cls(pairs[:, 0], pairs[:, 1], pairs)

    def links(self, most: int) -> Pairs:
        """Pairs that all orders follow from; of many, links of so many random items."""
        if len(self.chain) <= 2 * most and len(np.unique(self.chain)) <= most:
            return self.chain
        some = np.random.default_rng(0).permutation(len(self.better))[: most // 2]
        items = np.concatenate([self.better[some], self.worse[some]])
        among = np.isin(self.better, items) & np.isin(self.worse, items)
        return links(np.stack([self.better, self.worse], 1)[among])

    def signs(self, first: Codes, second: Codes, num_items: int) -> Codes:
        """1 where the first item is known to be better, −1 where the second is, and 0 elsewhere."""
        one, other = self.better * num_items + self.worse, self.worse * num_items + self.better
        asked = np.asarray(first, np.int64) * num_items + second
        return np.isin(asked, one).astype(int) - np.isin(asked, other)


def links(pairs: Pairs) -> Pairs:
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
    if hasattr(gold, "columns") or hasattr(gold, "column_names"):
        return gold
    if isinstance(gold, (Mapping, pd.Series)):
        if isinstance(gold, Mapping) and any(map(reading.is_column, gold.values())):
            return gold
        known = list(gold.items())
        return {"item": [name for name, _ in known], "value": [value for _, value in known]}
    is_list = isinstance(gold, (list, tuple))
    pairs = [tuple(one) if reading.is_column(one) else () for one in gold] if is_list else [()]
    if any(len(pair) != 2 for pair in pairs):
        expected = (
            "give a list of pairs (better, worse), a table with columns winner and loser, or"
            " the known value of each of some items"
        )
        instead = 'gold=[("tea", "coffee")]'
        refuse_data("gold", gold, "is no set of known orders", expected, instead=instead)
    return {role: [pair[end] for pair in pairs] for end, role in enumerate(FORMS[0])}


def _by_value(code: Codes, column: reading.Column, items: Names) -> Pairs:
    """Pairs of all items whose values are known and differ."""
    given = column.code >= 0
    code, value = code[given], reading.read_numbers(column)[given]
    if (twice := np.bincount(code, minlength=len(items)) > 1).any():
        several = shorten([items[one] for one in np.flatnonzero(twice)])
        refuse_data("gold", several, "have several values", "give each item one value")
    one, other = np.triu_indices(len(code), 1)
    swap, apart = value[one] < value[other], value[one] != value[other]
    pairs = np.stack([np.where(swap, other, one), np.where(swap, one, other)], 1)[apart]
    return np.asarray(code[pairs])


def _pairs(codes: Mapping[str, Codes], items: Names) -> Pairs:
    """Pairs of a winner and a loser; rows without a winner are left out."""
    winner, loser = codes["winner"], codes.get("loser")
    if loser is None:
        first, second = codes["first"], codes["second"]
        loser = np.where(winner == first, second, first)
        wrong = np.flatnonzero((winner >= 0) & (winner != first) & (winner != second))
        if len(wrong):
            problem = f"is the winner in row {wrong[0]} (counted from 0), of which it is no side"
            name = items[winner[wrong[0]]]
            refuse_data("gold", name, problem, "the winner must be one of the two")
        if ((winner >= 0) & (loser < 0)).any():
            problem = "has a row with a winner and only one side"
            refuse_data("gold", problem=problem, expected="give both sides")
    elif len(half := np.flatnonzero((winner < 0) != (loser < 0))):
        problem = f"has only one of winner and loser in row {half[0]} (counted from 0)"
        refuse_data("gold", problem=problem, expected="give both, or neither")
    return np.stack([winner, loser], axis=1)[winner >= 0]


def _check_order(pairs: Pairs, items: Names) -> None:
    """`DataError` where an item would be above itself."""
    better, worse = pairs.T
    if len(own := better[better == worse]):
        problem = "is known to be above itself"
        refuse_data("gold", items[own[0]], problem, "give pairs of two items")
    graph = coo_array((np.ones(len(pairs)), (better, worse)), (len(items), len(items)))
    _, part = connected_components(graph, directed=True, connection="strong")
    if len(within := part[better][part[better] == part[worse]]):
        those = shorten([items[one] for one in np.flatnonzero(part == within[0])])
        problem = "are known in orders that contradict each other"
        expected = "give each pair one order, and leave out those that are equal"
        refuse_data("gold", those, problem, expected)
