"""Latent classes in a sweep: what is expected or drawn of them, and the Dirichlet and Beta blocks that count them.

EM takes the responsibilities, Gibbs a draw; given either, the log-likelihood of labels and classes together is linear in the
logarithms of the probabilities, and its derivatives are the counts (Fisher's identity). No model's counts are written here.
"""

from __future__ import annotations

from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from raters.distributions import GroupedMixture, StickBreaking
from raters.inference._trace import trace
from raters.model import Model, Values

# A probability that no label speaks for is kept this far above 0, so that its logarithm stays finite.
LEAST = 1e-12


def has_classes(model: Model, data: Any, values: Values) -> bool:
    """Whether the observed site sums latent classes out."""
    kinds = []

    def run(values: Values) -> None:
        kinds.append(type(trace(model, data.take(slice(0, 1)), values)[model.observed]["fn"]))

    jax.eval_shape(run, values)  # runs the program without computing, or compiling, anything
    return issubclass(kinds[0], GroupedMixture)


@partial(jax.jit, static_argnums=0)
def expected(model: Model, data: Any, values: Values) -> tuple[jax.Array, jax.Array]:
    """Responsibilities, shape (unit, class), and the log-likelihood of all units."""
    site = trace(model, data, values)[model.observed]
    joint = site["fn"].log_joint(site["value"])
    return jax.nn.softmax(joint, axis=-1), jax.nn.logsumexp(joint, axis=-1).sum()


@partial(jax.jit, static_argnums=0)
def drawn(model: Model, data: Any, values: Values, key: jax.Array) -> jax.Array:
    """Classes drawn given the labels: 1 for the class drawn, 0 for the others, shape (unit, class)."""
    site = trace(model, data, values)[model.observed]
    joint = site["fn"].log_joint(site["value"])
    return jax.nn.one_hot(jax.random.categorical(key, joint), joint.shape[-1], dtype=joint.dtype)


def _complete(model: Model, data: Any, values: Values, classes: jax.Array) -> jax.Array:
    """Log-likelihood of labels and classes together, averaged over `classes`."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].expected_log_prob(site["value"], classes)


# ------------------------------------------------------------------------------------------- Dirichlet and Beta blocks


@singledispatch
def conjugate(fn: dist.Distribution, log_likelihood: Any, at: float) -> tuple[Any, ...]:
    """Parameters of a site's full conditional, from its prior and the complete-data log-likelihood as a function of the
    site. `at`, between 0 and 1, moves the point where it is read."""
    raise NotImplementedError(f"its prior {type(fn).__name__} is neither Dirichlet, StickBreaking nor Beta")


def _counts(fn, log_likelihood, at):
    # Counts are the same at every point; the middle of the simplex keeps logarithms finite.
    size = fn.event_shape[-1]
    tilt = 1 + at * jnp.arange(size) / size
    point = jnp.broadcast_to(tilt / tilt.sum(), (*fn.batch_shape, size))
    return point * jax.grad(log_likelihood)(point)


@conjugate.register
def _(fn: dist.Dirichlet, log_likelihood, at):
    return (fn.concentration + _counts(fn, log_likelihood, at),)


@conjugate.register
def _(fn: StickBreaking, log_likelihood, at):
    count = _counts(fn, log_likelihood, at)
    after = jnp.flip(jnp.cumsum(jnp.flip(count)))[1:]
    return fn.concentration1 + count[:-1], fn.concentration0 + after


@conjugate.register
def _(fn: dist.Beta, log_likelihood, at):
    # With a right and b wrong the derivative along the logit is a − (a + b)p: two points give both.
    def slope(p):
        point = jnp.full(fn.batch_shape, p, float)  # Weakly typed, it would give way to float32 counts.
        return p * (1 - p) * jax.grad(log_likelihood)(point)

    low, high = (1 - at / 2) / 3, (2 + at / 2) / 3
    total = (slope(low) - slope(high)) / (high - low)
    right = slope(low) + total * low
    return fn.concentration1 + right, fn.concentration0 + total - right


def _prior(model: Model, data: Any, values: Values, site: str) -> dist.Distribution:
    """A site's prior with its parameters in the site's shape."""
    fn = trace(model, data, values)[site]["fn"]
    while isinstance(fn, dist.Independent):
        fn = fn.base_dist
    if isinstance(fn, dist.ExpandedDistribution) and isinstance(fn.base_dist, dist.Dirichlet):
        return dist.Dirichlet(jnp.broadcast_to(fn.base_dist.concentration, fn.shape()))
    if isinstance(fn, dist.ExpandedDistribution) and isinstance(fn.base_dist, dist.Beta):
        base = fn.base_dist
        return dist.Beta(*(jnp.broadcast_to(part, fn.shape()) for part in (base.concentration1, base.concentration0)))
    return fn


def is_counted(model: Model, data: Any, values: Values, site: str) -> bool:
    """Whether a site's prior is Dirichlet, stick-breaking or Beta."""
    return isinstance(_prior(model, data.take(slice(0, 1)), values, site), (dist.Dirichlet, StickBreaking, dist.Beta))


def is_broken(model: Model, data: Any, values: Values, site: str) -> bool:
    """Whether a site's prior is stick-breaking."""
    return isinstance(_prior(model, data.take(slice(0, 1)), values, site), StickBreaking)


def is_unbounded(model: Model, data: Any, values: Values, site: str) -> bool:
    """Whether the density of a site of shares or probabilities may grow without bound towards an edge: where a concentration is
    below 1, and where a stick is broken, as what is left of it may be nothing."""
    fn = _prior(model, data.take(slice(0, 1)), values, site)
    if isinstance(fn, StickBreaking):
        return True
    low = fn.concentration if isinstance(fn, dist.Dirichlet) else jnp.minimum(fn.concentration0, fn.concentration1)
    return bool(jnp.min(low) < 1)


@partial(jax.jit, static_argnums=(0, 4, 5))
def parameters(model: Model, data: Any, values: Values, classes: jax.Array, site: str, at: float = 0.0) -> tuple[Any, ...]:
    """Parameters of the full conditional of a Dirichlet or Beta site, given the classes and all other sites."""
    return conjugate(
        _prior(model, data, values, site), lambda value: _complete(model, data, values | {site: value}, classes), at
    )


@singledispatch
def sampled(fn: dist.Distribution, parameters: tuple[Any, ...], key: jax.Array) -> jax.Array:
    """A draw of a site's full conditional, whose prior is `fn`, in a compiled function."""
    raise NotImplementedError(f"its prior {type(fn).__name__} is neither Dirichlet, StickBreaking nor Beta")


@sampled.register
def _(fn: dist.Dirichlet, parameters, key):
    probs = jnp.maximum(jax.random.dirichlet(key, parameters[0]), 1e-300)
    return probs / probs.sum(-1, keepdims=True)


@sampled.register
def _(fn: StickBreaking, parameters, key):
    probs = jnp.maximum(StickBreaking(*parameters).sample(key), 1e-300)
    return probs / probs.sum(-1, keepdims=True)


@sampled.register
def _(fn: dist.Beta, parameters, key):
    return jnp.clip(jax.random.beta(key, *parameters), 1e-300, 1 - 1e-16)


def moved(model: Model, data: Any, values: Values, sites: tuple[str, ...], key: jax.Array) -> Values:
    """One step of Gibbs sampling on the classes and then on each of the counted `sites`, in a compiled function."""
    class_key, *keys = jax.random.split(key, len(sites) + 1)
    classes = drawn(model, data, values, class_key)
    for site, site_key in zip(sites, keys, strict=True):
        values = values | {
            site: sampled(_prior(model, data, values, site), parameters(model, data, values, classes, site), site_key)
        }
    return values


class Counts:
    """The Dirichlet or Beta full conditional of a site; EM takes the mode, Gibbs a draw, Laplace both.

    With `in_logs` the mode is that in logarithmic coordinates, which is always inside (MacKay 1998).
    """

    def __init__(self, parameters: tuple[Any, ...], in_logs: bool = False):
        self.parameters = tuple(np.asarray(parameter) for parameter in parameters)
        self.less = 0.0 if in_logs else 1.0

    @property
    def _concentration(self) -> np.ndarray:
        """As of a Dirichlet, shape (..., alternatives): a Beta is one over two."""
        return self.parameters[0] if len(self.parameters) == 1 else np.stack(self.parameters, -1)

    def _flat(self, probs: np.ndarray) -> np.ndarray:
        return np.ravel(probs if len(self.parameters) == 1 else probs[..., 0])

    def mode(self, current: np.ndarray) -> np.ndarray:
        """The mode, kept off 0; `current` where neither labels nor prior say anything."""
        count = np.maximum(self._concentration - self.less, 0.0)
        total = count.sum(-1, keepdims=True)
        probs = np.maximum(count / np.where(total > 0, total, 1.0), LEAST)
        probs /= probs.sum(-1, keepdims=True)
        said = np.broadcast_to(total > 0, probs.shape)
        return np.where(self._flat(said), self._flat(probs), current)

    def draw(self, rng: np.random.Generator, current: np.ndarray) -> np.ndarray:
        """A draw."""
        gamma = np.maximum(rng.standard_gamma(self._concentration), 1e-300)
        # Short of 1, where a log-odds would be infinite.
        return np.minimum(self._flat(gamma / gamma.sum(-1, keepdims=True)), 1 - 1e-16)

    coordinate = mode


class Breaks(Counts):
    """The full conditional of shares broken off a stick. The mode is that in logarithmic coordinates, where each break is at
    its mean."""

    @property
    def _of_sticks(self) -> np.ndarray:
        return self.parameters[0] / (self.parameters[0] + self.parameters[1])

    def mode(self, current: np.ndarray) -> np.ndarray:
        """The mode."""
        return _shares(self._of_sticks)

    def draw(self, rng: np.random.Generator, current: np.ndarray) -> np.ndarray:
        """A draw."""
        return _shares(rng.beta(*self.parameters))

    coordinate = mode


def _shares(broken: np.ndarray) -> np.ndarray:
    """Shares from the breaks of a stick, kept off 0."""
    left = np.cumprod(np.concatenate([[1.0], 1 - broken]))
    found = np.maximum(np.append(broken, 1.0) * left, 1e-300)
    return found / found.sum()
