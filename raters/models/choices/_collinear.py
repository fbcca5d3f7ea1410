"""Features that choices cannot tell apart: one is a weighted sum of others in every set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from raters.judgements.choices import Choices
from raters.judgements.names import shorten
from raters.models.settings import worded

Columns = Float[np.ndarray, "offer column"]
Codes = Int[np.ndarray, " offer"]
Products = Float[np.ndarray, "column column"]
# Square of a sum of columns of length 1 up to which it is 0. Rounding leaves about 1e-14; two
# columns that are the same but for 1/10,000 leave 1e-8.
_NOTHING = 1e-10
# Product of two weights of such a sum up to which one of them is 0.
_NO_WEIGHT = 1e-5
# Alternatives up to which features are compared with the constants.
_MOST_ALTERNATIVES = 500


def collinear_features(data: Choices, *, constants: bool) -> tuple[str, ...]:
    """Sentences about features that are exactly collinear within sets."""
    data = data.unpadded()
    there, size = data.there, data.there.sum(1)
    values = np.where(there[..., None], np.asarray(data.features, float), 0.0)
    # Only differences within sets count.
    values = (values - values.sum(1, keepdims=True) / size[:, None, None])[there]
    length = np.sqrt((values**2).sum(0))
    differs = length > 0
    if not differs.any():
        return ()
    columns = values[:, differs] / length[differs]
    names = [name for name, own in zip(data.feature_names, differs, strict=True) if own]
    product = columns.T @ columns
    alike = _vanishing(product)
    vanishing = [("collinear", alike)]
    if constants and len(data.alternatives) <= _MOST_ALTERNATIVES:
        alternative = np.asarray(data.offered)[there]
        explained = _explained(columns, size, alternative, len(data.alternatives))
        vanishing.append(("collinear_constants", _vanishing(product - explained) - alike))
    return tuple(
        worded(code, names=shorten(names[place] for place in places))
        for code, projection in vanishing
        for places in _groups(projection)
    )


def _explained(columns: Columns, size: Codes, alternative: Codes, number: int) -> Products:
    """Products of the columns' projections on the constants of the alternatives within sets."""
    row = np.repeat(np.arange(len(size)), size), alternative
    offered = sparse.csr_array((1 / np.sqrt(size)[row[0]], row), shape=(len(size), number))
    between = (offered.T @ offered).toarray()
    own = np.diag(np.bincount(alternative, minlength=number)) - between
    sums = np.stack([np.bincount(alternative, column, number) for column in columns.T])
    return sums @ np.linalg.pinv(own, rcond=_NOTHING, hermitian=True) @ sums.T


def _vanishing(product: Products) -> Products:
    """Projection on the weights with which columns add up to 0, from their products."""
    square, weights = np.linalg.eigh(product)
    vanishing = weights[:, square < _NOTHING]
    return vanishing @ vanishing.T


def _groups(projection: Products) -> Iterator[Int[np.ndarray, " some"]]:
    """Places of the columns of each sum that is 0."""
    joined = np.abs(projection) > _NO_WEIGHT
    number, group = connected_components(joined, directed=False)
    for code in range(number):
        places = np.flatnonzero(group == code)
        if joined[places, places].any():
            yield places
