"""Agreement of rankings without a model: on pairs of items, and Kendall's W."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import ndtri

from raters.errors import DataError, refuse
from raters.judgements.counts import mean_ranks, ordered_pairs, ranks
from raters.judgements.rankings import Rankings

# Of each annotator, or each ranking.
PerOne = Float[np.ndarray, " one"]

# Share of the rankings that are of one set of items from which on W is given.
_OF_ONE_SET = 0.1


def agreement(rankings: Rankings, level: float, metric: str | None, by_class: bool) -> pd.DataFrame:
    """Table of `pair_agreement`, and of `kendall_w` where a tenth of the rankings are of one set of
    items, for `raters.agreement`, whose options have no meaning for rankings."""
    if by_class or metric not in (None, "nominal"):
        name, value = ("by_class", True) if by_class else ("metric", metric)
        problem = "has no effect on rankings, whose agreement is that on pairs, and Kendall's W"
        refuse(name, value, problem, "leave it out")
    if rankings.place is None:
        raise DataError("these rankings have no outcomes, so there is no agreement to measure")
    on_pairs, data = pair_agreement(rankings, level), rankings.unpadded()
    number = np.asarray(data.weight)[_most_frequent(data)].sum()
    if number < max(2, _OF_ONE_SET * data.num_rankings):
        return on_pairs
    return pd.concat([on_pairs, kendall_w(data, level)])


def pair_agreement(rankings: Rankings, level: float) -> pd.DataFrame:
    """Probability that two annotators who both order a pair of items order it alike."""
    data = rankings.unpadded()
    alike, both, shared = _shared_pairs(data)
    if not both.any():
        raise DataError(
            "no two annotators order the same pair of items, so there is no agreement to measure;"
            " let a random part of the items be ranked by two annotators or more"
        )
    took_part = both > 0
    left = both.sum() - 2 * both[took_part]
    without = (alike.sum() - 2 * alike[took_part])[left > 0] / left[left > 0]
    used = int(np.asarray(data.weight)[shared].sum())
    estimate, reach = alike.sum() / both.sum(), _reach(without, np.ones(len(without)), level)
    return _row("observed_agreement", estimate, reach, used, data.num_rankings)


def _reach(without: PerOne, count: PerOne, level: float) -> float:
    """Half the width of an interval by the jackknife, from a statistic's values without each."""
    number = count.sum()
    if number <= 2:
        return np.nan
    mean = (count @ without) / number
    deviation = np.sqrt((number - 1) / number * (count @ (without - mean) ** 2))
    return float(ndtri((1 + level) / 2) * deviation)


def _row(name: str, estimate: float, reach: float, used: int, total: int) -> pd.DataFrame:
    """A statistic with its interval, and the rankings it is of."""
    row = {
        "estimate": estimate,
        "low": np.clip(estimate - reach, 0, 1),
        "high": np.clip(estimate + reach, 0, 1),
        "rankings": used,
        "rankings_left_out": total - used,
    }
    return pd.DataFrame([row], index=pd.Index([name], name="statistic"))


def _shared_pairs(data: Rankings) -> tuple[PerOne, PerOne, Bool[np.ndarray, " ranking"]]:
    """Agreeing others and all others of each annotator, over pairs; rankings with such pairs."""
    offered, count = np.asarray(data.offered, np.int64), np.asarray(data.weight, float)
    row, pair, ahead, count = ordered_pairs(
        np.arange(data.num_rows), offered, np.asarray(data.place), count, data.num_items
    )
    pair = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    who, number = np.asarray(data.annotator, np.int64)[row], data.num_annotators
    cell, own = np.unique(pair * number + who, return_inverse=True)
    share = np.bincount(own, count * ahead) / np.maximum(np.bincount(own, count), 1e-300)
    of_cell, who = np.divmod(cell, number)
    others = np.bincount(of_cell)[of_cell] - 1
    of_others = np.bincount(of_cell, share)[of_cell] - share
    alike = share * of_others + (1 - share) * (others - of_others)
    shared = np.bincount(row, others[own] > 0, data.num_rows) > 0
    return np.bincount(who, alike, number), np.bincount(who, others, number), shared


def kendall_w(rankings: Rankings, level: float) -> pd.DataFrame:
    """Kendall's coefficient of concordance W of the rankings of the most frequent set of items."""
    data = rankings.unpadded()
    rows = _most_frequent(data)
    there = np.asarray(data.offered)[rows][0] >= 0
    place, count = np.asarray(data.place)[rows][:, there], np.asarray(data.weight, float)[rows]
    rank, left = mean_ranks(place, np.ones(place.shape, bool)), (place == 0).sum(1).astype(float)
    tied, number = left**3 - left, count.sum()
    if number < 2 or rank.shape[1] < 2:
        raise DataError(
            "no two rankings are of the same items, so there is no agreement to measure; let a"
            " random part of the items be ranked by two annotators or more"
        )
    total, ties = count @ rank, count @ tied
    estimate = float(_w(total, ties, number))
    without = _w(total - rank, ties - tied, number - 1)
    reach = _reach(without, count, level)
    return _row("kendall_w", estimate, reach, int(number), rankings.num_rankings)


def _w(total: Float[np.ndarray, "*row item"], ties: np.ndarray, number: float) -> np.ndarray:
    """Return W from the sums of the ranks, and of the ties."""
    size = total.shape[-1]
    spread = ((total - total.mean(-1, keepdims=True)) ** 2).sum(-1)
    most = number**2 * (size**3 - size) - number * ties
    # Where every ranking leaves all open, there is nothing to agree on.
    return np.asarray(12 * spread / np.where(most > 0, most, np.nan))


def _most_frequent(data: Rankings) -> Bool[np.ndarray, " ranking"]:
    """Return the rankings of the most frequent set of items."""
    sets = ranks([np.asarray(data.offered)])
    return np.asarray(sets == np.bincount(sets, np.asarray(data.weight)).argmax())
