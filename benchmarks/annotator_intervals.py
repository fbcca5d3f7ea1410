"""Intervals of annotators' accuracies on public crowds with known truth, by the model and after a
calibration; and how the accuracies relate to agreement with the calibrated crowd.

Reads the crowds from the folder named by --data. An annotator counts who labelled at least twenty
items of known class: an interval holds if the share of those labels that are right lies in it. The
relation has its constants in raters/auditing/truth/annotator_accuracy.py; the table shows what each
crowd says of them, by maximum likelihood.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table
from crowd_calibration import CROWDS
from scipy.optimize import minimize
from scipy.special import log_expit, logit, logsumexp

import raters as rt
from raters.auditing.truth.annotator_accuracy import LEVEL, SLOPE, SPREAD
from raters.kinds.labels.truth import LabelCalibration

LEAST, GOLD, REPEATS = 20, 50, 4
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


def fitted(folder: Path, seed: int) -> tuple[rt.Labels, Any, pd.Series]:
    """Labels, the result of the default back-end, and known classes."""
    labels, known = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("labels", "truth"))
    classes = sorted(set(labels["label"]) | set(known["label"]))
    data = rt.Labels.from_frame(
        labels, item="item", annotator="annotator", label="label", classes=classes
    )
    result = rt.fit(rt.DawidSkene(), data, seed=seed, progress=False, log_likelihood=False)
    truth = known.set_index("item")["label"]
    return data, result, truth[truth.index.isin(list(data.items))]


def marked(data: rt.Labels, truth: pd.Series) -> pd.DataFrame:
    """Right labels of items of known class, and their number, of each annotator."""
    frame = data.to_frame()[["item", "annotator", "label"]].astype(str)
    frame = frame[frame["item"].isin(truth.index)]
    frame["right"] = frame["label"].to_numpy() == truth.loc[frame["item"]].to_numpy()
    found = frame.groupby("annotator")["right"].agg(["sum", "size"])
    return found[found["size"] >= LEAST]


def holds(annotators: pd.DataFrame, marks: pd.DataFrame) -> tuple[float, float]:
    """Share of the intervals of accuracy that hold, and their mean width."""
    rows = annotators.set_axis(annotators.index.astype(str)).loc[marks.index]
    share = marks["sum"] / marks["size"]
    inside = (rows["accuracy_low"] <= share) & (share <= rows["accuracy_high"])
    return float(inside.mean()), float((rows["accuracy_high"] - rows["accuracy_low"]).mean())


def relation(found: LabelCalibration, marks: pd.DataFrame) -> tuple[float, float]:
    """Slope and spread of the log-odds of accuracies against those of agreement with the calibrated
    crowd, by maximum likelihood."""
    labels = found.labels
    chance = found.class_probability.values[np.asarray(labels.item), np.asarray(labels.label)]
    names = np.asarray(labels.annotators).astype(str)[np.asarray(labels.annotator)]
    credit = pd.Series(chance).groupby(names).agg(["sum", "size"]).loc[marks.index]
    odds = logit(np.clip((credit["sum"] + 1) / (credit["size"] + 2), 1e-3, 1 - 1e-3)).to_numpy()
    odds = odds - odds.mean()
    right, wrong = marks["sum"].to_numpy(), (marks["size"] - marks["sum"]).to_numpy()

    def loss(values: np.ndarray) -> float:
        logits = values[0] + values[1] * odds[:, None] + np.exp(values[2]) * _NODES
        density = right[:, None] * log_expit(logits) + wrong[:, None] * log_expit(-logits)
        return -float(logsumexp(density + np.log(_WEIGHTS / _WEIGHTS.sum()), axis=1).sum())

    start = np.array([logit(np.clip(right.sum() / (right + wrong).sum(), 0.01, 0.99)), 1.0, -1.0])
    best = minimize(loss, start, method="L-BFGS-B", bounds=[(-6, 6), (-1, 4), (-5, 2)]).x
    return float(best[1]), float(np.exp(best[2]))


def main() -> None:
    """Fit the crowds, and report."""
    given = options(__doc__, data=("../shared/data", "folder with the crowds"))
    model, rows = rt.DawidSkene(), []
    for name in CROWDS[:2] if given.quick else CROWDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, result, truth = fitted(Path(given.data) / name, given.seed)
            by_model = rt.audit(model, result, reference="crowd").table.to_dataframe()
            alone = rt.calibrate(model, result, seed=given.seed)
            anchored = [
                rt.calibrate(model, result, truth.sample(GOLD, random_state=seed), seed=seed)
                for seed in range(1 if given.quick else REPEATS)
            ]
        marks = marked(data, truth)
        if len(marks) < 3:
            continue
        gold = np.mean([holds(one.annotators.to_dataframe(), marks) for one in anchored], 0)
        rows.append(
            [
                *(name, len(marks), holds(by_model, marks)[0]),
                *holds(alone.annotators.to_dataframe(), marks),
                *gold,
                *relation(alone, marks),
            ]
        )
    header = ["crowd", "annotators", "by model", "no gold", "width", f"{GOLD} gold", "width"]
    numbers = pd.DataFrame([row[2:7] for row in rows])
    means = numbers.mean()
    text = (
        f"Share of 90 % intervals that hold, mean over crowds: by the model {means[0]:.2f}, without"
        f" gold {means[1]:.2f} (lowest {numbers[1].min():.2f}), with {GOLD} gold items"
        f" {means[3]:.2f} (lowest {numbers[3].min():.2f}). Shipped: slope {SLOPE[0]} ± {SLOPE[1]},"
        f" level ± {LEVEL}, scale of the half-normal prior of the spread {SPREAD}, in log-odds."
    )
    parts = [table([*header, "slope", "spread"], rows), text]
    report("annotator_intervals", "Accuracies of annotators on public crowds", parts, given.quick)


if __name__ == "__main__":
    main()
