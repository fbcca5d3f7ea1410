"""CPU seconds of starting: every public name, JAX with NumPyro alone, and the command's help."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from _common import options, report, table

_NAMES = "import raters; [getattr(raters, name) for name in raters.__all__]"
# Command line and target of each.
_STARTS = {
    "`import raters`": (["-c", "import raters"], "–"),
    "`import raters`, every name of `raters.__all__`": (["-c", _NAMES], "1.5"),
    "`import jax, numpyro, pandas, xarray`": (["-c", "import jax, numpyro, pandas, xarray"], "–"),
    "`raters --help`": (["-m", "raters.cli.app", "--help"], ".6"),
}


def cpu_seconds(arguments: list[str]) -> float:
    """CPU seconds of a fresh interpreter, its own start among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure each in fresh interpreters, after one that fills the disk cache."""
    arguments = options(__doc__ or "")
    times = 3 if arguments.quick else 7
    rows = []
    for name, (command, target) in _STARTS.items():
        cpu_seconds(command)
        runs = [cpu_seconds(command) for _ in range(times)]
        rows.append([name, statistics.median(runs), min(runs), max(runs), target])
    note = f"Median, least and most of {times} fresh interpreters."
    parts = [table(["started", "median CPU-s", "least", "most", "target"], rows), note]
    report("import_time", "CPU time of starting", parts, arguments.quick)


if __name__ == "__main__":
    main()
