"""Calibration of an order of items, and of annotators' accuracies, from known orders of some
pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from raters.auditing.annotator_accuracy import Accuracies, Marks, draw_accuracies, luck_of
from raters.auditing.calibration import (
    Anchor,
    Calibration,
    contradiction,
    number_of_draws,
    summary,
    trusted_codes,
    warn_of,
)
from raters.auditing.comparisons import in_other_world
from raters.auditing.known_orders import KnownOrders
from raters.auditing.stated_orders import StatedOrders
from raters.auditing.true_orders import draw_true_rewards_of_worlds
from raters.errors import DataError
from raters.judgements.names import name_text, names_array, shorten
from raters.model import Values
from raters.program import Program

# Draws of accuracies that an audit reads.
AUDIT_DRAWS = 400
# Link to an item above and to one below that each item known by trusted annotators keeps.
_LINKS = 1


@dataclass(frozen=True)
class OrderCalibration(Calibration):
    """Statements about an order, from `raters.calibrate`."""

    accuracies: Accuracies
    orders: KnownOrders
    program: Program[Any]
    result: xr.DataTree

    def p_above(self, one: Any, other: Any) -> float:
        """Probability that one item is truly above another."""
        codes = {name_text(name): code for code, name in enumerate(self.items["item"].values)}
        for parameter, name in (("one", one), ("other", other)):
            if name_text(name) not in codes:
                raise DataError(
                    parameter=parameter,
                    value=name,
                    problem="is none of the items",
                    expected=f"name one that was judged ({shorten(codes)})",
                )
        first, second = (self.truth.values[:, codes[name_text(name)]] for name in (one, other))
        return float((first > second).mean())


class Truth(NamedTuple):
    """Known orders, those of trusted annotators among them, and draws of the true rewards."""

    orders: KnownOrders
    reward: Float[np.ndarray, "draw item"]
    shared: Float[np.ndarray, " draw"]
    anchor: Anchor


def known_orders(data: Any, gold: Any) -> int:
    """Number of pairs of known order."""
    return len(KnownOrders.read(gold, data.items).better)


def true_order(
    program: Program[Any],
    draws: Values,
    site: str,
    stated: StatedOrders,
    orders: KnownOrders,
    reference: tuple[Any, ...],
    seed: int,
) -> Truth:
    """Draw the true rewards of items that were ranked or rated."""
    data, reward = program.data.unpadded(), np.asarray(draws[site], float)
    trusted = trusted_codes(data, reference)
    of_gold, doubts = len(orders.better), doubts_about(orders, reward)
    if len(trusted):
        orders = _with_trusted(orders, stated, trusted, data.num_items)
    number = number_of_draws(max(len(stated.better), data.num_items), 1)
    other = np.zeros(len(reward), bool)
    if "competence" in draws:
        other = in_other_world(program, np.asarray(draws["competence"], float))
    drawn, sizes = draw_true_rewards_of_worlds(
        reward, other, orders, number, np.random.default_rng(seed)
    )
    known = len(orders.better)
    anchor = Anchor(known, tuple(reference), told=known - of_gold, doubts=doubts)
    return Truth(orders, drawn, sizes, anchor)


def doubts_about(orders: KnownOrders, reward: Float[np.ndarray, "draw item"]) -> tuple[str, ...]:
    """Warn of known orders most of which are against the crowd's."""
    crowd = reward.mean(0)
    wrong = int((crowd[orders.better] < crowd[orders.worse]).sum())
    return warn_of(contradiction(wrong, len(orders.better), "orders"))


def _with_trusted(
    orders: KnownOrders, stated: StatedOrders, trusted: Int[np.ndarray, " trusted"], num_items: int
) -> KnownOrders:
    """Known orders, and those of pairs that trusted annotators mostly state."""
    rows = np.flatnonzero(np.isin(stated.annotator, trusted))
    better, worse = stated.better[rows], stated.worse[rows]
    low, high = np.minimum(better, worse), np.maximum(better, worse)
    pairs, place = np.unique(np.stack([low, high], 1), axis=0, return_inverse=True)
    lead = np.where(better == low, stated.number[rows], -stated.number[rows])
    total = np.bincount(place.ravel(), lead, len(pairs))
    open_pairs = (orders.signs(pairs[:, 0], pairs[:, 1], num_items) == 0) & (total != 0)
    pairs, is_low = pairs[open_pairs], total[open_pairs] > 0
    told = np.where(is_low[:, None], pairs, pairs[:, ::-1])
    return KnownOrders(
        np.concatenate([orders.better, told[:, 0]]),
        np.concatenate([orders.worse, told[:, 1]]),
        np.concatenate([orders.chain, _links(told)]),
    )


def _links(pairs: Int[np.ndarray, "pair 2"]) -> Int[np.ndarray, "link 2"]:
    """Pairs that most of the others follow from: without those that two others imply, of those of
    each item a few at random. All of them would count the same answers many times over."""
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
    links: Int[np.ndarray, "link 2"] = codes[ends[kept]]
    return links


def marks_of(stated: StatedOrders, truth: Truth, num_annotators: int, num_items: int) -> Marks:
    """Right orders of each annotator: of pairs of known order, and expected of the others, counted
    as so many independent ones."""
    sign = truth.orders.signs(stated.better, stated.worse, num_items)
    known, who = sign != 0, stated.annotator
    known_weight = stated.number * stated.known_share(sign, num_items)
    other_weight = np.where(known, 0.0, stated.number * stated.share[stated.block])

    def by_annotator(values: Float[np.ndarray, " stated"]) -> Float[np.ndarray, " annotator"]:
        return np.bincount(who, values, num_annotators).astype(float)

    rows = np.flatnonzero(~known)
    better, worse, judge = stated.better[rows], stated.worse[rows], who[rows]
    weight = other_weight[rows]
    credit = np.stack(
        [
            np.bincount(judge, weight * (one[better] > one[worse]), num_annotators)
            for one in truth.reward
        ]
    )
    low = np.minimum(stated.better, stated.worse)[known]
    high = np.maximum(stated.better, stated.worse)[known]
    _, pair = np.unique(low * num_items + high, return_inverse=True)
    right = known_weight * (sign > 0)
    of_pair = [np.bincount(pair.ravel(), values[known]) for values in (right, known_weight)]
    return Marks(
        by_annotator(right),
        by_annotator(known_weight),
        credit,
        by_annotator(other_weight),
        luck_of(*of_pair) if known.any() else 0.0,
    )


def calibrate_orders[Statements: OrderCalibration](
    made: type[Statements],
    program: Program[Any],
    result: xr.DataTree,
    truth: Truth,
    marks: Marks,
    reward: Float[np.ndarray, "draw item"],
    level: float,
    seed: int,
) -> Statements:
    """Statements about an order of items."""
    data = program.data.unpadded()
    accuracies = draw_accuracies(marks, seed)
    names = {axis: names_array(data.coords[axis]) for axis in ("item", "annotator")}
    rank = 1.0 + np.argsort(np.argsort(-truth.reward, axis=1), axis=1)
    items = {
        name: ("item", value)
        for name, (_, value) in summary({"reward": truth.reward, "rank": rank}, level).items()
    }
    items["reward_by_model"] = ("item", reward.mean(0))
    abilities = {"accuracy": accuracies.own, "ability": accuracies.ability}
    return made(
        truth=xr.DataArray(truth.reward, dims=("draw", "item"), coords={"item": names["item"]}),
        items=xr.Dataset(items, coords={"item": names["item"]}),
        annotators=xr.Dataset(summary(abilities, level), coords={"annotator": names["annotator"]}),
        unknowns=xr.Dataset({"shared": ("draw", truth.shared)}),
        anchor=truth.anchor,
        level=level,
        accuracies=accuracies,
        orders=truth.orders,
        program=program,
        result=result,
    )
