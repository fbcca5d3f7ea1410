"""Calibration of an order of items, and of annotators' accuracies, from known orders of some
pairs."""

from __future__ import annotations

import abc
import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.special import expit

from raters.auditing import comparisons, rankings, ratings
from raters.auditing.intervals import table
from raters.auditing.truth.calibration import Calibration, Drawn, Given, codes_of, number_of_draws
from raters.auditing.truth.known_orders import KnownOrders
from raters.auditing.truth.statements import of_orders
from raters.auditing.truth.true_orders import draw_true_rewards_of_worlds
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.models.comparisons.directions import has_directions
from raters.program import Program

AnnotatorDraws = Float[np.ndarray, "draw annotator"]
PerCompetence = Float[np.ndarray, "*annotator competence"]

# Draws of accuracies that an audit reads.
_AUDIT_DRAWS = 400


@dataclass(frozen=True)
class OrderCalibration(Calibration):
    """Statements about an order, from `raters.calibrate`."""

    orders: KnownOrders
    program: Program[Any]
    result: xr.DataTree

    known_truths = "orders"
    #: Site of the items' values; competences that one is read off an accuracy among; and True where
    #: pairs that trusted annotators order follow from one another.
    site: ClassVar[str] = "reward"
    competences: ClassVar[PerCompetence] = np.linspace(-10, 10, 201)
    chained: ClassVar[bool] = True

    def p_above(self, one: Any, other: Any) -> float:
        """Probability that one item is truly above another."""
        codes = codes_of(one, other, self.items["item"].values, "items")
        first, second = self.truth.values.T[codes]
        return float((first > second).mean())

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, against the true order."""
        quantities_of = kind_of(self.program.data).quantities
        assert quantities_of is not None
        found = quantities_of(self.program, self.result, limits)
        own, ability = (draws[:_AUDIT_DRAWS] for draws in self.accuracies)
        # Competence at which the accuracy on pairs of items is the ability.
        competence, curves = np.empty_like(ability), self._accuracies()
        for code, curve in enumerate(np.broadcast_to(curves, (ability.shape[1], curves.shape[-1]))):
            competence[:, code] = np.interp(ability[:, code], curve, self.competences)
        columns = dict(found.columns) | {"p_adversarial": (competence < 0).mean(0)}
        if "p_guessing" in columns:
            columns["p_guessing"] = (np.abs(ability - 0.5) < limits.margin).mean(0)
        columns |= self._columns(competence)
        values = dict(found.values) | {"competence": competence, "accuracy": own}
        tables = {name: table for name, table in found.tables.items() if name != "worlds"}
        return dataclasses.replace(found, values=values, columns=columns, tables=tables)

    @abc.abstractmethod
    def _accuracies(self) -> PerCompetence:
        """Accuracy on pairs of items at each of `competences`, of all annotators or of each."""

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Further columns of an audit that are other ones against the true order."""
        return {}

    @classmethod
    def check(cls, program: Program[Any]) -> None:
        """Raise unless the model has one value of each item."""
        if cls.site not in program.sites or program.sites[cls.site].dims != ("item",):
            problem = "has no one ranking, so there is nothing to calibrate"
            refuse("model", program.model, problem, f"fit a model with one {cls.site} of each item")

    @classmethod
    def draw(cls, given: Given) -> Drawn:
        """Draw the true value of each item."""
        program, result, gold, trusted, level, rng = given
        cls.check(program)
        data: Any = program.data.unpadded()
        orders = by_gold = KnownOrders.read(gold, data.items)
        stated = of_orders(data, np.concatenate(orders[:2]))
        draws = draws_of(program, result)[0]
        reward = np.asarray(draws[cls.site], float)
        crowd = reward.mean(0)
        contradicted = crowd[orders.better] < crowd[orders.worse]
        if len(trusted):
            orders = stated.joined(orders, trusted, data.num_items, cls.chained)
        known = len(orders.better)
        other = np.zeros(len(reward), bool)
        if "competence" in draws:
            competence = np.asarray(comparisons.competences(program, draws), float)
            other = comparisons.in_other_world(program, competence)
        number = number_of_draws(max(len(stated.better), data.num_items), 1)
        scores = stated.scores(trusted, data.num_items) if known else csr_array((data.num_items, 1))
        drawn, sizes = draw_true_rewards_of_worlds(reward, other, orders, number, rng, scores)
        rank = 1.0 + np.argsort(np.argsort(-drawn, axis=1), axis=1)
        items = table("item", data.items, {}, {"reward": drawn, "rank": rank}, level)
        others = {
            "items": items.assign(reward_by_model=("item", crowd)),
            "unknowns": xr.Dataset({"shared": ("draw", sizes)}),
            "orders": orders,
            "program": program,
            "result": result,
        }
        statements = stated.beside(orders, data.num_items)
        by_trusted = known - len(by_gold.better)
        return Drawn(drawn, statements, known, by_trusted, contradicted, "", others)


class ComparisonCalibration(OrderCalibration):
    """Statements about the order of compared items, from `raters.calibrate`."""

    chained = False

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Relative competence, agreement with the true order, and types."""
        data, mean = self.program.data.unpadded(), self.truth.values.mean(0)
        same = np.zeros(data.num_annotators, int)
        columns = {
            "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
            "agreement": comparisons.agreement(data, mean[:, None], same),
        }
        return columns | self._types() if has_directions(self.program) else columns

    def _types(self) -> dict[str, Float[np.ndarray, " annotator"]]:
        """Probability that each annotator is a guesser, and an adversary."""
        draws, _ = draws_of(self.program, self.result, _AUDIT_DRAWS)
        competence = comparisons.competences(self.program, draws)
        crowd, truth = (
            values - values.mean(1, keepdims=True)
            for values in (np.asarray(draws["reward"], float), self.truth.values)
        )
        is_along = ((crowd @ truth.T) > 0).mean(1)[:, None]
        against = np.where(competence < 0, is_along, (competence > 0) * (1 - is_along))
        return {"p_guessing": (competence == 0).mean(0), "p_adversarial": against.mean(0)}

    def _accuracies(self) -> PerCompetence:
        """Accuracy of each annotator, whose ties may be their own."""
        posterior, size = self.result["posterior"].dataset, len(self.competences)
        reward = self.items["reward_by_model"].values
        one, other = comparisons.random_pairs(self.program.data)
        logits = (self.competences[:, None] * np.abs(reward[one] - reward[other])).reshape(1, -1)
        ties = [name for name in ("tie_propensity",) if name in posterior]
        means = {name: np.asarray(posterior[name].mean(("chain", "draw")))[None] for name in ties}
        curves = []
        for code in range(self.annotators.sizes["annotator"]):
            score = comparisons.score_of_better(self.program, means, logits, code)
            curves.append(score.reshape(size, -1).mean(1))
        return np.stack(curves)


class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`."""

    site = "worth"

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Agreement with the true order."""
        data, worth = self.program.data.unpadded(), self.truth.values.mean(0)
        return {"agreement": rankings.agreement(data, worth)}

    def _accuracies(self) -> PerCompetence:
        worth = self.items["reward_by_model"].values
        one, other = np.triu_indices(len(worth), 1)
        gap = np.quantile(np.abs(worth[one] - worth[other]), np.linspace(0.005, 0.995, 100))
        return np.asarray(expit(self.competences[:, None] * gap).mean(1))


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
        ratings.check_many_facet(program)

    def _accuracies(self) -> PerCompetence:
        """Probability that two random items on different levels are in the right order."""
        model = ratings.check_many_facet(self.program)
        draws = draws_of(self.program, self.result)[0]
        sites = {name: np.asarray(value, float).mean(0) for name, value in draws.items()}
        sites["competence"] = self.competences
        for name in {"severity", "threshold_deviation"} & set(sites):
            mean = sites[name].mean(0, keepdims=True)
            sites[name] = np.repeat(mean, len(self.competences), axis=0)
        grid = np.meshgrid(ratings.NODES, np.arange(len(self.competences)), indexing="ij")
        value, other = map(jnp.asarray, grid)
        average = {name: jnp.asarray(site) for name, site in sites.items()}
        probs = np.asarray(model.answers_at(value, other, average).probs, float)
        below = np.cumsum(probs, -1) - probs
        # Weight of the better node, then the worse one.
        both = np.tril(np.outer(ratings.WEIGHTS, ratings.WEIGHTS), -1)
        right = np.einsum("ab,acl,bcl->c", both, probs, below)
        wrong = np.einsum("ab,acl,bcl->c", both, below, probs)
        share: PerCompetence = right / (right + wrong)
        return np.maximum.accumulate(share)


def known_orders(data: Any, gold: Any) -> int:
    """Number of pairs of known order."""
    return len(KnownOrders.read(gold, data.items).better)
