"""Nested logit: alternatives of a nest resemble each other in what the model does not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from raters.distributions.choices import Choice
from raters.distributions.correlated_choices import NestedChoice
from raters.errors import Reason, refuse
from raters.errors.validation import is_list
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Values
from raters.models.choices._names import names_of, unknown_name
from raters.models.choices._utility import Utility, choices_made, set_of

_SUCH = "nests=(('red bus', 'blue bus'),)"
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
    blocks: ClassVar[tuple[tuple[str, ...], ...]] = ()

    reference: ClassVar[str] = "mcfadden1978modelling"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_list(self.nests) or not all(map(is_list, self.nests)):
            expected = "it must list the nests, each a list of alternatives"
            refuse("nests", self.nests, expected=expected, instead=_SUCH)
        nests = tuple(names_of("nests", nest, _SUCH) for nest in self.nests)
        names_of("nests", [name for nest in nests for name in nest], _SUCH)
        object.__setattr__(self, "nests", nests)

    def choice(self, utility: Float[Array, " offer *type"], data: Choices) -> Choice:
        number = len(self.nests)
        prior = dist.Uniform(jnp.zeros(number), 1.0).to_event(1)
        own = numpyro.sample("dissimilarity", prior, infer={"event_dims": ["nest"]})
        nest = self._nest_of(data)
        # Alternatives on their own are nests of one, whose dissimilarity does not matter.
        every = jnp.concatenate([own, jnp.ones(int(nest.max()) + 1 - number)])
        of_row = jnp.asarray(nest)[data.alternative]
        number = data.num_units
        return NestedChoice(utility, set_of(data), number, of_row, every, choices_made(data))

    def _nest_of(self, data: Choices) -> Int[np.ndarray, " alternative"]:
        """Nest of each alternative; those that no nest names come after the nests."""
        code = {name: place for place, nest in enumerate(self.nests) for name in nest}
        alone = iter(range(len(self.nests), len(self.nests) + len(data.alternatives)))
        own = [code.get(name_text(name)) for name in data.alternatives]
        nests = [next(alone) if place is None else place for place in own]
        return np.array([*nests], np.int32)

    def start(self, data: Choices) -> Values:
        return super().start(data) | {"dissimilarity": np.full(len(self.nests), _START)}

    def why_not(self, data: Choices) -> str | None:
        if reason := super().why_not(data):
            return reason
        if not self.nests:
            return Reason("nests", (), "names no nest", "name the alternatives of each nest")
        named = (name for nest in self.nests for name in nest)
        if reason := unknown_name("nests", named, data.alternatives):
            return reason
        return self._why_not_together(data)

    def _why_not_together(self, data: Choices) -> str | None:
        """Refuse a nest of which no two alternatives are ever offered together."""
        nest, group = self._nest_of(data), np.asarray(data.group)
        number = int(nest.max()) + 1
        cell = group * number + nest[np.asarray(data.alternative)]
        pairs = np.bincount(cell, minlength=data.num_units * number).reshape(-1, number).max(0)
        if (pairs[: len(self.nests)] > 1).all():
            return None
        alone = self.nests[int(np.argmin(pairs[: len(self.nests)]))]
        problem = "is a nest of which no set offers two alternatives"
        return Reason("nests", alone, problem, "leave it out")
