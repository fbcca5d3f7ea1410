"""Base of models of ratings: qualities of items, competences of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions import Repeated
from raters.judgements.ratings import Ratings
from raters.model import Fit, Sign, Symmetry, Values
from raters.models.mirror import open_mirror
from raters.models.on_nodes import Integrable

Competence = Literal["positive", "signed"]


@dataclass(frozen=True)
class FacetModel(Integrable[Ratings]):
    """Model of ratings with standard normal rewards."""

    competence: Competence = "signed"

    integrated = ("reward", "item", "annotator")

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (Sign(("reward", "competence")),) if self.competence == "signed" else ()

    def generate(self, data: Ratings) -> None:
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        sites = self.sample_others(data.num_annotators, data.num_levels)
        rating = self.answers_at(reward[data.item], data.annotator, sites, data.num_levels)
        with numpyro.plate("row", data.num_rows):
            numpyro.sample("rating", Repeated(rating, data.count), obs=data.rating)

    def start(self, data: Ratings) -> Values:
        return {"reward": data.standard_levels("item")} | self.start_others(
            data.answers_by("annotator")
        )

    def data_warnings(self, data: Ratings) -> tuple[str, ...]:
        if len(np.unique(np.asarray(data.annotator))) > 1:
            return ()
        return (
            "all ratings are by one annotator, whose competence and severity cannot be told from"
            " what all annotators share; name the column that says who rated",
        )

    def fit_warnings(self, data: Ratings, fit: Fit) -> tuple[str, ...]:
        if self.competence != "signed":
            return ()
        return open_mirror(fit.draws["competence"], data, "ratings")
