"""Reading difficulty (12,728 votes by 624 workers): order of the texts against grade levels,
competence against quality.

Kendall's τ of the estimated rewards with the grade levels, for plain BTL and for signed
Extended-BTL, and Spearman's ρ of the estimated competences with the quality recorded for each
worker elsewhere; beside crowd-kit on the same votes. The data are looked for in $RATERS_DATA, or
else in ../shared/data beside the repository.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table, timed
from scipy.stats import kendalltau, spearmanr

import raters as rt
from raters.errors import ConvergenceWarning, DataWarning

_REPOSITORY = Path(__file__).resolve().parents[1]


def load() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Votes, grade level of each item, quality of each annotator."""
    folder = (
        Path(os.environ.get("RATERS_DATA", _REPOSITORY.parent / "shared" / "data"))
        / "reading_level"
    )
    if not folder.is_dir():
        sys.exit(f"no folder {folder}; set RATERS_DATA to the folder that holds reading_level/")
    votes = pd.read_csv(folder / "comparisons.csv", dtype=str).query(
        "winner != loser"
    )  # two rows compare a text with itself
    grade = pd.read_csv(folder / "items.csv", dtype={"item": str}).set_index("item")["grade_level"]
    quality = pd.read_csv(folder / "annotators.csv", dtype={"annotator": str}).set_index(
        "annotator"
    )["recorded_quality"]
    return votes, grade, quality


def fit_row(
    name: str, model: Any, backend: Any, votes: rt.Comparisons, grade, quality, seed: int
) -> list[Any]:
    """One fit, scored."""
    with warnings.catch_warnings():
        for kind in (
            DataWarning,
            ConvergenceWarning,
        ):  # components of the graph, short runs: not what this shows
            warnings.simplefilter("ignore", kind)
        run = timed(
            lambda: rt.fit(model, votes, backend, seed=seed, progress=False, log_likelihood=False),
            most=1,
        )
    posterior = run.value["posterior"]
    reward = posterior["reward"].mean(("chain", "draw")).values
    competence = (
        posterior["competence"].mean(("chain", "draw")).values
        if "competence" in posterior
        else None
    )
    return [
        name,
        type(backend).__name__,
        *scores(votes, reward, competence, grade, quality),
        run.seconds,
    ]


def scores(votes: rt.Comparisons, reward, competence, grade, quality) -> list[Any]:
    """τ with the grades; ρ with the qualities for all, and for those with ten votes; number below
    zero."""
    tau = kendalltau(reward, grade.loc[list(votes.items)]).statistic
    if competence is None:
        return [tau, float("nan"), float("nan"), "–"]
    recorded = quality.reindex(list(votes.annotators)).to_numpy(float)
    known = np.isfinite(recorded)
    often = known & (votes.judgements_by("annotator") >= 10)
    rho = [spearmanr(competence[rows], recorded[rows]).statistic for rows in (known, often)]
    return [tau, *rho, int((competence < 0).sum())]


def crowdkit_rows(
    frame: pd.DataFrame, votes: rt.Comparisons, grade, quality, seed: int
) -> list[list[Any]]:
    """crowd-kit's two models of pairwise votes."""
    from crowdkit.aggregation import BradleyTerry, NoisyBradleyTerry

    columns = {
        "worker": frame["annotator"],
        "left": frame["winner"],
        "right": frame["loser"],
        "label": frame["winner"],
    }
    table_of_votes = pd.DataFrame(columns)
    rows = []
    for solver in (BradleyTerry(n_iter=1000), NoisyBradleyTerry(n_iter=100, random_state=seed)):
        with np.errstate(all="ignore"):  # overflows inside crowd-kit
            run = timed(lambda solver=solver: solver.fit(table_of_votes), most=1)
        reward = solver.scores_.loc[list(votes.items)].to_numpy()
        skill = getattr(solver, "skills_", None)
        competence = None if skill is None else skill.loc[list(votes.annotators)].to_numpy()
        # Its skill is the probability of looking at the items at all, so it has no sign to count.
        scored = [*scores(votes, reward, competence, grade, quality)[:3], "–"]
        rows.append([f"crowd-kit {type(solver).__name__}", "–", *scored, run.seconds])
    return rows


NOTE = """\
*τ*: Kendall's, of posterior mean rewards with grade levels (ties in the grades: τ-b). *ρ*:
Spearman's, of posterior mean competences with the recorded quality, over all annotators who have
one, and over those with at least 10 votes. *Below 0*: annotators with negative posterior mean
competence. Seconds include compilation. Targets: τ ≥ .36 signed (plain BTL about .348), ρ ≥ .50,
about 14 negative.

**The limit.** Two votes in three (67.4 %) agree with the grades, and few pairs of texts are
compared: what the votes do not say no model can find. Plain BTL, the whole posterior of it or its
mode, is at .348."""


def main() -> None:
    """Fit, score, tabulate."""
    arguments = options(__doc__ or "")
    frame, grade, quality = load()
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    gibbs = (
        rt.PGGibbs(draws=100, warmup=50, chains=2)
        if arguments.quick
        else rt.PGGibbs(draws=500, warmup=300, chains=2)
    )
    svi = rt.SVI(steps=1000 if arguments.quick else 10_000)
    rows = []
    for name, model in (
        ("BTL", rt.BTL()),
        ("ExtendedBTL, signed", rt.ExtendedBTL(competence="signed")),
    ):
        for backend in (gibbs, rt.PGEM(), svi):
            rows.append(fit_row(name, model, backend, votes, grade, quality, arguments.seed))
            print("  ", rows[-1], flush=True)
    rows += crowdkit_rows(frame, votes, grade, quality, arguments.seed)
    header = ["model", "back-end", "τ", "ρ all", "ρ of ≥ 10 votes", "below 0", "seconds"]
    report(
        "reading_level",
        "Reading difficulty: real votes with known answers",
        [table(header, rows), NOTE],
        arguments.quick,
    )


if __name__ == "__main__":
    main()
