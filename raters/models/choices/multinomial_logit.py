"""Utilities of alternatives: the sites that models of choices share, and how the sets are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from raters.distributions import ScaledNormal
from raters.distributions.choices import Choice, each, item_of, of_offered
from raters.errors import Reason, refuse
from raters.judgements.choices import Choices
from raters.judgements.names import shorten
from raters.model import Shift, Symmetry, Values
from raters.models.base import CheckedModel, worded
from raters.terms.base import sampled

# Standard deviations of the features that the coefficients of a site are of.
SCALES = {"coefficient": "scale", "interaction": "chooser_scale"}


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

    def axes(self, data: Choices) -> dict[str, dict[str, int]]:
        """Axes of each term's site, and their sizes."""
        alternatives = {"alternative": len(data.alternatives)}
        axes = {
            "coefficient": {"feature": len(data.feature_names)},
            "constant": alternatives,
            "interaction": {"chooser_feature": len(data.chooser_names)} | alternatives,
        }
        return {name: axes[name] for name in self.terms}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        shifts: tuple[Symmetry, ...] = (Shift("constant", 0),) if self.constants else ()
        return shifts + ((Shift("interaction", 1),) if self.interactions else ())

    def utility(self, data: Choices) -> Float[Array, "set position *type"]:
        """Sample the terms, and return the utility of each alternative of each set."""
        return utility_of(sample_terms(self, data), data)

    def choice(self, utility: Float[Array, "set position *type"], data: Choices) -> Choice:
        """Distribution of the choices, given the utilities."""
        utility = of_offered(utility, data.offered)
        return Choice(utility, each(data.count, utility))

    def generate(self, data: Choices) -> None:
        choice = self.choice(self.utility(data), data)
        sampled("chosen", choice, obs=data.chosen, set=data.num_rows)

    def start(self, data: Choices) -> Values:
        return {name: np.zeros(tuple(axes.values())) for name, axes in self.axes(data).items()}

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
        offered = np.asarray(data.offered)[data.there]
        never = np.bincount(offered, minlength=len(data.alternatives)) == 0
        if (self.constants or self.interactions) and never.any():
            names = [data.alternatives[code] for code in np.flatnonzero(never)]
            problem = f"are known from nothing of alternatives never offered ({shorten(names)})"
            return Reason("constants", True, problem, "leave these out of `alternatives`")
        return None

    def data_warnings(self, data: Choices) -> tuple[str, ...]:
        collinear: tuple[str, ...] = ()
        if self.features:
            collinear = collinear_features(data, constants=self.constants)
        if self.interactions or not data.chooser_names:
            return collinear
        numbers = {"model": type(self).__name__, "names": shorten(data.chooser_names)}
        return (*collinear, worded("unused_choosers", **numbers))


def sample_terms(model: Utility, data: Choices, num_types: int | None = None) -> Values:
    """Sample the coefficients, the constants and the interactions that a model has."""
    sites: Values = {}
    for name, axes in model.axes(data).items():
        plates = axes if num_types is None else axes | {"type": num_types}
        prior: dist.Distribution = dist.Normal(0.0, model.constant_scale)
        if name in SCALES:
            # A number as long as the data are some: then the support of the site is known to a
            # reader.
            unit = (1 / getattr(data, SCALES[name])).reshape(-1, *(1,) * (len(plates) - 1))
            prior = ScaledNormal(0.0, model.coefficient_scale * unit, unit)
        sites[name] = sampled(name, prior, **plates)
    return sites


def utility_of(sites: Values, data: Choices) -> Float[Array, "set position *type"]:
    """Utility of each alternative of each set, up to a number of the set."""
    utility: Array = jnp.zeros(())
    item = item_of(data.offered)
    if "coefficient" in sites:
        # Back in the user's units, less their means.
        utility = utility + (data.features * data.scale) @ sites["coefficient"]
    if "constant" in sites:
        utility = utility + sites["constant"][item]
    if "interaction" in sites:
        own = data.chooser_features * data.chooser_scale
        utility = utility + jnp.einsum("sg,gsp...->sp...", own, sites["interaction"][:, item])
    return utility


@dataclass(frozen=True)
class MultinomialLogit(Utility):
    r"""Multinomial logit, also called the conditional logit: utilities are sums of terms, and noise
    is independent.

    .. math::

        P(j \mid S) = \frac{e^{u_{Sj}}}{\sum_{k \in S} e^{u_{Sk}}}, \qquad
        u_{Sj} = \sum_f \beta_f x_{Sjf} + \alpha_j + \sum_g \gamma_{jg} z_{Sg}

    with features x of the alternatives, a constant :math:`\alpha` of each, and features z of the
    choosers. Coefficients are in the user's units. Priors are in standard deviations of the
    features, within sets for those of the alternatives, between sets for those of the choosers:

    .. math::

        \beta_f \sim \mathrm{Normal}(0, c / \mathrm{sd}_f), \qquad
        \gamma_{jg} \sim \mathrm{Normal}(0, c / \mathrm{sd}_g), \qquad
        \alpha_j \sim \mathrm{Normal}(0, d)

    Constants add up to 0, and so do the coefficients of each feature of the choosers.

    Parameters
    ----------
    features, constants, interactions : bool
        Terms of the utility: features of the alternatives, a constant of each (turn it off where
        the names are mere places in a list), and coefficients of the features of the choosers.
    coefficient_scale : float
        Standard deviation c of the change of utility with one standard deviation of a feature.
    constant_scale : float
        Standard deviation d of the constants.

    Examples
    --------
    >>> import raters as rt
    >>> choices = rt.Choices.from_wide(
    ...     {"took": ["car", "bus", "car"], "car": [9, 8, 5], "bus": [4, 3, 4]}, choice="took",
    ...     alternatives=["car", "bus"], features={"price": ["car", "bus"]})
    >>> nuts = rt.NUTS(draws=500, warmup=300, chains=2)
    >>> result = rt.fit(rt.MultinomialLogit(), choices, nuts, seed=0, progress=False)
    >>> result.posterior["coefficient"].dims
    ('chain', 'draw', 'feature')
    """

    reference = "mcfadden1974conditional"


Columns = Float[np.ndarray, "offer column"]
Codes = Int[np.ndarray, " offer"]
Products = Float[np.ndarray, "column column"]
# Square of a sum of columns of length 1 up to which it is 0. Rounding leaves about 1e-14; two
# columns that are the same but for 1/10,000 leave 1e-8.
_NOTHING = 1e-10
# Product of two weights of such a sum up to which one of them is 0.
_NO_WEIGHT = 1e-5
# Alternatives up to which features are compared with the constants.
_MOST_ALTERNATIVES = 500


def collinear_features(data: Choices, *, constants: bool) -> tuple[str, ...]:
    """Sentences about features that are exactly collinear within sets."""
    data = data.unpadded()
    there, size = data.there, data.there.sum(1)
    values = np.where(there[..., None], np.asarray(data.features, float), 0.0)
    # Only differences within sets count.
    values = (values - values.sum(1, keepdims=True) / size[:, None, None])[there]
    length = np.sqrt((values**2).sum(0))
    differs = length > 0
    if not differs.any():
        return ()
    columns = values[:, differs] / length[differs]
    names = [name for name, own in zip(data.feature_names, differs, strict=True) if own]
    product = columns.T @ columns
    alike = _vanishing(product)
    vanishing = [("collinear", alike)]
    if constants and len(data.alternatives) <= _MOST_ALTERNATIVES:
        alternative = np.asarray(data.offered)[there]
        explained = _explained(columns, size, alternative, len(data.alternatives))
        vanishing.append(("collinear_constants", _vanishing(product - explained) - alike))
    return tuple(
        worded(code, names=shorten(names[place] for place in places))
        for code, projection in vanishing
        for places in _groups(projection)
    )


def _explained(columns: Columns, size: Codes, alternative: Codes, number: int) -> Products:
    """Products of the columns' projections on the constants of the alternatives within sets."""
    row = np.repeat(np.arange(len(size)), size), alternative
    offered = sparse.csr_array((1 / np.sqrt(size)[row[0]], row), shape=(len(size), number))
    between = (offered.T @ offered).toarray()
    own = np.diag(np.bincount(alternative, minlength=number)) - between
    sums = np.stack([np.bincount(alternative, column, number) for column in columns.T])
    return sums @ np.linalg.pinv(own, rcond=_NOTHING, hermitian=True) @ sums.T


def _vanishing(product: Products) -> Products:
    """Projection on the weights with which columns add up to 0, from their products."""
    square, weights = np.linalg.eigh(product)
    vanishing = weights[:, square < _NOTHING]
    return vanishing @ vanishing.T


def _groups(projection: Products) -> Iterator[Int[np.ndarray, " some"]]:
    """Places of the columns of each sum that is 0."""
    joined = np.abs(projection) > _NO_WEIGHT
    number, group = connected_components(joined, directed=False)
    for code in range(number):
        places = np.flatnonzero(group == code)
        if joined[places, places].any():
            yield places
