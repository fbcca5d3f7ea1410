"""Numbers of wrong labels that a model states on public crowds with known truth, as they are and
after a calibration that allows for mistakes that annotators make together.

Reads the crowds from the folder named by --data; each has labels.csv and truth.csv. The calibration
takes four unknowns of a crowd: how much less n labels of an item tell than n independent ones
(dependence), the share of mistakes that the whole crowd makes (shared), how far plain vote shares
are to be believed instead of the model (by_vote), and a tilt towards each class. Their prior is
learned from the other crowds; known classes of fifty random items weigh the unknowns further. With
some probability, by the rule of succession, and more where no dependence of labels can be seen
(raters.auditing.truth.true_classes), mistakes are independent as the model takes them.

Below, simulated crowds with independent mistakes, which the prior was not learned from: 600 items
of two classes with eight labels each, and of four classes with five.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from _common import options, report, table
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp
from scipy.stats import beta, norm, qmc
from scipy.stats import t as student

import raters as rt
from raters.auditing.truth.true_classes import (
    FREEDOM,
    PRIOR,
    Evidence,
    Prior,
    Visible,
    true_class_probs,
    visible_dependence,
)

# Two questions on the same sentences count as one crowd.
TWINS = ("medrel_treat", "medrel_cause")
CROWDS = (
    *("bluebird", "rte", "d_product", "labelme", "zencrowd_us", "weather_sentiment_cf"),
    *("sentence_polarity_500_amt", "dog_spectral", "web", "amazon_isbook", "barzan_mozafari"),
    *("snow_temp", "duchenne_smile", *TWINS),
)
# Name of the results by the model that is fitted.
RESULTS = {
    "DawidSkene": "crowd_calibration",
    "HierarchicalDawidSkene": "crowd_calibration_hierarchical",
}
# Ranges of the unknowns, and the standard deviation of the tilt.
DEPENDENCE, SHARED, TILT = (0.005, 20.0), (0.0005, 0.6), PRIOR.tilt
# Least share of a class in the vote shares that are the baseline.
FLOOR = 0.02
GOLD, REPEATS = 50, 40
# Share of the draws that are of independent mistakes.
INDEPENDENT = 1 / 8
# Classes, labels of each item and accuracy of simulated crowds, and how many there are of each.
SIMULATED, SEEDS = ((2, 8, 0.7), (4, 5, 0.6)), 10
_PROBS = jax.jit(jax.vmap(true_class_probs, (None, 0)))


class Crowd(NamedTuple):
    """Items whose class is known, with what the model and the votes say of them.

    Attributes
    ----------
    chances : array, shape (item, class)
        Of the model.
    votes : array, shape (item, class)
    truth : array, shape (item,)
    evidence : Evidence
        The same, as the package's layer reads it, with classes confused as in the whole crowd.
    seen : Visible
        What is seen of the dependence of labels.
    """

    name: str
    chances: np.ndarray
    votes: np.ndarray
    truth: np.ndarray
    evidence: Evidence
    seen: Visible

    @property
    def weight(self) -> float:
        """Number of crowds that it counts as."""
        return 0.5 if self.name in TWINS else 1.0

    @property
    def is_wrong(self) -> np.ndarray:
        """True for items whose likeliest class is wrong."""
        return self.chances.argmax(1) != self.truth


class Stated(NamedTuple):
    """Probabilities of the classes of a crowd under each draw of the unknowns, shape (draw, item):
    of the true class, and of the one that the model takes."""

    unknowns: dict[str, np.ndarray]
    of_truth: np.ndarray
    of_choice: np.ndarray


def public(folder: Path, model: Any, seed: int) -> Crowd:
    """A public crowd, fitted."""
    labels, known = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("labels", "truth"))
    classes = sorted(set(labels["label"]) | set(known["label"]))
    data = rt.Labels.from_frame(
        labels, item="item", annotator="annotator", label="label", classes=classes
    )
    true_class = dict(zip(known["item"], known["label"], strict=True))
    rows = np.array([row for row, item in enumerate(data.items) if str(item) in true_class])
    truth = np.array([classes.index(true_class[str(data.items[row])]) for row in rows])
    return fitted(folder.name, data, rows, truth, model, seed)


def simulated(classes: int, labels: int, accuracy: float, model: Any, seed: int) -> Crowd:
    """A simulated crowd whose mistakes are independent, fitted."""
    data, truth = rt.datasets.label_crowd(600, 40, labels, classes, accuracy=accuracy, seed=seed)
    name = f"{classes} classes, {labels} labels"
    return fitted(name, data, np.arange(600), truth["true_class"], model, seed)


def fitted(
    name: str, data: rt.Labels, rows: np.ndarray, truth: np.ndarray, model: Any, seed: int
) -> Crowd:
    """The items of known class of a crowd, fitted by the default back-end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, data, seed=seed, progress=False, log_likelihood=False)
    chances = result["classes"]["responsibility"].transpose("item", "true_class").values
    chances, votes = np.asarray(chances, float), data.votes()
    evidence = Evidence.of(chances, votes)
    seen = visible_dependence(data, chances)
    return Crowd(name, chances[rows], votes[rows], truth, evidence.at(rows), seen)


def stated(crowd: Crowd, draws: int) -> Stated:
    """Probabilities under draws of the unknowns from a broad proposal, and of some whose mistakes
    are independent."""
    classes = crowd.chances.shape[1]
    places = qmc.Sobol(3 + classes, seed=0).random(draws)
    alone = np.arange(draws) < draws * INDEPENDENT
    low, high = np.log(DEPENDENCE[0]), np.log(DEPENDENCE[1])
    least, most = logit(SHARED[0]), logit(SHARED[1])
    unknowns = {
        "log_dependence": np.where(alone, -np.inf, low + places[:, 0] * (high - low)),
        "logit_shared": np.where(alone, -np.inf, least + places[:, 1] * (most - least)),
        "by_vote": np.where(alone, 0.0, places[:, 2]),
        "tilt": TILT * norm.ppf(places[:, 3:]),
    }
    chosen = crowd.chances.argmax(1)
    parts = [
        probabilities(crowd, {name: value[first : first + 256] for name, value in unknowns.items()})
        for first in range(0, draws, 256)
    ]
    of_truth, of_choice = (
        np.concatenate([part[:, np.arange(len(which)), which] for part in parts])
        for which in (crowd.truth, chosen)
    )
    return Stated(unknowns, of_truth, of_choice)


def probabilities(crowd: Crowd, unknowns: dict[str, np.ndarray]) -> np.ndarray:
    """Probability of each class of each item, shape (draw, item, class)."""
    named = {
        "dependence": np.exp(unknowns["log_dependence"]),
        "shared": expit(unknowns["logit_shared"]),
        "by_vote": unknowns["by_vote"],
        "tilt": unknowns["tilt"],
    }
    return np.asarray(_PROBS(crowd.evidence, named), float)


def log_prior(prior: np.ndarray, crowd: Crowd, unknowns: dict[str, np.ndarray]) -> np.ndarray:
    """Log weight of each draw: two Student distributions and a beta one against the proposal, and
    the probability of independent mistakes."""
    here = prior_of(prior).given(crowd.seen)
    shares = np.clip(unknowns["by_vote"], 1e-3, 1 - 1e-3)
    total = (
        student.logpdf(unknowns["log_dependence"], FREEDOM, *here.dependence)
        + student.logpdf(unknowns["logit_shared"], FREEDOM, *here.shared)
        + beta.logpdf(shares, *here.by_vote)
    )
    alone = np.isneginf(unknowns["log_dependence"])
    total += np.log1p(-here.independent) - logsumexp(total)
    return np.where(alone, np.log(here.independent / alone.sum()), total)


def prior_of(values: np.ndarray) -> Prior:
    """The prior with the parameters that are learned."""
    return PRIOR._replace(
        dependence=(values[0], np.exp(values[1])),
        shared=(values[2], np.exp(values[3])),
        by_vote=(np.exp(values[4]), np.exp(values[5])),
    )


def learned(crowds: Sequence[Crowd], tables: Sequence[Stated]) -> np.ndarray:
    """Parameters of the prior that give the known classes their largest density, with weak normal
    priors on the logarithms of its widths."""
    evidence = [np.log(np.maximum(one.of_truth, 1e-6)).sum(1) for one in tables]

    def loss(prior: np.ndarray) -> float:
        fit = sum(
            crowd.weight * logsumexp(log_prior(prior, crowd, one.unknowns) + known)
            for crowd, one, known in zip(crowds, tables, evidence, strict=True)
        )
        apart = np.array([prior[1], prior[3], prior[4], prior[5] - 0.7]) / 0.5
        return float(0.5 * apart @ apart - fit)

    start = np.array([np.log(0.3), -0.1, logit(0.01), 0.4, 0.0, 0.7])
    bounds = [(-4, 2), (-1.5, 1.5), (-9, 0), (-1.5, 1.5), (-2, 2), (-2, 3)]
    return np.asarray(minimize(loss, start, method="L-BFGS-B", bounds=bounds).x)


def scored(
    crowd: Crowd, one: Stated, prior: np.ndarray, gold: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Expected number of wrong labels among the items that are not gold, its 90 % interval, the
    number that is wrong, and the log-loss."""
    rest = np.setdiff1d(np.arange(len(crowd.truth)), gold)
    log_weight = log_prior(prior, crowd, one.unknowns)
    log_weight += np.log(np.maximum(one.of_truth[:, gold], 1e-6)).sum(1)
    weight = np.exp(log_weight - logsumexp(log_weight))
    doubt = 1 - one.of_choice[:, rest]
    mean, deviation = doubt.sum(1), np.sqrt((doubt * (1 - doubt)).sum(1))
    drawn = rng.choice(len(weight), 2000, p=weight)
    low, high = np.quantile(rng.normal(mean[drawn], deviation[drawn]), [0.05, 0.95])
    wrong = float(crowd.is_wrong[rest].sum())
    return {
        "expected": float(weight @ mean),
        "low": float(low),
        "high": float(high),
        "wrong": wrong,
        "log_ratio": float(np.log(max(wrong, 0.5) / (weight @ mean))),
        "holds": float(low - 0.5 <= wrong <= high + 0.5),
        "log_loss": float(-np.log(np.maximum(weight @ one.of_truth[:, rest], 1e-12)).mean()),
        "log_ratio_of_gold": float(
            np.log(max(wrong, 0.5) / (max(crowd.is_wrong[gold].mean(), 0.01) * len(rest)))
        )
        if len(gold)
        else np.nan,
    }


def compared(crowd: Crowd, one: Stated, prior: np.ndarray, seed: int) -> dict[str, float]:
    """All numbers of one crowd, by a prior that was learned without it."""
    rng = np.random.default_rng(seed)
    alone = scored(crowd, one, prior, np.zeros(0, int), rng)
    anchored = pd.DataFrame(
        [
            scored(crowd, one, prior, rng.choice(len(crowd.truth), GOLD, replace=False), rng)
            for _ in range(REPEATS)
        ]
    )
    shares = np.maximum(crowd.votes / np.maximum(crowd.votes.sum(1, keepdims=True), 1), FLOOR)
    shares /= shares.sum(1, keepdims=True)
    places = np.arange(len(crowd.truth)), crowd.truth
    return alone | {
        "by model": float((1 - crowd.chances.max(1)).sum()),
        "loss of model": float(-np.log(np.maximum(crowd.chances[places], 1e-12)).mean()),
        "loss of votes": float(-np.log(shares[places]).mean()),
        "log ratio with gold": float(anchored["log_ratio"].mean()),
        "rms with gold": float(np.sqrt((anchored["log_ratio"] ** 2).mean())),
        "rms of gold": float(np.sqrt((anchored["log_ratio_of_gold"] ** 2).mean())),
        "holds with gold": float(anchored["holds"].mean()),
        "loss with gold": float(anchored["log_loss"].mean()),
    }


def summary(rows: pd.DataFrame, weight: np.ndarray) -> str:
    """One paragraph of what the table shows, twins counted half each."""

    def mean(column: str) -> float:
        return float(np.average(rows[column], weights=weight))

    order = np.argsort(np.abs(rows["log_ratio"].values))
    middle = order[np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
    worst = (rows["log_loss"] - rows["loss of votes"]).max()
    rms = np.sqrt(np.average(rows["rms with gold"] ** 2, weights=weight))
    return (
        f"Without gold: median |log(wrong / expected)|"
        f" {abs(rows['log_ratio'].values[middle]):.2f}; the 90 % interval holds in"
        f" {(weight * rows['holds']).sum():.1f} of {weight.sum():.0f} crowds; log-loss"
        f" {mean('log_loss'):.3f} (model {mean('loss of model'):.3f}, vote shares"
        f" {mean('loss of votes'):.3f}; at most {worst:+.3f} of these). With {GOLD} gold items:"
        f" root mean square {rms:.2f}, coverage {mean('holds with gold'):.2f}, log-loss"
        f" {mean('loss with gold'):.3f}; the gold items' own share of mistakes is further off on"
        f" {int((rows['rms with gold'] < rows['rms of gold']).sum())} of {len(rows)} sets."
    )


def of_independent(prior: np.ndarray, model: Any, draws: int, number: int) -> str:
    """Table of simulated crowds with independent mistakes, means over some of each kind."""
    header = ["crowd", "wrong", "by model", "expected", "holds", "loss of model", "log_loss"]
    with_gold = ["expected / wrong with gold", "holds with gold", "loss with gold"]
    rows = []
    for kind in SIMULATED:
        each = []
        for seed in range(number):
            crowd = simulated(*kind, model, seed)
            each.append({"crowd": crowd.name} | compared(crowd, stated(crowd, draws), prior, seed))
        found = pd.DataFrame(each)
        found["expected / wrong with gold"] = np.exp(-found["log ratio with gold"])
        rows.append([found["crowd"][0], *found[[*header[1:], *with_gold]].mean()])
    return table([*header, *with_gold], rows)


def main() -> None:
    """Fit the crowds, learn the prior without each of them, and report."""
    given = options(
        __doc__,
        data=("../shared/data", "folder with the crowds"),
        model=("DawidSkene", "model of the labels", *RESULTS),
    )
    model = getattr(rt, given.model)()
    names = CROWDS[:3] if given.quick else CROWDS
    draws, number = (512, 2) if given.quick else (4096, SEEDS)
    crowds = [public(Path(given.data) / name, model, given.seed) for name in names]
    tables = [stated(crowd, draws) for crowd in crowds]
    found: list[dict[str, Any]] = []
    for crowd, one in zip(crowds, tables, strict=True):
        left_out = TWINS if crowd.name in TWINS else (crowd.name,)
        others = [place for place, other in enumerate(crowds) if other.name not in left_out]
        prior = learned([crowds[place] for place in others], [tables[place] for place in others])
        found.append({"crowd": crowd.name} | compared(crowd, one, prior, given.seed))
    rows = pd.DataFrame(found)
    shown = rows[
        [
            *("crowd", "wrong", "by model", "expected", "low", "high", "loss of model"),
            *("loss of votes", "log_loss", "rms with gold", "rms of gold", "holds with gold"),
        ]
    ]
    weight = np.array([crowd.weight for crowd in crowds])
    prior = learned(crowds, tables)
    text = (
        f"Prior learned from all: log dependence {prior[0]:.2f} (spread {np.exp(prior[1]):.2f}),"
        f" shared {expit(prior[2]):.4f} (logit spread"
        f" {np.exp(prior[3]):.2f}), by_vote Beta({np.exp(prior[4]):.2f}, {np.exp(prior[5]):.2f})."
    )
    parts = [table(list(shown.columns), shown.values.tolist()), summary(rows, weight), text]
    parts += ["## Independent mistakes", of_independent(prior, model, draws, number)]
    title = "Numbers of wrong labels on public crowds"
    report(RESULTS[given.model], title, parts, given.quick)


if __name__ == "__main__":
    main()
