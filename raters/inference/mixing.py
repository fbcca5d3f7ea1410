"""Mixing of chains: R-hat and effective sample sizes of draws, and the warning of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpyro.diagnostics import effective_sample_size, gelman_rubin
from scipy.special import ndtri

from raters.inference.base import warn, worded

# Above this R-hat, chains disagree.
LARGEST_RHAT = 1.01
# Below this number of effective draws little is known: a probability of one half within .1. Of
# several chains, each is to have so many.
FEWEST_DRAWS = 100
# Both diagnostics need halves of a chain.
_FEWEST_OF_CHAIN = 4
# In chains of so many draws, the effective ones tell how many more are needed; from so many times
# as many on, another sampler is the better advice.
_LONG_CHAIN, _HARDLY = 500, 10
# Chains that go on do so for this many times as long as uncertain diagnostics ask for.
_MARGIN = 1.25
# Entries of a site whose diagnostics are in memory at once.
_AT_ONCE = 500


class Mixing(NamedTuple):
    """Diagnostics of the entries of a site, each of the site's shape."""

    rhat: Float[np.ndarray, " *entry"]
    ess: Float[np.ndarray, " *entry"]


def mixing(draws: Float[np.ndarray, "chain draw *entry"]) -> Mixing:
    """Mixing of the draws of a site."""
    chains, number = draws.shape[:2]
    flat = np.asarray(draws, np.float64).reshape(chains, number, -1)
    rhat = np.ones(flat.shape[-1])
    ess = np.full(flat.shape[-1], float(chains * number))
    varies = np.flatnonzero(np.ptp(flat, axis=(0, 1)) > 0)
    for some in np.split(varies, range(_AT_ONCE, len(varies), _AT_ONCE)):
        if len(some):
            rhat[some], ess[some] = _of_entries(flat[:, :, some])
    rhat *= 1.0 if chains > 1 else np.nan
    return Mixing(rhat.reshape(draws.shape[2:]), ess.reshape(draws.shape[2:]))


def _of_entries(draws: Float[np.ndarray, "chain draw entry"]) -> Mixing:
    """Rank-normalised split R-hat and bulk effective sample size of many entries at once."""
    half = draws.shape[1] // 2
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    rows = np.ascontiguousarray(split.reshape(-1, split.shape[2]).T)
    folded = abs(rows - np.median(rows, axis=1, keepdims=True))
    bulk, tail = (
        _normal_scores(part).reshape(len(rows), -1, half).transpose(1, 2, 0)
        for part in (rows, folded)
    )
    ess, most = effective_sample_size(bulk), rows.shape[1] * np.log10(rows.shape[1])
    # Of draws that alternate the estimate is negative, or has no limit.
    ess = np.where((ess > 0) & (ess < most), ess, most)
    return Mixing(np.fmax(gelman_rubin(bulk), gelman_rubin(tail)), ess)


def _normal_scores(rows: Float[np.ndarray, "entry draw"]) -> Float[np.ndarray, "entry draw"]:
    """Normal quantiles of the ranks of each row."""
    ranks = pd.DataFrame(rows).rank(axis=1).to_numpy()
    return np.asarray(ndtri((ranks - 0.375) / (rows.shape[1] + 0.25)))


def known(values: dict[str, np.ndarray]) -> bool:
    """True if draws are enough, and finite, for `mixing`."""
    return next(iter(values.values())).shape[1] >= _FEWEST_OF_CHAIN and all(
        np.isfinite(draws).all() for draws in values.values()
    )


class Worst(NamedTuple):
    """Largest R-hat and smallest effective sample size of all sites, each with its site."""

    rhat: tuple[float, str]
    ess: tuple[float, str]


def worst(values: dict[str, np.ndarray]) -> Worst:
    """Worst diagnostics of draws for which they are known."""
    vary = [name for name, draws in values.items() if np.ptp(draws, (0, 1)).max(initial=0.0) > 0]
    found = {name: mixing(values[name]) for name in vary}
    rhat = max(((float(one.rhat.max()), name) for name, one in found.items()), default=(1.0, ""))
    ess = min(((float(one.ess.min()), name) for name, one in found.items()), default=(np.inf, ""))
    return Worst(rhat, ess)


def times_longer(values: dict[str, np.ndarray], at_least: bool = False) -> float:
    """Factor by which chains would have to be longer for both diagnostics; 1 where they need not.

    Of a site with many entries, some are looked at; for a factor `at_least`, of the smallest site
    that needs one, no larger sites.
    """
    chains, number = next(iter(values.values())).shape[:2]
    if number < FEWEST_DRAWS or not known(values):
        return np.inf
    times = 1.0
    for name, draws in sorted(values.items(), key=lambda item: item[1].size):
        (rhat, _), (ess, _) = worst({name: _some(draws)})
        times = max(times, (rhat - 1) / (LARGEST_RHAT - 1), FEWEST_DRAWS * chains / ess)
        if at_least and times > 1:
            break
    return float(np.ceil(_MARGIN * times)) if times > 1 else 1.0


def _some(draws: Float[np.ndarray, "chain draw *entry"]) -> Float[np.ndarray, "chain draw some"]:
    """Draws of evenly spread entries."""
    flat = draws.reshape(*draws.shape[:2], -1)
    return flat[:, :, :: -(-flat.shape[2] // _AT_ONCE)]


def warn_unless_converged(values: dict[str, np.ndarray], divergences: int = 0) -> dict[str, float]:
    """Largest R-hat and smallest bulk effective sample size over all variables."""
    chains, number = next(iter(values.values())).shape[:2]
    if not known(values):
        broken = [name for name, draws in values.items() if not np.isfinite(draws).all()]
        warn(worded("unknown", number=number, broken=broken), 3)
        return {"max_rhat": np.nan, "min_ess": 0.0}
    (rhat, of_rhat), (ess, of_ess) = worst(values)
    wanted = FEWEST_DRAWS * chains
    if rhat > LARGEST_RHAT or not ess >= wanted:
        numbers = {"rhat": beyond(rhat, LARGEST_RHAT, 3), "of_rhat": of_rhat, "most": LARGEST_RHAT}
        numbers |= {"chains": chains, "ess": np.floor(ess), "of_ess": of_ess, "wanted": wanted}
        needed = number * wanted / max(ess, 1.0)
        hardly = number >= _LONG_CHAIN and needed > _HARDLY * number
        warn(worded("not_mixed", needed=needed if hardly else None, **numbers), 3)
    if divergences:
        warn(worded("diverged", number=divergences), 3)
    return {"max_rhat": rhat, "min_ess": ess}


def beyond(value: float, limit: float, digits: int) -> str:
    """A number with so many digits, or with as many as show that it is not the limit."""
    while digits < 9 and value != limit and float(f"{value:.{digits}f}") == round(limit, digits):
        digits += 1
    return f"{value:.{digits}f}"
