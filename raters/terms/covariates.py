"""Covariates of comparisons, such as lengths of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.comparisons import Comparisons
from raters.judgements.connection import free_share
from raters.judgements.names import shorten
from raters.model import Values
from raters.terms.base import Term, sampled, worded

# Standard deviations of features this many times apart do not share one prior scale.
_UNLIKE = 30
# Share of the information about a coefficient below which rewards imitate nearly all of it.
_IMITATED = 0.01


@dataclass(frozen=True)
class Covariates(Term):
    r"""Features of the two sides beside their rewards ("style control"), :math:`x^\top \theta`,
    with :math:`\theta_f \sim \mathrm{Normal}(0, 1)`."""

    needs = ("features",)
    linear = ("coefficient",)

    reference = "li2024style"

    def sample(self, data: Comparisons) -> Float[Array, " *row"]:
        number = len(data.feature_names)
        coefficient: Any = sampled("coefficient", dist.Normal(0.0, 1.0), feature=number)
        features, row = jnp.asarray(data.features), jnp.zeros(jnp.shape(data.first), int)
        # By an index for each row, and not as a product, of which a back-end would read a dense
        # design.
        return sum(
            features[..., place] * coefficient[row + place] for place in range(features.shape[-1])
        )

    def start(self, data: Comparisons) -> Values:
        return {"coefficient": jnp.zeros(len(data.feature_names))}

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        return unlike_features(data) + _of_items(data)


def regression(data: Comparisons, scale: float | None) -> Float[np.ndarray, " feature"]:
    """Return the first Newton step of logistic regression from 0."""
    features, count = np.asarray(data.features, float), np.asarray(data.weight, float)
    wins = count / 2 if data.wins is None else np.asarray(data.wins, float)
    precision = (features.T * count / 4) @ features
    precision += np.eye(features.shape[1]) / (scale or 1.0) ** 2
    return np.linalg.solve(precision, features.T @ (wins - count / 2))


def unlike_features(data: Comparisons) -> tuple[str, ...]:
    """Warn of features that never differ between the sides, and of those on unlike scales."""
    messages = []
    spread = np.sqrt(np.mean(np.asarray(data.features, float) ** 2, 0))
    by_size = sorted(zip(spread, data.feature_names, strict=True), key=lambda pair: pair[0])
    if constant := [name for size, name in by_size if size == 0]:
        names = shorten(constant)
        messages.append(worded("constant_features", number=len(constant), names=names))
    varying = by_size[len(constant) :]
    if varying and (ratio := varying[-1][0] / varying[0][0]) > _UNLIKE:
        most, least = varying[-1][1], varying[0][1]
        messages.append(worded("unlike_features", most=most, least=least, ratio=ratio))
    return tuple(messages)


def _of_items(data: Comparisons) -> tuple[str, ...]:
    """Warn of features that are the same in every comparison of an item."""
    features = np.asarray(data.features, float)
    varies = (features != 0).any(0)
    same = [
        name
        for name, values, there in zip(data.feature_names, features.T, varies, strict=True)
        if there and free_share(data, values) < _IMITATED
    ]
    if not same:
        return ()
    return (worded("features_of_items", number=len(same), names=shorten(same)),)
