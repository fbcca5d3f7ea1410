"""Data that tell little or nothing: every back-end gives finite draws, and a warning says what the
data cannot tell. No run is long, so that warnings of mixing and of approximations are no matter
here."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning
from tests import hand

BACKENDS = {
    "gibbs": rt.PGGibbs(draws=40, warmup=20, chains=2),
    "nuts": rt.NUTS(draws=40, warmup=40, chains=2),
    "em": rt.PGEM(draws=200),
    "svi": rt.SVI(steps=500, draws=200),
}


def votes(pairs: str, annotators: str, wins: float = 1.0, count: float = 1.0) -> rt.Comparisons:
    """Votes on pairs such as ``ab``; the first gets `wins` of `count`. All have equal shapes."""
    first, second = zip(*pairs.split(), strict=True)
    rows = [
        (a, b, outcome, who, number)
        for a, b, who in zip(first, second, annotators, strict=True)
        for outcome, number in ((1.0, wins), (0.0, count - wins))
        if number
    ]
    roles = ("first", "second", "outcome", "annotator", "count")
    columns = dict(zip(roles, zip(*rows, strict=True), strict=True))
    names = {"items": list("abcd"), "annotators": ["p", "q"]}
    return rt.Comparisons.from_frame(
        columns, **dict(zip(roles, roles, strict=True)), **names
    ).padded(6)


TIED = zip("abcd", "bcda", [0.5] * 4, "pqpq", strict=True)
TIES = hand.ordered_votes(*TIED, ties="half").padded(6)
VOTES = {
    "separation": (votes("ab bc cd ad", "pqpq"), "no vote contradicts another"),
    "disconnected": (votes("ab ba cd dc", "pqpq"), "falls into 2 components"),
    "one annotator": (votes("ab bc cd da", "pppp"), "all comparisons are by one annotator"),
    "ties": (TIES, "neither side has more votes"),
    "counts of a billion": (votes("ab bc cd", "pqp", 6e8, 1e9), ""),
}


def labels(items: str, annotators: str, said: str, times: int = 1) -> rt.Labels:
    columns = {"item": list(items), "annotator": list(annotators), "label": list(said)}
    columns |= {"count": [times] * len(items)}
    names = {"items": list("123"), "annotators": ["p", "q"], "classes": ["x", "y"]}
    return rt.Labels.from_frame(columns, **{name: name for name in columns}, **names)


LABELS = {
    "one annotator": (labels("123123", "pppppp", "xyxxyx"), "no item has labels by two annotators"),
    "all the same": (labels("112233", "pqpqpq", "xxxxxx"), "never given as a label: y"),
    "counts of a billion": (labels("112233", "pqpqpq", "xxyyxy", 10**9), ""),
}


def check(model: rt.Model, data, backend: rt.inference.Backend, said: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(model, data, backend, seed=0, progress=False)
    for name, values in result["posterior"].data_vars.items():
        assert np.isfinite(values.values).all(), name
    assert {entry.category for entry in caught} <= {ConvergenceWarning, DataWarning}
    assert not said or any(said in str(entry.message) for entry in caught)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("case", VOTES)
def test_votes(case, backend) -> None:
    data, said = VOTES[case]
    check(rt.ExtendedBTL(competence="signed"), data, backend, said)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("case", LABELS)
def test_labels(case, backend) -> None:
    data, said = LABELS[case]
    check(rt.models.OneCoin(), data, backend, said)
