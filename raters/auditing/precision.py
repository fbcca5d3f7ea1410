"""Monte-Carlo precision of what an audit says of each judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from raters.inference.mixing import known, mixing
from raters.program import Program

# With fewer effective draws there is no verdict: a probability of one half is known within .05.
FEWEST_DRAWS = 100


def effective_draws(program: Program[Any], result: xr.DataTree) -> Float[np.ndarray, " judge"]:
    """Effective number of draws behind each judge: the smallest over the entries of their sites.

    Parameters
    ----------
    program : Program
    result : xarray.DataTree

    Returns
    -------
    array, shape (judge,)
        0 for draws that are not finite, or fewer than four of a chain. Of a model without sites of
        judges, the smallest over all sites. At most the number that a corrected approximation
        records; see `raters.inference.importance`.
    """
    posterior, judge = result["posterior"], program.data.judge
    judges = len(program.data.judges)
    recorded = float(result.attrs.get("min_ess", np.inf))
    most = recorded if "pareto_k" in result.attrs else np.inf
    of_judges = {name: site for name, site in program.sites.items() if judge in site.dims}
    draws = {
        name: posterior[name].transpose("chain", "draw", *site.dims).values
        for name, site in (of_judges or program.sites).items()
    }
    if not known(draws):
        return np.zeros(judges)
    smallest = np.full(judges, np.inf)
    for name, values in draws.items():
        ess = mixing(values).ess
        if of_judges:
            of_each = np.moveaxis(ess, of_judges[name].dims.index(judge), 0).reshape(judges, -1)
        else:
            of_each = np.broadcast_to(ess.ravel(), (judges, ess.size))
        smallest = np.minimum(smallest, of_each.min(1))
    return np.asarray(np.minimum(smallest, most))


def enough(program: Program[Any], result: xr.DataTree) -> Bool[np.ndarray, " judge"]:
    """Whether the draws are enough for a verdict on each judge.

    Parameters
    ----------
    program : Program
    result : xarray.DataTree

    Returns
    -------
    array, shape (judge,)
    """
    if float(result.attrs.get("min_ess", 0.0)) >= FEWEST_DRAWS:
        return np.ones(len(program.data.judges), bool)
    return np.asarray(effective_draws(program, result) >= FEWEST_DRAWS)


def margin_of_error(
    probability: Float[np.ndarray, " judge"], draws: Float[np.ndarray, " judge"]
) -> Float[np.ndarray, " judge"]:
    """Two Monte-Carlo standard errors of a probability from so many effective draws.

    Half a draw is added to each side, so that 0 and 1 are not certain.

    Parameters
    ----------
    probability : array, shape (judge,)
    draws : array, shape (judge,)

    Returns
    -------
    array, shape (judge,)
    """
    middle = (probability * draws + 0.5) / (draws + 1)
    return np.asarray(2 * np.sqrt(middle * (1 - middle) / np.maximum(draws, 1)))
