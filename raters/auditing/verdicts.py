"""Verdicts: the action of least expected cost, what it takes to drop somebody, and draws enough for
either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, Shaped

from raters.auditing.words import worded
from raters.errors.validation import positive
from raters.inference.mixing import FEWEST_DRAWS, Mixing, known, mixing
from raters.program import Program, Site

PerJudge = Float[np.ndarray, " judge"]
Flags = Bool[np.ndarray, " judge"]
PerRow = Float[np.ndarray, " row"]
Columns = Mapping[str, np.ndarray]

# In place of ``drop`` where little but the agreement of the crowd tells who is right.
DIFFERS = "differs from the crowd"
IN_QUESTION = ("drop", DIFFERS, "review")
VERDICTS = (*IN_QUESTION, "keep", "too few judgements", "too few draws")


@dataclass(frozen=True)
class Costs:
    """Costs of decisions about an annotator, relative to each other.

    Parameters
    ----------
    keep_bad : float
        Keeping an annotator whose competence is below the threshold.
    drop_good : float
        Dropping one whose competence is above it.
    review : float
        Looking into an annotator's votes, whatever the outcome.
    """

    keep_bad: float = 1.0
    drop_good: float = 1.0
    review: float = 0.2

    def __post_init__(self) -> None:
        for name in ("keep_bad", "drop_good", "review"):
            positive(name, getattr(self, name))


def verdicts(p_bad: PerJudge, costs: Costs, may_drop: Flags) -> Shaped[np.ndarray, " judge"]:
    """The action of least expected cost."""
    expected = np.stack(
        [p_bad * costs.keep_bad, np.full(len(p_bad), costs.review), (1 - p_bad) * costs.drop_good]
    )
    actions = np.array(["keep", "review", "drop"], dtype=object)[np.argmin(expected, axis=0)]
    actions[(actions == "drop") & ~may_drop] = DIFFERS
    return actions


def decided(
    columns: Columns, costs: Costs, may_drop: Flags, least: int, *, alone: bool, enough: Flags
) -> Shaped[np.ndarray, " judge"]:
    """Verdicts by costs, and on whom there is too little for one."""
    verdict = verdicts(columns["p_below"], costs, may_drop)
    if alone:  # The prior alone would keep them.
        verdict[:] = "review"
    verdict[~enough] = "too few draws"
    verdict[columns["judgements"] < least] = "too few judgements"
    return verdict


def rule(many: str, p: str, least: int, costs: Costs, *, anchored: bool) -> str:
    """The rule in words; `many` is the word for judgements."""
    facts = {"many": many, "p": p, "least": least, "draws": FEWEST_DRAWS, "costs": costs}
    return worded("rule", **facts, differs=DIFFERS, anchored=anchored)


def share_of(judge: Int[np.ndarray, " row"], votes: PerRow, weight: PerRow, size: int) -> PerJudge:
    """Share of each judge's judgements that some votes are; NaN without judgements."""
    with np.errstate(invalid="ignore"):
        return np.bincount(judge, votes, size) / np.bincount(judge, weight, size)


def gives_one_answer(same: PerJudge, number: PerJudge, chance: PerJudge) -> Flags:
    """Judges who always answer alike, which by chance less than one of a thousand would."""
    return np.asarray((same == number) & (chance**number < 1e-3))


# ---------------------------------------------------------------- precision


def mixing_of(
    program: Program[Any], result: xr.DataTree, sites: Mapping[str, Site] | None = None
) -> dict[str, Mixing]:
    """Mixing of the draws of each site."""
    posterior = result["posterior"]
    draws = {
        name: posterior[name].transpose("chain", "draw", *site.dims).values
        for name, site in (sites or program.sites).items()
    }
    return {name: mixing(values) for name, values in draws.items()} if known(draws) else {}


def effective_draws(
    program: Program[Any], result: xr.DataTree, mixed: Mapping[str, Mixing] | None = None
) -> PerJudge:
    """Effective number of draws behind each judge: the smallest over the entries of their sites."""
    judge, judges = program.data.judge, len(program.data.judges)
    recorded = float(result.attrs.get("min_ess", np.inf))
    most = recorded if "pareto_k" in result.attrs else np.inf
    sites = {name: site for name, site in program.sites.items() if judge in site.dims}
    sites = sites or program.sites
    mixed = mixing_of(program, result, sites) if mixed is None else mixed
    if not mixed:
        return np.zeros(judges)
    smallest = np.full(judges, most)
    for name, site in sites.items():
        others = tuple(place for place, axis in enumerate(site.dims) if axis != judge)
        smallest = np.minimum(smallest, mixed[name].ess.min(others))
    return smallest


def enough(program: Program[Any], result: xr.DataTree) -> Bool[np.ndarray, " judge"]:
    """True for each judge whose draws are enough for a verdict."""
    if float(result.attrs.get("min_ess", 0.0)) >= FEWEST_DRAWS:
        return np.ones(len(program.data.judges), bool)
    return np.asarray(effective_draws(program, result) >= FEWEST_DRAWS)


def margin_of_error(probability: PerJudge, draws: PerJudge) -> PerJudge:
    """Two Monte-Carlo standard errors of a probability from so many effective draws."""
    middle = (probability * draws + 0.5) / (draws + 1)
    return np.asarray(2 * np.sqrt(middle * (1 - middle) / np.maximum(draws, 1)))
