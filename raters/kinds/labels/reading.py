"""Features of items from a table of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raters.judgements.labels import Labels
from raters.judgements.reading.columns import one_each, read_columns, read_numbers
from raters.judgements.reading.features import distinct


def with_feature_columns(
    data: Labels, frame: Any, *, item: str, features: Sequence[str] = ()
) -> Labels:
    """Add features of the items from columns of the table of labels."""
    if not features:
        return data
    columns = read_columns(
        frame, {"item": item}, several={"features": distinct(features, "features")}
    )
    code, names = columns.codes("item")
    for column in columns.lists["features"]:
        one_each(code, column, read_numbers(column), names)
    return data.with_features(frame[~frame[item].duplicated()], item=item, names=features)
