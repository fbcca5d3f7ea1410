"""Ratings as a kind of judgement: competence, severity and scale use of annotators, fair ratings,
and what known orders tell."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from raters import kinds
from raters.auditing.intervals import table
from raters.errors import refuse
from raters.errors.validation import share
from raters.fitting.result import draws_of, under_draws
from raters.judgements.answers import MOST_LEVELS, Ratings
from raters.judgements.names import names_array
from raters.kinds import AuditLimits, Quantities, sections
from raters.kinds.orders import OrderCalibration, PerCompetence
from raters.kinds.sections import shown
from raters.model import Values
from raters.models import ratings as models
from raters.models.ratings import FacetModel, ManyFacet
from raters.program import Program

# Nodes of the standard normal rewards over which ratings are averaged, and their weights.
NODES = np.linspace(-4, 4, 33)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# Draws of which quantities are computed that need a pass over annotators, nodes and levels.
_DRAWS = 1000
# Correlation of an annotator's ratings with the rewards within so many margins of 0: a guesser, as
# an accuracy p within a margin of one half has 2p − 1 within two margins of 0.
_MARGINS = 2
# Sites of annotators beside their competences.
_OF_ANNOTATORS = ("severity", "threshold_deviation", "precision")


def quantities(program: Program[Ratings], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Competence, correlation, severity and bias of each annotator."""
    share("margin", limits.margin)
    model, data = check_facets(program), program.data
    draws, few = draws_of(program, result)[0], draws_of(program, result, _DRAWS)[0]
    mean, correlation = map(np.asarray, under_draws(_of_average_items, model, data, few))
    number = data.answers_by("annotator")
    level = np.arange(1, data.num_levels + 1)
    return Quantities(
        {
            "competence": draws["competence"],
            "correlation": correlation,
            "severity": draws["severity"],
            "bias": mean - mean.mean(1, keepdims=True),
        },
        judged="competence",
        columns={
            "p_guessing": (np.abs(correlation) < _MARGINS * limits.margin).mean(0),
            "p_adversarial": (draws["competence"] < 0).mean(0),
            "mean_level": _mean(number, level),
            "levels_used": (number > 0).sum(1),
        },
        tables={"item_parameters": items(program, result, limits.level), "levels": _levels(data)},
    )


def _mean(
    number: Float[np.ndarray, "name level"], score: Float[np.ndarray, " level"]
) -> Float[np.ndarray, " name"]:
    """Mean score of some numbers of ratings; NaN without any."""
    with np.errstate(invalid="ignore"):
        return np.asarray(number @ score / number.sum(1))


def check_facets(program: Program[Ratings]) -> FacetModel:
    """The model of a program, which must have annotators' competences."""
    if not isinstance(program.model, FacetModel):
        problem = "has no competences and severities to audit"
        expected = "fit ManyFacet, and pass that model and its result"
        refuse("model", program.model, problem, expected, instead="rt.ManyFacet()")
    return program.model


def _of_average_items(
    model: FacetModel, data: Any, values: Values
) -> tuple[Float[Array, " annotator"], Float[Array, " annotator"]]:
    """Mean level of each annotator over standard normal rewards, and the correlation of the two."""
    annotator = jnp.arange(len(values["severity"]))
    reward = jnp.broadcast_to(jnp.asarray(NODES)[:, None], (len(NODES), len(annotator)))
    other = jnp.broadcast_to(annotator, reward.shape)
    probs = model.answers_at(reward, other, values, data.num_levels).probs
    level = jnp.arange(1.0, probs.shape[-1] + 1)
    weight = jnp.asarray(WEIGHTS)[:, None]
    at_node = probs @ level
    mean = (weight * at_node).sum(0)
    variance = (weight * (probs @ level**2)).sum(0) - mean**2
    covariance = (weight * at_node * jnp.asarray(NODES)[:, None]).sum(0)
    return mean, covariance / jnp.sqrt(jnp.maximum(variance, 1e-12))


def items(program: Program[Ratings], result: xr.DataTree, level: float) -> xr.Dataset:
    """Reward and fair rating of each item with their intervals, and what was rated."""
    model, data = check_facets(program), program.data
    draws = draws_of(program, result, _DRAWS)[0]
    fair, number = np.asarray(under_draws(_fair, model, data, draws)), data.answers_by("item")
    columns = {"ratings": number.sum(1).astype(int), "mean_rating": _mean(number, data.scores())}
    values = {"reward": draws["reward"], "fair_rating": fair}
    return table("item", data.items, columns, values, level)


def _fair(model: FacetModel, data: Any, values: Values) -> Float[Array, " item"]:
    """Mean score of each item by the average annotator."""
    average = {
        name: value.mean(0, keepdims=True)
        for name, value in values.items()
        if name in ("competence", *_OF_ANNOTATORS)
    }
    reward, nobody = values["reward"], jnp.zeros(values["reward"].shape, int)
    ratings = model.answers_at(reward, nobody, values | average, data.num_levels)
    return jnp.asarray(ratings.probs @ jnp.asarray(data.scores()))


def _levels(data: Ratings) -> xr.Dataset:
    """Share of each annotator's ratings on each level."""
    number = data.answers_by("annotator")
    return xr.Dataset(
        {"share": (("annotator", "level"), number / np.maximum(number.sum(1, keepdims=True), 1))},
        coords={"annotator": names_array(data.annotators), "level": names_array(data.levels)},
    )


# ---------------------------------------------------------------- sections of a report

# A bias of at least so many levels is named.
_FAR = 0.25


def ranking(context: kinds.AuditContext) -> kinds.Section | None:
    """Items by their rewards, each with its fair rating."""
    section = sections.ranking(context)
    if section is None or section.table is None:
        return None
    fair = items(context.program, context.result, context.level).to_dataframe()
    new = fair.drop(columns=[name for name in fair if name in section.table])
    rank, item, _, *others = section.columns
    columns = (rank, item, *shown("fair_rating mean_rating"), *others)
    return dataclasses.replace(section, columns=columns, table=section.table.join(new, on="item"))


def severity(context: kinds.AuditContext) -> kinds.Section | None:
    """The most severe and the most lenient annotator, and who leaves out levels of the scale."""
    audit = context.audit
    if audit is None:
        return None
    frame = audit.table.to_dataframe()
    frame = frame[frame["judgements"] > 0].sort_values("bias", kind="stable")
    if len(frame) < 2:
        return None
    apart = frame[(frame["bias_low"] > 0) | (frame["bias_high"] < 0)]
    apart = apart[apart["bias"].abs() >= _FAR]
    most = context.program.data.num_levels
    few = frame[(frame["levels_used"] < most) & (most <= MOST_LEVELS)]
    names, bias = frame.index.tolist(), frame["bias"].tolist()
    numbers = {
        "severe_or_lenient": apart.index.tolist(),
        "not_all_levels": few.index.tolist(),
        "severe": names[0],
        "severe_bias": bias[0],
        "lenient": names[-1],
        "lenient_bias": bias[-1],
    }
    return kinds.Section(
        key="severity", findings=(kinds.finding("severity", of=len(frame), far=_FAR, **numbers),)
    )


# ---------------------------------------------------------------- known orders


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
        """Raise unless the model has competences."""
        check_facets(program)

    def _accuracies(self) -> PerCompetence:
        """Probability that two random items on different levels are in the right order."""
        model = check_facets(self.program)
        draws = draws_of(self.program, self.result)[0]
        sites = {name: np.asarray(value, float).mean(0) for name, value in draws.items()}
        sites["competence"] = self.competences
        for name in {*_OF_ANNOTATORS} & set(sites):
            mean = sites[name].mean(0, keepdims=True)
            sites[name] = np.repeat(mean, len(self.competences), axis=0)
        grid = np.meshgrid(NODES, np.arange(len(self.competences)), indexing="ij")
        value, other = map(jnp.asarray, grid)
        average = {name: jnp.asarray(site) for name, site in sites.items()}
        probs = np.asarray(
            model.answers_at(value, other, average, self.program.data.num_levels).probs, float
        )
        below = np.cumsum(probs, -1) - probs
        # Weight of the better node, then the worse one.
        both = np.tril(np.outer(WEIGHTS, WEIGHTS), -1)
        right = np.einsum("ab,acl,bcl->c", both, probs, below)
        wrong = np.einsum("ab,acl,bcl->c", both, below, probs)
        share: PerCompetence = right / (right + wrong)
        return np.maximum.accumulate(share)


RATINGS = kinds.Kind(
    data=Ratings,
    readers=(
        kinds.Reader(Ratings.from_frame),
        kinds.Reader(Ratings.from_wide, shapes=(("item", "columns"),), may_be_empty=("columns",)),
    ),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=ManyFacet(),
    words=kinds.Words("rating", "ratings"),
    quantities=quantities,
    truths=RatingCalibration,
    threshold=0.25,
    columns=shown("competence accuracy correlation bias p_guessing p_adversarial levels_used"),
    sections=(ranking, severity),
)
