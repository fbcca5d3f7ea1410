"""Guessers and adversaries in simulated labels: do the stated probabilities come true, and are
wrong drops as rare as said?

Labels are drawn (a) from the prior of a model without types, (b) from that of a model with types,
(c) from crowds that no model describes exactly, with fifths of guessers and tenths of adversaries.
Each table of labels is fitted and audited, with and without types; P(guesser), P(adversary) and
P(competence < τ) of all annotators are pooled and binned. The crowd is taken to be right, so that
the numbers are the models' own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from _common import options, report, table
from adversaries import EDGES, THRESHOLD, calibration

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning
from raters.kinds.labels.audit import type_site
from raters.program import Program, trace

ITEMS, ANNOTATORS, EACH = 150, 30, 5
TYPES = ("competent", "guesser", "adversary")
PLAIN = {"one coin": rt.models.OneCoin(), "confusion": rt.DawidSkene()}
TYPED = {"one coin": rt.models.GuesserOneCoin(), "confusion": rt.models.GuesserDawidSkene()}


class Table(NamedTuple):
    """Labels, with the competence of each annotator, and the code of the type where there are
    any."""

    labels: rt.Labels
    competence: np.ndarray
    kind: np.ndarray | None


class Audited(NamedTuple):
    """Stated probabilities and what is true, for all annotators of all tables of labels."""

    p_spammer: np.ndarray
    p_adversarial: np.ndarray
    p_below: np.ndarray
    dropped: np.ndarray
    competence: np.ndarray
    kind: np.ndarray


def competence_of(confusion: np.ndarray) -> np.ndarray:
    """Mean share of right labels of the classes, from 0 for chance to 1."""
    chance = 1 / confusion.shape[-1]
    return (np.einsum("akk->ak", confusion).mean(1) - chance) / (1 - chance)


def asked(num_classes: int, seed: int) -> rt.Labels:
    """Labels to be drawn anew."""
    return rt.datasets.label_crowd(ITEMS, ANNOTATORS, EACH, num_classes, seed=seed).labels


def from_prior(model: Any, num_classes: int, seed: int) -> Table:
    """Labels drawn from a model's prior; the type, which the matrix leaves open, is drawn too."""
    labels, truth = rt.simulate(model, asked(num_classes, seed), seed=seed)
    kind, site = None, type_site(Program(model, labels))
    if site is not None:
        values = {name: jnp.asarray(value) for name, value in truth.items() if name != "true_class"}
        found = trace(model, jax.tree.map(jnp.asarray, labels), values)[site]
        probs = np.asarray(found["fn"].type_probs(found["value"]), float)
        cumulative = probs.cumsum(1) / probs.sum(1, keepdims=True)
        kind = (np.random.default_rng(seed).random((len(probs), 1)) > cumulative).sum(1)
    if "accuracy" in truth:
        chance = 1 / num_classes
        return Table(labels, (truth["accuracy"] - chance) / (1 - chance), kind)
    return Table(labels, competence_of(truth["confusion"]), kind)


def from_crowd(num_classes: int, seed: int) -> Table:
    """Labels of `raters.datasets.label_crowd`."""
    labels, truth = rt.datasets.label_crowd(
        ITEMS, ANNOTATORS, EACH, num_classes, spammers=0.2, adversaries=0.1, seed=seed
    )
    names = {"competent": 0, "spammer": 1, "adversary": 2}
    kind = np.array([names[str(each)] for each in truth["kind"]])
    return Table(labels, competence_of(truth["confusion"]), kind)


def from_coins(num_classes: int, seed: int) -> Table:
    """Labels of annotators with one accuracy each: guessers at chance, adversaries as often wrong
    as they can, competent ones between .6 and .95."""
    rng, labels = np.random.default_rng([seed, 2]), asked(num_classes, seed)
    kind = rng.permutation(np.repeat([0, 1, 2], [21, 6, 3]))
    chance, true_class = 1 / num_classes, rng.choice(num_classes, ITEMS)
    accuracy = np.select(
        [kind == 0, kind == 1],
        [rng.uniform(0.6, 0.95, ANNOTATORS), np.full(ANNOTATORS, chance)],
        rng.uniform(0.1, 0.6, ANNOTATORS) * chance,
    )
    item, annotator = np.asarray(labels.item), np.asarray(labels.annotator)
    wrong = (true_class[item] + rng.integers(1, num_classes, len(item))) % num_classes
    is_right = rng.random(len(item)) < accuracy[annotator]
    label = np.where(is_right, true_class[item], wrong).astype(np.int32)
    answered = labels.unanswered().answered(label)
    return Table(answered, (accuracy - chance) / (1 - chance), kind)


SOURCES: dict[str, tuple[Callable[[int], Table], tuple[str, ...]]] = {
    "OneCoin's prior, 2 classes": (
        lambda seed: from_prior(rt.models.OneCoin(), 2, seed),
        ("one coin",),
    ),
    "DawidSkene's prior, 2 classes": (
        lambda seed: from_prior(rt.DawidSkene(), 2, seed),
        ("confusion",),
    ),
    "GuesserOneCoin's prior, 2 classes": (
        lambda seed: from_prior(rt.models.GuesserOneCoin(), 2, seed),
        ("one coin",),
    ),
    "GuesserDawidSkene's prior, 2 classes": (
        lambda seed: from_prior(rt.models.GuesserDawidSkene(), 2, seed),
        ("confusion",),
    ),
    "coins, 2 classes": (lambda seed: from_coins(2, seed), ("one coin",)),
    "coins, 4 classes": (lambda seed: from_coins(4, seed), ("one coin",)),
    "label_crowd, 2 classes": (lambda seed: from_crowd(2, seed), ("confusion", "one coin")),
    "label_crowd, 4 classes": (lambda seed: from_crowd(4, seed), ("confusion",)),
}


def audit_one(draw: Callable[[int], Table], model: Any, seed: int, backend: Any) -> Audited:
    """Draw labels, fit and audit."""
    given = draw(seed)
    with warnings.catch_warnings():
        # Short chains, and crowds that leave classes open: calibration shows what they cost.
        for kind in (ConvergenceWarning, DataWarning):
            warnings.simplefilter("ignore", kind)
        result = rt.fit(
            model, given.labels, backend, seed=seed, progress=False, log_likelihood=False
        )
        judged = rt.audit(
            model, result, reference="crowd", threshold=THRESHOLD, min_judgements=0
        ).table
    return Audited(
        *(judged[name].values for name in ("p_spammer", "p_adversarial", "p_below")),
        dropped=judged["verdict"].values == "drop",
        competence=given.competence,
        kind=np.full(ANNOTATORS, -1) if given.kind is None else given.kind,
    )


def audit_all(
    draw: Callable[[int], Table], model: Any, seeds: range, backend: Any, folder: Path | None
) -> Audited:
    """Draw labels, fit and audit once for each seed; what is in the folder is not done again."""
    parts = []
    for seed in seeds:
        path = None if folder is None else folder / f"{seed}.npz"
        if path is not None and path.exists():
            with np.load(path) as stored:
                parts.append(Audited(*(stored[name] for name in Audited._fields)))
            continue
        parts.append(audit_one(draw, model, seed, backend))
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **parts[-1]._asdict())
    return Audited(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def log_loss(stated: np.ndarray, true: np.ndarray) -> float:
    """Mean of −log of the probability of what is true."""
    probs = np.clip(stated, 1e-3, 1 - 1e-3)
    return float(-np.log(np.where(true, probs, 1 - probs)).mean())


def statements(audited: Audited) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Stated probabilities and what is true, by what is stated."""
    below = {f"competence < {THRESHOLD}": (audited.p_below, audited.competence < THRESHOLD)}
    if audited.kind[0] < 0:
        return below
    return {
        "guesser": (audited.p_spammer, audited.kind == 1),
        "adversary": (audited.p_adversarial, audited.kind == 2),
    } | below


def summary_rows(name: str, model: Any, audited: Audited) -> list[list[Any]]:
    """Of each statement: largest |z| of the bins, and the log-loss."""
    rows = []
    for what, (stated, true) in statements(audited).items():
        bins = calibration(stated, true)
        worst = max(bins, key=lambda row: 0.0 if np.isnan(row[-1]) else abs(row[-1]))
        beyond = sum(abs(row[-1]) > 3 for row in bins)
        rows.append(
            [
                name,
                type(model).__name__,
                f"P({what})",
                log_loss(stated, true),
                worst[0],
                worst[-1],
                f"{beyond} of {len(bins)}",
            ]
        )
    return rows


def drops_row(name: str, model: Any, audited: Audited) -> list[Any]:
    """Expected and actual wrong drops, and how many of the bad are found."""
    below, dropped = audited.competence < THRESHOLD, audited.dropped
    each = np.where(dropped, 1 - audited.p_below, 0.0)
    number, stated = int(dropped.sum()), float(each.sum())
    wrong, error = int((dropped & ~below).sum()), float(np.sqrt((each * (1 - each)).sum()))
    return [
        name,
        type(model).__name__,
        number,
        stated / max(number, 1),
        wrong / max(number, 1),
        (wrong - stated) / error if error else float("nan"),
        float((dropped & below).sum() / max(below.sum(), 1)),
    ]


def main() -> None:
    """All sources of labels, with and without types."""
    arguments = options(
        __doc__ or "",
        tables=(30, "tables of labels from each source"),
        cache=(None, "folder for what was computed"),
        sources=("", "sources of labels, by how their names begin, separated by ;"),
        fill=(0, "1 to compute into the cache without a report"),
    )
    number = 3 if arguments.quick else arguments.tables
    draws = (100, 50) if arguments.quick else (250, 100)
    backend = rt.PGGibbs(draws=draws[0], warmup=draws[1], chains=2)
    seeds = range(1000 * arguments.seed, 1000 * arguments.seed + number)
    found: list[tuple[str, Any, Audited]] = []
    parts = arguments.sources.split(";")
    chosen = {name: SOURCES[name] for name in SOURCES if name.startswith(tuple(parts))}
    for name, (draw, forms) in chosen.items():
        for model in [models[form] for form in forms for models in (PLAIN, TYPED)]:
            key = f"{name} by {type(model).__name__}"
            folder = Path(arguments.cache, key.replace(" ", "_")) if arguments.cache else None
            audited = audit_all(draw, model, seeds, backend, folder)
            found.append((name, model, audited))
            print(f"  {key}: done", flush=True)
    if arguments.fill:
        return
    header = ["labels from", "model", "statement", "log-loss", "worst bin", "its z", "beyond ±3"]
    rows = [row for each in found for row in summary_rows(*each)]
    parts = ["## All statements", table(header, rows)]
    header = ["labels from", "model", "dropped", "stated share of wrong drops", "actual", "z"]
    drops = [drops_row(*each) for each in found]
    parts += ["## Wrong drops", table([*header, "bad found"], drops)]
    header = ["stated", "annotators", "mean stated", "share true", "its error", "z"]
    for name, model, audited in found:
        for what, (stated, true) in statements(audited).items():
            parts += [
                f"## P({what}) by {type(model).__name__}, labels from {name}",
                table(header, calibration(stated, true)),
            ]
    edges = ", ".join(f"{edge:g}" for edge in EDGES)
    note = f"""\
{number} tables of {ITEMS * EACH} labels by {ANNOTATORS} annotators of {ITEMS} items from each
source; {backend!r}. *z*: share true less mean stated, in standard errors that the stated
probabilities imply, in bins with the edges {edges}; within ±3 where the probabilities are right.
*Log-loss*: of the statement, for all annotators. In models without types P(guesser) is
P(information < .05 bits), and P(adversary) P(competence < 0 and no guesser). *Coins*: one accuracy
for each annotator, as the one-coin models say. In *label_crowd*, guessers prefer some classes at
random and adversaries give one wrong label of each class, neither of which a one-coin model can
say. *Bad found*: share of those below {THRESHOLD} that were dropped."""
    title = "Guessers and adversaries among labels: do the probabilities come true?"
    report("label_adversaries", title, [*parts, note], arguments.quick)


if __name__ == "__main__":
    main()
