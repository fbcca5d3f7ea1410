"""Samplers of votes, item responses and labels: CPU seconds, R-hat and effective draws.

Reads lsat6, verbagg, senate90, votes and crowds of labels from the folder named by --data. Seconds
are of the second fit in the process; diagnostics are the worst of all parameters.
`raters.inference.defaults` chooses by these numbers.
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


def votes(folder: Path) -> Iterator[tuple[str, Any, rt.Comparisons]]:
    """Votes, with models of them."""
    for number, competence in ((1_000, "unit"), (15_000, "unit"), (20_000, "signed")):
        sizes = {"num_items": number // 150 + 14, "num_annotators": number // 400 + 5}
        data, _ = rt.datasets.separated(**sizes, num_votes=number, seed=0)
        yield f"separated {number}", rt.ExtendedBTL(competence), data
    few, _ = rt.datasets.paper(num_items=10, num_annotators=5, num_votes=150, seed=0)
    crowd, _ = rt.datasets.crowd(num_annotators=30, num_votes=3_000, seed=0)
    for model in (rt.BTL(), rt.ExtendedBTL(), rt.ExtendedBTL("signed")):
        yield "paper 150", model, few
    for model in (rt.BTL(), rt.HierarchicalBTL(), rt.models.FactorBTL(), rt.ExtendedBTL("signed")):
        yield "crowd 3000", model, crowd
    frame = pd.read_csv(folder / "country_population" / "comparisons.csv")
    roles = {role: role for role in ("winner", "loser", "annotator")}
    people = rt.Comparisons.from_frame(frame.query("winner != loser"), **roles)
    for model in (rt.BTL(), rt.ExtendedBTL(), rt.ExtendedBTL("signed")):
        yield "country_population", model, people
    frame = pd.read_csv(folder / "mtbench_human" / "comparisons_human.csv")
    outcome = frame["winner"].map({"model_a": "first", "model_b": "second"}).fillna("tie")
    roles = {"first": "model_a", "second": "model_b", "outcome": "outcome"}
    with_ties = rt.Comparisons.from_frame(
        frame.assign(outcome=outcome), **roles, annotator="annotator", ties="keep"
    )
    yield "mtbench_human", rt.BTL(ties="rao-kupper", position_bias=True), with_ties


def row(name: str, model: Any, data: Any, backend: Any, seed: int) -> list[Any]:
    """Two fits, the first of which compiles."""
    given = {"progress": False, "log_likelihood": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rt.fit(model, data, backend, seed=seed, **given)
        begin = time.process_time()
        result = rt.fit(model, data, backend, seed=seed + 1, **given)
        seconds = time.process_time() - begin
    mixing = result.attrs["max_rhat"], result.attrs["min_ess"], result.attrs.get("divergences", 0)
    default = " (default)" if backend == default_backend(rt.program.Program(model, data)) else ""
    sampler = type(backend).__name__ + ", going on" * (getattr(backend, "longest", 1) > 1)
    return [name, type(model).__name__, f"{sampler}{default}", seconds, *mixing]


def main() -> None:
    """Fit each by each back-end, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the data"))
    folder, rows = Path(given.data), []
    for name, model, data in [*votes(folder), *responses(folder)][: 1 if given.quick else None]:
        program = rt.program.Program(model, data)
        # Of votes NUTS takes hours in all.
        tried = SAMPLERS[:2] if isinstance(data, rt.Comparisons) else SAMPLERS
        backends = dict.fromkeys((*tried, default_backend(program)))
        able = [one for one in backends if one.why_not(program) is None]
        rows += [row(name, model, data, backend, given.seed) for backend in able]
    for name in () if given.quick else CROWDS:
        columns = {role: role for role in ("item", "annotator", "label")}
        labels = rt.Labels.from_frame(pd.read_csv(folder / name / "labels.csv"), **columns)
        program = rt.program.Program(rt.DawidSkene(), labels)
        for backend in (rt.PGGibbs(), default_backend(program)):
            rows.append(row(name, rt.DawidSkene(), labels, backend, given.seed))
    report(
        "default_backends",
        "Samplers of votes, responses and labels",
        [table(HEADER, rows)],
        given.quick,
    )


if __name__ == "__main__":
    main()
