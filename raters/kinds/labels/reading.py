"""Features of items from a table of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from raters.errors import DataError, refuse
from raters.judgements.labels import Labels
from raters.judgements.names import check_once


def with_feature_columns(
    data: Labels, frame: Any, *, item: str, features: Sequence[str] = ()
) -> Labels:
    """Add features of the items from columns of the table of labels."""
    if not features:
        return data
    check_once(features, "features")
    if unknown := [name for name in features if name not in frame]:
        expected = f"it has {sorted(map(str, frame.columns))}"
        refuse("features", unknown[0], "names no column of the table", expected, error=DataError)
    numbers = frame[list(features)].apply(pd.to_numeric, errors="coerce")
    first = numbers.groupby(frame[item], sort=False).transform("first")
    for name in features:
        wrong = np.flatnonzero(numbers[name].isna() | (numbers[name] != first[name]))
        if len(wrong):
            value, which = frame[name].iloc[wrong[0]], str(frame[item].iloc[wrong[0]])
            problem = f"holds {str(value)!r} for item {which!r}"
            expected = "a feature belongs to the item, so all its rows must have the same number"
            refuse("features", name, problem, expected, error=DataError)
    table = numbers.assign(**{item: frame[item]})[~frame[item].duplicated()]
    return data.with_features(table, item=item, names=list(features))
