"""Conclusions of a report that a longer run would not change, although the chains have not mixed as
well as is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from raters.auditing.audit import Audit
from raters.auditing.precision import effective_draws, margin_of_error, mixing_of
from raters.auditing.verdicts import DIFFERS, verdicts
from raters.inference.mixing import FEWEST_DRAWS, LARGEST_RHAT
from raters.program import Program


@dataclass(frozen=True)
class Standing:
    """Sites that have not mixed, and the conclusions that hang on them."""

    poor: dict[str, tuple[float, float]] = field(default_factory=dict)
    verdicts: list[Any] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    judged: bool = True

    @property
    def all_stands(self) -> bool:
        """True if a longer run would change no verdict and no value."""
        return not self.verdicts and not self.values


def standing(program: Program[Any], result: xr.DataTree, audit: Audit | None) -> Standing | None:
    """Standing of the conclusions of a report."""
    chains = result["posterior"].sizes["chain"]
    if chains < 2 or not (mixed := mixing_of(program, result)):
        return None
    worst = {
        name: (float(site.rhat.max(initial=1.0)), float(site.ess.min(initial=np.inf)))
        for name, site in mixed.items()
    }
    poor = {
        name: (rhat, ess)
        for name, (rhat, ess) in worst.items()
        if rhat > LARGEST_RHAT or ess < FEWEST_DRAWS * chains
    }
    values = [name for name in poor if program.sites[name].dims and worst[name][1] < FEWEST_DRAWS]
    if audit is None:
        return Standing(poor, [], values, judged=False)
    return Standing(poor, _open(audit, effective_draws(program, result, mixed)), values)


def _open(audit: Audit, draws: Float[np.ndarray, " judge"]) -> list[Any]:
    """Judges whose verdict may change, by the effective draws behind each."""
    verdict, p_below = audit.table["verdict"].values, audit.table["p_below"].values
    verdict, any_action = np.where(verdict == DIFFERS, "drop", verdict), np.ones(len(verdict), bool)
    error = margin_of_error(p_below, draws)
    lower, upper = (
        verdicts(np.clip(p_below + sign * error, 0, 1), audit.costs, any_action) for sign in (-1, 1)
    )
    may_change = (verdict == "too few draws") | (
        (verdict != "too few judgements") & ((lower != verdict) | (upper != verdict))
    )
    names: list[Any] = audit.table[audit.judge].values[may_change].tolist()
    return names
