"""Labels, numbers of wrong labels and annotators on public crowds, with 0 to 200 items of known
class drawn at random, beside what is done without a model.

Reads the crowds from the folder named by --data. A crowd is fitted once; for each draw of known
items `rt.calibrate` states what is true of the others. Beside it: the majority, crowd-kit's
Dawid–Skene (where it is installed), the best annotator on the known items (of those who labelled a
fifth of them; the majority where that one gave no label), and the gold-weighted vote

    log P(k | i) = w_i sum_a log pi_a[k, y_ia] + log p_k,    w_i = 1 / (1 + (n_i - 1) .21),

with pi_a the confusion of an annotator on the known items, shrunk by three labels to that of all.
Numbers of wrong labels: those of `rt.calibrate`, and the intervals of Jeffreys and of PPI++ from
its own `anchor_check`. Annotators: those with 20 labels of items of known class, five of them
known; beside them each one's share right among the known items, with Jeffreys' interval.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table
from crowd_calibration import CROWDS
from scipy.special import log_softmax

import raters as rt
from raters.auditing.truth.anchor_check import jeffreys

NUMBERS, DRAWS = (0, 20, 50, 200), 20
LEAST, LEAST_KNOWN = 20, 5
LEVEL = 0.9


class Crowd:
    """Labels, their fit by the default back-end, and the class code of each item; −1 where it is
    not known."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.name = folder.name
        labels, truth = _llmbar(folder) if folder.name == "llmbar_judges" else _public(folder)
        classes = sorted(set(labels["label"]) | set(truth))
        self.data = rt.Labels.from_frame(
            labels, item="item", annotator="annotator", label="label", classes=classes
        )
        code = {name: place for place, name in enumerate(classes)}
        self.truth = np.array([code.get(truth.get(str(item)), -1) for item in self.data.items])
        self.item, self.annotator, self.label = (
            np.asarray(codes) for codes in (self.data.item, self.data.annotator, self.data.label)
        )
        self.votes = self.data.votes()
        self.result = rt.fit(
            rt.DawidSkene(), self.data, seed=seed, progress=False, log_likelihood=False
        )
        self.crowdkit = _crowdkit(self.data, code)

    def gold(self, known: np.ndarray) -> dict[Any, Any] | None:
        """Known classes, as a user has them."""
        return {
            self.data.items[item]: self.data.classes[self.truth[item]] for item in known
        } or None


def _public(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Labels and true classes of a public crowd, of the items that have a truth: known items are a
    random sample of these alone, so that a statement about all items is compared with the truth of
    all."""
    labels, truth = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("labels", "truth"))
    return labels[labels["item"].isin(truth["item"])], truth.set_index("item")["label"]


def _llmbar(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Verdicts of LLM judges on pairs of answers, each pair shown in both orders."""
    said = pd.read_csv(folder / "judgments.csv.gz", dtype=str).query("winner in ('1', '2')")
    best = pd.read_csv(folder / "pairs.csv", dtype=str).set_index("pair")["gold_winner"]
    item = said["pair"] + "/" + said["swapped"]
    labels = pd.DataFrame({"item": item, "annotator": said["annotator"], "label": said["winner"]})
    return labels, pd.Series({name: best[name.split("/")[0]] for name in item.unique()})


def _crowdkit(data: rt.Labels, code: dict[str, int]) -> np.ndarray | None:
    """Class codes by crowd-kit's Dawid–Skene."""
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    frame = data.to_frame().rename(columns={"item": "task", "annotator": "worker"})
    found = DawidSkene().fit_predict(frame[["task", "worker", "label"]].astype(str))
    return np.array([code[found[str(item)]] for item in data.items])


def gold_weighted_vote(crowd: Crowd, known: np.ndarray) -> np.ndarray:
    """Log-probability of each class of each item."""
    size, is_known = crowd.data.num_classes, np.isin(crowd.item, known)
    counts = np.zeros((crowd.data.num_annotators, size, size))
    rows = np.flatnonzero(is_known)
    cells = crowd.annotator[rows], crowd.truth[crowd.item[rows]], crowd.label[rows]
    np.add.at(counts, cells, 1.0)
    pooled = counts.sum(0) + 0.5 + np.eye(size)
    pooled /= pooled.sum(1, keepdims=True)
    confusion = (counts + 3 * pooled) / (counts.sum(2, keepdims=True) + 3)
    odds = np.zeros_like(crowd.votes)
    np.add.at(odds, crowd.item, np.log(confusion)[crowd.annotator, :, crowd.label])
    odds /= 1 + (np.maximum(crowd.votes.sum(1, keepdims=True), 1) - 1) * 0.21
    prior = np.log(np.bincount(crowd.truth[known], minlength=size) + 1.0)
    return np.asarray(log_softmax(odds + prior, axis=1))


def best_annotator(crowd: Crowd, known: np.ndarray) -> np.ndarray:
    """Class codes by the annotator with the largest share right among the known items."""
    rows = np.flatnonzero(np.isin(crowd.item, known))
    right = crowd.label[rows] == crowd.truth[crowd.item[rows]]
    size = crowd.data.num_annotators
    number = np.bincount(crowd.annotator[rows], minlength=size)
    share = (np.bincount(crowd.annotator[rows], right, size) + 0.5) / (number + 1)
    enough = number >= len(known) / 5
    best = np.where(enough if enough.any() else number > 0, share, -1).argmax()
    codes, own = crowd.votes.argmax(1), crowd.annotator == best
    codes[crowd.item[own]] = crowd.label[own]
    return codes


def one_draw(crowd: Crowd, number: int, seed: int) -> dict[str, float]:
    """All numbers of one draw of known items."""
    rows, rng = np.flatnonzero(crowd.truth >= 0), np.random.default_rng(seed)
    known = np.sort(rng.choice(rows, min(number, len(rows) // 2), replace=False))
    rest = np.setdiff1d(rows, known)
    truth, places = crowd.truth[rest], np.arange(len(rest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = rt.calibrate(
            rt.DawidSkene(), crowd.result, crowd.gold(known), level=LEVEL, seed=seed
        )
    probs = found.class_probability.values[rest]
    chosen = probs.argmax(1)
    wrong = (found.truth.values[:, rest] != chosen).sum(1)
    low, high = np.quantile(wrong, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    number_wrong = (chosen != truth).sum()
    numbers = {
        "right": (chosen == truth).mean(),
        "log-loss": -np.log(probs[places, truth]).mean(),
        "majority": (crowd.votes[rest].argmax(1) == truth).mean(),
        "log ratio": np.log(max(number_wrong, 0.5) / wrong.mean()),
        "holds": low <= number_wrong <= high,
        "width": (high - low) / len(rest),
    }
    if crowd.crowdkit is not None:
        numbers["crowd-kit"] = (crowd.crowdkit[rest] == truth).mean()
    if not len(known):
        return numbers
    vote = gold_weighted_vote(crowd, known)[rest]
    numbers |= {
        "vote": (vote.argmax(1) == truth).mean(),
        "vote log-loss": -vote[places, truth].mean(),
        "best": (best_annotator(crowd, known)[rest] == truth).mean(),
    }
    checked, share = found.anchor_check.isel(statement=0), number_wrong / len(rest)
    for short, name in (("gold", "gold"), ("PPI++", "prediction_powered")):
        low, high = float(checked[f"{name}_low"]), float(checked[f"{name}_high"])
        half = 0.5 / len(known)
        numbers |= {
            f"{short} log ratio": np.log(max(share, 1e-3) / max(float(checked[name]), half)),
            f"{short} holds": low <= share <= high,
            f"{short} width": high - low,
        }
    return numbers | _annotators(crowd, known, found)


def _annotators(crowd: Crowd, known: np.ndarray, found: Any) -> dict[str, float]:
    """Errors and intervals of accuracies, and whether the best one is first."""
    size = crowd.data.num_annotators
    has_truth, is_known = crowd.truth[crowd.item] >= 0, np.isin(crowd.item, known)
    right = (crowd.label == crowd.truth[crowd.item]) & has_truth
    number, of_gold = (
        np.bincount(crowd.annotator[rows], minlength=size) for rows in (has_truth, is_known)
    )
    total, right_gold = (
        np.bincount(crowd.annotator[right & rows], minlength=size) for rows in (has_truth, is_known)
    )
    some = np.flatnonzero((number >= LEAST) & (of_gold >= LEAST_KNOWN))
    if len(some) < 3:
        return {}
    share = total[some] / number[some]
    stated, low, high = (
        found.annotators[name].values[some]
        for name in ("accuracy", "accuracy_low", "accuracy_high")
    )
    alone, alone_low, alone_high = jeffreys(right_gold[some], of_gold[some], LEVEL).T
    middle = (right_gold[some] + 0.5) / (of_gold[some] + 1)
    first = alone == alone.max()
    return {
        "squared error": ((stated - share) ** 2).mean(),
        "gold squared error": ((middle - share) ** 2).mean(),
        "accuracies hold": ((low <= share) & (share <= high)).mean(),
        "gold accuracies hold": ((alone_low <= share) & (share <= alone_high)).mean(),
        "accuracy width": (high - low).mean(),
        "gold accuracy width": (alone_high - alone_low).mean(),
        "best first": share[stated.argmax()] == share.max(),
        "gold best first": (share[first] == share.max()).mean(),
    }


def measured(crowd: Crowd, number: int, draws: int) -> pd.Series:
    """Means over draws of the known items; root mean squares of errors."""
    rows = [one_draw(crowd, number, seed) for seed in range(draws if number else 1)]
    frame = pd.DataFrame(rows).astype(float)
    means = frame.mean()
    for name in [name for name in frame if name.endswith("log ratio")]:
        means[name] = np.sqrt((frame[name] ** 2).mean())
    for name in [name for name in frame if name.endswith("squared error")]:
        means[name.replace("squared error", "rmse")] = np.sqrt(means[name])
    print(crowd.name, number, means.round(3).to_dict(), flush=True)
    return means


TABLES = {
    "Labels": (
        ("right", "vote", "best", "majority", "crowd-kit", "log-loss", "vote log-loss"),
        "share of labels right, and log-loss",
    ),
    "Numbers of wrong labels": (
        (
            "log ratio",
            "gold log ratio",
            "PPI++ log ratio",
            "holds",
            "gold holds",
            "PPI++ holds",
            "width",
            "gold width",
            "PPI++ width",
        ),
        "root mean square of log(wrong / expected), share of 90 % intervals that hold, their width",
    ),
    "Annotators": (
        (
            "rmse",
            "gold rmse",
            "accuracies hold",
            "gold accuracies hold",
            "accuracy width",
            "gold accuracy width",
            "best first",
            "gold best first",
        ),
        "error of accuracies, 90 % intervals, share of draws in which the best one is first",
    ),
}


def main() -> None:
    """Fit the crowds, calibrate them under many draws of known items, and report."""
    given = options(
        __doc__,
        data=("../shared/data", "folder with the crowds"),
        draws=(DRAWS, "draws of the known items"),
    )
    names = ("llmbar_judges", *CROWDS)
    numbers, draws = NUMBERS, given.draws
    if given.quick:
        names, numbers, draws = names[:2], (0, 50), 2
    found: dict[tuple[int, str], pd.Series] = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            crowd = Crowd(Path(given.data) / name, given.seed)
        for number in numbers:
            found[number, name] = measured(crowd, number, draws)
    parts = []
    for number in numbers:
        frame = pd.DataFrame({name: found[number, name] for name in names}).T
        for title, (columns, text) in TABLES.items():
            shown = [column for column in columns if column in frame]
            if not number and title == "Annotators":
                continue
            rows = [[name, *frame.loc[name, shown]] for name in names]
            rows.append(["mean", *frame[shown].mean()])
            heading = f"## {title}, {number} known ({text})"
            parts += [heading, table(["crowd", *shown], rows)]
    report("gold", "Known truths on public crowds", parts, given.quick)


if __name__ == "__main__":
    main()
