"""Accuracy of the inferred labels on crowds whose truth is known: every model, and crowd-kit beside
them.

Reads bluebird, rte, d_product and labelme from the folder named by --data; each has labels.csv and
truth.csv. Items are scored by the class of highest posterior probability; of classes that are
equally probable the first counts. The default priors were chosen by looking at the truth of these
four.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table

import raters as rt

SETS = ("bluebird", "rte", "d_product", "labelme")
MODELS = (
    rt.models.MajorityVote(),
    rt.models.Pooled(),
    rt.models.OneCoin(),
    rt.DawidSkene(),
    rt.HierarchicalDawidSkene(),
    rt.models.ItemDifficulty(),
)
CROWDKIT = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD")


def read(folder: Path) -> tuple[rt.Labels, dict[str, Any]]:
    """Labels, and the true class of items by name."""
    labels, truth = (
        pd.read_csv(folder / f"{name}.csv", dtype={"item": str}) for name in ("labels", "truth")
    )
    known = dict(zip(truth["item"], truth["label"], strict=True))
    return rt.Labels.from_frame(labels, item="item", annotator="annotator", label="label"), known


def scored(responsibility: Any, known: dict[str, Any]) -> tuple[float, float]:
    """Accuracy, and the mean log-loss in nats, over items whose truth is known."""
    names = [str(name) for name in responsibility["item"].values]
    classes = [str(name) for name in responsibility["true_class"].values]
    rows = np.array([place for place, name in enumerate(names) if name in known])
    truth = np.array([classes.index(str(known[names[row]])) for row in rows])
    chances = responsibility.values[rows]
    return float((chances.argmax(1) == truth).mean()), float(
        -np.log(chances[np.arange(len(rows)), truth] + 1e-12).mean()
    )


def fitted(model: Any, labels: rt.Labels, backend: Any, seed: int) -> tuple[Any, float]:
    """A fit, and its seconds."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, labels, backend, seed=seed, progress=False, log_likelihood=False)
    return result, time.perf_counter() - begin


def crowd_rows(folder: Path, quick: bool, seed: int) -> list[list[Any]]:
    """A row for each data set and model."""
    rows = []
    for name in SETS[:1] if quick else SETS:
        labels, known = read(folder / name)
        frame = labels.to_frame().rename(columns={"item": "task", "annotator": "worker"})
        for kind in CROWDKIT:
            begin = time.perf_counter()
            import crowdkit.aggregation

            found = getattr(crowdkit.aggregation, kind)().fit_predict(
                frame[["task", "worker", "label"]]
            )
            right = np.mean(
                [
                    str(found[item]) == str(known[str(item)])
                    for item in found.index
                    if str(item) in known
                ]
            )
            rows.append(
                [name, f"crowd-kit {kind}", "", right, float("nan"), time.perf_counter() - begin]
            )
        for model in MODELS:
            for backend in (rt.PGEM(draws=200), rt.PGGibbs(draws=200 if quick else 1000)):
                result, seconds = fitted(model, labels, backend, seed)
                right, loss = scored(result["classes"]["responsibility"], known)
                rows.append(
                    [name, type(model).__name__, type(backend).__name__, right, loss, seconds]
                )
                print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "", data=("../shared/data", "folder with the data sets"))
    rows = crowd_rows(Path(settings.data), settings.quick, settings.seed)
    parts = [
        (__doc__ or "").split("\n\n")[1],
        table(["data", "model", "back-end", "accuracy", "log-loss", "seconds"], rows),
    ]
    report(
        "label_accuracy", "Label models: accuracy on crowds with known truth", parts, settings.quick
    )


if __name__ == "__main__":
    main()
