"""Guessers and adversaries in simulated votes: do the stated probabilities come true, and are wrong
drops as rare as said?

Votes are drawn (a) from the model's own prior, with known scales, under which the probabilities
must be calibrated, and (b) from a crowd that the model does not describe: fifths of guessers,
tenths of adversaries, the rest competent. Each table of votes is fitted and audited; P(adversarial)
and P(below threshold) of all annotators are pooled and binned.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from _common import RESULTS, options, report, table

import raters as rt
from raters.errors import ConvergenceWarning

THRESHOLD = 0.25
EDGES = np.array([0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0])
SCALES = {"reward_scale": 1.5, "competence_spread": 0.6}


class Audited(NamedTuple):
    """Stated probabilities and what is true, for all annotators of all tables of votes."""

    p_adversarial: np.ndarray
    adversarial: np.ndarray
    p_below: np.ndarray
    below: np.ndarray
    dropped: np.ndarray
    stated_wrong: np.ndarray
    drops_by_table: np.ndarray


def questions(items: int, annotators: int, number: int, rng: np.random.Generator) -> rt.Comparisons:
    """Uniform pairs and annotators, one vote in each row."""
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    columns = (
        column.astype(np.int32) for column in (first, second, rng.integers(annotators, size=number))
    )
    return rt.Comparisons(*columns, None, None, tuple(range(items)), tuple(range(annotators)))


def from_prior(seed: int) -> tuple[Any, rt.Comparisons, np.ndarray]:
    """The model, votes drawn from its prior, and the competences."""
    model = rt.ExtendedBTL(competence="signed", **SCALES)
    asked = questions(20, 30, 900, np.random.default_rng([seed, 1]))
    votes, truth = rt.simulate(model, asked, seed=seed)
    return model, votes, truth["competence"]


def from_crowd(seed: int) -> tuple[Any, rt.Comparisons, np.ndarray]:
    """The default model with learned scales, votes of a crowd with guessers and adversaries, and
    the competences."""
    votes, truth = rt.datasets.crowd(20, 30, 900, seed=seed)
    return rt.ExtendedBTL(competence="signed"), votes, truth["competence"]


def audit_all(source: Any, seeds: range, backend: Any) -> Audited:
    """Simulate, fit and audit once for each seed."""
    parts = []
    for seed in seeds:
        model, votes, competence = source(seed)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # short chains; calibration shows whether they suffice
            result = rt.fit(model, votes, backend, seed=seed, progress=False, log_likelihood=False)
        judged = rt.audit(model, result, threshold=THRESHOLD).table
        drop = judged["verdict"].values == "drop"
        p_below = judged["p_below"].values
        parts.append(
            (
                judged["p_adversarial"].values,
                competence < 0,
                p_below,
                competence < THRESHOLD,
                drop,
                np.where(drop, 1 - p_below, 0.0),
                np.array([drop.sum()]),
            )
        )
    return Audited(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def calibration(stated: np.ndarray, true: np.ndarray) -> list[list[Any]]:
    """For each bin: number, mean stated probability, share true with its standard error, and the
    difference in such errors."""
    rows = []
    for low, high in pairwise(EDGES):
        inside = (stated >= low) & ((stated < high) | (high == 1.0))
        if not inside.any():
            continue
        number, mean, share = int(inside.sum()), stated[inside].mean(), true[inside].mean()
        error = float(np.sqrt((stated[inside] * (1 - stated[inside])).sum())) / number
        rows.append(
            [
                f"{low:g}–{high:g}",
                number,
                mean,
                share,
                error,
                (share - mean) / error if error > 0 else float("nan"),
            ]
        )
    return rows


def figure(found: dict[str, Audited]) -> str:
    """Reliability plots, as results/adversaries.png."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharey=True)[1]
    for axes, kind in zip(panels, ("adversarial", "below"), strict=True):
        for colour, marker, (name, audited) in zip(("C0", "C1"), "os", found.items(), strict=False):
            rows = calibration(getattr(audited, f"p_{kind}"), getattr(audited, kind))
            _, _, mean, share, error, _ = map(np.array, zip(*rows, strict=True))
            axes.errorbar(
                mean, share, 2 * error, fmt=f"{marker}-", color=colour, capsize=3, label=name
            )
        axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="calibrated")
        axes.set(
            xlabel="P(adversarial)" if kind == "adversarial" else f"P(competence < {THRESHOLD})",
            xlim=(-0.03, 1.03),
        )
    panels[0].set(ylabel="share for whom it is true (bars: 2 standard errors)", ylim=(-0.05, 1.05))
    panels[1].legend(loc="lower right")
    RESULTS.mkdir(exist_ok=True)
    panels[0].figure.savefig(RESULTS / "adversaries.png", dpi=150)
    return "![Reliability](adversaries.png)"


def drops_row(name: str, audited: Audited) -> list[Any]:
    """Expected and actual wrong drops, and how many of the bad are found."""
    number = int(audited.dropped.sum())
    wrong = int((audited.dropped & ~audited.below).sum())
    stated = float(audited.stated_wrong.sum())
    error = float(np.sqrt((audited.stated_wrong * (1 - audited.stated_wrong)).sum()))
    found = float((audited.dropped & audited.below).sum() / max(audited.below.sum(), 1))
    adversaries = float(
        (audited.dropped & audited.adversarial).sum() / max(audited.adversarial.sum(), 1)
    )
    return [
        name,
        number,
        stated / max(number, 1),
        wrong / max(number, 1),
        (wrong - stated) / error,
        found,
        adversaries,
    ]


def main() -> None:
    """Both sources of votes."""
    arguments = options(__doc__ or "", tables=(150, "tables of votes from each source"))
    number = 6 if arguments.quick else arguments.tables
    backend = rt.PGGibbs(
        draws=200 if arguments.quick else 500, warmup=100 if arguments.quick else 200, chains=2
    )
    seeds = range(1000 * arguments.seed, 1000 * arguments.seed + number)
    found = {}
    for name, source in (
        ("the model's own prior", from_prior),
        ("crowd with guessers, adversaries", from_crowd),
    ):
        found[name] = audit_all(source, seeds, backend)
        print(f"  {name}: done", flush=True)
    header = ["stated", "annotators", "mean stated", "share true", "its error", "z"]
    parts = []
    for name, audited in found.items():
        for kind, words in (
            ("adversarial", "P(adversarial)"),
            ("below", f"P(competence < {THRESHOLD})"),
        ):
            rows = calibration(getattr(audited, f"p_{kind}"), getattr(audited, kind))
            parts += [f"## {words}, votes from {name}", table(header, rows)]
    header = [
        "votes from",
        "dropped",
        "stated share of wrong drops",
        "actual",
        "z",
        "bad found",
        "adversaries found",
    ]
    parts += [
        "## Wrong drops",
        table(header, [drops_row(name, audited) for name, audited in found.items()]),
    ]
    note = f"""\
{number} tables of 900 votes by 30 annotators about 20 items from each source; {backend!r}. *z*:
share true less mean stated, in standard errors that the stated probabilities imply; within ±3 where
the probabilities are right. They are promised only under the model's own prior (scales {SCALES},
known); the crowd's competences have three lumps, which a normal prior smooths. A guesser sits at
exactly 0 and counts as no adversary, where a continuous posterior says about ½. *Bad found*: share
of those below {THRESHOLD} that were dropped.

**The limit.** An annotator casts 30 votes here on average; a guesser (competence 0) and one at
{THRESHOLD} differ by a few points of accuracy, so the middle bins cannot be emptied by any method,
only called by their right probability."""
    title = "Guessers and adversaries: do the probabilities come true?"
    report("adversaries", title, [figure(found), *parts, note], arguments.quick)


if __name__ == "__main__":
    main()
