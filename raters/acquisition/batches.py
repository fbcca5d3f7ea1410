"""Batches: the choice of several questions together, given the score of each."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Bool, Float

from raters.acquisition.posterior import Posterior
from raters.acquisition.scores import Criterion, OfVariance, PerQuestion, bits, mean, sides_of
from raters.errors import refuse
from raters.errors.validation import positive, whole

# Number of candidates, the best by score, whose answers are considered together.
_SHORTLIST = 20_000

Allowed = Bool[np.ndarray, " question"]


class Task(NamedTuple):
    """Questions to choose a batch from, in the data's codes, their scores, and those per cost."""

    criterion: Criterion
    value: PerQuestion
    posterior: Posterior
    questions: Any
    rng: np.random.Generator
    price: PerQuestion | None = None


class Chooser:
    """Choice of one question after another: `best` of those still allowed, `take` to record it."""

    def __init__(self, task: Task, once: bool = True):
        self.value = np.array(task.value, float)
        self.open = np.ones(len(self.value), bool)
        self.about = task.questions.about() if once else None

    def best(self, allowed: Allowed) -> int:
        """Return the row to take next; −1 when none is left."""
        usable = allowed & self.open
        return int(np.where(usable, self.values(), -np.inf).argmax()) if usable.any() else -1

    def values(self) -> PerQuestion:
        """Score of each question given those taken, per cost; −∞ where it is not considered."""
        return self.value

    def take(self, row: int) -> None:
        """Close this row, and with it all questions about the same."""
        self.open[row] = False
        if self.about is not None:
            self.open &= self.about != self.about[row]


@dataclass(frozen=True)
class Batch(abc.ABC):
    """Rule for the composition of a batch: a frozen dataclass that writes `chooser`."""

    @abc.abstractmethod
    def chooser(self, task: Task) -> Chooser:
        """Return what chooses among the questions; raise where the rule has no meaning here."""

    def _refuse(self, problem: str) -> NoReturn:
        instead = "batch=rt.acquisition.Top()"
        refuse("batch", self, problem, "choose a batch rule for any score", instead=instead)

    def _refuse_types(self, posterior: Posterior) -> None:
        """Raise `SettingError` for models of types: two answers of one annotator share the type."""
        if posterior.program.latent is not None and not posterior.program.has_truth:
            self._refuse("takes answers as independent given a draw, and those of a type are not")


@dataclass(frozen=True)
class Top(Batch):
    """Highest scores. A pair, or an item to label, may come more than once, put to several
    annotators."""

    def chooser(self, task: Task) -> Chooser:
        """Choose by score alone."""
        return Chooser(task, once=False)


@dataclass(frozen=True)
class Unique(Batch):
    """Highest scores, each pair (or item to label) once."""

    def chooser(self, task: Task) -> Chooser:
        """Choose by score, each pair once."""
        return Chooser(task)


@dataclass(frozen=True)
class Power(Batch):
    r"""Stochastic batches: each pair (or item) once, drawn without replacement with probability
    proportional to the score to the power `exponent` (Kirsch et al. 2023, Stochastic Batch
    Acquisition, TMLR)."""

    exponent: float = 1.0

    def __post_init__(self) -> None:
        positive("exponent", self.exponent)

    def chooser(self, task: Task) -> Chooser:
        """Choose by score and Gumbel noise."""
        if (task.value < 0).any():
            self._refuse("needs scores of at least 0, and this criterion gives negative ones")
        noise = task.rng.gumbel(size=len(task.value))
        noisy = self.exponent * np.log(np.maximum(task.value, 1e-30)) + noise
        return Chooser(task._replace(value=noisy))


# ---------------------------------------------------------------- trees


@dataclass(frozen=True)
class SpanningTree(Batch):
    """Pairs that close no cycle, best score first, so that a batch connects as many items as
    possible. When a tree spans all items, the next one begins (Mikhailiuk et al. 2020, ASAP)."""

    def chooser(self, task: Task) -> Chooser:
        """Choose by score, without cycles."""
        if task.questions.pair is None:
            self._refuse("connects items by comparisons, and these questions are of another kind")
        return _Tree(task)


class _Tree(Chooser):
    def __init__(self, task: Task):
        super().__init__(task)
        self.first, self.second = sides_of(task.questions)
        self.component = np.arange(task.questions.num_items)

    def best(self, allowed: Allowed) -> int:
        joins = self.component[self.first] != self.component[self.second]
        row = super().best(allowed & joins)
        if row < 0 and (allowed & self.open).any():
            self.component = np.arange(len(self.component))
            row = super().best(allowed)
        return row

    def take(self, row: int) -> None:
        super().take(row)
        first, second = self.component[self.first[row]], self.component[self.second[row]]
        self.component[self.component == second] = first


# ---------------------------------------------------------------- answers considered together


class _Shortlist(Chooser, abc.ABC):
    """Chooser among candidates of highest score, whose answer probabilities are held together."""

    def __init__(self, task: Task, once: bool):
        super().__init__(task, once)
        posterior, self.price = task.posterior, task.price
        size = min(len(self.value), _SHORTLIST)
        self.rows = np.sort(np.argpartition(-self.value, size - 1)[:size])
        self.place = np.full(len(self.value), -1)
        self.place[self.rows] = np.arange(size)
        self.open &= self.place >= 0
        self.short = task.questions.rows(self.rows)
        read = posterior.answer_probs
        self.probs = posterior.by_pieces(self.short, lambda piece: read(piece).table)
        self.weight = np.asarray(posterior.weight, np.float32)

    def values(self) -> PerQuestion:
        gain, value = self.gain(), np.full(len(self.value), -np.inf)
        if self.price is not None:
            gain = np.maximum(gain, 0.0) / self.price[self.rows]
        value[self.rows] = gain
        return value

    @abc.abstractmethod
    def gain(self) -> Float[np.ndarray, " short"]:
        """Gain by each of the shortlist."""

    def take(self, row: int) -> None:
        super().take(row)
        if self.place[row] >= 0:
            self.add(int(self.place[row]))

    @abc.abstractmethod
    def add(self, place: int) -> None:
        """Condition on the answer to a question of the shortlist."""


@dataclass(frozen=True)
class Sequential(Batch):
    r"""Greedy choice by the expected reduction of a variance, given the answers to the questions
    chosen before, whatever they will be.

    It needs a criterion that is an expected reduction of a variance. The answers y to the batch so
    far leave of a quantity q the variance around its best linear predictor: covariances with the
    next answer become
    :math:`\mathrm{Cov}(p, q) - \mathrm{Cov}(p, y)\,\mathrm{Cov}(y, y)^{-1}\,\mathrm{Cov}(y, q)`.
    Only the 20,000 candidates of highest score are considered; `once` says whether each pair comes
    once in a batch.
    """

    once: bool = True

    def chooser(self, task: Task) -> Chooser:
        """Choose by the conditional covariances."""
        if not isinstance(task.criterion, OfVariance) or task.questions.pair is None:
            self._refuse(f"needs comparisons and the score of a variance, not {task.criterion!r}")
        self._refuse_types(task.posterior)
        return _InTurn(task, task.criterion, self.once)


class _InTurn(_Shortlist):
    def __init__(self, task: Task, criterion: OfVariance, once: bool):
        super().__init__(task, once)
        # The votes for the first item, half of a tie.
        number = np.asarray(task.questions.answers(), float)
        expected = np.tensordot(number, self.probs, (0, 1))
        square = np.tensordot(number**2, self.probs, (0, 1))
        mean = self.weight @ expected
        # Variance of each answer, given those taken.
        self.variance = np.maximum(self.weight @ square - mean**2, 1e-9)
        self.centred = expected - mean  # (draw, question)
        # (draw, quantity, question), or 1 for the last
        quantity = criterion.quantity(task.posterior, self.short)
        self.quantity = quantity - np.tensordot(self.weight, quantity, 1)
        self.left = self._covariance(self.centred)
        self.taken: list[tuple[np.ndarray, np.ndarray, float]] = []

    def _covariance(self, centred: Float[np.ndarray, "draw _"]) -> Float[np.ndarray, "quantity _"]:
        """Covariances of the quantities with answers, shape (quantity, question)."""
        weighted = self.weight[:, None] * centred
        if self.quantity.shape[2] == 1:
            return np.asarray(self.quantity[:, :, 0].T @ weighted)
        by_question = np.broadcast_to(weighted, self.quantity[:, 0].shape)
        return np.asarray(np.einsum("sqn,sn->qn", self.quantity, by_question))

    def gain(self) -> Float[np.ndarray, " short"]:
        return np.asarray((self.left**2).sum(0) / self.variance)

    def add(self, place: int) -> None:
        with_answers = (self.weight * self.centred[:, place]) @ self.centred
        with_quantity = self._covariance(self.centred[:, [place]])
        for answers, quantity, variance in self.taken:
            with_answers = with_answers - answers * (answers[place] / variance)
            with_quantity = with_quantity - quantity * (answers[place] / variance)
        variance = float(self.variance[place])
        self.taken.append((with_answers, with_quantity, variance))
        self.left = self.left - with_quantity * (with_answers / variance)
        self.variance = np.maximum(self.variance - with_answers**2 / variance, 1e-9)


@dataclass(frozen=True)
class BatchBald(Batch):
    r"""Greedy BatchBALD: each next question has the answer with most information beyond the answers
    to those chosen before.

    .. math:: I(y_1, \dots, y_B; \theta)
              = \sum_b \bigl[H(y_b \mid y_1, \dots, y_{b-1})
              - \mathbb{E}_\theta\, H(y_b \mid \theta)\bigr]

    The information is exact while the answers to the batch have at most `configurations`
    configurations, and beyond that estimated from as many random ones. Only the 20,000 candidates
    of highest score are considered. Each item is labelled once in a batch, and models of types are
    refused: answers that share a class which the likelihood sums out are not independent given a
    draw.

    References
    ----------
    Kirsch, van Amersfoort and Gal (2019), NeurIPS, arXiv:1906.08158.
    """

    configurations: int = 1024

    def __post_init__(self) -> None:
        whole("configurations", self.configurations, least=2)

    def chooser(self, task: Task) -> Chooser:
        """Choose by joint information."""
        self._refuse_types(task.posterior)
        return _JointInformation(task, self.configurations)


class _JointInformation(_Shortlist):
    def __init__(self, task: Task, most: int):
        super().__init__(task, once=False)
        posterior = task.posterior
        if posterior.program.has_truth:  # Answers about one unit tell of one class.
            self.about = np.asarray(task.questions.codes(posterior.program.unit))
        self.most, self.rng = most, task.rng
        self.noise = posterior.by_pieces(self.short, partial(_noise, posterior))
        # Configurations of the answers taken: the probability of each, and the weights of the draws
        # given it, shape (draw, configuration).
        self.p_configuration = np.ones(1)
        self.given = self.weight[:, None].astype(np.float64)

    def gain(self) -> Float[np.ndarray, " short"]:
        p_configuration, given = jnp.float32(self.p_configuration), jnp.float32(self.given)
        entropy = jnp.zeros(len(self.noise))
        for answer in range(self.probs.shape[1]):
            p_answer = given.T @ self.probs[:, answer]  # (configuration, question)
            entropy -= p_configuration @ xlogy(p_answer, p_answer)
        return np.asarray(jnp.maximum(entropy / jnp.log(2.0) - self.noise, 0.0))

    def add(self, place: int) -> None:
        taken = self.probs[:, :, place].astype(np.float64)
        size, answers = len(self.p_configuration), taken.shape[1]
        answer_given = taken.T @ self.given  # (answer, configuration)
        if size * answers <= self.most:
            self.p_configuration = (answer_given * self.p_configuration).ravel()
            both = taken.T[:, :, None] * self.given
            self.given = both.transpose(1, 0, 2).reshape(len(taken), -1)
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


def _noise(posterior: Posterior, piece: Any) -> Float[Array, " question"]:
    """Mean entropy of the answer under a known draw and class."""
    probs = posterior.answer_probs(piece, by_class=True)
    return mean(bits(probs.table), probs.weight)


@dataclass(frozen=True)
class SparseSubset(Batch):
    r"""Batch whose expected log-likelihood is near that of all candidates together (Frank–Wolfe;
    Pinsler et al. 2019, arXiv:1908.02144).

    Each question is a vector: its expected log-likelihood under every draw, centred. Steps of the
    Frank–Wolfe algorithm move a sparse weighted sum of questions towards the sum of all; a question
    enters the batch at the first step towards it. Scores only shorten the list.
    """

    def chooser(self, task: Task) -> Chooser:
        """Choose by Frank–Wolfe steps."""
        return _FrankWolfe(task)


class _FrankWolfe(_Shortlist):
    def __init__(self, task: Task):
        super().__init__(task, once=False)
        mean = np.tensordot(self.weight, self.probs, 1)
        log = (mean * np.log(np.maximum(self.probs, 1e-12))).sum(1)  # (draw, question)
        centred = log - self.weight @ log
        self.vectors = (np.sqrt(self.weight)[:, None] * centred).T
        self.size = np.linalg.norm(self.vectors, axis=1) + 1e-12
        self.all = self.vectors.sum(0)
        self.sum = np.zeros_like(self.all)

    def gain(self) -> Float[np.ndarray, " short"]:
        return np.asarray(self.vectors @ (self.all - self.sum) / self.size)

    def best(self, allowed: Allowed) -> int:
        # A step may lead to a question that is in the batch already; it counts all the same, up to
        # a limit.
        for _ in range(100):
            row = int(self.values().argmax())
            if self.open[row]:
                break
            self.add(int(self.place[row]))
        return super().best(allowed)

    def add(self, place: int) -> None:
        corner = self.size.sum() / self.size[place] * self.vectors[place]
        way = corner - self.sum
        share = np.clip(way @ (self.all - self.sum) / max(way @ way, 1e-30), 0.0, 1.0)
        self.sum = self.sum + share * way
