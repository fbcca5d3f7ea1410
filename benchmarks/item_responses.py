"""Item responses: marginal maximum likelihood of the Rasch and the two-parameter model beside
girth, on a section of a law school admission test and on verbal aggression.

Both start from a table of right and wrong and run in this process; seconds are of the CPU, after
one call that is not counted and in which JAX compiles. raters reads the table, collapses equal
patterns, climbs to the mode under flat priors and gives a result; girth gives arrays of parameters,
and neither a log-likelihood nor an ability of each person.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import girth
import numpy as np
import pandas as pd
from _common import options, report, table, timed

import raters as rt

_RASCH = rt.Rasch(difficulty_scale=100.0, ability_scale_prior=100.0)
_TWO_PL = rt.TwoPL(difficulty_scale=100.0, discrimination_scale=100.0)
_TABLES = {"lsat6": ("responses.csv", "item*"), "verbagg": ("responses_binary.csv", "S?*")}


def of_raters(frame: pd.DataFrame, columns: str, model: rt.Model) -> Callable[[], Any]:
    """Function that fits from a table; gives log-likelihood and slopes."""

    def fit() -> tuple[float, np.ndarray]:
        responses = rt.Responses.from_wide(frame, person="person", columns=[columns])
        result = rt.fit(
            model, responses, rt.PGEM(draws=0), seed=0, progress=False, log_likelihood=False
        )
        mode = result["mode"]
        slope = mode["ability_scale" if isinstance(model, rt.Rasch) else "discrimination"]
        return float(result.attrs["marginal_log_likelihood"]), np.atleast_1d(slope.to_numpy())

    return fit


def of_girth(frame: pd.DataFrame, items: list[str], model: rt.Model) -> Callable[[], Any]:
    """Function that fits girth from the same table; gives its slopes."""

    def fit() -> tuple[float, np.ndarray]:
        answers = frame[items].to_numpy().T.astype(int)
        if isinstance(model, rt.Rasch):
            # Its Rasch model has one slope of 1; with one slope for all it is that of raters.
            found = girth.onepl_mml(answers)
        else:
            found = girth.twopl_mml(answers)
        return np.nan, np.atleast_1d(found["Discrimination"])

    return fit


def main() -> None:
    """Print the table, and write it."""
    given = options(__doc__ or "", data=("../shared/data", "folder with the data sets"))
    warnings.simplefilter("ignore")
    rows = []
    for name, (file, columns) in _TABLES.items():
        frame = pd.read_csv(Path(given.data) / name / file)
        items = [str(column) for column in frame if Path(str(column)).match(columns)]
        for model in (_RASCH, _TWO_PL):
            solvers = {
                "raters, PGEM": of_raters(frame, columns, model),
                "girth": of_girth(frame, items, model),
            }
            runs = {solver: timed(solve, warm=True) for solver, solve in solvers.items()}
            own, slopes = runs["girth"].cpu, runs["raters, PGEM"].value[1]
            rows += [
                [
                    name,
                    type(model).__name__,
                    solver,
                    run.cpu,
                    run.cpu / own,
                    "–" if np.isnan(run.value[0]) else f"{run.value[0]:.3f}",
                    float(np.max(np.abs(run.value[1] / slopes - 1))),
                ]
                for solver, run in runs.items()
            ]
    header = (
        *("data", "model", "solver", "CPU seconds", "ratio to girth", "log-likelihood"),
        "largest difference of a slope",
    )
    report(
        "item_responses",
        "Item responses: marginal maximum likelihood",
        [table(header, rows)],
        given.quick,
    )


if __name__ == "__main__":
    main()
