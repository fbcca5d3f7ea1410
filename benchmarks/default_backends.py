"""Samplers of item responses and labels: CPU seconds, R-hat and effective draws, by back-end.

Reads lsat6, verbagg, senate90 and crowds of labels from the folder named by --data. Seconds are of
the first fit in the process, with compilation; diagnostics are the worst of all parameters.
`raters.inference.defaults` chooses by these numbers. Chains of labels that go on are
``PGGibbs(longest=16)``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from _common import options, report, table

import raters as rt
from raters.inference.defaults import default_backend

SAMPLERS = (rt.PGGibbs(), rt.HMC(), rt.NUTS())
CROWDS = ("dog_spectral", "labelme")
HEADER = ["data", "model", "back-end", "CPU seconds", "R-hat", "effective draws", "diverged"]


def responses(folder: Path) -> Iterator[tuple[str, Any, rt.Responses]]:
    """Item responses, with models of them."""
    lsat = pd.read_csv(folder / "lsat6" / "responses.csv").sample(300, random_state=0)
    verbagg = pd.read_csv(folder / "verbagg" / "responses_binary.csv")
    for name, frame, columns in (("lsat6", lsat, "item*"), ("verbagg", verbagg, "S?*")):
        data = rt.Responses.from_wide(frame, person="person", columns=[columns])
        for model in (rt.models.Rasch(), rt.models.TwoPL()):
            yield name, model, data
    votes = pd.read_csv(folder / "senate90" / "votes_long.csv").query("vote <= 60")
    roles = {"person": "legislator", "item": "vote", "correct": "yea"}
    yield "senate90", rt.models.IdealPoint(), rt.Responses.from_frame(votes, **roles)


def row(name: str, model: Any, data: Any, backend: Any, seed: int) -> list[Any]:
    """One fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        result = rt.fit(model, data, backend, seed=seed, progress=False, log_likelihood=False)
        seconds = time.process_time() - begin
    mixing = result.attrs["max_rhat"], result.attrs["min_ess"], result.attrs.get("divergences", 0)
    default = " (default)" if backend == default_backend(model, data) else ""
    sampler = type(backend).__name__ + ", going on" * (getattr(backend, "longest", 1) > 1)
    return [name, type(model).__name__, f"{sampler}{default}", seconds, *mixing]


def main() -> None:
    """Fit each by each back-end, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the data"))
    folder, rows = Path(given.data), []
    for name, model, data in list(responses(folder))[: 1 if given.quick else None]:
        backends = dict.fromkeys((*SAMPLERS, default_backend(model, data)))
        rows += [row(name, model, data, backend, given.seed) for backend in backends]
    for name in () if given.quick else CROWDS:
        columns = {role: role for role in ("item", "annotator", "label")}
        labels = rt.Labels.from_frame(pd.read_csv(folder / name / "labels.csv"), **columns)
        for backend in (rt.PGGibbs(), default_backend(rt.DawidSkene(), labels)):
            rows.append(row(name, rt.DawidSkene(), labels, backend, given.seed))
    report(
        "default_backends", "Samplers of responses and labels", [table(HEADER, rows)], given.quick
    )


if __name__ == "__main__":
    main()
