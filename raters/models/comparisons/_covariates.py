"""Covariates of comparisons, such as lengths of answers: sites, and what votes cannot tell."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.judgements.names import shorten
from raters.judgements.separation import free_share
from raters.model import Values

# Standard deviations of features this many times apart do not share one prior scale.
_UNLIKE = 30
# Share of the information about a coefficient below which rewards imitate nearly all of it.
_IMITATED = 0.01


def block(model: Any) -> tuple[str, ...]:
    """Return the coefficients, where there are any."""
    return ("coefficient",) if model.covariates else ()


def sample(model: Any, data: Comparisons) -> Float[Array, " comparison"] | float:
    """Sample the coefficients, and return what they add to the log-odds: 0 without covariates."""
    if not model.covariates:
        return 0.0
    with numpyro.plate("feature", len(data.feature_names)):
        coefficient = numpyro.sample("coefficient", dist.Normal(0.0, 1.0))
    features, row = jnp.asarray(data.features), jnp.zeros(data.num_comparisons, int)
    # By an index for each row, and not as a product, of which a back-end would read a dense design.
    added: Array = sum(
        features[:, place] * coefficient[row + place] for place in range(features.shape[1])
    )
    return added


def start(model: Any, data: Comparisons) -> Values:
    """Return start values: covariates that sway nobody."""
    return {"coefficient": jnp.zeros(len(data.feature_names))} if model.covariates else {}


def why_not(model: Any, data: Comparisons) -> str | None:
    """Explain why these votes have no covariates, or return None."""
    if not model.covariates or (data.features is not None and data.feature_names):
        return None
    problem = "needs features of the two sides, and these votes have none"
    return Reason("covariates", True, problem, "name the columns of the `features`")


def why_no_features(model: Any, data: Comparisons) -> str | None:
    """Explain why a model of features cannot be of these votes, or return None."""
    if data.features is not None and data.feature_names:
        return None
    problem = f"is not given, and {model.title} learns from features of the two sides"
    return Reason("features", problem=problem, expected="name the columns of the features")


def regression(data: Comparisons, scale: float | None) -> Float[np.ndarray, " feature"]:
    """Return the first Newton step of logistic regression from 0."""
    features, count = np.asarray(data.features, float), np.asarray(data.weight, float)
    wins = count / 2 if data.wins is None else np.asarray(data.wins, float)
    precision = (features.T * count / 4) @ features
    precision += np.eye(features.shape[1]) / (scale or 1.0) ** 2
    return np.linalg.solve(precision, features.T @ (wins - count / 2))


def data_warnings(model: Any, data: Comparisons) -> tuple[str, ...]:
    """Warn of features that votes tell little of; `raters.fit` warns of those that are not used."""
    return of_features(data) + _of_items(data) if model.covariates else ()


def of_features(data: Comparisons) -> tuple[str, ...]:
    """Warn of features that never differ between the sides, and of those on unlike scales."""
    messages = []
    spread = np.sqrt(np.mean(np.asarray(data.features, float) ** 2, 0))
    by_size = sorted(zip(spread, data.feature_names, strict=True), key=lambda pair: pair[0])
    if constant := [name for size, name in by_size if size == 0]:
        messages.append(
            f"{len(constant)} feature(s) never differ between the sides and keep their prior:"
            f" {shorten(constant)}"
        )
    varying = by_size[len(constant) :]
    if varying and (ratio := varying[-1][0] / varying[0][0]) > _UNLIKE:
        messages.append(
            f"feature {varying[-1][1]!r} differs {ratio:,.0f} times as much between the sides as"
            f" {varying[0][1]!r}, and one prior scale serves all coefficients; divide each feature"
            " by its standard deviation first"
        )
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
    return (
        f"{len(same)} feature(s) are nearly the same in every comparison of an item"
        f" ({shorten(same)}), so that rewards imitate them, and the prior alone divides what is"
        " chosen between a coefficient and the rewards; leave them out, or give features of each"
        " comparison",
    )
