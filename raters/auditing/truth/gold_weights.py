"""Weights of items of known class that were not drawn with one probability for all.

An item of known class stands for as many items as the inverse of the probability with which it was
chosen (Horvitz and Thompson 1952). Weights sum to Kish's effective number of equally likely items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from raters.judgements.labels import Labels
from raters.judgements.reading.columns import (
    column_names,
    is_column,
    place,
    read_columns,
    read_numbers,
)

PerItem = Float[np.ndarray, " item"]

#: Column of known truths with the probability with which each was chosen.
PROBABILITY = "probability"
# Items of known class from which on they are compared with the others, and how seldom random ones
# would differ so.
_FEWEST, _CHANCE = 10, 1e-4
# Strata by agreement within each class that most labels name.
_STRATA = 4


def given_probabilities(gold: Any, labels: Labels) -> PerItem | None:
    """Probability with which each known item was chosen, NaN elsewhere; None if not given."""
    mapping = isinstance(gold, Mapping) and not any(map(is_column, gold.values()))
    if mapping or isinstance(gold, pd.Series) or PROBABILITY not in column_names(gold):
        return None
    columns = read_columns(
        gold, {"item": "item", "truth": "truth", PROBABILITY: PROBABILITY}, empty=("truth",)
    )
    chosen, is_known = read_numbers(columns[PROBABILITY]), columns["truth"].code >= 0
    wrong = is_known & ~((chosen > 0) & (chosen <= 1))
    columns[PROBABILITY].refuse_rows(wrong, "it must hold probabilities, above 0 and up to 1")
    item = place(columns["item"], labels.items, "items", "leave them out").astype(int)
    found = np.full(labels.num_items, np.nan)
    found[item[is_known]] = chosen[is_known]
    return found


def weights(
    labels: Labels, known: Bool[np.ndarray, " item"], chosen: PerItem | None
) -> tuple[PerItem, str]:
    """Weight of each item of known class, and a doubt that they were drawn at random; or empty."""
    if chosen is not None:
        return _effective(known, 1 / np.where(np.isnan(chosen), np.nanmean(chosen), chosen)), ""
    doubt = _selection(labels, known)
    if not doubt:
        return known.astype(float), ""
    stratum = _strata(labels)
    of_all = np.bincount(stratum)
    share = of_all / np.maximum(np.bincount(stratum, known, len(of_all)), 1)
    return _effective(known, share[stratum]), doubt


def _effective(known: Bool[np.ndarray, " item"], number: PerItem) -> PerItem:
    """Weights in proportion to the numbers, which sum to the effective number of items."""
    number = np.where(known, number, 0.0)
    return np.asarray(number * number.sum() / np.maximum((number**2).sum(), 1e-300))


def _strata(labels: Labels) -> Int[np.ndarray, " item"]:
    """Stratum of each item: the class that most labels name, and their agreement in quarters."""
    votes = labels.votes()
    agreement = votes.max(1) / np.maximum(votes.sum(1), 1)
    quarter = pd.Series(agreement).groupby(votes.argmax(1)).rank(pct=True, method="average")
    place = np.ceil(quarter.to_numpy() * _STRATA) - 1
    return np.asarray(votes.argmax(1) * _STRATA + place, int)


def _selection(labels: Labels, known: Bool[np.ndarray, " item"]) -> str:
    """Doubt that items of known class are a random sample, from their labels; or empty."""
    from scipy.stats import chi2_contingency, mannwhitneyu

    votes = labels.votes()
    number, most = votes.sum(1), votes.argmax(1)
    parts = known & (number > 0), ~known & (number > 0)
    if min(part.sum() for part in parts) < _FEWEST:
        return ""
    counts = np.stack([np.bincount(most[part], minlength=labels.num_classes) for part in parts])
    # Rare classes together: the approximation by χ² needs five of each to be expected.
    share = counts.sum(1).min() / counts.sum()
    rare = counts.sum(0) * share < 5
    pooled = np.column_stack([counts[:, ~rare], counts[:, rare].sum(1)])
    pooled = pooled[:, pooled.sum(0) * share >= 5]
    agreement = [votes[part].max(1) / number[part] for part in parts]
    other_classes = pooled.shape[1] > 1 and chi2_contingency(pooled).pvalue < _CHANCE
    # Of items that all agree alike the p-value is not a number.
    if not other_classes and not mannwhitneyu(*agreement).pvalue < _CHANCE:
        return ""
    what = "classes" if other_classes else "agreement"
    return (
        f"the items of known class are no random sample, as the {what} of their labels tell; they"
        " are weighted by majority class and agreement to stand for all items, which cannot correct"
        " every way of choosing: draw items at random before looking at the labels, or give the"
        f" probability with which each was chosen, in a column {PROBABILITY!r}"
    )
