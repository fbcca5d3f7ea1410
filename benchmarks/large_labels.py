"""A million labels, and a hundred thousand annotators of one label each, on every back-end: the
whole call, from a data frame to an audit, with its memory and what it warns of.

Each row runs in a process of its own. Samplers take fewer draws than their defaults: the time of a
sweep is what is measured, and what is said when the draws are too few.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _common import child, options, peak_megabytes, report, table

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


def main() -> None:
    """Run every design on every back-end, or one of them in this process."""
    arguments = options(
        __doc__.splitlines()[0],
        design=("", "one design, in this process"),
        backend=("", "one back-end, in this process"),
    )
    if arguments.design and arguments.backend:
        found = measure(arguments.design, arguments.backend, arguments.seed, arguments.quick)
        print(json.dumps(found))
        return
    parts, rows = [], []
    for design in DESIGNS:
        for backend, settings in BACKENDS.items():
            extra = ["--quick"] if arguments.quick else []
            extra += ["--design", design, "--backend", backend, "--seed", str(arguments.seed)]
            found = child(extra, limit_seconds=LIMIT, limit_gigabytes=20)
            print(design, backend, found, flush=True)
            written = f"{backend}({', '.join(f'{k}={v}' for k, v in settings.items())})"
            if isinstance(found, str):
                rows.append((design, written, *[""] * 5, found))
                continue
            rows.append(
                (
                    design,
                    written,
                    *(found[name] for name in ("read", "fit", "audit", "memory", "right")),
                    "; ".join(found["warned"]) or "nothing",
                )
            )
    header = ("labels", "back-end", "read, s", "fit, s", "audit, s", "MB", "right", "warned of")
    parts.append(table(header, rows))
    report("large_labels", "Labels at large sizes", parts, arguments.quick)


if __name__ == "__main__":
    main()
