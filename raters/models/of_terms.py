"""Models whose predictor is a combination of terms."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import GroupedMixture
from raters.errors import refuse
from raters.judgements.base import Judgements
from raters.model import Fit, Sign, Symmetry, Values
from raters.models.base import CheckedModel, open_mirror
from raters.terms.base import Term, sampled
from raters.terms.types import Mixed, separation_warnings


class TermModel[Data: Judgements](CheckedModel[Data]):
    """Model with a predictor made of terms."""

    # What is judged, in words, and the works that a model with ties cites.
    words: ClassVar[str]
    ties_reference: ClassVar[str]

    ties: Any = None

    @property
    @abc.abstractmethod
    def predictor(self) -> Term:
        """Log-odds of a vote for the first item, or utilities of the items of a ranking."""

    @property
    def types(self) -> Any:
        """The term whose types of annotators are summed out, or None."""
        found = [term for term in self.predictor.every() if hasattr(term, "sample_weight")]
        if len(found) > 1:
            expected = "have one term of types in a predictor"
            refuse("terms", self.predictor, "cannot be summed out", expected)
        return found[0] if found else None

    @property
    def cited(self) -> tuple[str, ...]:
        ties = "" if self.ties is None else self.ties_reference
        return (self.reference, ties, *(term.reference for term in self.predictor.every()))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return self.predictor.symmetries

    def axis_names(self, data: Data) -> dict[str, tuple[Any, ...]]:
        return self.predictor.axis_names(data)

    def observe_by_type(
        self, weight: Float[Array, " type"], rows: dist.Distribution, given: Any, data: Any
    ) -> None:
        """Sample the observed site, with the type of each annotator summed out."""
        types, number = dist.Categorical(probs=weight), data.num_annotators
        mixture = GroupedMixture(types, rows, data.annotator, number)
        facts = {"unit": "annotator", "latent_class": "type", "class_names": self.types.names}
        sampled(self.observed, mixture, obs=given, infer=facts, annotator=number)

    def start(self, data: Data) -> Values:
        return self.predictor.start(data)

    def another_start(self, data: Data, rng: np.random.Generator) -> Values | None:
        if not isinstance(self.types, Mixed):
            return None
        return self.predictor.start(data) | self.types.start(data, rng)

    def why_not(self, data: Data) -> str | None:
        return self.predictor.why_not(data)

    def data_warnings(self, data: Data) -> tuple[str, ...]:
        return self.predictor.warnings(data)

    def fit_warnings(self, data: Data, fit: Fit) -> tuple[str, ...]:
        if isinstance(self.types, Mixed):
            return separation_warnings(fit.responsibility, self.types.word)
        has_mirror = any(isinstance(one, Sign) for one in self.symmetries)
        if not has_mirror or "competence" not in fit.draws:
            return ()
        return open_mirror(fit.draws["competence"], data, self.words)
