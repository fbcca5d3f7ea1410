"""Raykar on labelme: a classifier learned from a crowd's labels, scored on scenes that nobody
labelled.

Reads labelme (Rodrigues and Pereira 2018) from the folder named by --data: 2,547 labels of 1,000
scenes in 8 classes by 59 people, 512 features of each scene, and 1,188 test scenes. Published on
these features: Raykar .861, trained on the majority .803–.813, Dawid–Skene then trained .830,
trained on the truth .921. A scale of .0663 is 1.5 / √512, the median of the prior of the scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _common import options, report, table
from label_accuracy import fitted, read, scored

import raters as rt


def rows_of(folder: Path, quick: bool, seed: int) -> list[list[Any]]:
    """A row for each model and back-end."""
    labels, known = read(folder / "labelme")
    parts = {
        part: np.load(folder / "labelme" / f"features_vgg512_{part}.npz")
        for part in ("train", "test")
    }
    labels = labels.with_features(
        parts["train"]["X"][[int(item) - 1 for item in labels.items]].astype(np.float32)
    )
    test = labels.unlabelled(parts["test"]["X"])
    truth = np.array([labels.classes.index(int(code)) for code in parts["test"]["z"]])
    rows = []
    fits = (
        (rt.Raykar(), rt.PGEM(draws=0)),
        (rt.Raykar(coefficient_scale=0.0663), rt.PGEM(draws=0)),
        (rt.Raykar(coefficient_scale=0.05), rt.PGEM(draws=0)),
        (rt.Raykar(diagonal=1.0, off_diagonal=1.0), rt.PGEM(draws=0, max_sweeps=200)),
        (rt.Raykar(hidden=16), rt.PGEM(draws=0, max_sweeps=60)),
        (rt.Raykar(), rt.SVI(steps=2000, draws=200)),
        (rt.Raykar(), rt.PGGibbs(draws=500, warmup=200)),
        (rt.Raykar(), rt.NUTS(draws=150, warmup=250, chains=4, max_tree_depth=6)),
    )
    for model, backend in fits[:1] if quick else fits:
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
    settings = options(__doc__ or "", data=("../shared/data", "folder with the data sets"))
    header = [
        "model",
        "back-end",
        "train accuracy",
        "test accuracy",
        "by chain",
        "test log-loss",
        "seconds",
    ]
    parts = [
        (__doc__ or "").split("\n\n")[1],
        table(header, rows_of(Path(settings.data), settings.quick, settings.seed)),
    ]
    report("raykar_labelme", "Raykar on labelme", parts, settings.quick)


if __name__ == "__main__":
    main()
