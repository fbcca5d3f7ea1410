"""Known classes, and weights of items that were not drawn with one probability for all.

An item of known class stands for as many items as the inverse of the probability with which it was
chosen (Horvitz and Thompson 1952). Weights sum to Kish's effective number of equally likely items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from raters.auditing.words import worded
from raters.errors import DataError, refuse
from raters.judgements.labels import Labels, known_truth
from raters.judgements.names import shorten
from raters.judgements.reading import columns as reading

PerItem = Float[np.ndarray, " item"]
Mask = Bool[np.ndarray, " item"]

#: Column of known truths with the probability with which each was chosen.
PROBABILITY = "probability"
# Items of known class from which on they are compared with the others, and how seldom random ones
# would differ so.
_FEWEST, _CHANCE = 10, 1e-4
# Strata by agreement within each class that most labels name.
_STRATA = 4


def with_gold(labels: Labels, gold: Any = None) -> Int[np.ndarray, " item"]:
    """Codes of the classes that the fit knew, and of those of `gold`; −1 elsewhere."""
    fitted, codes = np.full(labels.num_items, -1), None
    if labels.truth is not None:
        fitted = np.array(labels.truth, int)
    if gold is not None:
        codes = known_truth(gold, "item", "truth", labels.items, labels.classes)
    if codes is None:
        return fitted
    differ = np.flatnonzero((codes >= 0) & (fitted >= 0) & (codes != fitted))
    if len(differ):
        items = [labels.items[place] for place in differ]
        problem = "has other classes than those that were known to the fit"
        refuse("gold", shorten(items), problem, "give each item one true class", error=DataError)
    return np.where(codes >= 0, codes, fitted)


def given_probabilities(gold: Any, labels: Labels) -> PerItem | None:
    """Probability with which each known item was chosen, NaN elsewhere; None if not given."""
    mapping = isinstance(gold, Mapping) and not any(map(reading.is_column, gold.values()))
    if mapping or isinstance(gold, pd.Series) or PROBABILITY not in reading.column_names(gold):
        return None
    roles = {role: role for role in ("item", "truth", PROBABILITY)}
    columns = reading.read_columns(gold, roles, empty=("truth",))
    chosen, is_known = reading.read_numbers(columns[PROBABILITY]), columns["truth"].code >= 0
    wrong = is_known & ~((chosen > 0) & (chosen <= 1))
    columns[PROBABILITY].refuse_rows(wrong, "it must hold probabilities, above 0 and up to 1")
    item = reading.place(columns["item"], labels.items, "items", "leave them out").astype(int)
    found = np.full(labels.num_items, np.nan)
    found[item[is_known]] = chosen[is_known]
    return found


def weights(labels: Labels, known: Mask, chosen: PerItem | None) -> tuple[PerItem, str]:
    """Weight of each item of known class, and a doubt that they were drawn at random; or empty."""
    number, doubt = 1.0 * known, ""
    if chosen is not None:
        number = known / np.where(np.isnan(chosen), np.nanmean(chosen), chosen)
    elif doubt := _selection(labels, known):
        # Strata are the class that most labels name, and their agreement in quarters.
        votes = labels.votes()
        agreement = votes.max(1) / np.maximum(votes.sum(1), 1)
        quarter = pd.Series(agreement).groupby(votes.argmax(1)).rank(pct=True, method="average")
        place = np.ceil(quarter.to_numpy() * _STRATA) - 1
        stratum = np.asarray(votes.argmax(1) * _STRATA + place, int)
        of_known = np.maximum(np.bincount(stratum, known), 1)
        number = known * (np.bincount(stratum) / of_known)[stratum]
    return number * number.sum() / np.maximum((number**2).sum(), 1e-300), doubt


def _selection(labels: Labels, known: Mask) -> str:
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
    return worded("selection", what=what, column=PROBABILITY)
