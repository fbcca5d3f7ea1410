"""Choice of the default model, prior and back-end of labels by predictive evidence on public
crowds.

A fifth of the labels of each crowd is left out, and each model is fitted to the rest; what counts
is the mean log density of a label that was left out. No true class is used for that: the model
chosen for a crowd is the best one on the other crowds. Accuracies of the classes by a fit to all
labels, by sampling and by the mode, are beside it, and the warnings about them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from _common import options, report, table
from crowd_calibration import CROWDS, TWINS
from scipy.special import logsumexp

import raters as rt
from raters.program import pointwise_log_likelihood

MODELS = {
    "DawidSkene()": rt.DawidSkene(),
    "DawidSkene(diagonal=5, off_diagonal=1)": rt.DawidSkene(diagonal=5.0, off_diagonal=1.0),
    "HierarchicalDawidSkene()": rt.HierarchicalDawidSkene(),
    "OneCoin()": rt.models.OneCoin(),
    "ItemDifficulty()": rt.models.ItemDifficulty(),
    "Pooled()": rt.models.Pooled(),
}
DEFAULT = "DawidSkene()"
# For densities, and for the classes of the default model.
SHORT = rt.PGGibbs(draws=200, warmup=200, chains=1)
LONG = rt.PGGibbs(draws=300, warmup=200, chains=2)


def crowd(folder: Path) -> tuple[rt.Labels, np.ndarray]:
    """Labels, and the code of the true class of each item (−1 where it is not known)."""
    labels, known = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("labels", "truth"))
    classes = sorted(set(labels["label"]) | set(known["label"]))
    data = rt.Labels.from_frame(
        labels, item="item", annotator="annotator", label="label", classes=classes
    )
    truth = dict(zip(known["item"], known["label"], strict=True))
    codes = [classes.index(truth[str(item)]) if str(item) in truth else -1 for item in data.items]
    return data, np.array(codes)


def fitted(model: Any, labels: rt.Labels, backend: Any, seed: int) -> tuple[Any, str]:
    """A fit, and the names of what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(model, labels, backend, seed=seed, progress=False, log_likelihood=False)
    return result, "; ".join(str(one.message) for one in caught)


def left_out_density(
    model: Any, labels: rt.Labels, backend: Any, left_out: np.ndarray, seed: int
) -> float:
    """Mean log density of the labels left out, given the others."""
    kept = labels.rows(~left_out)
    result = fitted(model, kept, backend, seed)[0]
    posterior = result["posterior"].dataset.stack(sample=("chain", "draw"))
    draws = {
        str(name): jnp.asarray(value.transpose("sample", ...).values)
        for name, value in posterior.data_vars.items()
    }

    def by_item(data: rt.Labels) -> np.ndarray:
        moved = jax.tree.map(jnp.asarray, data)
        each = jax.jit(
            lambda draws: jax.lax.map(
                lambda one: pointwise_log_likelihood(model, moved, one), draws
            )
        )
        return np.asarray(each(draws), float)

    both, alone = by_item(labels), by_item(kept)
    density = logsumexp(both - alone, axis=0) - np.log(len(both))
    return float(density.sum() / left_out.sum())


def accuracy(result: Any, truth: np.ndarray) -> float:
    """Share of the items of known class whose most probable class is right."""
    chances = result["classes"]["responsibility"].transpose("item", "true_class").values
    known = truth >= 0
    return float((chances[known].argmax(1) == truth[known]).mean())


def rows_of(name: str, folder: Path, models: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Numbers of each model on one crowd."""
    labels, truth = crowd(folder)
    left_out = np.random.default_rng(seed).random(labels.num_rows) < 0.2
    found = []
    for words, model in models.items():
        density = left_out_density(model, labels, SHORT, left_out, seed)
        mode = fitted(model, labels, rt.PGEM(draws=0), seed)[0]
        row = {"crowd": name, "model": words, "density": density, "mode": accuracy(mode, truth)}
        if words == DEFAULT:
            sampled, said = fitted(model, labels, LONG, seed)
            row |= {"sampled": accuracy(sampled, truth), "warned": "at the mode" in said}
        found.append(row)
        print(row, flush=True)
    return found


def chosen(density: pd.DataFrame, weight: pd.Series) -> pd.DataFrame:
    """For each crowd, the model of the largest mean density on the others, and what it loses there
    against the best and the default one."""
    rows = []
    for name in density.index:
        left_out = TWINS if name in TWINS else (name,)
        others = density.drop(index=[one for one in left_out if one in density.index])
        mean = others.mul(weight[others.index], axis=0).sum() / weight[others.index].sum()
        best = mean.idxmax()
        own = density.loc[name]
        rows.append([name, best, own[best] - own.max(), own[best] - own[DEFAULT], own.idxmax()])
    header = [
        "crowd",
        "chosen on the others",
        "less than its best",
        "more than the default",
        "best",
    ]
    return pd.DataFrame(rows, columns=header)


def main() -> None:
    """Measure and report."""
    given = options(__doc__ or "", data=("../shared/data", "folder with the crowds"))
    names = CROWDS[:2] if given.quick else CROWDS
    found: list[dict[str, Any]] = []
    for name in names:
        found += rows_of(name, Path(given.data) / name, MODELS, given.seed)
    rows = pd.DataFrame(found)
    density = rows.pivot(index="crowd", columns="model", values="density").loc[list(names)]
    density = density[list(MODELS)]
    weight = pd.Series({name: 0.5 if name in TWINS else 1.0 for name in names})
    best = chosen(density, weight)
    mean = density.mul(weight, axis=0).sum() / weight.sum()
    first = table(
        ["crowd", *density.columns],
        [[name, *row] for name, row in zip(density.index, density.values.tolist(), strict=True)]
        + [["mean", *mean.tolist()]],
    )
    of_default = rows[rows["model"] == DEFAULT]
    second = table(
        ["crowd", "accuracy by Gibbs", "by the mode", "less", "the fit says so"],
        [
            [one.crowd, one.sampled, one.mode, one.mode - one.sampled, "yes" if one.warned else ""]
            for one in of_default.itertuples()
        ],
    )
    accuracies = rows.groupby("model", sort=False)["mode"].mean()
    third = table(
        ["model", "mean accuracy by the mode"],
        [[str(name), share] for name, share in accuracies.items()],
    )
    parts = [
        (__doc__ or "").split("\n\n", 1)[1].strip(),
        "## Mean log density of a label left out",
        first,
        table(list(best.columns), best.values.tolist()),
        "## Accuracy of the default model and back-end",
        second,
        third,
    ]
    report("label_defaults", "Defaults of labels by predictive evidence", parts, given.quick)


if __name__ == "__main__":
    main()
