"""A million labels, and a hundred thousand annotators of one label each, on every back-end: the
whole call, from a data frame to an audit, with its memory and what it warns of.

Each row runs in a process of its own. Samplers take fewer draws than their defaults: the time of a
sweep is what is measured, and what is said when the draws are too few.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _common import RESULTS, child, options, peak_megabytes, report, table

NAME = "large_labels"
LIMIT = 900.0
BACKENDS = {
    "PGEM": {},
    "SVI": {},
    "PGGibbs": {"draws": 50, "warmup": 50, "chains": 2},
    "NUTS": {"draws": 20, "warmup": 20, "chains": 1},
}
# Model, items, annotators, labels, classes.
DESIGNS = {
    "a million labels": ("DawidSkene", 200_000, 2_000, 1_000_000, 4),
    "annotators of one label": ("OneCoin", 1_000, 100_000, 100_000, 2),
}
SMALLER = 100  # the part of these sizes that --quick takes


def simulated(design: str, seed: int, quick: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Labels whose annotators are right with probability .5 to .95, and true classes."""
    _, *sizes = DESIGNS[design]
    items, annotators, labels, classes = (
        max(number // SMALLER, 2) if quick and number > SMALLER else number for number in sizes
    )
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=items)
    item = np.arange(labels) % items
    who = np.arange(labels) if annotators == labels else rng.integers(annotators, size=labels)
    right = rng.random(labels) < rng.uniform(0.5, 0.95, annotators)[who]
    wrong = (truth[item] + rng.integers(1, classes, size=labels)) % classes
    columns = {"item": item, "annotator": who, "label": np.where(right, truth[item], wrong)}
    return pd.DataFrame(columns), truth


def measure(design: str, backend: str, seed: int, quick: bool) -> dict[str, Any]:
    """Seconds of each step, what was warned of, and the share of items whose class is right."""
    import raters as rt

    frame, truth = simulated(design, seed, quick)
    model = getattr(rt, DESIGNS[design][0])()
    found: dict[str, Any] = {}

    def step(name: str, call: Any) -> Any:
        begin = time.perf_counter()
        value = call()
        found[name] = time.perf_counter() - begin
        return value

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = step(
            "read",
            lambda: rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label"),
        )
        fitter = getattr(rt, backend)(**BACKENDS[backend])
        result = step("fit", lambda: rt.fit(model, labels, fitter, seed=seed, progress=False))
        audit = step("audit", lambda: rt.audit(model, result, reference="crowd"))
    for name, values in result["posterior"].data_vars.items():
        assert np.isfinite(values.values).all(), name
    responsibility = result["classes"]["responsibility"]
    chosen = responsibility["true_class"].values[responsibility.values.argmax(-1)]
    known = pd.Series(truth).loc[responsibility["item"].values].to_numpy()
    found["right"] = float(np.mean(chosen == known))
    found["dropped"] = int((audit.table["verdict"] == "drop").sum())
    found["memory"] = peak_megabytes()
    found["warned"] = sorted({str(entry.message).split(". ")[0] for entry in caught})
    return found


def row(design: str, backend: str, arguments: argparse.Namespace) -> list[Any]:
    """Row of the table, measured in a process of its own."""
    extra = ["--quick"] if arguments.quick else []
    extra += ["--design", design, "--backend", backend, "--seed", str(arguments.seed)]
    found = child(extra, limit_seconds=LIMIT, limit_gigabytes=20)
    print(design, backend, found, flush=True)
    if isinstance(found, str):
        return [design, written(backend), *[""] * 5, found]
    numbers = [found[name] for name in ("read", "fit", "audit", "memory", "right")]
    return [design, written(backend), *numbers, "; ".join(found["warned"]) or "nothing"]


def written(backend: str) -> str:
    """A back-end with its settings, as one writes it."""
    settings = ", ".join(f"{name}={value}" for name, value in BACKENDS[backend].items())
    return f"{backend}({settings})"


def rows_before() -> dict[tuple[str, str], list[str]]:
    """Rows of the table as it is stored, by design and back-end."""
    stored = RESULTS / f"{NAME}.md"
    lines = stored.read_text().splitlines() if stored.exists() else []
    rows = [line.strip("| ").split("|") for line in lines if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {(row[0], row[1]): row for row in cells}


def main() -> None:
    """Run every design on every back-end, or one of them in this process."""
    arguments = options(
        __doc__.splitlines()[0],
        design=("", "one design, in this process"),
        backend=("", "one back-end; without a design, its rows anew, and the others as stored"),
    )
    if arguments.design and arguments.backend:
        found = measure(arguments.design, arguments.backend, arguments.seed, arguments.quick)
        print(json.dumps(found))
        return
    before = rows_before() if arguments.backend else {}
    rows = [
        before[design, written(backend)]
        if arguments.backend not in ("", backend)
        else row(design, backend, arguments)
        for design in DESIGNS
        for backend in BACKENDS
    ]
    header = ("labels", "back-end", "read, s", "fit, s", "audit, s", "MB", "right", "warned of")
    report(NAME, "Labels at large sizes", [table(header, rows)], arguments.quick)


if __name__ == "__main__":
    main()
