"""Monte-Carlo precision of what an audit says of each judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from raters.inference.mixing import FEWEST_DRAWS, Mixing, known, mixing
from raters.program import Program, Site

PerJudge = Float[np.ndarray, " judge"]


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
