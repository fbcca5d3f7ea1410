"""Rewards of items, and rewards that are linear in features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.comparisons import Comparisons
from raters.model import Shift, Values
from raters.terms.base import Prepared, gap, sampled, spread_of
from raters.terms.covariates import regression, unlike_features


class Scaled(Prepared):
    """Term of a site that is normal about 0, with a scale that is learned unless given."""

    scale: float | None

    @property
    def scales(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"{site}_scale" for site in self.linear or ()) if self.scale is None else ()

    def prepare(self, data: Comparisons) -> Any:
        learned = dist.LogNormal(0.0, 1.0)
        return numpyro.sample(*self.scales, learned) if self.scale is None else self.scale

    def started(self, value: Any) -> Values:
        """Start of the site, and of its scale, above 0, where that is learned."""
        scale = {name: jnp.asarray(spread_of(value)) for name in self.scales}
        return {name: jnp.asarray(value) for name in self.linear or ()} | scale


@dataclass(frozen=True)
class Rewards(Scaled):
    r"""Rewards of the two items, :math:`r_i - r_j`, with :math:`r_i \sim \mathrm{Normal}(0, s)`.

    Parameters
    ----------
    scale : float, optional
        Standard deviation s, in logits; learned, with :math:`s \sim \mathrm{LogNormal}(0, 1)`,
        unless given.
    """

    linear = ("reward",)
    scale: float | None = None
    symmetries = (Shift("reward"),)

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, " *row"]:
        return gap(sampled("reward", dist.Normal(0.0, ready), item=data.num_items), data)

    def start(self, data: Comparisons) -> Values:
        return self.started(win_rates(data))


@dataclass(frozen=True)
class LinearRewards(Scaled):
    r"""Rewards that are linear in the features of the two sides,
    :math:`\theta^\top (\phi_i - \phi_j)`, with :math:`\theta_f \sim \mathrm{Normal}(0, s)`.

    Parameters
    ----------
    scale : float, optional
        Standard deviation s; learned unless given.
    """

    needs = ("features",)
    linear = ("coefficient",)
    scale: float | None = None

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, " *row"]:
        number = len(data.feature_names)
        coefficient = sampled("coefficient", dist.Normal(0.0, ready), feature=number)
        return jnp.asarray(data.features) @ coefficient

    def start(self, data: Comparisons) -> Values:
        coefficient = regression(data, self.scale)
        start: Values = {"coefficient": coefficient}
        return start | ({"coefficient_scale": spread_of(coefficient)} if self.scales else {})

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        return unlike_features(data)


def win_rates(data: Comparisons) -> Float[np.ndarray, " item"]:
    """Return the centred log-odds of each item's win rate, with one win and one loss added."""
    won, played = np.zeros(data.num_items), np.zeros(data.num_items)
    for piece in data.halved().chunks(1 << 18):
        count = np.asarray(piece.weight, np.float64)
        wins = count / 2 if piece.wins is None else np.asarray(piece.wins, np.float64)
        for side, votes in ((piece.first, wins), (piece.second, count - wins)):
            won += np.bincount(np.asarray(side), votes, data.num_items)
            played += np.bincount(np.asarray(side), count, data.num_items)
    reward = np.log((won + 1) / (played - won + 1))
    return reward - reward.mean()
