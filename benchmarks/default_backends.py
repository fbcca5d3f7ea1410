"""Samplers of each kind of judgement: CPU seconds, R-hat and effective draws.

Reads lsat6, verbagg, senate90, country_population and dog_spectral from the folder named by --data.
Seconds are of the second fit in the process, or of the first, which compiles, where that takes more
than 90; diagnostics are the worst of all parameters. Chains go on until they have mixed.
`raters.inference.defaults` chooses by these numbers.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt
from raters.inference.defaults import default_backend

SAMPLERS = (rt.HMC(longest=16), rt.PGGibbs(longest=16), rt.NUTS())
# CPU seconds of a first fit from which on it is not made again.
LONG = 90.0
HEADER = ["data", "model", "back-end", "CPU seconds", "R-hat", "effective draws", "diverged"]


def votes(folder: Path) -> Iterator[tuple[str, Any, rt.Comparisons]]:
    """Votes, with models of them."""
    few, _ = rt.datasets.paper(num_items=10, num_annotators=5, num_votes=150, seed=0)
    crowd, _ = rt.datasets.crowd(num_annotators=30, num_votes=3_000, seed=0)
    for model in (rt.BTL(), rt.ExtendedBTL()):
        yield "paper 150", model, few
    for model in (rt.HierarchicalBTL(), rt.models.GuesserBTL(), rt.MixtureBTL()):
        yield "crowd 3,000", model, crowd
    table = crowd.to_frame()
    table["half"] = np.arange(len(table)) % 2
    roles = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    halves = rt.Comparisons.from_frame(table, **roles, stratum="half")
    yield "crowd 3,000", rt.ExtendedBTL(strata=True), halves
    sizes = {"num_items": 3_000, "num_annotators": 20, "num_votes": 30_000}
    yield "3,000 items", rt.ExtendedBTL("signed"), rt.datasets.separated(**sizes, seed=0)[0]
    frame = pd.read_csv(folder / "country_population" / "comparisons.csv")
    roles = {role: role for role in ("winner", "loser", "annotator")}
    people = rt.Comparisons.from_frame(frame.query("winner != loser"), **roles)
    yield "country_population", rt.ExtendedBTL("signed"), people


def others(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Item responses, ratings, several kinds, demonstrations and labels, with models of them."""
    lsat = pd.read_csv(folder / "lsat6" / "responses.csv").sample(300, random_state=0)
    verbagg = pd.read_csv(folder / "verbagg" / "responses_binary.csv")
    for name, frame, columns in (("lsat6", lsat, "item*"), ("verbagg", verbagg, "S?*")):
        data = rt.Responses.from_wide(frame, person="person", columns=[columns])
        yield name, rt.models.TwoPL(), data
    table = pd.read_csv(folder / "senate90" / "votes_long.csv").query("vote <= 60")
    roles = {"person": "legislator", "item": "vote", "correct": "yea"}
    yield "senate90", rt.models.IdealPoint(), rt.Responses.from_frame(table, **roles)
    yield "ratings", rt.models.ManyFacet(), rt.datasets.rating_crowd(150, 12, 8, seed=0)[0]
    compared, _ = rt.datasets.paper(num_items=20, num_annotators=10, num_votes=1_000, seed=0)
    ranked = rt.datasets.ranking_crowd(20, 10, 200, 4, seed=1)[0]
    both = rt.judgements.Together.of({"votes": compared, "ranked": ranked})
    models = {"votes": rt.BTL(), "ranked": rt.PlackettLuce()}
    shared = [{"votes": "reward", "ranked": "worth"}]
    yield "votes and rankings", rt.models.JointModel(models, shared=shared), both
    shown = rt.datasets.demonstration_crowd(4, 4, 6, 6, 10, seed=0)[0]
    yield "demonstrations", rt.MaxEntIRL(), shown
    roles = {role: role for role in ("item", "annotator", "label")}
    labels = rt.Labels.from_frame(pd.read_csv(folder / "dog_spectral" / "labels.csv"), **roles)
    yield "dog_spectral", rt.DawidSkene(), labels


def row(name: str, model: Any, data: Any, backend: Any, seed: int) -> list[Any]:
    """Two fits, the first of which compiles, or one long one."""
    for own_seed in (seed, seed + 1):
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {"progress": False, "log_likelihood": False}
            result = rt.fit(model, data, backend, seed=own_seed, **given)
        if (seconds := time.process_time() - begin) > LONG:
            break
    mixing = result.attrs["max_rhat"], result.attrs["min_ess"], result.attrs.get("divergences", 0)
    default = " (default)" if backend == default_backend(rt.program.Program(model, data)) else ""
    if own_seed == seed:
        default += ", first fit"
    numbers = [name, type(model).__name__, f"{type(backend).__name__}{default}", seconds, *mixing]
    print(*numbers, file=sys.stderr, flush=True)
    return numbers


def main() -> None:
    """Fit each by Hamiltonian Monte Carlo, and by Gibbs or the No-U-Turn Sampler, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the data"))
    folder, rows = Path(given.data), []
    for name, model, data in [*votes(folder), *others(folder)][: 1 if given.quick else None]:
        program = rt.program.Program(model, data)
        able = [one for one in SAMPLERS if one.why_not(program) is None]
        rows += [row(name, model, data, backend, given.seed) for backend in able[:2]]
    title = "Samplers of each kind of judgement"
    report("default_backends", title, [table(HEADER, rows)], given.quick)


if __name__ == "__main__":
    main()
