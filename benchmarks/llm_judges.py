"""Verdicts on 65 LLM judges of llmbar_judges, with 50 known pairs drawn at random and without.

An item is a pair of answers in one order of presentation, its label the answer preferred, and its
truth the one that people wrote to be better. Reads the folder named by --data. A verdict is good if
those kept are right more often than those dropped; intervals of accuracies hold if the accuracy on
all pairs lies in them.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt

GOLD, REPEATS = 50, 20


def main() -> None:
    """Fit once, audit under many draws of known pairs, and report."""
    given = options(__doc__, data=("../shared/data", "folder with llmbar_judges"))
    folder = Path(given.data) / "llmbar_judges"
    said = pd.read_csv(folder / "judgments.csv.gz", dtype=str).query("winner in ('1', '2')")
    said["item"] = said["pair"] + "/" + said["swapped"]
    best = pd.read_csv(folder / "pairs.csv", dtype=str).set_index("pair")["gold_winner"]
    if given.quick:
        said = said[said["pair"].astype(int) <= 120]
    data = rt.Labels.from_frame(said, item="item", annotator="annotator", label="winner")
    truth = pd.Series({item: best[item.split("/")[0]] for item in data.items})
    accuracy = (said["winner"] == said["pair"].map(best)).groupby(said["annotator"]).mean()
    model, rows = rt.DawidSkene(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, data, seed=given.seed, progress=False, log_likelihood=False)
    by_model = rt.audit(model, result, reference="crowd")
    alone = rt.audit(model, result)
    for seed in range(3 if given.quick else REPEATS):
        gold = truth.sample(GOLD, random_state=seed)
        audit = rt.audit(model, result, gold, seed=seed)
        found = audit.table.to_dataframe().assign(true=accuracy)
        mean = found.groupby("verdict")["true"].mean()
        inside = (found["accuracy_low"] <= found["true"]) & (
            found["true"] <= found["accuracy_high"]
        )
        wrong = int((audit.items["label"].to_series() != truth).sum())
        low, high = audit.wrong_interval
        rows.append(
            [
                *(seed, (found["verdict"] == "keep").sum(), mean.get("keep", np.nan)),
                *((found["verdict"] == "drop").sum(), mean.get("drop", np.nan)),
                *(mean.get("keep", np.nan) - mean.get("drop", np.nan), inside.mean()),
                *(wrong, audit.expected_wrong, float(low <= wrong <= high)),
            ]
        )
    header = [
        *("draw", "kept", "their accuracy", "dropped", "their accuracy", "difference"),
        *("intervals that hold", "wrong", "expected", "holds"),
    ]
    numbers = np.array(rows, float)
    kept = accuracy[~accuracy.index.isin(by_model.flagged)]
    wrong = int((by_model.items["label"].to_series() != truth).sum())
    text = (
        f"Kept above dropped by {numbers[:, 5].mean():.2f} on average, and by at least"
        f" {numbers[:, 5].min():.2f}; intervals of accuracies hold for {numbers[:, 6].mean():.2f},"
        f" those of the number wrong for {numbers[:, 9].mean():.2f}. With the crowd taken to be"
        f" right: {by_model.expected_wrong:.0f} of {data.num_items} labels expected wrong, {wrong}"
        f" are; those flagged have accuracy {accuracy[by_model.flagged].mean():.2f}, the others"
        f" {kept.mean():.2f}. Without known pairs: {len(alone.flagged)} dropped;"
        f" “{alone.anchor.sentence}”"
    )
    report(
        "llm_judges", "Verdicts on LLM judges (LLMBar)", [table(header, rows), text], given.quick
    )


if __name__ == "__main__":
    main()
