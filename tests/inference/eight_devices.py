"""Sweeps over one device and over eight, and what the eight send each other; run as a script."""

from __future__ import annotations

import json
import pickle
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

import raters as rt
from raters.inference.polya_gamma import plans, sums
from raters.program import Program, placing

_COLLECTIVE = re.compile(
    r"= (.*?) (?:all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
)


def apart(model: Any, data: Any, backend: Any) -> float:
    """Largest difference between the draws of a fit on one device and on eight."""
    one, eight = (
        rt.fit(
            model,
            data,
            backend,
            seed=0,
            progress=False,
            log_likelihood=False,
            mesh=jax.make_mesh((number,), ("row",)),
        ).posterior
        for number in (1, 8)
    )
    return max(
        float(np.max(np.abs(one[name].values - eight[name].values))) for name in one.data_vars
    )


def collectives(model: Any, data: Any) -> list[str]:
    """Shapes of what devices send each other in the sums of each block, in the compiled text."""
    program = Program(model, data, jax.make_mesh((8,), ("row",)))
    with jax.enable_x64(True):
        values = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        plan, placed = plans.plan(program, values), program.placed()
        how = sums.How("draw", placing.mesh_of(placed))
        key = jax.random.key(0)
        texts = [
            sums.sums_of.lower(sums.Reading(model, block, placed, values), key, how)
            .compile()
            .as_text()
            for block in plan.blocks
        ]
    return [shape for text in texts for shape in _COLLECTIVE.findall(text)]


def main(which: str) -> None:
    """Print the differences, and the collectives."""
    warnings.simplefilter("ignore")
    gibbs = rt.PGGibbs(draws=3, warmup=3, chains=1)
    if which == "few":
        votes, _ = rt.datasets.paper(num_items=6, num_annotators=4, num_votes=400, seed=0)
        labels = rt.datasets.anesthesia("labels")
        cases = [(rt.ExtendedBTL("signed"), votes), (rt.DawidSkene(), labels)]
    else:
        cases = pickle.loads(Path(which).read_bytes())
    found = {}
    for model, data in cases:
        if gibbs.why_not(rt.program.Program(model, data)) is None:
            found[repr(model)] = apart(model, data, gibbs)
            print(model, found[repr(model)], file=sys.stderr, flush=True)
    rng = np.random.default_rng(0)
    rows = 8 * 1009
    table = {"w": rng.integers(0, 6, rows), "who": np.arange(rows)}
    table["l"] = (table["w"] + rng.integers(1, 6, rows)) % 6
    each = rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who")
    print(json.dumps({"apart": found, "collectives": collectives(rt.BTL(), each), "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1])
