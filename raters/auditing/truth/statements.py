r"""Statements of annotators, of classes of items and of orders of pairs of items, and how many of
them are right.

The pairs of one ranking are not independent answers: whoever puts one item wrongly has several
pairs wrong. Where a random order of the items has m pairs of which it is asked whether they are
right, their number has the variance

.. math::

    \frac{m}{4} + \frac16 \sum_i \left[\binom{o_i}{2} + \binom{w_i}{2} - o_i w_i\right]

with :math:`o_i` and :math:`w_i` the pairs in which item i is the better and the worse (two pairs
that share an end are right together with probability 1/3, and with 1/6 where the better item of
one is the worse of the other). Each pair counts as the :math:`m / 4` that independent ones would
have, over this; all pairs of n items count as :math:`9 / (2n + 5)` each. This is the variance of
Kendall's τ under the hypothesis of independence (Kendall and Gibbons 1990, Rank Correlation
Methods).

An annotator's own scores of items are :math:`(L + I)^{-1} d`, where d has how often the annotator
put each item above others less how often below, and L is the Laplacian of the graph of these pairs:
least squares with a ridge. Those of all annotators have one scale, under which two items differ in
:math:`\sum_a \beta_a S_{ia}`, with :math:`\beta_a \sim \mathrm{Normal}(0, 1)`, by a variance of 2
on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Num
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg

from raters.auditing.truth.annotator_accuracy import Marks, luck_of
from raters.errors import refuse_data
from raters.judgements.answers import Ratings
from raters.judgements.comparisons import Comparisons
from raters.judgements.counts import standing
from raters.judgements.labels import Labels
from raters.judgements.names import Names, shorten
from raters.judgements.rankings import Rankings
from raters.judgements.reading import columns as reading

# Columns of tables that are read, those of one form together.
FORMS = (("winner", "loser"), ("first", "second", "winner"), ("item", "value"))
_ADVICE = "give orders of items that were judged"


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
    for side in ends.T:  # A link to an item above and to one below that each item keeps.
        kept[np.unique(side, return_index=True)[1]] = True
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
        sides = codes["first"], codes["second"]
        loser = np.select(
            [winner < 0, winner == sides[0], winner == sides[1]], [-1, *sides[::-1]], -1
        )
    if len(half := np.flatnonzero((winner < 0) != (loser < 0))):
        problem = f"has no winner and other side in row {half[0]} (counted from 0)"
        expected = "give both, the winner as one of the two, or neither"
        refuse_data("gold", problem=problem, expected=expected)
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


PerRow = Float[np.ndarray, " stated"]

# Pairs that are made of ratings at most.
_MOST_PAIRS = 2_000_000


# ---------------------------------------------------------------- statements


class Statements(NamedTuple):
    """Statements beside known truths: `sign` is 1 where one is right, −1 where it is wrong, and 0
    where the truth is not known. Each stands for a number of `answers`, which count as so many
    independent ones among those of `known` truth, and among the `others`."""

    annotator: Codes
    question: Codes
    answers: PerRow
    known: PerRow
    others: PerRow
    sign: Codes
    #: Whether each is right under one draw of the truth.
    right: Callable[[Num[np.ndarray, " item"]], Bool[np.ndarray, " stated"]]
    #: Weight of each in likelihoods if its truth is known; and the annotators' earlier record.
    weights: PerRow | None = None
    record: Float[np.ndarray, "annotator true_class label"] | None = None

    def known_answers(self) -> pd.DataFrame:
        """Answers to questions of known truth, with their rows as the index."""
        columns = {"annotator": self.annotator, "question": self.question, "answers": self.answers}
        columns |= {"number": self.known, "right": self.known * (self.sign > 0)}
        return pd.DataFrame(columns)[self.sign != 0]

    def marks(self, truth: Num[np.ndarray, "draw item"], size: int) -> Marks:
        """Right answers of each annotator, known and expected."""
        answers, number = self.known_answers(), np.where(self.sign == 0, self.others, 0.0)
        credit = [np.bincount(self.annotator, number * self.right(one), size) for one in truth]
        others = np.bincount(self.annotator, number, size)
        known = counted = by_annotator(answers, size)
        of_question = answers.groupby("question")[["right", "number"]].sum().values.T
        if self.weights is not None:
            each = answers[["right", "number"]].values.T * self.weights[answers.index]
            known, of_question = (
                np.stack([np.bincount(answers[code], one, size) for one in each])
                for code in ("annotator", "question")
            )
        if self.record is not None:
            past = np.stack([np.einsum("akk->a", self.record), self.record.sum((1, 2))])
            known, counted = past + known, past + counted
        expected, luck = (np.stack(credit), others), luck_of(*of_question)
        return Marks(known[0], known[1], *expected, luck, (counted[0], counted[1]))


def by_annotator(answers: pd.DataFrame, size: int) -> Float[np.ndarray, "2 annotator"]:
    """Right answers to questions of known truth, and all, of each annotator."""
    sums = answers.groupby("annotator")[["right", "number"]].sum()
    return np.asarray(sums.reindex(range(size), fill_value=0.0).values.T)


def of_labels(
    labels: Labels, truth: Int[np.ndarray, " item"], weights: Float[np.ndarray, " item"]
) -> Statements:
    """Classes stated by labels, beside true classes, −1 where they are not known."""
    who, item, label = map(np.asarray, (labels.annotator, labels.item, labels.label))
    sign = np.where(truth[item] < 0, 0, np.where(label == truth[item], 1, -1))
    record = None if labels.record is None else np.asarray(labels.record, float)
    number, about, of_label = np.asarray(labels.weight, float), labels.about(), weights[item]
    numbers = number, number, number
    return Statements(who, about, *numbers, sign, lambda one: label == one[item], of_label, record)


class StatedOrders(NamedTuple):
    """Pairs of items that annotators put in order."""

    annotator: Codes
    better: Codes
    worse: Codes
    number: PerRow
    block: Codes
    share: Float[np.ndarray, " block"]

    def scores(self, trusted: Codes, num_items: int) -> csr_array:
        """Scores of items by each annotator who is not trusted, shape (item, annotator)."""
        rows = np.flatnonzero(~np.isin(self.annotator, trusted))
        if not len(rows):
            return csr_array((num_items, 1))
        number, who = (self.number * self.share[self.block])[rows], self.annotator[rows]
        keys = [who * num_items + end[rows] for end in (self.better, self.worse)]
        cells, place = np.unique(np.concatenate(keys), return_inverse=True)
        pairs = csr_array((number, np.split(place.ravel(), 2)), (len(cells), len(cells)))
        over, under = pairs.sum(1), pairs.sum(0)
        degree = 1 + over + under
        laplacian = diags_array(degree) - pairs - pairs.T
        found, _ = cg(laplacian, over - under, rtol=1e-6, M=diags_array(1 / degree))
        scores = csr_array((found, np.divmod(cells, num_items)[::-1]), (num_items, who.max() + 1))
        square = (found**2).sum() - (scores.sum(0) ** 2).sum() / num_items
        return scores / (np.sqrt(square / (num_items - 1)) or 1.0)

    def joined(
        self, orders: KnownOrders, trusted: Codes, num_items: int, chained: bool
    ) -> KnownOrders:
        """Known orders, and those of pairs that trusted annotators mostly state."""
        rows = np.isin(self.annotator, trusted)
        ends = self.better[rows], self.worse[rows]
        number = csr_array((self.number[rows], ends), (num_items, num_items))
        lead = (number - number.T).tocoo()
        pairs = np.stack(lead.coords, 1)[lead.data > 0]
        pairs = pairs[orders.signs(pairs[:, 0], pairs[:, 1], num_items) == 0]
        more = pairs[:, 0], pairs[:, 1], links(pairs) if chained else pairs
        return KnownOrders(*map(np.concatenate, zip(orders, more, strict=True)))

    def beside(self, orders: KnownOrders, num_items: int) -> Statements:
        """These orders beside known ones."""
        better, worse = self.better, self.worse
        sign = orders.signs(better, worse, num_items)
        low, high = np.sort([better, worse], axis=0).astype(np.int64)
        known = self.number * self.known_share(sign, num_items)
        numbers = self.number, known, self.number * self.share[self.block]
        codes = self.annotator, low * num_items + high
        return Statements(*codes, *numbers, sign, lambda one: one[better] > one[worse])

    def known_share(self, sign: Codes, num_items: int) -> PerRow:
        """Number of independent pairs that each pair of known order counts as."""
        rows, ends = np.flatnonzero(sign), np.stack([self.better, self.worse])
        ends = np.where(sign > 0, ends, ends[::-1])
        keys = self.block[rows] * num_items + ends[:, rows]
        cells, place = np.unique(keys, return_inverse=True)
        over, under = (np.bincount(half, minlength=len(cells)) for half in place.reshape(2, -1))
        shared = (over * (over - 1) + under * (under - 1)) / 2 - over * under
        size = len(self.share)
        pairs = np.bincount(self.block[rows], minlength=size)
        variance = pairs / 4 + np.bincount(cells // num_items, shared, size) / 6
        share = np.minimum(pairs / 4 / np.maximum(variance, 1e-9), 1.0)
        return np.where(sign != 0, share[self.block], 0.0)


def of_orders(data: Any, known: Int[np.ndarray, " known"]) -> StatedOrders:
    """Orders stated by comparisons, rankings or ratings, of the known items first."""
    if isinstance(data, Comparisons):
        return of_comparisons(data)
    if isinstance(data, Rankings):
        return of_rankings(data)
    return of_ratings(data, np.isin(np.arange(data.num_items), known))


def of_comparisons(data: Comparisons) -> StatedOrders:
    """Orders stated by votes, each an independent one; a tie is half of either."""
    who, pair, answer, number = data.tallies()
    low, high = np.divmod(pair, data.num_items)
    better, worse = np.where(answer == 0, (low, high), (high, low))
    rows = np.flatnonzero(number > 0)
    block, share = np.arange(len(rows)), np.ones(len(rows))
    return StatedOrders(who[rows], better[rows], worse[rows], number[rows], block, share)


def of_rankings(data: Rankings) -> StatedOrders:
    """Orders stated by rankings: of each item above all later ones, and above the worst."""
    offered, place = np.asarray(data.offered, np.int64), np.asarray(data.place)
    one, other = np.triu_indices(offered.shape[1], 1)
    first, second = (standing(place).T[side] for side in (one, other))
    sides = offered.T[one], offered.T[other]
    is_stated = (sides[1] >= 0) & (first != second)
    better, worse = np.where(first < second, sides, sides[::-1])[:, is_stated]
    block = np.nonzero(is_stated)[1]
    # Naming the worst of the items that are left is as choosing the best of them.
    stages = np.asarray(data.depth) + (0 if data.lowest is None else np.asarray(data.lowest))
    share = _share((offered >= 0).sum(1), stages)
    who, count = np.asarray(data.annotator, np.int64), np.asarray(data.weight, float)
    return StatedOrders(who[block], better, worse, count[block], block, share)


def _share(
    size: Int[np.ndarray, " ranking"], depth: Int[np.ndarray, " ranking"]
) -> Float[np.ndarray, " ranking"]:
    """Independent pairs that each pair counts as, of rankings of so many places and items."""
    left = size[:, None] - np.arange(int(depth.max(initial=0)))
    left = np.where(np.arange(left.shape[1]) < depth[:, None], np.maximum(left, 1), 1)
    pairs, variance = (left - 1).sum(1), (left**2 - 1).sum(1) / 12
    return np.where(pairs > 0, pairs / 4 / np.maximum(variance, 1e-9), 1.0)


def of_ratings(data: Ratings, first: Bool[np.ndarray, " item"]) -> StatedOrders:
    """Orders stated by ratings: of two items that an annotator put on different levels."""
    rng = np.random.default_rng(0)
    who, item = np.asarray(data.annotator, np.int64), np.asarray(data.item, np.int64)
    level = np.asarray(data.rating)
    most = max(2, int(np.sqrt(2 * _MOST_PAIRS / max(data.num_annotators, 1))))
    order = np.lexsort((rng.random(len(who)), ~first[item], who))
    start = np.searchsorted(who[order], np.arange(data.num_annotators + 1))
    parts = [np.zeros((3, 0), np.int64)]
    size = np.zeros(data.num_annotators, np.int64)
    for code, (begin, end) in enumerate(pairwise(start.tolist())):
        rows = order[begin : min(end, begin + most)]
        size[code] = len(rows)
        one, other = (rows[side] for side in np.triu_indices(len(rows), 1))
        apart = (level[one] != level[other]) & (item[one] != item[other])
        one, other = one[apart], other[apart]
        above, below = np.where(level[one] > level[other], (one, other), (other, one))
        parts.append(np.stack([np.full(len(above), code), item[above], item[below]]))
    annotator, better, worse = np.concatenate(parts, axis=1)
    number = np.ones(len(annotator))
    return StatedOrders(annotator, better, worse, number, annotator, _share(size, size))
