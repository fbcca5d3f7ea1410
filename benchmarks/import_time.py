"""Seconds that importing raters adds to importing JAX and NumPyro, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys

from _common import options, report, table

_CODE = """
import time
import jax, numpyro, numpyro.infer
begin = time.perf_counter()
import {name}
dir({name})  # raters imports its parts at their first use
print(time.perf_counter() - begin)
"""


def seconds(name: str, times: int) -> tuple[float, float, float]:
    """Median, least and most seconds of importing `name` after JAX and NumPyro."""
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", _CODE.format(name=name)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(times)
    ]
    return statistics.median(runs), min(runs), max(runs)


def main() -> None:
    """Measure raters, and ArviZ alone, which is most of it."""
    arguments = options(__doc__ or "")
    times = 3 if arguments.quick else 5
    seconds("raters", 1)
    rows = [[name, *seconds(name, times)] for name in ("raters", "arviz", "pandas")]
    note = (
        f"Median, least and most of {times} fresh interpreters, after one that fills the disk"
        " cache. Target: under 2 s."
    )
    parts = [table(["imported after jax and numpyro", "median s", "least", "most"], rows), note]
    report("import_time", "Import time beyond JAX and NumPyro", parts, arguments.quick)


if __name__ == "__main__":
    main()
