"""Conclusions of a report that stand although the chains have not mixed as well as is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from raters.auditing.audit import Audit, verdicts
from raters.auditing.precision import FEWEST_DRAWS, effective_draws, margin_of_error
from raters.inference.mixing import known, mixing
from raters.program import Program

# R-hat above which chains disagree, and effective draws of each chain below which they are short.
LARGEST_RHAT = 1.01
SHORT = 100


@dataclass(frozen=True)
class Standing:
    """What has not mixed, and what hangs on it.

    Attributes
    ----------
    poor : dict of str to (float, float)
        Sites with too large an R-hat or too small an effective sample size: the largest and the
        smallest of their entries.
    verdicts : list
        Judges whose verdict is within the Monte-Carlo error of another one, or who have none for
        want of draws.
    values : list of str
        Sites with an entry for each item, judge or the like, of which some have too few effective
        draws.
    """

    poor: dict[str, tuple[float, float]] = field(default_factory=dict)
    verdicts: list[Any] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    @property
    def all_stands(self) -> bool:
        """Whether everything that a report states stands."""
        return not self.verdicts and not self.values


def standing(program: Program[Any], result: xr.DataTree, audit: Audit) -> Standing | None:
    """Standing of the conclusions of a report.

    Returns
    -------
    Standing or None
        None where there are not two chains of enough finite draws to tell.
    """
    posterior = result["posterior"]
    draws = {
        name: posterior[name].transpose("chain", "draw", *site.dims).values
        for name, site in program.sites.items()
    }
    chains = posterior.sizes["chain"]
    if chains < 2 or not known(draws):
        return None
    poor, values = {}, []
    for name, site in program.sites.items():
        of_site = mixing(draws[name])
        worst = float(of_site.rhat.max(initial=1.0)), float(of_site.ess.min(initial=np.inf))
        if worst[0] > LARGEST_RHAT or worst[1] < SHORT * chains:
            poor[name] = worst
        if site.dims and worst[1] < FEWEST_DRAWS:
            values.append(name)
    return Standing(poor, _open(program, result, audit), values)


def _open(program: Program[Any], result: xr.DataTree, audit: Audit) -> list[Any]:
    """Judges whose verdict may change."""
    verdict, p_below = audit.table["verdict"].values, audit.table["p_below"].values
    error = margin_of_error(p_below, effective_draws(program, result))
    lower, upper = (
        verdicts(np.clip(p_below + sign * error, 0, 1), audit.costs) for sign in (-1, 1)
    )
    may_change = (verdict == "too few draws") | (
        (verdict != "too few judgements") & ((lower != verdict) | (upper != verdict))
    )
    names: list[Any] = audit.table[audit.judge].values[may_change].tolist()
    return names
