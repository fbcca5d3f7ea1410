"""Families of annotators that make the same mistakes: what models expect to be wrong, and what is.

Simulated: 200 items of two classes, and 12 annotators who are each right with a probability
between .6 and .9. The first 5, the family, label every item, the others three items in seven. In
the crowds with shared mistakes each item deceives the family with probability .2; its members then
say the wrong class nine times in ten. *Worth*: evidence of the five labels of the family on an
item, all equal, in units of one of them. Numbers are means over three crowds.

llmbar_judges, from the folder named by --data: 65 LLM judges on 838 pairs in an order; the family
of a judge is its base model.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table
from scipy.special import expit

import raters as rt

ITEMS, CROWD, FAMILY = 200, 12, 5
MODELS = (rt.models.OneCoin(), rt.DawidSkene(), rt.SharedMistakes())
HEADER = ["model", "accuracy", "expected wrong", "wrong", "log-loss", "worth", "seconds"]


def simulated(deceived: float, seed: int) -> tuple[rt.Labels, dict[Any, Any]]:
    """A crowd whose family is wrong together on a share of the items, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=ITEMS)
    chance = np.tile(rng.uniform(0.6, 0.9, CROWD), (ITEMS, 1))
    chance[rng.random(ITEMS) < deceived, :FAMILY] = 0.1
    item, who = np.divmod(np.arange(ITEMS * CROWD), CROWD)
    right = rng.random(ITEMS * CROWD) < chance[item, who]
    there = (who < FAMILY) | ((who - item) % (CROWD - FAMILY) < 3)
    said = {
        "item": item,
        "annotator": who,
        "label": np.where(right, truth[item], 1 - truth[item]),
        "vendor": np.where(who < FAMILY, "A", ""),
    }
    return _read(pd.DataFrame(said)[there]), dict(enumerate(truth.tolist()))


def judges(folder: Path) -> tuple[rt.Labels, dict[Any, Any]]:
    """LLM judges with their base model, and the better answer of each pair."""
    said = pd.read_csv(folder / "judgments.csv.gz", dtype=str).query("winner in ('1', '2')")
    said = said.rename(columns={"winner": "label"})
    said["item"] = said["pair"] + "/" + said["swapped"]
    said["vendor"] = said["annotator"].str.split("/").str[0]
    best = pd.read_csv(folder / "pairs.csv", dtype=str).set_index("pair")["gold_winner"]
    labels = _read(said)
    return labels, {item: best[str(item).split("/")[0]] for item in labels.items}


def _read(table: Any) -> rt.Labels:
    columns = {role: role for role in ("item", "annotator", "label")}
    return rt.Labels.from_frame(table, **columns, family="vendor")


def worth(result: Any, labels: rt.Labels) -> float:
    """Evidence of equal labels by the whole largest family, in units of one of them."""
    if "family_spread" not in result.posterior:
        return float("nan")
    family = np.asarray(labels.family)
    members = family == np.bincount(family[family >= 0]).argmax()
    ability = result.posterior["ability"].values.reshape(-1, len(family))[:, members]
    spread = result.posterior["family_spread"].values.ravel()
    noise = np.random.default_rng(0).standard_normal(4000)
    right = expit(ability.mean(0) + spread.mean() * noise[:, None])

    def evidence(chance: np.ndarray) -> float:
        return float(np.log(chance.prod(1).mean() / (1 - chance).prod(1).mean()))

    return evidence(right) / np.mean([evidence(right[:, [one]]) for one in range(right.shape[1])])


def measured(model: Any, labels: rt.Labels, known: dict[Any, Any], backend: Any) -> list[float]:
    """A fit against the truth."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, labels, backend, seed=0, progress=False, log_likelihood=False)
    chances = result["classes"]["responsibility"].values
    truth = np.array([labels.classes.index(known[item]) for item in labels.items])
    right = chances.argmax(1) == truth
    loss = -np.log(np.maximum(chances[np.arange(len(truth)), truth], 1e-12)).mean()
    return [
        right.mean(),
        (1 - chances.max(1)).sum(),
        (~right).sum(),
        loss,
        worth(result, labels),
        time.perf_counter() - begin,
    ]


def main() -> None:
    """Fit, measure, and report."""
    given = options(__doc__ or "", data=("../shared/data", "folder with llmbar_judges"))
    backend = rt.PGGibbs(draws=60 if given.quick else 200, warmup=100, chains=2)
    parts = [(__doc__ or "").split("\n\n", 1)[1]]
    for title, deceived in (("Shared mistakes", 0.2), ("Independent annotators", 0.0)):
        crowds = [simulated(deceived, given.seed + one) for one in range(1 if given.quick else 3)]
        rows = []
        for model, run in (
            *((model, backend) for model in MODELS),
            (MODELS[2], rt.PGEM(draws=100)),
        ):
            found = [measured(model, *crowd, run) for crowd in crowds]
            rows.append([f"{model!r}, {type(run).__name__}", *np.mean(found, 0).tolist()])
            print(title, rows[-1], flush=True)
        parts += [f"## {title}", table(HEADER, rows)]
    if not given.quick:
        crowd = judges(Path(given.data) / "llmbar_judges")
        rows = []
        for model in MODELS:
            rows.append([f"{model!r}, PGGibbs", *measured(model, *crowd, backend)])
            print(rows[-1], flush=True)
        parts += ["## llmbar_judges", table(HEADER, rows)]
    report("families", "Families of annotators", parts, given.quick)


if __name__ == "__main__":
    main()
