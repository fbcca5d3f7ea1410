"""Are the label models' probabilities right? Coverage, log-loss, switched classes, and when a
confusion matrix does not pay.

Simulated crowds (`raters.datasets.label_crowd`): 5 labels per item, 10 % spammers.

- Coverage: crowds drawn from the model's own prior, the share of confusion-matrix entries inside
  their 90 % intervals, crowd by crowd; and reliability of the items' probabilities in ten bins with
  simultaneous 95 % bands.
- Switched classes: crowds on which, in any chain, the crowd as a whole means one class by the name
  of another.
- Few labels, many classes: each annotator labels ten items of one of eight classes, and all are
  alike, so majority vote is as good as Dawid–Skene. The share of items with a Pareto k above 0.7
  says whether leave-one-item-out (LOO) can be believed.
"""

from __future__ import annotations

import warnings
from typing import Any

import arviz as az
import numpy as np
from _common import options, report, table
from scipy.stats import binom

import raters as rt
from raters.fitting.parts import fit_warnings

GIBBS = rt.PGGibbs(draws=500, warmup=200, chains=2)


def quiet(model: Any, labels: rt.Labels, seed: int, **keep: Any) -> Any:
    """A fit by Gibbs without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rt.fit(model, labels, GIBBS, seed=seed, progress=False, **keep)


def coverage(replicates: int, seed: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Share of confusion entries inside their intervals, by crowd; item probabilities, and whether
    each class was true."""
    model, inside, chances, true = rt.DawidSkene(diagonal=4.0, off_diagonal=1.0), [], [], []
    for number in range(replicates):
        questions, _ = rt.datasets.label_crowd(200, 20, 5, 3, seed=seed + number)
        labels, truth = rt.simulate(model, questions, seed=seed + number)
        result = quiet(model, labels, seed + number, log_likelihood=False)
        low, high = (
            result["posterior"]["confusion"].quantile(level, ("chain", "draw")).values
            for level in (0.05, 0.95)
        )
        inside.append(((truth["confusion"] >= low) & (truth["confusion"] <= high)).mean())
        chances.append(result["classes"]["responsibility"].values.ravel())
        true.append((truth["true_class"][:, None] == np.arange(3)).ravel())
    return inside, np.concatenate(chances), np.concatenate(true)


def reliability(chances: np.ndarray, true: np.ndarray) -> list[list[Any]]:
    """Stated and actual frequency in ten bins, and whether within the band; by Bonferroni 95 % for
    all together."""
    rows = []
    for number in range(10):
        chosen = (chances >= number / 10) & (chances < (number + 1) / 10 + (number == 9))
        if not chosen.any():
            continue
        stated, count = chances[chosen].mean(), int(chosen.sum())
        low, high = binom.ppf([0.0025, 0.9975], count, stated) / count
        actual = true[chosen].mean()
        said = "yes" if low <= actual <= high else "NO"
        rows.append(
            [
                f"{number / 10:.1f}–{(number + 1) / 10:.1f}",
                count,
                stated,
                actual,
                f"{low:.3f}–{high:.3f}",
                said,
            ]
        )
    return rows


def switched(crowds: int, seed: int) -> list[list[Any]]:
    """On how many crowds the classes are switched, by model and prior."""
    models = {
        "DawidSkene(), the default prior": rt.DawidSkene(),
        "HierarchicalDawidSkene()": rt.HierarchicalDawidSkene(),
        "DawidSkene(diagonal=1, off_diagonal=1), flat": rt.DawidSkene(
            diagonal=1.0, off_diagonal=1.0
        ),
    }
    rows = []
    for name, model in models.items():
        wrong, accuracy, loss = 0, [], []
        for number in range(crowds):
            labels, truth = rt.datasets.label_crowd(200, 20, 5, 3, seed=seed + number)
            result = quiet(model, labels, seed + number, log_likelihood=False)
            wrong += bool(fit_warnings(rt.program.Program(model, labels), result))
            chances = result["classes"]["responsibility"].values
            accuracy.append((chances.argmax(1) == truth["true_class"]).mean())
            loss.append(-np.log(chances[np.arange(200), truth["true_class"]] + 1e-12).mean())
        rows.append([name, f"{wrong} of {crowds}", np.mean(accuracy), np.mean(loss)])
        print(rows[-1], flush=True)
    return rows


def does_not_pay(seed: int) -> list[list[Any]]:
    """LOO of four models on a crowd of alike annotators with few labels each and many classes."""
    rng = np.random.default_rng(seed)
    items, annotators, classes = 200, 100, 8
    true = rng.integers(classes, size=items)
    item, annotator = (
        np.repeat(np.arange(items), 5),
        rng.permutation(np.repeat(np.arange(annotators), 10)),
    )
    wrong = (true[item] + rng.integers(1, classes, size=len(item))) % classes
    label = np.where(rng.random(len(item)) < 0.65, true[item], wrong)
    table_of = {"item": item, "annotator": annotator, "label": label}
    labels = rt.Labels.from_frame(table_of, item="item", annotator="annotator", label="label")
    models = (
        rt.models.MajorityVote(),
        rt.models.OneCoin(),
        rt.HierarchicalDawidSkene(),
        rt.DawidSkene(),
    )
    fits = {
        type(model).__name__: quiet(model, labels, seed, log_likelihood=True) for model in models
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared = az.compare(fits)
    rows = []
    for name in compared.index:
        right = (fits[name]["classes"]["responsibility"].values.argmax(1) == true).mean()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unsure = float((az.loo(fits[name], pointwise=True).pareto_k > 0.7).mean())
        warned = (
            "yes"
            if models[[type(model).__name__ for model in models].index(name)].warnings(labels)
            else ""
        )
        rows.append(
            [
                name,
                *(float(compared.loc[name, column]) for column in ("elpd", "dse")),
                unsure,
                right,
                warned,
            ]
        )
    return rows


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "")
    inside, chances, true = coverage(3 if settings.quick else 40, settings.seed)
    header = [
        "model",
        "elpd by LOO",
        "standard error",
        "share of k > 0.7",
        "accuracy",
        "raters warns",
    ]
    error = np.std(inside) / np.sqrt(len(inside))
    parts = [
        (
            f"90 % intervals of {len(inside)} × 180 confusion entries hold {np.mean(inside):.1%}"
            f" (standard error {error:.1%})."
        ),
        table(
            ["probability", "item × class", "stated", "actual", "band", "inside"],
            reliability(chances, true),
        ),
        table(
            ["model", "switched", "accuracy", "log-loss"],
            switched(2 if settings.quick else 20, settings.seed),
        ),
        table(header, does_not_pay(settings.seed)),
    ]
    report("label_calibration", "Label models: calibration", parts, settings.quick)


if __name__ == "__main__":
    main()
