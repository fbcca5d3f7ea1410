"""Shared by the benchmark scripts: options, tables, timing, memory of a child process."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results"
MEGABYTE = 1 << 20


def options(description: str, **extra: Any) -> argparse.Namespace:
    """The options that every script takes, and those of one script: name=(default, help) or
    name=(default, help, choices)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: seconds instead of minutes"
    )
    parser.add_argument("--seed", type=int, default=0)
    for name, (default, text, *choices) in extra.items():
        kind = (
            str
            if default is None
            else _positive
            if type(default) is int and default
            else type(default)
        )
        parser.add_argument(
            "--" + name, type=kind, default=default, help=text, choices=choices or None
        )
    return parser.parse_args()


def _positive(text: str) -> int:
    """A whole number of at least 1, of what is typed."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not possible: it must be at least 1")
    return number


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers come out with three digits."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(head), *(len(row[column]) for row in cells)) for column, head in enumerate(header)
    ]

    def line(parts: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            + " |"
        )

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, cells)])


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        value = value + 0.0 if value else 0.0
        return "–" if np.isnan(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return (
        f"{value:,}"
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        else str(value)
    )


def in_processes(
    function: Callable[[Any], Any], jobs: Sequence[Any], processes: int, what: str = "jobs"
) -> list[Any]:
    """Results of the jobs, in their order, by so many processes of one thread each; prints how far
    they are."""
    # The processes inherit them.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "XLA_FLAGS" not in os.environ:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    begin, results = time.perf_counter(), []
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for number, result in enumerate(pool.map(function, jobs), 1):
            results.append(result)
            print(
                f"{number} of {len(jobs)} {what}, {time.perf_counter() - begin:.0f} s", flush=True
            )
    return results


def report(
    name: str, title: str, parts: Sequence[str], quick: bool, out: str | None = None
) -> None:
    """Print the parts, and write them to results/NAME.md, or OUT/NAME.md, unless the sizes were
    small."""
    set_to = [
        f"{key}={os.environ[key]}"
        for key in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "XLA_FLAGS")
        if key in os.environ
    ]
    command = " ".join([*set_to, "python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    packages = ", ".join(
        f"{package} {version(package)}" for package in ("jax", "numpyro", "numpy", "scipy")
    )
    machine = (
        f"Python {platform.python_version()}, {packages}; {os.cpu_count()} cores"
        f" ({platform.machine()})."
    )
    text = "\n\n".join([f"# {title}", f"`{command}`", *parts, machine]) + "\n"
    print(text)
    if not quick:
        folder = RESULTS if out is None else Path(out)
        folder.mkdir(exist_ok=True, parents=True)
        (folder / f"{name}.md").write_text(text)


def simulated_votes(
    items: int, annotators: int, number: int, seed: int, *, scale: float = 1.0, adversaries: int = 0
) -> Any:
    """Votes of Extended-BTL on uniform pairs by uniform annotators, as `raters.Comparisons`: normal
    rewards, competences uniform on [0.2, 1], those of adversaries negative."""
    import raters as rt  # Not with this module: some scripts measure the import.

    rng = np.random.default_rng(seed)
    reward, competence = rng.normal(scale=scale, size=items), rng.uniform(0.2, 1.0, annotators)
    competence[:adversaries] *= -1
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    who = rng.integers(annotators, size=number)
    gap = competence[who] * (reward[first] - reward[second])
    wins = (rng.random(number) < 1 / (1 + np.exp(-gap))).astype(np.float32)
    columns = (column.astype(np.int32) for column in (first, second, who))
    return rt.Comparisons(
        *columns, wins, None, tuple(range(items)), tuple(range(annotators))
    ).aggregate()


class Timed(NamedTuple):
    """A call's value, and the least seconds that it took: by the clock and of all cores."""

    value: Any
    seconds: float
    cpu: float


def timed(
    function: Callable[[], Any], *, warm: bool = False, enough: float = 3.0, most: int = 5
) -> Timed:
    """Best of up to `most` calls, no more once `enough` seconds are spent; with `warm`, after one
    that is not counted."""
    if warm:
        function()
    value, best, cpu, spent = None, np.inf, np.inf, 0.0
    for _ in range(most):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        value = function()
        taken, taken_cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
        best, cpu, spent = min(best, taken), min(cpu, taken_cpu), spent + taken
        if spent > enough:
            break
    return Timed(value, best, cpu)


def peak_megabytes() -> float:
    """The largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def child(
    arguments: Sequence[str], *, limit_seconds: float = 180.0, limit_gigabytes: float = 10.0
) -> dict[str, Any] | str:
    """Run the calling script again with `arguments` and read the JSON on its last line; or say why
    there is none."""

    def limits() -> None:
        size = int(limit_gigabytes * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    try:
        done = subprocess.run(
            [sys.executable, sys.argv[0], *arguments],
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            preexec_fn=limits,
        )
    except subprocess.TimeoutExpired:
        return f"> {limit_seconds:.0f} s"
    if done.returncode:
        reason = (
            done.stderr.strip().splitlines()[-1]
            if done.stderr.strip()
            else f"exit code {done.returncode}"
        )
        return (
            f"> {limit_gigabytes:.0f} GB"
            if "alloc" in reason or "MemoryError" in reason
            else reason[:60]
        )
    return json.loads(done.stdout.splitlines()[-1])
