"""Whole calls, from a data frame (a file, of the command line) to a result with intervals, with
default settings: CPU seconds, reading and compilation counted, and peak memory.

Each line is measured in a process of its own, which makes the call twice. Of the command line the
first call has an empty compilation cache, and the second the one that the first has filled.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import MEGABYTE, child, options, peak_megabytes, report, table
from scipy.special import expit

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 900.0
SMALLER = 20  # the part of the sizes that --quick takes


class Line(NamedTuple):
    """A line of the table: what is called, on which data, and the line that it is compared with."""

    call: str
    size: str
    measure: Callable[[int, bool], dict[str, Any]]
    beside: str | None = None


# ------------------------------------------------------------------------------------------ data


def votes(items: int, annotators: int, number: int, seed: int) -> pd.DataFrame:
    """Votes on uniform pairs, with standard normal rewards and competences of .2 to 1.2."""
    rng = np.random.default_rng(seed)
    reward, competence = rng.normal(size=items), rng.uniform(0.2, 1.2, annotators)
    first, who = rng.integers(items, size=number), rng.integers(annotators, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    scale = 1.0 if annotators == 1 else competence[who]
    right = rng.random(number) < expit(scale * (reward[first] - reward[second]))
    columns = {"winner": np.where(right, first, second), "loser": np.where(right, second, first)}
    return pd.DataFrame(columns | ({} if annotators == 1 else {"annotator": who}))


def labels(items: int, annotators: int, number: int, classes: int, seed: int) -> pd.DataFrame:
    """Labels whose annotators are right with probability .5 to .95."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=items)
    task, who = np.arange(number) % items, rng.integers(annotators, size=number)
    right = rng.random(number) < rng.uniform(0.5, 0.95, annotators)[who]
    wrong = (truth[task] + rng.integers(1, classes, size=number)) % classes
    columns = {"task": task, "worker": who, "label": np.where(right, truth[task], wrong)}
    return pd.DataFrame(columns)


def _many_votes(seed: int, quick: bool) -> pd.DataFrame:
    return votes(1_000, 1, 1_000_000 // (SMALLER if quick else 1), seed)


def _many_labels(seed: int, quick: bool) -> pd.DataFrame:
    part = SMALLER if quick else 1
    return labels(200_000 // part, 2_000 // part, 1_000_000 // part, 4, seed)


# ----------------------------------------------------------------------------------------- calls


def twice(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """CPU seconds of two calls, the peak memory of this process after them, and the facts that the
    second gives."""
    seconds, facts = [], {}
    for _ in range(2):
        begin = time.process_time()
        facts = call()
        seconds.append(time.process_time() - begin)
    return facts | {"first": seconds[0], "second": seconds[1], "peak": peak_megabytes()}


def _fitted(model: Any, read: Callable[[], Any], *backend: Any) -> dict[str, Any]:
    """CPU seconds of reading within the whole call, and everything that was warned of."""
    import raters as rt

    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read()
        spent = time.process_time() - begin
        rt.fit(model, data, *backend, seed=0, progress=False)
    said = sorted({str(entry.message).split(": ")[0] for entry in caught})
    return {"read": spent, "said": "; ".join(said)}


def raters_votes(seed: int, quick: bool) -> dict[str, Any]:
    """BTL by PGEM."""
    import raters as rt

    frame = _many_votes(seed, quick)

    def read() -> Any:
        return rt.Comparisons.from_frame(frame, winner="winner", loser="loser")

    return twice(lambda: _fitted(rt.BTL(), read, rt.PGEM()))


def evalica_votes(seed: int, quick: bool) -> dict[str, Any]:
    """evalica's solver, which gives strengths without intervals."""
    import evalica

    frame = _many_votes(seed, quick)

    def call() -> dict[str, Any]:
        evalica.bradley_terry(frame["winner"], frame["loser"], [evalica.Winner.X] * len(frame))
        return {"said": "strengths alone"}

    return twice(call)


def raters_labels(seed: int, quick: bool) -> dict[str, Any]:
    """Dawid and Skene's model by PGEM."""
    import raters as rt

    frame = _many_labels(seed, quick)

    def read() -> Any:
        return rt.Labels.from_frame(frame, item="task", annotator="worker", label="label")

    return twice(lambda: _fitted(rt.DawidSkene(), read, rt.PGEM()))


def crowdkit_labels(name: str, seed: int, quick: bool) -> dict[str, Any]:
    """An aggregator of crowd-kit, which gives classes and errors without intervals."""
    from crowdkit import aggregation

    frame = _many_labels(seed, quick)

    def call() -> dict[str, Any]:
        getattr(aggregation, name)().fit_predict(frame)
        return {"said": "classes and errors alone"}

    return twice(call)


def sampled_votes(seed: int, quick: bool) -> dict[str, Any]:
    """Extended BTL by the default back-end."""
    import raters as rt

    frame = votes(200, 50, 20_000 // (SMALLER if quick else 1), seed)

    def read() -> Any:
        return rt.Comparisons.from_frame(
            frame, winner="winner", loser="loser", annotator="annotator"
        )

    return twice(lambda: _fitted(rt.ExtendedBTL("signed"), read))


def audited_votes(seed: int, quick: bool, *further: str) -> dict[str, Any]:
    """The command ``raters audit``, and the size of its result."""
    environment = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    raters, facts = [sys.executable, "-m", "raters.cli.app"], {}
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"XDG_CACHE_HOME": f"{folder}/cache"}
        frame = votes(100, 50, 15_000 // (SMALLER if quick else 1), seed)
        frame.to_csv(f"{folder}/votes.csv", index=False)
        roles = ["--winner", "winner", "--loser", "loser", "--annotator", "annotator", "--quiet"]
        roles += further
        for name in ("first", "second"):
            before = os.times()
            command = [*raters, "audit", f"{folder}/votes.csv", *roles, "--out", f"{folder}/{name}"]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            spent = zip(os.times()[2:4], before[2:4], strict=True)
            facts[name] = sum(after - earlier for after, earlier in spent)
        size = Path(folder, "second", "result.nc").stat().st_size / MEGABYTE
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MEGABYTE
    return facts | {"peak": peak, "said": f"result.nc of {size:.0f} MB"}


def suggested(seed: int, quick: bool) -> dict[str, Any]:
    """Questions of all pairs of items to each of 50 annotators, some 10⁶ of them."""
    import raters as rt

    frame = votes(200 // (SMALLER // 4 if quick else 1), 50, 20_000, seed)
    roles = {"winner": "winner", "loser": "loser", "annotator": "annotator"}
    data, model = rt.Comparisons.from_frame(frame, **roles), rt.ExtendedBTL("signed")
    result = rt.fit(model, data, rt.PGEM(), seed=0, progress=False)

    def call() -> dict[str, Any]:
        pool = rt.Candidates.pairs(data)
        rt.suggest(model, result, pool, batch_size=20, seed=0)
        return {"said": f"{pool.num_rows:,} questions"}

    return twice(call)


def asked(number: int, seed: int, quick: bool) -> dict[str, Any]:
    """Single questions of a campaign with so many, each answered before the next."""
    import raters as rt

    items = int((2 * number / (SMALLER if quick else 1)) ** 0.5) + 1
    names = [f"item {place}" for place in range(items)]
    waits = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool = rt.Candidates.pairs(items=names, annotators=["a"])
        campaign = rt.Campaign(f"{folder}/campaign.db", rt.BTL(), pool, seed=seed)
        begin = time.process_time()
        for place in range(10 if quick else 100):
            wait = time.perf_counter()
            question = campaign.ask(1)
            waits.append(1000 * (time.perf_counter() - wait))
            campaign.tell(str(question["id"].item()), ("first", "second")[place % 2])
    middle, late = np.quantile(waits[1:], [0.5, 0.99])
    spent = (time.process_time() - begin) / len(waits)
    facts = {"first": waits[0] / 1000, "second": spent, "peak": peak_megabytes()}
    return facts | {"said": f"ask: p50 {middle:.0f} ms, p99 {late:.0f} ms"}


LINES = {
    "votes-evalica": Line("evalica `bradley_terry`", "1,000 items, 10⁶ votes", evalica_votes),
    "votes": Line(
        "`rt.fit(rt.BTL(), votes, rt.PGEM())`",
        "1,000 items, 10⁶ votes",
        raters_votes,
        "votes-evalica",
    ),
    "labels-crowdkit": Line(
        "crowd-kit `DawidSkene`",
        "200,000 items, 2,000 annotators, 10⁶ labels",
        partial(crowdkit_labels, "DawidSkene"),
    ),
    "labels-glad": Line("crowd-kit `GLAD`", "the same", partial(crowdkit_labels, "GLAD")),
    "labels": Line(
        "`rt.fit(rt.DawidSkene(), labels, rt.PGEM())`",
        "200,000 items, 2,000 annotators, 10⁶ labels",
        raters_labels,
        "labels-crowdkit",
    ),
    "sampled": Line(
        '`rt.fit(rt.ExtendedBTL("signed"), votes)`',
        "200 items, 50 annotators, 20,000 votes",
        sampled_votes,
    ),
    "audit": Line("`raters audit`", "100 items, 50 annotators, 15,000 votes", audited_votes),
    "audit-quick": Line(
        "`raters audit --quick`", "the same", lambda *given: audited_votes(*given, "--quick")
    ),
    "suggest": Line("`rt.suggest`", "200 items, 50 annotators", suggested),
    "ask-few": Line("`campaign.ask(1)`, `tell`", "10³ questions", partial(asked, 1_000)),
    "ask-many": Line("`campaign.ask(1)`, `tell`", "10⁵ questions", partial(asked, 100_000)),
}


def row(name: str, found: dict[str, dict[str, Any] | str]) -> list[Any]:
    """Row of the table."""
    line, own = LINES[name], found[name]
    if isinstance(own, str):
        return [line.call, line.size, *[np.nan] * 5, own]
    other = found.get(line.beside or "")
    ratio = own["second"] / other["second"] if isinstance(other, dict) else np.nan
    numbers = [own["first"], own["second"], own.get("read", np.nan), ratio, own["peak"]]
    return [line.call, line.size, *numbers, own["said"]]


def main() -> None:
    """Measure every line in a process of its own, or one of them in this process."""
    arguments = options(
        __doc__.splitlines()[0],
        line=("", "one line, in this process; prints its numbers", "", *LINES),
        only=("", "lines to measure, divided by commas; writes nothing"),
    )
    if arguments.line:
        print(json.dumps(LINES[arguments.line].measure(arguments.seed, arguments.quick)))
        return
    extra = ["--seed", str(arguments.seed), *(["--quick"] if arguments.quick else [])]
    found: dict[str, dict[str, Any] | str] = {}
    for name in arguments.only.split(",") if arguments.only else LINES:
        found[name] = child(["--line", name, *extra], limit_seconds=LIMIT, limit_gigabytes=30)
        print(name, found[name], file=sys.stderr, flush=True)
    header = ["call", "data", "first", "second", "of it reading", "× peer", "peak MB", "beside it"]
    parts = [
        table(header, [row(name, found) for name in found]),
        "CPU seconds of all threads; peak memory of the process, imports and data included.",
    ]
    report("whole_calls", "Whole calls", parts, arguments.quick or bool(arguments.only))


if __name__ == "__main__":
    main()
