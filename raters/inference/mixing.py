"""Mixing of chains: R-hat and effective sample sizes of draws, and the warning of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from raters.inference.base import warn

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


class Mixing(NamedTuple):
    """Diagnostics of the entries of a site, each of the site's shape."""

    rhat: Float[np.ndarray, " *entry"]
    ess: Float[np.ndarray, " *entry"]


def mixing(draws: Float[np.ndarray, "chain draw *entry"]) -> Mixing:
    """Mixing of the draws of a site."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    chains, number = draws.shape[:2]
    flat = np.asarray(draws, np.float64).reshape(chains, number, -1)
    rhat = np.full(flat.shape[-1], 1.0 if chains > 1 else np.nan)
    ess = np.full(flat.shape[-1], float(chains * number))
    if (varies := np.ptp(flat, axis=(0, 1)) > 0).any():
        flat = flat[:, :, varies]
        ess[varies] = array_stats.ess(flat, chain_axis=0, draw_axis=1, method="bulk")
        if chains > 1:
            rhat[varies] = array_stats.rhat(flat, chain_axis=0, draw_axis=1)
    return Mixing(rhat.reshape(draws.shape[2:]), ess.reshape(draws.shape[2:]))


def known(values: dict[str, np.ndarray]) -> bool:
    """True if draws are enough, and finite, for `mixing`."""
    return next(iter(values.values())).shape[1] >= _FEWEST_OF_CHAIN and all(
        np.isfinite(draws).all() for draws in values.values()
    )


def warn_unless_converged(values: dict[str, np.ndarray], divergences: int = 0) -> dict[str, float]:
    """Largest R-hat and smallest bulk effective sample size over all variables."""
    chains, number = next(iter(values.values())).shape[:2]
    if not known(values):
        _warn_of_unknown(values)
        return {"max_rhat": np.nan, "min_ess": 0.0}
    worst_rhat, worst_ess = ("", 1.0), ("", np.inf)
    for name, draws in values.items():
        if np.ptp(draws, axis=(0, 1)).max(initial=0.0) == 0:
            continue
        of_site = mixing(draws)
        worst_ess = min(worst_ess, (name, float(of_site.ess.min())), key=lambda entry: entry[1])
        if chains > 1:
            largest = float(of_site.rhat.max())
            worst_rhat = max(worst_rhat, (name, largest), key=lambda entry: entry[1])
    _warn_of_mixing(worst_rhat, worst_ess, chains, number)
    if divergences:
        warn(
            f"{divergences} of {chains * number} transitions diverged; raise the target acceptance"
            " rate, or use PGGibbs where it takes the model",
            3,
        )
    rhat = worst_rhat[1] if chains > 1 else np.nan
    return {"max_rhat": rhat, "min_ess": float(worst_ess[1])}


def _warn_of_unknown(values: dict[str, np.ndarray]) -> None:
    """Warn of draws that are not finite or too few."""
    broken = ", ".join(name for name, draws in values.items() if not np.isfinite(draws).all())
    number = next(iter(values.values())).shape[1]
    text = f"{number} draw(s) of a chain say nothing of its convergence; draw 1000"
    if broken:
        text = f"draws of {broken} are not finite; the chains have failed, do not use this result"
    warn(text)


def beyond(value: float, limit: float, digits: int) -> str:
    """A number with so many digits, or with as many as show that it is not the limit."""
    while digits < 9 and value != limit and float(f"{value:.{digits}f}") == round(limit, digits):
        digits += 1
    return f"{value:.{digits}f}"


def _warn_of_mixing(
    worst_rhat: tuple[str, float], worst_ess: tuple[str, float], chains: int, number: int
) -> None:
    """Warn of the worst variables when their diagnostics are poor."""
    wanted = FEWEST_DRAWS * chains
    needed = number * wanted / max(worst_ess[1], 1.0)
    advice = "draw more"
    if number >= _LONG_CHAIN and needed > _HARDLY * number:
        advice = (
            f"about {needed:,.0f} draws a chain would be needed, so use the other exact back-end"
            " (PGGibbs or NUTS) or a simpler model"
        )
    if worst_rhat[1] <= LARGEST_RHAT and worst_ess[1] >= wanted:
        return
    rhat = "R-hat needs two chains"
    if worst_rhat[0]:
        largest = beyond(worst_rhat[1], LARGEST_RHAT, 3)
        rhat = f"largest R-hat {largest} ({worst_rhat[0]}; should be at most {LARGEST_RHAT})"
    ess = f"{np.floor(worst_ess[1]):.0f} ({worst_ess[0]}; should be at least {wanted})"
    warn(
        f"the chains have not mixed well: {rhat}, smallest bulk effective sample size {ess};"
        f" {advice}"
    )
