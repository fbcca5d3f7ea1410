"""Utilities of alternatives: the sites that models of choices share, and how the sets are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from raters.distributions import ScaledNormal
from raters.errors import Reason, refuse
from raters.judgements.choices import Choices
from raters.judgements.names import shorten
from raters.model import Fit, Shift, Symmetry, Values
from raters.models.choices._collinear import collinear_features
from raters.models.settings import CheckedModel


@dataclass(frozen=True)
class Utility(CheckedModel[Choices]):
    """Model in which the utility of an alternative is a sum of terms."""

    features: bool = True
    constants: bool = True
    interactions: bool = False
    coefficient_scale: float = 2.5
    constant_scale: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.features or self.constants or self.interactions):
            problem = "leaves no term of the utility, as `constants` and `interactions` are off"
            refuse("features", False, problem, "let one of the three be there")

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the sites that add up to the utility."""
        terms = ("coefficient", self.features), ("constant", self.constants)
        both = (*terms, ("interaction", self.interactions))
        return tuple(name for name, is_there in both if is_there)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        shifts: tuple[Symmetry, ...] = (Shift("constant", 0),) if self.constants else ()
        return shifts + ((Shift("interaction", 1),) if self.interactions else ())

    def start(self, data: Choices) -> Values:
        return {name: np.zeros(shape) for name, shape in self._shapes(data).items()}

    def _shapes(self, data: Choices) -> dict[str, tuple[int, ...]]:
        """Shape of each term's site."""
        alternatives = len(data.alternatives)
        shapes = {
            "coefficient": (len(data.feature_names),),
            "constant": (alternatives,),
            "interaction": (len(data.chooser_names), alternatives),
        }
        return {name: shapes[name] for name in self.terms}

    def why_not(self, data: Choices) -> str | None:
        needed = {
            "features": ("alternatives", self.features and not data.feature_names),
            "interactions": ("choosers", self.interactions and not data.chooser_names),
        }
        for name, (of, is_missing) in needed.items():
            if is_missing:
                problem = f"needs features of the {of}, and these choices have none"
                expected = "read them with the choices, or leave the term out"
                return Reason(name, True, problem, expected)
        never = np.bincount(np.asarray(data.alternative), minlength=len(data.alternatives)) == 0
        if (self.constants or self.interactions) and never.any():
            names = [data.alternatives[code] for code in np.flatnonzero(never)]
            problem = f"are known from nothing of alternatives never offered ({shorten(names)})"
            return Reason("constants", True, problem, "leave these out of `alternatives`")
        return None

    def warnings(self, data: Choices, fit: Fit | None = None) -> tuple[str, ...]:
        collinear: tuple[str, ...] = ()
        if self.features:
            collinear = collinear_features(data, constants=self.constants)
        if self.interactions or not data.chooser_names:
            return collinear
        own = type(self).__name__
        return (
            *collinear,
            f"{own}() does not use the features of the choosers ({shorten(data.chooser_names)});"
            f" {own}(interactions=True) gives each alternative a coefficient of them",
        )


@contextmanager
def _plates(num_types: int | None, **sizes: int) -> Iterator[None]:
    """Plates of these names and sizes, and behind them that of the types where there are some."""
    axes = [*sizes.items()] if num_types is None else [*sizes.items(), ("type", num_types)]
    with ExitStack() as stack:
        for place, (name, size) in enumerate(reversed(axes), 1):
            stack.enter_context(numpyro.plate(name, size, dim=-place))
        yield


def sample_terms(model: Utility, data: Choices, num_types: int | None = None) -> Values:
    """Sample the coefficients, the constants and the interactions that a model has."""
    sites: Values = {}
    types = () if num_types is None else (1,)
    features, alternatives = len(data.feature_names), len(data.alternatives)
    if model.features:
        # A number as long as the data are some: then the support of the site is known to a reader.
        unit = (1 / data.scale).reshape(features, *types)
        with _plates(num_types, feature=features):
            prior = ScaledNormal(0.0, model.coefficient_scale * unit, unit)
            sites["coefficient"] = numpyro.sample("coefficient", prior)
    if model.constants:
        with _plates(num_types, alternative=alternatives):
            normal = dist.Normal(0.0, model.constant_scale)
            sites["constant"] = numpyro.sample("constant", normal)
    if model.interactions:
        choosers = len(data.chooser_names)
        unit = (1 / data.chooser_scale).reshape(choosers, 1, *types)
        with _plates(num_types, chooser_feature=choosers, alternative=alternatives):
            prior = ScaledNormal(0.0, model.coefficient_scale * unit, unit)
            sites["interaction"] = numpyro.sample("interaction", prior)
    return sites


def utility_of(sites: Values, data: Choices) -> Float[Array, " offer *type"]:
    """Utility of each alternative of each set, up to a number of the set."""
    utility: Array = jnp.zeros(())
    if "coefficient" in sites:
        # Back in the user's units, less their means.
        utility = utility + (data.features * data.scale) @ sites["coefficient"]
    if "constant" in sites:
        utility = utility + sites["constant"][data.alternative]
    if "interaction" in sites:
        own = (data.chooser_features * data.chooser_scale)[data.group]
        site = sites["interaction"]
        for feature in range(site.shape[0]):
            # One index for each row, as the conjugate updates read it.
            of_rows = site[jnp.full(data.num_rows, feature), data.alternative]
            column = own[:, feature].reshape(-1, *(1,) * (of_rows.ndim - 1))
            utility = utility + column * of_rows
    return utility


def set_of(data: Choices) -> Int[Array, " offer"]:
    """Place of each row's set; the number of sets for a row that only pads."""
    group = jnp.asarray(data.group)
    return group if data.count is None else jnp.where(data.count > 0, group, data.num_units)


def choices_made(data: Choices) -> Float[Array, " set"] | None:
    """Number of choices from each set; None for one from each."""
    if data.count is None:
        return None
    count: Array = jax.ops.segment_max(jnp.asarray(data.count, float), data.group, data.num_units)
    return jnp.maximum(count, 0.0)
