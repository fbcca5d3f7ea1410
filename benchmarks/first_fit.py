"""Seconds of the first fit of each model in a process of its own: compilation counted, and what a
second fit costs.

Also ``make demo`` and ``raters audit`` of 1,000 votes, as typed. ``--cached`` uses JAX's persistent
compilation cache in a temporary folder, filled by a run before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import options, report, table

CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import raters as rt
name, backend = sys.argv[1:3]
votes, _ = rt.datasets.crowd(num_items=20, num_annotators=10, num_votes=1000, seed=0)
labels, _ = rt.datasets.label_crowd(100, 10, 5, 3, num_features=3, seed=0)
model = getattr(rt, name)()
data = labels if name in LABELS else votes
if name == "ContextualBTL":
    import numpy as np
    data = votes.with_features(np.random.default_rng(0).normal(size=(20, 3)))
count, seconds = 0, []
import jax
def note(event, duration, **facts):
    global count
    count += event == "/jax/core/compile/backend_compile_duration"
jax.monitoring.register_event_duration_secs_listener(note)
for seed in (0, 1):
    begin = time.process_time()
    rt.fit(model, data, getattr(rt, backend)(), seed=seed, progress=False)
    seconds.append(time.process_time() - begin)
print(json.dumps([count, *seconds]))
"""
LABELS = (
    "MajorityVote", "Pooled", "OneCoin", "DawidSkene",
    "HierarchicalDawidSkene", "ItemDifficulty", "Raykar", "Yan",
)  # fmt: skip
VOTES = ("BTL", "ExtendedBTL", "MixtureBTL", "ContextualBTL")
DEMO = [
    "raters/datasets/anesthesia.csv",
    "--item",
    "patient",
    "--rating",
    "rating",
    "--annotator",
    "rater",
]
ROOT = Path(__file__).resolve().parents[1]


def child(command: list[str], cache: str | None) -> tuple[float, str]:
    """CPU seconds of a process, and what it printed."""
    environment = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false" if cache is None else "true"
    if cache is not None:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
    before = os.times()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    after = os.times()
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    spent = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return spent, done.stdout


def fits(arguments, cache: str | None) -> list[list[object]]:
    """A row for each model: compiled functions, first and second fit in CPU seconds."""
    rows = []
    for name in VOTES[:2] if arguments.quick else VOTES + LABELS:
        code = f"LABELS = {LABELS!r}\n{CHILD}"
        _, printed = child([sys.executable, "-c", code, name, "PGEM"], cache)
        rows.append([name, *json.loads(printed.splitlines()[-1])])
    return rows


def commands(cache: str | None) -> list[list[object]]:
    """CPU seconds of two command lines, as typed."""
    with tempfile.TemporaryDirectory() as folder:
        votes = f"{folder}/votes.csv"
        raters = [sys.executable, "-m", "raters.cli.app"]
        simulate = [
            "simulate",
            "--design",
            "crowd",
            "--set",
            "num_votes=1000",
            "--out",
            votes,
            "--quiet",
        ]
        child([*raters, *simulate], cache)
        demo, _ = child([*raters, "audit", *DEMO, "--quiet", "--out", f"{folder}/demo"], cache)
        audit, _ = child([*raters, "audit", votes, "--quiet", "--out", f"{folder}/audit"], cache)
    return [["`make demo`", demo], ["`raters audit` of 1,000 votes", audit]]


def main() -> None:
    arguments = options(__doc__.splitlines()[0], cached=(0, "1: with a filled compilation cache"))
    cache = tempfile.mkdtemp() if arguments.cached else None
    if cache:
        fits(arguments, cache), commands(cache)
    header = ["model, by PGEM", "compiled functions", "first fit (CPU s)", "second fit (CPU s)"]
    parts = [table(header, fits(arguments, cache)), table(["command", "CPU s"], commands(cache))]
    name = "first_fit_cached" if cache else "first_fit"
    report(name, "The first fit", parts, arguments.quick)


if __name__ == "__main__":
    main()
