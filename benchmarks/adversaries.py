"""Guessers and adversaries in simulated votes: do the stated probabilities come true, and are wrong
drops as rare as said?

Votes are drawn (a) from the prior of `ExtendedBTL`, (b) from that of `GuesserBTL`, each with known
scales, and (c) from a crowd of fifths of guessers, tenths of adversaries, the rest competent. Each
table of votes is fitted and audited by the model of ``--model``; P(guesser), P(adversarial) and
P(below threshold) of all annotators are pooled and binned. A model must be calibrated under its own
prior; `ExtendedBTL` is not fitted to (b).
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
OWN_SCALES = {"reward_scale": 1.5, "competence_spread": 0.3}
ROWS = 900
KINDS = {
    "guessing": "P(guesser)",
    "adversarial": "P(adversarial)",
    "below": f"P(competence < {THRESHOLD})",
}
NOTE = """\
{number} tables of {rows} votes by 30 annotators about 20 items from each source; {backend!r}. *z*:
share true less mean stated, in standard errors that the stated probabilities imply; within ±3 where
the probabilities are right. A guesser has a competence of exactly 0; from the prior of ExtendedBTL,
where nobody has, one within {limit} of it. ExtendedBTL calls a guess an accuracy within .05 of ½,
and its normal prior smooths the three lumps of the crowd. GuesserBTL learns the spread of the
competences, and both scales, where votes are not from its own prior.
Dropped: P(competence < {limit}) above .8. *Bad found*: share of those below {limit} that were
dropped.

**The limit.** An annotator casts 30 votes here on average; a guesser (competence 0) and one at
{limit} differ by a few points of accuracy, so the middle bins cannot be emptied by any method, only
called by their right probability."""


class Audited(NamedTuple):
    """Stated probabilities and what is true, for all annotators of all tables of votes."""

    p_guessing: np.ndarray
    guessing: np.ndarray
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


def from_extended(seed: int, fitted: str) -> tuple[Any, rt.Comparisons, np.ndarray]:
    """The model, votes drawn from the prior of `ExtendedBTL`, and the competences."""
    drawn = rt.ExtendedBTL(competence="signed", **SCALES)
    asked = questions(20, 30, ROWS, np.random.default_rng([seed, 1]))
    votes, truth = rt.simulate(drawn, asked, seed=seed)
    return (
        (drawn if fitted == "extended-btl" else rt.models.GuesserBTL()),
        votes,
        truth["competence"],
    )


def from_guesser(seed: int, fitted: str) -> tuple[Any, rt.Comparisons, np.ndarray]:
    """`GuesserBTL`, votes drawn from its prior, and the competences."""
    assert fitted == "guesser-btl"
    model = rt.models.GuesserBTL(**OWN_SCALES)
    asked = questions(20, 30, ROWS, np.random.default_rng([seed, 1]))
    votes, truth = rt.simulate(model, asked, seed=seed)
    return model, votes, np.array([1, 0, -1])[truth["type"]] * truth["competence"]


def from_crowd(seed: int, fitted: str) -> tuple[Any, rt.Comparisons, np.ndarray]:
    """The default model with learned scales, votes of a crowd with guessers and adversaries, and
    the competences."""
    votes, truth = rt.datasets.crowd(20, 30, ROWS, seed=seed)
    model = (
        rt.models.GuesserBTL() if fitted == "guesser-btl" else rt.ExtendedBTL(competence="signed")
    )
    # Tables of one size, for which nothing is compiled anew.
    return model, votes.padded(ROWS), truth["competence"]


def audit_all(source: Any, fitted: str, seeds: range, backend: Any) -> Audited:
    """Simulate, fit and audit once for each seed."""
    parts = []
    for seed in seeds:
        model, votes, competence = source(seed, fitted)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # short chains; calibration shows whether they suffice
            result = rt.fit(model, votes, backend, seed=seed, progress=False, log_likelihood=False)
        judged = rt.audit(model, result, reference="crowd", threshold=THRESHOLD).table
        p_below = judged["p_below"].values
        # The verdict, but for those who have too few draws in short chains.
        drop = p_below > 1 - rt.Costs().review
        near = THRESHOLD if source is from_extended else 0.0
        parts.append(
            (
                judged["p_guessing"].values,
                np.abs(competence) <= near,
                judged["p_adversarial"].values,
                competence < 0,
                p_below,
                competence < THRESHOLD,
                drop,
                np.where(drop, 1 - p_below, 0.0),
                np.array([drop.sum()]),
            )
        )
        print(f"  {source.__name__}, table {seed}: done", flush=True)
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


def figure(found: dict[str, Audited], name: str) -> str:
    """Reliability plots, as results/NAME.png."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", sharey=True)[1]
    for axes, (kind, words) in zip(panels, KINDS.items(), strict=True):
        for marker, (source, audited) in zip("osD", found.items(), strict=False):
            rows = calibration(getattr(audited, f"p_{kind}"), getattr(audited, kind))
            _, _, mean, share, error, _ = map(np.array, zip(*rows, strict=True))
            axes.errorbar(mean, share, 2 * error, fmt=f"{marker}-", capsize=3, label=source)
        axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="calibrated")
        axes.set(xlabel=words, xlim=(-0.03, 1.03))
    panels[0].set(ylabel="share for whom it is true (bars: 2 standard errors)", ylim=(-0.05, 1.05))
    panels[-1].legend(loc="lower right")
    RESULTS.mkdir(exist_ok=True)
    panels[0].figure.savefig(RESULTS / f"{name}.png", dpi=150)
    return f"![Reliability]({name}.png)"


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
        (wrong - stated) / error if error > 0 else float("nan"),
        found,
        adversaries,
    ]


def main() -> None:
    """All sources of votes."""
    arguments = options(
        __doc__ or "",
        tables=(150, "tables of votes from each source"),
        model=("extended-btl", "model that is fitted", "extended-btl", "guesser-btl"),
    )
    number = 6 if arguments.quick else arguments.tables
    backend = rt.PGGibbs(
        draws=200 if arguments.quick else 500, warmup=100 if arguments.quick else 200, chains=2
    )
    seeds = range(1000 * arguments.seed, 1000 * arguments.seed + number)
    sources = {"the prior of ExtendedBTL": from_extended}
    if arguments.model == "guesser-btl":
        sources["the prior of GuesserBTL"] = from_guesser
    sources["crowd with guessers, adversaries"] = from_crowd
    found = {
        name: audit_all(source, arguments.model, seeds, backend) for name, source in sources.items()
    }
    header = ["stated", "annotators", "mean stated", "share true", "its error", "z"]
    parts = []
    for name, audited in found.items():
        for kind, words in KINDS.items():
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
    note = NOTE.format(number=number, backend=backend, limit=THRESHOLD, rows=ROWS)
    name = "adversaries" if arguments.model == "extended-btl" else "adversaries_guesser"
    title = f"Guessers and adversaries, by {arguments.model}: do the probabilities come true?"
    report(name, title, [figure(found, name), *parts, note], arguments.quick)


if __name__ == "__main__":
    main()
