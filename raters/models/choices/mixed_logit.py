"""Mixed logit: each chooser has coefficients of their own, spread around those of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import ScaledNormal
from raters.distributions.normals import ScaledMultivariateNormal
from raters.errors import Reason, refuse
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Own, Values
from raters.models.base import worded
from raters.models.choices._names import groups_of, inside, names_of, unknown_name, why_not_groups
from raters.models.choices.multinomial_logit import Utility, sample_terms, utility_of
from raters.terms.base import sample_vectors, sampled

_SUCH = 'error_components=(("train", "bus"),)'
# Start of the spreads, in standard deviations of the features.
_START = 0.5


@dataclass(frozen=True)
class MixedLogit(Utility):
    r"""Mixed logit, also called the random-coefficients logit: each chooser has coefficients of
    their own, and keeps them in all of their choices.

    .. math::

        P(j \mid S, k) = \frac{e^{u_{Skj}}}{\sum_{i \in S} e^{u_{Ski}}}, \qquad
        u_{Skj} = \sum_f (\beta_f + \tau_{kf}) x_{Sjf} + \alpha_j + \sum_g \gamma_{jg} z_{Sg}
            + \sum_{c \ni j} e_{kc}

    with the terms and priors of `MultinomialLogit`, deviations τ of chooser k from the mean
    coefficients β, and error components e, which a chooser adds to all alternatives of a group c:

    .. math::

        \tau_k \sim \mathrm{Normal}(0, \mathrm{diag}(s) \, R \, \mathrm{diag}(s)), \qquad
        s_f \sim \mathrm{HalfNormal}(a / \mathrm{sd}_f), \qquad
        e_{kc} \sim \mathrm{Normal}(0, q_c), \quad q_c \sim \mathrm{HalfNormal}(1.5)

    R is the identity, or with `correlated` a correlation matrix, R ~ LKJ(1).

    ``result.posterior["own_coefficient"]`` has everybody's coefficients β + τ, and ``correlation``
    the matrix R.

    The likelihood of `raters.log_likelihood` is a product over sets, given everybody's
    coefficients; with ``by="annotator"`` these are integrated out.

    Identification: the likelihood is unchanged when a number is added to β and subtracted from all
    τ; the prior of τ, whose mean is 0, determines it.

    Parameters
    ----------
    features, constants, interactions, coefficient_scale, constant_scale
        Terms of the utility that all choosers share, and their priors; see `MultinomialLogit`.
    random : sequence of str, optional
        Features whose coefficients differ between choosers; by default all.
    correlated : bool
        Whether the coefficients of a chooser are correlated.
    error_components : sequence of sequences of str
        Groups of alternatives which choosers like or dislike as a whole; a group may have one
        alternative, whose constant then differs between choosers.
    spread_scale : float
        Scale a of the spreads s, in changes of utility with one standard deviation of the feature.

    Examples
    --------
    >>> import raters as rt
    >>> choices, truth = rt.datasets.choice_crowd(60, 8, spread=1.0, seed=0)
    >>> result = rt.fit(rt.MixedLogit(), choices, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result.posterior["own_coefficient"].dims
    ('chain', 'draw', 'annotator', 'feature')
    """

    random: tuple[str, ...] | None = None
    correlated: bool = False
    error_components: tuple[tuple[str, ...], ...] = ()
    spread_scale: float = 1.5

    reference = "revelt1998mixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random is not None:
            names = names_of("random", self.random, 'random=("price",)', "features")
            object.__setattr__(self, "random", names)
        groups = groups_of("error_components", self.error_components, _SUCH)
        object.__setattr__(self, "error_components", groups)
        if self.random and not self.features:
            problem = "names features, and features=False leaves them out"
            refuse("random", self.random, problem, "leave one of the two out")
        if not self.error_components and not self._varies:
            problem = "leaves nothing that differs between choosers"
            expected = "name features, or groups of alternatives as error components"
            refuse("random", self.random, problem, expected, instead="rt.MultinomialLogit()")

    # ---------------------------------------------------------------- facts

    @property
    def facts(self) -> tuple[Own, ...]:
        tastes = (Own("taste", "coefficient_spread"),) if self._varies else ()
        component = Own("error_component", "component_spread")
        return (*tastes, component) if self.error_components else tastes

    @property
    def _varies(self) -> bool:
        """True where coefficients differ between choosers."""
        return self.features and self.random != ()

    @property
    def _axis(self) -> str:
        """Axis of the features whose coefficients differ."""
        return "feature" if self.random is None else "random_feature"

    def axis_names(self, data: Choices) -> dict[str, tuple[Any, ...]]:
        """Names of the features whose coefficients differ, and of the error components."""
        groups = tuple(" + ".join(group) for group in self.error_components)
        names = tuple(data.feature_names[place] for place in self.places(data))
        own: dict[str, tuple[Any, ...]] = {"component": groups} if groups else {}
        if self._varies and self.random is not None:
            own["random_feature"] = names
        if self._varies and self.correlated:
            own["other_feature"] = names
        return own

    def places(self, data: Choices) -> tuple[int, ...]:
        """Places of the features whose coefficients differ."""
        if not self._varies:
            return ()
        names = list(map(name_text, data.feature_names))
        wanted = names if self.random is None else self.random
        return tuple(names.index(name) for name in wanted)

    # ---------------------------------------------------------------- program

    def utility(self, data: Choices) -> Float[Array, "set position"]:
        sites = sample_terms(self, data)
        utility = utility_of(sites, data)
        annotator = jnp.asarray(data.annotator)
        if self._varies:
            places = np.array(self.places(data))
            taste = self._tastes(data, places)
            self._own_coefficients(sites["coefficient"][places] + taste)
            columns = (data.features * data.scale)[..., places]
            utility = utility + jnp.einsum("spf,sf->sp", columns, taste[annotator])
        if self.error_components:
            effect = self._sample_components(len(data.annotators))
            within = jnp.asarray(inside(self.error_components, data))[data.offered]
            utility = utility + jnp.einsum("spc,sc->sp", within, effect[annotator])
        return utility

    def _tastes(self, data: Choices, places: np.ndarray) -> Float[Array, "annotator feature"]:
        """Sample the spreads, the correlations, and everybody's deviations."""
        number, axis = len(places), self._axis
        unit = 1 / data.scale[places]
        half = dist.HalfNormal(self.spread_scale * jnp.asarray(unit))
        spread = sampled("coefficient_spread", half, **{axis: number})
        people = len(data.annotators)
        prior: dist.Distribution = ScaledNormal(0.0, spread, unit)
        prior = prior.expand((people, number)).to_event(1)
        if self.correlated:
            tril = spread[:, None] * self._sample_correlations(number)
            prior = ScaledMultivariateNormal(jnp.zeros(number), tril, unit)
        return sampled("taste", prior, axis, annotator=people)

    def _sample_correlations(self, number: int) -> Float[Array, "feature feature"]:
        """Sample the Cholesky factor of the correlation matrix."""
        axis = self._axis
        lkj = dist.LKJCholesky(number, 1.0)
        factor = sampled("correlation_factor", lkj, axis, "other_feature")
        with numpyro.plate(axis, number, dim=-2), numpyro.plate("other_feature", number, dim=-1):
            numpyro.deterministic("correlation", factor @ factor.T)
        return factor

    def _own_coefficients(self, own: Float[Array, "annotator feature"]) -> None:
        """Record everybody's coefficients."""
        people, number = own.shape
        with numpyro.plate("annotator", people, dim=-2), numpyro.plate(self._axis, number, dim=-1):
            numpyro.deterministic("own_coefficient", own)

    def _sample_components(self, people: int) -> Float[Array, "annotator component"]:
        """Sample the error components and their spreads."""
        number = len(self.error_components)
        spread = sampled("component_spread", dist.HalfNormal(1.5), component=number)
        components = ("component", number)
        return sample_vectors("error_component", spread, ("annotator", people), components)

    def start(self, data: Choices) -> Values:
        start, people = super().start(data), len(data.annotators)
        if self._varies:
            places = np.array(self.places(data))
            start["coefficient_spread"] = _START / np.asarray(data.scale)[places]
            start["taste"] = np.zeros((people, len(places)))
            if self.correlated:
                start["correlation_factor"] = np.eye(len(places))
        if number := len(self.error_components):
            start["component_spread"] = np.full(number, _START)
            start["error_component"] = np.zeros((people, number))
        return start

    # ---------------------------------------------------------------- refusals

    def why_not(self, data: Choices) -> str | None:
        if reason := super().why_not(data):
            return reason
        if reason := unknown_name("random", self.random or (), data.feature_names, "feature"):
            return reason
        if self._varies and self.correlated and len(self.places(data)) < 2:
            problem = "needs two coefficients that differ between choosers"
            return Reason("correlated", True, problem, "turn it off for one")
        return why_not_groups("error_components", self.error_components, data, together=False)

    def data_warnings(self, data: Choices) -> tuple[str, ...]:
        number = data.judgements_by("annotator")
        sentences = super().data_warnings(data)
        if (number > 0).sum() < 2:
            return (*sentences, worded("one_chooser"))
        return (*sentences, worded("single_choices")) if number.max() < 2 else sentences
