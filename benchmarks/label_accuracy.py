"""Accuracy of the inferred labels on crowds whose truth is known: every model, and crowd-kit beside them.

Reads bluebird, rte, d_product and labelme from the folder named by --data; each has labels.csv and truth.csv, labelme also
features of train and test items. Items are scored by the class of highest posterior probability. Raykar is also scored on
test items that nobody labelled.
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
    rt.MajorityVote(),
    rt.Pooled(),
    rt.OneCoin(),
    rt.DawidSkene(),
    rt.HierarchicalDawidSkene(),
    rt.ItemDifficulty(),
)
CROWDKIT = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD")


def read(folder: Path) -> tuple[rt.Labels, dict[str, Any]]:
    """Labels, and the true class of items by name."""
    labels, truth = (pd.read_csv(folder / f"{name}.csv", dtype={"item": str}) for name in ("labels", "truth"))
    known = dict(zip(truth["item"], truth["label"], strict=True))
    return rt.Labels.from_frame(labels, item="item", annotator="annotator", label="label"), known


def scored(responsibility: Any, known: dict[str, Any]) -> tuple[float, float]:
    """Accuracy, and the mean log-loss in nats, over items whose truth is known."""
    names = [str(name) for name in responsibility["item"].values]
    classes = [str(name) for name in responsibility["true_class"].values]
    rows = np.array([place for place, name in enumerate(names) if name in known])
    truth = np.array([classes.index(str(known[names[row]])) for row in rows])
    chances = responsibility.values[rows]
    return float((chances.argmax(1) == truth).mean()), float(-np.log(chances[np.arange(len(rows)), truth] + 1e-12).mean())


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

            found = getattr(crowdkit.aggregation, kind)().fit_predict(frame[["task", "worker", "label"]])
            right = np.mean([str(found[item]) == str(known[str(item)]) for item in found.index if str(item) in known])
            rows.append([name, f"crowd-kit {kind}", "", right, float("nan"), time.perf_counter() - begin])
        for model in MODELS:
            for backend in (rt.PGEM(draws=200), rt.PGGibbs(draws=200 if quick else 1000)):
                result, seconds = fitted(model, labels, backend, seed)
                right, loss = scored(result["classes"]["responsibility"], known)
                rows.append([name, type(model).__name__, type(backend).__name__, right, loss, seconds])
                print(rows[-1], flush=True)
    return rows


def raykar_rows(folder: Path, seed: int) -> list[list[Any]]:
    """Raykar on labelme: train items, and test items without labels."""
    labels, known = read(folder / "labelme")
    parts = {part: np.load(folder / "labelme" / f"features_vgg512_{part}.npz") for part in ("train", "test")}
    labels = labels.with_features(parts["train"]["X"][[int(item) - 1 for item in labels.items]].astype(np.float32))
    test = labels.unlabelled(parts["test"]["X"])
    truth = np.array([labels.classes.index(int(code)) for code in parts["test"]["z"]])
    rows = []
    for model, backend in (
        (rt.Raykar(), rt.PGEM(draws=0)),
        (rt.Raykar(hidden=16), rt.PGEM(draws=0, max_sweeps=300)),
        (rt.Raykar(), rt.SVI(draws=200)),
        (rt.Raykar(), rt.PGGibbs(draws=500, warmup=200)),
        (rt.Raykar(), rt.NUTS(draws=150, warmup=250, chains=4, max_tree_depth=6)),
    ):
        result, seconds = fitted(model, labels, backend, seed)
        chances = rt.predict(model, result, test)
        by_chain = (chances.mean("draw").values.argmax(-1) == truth).mean(-1)
        mean = chances.mean(("chain", "draw")).values
        right = float((mean.argmax(-1) == truth).mean())
        loss = float(-np.log(mean[np.arange(len(truth)), truth]).mean())
        train, _ = scored(result["classes"]["responsibility"], known)
        spread = f"{by_chain.min():.3f}–{by_chain.max():.3f}"
        rows.append([repr(model), type(backend).__name__, train, right, spread, loss, seconds])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "", data=("../shared/data", "folder with the data sets"), part=("all", "crowds, raykar, all"))
    folder, parts = Path(settings.data), []
    if settings.part in ("all", "crowds"):
        rows = crowd_rows(folder, settings.quick, settings.seed)
        parts.append(table(["data", "model", "back-end", "accuracy", "log-loss", "seconds"], rows))
    if settings.part in ("all", "raykar") and not settings.quick:
        header = ["model", "back-end", "train accuracy", "test accuracy", "by chain", "test log-loss", "seconds"]
        parts.append("labelme:\n\n" + table(header, raykar_rows(folder, settings.seed)))
    report(
        "label_accuracy", "Label models: accuracy on crowds with known truth", parts, settings.quick or settings.part != "all"
    )


if __name__ == "__main__":
    main()
