"""Priors of a user's own in place of those that a program has."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import constraints
from numpyro.primitives import Messenger

from raters.errors import SettingError, refuse

# Distributions that a Pólya-Gamma update takes as the prior of a site.
_CONJUGATE = (dist.Normal, dist.MultivariateNormal, dist.Uniform, dist.Dirichlet, dist.Beta)


class Priors(dict[str, dist.Distribution]):
    """Distributions by site; hashable, and equal where their parameters are."""

    def __init__(self, given: Mapping[str, dist.Distribution] = {}) -> None:
        such = '{"competence": dist.StudentT(4, 1, 1)}'
        if not isinstance(given, Mapping):
            refuse("prior", given, expected="it must map sites to distributions", instead=such)
        super().__init__(given)
        for site, prior in self.items():
            if not isinstance(prior, dist.Distribution):
                refuse("prior", prior, f"is no NumPyro distribution of {site!r}", instead=such)
        self._text = repr(self)

    def __repr__(self) -> str:
        pairs = (f"{site!r}: {_written(prior)}" for site, prior in self.items())
        return f"{{{', '.join(pairs)}}}"

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and repr(Priors(other)) == self._text

    def not_conjugate(self) -> tuple[str, ...]:
        """Sites whose priors no Pólya-Gamma update takes."""
        return tuple(site for site, prior in self.items() if not _is_conjugate(prior))


def parameters_of(prior: dist.Distribution) -> dict[str, Any]:
    """Arguments from which a distribution of NumPyro is made again, as numbers and lists."""
    names = [name for name in inspect.signature(type(prior)).parameters if name != "validate_args"]
    values = {name: getattr(prior, name, None) for name in names}
    if distribution_named(type(prior).__name__) is not type(prior) or None in values.values():
        expected = "use one that its arguments determine, such as dist.Normal or dist.StudentT"
        refuse("prior", prior, "cannot be written to a file", expected)
    return {
        name: value if isinstance(value, dist.Distribution) else np.asarray(value).tolist()
        for name, value in values.items()
    }


def distribution_named(name: str) -> type[dist.Distribution]:
    """The distribution of NumPyro of this name."""
    found = getattr(dist, str(name), None)
    if not (isinstance(found, type) and issubclass(found, dist.Distribution)):
        raise SettingError(f"{name!r} is no distribution of NumPyro")
    return found


def _written(prior: dist.Distribution) -> str:
    parts = ", ".join(
        f"{name}={_written(value) if isinstance(value, dist.Distribution) else value}"
        for name, value in parameters_of(prior).items()
    )
    return f"dist.{type(prior).__name__}({parts})"


def _is_conjugate(prior: dist.Distribution) -> bool:
    while (base := getattr(prior, "base_dist", None)) is not None:
        if isinstance(prior, dist.TransformedDistribution):
            return False
        prior = base
    return isinstance(prior, _CONJUGATE)


def made(name: str, parameters: Mapping[str, Any]) -> dist.Distribution:
    """The distribution that `parameters_of` took apart."""
    arrays = {
        one: np.asarray(value) if isinstance(value, tuple) and one != "batch_shape" else value
        for one, value in parameters.items()
    }
    return distribution_named(name)(**arrays)


class OwnPriors(Messenger):
    """Effect handler that gives sites the priors of a user."""

    def __init__(self, priors: Priors, title: str) -> None:
        super().__init__()
        self.priors, self.title = priors, title
        self.sites: list[str] = []

    def process_message(self, msg: dict[str, Any]) -> None:
        """Replace the distribution of a site."""
        if msg["type"] != "sample" or msg.get("is_observed"):
            return
        self.sites.append(msg["name"])
        if (prior := self.priors.get(msg["name"])) is not None:
            msg["fn"] = _fitted(prior, msg["fn"], msg["name"])

    def __exit__(self, kind: Any, *error: Any) -> None:
        super().__exit__(kind, *error)
        missing = [site for site in self.priors if site not in self.sites]
        if kind is None and missing:
            problem = f"names no site that {self.title} samples"
            refuse("prior", missing[0], problem, f"it has {self.sites}")


def _fitted(prior: dist.Distribution, old: dist.Distribution, site: str) -> dist.Distribution:
    """A prior in the shape of a site, whose support is that of the program's."""
    shape, number = old.shape(), len(prior.event_shape)
    batch = shape[: len(shape) - number]
    try:
        fits = shape[len(batch) :] == prior.event_shape
        fits = fits and jnp.broadcast_shapes(prior.batch_shape, batch) == batch
    except ValueError:
        fits = False
    if not fits:
        problem = f"of {site!r} has the shape {prior.shape()}, and the site has {shape}"
        expected = "give one distribution for all entries, or one for each"
        refuse("prior", _written(prior), problem, expected)
    if not same_support(prior.support, old.support):
        problem = f"lies on another range than {site!r}, which is {range_of(old.support)}"
        expected = "truncate it, such as by dist.TruncatedNormal(..., low=0)"
        refuse("prior", _written(prior), problem, expected)
    spread = prior.expand(batch) if prior.batch_shape != batch else prior
    return spread.to_event(len(old.event_shape) - number)


def range_of(support: Any) -> Any:
    """Bounds of the entries, or the class of a support that is not of single numbers."""
    while (base := getattr(support, "base_constraint", None)) is not None:
        support = base
    if support.event_dim:
        return type(support).__name__
    low = getattr(support, "lower_bound", -np.inf)
    high = getattr(support, "upper_bound", np.inf)
    return (low, high) if support is not constraints.real else (-np.inf, np.inf)


def same_support(one: Any, other: Any) -> bool:
    first, second = range_of(one), range_of(other)
    if isinstance(first, str) or isinstance(second, str):
        return bool(first == second)
    if any(isinstance(bound, jax.core.Tracer) for bound in (*first, *second)):
        return True  # A bound that the program computes is not known here.
    return bool(np.allclose(first, second))
