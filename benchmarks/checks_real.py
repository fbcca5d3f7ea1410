"""Posterior predictive checks of public crowds: what DawidSkene does not explain of labels, and BTL
and ExtendedBTL of comparisons.

Reads the folders of these crowds from the folder named by --data. A cell is the observed value and
the p-value of all checks of the fit together; those below .05 fail. Then tables drawn from the
prior of a model and fitted by it, which should seldom fail.
"""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from _common import options, report, table

import raters as rt
from raters.checking.predictive import Check

LABELS = [
    "amazon_isbook",
    "barzan_mozafari",
    "bluebird",
    "d_product",
    "dog_spectral",
    "labelme",
    "rte",
    "snow_temp",
    "weather_sentiment_cf",
    "web",
    "zencrowd_us",
]
COMPARISONS = ["country_population", "mtbench_human", "reading_level"]
BACKEND = rt.PGGibbs(draws=250, warmup=250, chains=2)


def labels_of(folder: Path) -> rt.Labels:
    """The labels of a crowd."""
    import pandas as pd

    frame = pd.read_csv(folder / "labels.csv")
    return rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label")


def votes_of(folder: Path) -> rt.Comparisons:
    """The votes of a crowd; ties, and items compared with themselves, are left out."""
    import pandas as pd

    if folder.name == "mtbench_human":
        frame = pd.read_csv(folder / "comparisons_human.csv")
        words = {"model_a": "first", "model_b": "second"}
        frame["outcome"] = frame["winner"].map(words).fillna("tie")
        sides = {"first": "model_a", "second": "model_b", "outcome": "outcome"}
        return rt.Comparisons.from_frame(frame, **sides, annotator="annotator", ties="drop")
    frame = pd.read_csv(folder / "comparisons.csv")
    frame = frame[frame["winner"] != frame["loser"]]
    sides = {"winner": "winner", "loser": "loser"}
    return rt.Comparisons.from_frame(frame, **sides, annotator="annotator")


def found(model: Any, data: Any, seed: int, backend: Any = BACKEND) -> Check:
    """The check of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, data, backend, seed=seed, progress=False, log_likelihood=False)
    return rt.check(model, result, seed=seed)


def row(name: str, model: Any, data: Any, seed: int, columns: list[str]) -> list[Any]:
    """A line of a table."""
    one = found(model, data, seed)
    cells = []
    for column in columns:
        if column in one.not_measured:
            cells.append("–")
            continue
        entry = one.table.sel(discrepancy=column)
        text = f"{float(entry['observed']):.3g}, p = {float(entry['p_adjusted']):.2g}"
        cells.append(f"**{text}**" if bool(entry["fails"]) else text)
    line = [name, type(model).__name__, data.num_judgements, *cells]
    print(*line, flush=True)
    return line


def false_alarms(number: int, seed: int) -> list[list[Any]]:
    """Share of tables from the prior that fail."""
    votes = rt.datasets.separated(6, 6, 240, seed=0).votes
    labels = rt.datasets.label_crowd(40, 6, 4, 2, seed=0).labels
    backend = rt.PGGibbs(draws=400, warmup=200, chains=1)
    lines = []
    for model, asked in (
        (rt.BTL(), dataclasses.replace(votes, ordered=True)),
        (rt.DawidSkene(), labels),
    ):
        failed = 0
        for place in range(number):
            data = rt.simulate(model, asked, seed=seed + place).data
            failed += bool(found(model, data, place, backend).failed)
        lines.append([type(model).__name__, number, failed])
    return lines


def main() -> None:
    chosen = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    data, quick = Path(chosen.data), chosen.quick
    of_labels = ["agreement", "judge_pairs", "competence", "judge_answers"]
    of_votes = ["agreement", "competence", "judge_items", "intransitivity", "position"]
    head = ["crowd", "model", "judgements"]
    labels = [
        row(name, rt.DawidSkene(), labels_of(data / name), chosen.seed, of_labels)
        for name in (LABELS[2:3] if quick else LABELS)
    ]
    votes = [
        row(name, model, votes_of(data / name), chosen.seed, of_votes)
        for name in (COMPARISONS[:1] if quick else COMPARISONS)
        for model in (rt.BTL(), rt.ExtendedBTL(competence="signed"))
    ]
    alarms = false_alarms(5 if quick else 100, chosen.seed)
    parts = [
        table([*head, *of_labels], labels),
        table([*head, *of_votes], votes),
        table(["right model", "tables", "in which something fails"], alarms),
    ]
    report("checks_real", "Posterior predictive checks of public crowds", parts, quick)


if __name__ == "__main__":
    main()
