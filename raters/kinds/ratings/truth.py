"""Calibration of the order of rated items."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from raters.fitting.result import draws_of
from raters.kinds.orders import OrderCalibration, PerCompetence
from raters.kinds.ratings import audit
from raters.program import Program


class RatingCalibration(OrderCalibration):
    """Statements about the order of rated items, from `raters.calibrate`."""

    competences = np.linspace(-6, 10, 161)

    @property
    def known_questions(self) -> Int[np.ndarray, " question"]:
        """Codes of the items that are in a known order."""
        data = self.program.data.unpadded()
        known = np.isin(np.asarray(data.item), np.concatenate(self.orders[:2]))
        return np.asarray(np.unique(data.about()[known]))

    @classmethod
    def check(cls, program: Program[Any]) -> None:
        """Raise unless the model is `ManyFacet`."""
        audit.check_many_facet(program)

    def _accuracies(self) -> PerCompetence:
        """Probability that two random items on different levels are in the right order."""
        model = audit.check_many_facet(self.program)
        draws = draws_of(self.program, self.result)[0]
        sites = {name: np.asarray(value, float).mean(0) for name, value in draws.items()}
        sites["competence"] = self.competences
        for name in {"severity", "threshold_deviation"} & set(sites):
            mean = sites[name].mean(0, keepdims=True)
            sites[name] = np.repeat(mean, len(self.competences), axis=0)
        grid = np.meshgrid(audit.NODES, np.arange(len(self.competences)), indexing="ij")
        value, other = map(jnp.asarray, grid)
        average = {name: jnp.asarray(site) for name, site in sites.items()}
        probs = np.asarray(model.answers_at(value, other, average).probs, float)
        below = np.cumsum(probs, -1) - probs
        # Weight of the better node, then the worse one.
        both = np.tril(np.outer(audit.WEIGHTS, audit.WEIGHTS), -1)
        right = np.einsum("ab,acl,bcl->c", both, probs, below)
        wrong = np.einsum("ab,acl,bcl->c", both, below, probs)
        share: PerCompetence = right / (right + wrong)
        return np.maximum.accumulate(share)
