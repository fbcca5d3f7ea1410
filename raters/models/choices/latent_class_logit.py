"""Latent-class logit: each type of chooser has utilities of its own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import GroupedMixture
from raters.errors import Reason, refuse
from raters.judgements.choices import Choices
from raters.judgements.names import name_text
from raters.model import Fit, Permute, Symmetry, Values
from raters.models.choices._names import names_of, unknown_name
from raters.models.choices.multinomial_logit import SCALES, Utility, sample_terms, utility_of
from raters.terms.base import sampled
from raters.terms.types import empty_types, sample_weight

# Standard deviation of a start drawn at random, in standard deviations of the features.
_APART = 0.5


@dataclass(frozen=True)
class LatentClassLogit(Utility):
    r"""Latent-class logit: choosers, or single choices, are of several types, and each type has the
    utilities of a multinomial logit.

    .. math::

        p(y_k) = \sum_t \eta_t \prod_{S \in k} \frac{e^{u_{S y_S t}}}{\sum_{j \in S} e^{u_{Sjt}}},
        \qquad \eta \sim \mathrm{Dirichlet}(1, \dots, 1)

    with the terms and priors of `MultinomialLogit` for the utilities of each type t. The type of
    each chooser k is summed out, so that the likelihood is a product over choosers, the unit that
    `raters.log_likelihood` and ``arviz.loo`` leave out; with ``by="set"`` each choice has a type of
    its own, and the unit is the set. The probabilities of the types are in
    ``result["types"]["responsibility"]``.

    With `ignored`, there are two types, who share all coefficients, but that the second does not
    look at some features: their coefficients are 0. Types are numbered by decreasing share, unless
    features are ignored.

    Parameters
    ----------
    features, constants, interactions, coefficient_scale, constant_scale
        Terms of the utility and their priors; see `MultinomialLogit`.
    num_types : int
        Number of types.
    by : {"annotator", "set"}
        Whether choosers have types, or single choices.
    ignored : sequence of str
        Features that the second of two types does not look at; none by default.

    Examples
    --------
    >>> import raters as rt
    >>> table = {"who": ["ann"] * 4 + ["bob"] * 4, "trip": [1, 1, 2, 2, 3, 3, 4, 4],
    ...          "mode": ["car", "bus"] * 4, "taken": [1, 0] * 2 + [0, 1] * 2}
    >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken",
    ...                                 annotator="who")
    >>> model = rt.models.LatentClassLogit(features=False)
    >>> rt.program.Program(model, choices).sites["constant"].dims
    ('alternative', 'type')
    """

    num_types: int = dataclasses.field(default=2, metadata={"least": 2})
    by: Literal["annotator", "set"] = "annotator"
    ignored: tuple[str, ...] = ()

    reference = "kamakura1989probabilistic"

    def __post_init__(self) -> None:
        super().__post_init__()
        ignored = names_of("ignored", self.ignored, 'ignored=("price",)', "features")
        object.__setattr__(self, "ignored", ignored)
        if self.ignored and self.num_types != 2:
            problem = "is not possible with features that one type ignores"
            such = "num_types=2"
            refuse("num_types", self.num_types, problem, "there are two types", instead=such)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        if self.ignored:
            return super().symmetries
        return (*super().symmetries, Permute((*self.terms, "type_weight"), share="type_weight"))

    def generate(self, data: Choices) -> None:
        weight = sample_weight(jnp.full(self.num_types, 1.0))
        choice = self.choice(self.utility(data), data)
        number, group = len(data.annotators), data.annotator
        if self.by == "set":
            number, group = data.num_rows, jnp.arange(data.num_rows)
        facts: dict[str, Any] = {"unit": self.by, "latent_class": "type"}
        if self.ignored:
            facts["class_names"] = ("look at all", f"ignore {', '.join(self.ignored)}")
        mixture = GroupedMixture(dist.Categorical(probs=weight), choice, group, number)
        sampled("chosen", mixture, obs=data.chosen, infer=facts, **{self.by: number})

    def utility(self, data: Choices) -> Float[Array, "set position type"]:
        """Utility of each alternative of each set for each type."""
        if not self.ignored:
            return utility_of(sample_terms(self, data, self.num_types), data)
        sites = sample_terms(self, data)
        kept = np.array([name_text(name) not in self.ignored for name in data.feature_names], float)
        ignoring = sites | {"coefficient": sites["coefficient"] * kept}
        return jnp.stack([utility_of(sites, data), utility_of(ignoring, data)], axis=-1)

    def start(self, data: Choices) -> Values:
        return self.another_start(data, np.random.default_rng(0))

    def another_start(self, data: Choices, rng: np.random.Generator) -> Values:
        start: Values = {"type_weight": np.full(self.num_types, 1 / self.num_types)}
        if self.ignored:
            return start | super().start(data)
        for name, axes in self.axes(data).items():
            drawn = rng.normal(0.0, _APART, (*axes.values(), self.num_types))
            if name in SCALES:
                unit = np.asarray(getattr(data, SCALES[name]))
                drawn /= unit.reshape(-1, *(1,) * (drawn.ndim - 1))
            if "alternative" in axes:
                drawn -= drawn.mean([*axes].index("alternative"), keepdims=True)
            start[name] = drawn
        return start

    def why_not(self, data: Choices) -> str | None:
        if reason := super().why_not(data):
            return reason
        if reason := unknown_name("ignored", self.ignored, data.feature_names, "feature"):
            return reason
        if self.by == "set":
            if np.max(data.weight, initial=0) <= 1:
                return None
            problem = "gives each choice a type of its own, and some sets stand for several choices"
            expected = "read the table without putting equal sets together"
            return Reason("by", "set", problem, expected)
        chose = int((data.judgements_by("annotator") > 0).sum())
        if chose >= self.num_types:
            return None
        problem = f"is not possible with {chose} annotator(s) who chose"
        expected = "say by `annotator` who chose, or use `by`"
        return Reason("num_types", self.num_types, problem, expected)

    def data_warnings(self, data: Choices) -> tuple[str, ...]:
        return ()

    def fit_warnings(self, data: Choices, fit: Fit) -> tuple[str, ...]:
        return empty_types(fit.responsibility, self.by)
