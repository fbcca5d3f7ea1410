"""Calibration of an order of items, and of annotators' accuracies, from known orders."""

from __future__ import annotations

import abc
import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.sparse import csr_array

from raters.auditing.intervals import table
from raters.auditing.truth.calibration import Calibration, Drawn, Given, codes_of, number_of_draws
from raters.auditing.truth.statements import KnownOrders, of_orders
from raters.auditing.truth.true_orders import draw_true_rewards_of_worlds
from raters.auditing.verdicts import share_of
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.model import OPEN_MIRROR, Sign, in_mirror
from raters.models.comparisons.directions import competences
from raters.program import Program

AnnotatorDraws = Float[np.ndarray, "draw annotator"]
PerCompetence = Float[np.ndarray, "*annotator competence"]

# Draws of accuracies that an audit reads.
_AUDIT_DRAWS = 400


def in_other_world(program: Program[Any], competence: AnnotatorDraws) -> Bool[np.ndarray, " draw"]:
    """Draws in the less probable of two mirrored worlds."""
    other = in_mirror(competence)
    mirrored = any(
        isinstance(one, Sign) and {"reward", "worth", "coefficient"} & set(one.sites)
        for one in program.model.symmetries
    )
    return other & (mirrored and other.mean() >= OPEN_MIRROR)


def agreement(data: Any, value: Float[np.ndarray, " item"]) -> Float[np.ndarray, " annotator"]:
    """Share of the orders of two items, as each annotator states them, that are those of values."""
    stated = of_orders(data, np.zeros(0, int))
    right = stated.number * (value[stated.better] > value[stated.worse])
    return share_of(stated.annotator, right, stated.number, data.num_annotators)


@dataclass(frozen=True)
class OrderCalibration(Calibration):
    """Statements about an order, from `raters.calibrate`."""

    orders: KnownOrders
    program: Program[Any]
    result: xr.DataTree

    known_truths = "orders"
    answer = "value"
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
        if "agreement" in columns:
            data = self.program.data.unpadded()
            columns["agreement"] = agreement(data, self.truth.values.mean(0))
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
    def number(cls, data: Any, gold: Any) -> int:
        """Number of pairs of known order."""
        return len(KnownOrders.read(gold, data.items).better)

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
        crowd, spread = reward.mean(0), reward.std(0)
        apart = np.hypot(spread[orders.better], spread[orders.worse])
        # Of two mirrored posteriors the means say nothing; these are three fifths of a normal.
        contradicted = crowd[orders.better] - crowd[orders.worse] < -0.25 * apart
        if len(trusted):
            orders = stated.joined(orders, trusted, data.num_items, cls.chained)
        known = len(orders.better)
        other = np.zeros(len(reward), bool)
        if "competence" in draws:
            other = in_other_world(program, np.asarray(competences(program, draws), float))
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
