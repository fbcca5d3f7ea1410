"""Choosers of batches: objects that choose one question after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.variance_criteria import OfVariance

# Number of candidates, the best by score, whose answers are considered together.
_SHORTLIST = 20_000


class Chooser:
    """Choice of one question after another: `best` gives the best of those still allowed, and
    `take` records the one taken."""

    price: Float[np.ndarray, " question"] | None = None

    def __init__(
        self,
        score: Float[np.ndarray, " question"],
        about: Int[np.ndarray, " question"] | None = None,
    ) -> None:
        self.score = np.array(score, float)
        self.open = np.ones(len(score), bool)
        self.about = about

    def best(self, allowed: Bool[np.ndarray, " question"]) -> int:
        """Return the row to take next; −1 when none is left."""
        usable = allowed & self.open
        return int(np.where(usable, self.score, -np.inf).argmax()) if usable.any() else -1

    def values(self) -> Float[np.ndarray, " question"]:
        """Score of each question given those taken, per cost; −∞ for those that are not
        considered."""
        return self.score

    def take(self, row: int) -> None:
        """Close this row, and with it all questions about the same."""
        self.open[row] = False
        if self.about is not None:
            self.open &= self.about != self.about[row]


class Tree(Chooser):
    """Chooser of `SpanningTree`."""

    def __init__(self, score: Float[np.ndarray, " question"], questions: Any) -> None:
        super().__init__(score, questions.about())
        self.first, self.second = (np.asarray(getattr(questions, side)) for side in questions.pair)
        self.num_items = questions.num_items
        self.component = np.arange(self.num_items)

    def best(self, allowed: Bool[np.ndarray, " question"]) -> int:
        joins = self.component[self.first] != self.component[self.second]
        row = super().best(allowed & joins)
        if row < 0 and (allowed & self.open).any():
            self.component = np.arange(self.num_items)
            row = super().best(allowed)
        return row

    def take(self, row: int) -> None:
        super().take(row)
        one, other = self.component[self.first[row]], self.component[self.second[row]]
        self.component[self.component == one] = other


class Shortlist(Chooser, ABC):
    """Chooser among the candidates of highest score, whose answer probabilities are held
    together."""

    def __init__(
        self,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        about: Int[np.ndarray, " question"] | None = None,
    ) -> None:
        super().__init__(score, about)
        size = min(len(self.score), _SHORTLIST)
        self.rows = np.sort(np.argpartition(-self.score, size - 1)[:size])
        self.place = np.full(len(self.score), -1)
        self.place[self.rows] = np.arange(size)
        short = questions.rows(self.rows)
        parts = [(posterior.answer_probs(piece), count) for piece, count in posterior.pieces(short)]
        table = np.concatenate([np.asarray(part.table)[..., :count] for part, count in parts], -1)
        self.probs = table.reshape(-1, *table.shape[2:])
        self.weight = np.asarray(parts[0][0].weight).ravel()

    def best(self, allowed: Bool[np.ndarray, " question"]) -> int:
        usable = (allowed & self.open)[self.rows]
        if not usable.any():
            return -1
        return int(self.rows[np.where(usable, self.worth(), -np.inf).argmax()])

    def values(self) -> Float[np.ndarray, " question"]:
        value = np.full(len(self.score), -np.inf)
        value[self.rows] = self.worth()
        return value

    def worth(self) -> Float[np.ndarray, " short"]:
        """Gain per cost of each of the shortlist, shape (short,)."""
        gain = self.gain()
        if self.price is None:
            return gain
        per_cost: np.ndarray = np.maximum(gain, 0.0) / self.price[self.rows]
        return per_cost

    @abstractmethod
    def gain(self) -> Float[np.ndarray, " short"]:
        """Gain by each of the shortlist, shape (short,)."""

    def take(self, row: int) -> None:
        super().take(row)
        if self.place[row] >= 0:
            self.add(int(self.place[row]))

    @abstractmethod
    def add(self, place: int) -> None:
        """Condition on the answer to a question of the shortlist."""


class InTurn(Shortlist):
    """Chooser of `Sequential`."""

    def __init__(
        self,
        criterion: OfVariance,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        once: bool,
    ) -> None:
        super().__init__(score, posterior, questions, questions.about() if once else None)
        # Of pairs the votes for the first item, half of a tie; otherwise whether the answer is the
        # first one.
        first = np.arange(self.probs.shape[1]) == 0
        number = np.asarray(questions.answers() if questions.pair else first, float)
        expected, square = (np.tensordot(number**power, self.probs, (0, 1)) for power in (1, 2))
        mean = self.weight @ expected
        # Variance of each answer, given those taken.
        self.own = np.maximum(self.weight @ square - mean**2, 1e-9)
        self.centred = expected - mean  # (draw, question)
        # (draw, quantity, question), or 1 for the last
        quantity = criterion.quantity(posterior, questions.rows(self.rows))
        self.quantity = quantity - np.tensordot(self.weight, quantity, 1)
        self.left = self._covariance(self.quantity, self.centred)
        self.taken: list[
            tuple[
                Float[np.ndarray, " short"],
                Float[np.ndarray, "quantity 1"] | Float[np.ndarray, "quantity short"],
                float,
            ]
        ] = []

    def _covariance(
        self,
        quantity: Float[np.ndarray, "draw quantity 1"]
        | Float[np.ndarray, "draw quantity question"],
        centred: Float[np.ndarray, "draw 1"] | Float[np.ndarray, "draw question"],
    ) -> Float[np.ndarray, "quantity 1"] | Float[np.ndarray, "quantity question"]:
        """Covariances of the quantities with answers, shape (quantity, question)."""
        weighted = self.weight[:, None] * centred
        if quantity.shape[2] == 1:
            return np.asarray(quantity[:, :, 0].T @ weighted)
        by_question = np.broadcast_to(weighted, quantity[:, 0].shape)
        return np.asarray(np.einsum("sqn,sn->qn", quantity, by_question))

    def gain(self) -> Float[np.ndarray, " short"]:
        return np.asarray((self.left**2).sum(0) / self.own)

    def add(self, place: int) -> None:
        with_answers = (self.weight * self.centred[:, place]) @ self.centred
        with_quantity = self._covariance(self.quantity, self.centred[:, [place]])
        for answers, quantity, variance in self.taken:
            with_answers = with_answers - answers * (answers[place] / variance)
            with_quantity = with_quantity - quantity * (answers[place] / variance)
        variance = float(self.own[place])
        self.taken.append((with_answers, with_quantity, variance))
        self.left = self.left - with_quantity * (with_answers / variance)
        self.own = np.maximum(self.own - with_answers**2 / variance, 1e-9)


class JointInformation(Shortlist):
    """Chooser of `BatchBald`."""

    def __init__(
        self,
        score: Float[np.ndarray, " question"],
        posterior: Posterior,
        questions: Any,
        most: int,
        rng: np.random.Generator,
    ) -> None:
        about = None
        if posterior.has_truth:  # Answers about one unit tell of one class.
            about = np.asarray(questions.codes(posterior.program.unit))
        super().__init__(score, posterior, questions, about)
        self.most, self.rng = most, rng
        self.noise = self._noise(posterior, questions.rows(self.rows))
        # Configurations of the answers taken: the probability of each, and the weights of the draws
        # given it, shape (draw, configuration).
        self.p_configuration = np.ones(1)
        self.given = self.weight[:, None].astype(np.float64)

    @staticmethod
    def _noise(posterior: Posterior, short: Any) -> Float[np.ndarray, " short"]:
        """Mean entropy of the answer under a known draw and class, shape (short,)."""
        parts = []
        for piece, count in posterior.pieces(short):
            probs = posterior.answer_probs(piece, by_class=True)
            each = -jax.scipy.special.xlogy(probs.table, probs.table).sum(2)
            weight = probs.weight if probs.weight.ndim == 3 else probs.weight[..., None]
            parts.append(np.asarray((weight * each).sum((0, 1)))[:count])
        return np.asarray(np.concatenate(parts) / np.log(2.0))

    def gain(self) -> Float[np.ndarray, " short"]:
        left = _conditional_entropy(
            self.p_configuration.astype(np.float32), self.given.astype(np.float32), self.probs
        )
        return np.asarray(np.maximum(np.asarray(left) - self.noise, 0.0))

    def add(self, place: int) -> None:
        taken = self.probs[:, :, place].astype(np.float64)
        size, answers = len(self.p_configuration), taken.shape[1]
        answer_given = taken.T @ self.given  # (answer, configuration)
        if size * answers <= self.most:
            self.p_configuration = (answer_given * self.p_configuration).ravel()
            self.given = (
                (taken.T[:, :, None] * self.given).transpose(1, 0, 2).reshape(len(taken), -1)
            )
        else:
            # From here on configurations are drawn, and count equally; each draws its next answer
            # given those that it has.
            p = self.p_configuration / self.p_configuration.sum()
            kept = self.rng.choice(size, self.most, p=p)
            answer = (self.rng.random(self.most) > np.cumsum(answer_given[:, kept], 0)[:-1]).sum(0)
            self.p_configuration = np.full(self.most, 1 / self.most)
            self.given = self.given[:, kept] * taken[:, answer]
        possible = self.p_configuration > 0
        self.p_configuration, self.given = self.p_configuration[possible], self.given[:, possible]
        self.given = self.given / self.given.sum(0)


@jax.jit
def _conditional_entropy(
    p_configuration: Float[Array, " configuration"],
    given: Float[Array, "draw configuration"],
    probs: Float[Array, "draw answer question"],
) -> Float[Array, " question"]:
    """Entropy of each question's answer given the configuration, in bits, shape (question,)."""
    entropy: Any = 0.0
    for answer in range(probs.shape[1]):
        p_answer = given.T @ probs[:, answer]  # (configuration, question)
        entropy = entropy - p_configuration @ jax.scipy.special.xlogy(p_answer, p_answer)
    bits: jax.Array = entropy / jnp.log(2.0)
    return bits


class FrankWolfe(Shortlist):
    """Chooser of `SparseSubset`."""

    def __init__(
        self, score: Float[np.ndarray, " question"], posterior: Posterior, questions: Any
    ) -> None:
        super().__init__(score, posterior, questions)
        mean = np.tensordot(self.weight, self.probs, 1)
        log = (mean * np.log(np.maximum(self.probs, 1e-12))).sum(1)  # (draw, question)
        centred = log - self.weight @ log
        self.vectors = (np.sqrt(self.weight)[:, None] * centred).T
        self.size = np.linalg.norm(self.vectors, axis=1) + 1e-12
        self.all = self.vectors.sum(0)
        self.sum = np.zeros_like(self.all)

    def gain(self) -> Float[np.ndarray, " short"]:
        return np.asarray(self.vectors @ (self.all - self.sum) / self.size)

    def best(self, allowed: Bool[np.ndarray, " question"]) -> int:
        # A step may lead to a question that is in the batch already; it counts all the same, up to
        # a limit.
        for _ in range(100):
            place = int(self.worth().argmax())
            if self.open[self.rows[place]]:
                break
            self.add(place)
        return super().best(allowed)

    def add(self, place: int) -> None:
        corner = self.size.sum() / self.size[place] * self.vectors[place]
        way = corner - self.sum
        share = np.clip(way @ (self.all - self.sum) / max(way @ way, 1e-30), 0.0, 1.0)
        self.sum = self.sum + share * way
