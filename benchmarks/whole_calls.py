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


def rankings(number: int, seed: int) -> pd.DataFrame:
    """Rankings of 10 of 200 items each, by Plackett and Luce's model."""
    rng = np.random.default_rng(seed)
    offered = rng.permuted(np.tile(np.arange(200), (number, 1)), axis=1)[:, :10]
    utility = rng.normal(size=200)[offered] + rng.gumbel(size=offered.shape)
    ordered = np.take_along_axis(offered, np.argsort(-utility, axis=1), axis=1)
    return pd.DataFrame(ordered, columns=[f"place {place}" for place in range(1, 11)])


def responses(people: int, seed: int) -> pd.DataFrame:
    """Right and wrong responses of each person to 40 items with slopes of .5 to 2."""
    rng = np.random.default_rng(seed)
    slope, difficulty = rng.uniform(0.5, 2.0, 40), rng.normal(size=40)
    chance = expit(slope * (rng.normal(size=(people, 1)) - difficulty))
    right = (rng.random((people, 40)) < chance).astype(int)
    frame = pd.DataFrame(right, columns=[f"item {place}" for place in range(40)])
    return frame.assign(person=np.arange(people))


def choices(sets: int, spread: float, seed: int) -> pd.DataFrame:
    """Ten choices of each person among 4 alternatives with 3 features, whose coefficients differ
    from person to person by so much; a row for each alternative."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(sets, 4, 3))
    tastes = np.array([1.0, -0.5, 0.25]) + spread * rng.normal(size=(sets // 10, 3))
    utility = np.einsum("sak,sk->sa", features, np.repeat(tastes, 10, axis=0))
    taken = (utility + rng.gumbel(size=utility.shape)).argmax(1)
    index = {
        "set": np.repeat(np.arange(sets), 4),
        "person": np.repeat(np.arange(sets) // 10, 4),
        "alternative": np.tile([f"a{place}" for place in range(4)], sets),
        "chosen": (np.arange(4) == taken[:, None]).astype(int).ravel(),
    }
    return pd.DataFrame(index).assign(**dict(zip("xyz", features.reshape(-1, 3).T, strict=True)))


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


def raters_rankings(seed: int, quick: bool) -> dict[str, Any]:
    """Plackett and Luce's model by PGEM."""
    import raters as rt

    frame = rankings(5_000 // (SMALLER if quick else 1), seed)
    read = partial(rt.Rankings.from_wide, frame, places=["place *"], unranked="not offered")
    return twice(lambda: _fitted(rt.PlackettLuce(), read, rt.PGEM()))


def choix_rankings(seed: int, quick: bool) -> dict[str, Any]:
    """choix's solver, which gives strengths without intervals."""
    import choix

    frame = rankings(5_000 // (SMALLER if quick else 1), seed)

    def call() -> dict[str, Any]:
        choix.ilsr_rankings(200, frame.to_numpy().tolist(), alpha=1e-3)
        return {"said": "strengths alone"}

    return twice(call)


def raters_responses(seed: int, quick: bool) -> dict[str, Any]:
    """The model of two parameters by the default back-end."""
    import raters as rt

    frame = responses(1_000 // (SMALLER if quick else 1), seed)
    read = partial(rt.Responses.from_wide, frame, person="person", columns=["item *"])
    return twice(lambda: _fitted(rt.models.TwoPL(), read))


def girth_responses(seed: int, quick: bool) -> dict[str, Any]:
    """girth's marginal likelihood, which gives parameters of items without intervals."""
    import girth

    frame = responses(1_000 // (SMALLER if quick else 1), seed)

    def call() -> dict[str, Any]:
        girth.twopl_mml(frame.filter(like="item").to_numpy().T)
        return {"said": "parameters of items alone"}

    return twice(call)


def raters_choices(is_mixed: bool, seed: int, quick: bool) -> dict[str, Any]:
    """A logit by PGEM, or a mixed one by the default back-end."""
    import raters as rt

    frame = choices(5_000 // (SMALLER if quick else 1), float(is_mixed), seed)
    roles = {"set": "set", "alternative": "alternative", "chosen": "chosen", "annotator": "person"}
    read = partial(rt.Choices.from_frame, frame, features=list("xyz"), **roles)
    if is_mixed:
        return twice(lambda: _fitted(rt.models.MixedLogit(), read))
    return twice(lambda: _fitted(rt.models.MultinomialLogit(), read, rt.PGEM()))


def xlogit_choices(is_mixed: bool, seed: int, quick: bool) -> dict[str, Any]:
    """xlogit's maximum likelihood, simulated for mixed logits, with standard errors."""
    import xlogit

    frame = choices(5_000 // (SMALLER if quick else 1), float(is_mixed), seed)
    given = {"alts": frame["alternative"], "ids": frame["set"], "varnames": list("xyz")}
    if is_mixed:
        given |= {"panels": frame["person"], "randvars": dict.fromkeys("xyz", "n"), "n_draws": 500}

    def call() -> dict[str, Any]:
        model = xlogit.MixedLogit() if is_mixed else xlogit.MultinomialLogit()
        columns, taken = frame[list("xyz")], frame["chosen"]
        model.fit(X=columns, y=taken, fit_intercept=True, verbose=0, **given)
        return {"said": "standard errors"}

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
    "rankings-choix": Line("choix `ilsr_rankings`", "5,000 × 10 of 200 items", choix_rankings),
    "rankings": Line(
        "`rt.fit(rt.PlackettLuce(), rankings, rt.PGEM())`",
        "the same",
        raters_rankings,
        "rankings-choix",
    ),
    "responses-girth": Line("girth `twopl_mml`", "1,000 people × 40 items", girth_responses),
    "responses": Line(
        "`rt.fit(rt.models.TwoPL(), responses)`", "the same", raters_responses, "responses-girth"
    ),
    "choices-xlogit": Line(
        "xlogit `MultinomialLogit`", "5,000 sets × 4", partial(xlogit_choices, False)
    ),
    "choices": Line(
        "`rt.fit(rt.models.MultinomialLogit(), choices, rt.PGEM())`",
        "the same",
        partial(raters_choices, False),
        "choices-xlogit",
    ),
    "mixed-xlogit": Line(
        "xlogit `MixedLogit`, 500 draws", "500 people × 10 × 4", partial(xlogit_choices, True)
    ),
    "mixed": Line(
        "`rt.fit(rt.models.MixedLogit(), choices)`",
        "the same",
        partial(raters_choices, True),
        "mixed-xlogit",
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
