"""Mistakes that users made with tables of choices, rankings and ratings, each with its advice."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning

TRIPS = pd.DataFrame(
    {
        "trip": [1, 1, 1, 2, 2, 3, 3],
        "mode": ["car", "bus", "train", "car", "bus", "bus", "train"],
        "taken": [1, 0, 0, 0, 1, 0, 1],
        "price": [3.0, 1.0, 2.0, 3.5, 1.5, 2.5, 2.0],
        "income": [5, 5, 5, 2, 2, 3, 3],
    }
)
ROLES = {"set": "trip", "alternative": "mode", "chosen": "taken"}


def test_levels_that_nobody_used_are_warned_of() -> None:
    with pytest.warns(DataWarning, match=r"level\(s\) 3 .*levels=range\(1, 6\)"):
        rt.Ratings.from_wide({"essay": [1, 2], "ann": [1, 5], "bob": [2, 4]}, item="essay")
    with pytest.warns(DataWarning, match=r"levels=range\(0, 21, 5\)"):
        rt.Ratings.from_wide({"essay": [1, 2], "ann": [0, 5], "bob": [20, 10]}, item="essay")


def test_choosers_without_parameters_may_be_anybody() -> None:
    choices = rt.Choices.from_frame(TRIPS, **ROLES, features=["price"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = rt.fit(rt.MultinomialLogit(), choices, rt.PGEM(draws=100), seed=0, progress=False)
    asked = TRIPS[:3].assign(who="Zoe")
    roles = {"set": "trip", "alternative": "mode", "features": ["price"], "like": choices}
    new = rt.Choices.from_frame(asked, **roles, annotator="who")
    known = rt.predict(rt.MultinomialLogit(), result).values[..., :3]
    own = rt.predict(rt.MultinomialLogit(), result, new).values
    np.testing.assert_allclose(own, known, rtol=1e-4)
