"""Priors of the true classes of items: the frequency of each class, or a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float
from scipy.optimize import minimize
from scipy.special import logsumexp

from raters.judgements.labels import Labels
from raters.model import Values
from raters.terms.base import Axis, sampled

Flat = Float[np.ndarray, " coefficient"]


@dataclass(frozen=True)
class Prevalence:
    """Classes by their frequencies, from a Dirichlet of equal concentrations."""

    concentration: float = 1.0

    exchanged: tuple[tuple[str, int], ...] = (("prevalence", -1),)

    def sample(self, data: Labels) -> dist.Distribution:
        """Sample the frequency of each class."""
        prior = dist.Dirichlet(jnp.full(data.num_classes, self.concentration))
        return dist.Categorical(probs=sampled("prevalence", prior, "true_class"))

    def start(self, data: Labels) -> Values:
        """Frequency of the classes by vote."""
        total = data.vote_shares().sum(0) + 0.1
        return {"prevalence": np.asarray(total / total.sum())}


@dataclass(frozen=True)
class Classifier:
    """Classes by a logistic regression on the features of items, and a hidden layer of some units.

    The scale of the coefficients is learned unless given.
    """

    scale: float | None = None
    hidden: int = 0

    @property
    def exchanged(self) -> tuple[tuple[str, int], ...]:
        """Sites with an axis of classes."""
        return (("coefficient", -1), *((("output_weight", -1),) if self.hidden else ()))

    def sample(self, data: Labels) -> dist.Distribution:
        """Sample the coefficients, their scale unless it is given, and the hidden layer."""
        scale: Any = self.scale
        if scale is None:
            scale = sampled("coefficient_scale", dist.LogNormal(jnp.log(_usual_scale(data)), 1.0))
        prior = dist.Normal(0.0, _scales(scale, data))
        plates = {"feature": data.num_features, "true_class": data.num_classes}
        coefficient = sampled("coefficient", prior, **plates)
        log_odds = data.features @ coefficient
        if self.hidden:
            log_odds = log_odds + self._hidden_layer(data)
        return dist.Categorical(logits=log_odds)

    def _hidden_layer(self, data: Labels) -> Float[Array, "item true_class"]:
        features, units = ("feature", data.num_features), ("hidden", self.hidden)
        hidden = _weights("hidden_weight", 1.0, features, units)
        output = _weights("output_weight", 1.5, units, ("true_class", data.num_classes))
        return jnp.tanh(data.features @ hidden) @ output

    def start(self, data: Labels) -> Values:
        """Coefficients trained on the votes, and their scale unless it is given."""
        scale = _usual_scale(data) if self.scale is None else self.scale
        start: Values = {"coefficient": _trained(data, scale)}
        if self.scale is None:
            start["coefficient_scale"] = np.asarray(scale)
        if self.hidden:
            # Random, since hidden units that start equal stay equal.
            rng = np.random.default_rng(0)
            number = data.num_features
            start["hidden_weight"] = rng.normal(size=(number, self.hidden)) / np.sqrt(number)
            start["output_weight"] = 0.01 * rng.normal(size=(self.hidden, data.num_classes))
        return start


def _weights(site: str, scale: float, inputs: Axis, outputs: Axis) -> Float[Array, "input output"]:
    """Sample the weights of a layer, whose outputs have a standard deviation of `scale`."""
    (axis, size), (other, width) = inputs, outputs
    prior = dist.Normal(0.0, scale / np.sqrt(size)).expand((size, width)).to_event(2)
    return sampled(site, prior, axis, other)


def _scales(scale: Any, data: Labels) -> Float[Array, "feature 1"]:
    """Return the prior standard deviations of a classifier's coefficients."""
    return jnp.full((data.num_features, 1), scale).at[0].set(2.5)


def _usual_scale(data: Labels) -> float:
    """Return the scale at which the sum of the features has a standard deviation of 1.5."""
    return float(1.5 / np.sqrt(max(data.num_features - 1, 1)))


def _trained(data: Labels, scale: float) -> Float[np.ndarray, "feature true_class"]:
    """Train the classifier on the votes: its posterior mode with vote shares as the truth."""
    features, shares = np.asarray(data.features, float), data.vote_shares()
    labelled = np.zeros(data.num_units)
    labelled[np.asarray(data.group)[np.asarray(data.weight) > 0]] = 1.0
    precision = 1 / np.asarray(_scales(scale, data)) ** 2

    def loss(flat: Flat) -> tuple[float, Flat]:
        """Return the negative log-density and its gradient."""
        coefficient = flat.reshape(data.num_features, data.num_classes)
        log_odds = features @ coefficient
        log_total = logsumexp(log_odds, axis=1, keepdims=True)
        value = (labelled[:, None] * shares * (log_total - log_odds)).sum()
        value = value + (precision * coefficient**2).sum() / 2
        apart = labelled[:, None] * (np.exp(log_odds - log_total) - shares)
        return value, (features.T @ apart + precision * coefficient).ravel()

    zero = np.zeros(data.num_features * data.num_classes)
    best = minimize(loss, zero, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return np.asarray(best.reshape(data.num_features, data.num_classes))
