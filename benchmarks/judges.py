"""Boards of judges: the 65 judges of llmbar_judges, and what is found in simulated crowds.

The board is that of `raters.judges` with 100 known pairs drawn at random; the accuracy on all pairs
stands beside it. In simulated crowds eight judges are right on 80 % of 400 questions each, of which
each answers 240 or so: drift is a fall of one of them to 60 or 50 % from the middle on, and a copy
repeats another judge. Reads the folder named by --data.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt
from raters.reporting.judges.drift import drifts
from raters.reporting.judges.verdicts import Verdicts

KNOWN, CROWDS, JUDGES, QUESTIONS, LEVEL = 100, 200, 8, 400, 0.05


def llmbar(folder: Path, quick: bool, seed: int) -> str:
    """Board of the judges of LLMBar, each verdict in both orders."""
    said = pd.read_csv(folder / "judgments.csv.gz").query("winner in (1, 2)")
    pairs = pd.read_csv(folder / "pairs.csv")
    said = said.merge(pairs, on="pair")
    if quick:
        said = said[said["annotator"].isin(sorted(said["annotator"].unique())[::8])]
    columns = ["swapped", "len_1", "len_2"]
    roles = {"item": "pair", "annotator": "annotator", "label": "winner"}
    labels = rt.Labels.from_frame(said, **roles, columns=columns)
    result = rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=seed, progress=False)
    known = pairs.sample(KNOWN, random_state=seed)
    gold = dict(zip(known["pair"], known["gold_winner"], strict=True))
    board = rt.judges(result, gold=gold, swapped="swapped", lengths=("len_1", "len_2"), seed=seed)
    true = (said["winner"] == said["gold_winner"]).groupby(said["annotator"]).mean()
    found = board.table.assign(true=true)
    inside = found["true"].between(found["accuracy_low"], found["accuracy_high"]).mean()
    chance = (found["accuracy_low"] <= 0.5) & (found["accuracy_high"] >= 0.5)
    names = ["accuracy", "true", "consistency", "position_bias", "length_bias"]
    ends = pd.concat([found.head(5), found.tail(5)])[names]
    rows = [
        [name, *map("{:.2f}".format, row)]
        for name, row in zip(ends.index, ends.values, strict=True)
    ]
    shared = board.shared
    assert shared is not None
    low, high = shared.effective_interval
    worse = found["accuracy_high"] < 0.5
    longer, first = found["length_bias_low"] > 0, found["position_bias_low"] > 0.05
    lines = [
        f"{len(found)} judges, {KNOWN} known pairs; the five best and the five worst:\n",
        table(["judge", *names], rows),
        "",
        f"- {inside:.0%} of the 90 % intervals hold the accuracy on all pairs.",
        f"- {chance.sum()} judges are not told from a coin; {worse.sum()} are worse.",
        f"- {longer.sum()} choose the longer answer more often than it is right, by"
        f" {found['length_bias'].median():.2f} in the middle.",
        f"- {first.sum()} favour what is shown first by more than .05.",
        f"- They err together as {shared.effective:.1f} independent judges would ({low:.1f} to"
        f" {high:.1f}).",
    ]
    return "\n".join(lines)


def crowd(rng: np.random.Generator, after: float) -> Verdicts:
    """Verdicts along forty days, known to be right or wrong."""
    tables, time = [], np.arange(QUESTIONS) // 10
    for judge in range(JUDGES):
        accuracy = np.full(QUESTIONS, 0.8)
        if judge == 0:
            accuracy[QUESTIONS // 2 :] = after
        some = np.flatnonzero(rng.random(QUESTIONS) < 0.6)
        answer = (rng.random(len(some)) < accuracy[some]).astype(int)
        columns: dict[str, Any] = {"judge": judge, "question": some, "answer": answer}
        tables.append(pd.DataFrame(columns | {"time": time[some], "weight": 1.0}))
    return Verdicts(pd.concat(tables, ignore_index=True), np.ones((1, QUESTIONS), int), ())


def drift(number: int, seed: int) -> str:
    """False alarms and detections at 5 %."""
    rows = []
    for after in (0.8, 0.6, 0.5):
        rng = np.random.default_rng(seed)
        found, false, days = [], [], []
        for _ in range(number):
            board = drifts(crowd(rng, after), list(range(JUDGES)), rng)
            alarm = board["drift_p"] < LEVEL
            found.append(bool(alarm[0]))
            false.append(bool(alarm[1:].any()))
            days += [abs(board["drift_time"][0] - 20)] if alarm[0] else []
        late = f"{np.median(days):.0f}" if after < 0.8 else ""
        rows.append([f"{after:.0%}", f"{np.mean(found):.2f}", f"{np.mean(false):.2f}", late])
    header = ["accuracy from day 20 on", "found", "another judge accused", "median error, days"]
    return f"{number} crowds each, at {LEVEL:.0%}:\n\n{table(header, rows)}"


def copies(number: int, seed: int) -> str:
    """Effective numbers of two judges, of the same two and a copy of one, and of one and a copy."""
    rows: dict[str, list[float]] = {"two judges": [], "and a copy": [], "one and a copy": []}
    for place in range(number):
        rng = np.random.default_rng((seed, place))
        truth = rng.integers(0, 2, QUESTIONS)
        said = {
            name: np.where(rng.random(QUESTIONS) < 0.8, truth, 1 - truth) for name in ("a", "b")
        }
        for name, judges in zip(rows, (["a", "b"], ["a", "b", "a"], ["a", "a"]), strict=True):
            frames = [
                pd.DataFrame({"item": np.arange(QUESTIONS), "who": f"{one}{k}", "label": said[one]})
                for k, one in enumerate(judges)
            ]
            labels = rt.Labels.from_frame(
                pd.concat(frames), item="item", annotator="who", label="label"
            )
            result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(), seed=0, progress=False)
            gold = {item: int(truth[item]) for item in range(0, QUESTIONS, 2)}
            shared = rt.judges(result, gold=gold).shared
            assert shared is not None
            rows[name].append(shared.effective)
    lines = [[name, f"{np.mean(values):.2f}"] for name, values in rows.items()]
    return table(["", "effective number"], lines)


def main() -> None:
    """Write the three tables."""
    given = options(__doc__, data=("../shared/data", "folder with llmbar_judges"))
    folder = Path(given.data) / "llmbar_judges"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = {
            "LLMBar": llmbar(folder, given.quick, given.seed),
            "Drift": drift(10 if given.quick else CROWDS, given.seed),
            "Copies": copies(1 if given.quick else 10, given.seed),
        }
    text = [f"## {name}\n\n{part}" for name, part in parts.items()]
    report("judges", "Boards of judges", text, given.quick)


if __name__ == "__main__":
    main()
