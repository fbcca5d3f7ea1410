"""Multinomial probit: normal errors, which some alternatives share in part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions import ProbitChoice
from raters.errors import refuse
from raters.errors.validation import plain_positive
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Symmetry, Values
from raters.models.choices._names import names_of, unknown_name
from raters.models.choices._utility import Utility, choices_made, sample_terms, set_of, utility_of

_SUCH = "shared=('red bus', 'blue bus')"


@dataclass(frozen=True)
class MultinomialProbit(Utility):
    r"""Multinomial probit: the noise of the utilities is normal, and correlated between
    alternatives that share an error.

    .. math::

        y_S = \arg\max_{j \in S} (u_{Sj} + s f_S 1[j \in C] + \varepsilon_{Sj}), \qquad
        f_S, \varepsilon_{Sj} \sim \mathrm{Normal}(0, 1), \quad s \sim \mathrm{HalfNormal}(h)

    with the terms and priors of `MultinomialLogit` for the utilities u, and the alternatives C
    that share an error: with a large s a red and a blue bus divide between them what one bus would
    have, where independent errors give each as much as a car. Without `shared`, errors are
    independent.

    Coefficients are in the user's units, for errors of standard deviation 1: about 1.3 times
    smaller than those of a logit, whose errors are wider.

    Probabilities are integrals, computed as sums over nodes of both errors, and not affine in
    anything: the program is for NUTS and SVI, and for sets of few alternatives. A gradient takes
    time in proportion to the number of sets and the square of their size.

    Parameters
    ----------
    shared : tuple of str
        Alternatives that share an error.
    shared_scale_prior : float
        Scale h of the half-normal prior of the size s of that error.
    features, constants, interactions : bool
        Terms of the utility; see `MultinomialLogit`.
    coefficient_scale, constant_scale : float
        Standard deviations of the priors; see `MultinomialLogit`.

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
    shared_scale_prior: float = 2.0

    # Its utilities are affine in the coefficients, and its choices are no softmax of them.
    blocks: ClassVar[tuple[tuple[str, ...], ...]] = ()

    reference: ClassVar[str] = "hausman1978conditional"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain_positive(self, "shared_scale_prior")
        object.__setattr__(self, "shared", names_of("shared", self.shared, _SUCH))
        if len(self.shared) == 1:
            refuse(
                "shared",
                self.shared,
                "names one alternative, which has an error of its own already",
                "name two or more that share one",
                instead=_SUCH,
            )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """A number added to all constants, or to all coefficients of a feature of the choosers."""
        return self.shifts

    def generate(self, data: Choices) -> None:
        """Define the NumPyro program."""
        utility = utility_of(sample_terms(self, data), data)
        loading = None
        if self.shared:
            scale = numpyro.sample("shared_scale", dist.HalfNormal(self.shared_scale_prior))
            shares = [name_text(name) in self.shared for name in data.alternatives]
            loading = scale * jnp.asarray(shares, utility.dtype)[data.alternative]
        with numpyro.plate("set", data.num_units):
            choice = ProbitChoice(
                utility, set_of(data), data.num_units, data.most, loading, choices_made(data)
            )
            numpyro.sample("chosen", choice, obs=data.chosen)

    def start(self, data: Choices) -> Values:
        """Start where all alternatives are chosen alike, and share half of their variance."""
        start = super().start(data)
        return start | ({"shared_scale": np.asarray(1.0)} if self.shared else {})

    def why_not(self, data: Choices) -> str | None:
        """Refuse names of no alternatives."""
        return super().why_not(data) or unknown_name("shared", self.shared, data.alternatives)
