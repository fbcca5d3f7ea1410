"""Models in which alternatives resemble each other in what the model does not see."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.choices import Choice, NestedChoice, ProbitChoice, item_of, of_offered
from raters.errors import Reason, refuse
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Values
from raters.models.choices._names import groups_of, names_of, unknown_name, why_not_groups
from raters.models.choices.multinomial_logit import Utility
from raters.terms.base import sampled

_NESTS = "nests=(('red bus', 'blue bus'),)"
_SHARED = "shared=('red bus', 'blue bus')"
# Start of the dissimilarities, where nests matter a little.
_START = 0.8


@dataclass(frozen=True)
class NestedLogit(Utility):
    r"""Nested logit: what is offered beside an alternative takes more from those of its nest.

    .. math::

        P(j \mid S) = \frac{e^{u_{Sj} / \lambda_m}}{e^{I_{Sm}}} \,
            \frac{e^{\lambda_m I_{Sm}}}{\sum_l e^{\lambda_l I_{Sl}}}, \qquad
        I_{Sm} = \log \sum_{k \in S \cap m} e^{u_{Sk} / \lambda_m}, \qquad
        \lambda_m \sim \mathrm{Uniform}(0, 1)

    with the terms and priors of `MultinomialLogit` for the utilities u, and nest m of alternative
    j. A dissimilarity λ of 1 gives that model; near 0 the alternatives of a nest are one, such as a
    red and a blue bus. Alternatives that no nest names are alone.

    Utilities enter by λ, so that the program is not for the Pólya-Gamma back-ends.

    Parameters
    ----------
    nests : tuple of tuple of str
        Names of the alternatives of each nest: ``nests=(("train", "car"),)``.
    features, constants, interactions, coefficient_scale, constant_scale
        Terms of the utility and their priors; see `MultinomialLogit`.

    Examples
    --------
    >>> import raters as rt
    >>> table = {"trip": [1, 1, 1, 2, 2], "mode": ["car", "red", "blue", "car", "red"],
    ...          "taken": [1, 0, 0, 0, 1]}
    >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken")
    >>> model = rt.models.NestedLogit(nests=(("red", "blue"),), features=False)
    >>> rt.program.Program(model, choices).sites["dissimilarity"].dims
    ('nest',)
    """

    nests: tuple[tuple[str, ...], ...] = ()

    # Its utilities are affine in the coefficients, and its choices are no softmax of them.
    blocks = ()

    reference = "mcfadden1978modelling"

    def __post_init__(self) -> None:
        super().__post_init__()
        nests = groups_of("nests", self.nests, _NESTS)
        names_of("nests", [name for nest in nests for name in nest], _NESTS)
        object.__setattr__(self, "nests", nests)

    def choice(self, utility: Float[Array, "set position"], data: Choices) -> Choice:
        number = len(self.nests)
        prior = dist.Uniform(jnp.zeros(number), 1.0).to_event(1)
        own = sampled("dissimilarity", prior, "nest")
        code = {name: place for place, nest in enumerate(self.nests) for name in nest}
        nests = [code.get(name_text(name), -1) for name in data.alternatives]
        nest = jnp.array(nests, int)[item_of(data.offered)]
        return NestedChoice(of_offered(utility, data.offered), nest, own, data.count)

    def start(self, data: Choices) -> Values:
        return super().start(data) | {"dissimilarity": np.full(len(self.nests), _START)}

    def why_not(self, data: Choices) -> str | None:
        if reason := super().why_not(data):
            return reason
        if not self.nests:
            return Reason("nests", (), "names no nest", "name the alternatives of each nest")
        return why_not_groups("nests", self.nests, data, together=True)


@dataclass(frozen=True)
class MultinomialProbit(Utility):
    r"""Multinomial probit: the noise of the utilities is normal, and correlated between
    alternatives that share an error.

    .. math::

        y_S = \arg\max_{j \in S} (u_{Sj} + s f_S 1[j \in C] + \varepsilon_{Sj}), \qquad
        f_S, \varepsilon_{Sj} \sim \mathrm{Normal}(0, 1), \quad s \sim \mathrm{HalfNormal}(2)

    with the terms and priors of `MultinomialLogit` for the utilities u, and the alternatives C
    that share an error: with a large s a red and a blue bus divide between them what one bus would
    have. Errors have standard deviation 1, so coefficients are about 1.3 times smaller than those
    of a logit. Probabilities are integrals: the program is for HMC, NUTS and SVI, and for sets of
    few alternatives.

    Parameters
    ----------
    shared : tuple of str
        Alternatives that share an error.
    features, constants, interactions, coefficient_scale, constant_scale
        Terms of the utility and their priors; see `MultinomialLogit`.

    Examples
    --------
    >>> import raters as rt
    >>> table = {"trip": [1, 1, 1, 2, 2], "mode": ["car", "red", "blue", "car", "red"],
    ...          "taken": [1, 0, 0, 0, 1]}
    >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken")
    >>> model = rt.models.MultinomialProbit(shared=("red", "blue"), features=False)
    >>> list(rt.program.Program(model, choices).sites)
    ['constant', 'shared_scale']
    """

    shared: tuple[str, ...] = ()

    # Its utilities are affine in the coefficients, and its choices are no softmax of them.
    blocks = ()

    reference = "hausman1978conditional"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shared", names_of("shared", self.shared, _SHARED))
        if len(self.shared) == 1:
            problem = "names one alternative, which has an error of its own already"
            refuse("shared", self.shared, problem, "name two or more", instead=_SHARED)

    def choice(self, utility: Float[Array, "set position"], data: Choices) -> Choice:
        loading = None
        if self.shared:
            scale = sampled("shared_scale", dist.HalfNormal(2.0))
            shares = [name_text(name) in self.shared for name in data.alternatives]
            loading = scale * jnp.asarray(shares, utility.dtype)[item_of(data.offered)]
        return ProbitChoice(of_offered(utility, data.offered), loading, data.count)

    def start(self, data: Choices) -> Values:
        start = super().start(data)
        return start | ({"shared_scale": np.asarray(1.0)} if self.shared else {})

    def why_not(self, data: Choices) -> str | None:
        return super().why_not(data) or unknown_name("shared", self.shared, data.alternatives)
