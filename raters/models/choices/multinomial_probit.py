"""Multinomial probit: normal errors, which some alternatives share in part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.choices import Choice
from raters.distributions.correlated_choices import ProbitChoice
from raters.errors import refuse
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Values
from raters.models.choices._names import names_of, unknown_name
from raters.models.choices._utility import Utility, choices_made, set_of

_SUCH = "shared=('red bus', 'blue bus')"


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
    of a logit. Probabilities are integrals: the program is for NUTS and SVI, and for sets of few
    alternatives.

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
    blocks: ClassVar[tuple[tuple[str, ...], ...]] = ()

    reference: ClassVar[str] = "hausman1978conditional"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shared", names_of("shared", self.shared, _SUCH))
        if len(self.shared) == 1:
            problem = "names one alternative, which has an error of its own already"
            refuse("shared", self.shared, problem, "name two or more", instead=_SUCH)

    def choice(self, utility: Float[Array, " offer *type"], data: Choices) -> Choice:
        loading = None
        if self.shared:
            scale = numpyro.sample("shared_scale", dist.HalfNormal(2.0))
            shares = [name_text(name) in self.shared for name in data.alternatives]
            loading = scale * jnp.asarray(shares, utility.dtype)[data.alternative]
        number = data.num_units
        return ProbitChoice(utility, set_of(data), number, data.most, loading, choices_made(data))

    def start(self, data: Choices) -> Values:
        start = super().start(data)
        return start | ({"shared_scale": np.asarray(1.0)} if self.shared else {})

    def why_not(self, data: Choices) -> str | None:
        return super().why_not(data) or unknown_name("shared", self.shared, data.alternatives)
