"""Calibration of an order of items, and of annotators' accuracies, from known orders of some
pairs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.special import expit

from raters.auditing import comparisons, rankings, ratings, stated_orders
from raters.auditing.anchor_check import check_table
from raters.auditing.annotator_accuracy import Marks, draw_accuracies, luck_of
from raters.auditing.calibration import (
    Anchor,
    Calibration,
    codes_of,
    contradiction,
    number_of_draws,
    trusted_codes,
    warn_of,
)
from raters.auditing.intervals import table
from raters.auditing.known_orders import KnownOrders, links
from raters.auditing.stated_orders import StatedOrders
from raters.auditing.true_orders import draw_true_rewards_of_worlds
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.models.comparisons.directions import has_directions
from raters.program import Program

AnnotatorDraws = Float[np.ndarray, "draw annotator"]
PerCompetence = Float[np.ndarray, " competence"]
Questions = Int[np.ndarray, " question"]

# Draws of accuracies that an audit reads.
_AUDIT_DRAWS = 400


@dataclass(frozen=True)
class OrderCalibration(Calibration):
    """Statements about an order, from `raters.calibrate`."""

    orders: KnownOrders
    program: Program[Any]
    result: xr.DataTree

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

    @property
    def anchor_check(self) -> xr.Dataset | None:
        """Accuracies, beside what the known orders alone say of them."""
        if not len(self.orders.better):
            return None
        columns = ("accuracy", "accuracy_low", "accuracy_high")
        stated = np.stack([self.annotators[name].values for name in columns], 1)
        names = [f"accuracy of {name}" for name in self.annotators["annotator"].values.tolist()]
        # Pairs of one ranking are no independent coins, but have the variance of as many as they
        # count as; confidence sequences of them hold too, by benchmarks/gold_sequential.py.
        right, number = _by_annotator(self.known_answers, len(names))
        return check_table(names, right, number, self.level, stated)

    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator, against the true order."""
        quantities_of = kind_of(self.program.data).quantities
        assert quantities_of is not None
        found = quantities_of(self.program, self.result, limits)
        own, ability = (draws[:_AUDIT_DRAWS] for draws in self.accuracies)
        competence = self._competence(ability)
        columns = dict(found.columns) | {"p_adversarial": (competence < 0).mean(0)}
        if "p_guessing" in columns:
            columns["p_guessing"] = (np.abs(ability - 0.5) < limits.margin).mean(0)
        columns |= self._columns(competence)
        values = dict(found.values) | {"competence": competence, "accuracy": own}
        tables = {name: table for name, table in found.tables.items() if name != "worlds"}
        return dataclasses.replace(found, values=values, columns=columns, tables=tables)

    def _competence(self, ability: AnnotatorDraws) -> AnnotatorDraws:
        """Competence at which the accuracy on pairs of items is the ability."""
        return np.asarray(np.interp(ability, self._accuracies(), self.competences))

    def _accuracies(self) -> PerCompetence:
        """Accuracy on pairs of items of each of `competences`."""
        raise NotImplementedError

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
    def stated(cls, data: Any, orders: KnownOrders) -> StatedOrders:
        """Pairs of items that annotators put in order."""
        raise NotImplementedError

    @classmethod
    def of(
        cls,
        program: Program[Any],
        result: xr.DataTree,
        gold: Any,
        reference: tuple[Any, ...],
        level: float,
        seed: int,
    ) -> Self:
        """Calibrate a fit; see `raters.calibrate`."""
        cls.check(program)
        data = program.data.unpadded()
        orders = KnownOrders.read(gold, data.items)
        stated = cls.stated(data, orders)
        draws = draws_of(program, result)[0]
        reward = np.asarray(draws[cls.site], float)
        trusted = trusted_codes(data, reference)
        crowd, of_gold = reward.mean(0), len(orders.better)
        wrong = int((crowd[orders.better] < crowd[orders.worse]).sum())
        doubts = warn_of(contradiction(wrong, of_gold, "orders"))
        if len(trusted):
            orders = cls._with_trusted(orders, stated, trusted, data.num_items)
        other = np.zeros(len(reward), bool)
        if "competence" in draws:
            competence = np.asarray(comparisons.competences(program, draws), float)
            other = comparisons.in_other_world(program, competence)
        number = number_of_draws(max(len(stated.better), data.num_items), 1)
        rng, known = np.random.default_rng(seed), len(orders.better)
        scores = stated.scores(trusted, data.num_items) if known else None
        drawn, sizes = draw_true_rewards_of_worlds(reward, other, orders, number, rng, scores)
        answers = known_answers_of(stated, orders, data.num_items)
        marks = marks_of(stated, answers, drawn, data.num_annotators)
        accuracies = draw_accuracies(marks, seed)
        rank = 1.0 + np.argsort(np.argsort(-drawn, axis=1), axis=1)
        items = table("item", data.items, {}, {"reward": drawn, "rank": rank}, level)
        abilities = {"accuracy": accuracies.own, "ability": accuracies.ability}
        return cls(
            truth=xr.DataArray(drawn, {"item": items["item"]}, ("draw", "item")),
            items=items.assign(reward_by_model=("item", crowd)),
            annotators=table("annotator", data.annotators, {}, abilities, level),
            unknowns=xr.Dataset({"shared": ("draw", sizes)}),
            anchor=Anchor(known, tuple(reference), by_trusted=known - of_gold, doubts=doubts),
            level=level,
            accuracies=accuracies,
            known_answers=answers,
            orders=orders,
            program=program,
            result=result,
        )

    @classmethod
    def _with_trusted(
        cls,
        orders: KnownOrders,
        stated: StatedOrders,
        trusted: Int[np.ndarray, " trusted"],
        num_items: int,
    ) -> KnownOrders:
        """Known orders, and those of pairs that trusted annotators mostly state."""
        rows = np.isin(stated.annotator, trusted)
        ends, size = (stated.better[rows], stated.worse[rows]), (num_items, num_items)
        number = csr_array((stated.number[rows], ends), size)
        lead = (number - number.T).tocoo()
        pairs = np.stack(lead.coords, 1)[lead.data > 0]
        pairs = pairs[orders.signs(pairs[:, 0], pairs[:, 1], num_items) == 0]
        return KnownOrders(
            np.concatenate([orders.better, pairs[:, 0]]),
            np.concatenate([orders.worse, pairs[:, 1]]),
            np.concatenate([orders.chain, links(pairs) if cls.chained else pairs]),
        )


class ComparisonCalibration(OrderCalibration):
    """Statements about the order of compared items, from `raters.calibrate`."""

    chained = False

    @property
    def known_questions(self) -> Questions | None:
        """Codes of the pairs of known order."""
        one, other = self.orders.better, self.orders.worse
        low, high = np.minimum(one, other), np.maximum(one, other)
        codes: Questions = low.astype(np.int64) * len(self.items["item"]) + high
        return codes

    @classmethod
    def stated(cls, data: Any, orders: KnownOrders) -> StatedOrders:
        """Each vote, of a tie half."""
        return stated_orders.of_comparisons(data)

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

    def _competence(self, ability: AnnotatorDraws) -> AnnotatorDraws:
        """Competence of each annotator, whose ties may be their own."""
        posterior = self.result["posterior"].dataset
        reward = self.items["reward_by_model"].values
        one, other = comparisons.random_pairs(self.program.data)
        gap = np.abs(reward[one] - reward[other])
        logits, columns = (self.competences[:, None] * gap).reshape(1, -1), []
        ties = [name for name in ("tie_propensity",) if name in posterior]
        means = {name: np.asarray(posterior[name].mean(("chain", "draw")))[None] for name in ties}
        for code, own in enumerate(ability.T):
            score = comparisons.score_of_better(self.program, means, logits, code)
            accuracy = score.reshape(len(self.competences), -1).mean(1)
            columns.append(np.interp(own, accuracy, self.competences))
        return np.stack(columns, axis=1)


class RankingCalibration(OrderCalibration):
    """Statements about the order of ranked items, from `raters.calibrate`."""

    site = "worth"

    @classmethod
    def stated(cls, data: Any, orders: KnownOrders) -> StatedOrders:
        """Pairs of each ranking."""
        return stated_orders.of_rankings(data)

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
    def known_questions(self) -> Questions | None:
        """Codes of the items that are in a known order."""
        data = self.program.data.unpadded()
        known = np.isin(np.asarray(data.item), np.concatenate(self.orders[:2]))
        codes: Questions = np.unique(data.about()[known])
        return codes

    @classmethod
    def check(cls, program: Program[Any]) -> None:
        """Raise unless the model is `ManyFacet`."""
        ratings.check_many_facet(program)

    @classmethod
    def stated(cls, data: Any, orders: KnownOrders) -> StatedOrders:
        """Pairs on different levels, those of known items first."""
        known = np.zeros(data.num_items, bool)
        known[np.concatenate(orders[:2])] = True
        return stated_orders.of_ratings(data, known)

    def _accuracies(self) -> PerCompetence:
        """Probability that two random items on different levels are in the right order."""
        model = ratings.check_many_facet(self.program)
        draws = draws_of(self.program, self.result)[0]
        average = {name: np.asarray(value, float).mean(0) for name, value in draws.items()}
        number, nodes = len(self.competences), ratings.NODES
        for name in ("severity", "threshold_deviation"):
            if name in average:
                mean = average[name].mean(0, keepdims=True)
                average[name] = np.repeat(mean, number, axis=0)
        sites = {name: jnp.asarray(value) for name, value in average.items()}
        sites["competence"] = jnp.asarray(self.competences)
        other = jnp.broadcast_to(jnp.arange(number), (len(nodes), number))
        value = jnp.broadcast_to(jnp.asarray(nodes)[:, None], other.shape)
        probs = np.asarray(model.answers_at(value, other, sites).probs, float)
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


def known_answers_of(stated: StatedOrders, orders: KnownOrders, num_items: int) -> pd.DataFrame:
    """Stated orders of pairs of known order, with their rows as the index."""
    sign = orders.signs(stated.better, stated.worse, num_items)
    low, high = np.sort([stated.better, stated.worse], axis=0).astype(np.int64)
    number = stated.number * stated.known_share(sign, num_items)
    columns = {"annotator": stated.annotator, "question": low * num_items + high}
    columns |= {"answers": stated.number, "number": number, "right": number * (sign > 0)}
    return pd.DataFrame(columns)[sign != 0]


def marks_of(
    stated: StatedOrders,
    answers: pd.DataFrame,
    truth: Float[np.ndarray, "draw item"],
    num_annotators: int,
) -> Marks:
    """Right orders of each annotator, known and expected, as so many independent ones."""
    rows = np.delete(np.arange(len(stated.better)), answers.index)
    better, worse, judge = stated.better[rows], stated.worse[rows], stated.annotator[rows]
    weight = (stated.number * stated.share[stated.block])[rows]
    credit = np.stack(
        [np.bincount(judge, weight * (one[better] > one[worse]), num_annotators) for one in truth]
    )
    of_pair = answers.groupby("question")[["right", "number"]].sum()
    right, number = _by_annotator(answers, num_annotators)
    others = np.bincount(judge, weight, num_annotators)
    return Marks(right, number, credit, others, luck_of(*of_pair.values.T))


def _by_annotator(answers: pd.DataFrame, number: int) -> Float[np.ndarray, "2 annotator"]:
    """Right answers to questions of known truth, and all, of each annotator."""
    sums = answers.groupby("annotator")[["right", "number"]].sum()
    return np.asarray(sums.reindex(range(number), fill_value=0.0).values.T)
