"""Positions of persons and directions of items in a space of few dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse

from raters.distributions.rows import votes_of
from raters.judgements.responses import Responses
from raters.model import Rotation, Values
from raters.models.settings import CheckedModel
from raters.terms.base import sample_vectors
from raters.terms.components import components


@dataclass(frozen=True)
class IdealPoint(CheckedModel[Responses]):
    r"""Ideal-point model: persons have positions, and each item divides them along a direction.

    .. math::

        P(\text{yes} \mid p, i) = \sigma\Big(c_i + \sum_d b_{id} \, x_{pd}\Big), \qquad
        x_{pd} \sim \mathrm{Normal}(0, 1), \quad b_{id} \sim \mathrm{Normal}(0, 2), \quad
        c_i \sim \mathrm{Normal}(0, 5)

    It follows from utilities that fall with the squared distance between a person's ideal point
    and what a vote of yes, and one of no, would bring about (Clinton, Jackman and Rivers 2004). Of
    a test it is `TwoPL` with slopes of either sign.

    Positions are known up to a rotation or reflection: draws are turned towards their mean, on its
    principal axes, each in the direction in which the person furthest from 0 is positive. With one
    dimension only the sign is open.

    Parameters
    ----------
    num_dimensions : int
        Number of dimensions.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "bill 1": [1, 1, 0], "bill 2": [0, 0, 1]}, person="who")
    >>> result = rt.fit(rt.models.IdealPoint(), votes, seed=0, progress=False)
    >>> result.posterior["position"].dims
    ('chain', 'draw', 'person', 'dimension')
    """

    num_dimensions: int = 1

    reference: ClassVar[str] = "clinton2004statistical"

    blocks = (("position",), ("intercept", "slope"))
    symmetries = (Rotation(("position", "slope")),)

    def generate(self, data: Responses) -> None:
        dimensions = ("dimension", self.num_dimensions)
        position = sample_vectors("position", 1.0, ("person", data.num_persons), dimensions)
        with numpyro.plate("item", data.num_items):
            intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
        slope = sample_vectors("slope", 2.0, ("item", data.num_items), dimensions)
        logits = intercept[data.item]
        for place in range(self.num_dimensions):
            # One index for each row, as the conjugate updates read it.
            column = np.full(data.num_rows, place)
            logits = logits + slope[data.item, column] * position[data.person, column]
        with numpyro.plate("response", data.num_rows):
            numpyro.sample("correct", votes_of(logits, data.count), obs=data.correct)

    def start(self, data: Responses) -> Values:
        asked = np.maximum(data.judgements_by("item"), 1)
        share = (data.answers_by("item")[:, 1] + 0.5) / (asked + 1)
        weight = np.asarray(data.weight, np.float64)
        correct = weight * share[np.asarray(data.item)] if data.correct is None else data.correct
        apart = np.asarray(correct, np.float64) - weight * share[np.asarray(data.item)]
        cells = (apart, (np.asarray(data.person), np.asarray(data.item)))
        table = scipy.sparse.coo_array(cells, (data.num_persons, data.num_items)).tocsr()
        return {
            "position": components(table, self.num_dimensions),
            "intercept": np.log(share / (1 - share)),
            "slope": np.full((data.num_items, self.num_dimensions), 0.1),
        }

    def marginal(self, data: Responses) -> str:
        """Why no mode can be found."""
        return (
            "the joint mode of positions and items is inconsistent for the items, and IdealPoint"
            " has no form with the positions integrated out; use PGGibbs, NUTS or SVI"
        )
