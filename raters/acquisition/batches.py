"""Batches: which questions to ask together, given the score of each."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from raters._check import boolean, positive, whole
from raters.acquisition.criteria import Criterion, OfVariance
from raters.acquisition.posterior import Posterior, rows_of
from raters.data import Comparisons
from raters.errors import SettingError
from raters.labels import Labels
from raters.predict import latent_of

# Batches that look at the answers to all candidates together look at so many, the best by score.
_SHORTLIST = 20_000


class Chooser:
    """Chooses one question after another: `best` names the best of those still `allowed`, `take` says which was taken.

    This one takes the highest score. Of questions with equal numbers in `about` it takes one; without them, every question may
    come. Scores are per cost; `price` says what each question costs to those that score as they go.
    """

    price: np.ndarray | None = None

    def __init__(self, score: np.ndarray, about: np.ndarray | None = None) -> None:
        self.score = np.array(score, float)
        self.open = np.ones(len(score), bool)
        self.about = about

    def best(self, allowed: np.ndarray) -> int:
        """The row to take next; −1 when none is left."""
        usable = allowed & self.open
        return int(np.where(usable, self.score, -np.inf).argmax()) if usable.any() else -1

    def take(self, row: int) -> None:
        """Note that this row is in the batch, and with it all that are about the same."""
        self.open[row] = False
        if self.about is not None:
            self.open &= self.about != self.about[row]


@dataclass(frozen=True)
class Batch(abc.ABC):
    """How a batch is put together."""

    @abc.abstractmethod
    def chooser(
        self, criterion: Criterion, score: np.ndarray, posterior: Posterior, questions: Any, rng: np.random.Generator
    ) -> Chooser:
        """What chooses among these questions."""


@dataclass(frozen=True)
class Top(Batch):
    """The highest scores. A pair, or an item to label, may come more than once, put to several annotators."""

    def chooser(self, criterion, score, posterior, questions, rng):
        """By score alone."""
        return Chooser(score)


@dataclass(frozen=True)
class Unique(Batch):
    """The highest scores, each pair (or item to label) once."""

    def chooser(self, criterion, score, posterior, questions, rng):
        """By score, once each."""
        return Chooser(score, asked_about(questions))


@dataclass(frozen=True)
class Power(Batch):
    r"""Stochastic batches: each pair (or item) once, drawn without replacement with probability proportional to
    :math:`\mathrm{score}^{\alpha}` (Kirsch et al. 2023, Stochastic Batch Acquisition, TMLR).

    Parameters
    ----------
    exponent : float
        α; 1 is a fair draw, large ones are `Unique`.
    """

    exponent: float = 1.0

    def __post_init__(self) -> None:
        positive("exponent", self.exponent)

    def chooser(self, criterion, score, posterior, questions, rng):
        """By score and Gumbel noise."""
        if (score < 0).any():
            raise SettingError("Power() needs scores of at least 0, and this criterion gives negative ones; use Unique()")
        noisy = self.exponent * np.log(np.maximum(score, 1e-30)) + rng.gumbel(size=len(score))
        return Chooser(noisy, asked_about(questions))


@dataclass(frozen=True)
class SpanningTree(Batch):
    """Pairs that close no circle, best score first: the batch connects as many items as it can. When a tree spans all items,
    the next is begun (Mikhailiuk et al. 2020, ASAP)."""

    def chooser(self, criterion, score, posterior, questions, rng):
        """By score, without circles."""
        if not isinstance(questions, Comparisons):
            raise SettingError("SpanningTree() connects items by comparisons, and these questions are labels; use Unique()")
        return _Tree(score, questions)


@dataclass(frozen=True)
class Sequential(Batch):
    r"""Each next question is scored as if the answers to those chosen were known, and not yet what they are.

    For scores that are expected falls of a variance. What the answers y to the batch so far leave open of a quantity q is the
    variance around its best linear predictor: covariances with the next answer become
    :math:`\mathrm{Cov}(p, q) - \mathrm{Cov}(p, y)\,\mathrm{Cov}(y, y)^{-1}\,\mathrm{Cov}(y, q)`. Looks at the 20,000
    candidates of highest score.

    Parameters
    ----------
    once : bool
        Whether each pair comes once in a batch.
    """

    once: bool = True

    def __post_init__(self) -> None:
        boolean("once", self.once)

    def chooser(self, criterion, score, posterior, questions, rng):
        """By what is left of the covariances."""
        if not isinstance(criterion, OfVariance) or not isinstance(questions, Comparisons):
            raise SettingError(
                "Sequential() needs comparisons and the score of a variance, such as OrderVariance() or VarianceReduction(); "
                f"with {criterion!r} use Unique()"
            )
        without_types(posterior, "Sequential()")
        return _InTurn(criterion, score, posterior, questions, self.once)


@dataclass(frozen=True)
class BatchBald(Batch):
    r"""Greedy BatchBALD: each next question is the one whose answer tells most beyond the answers to those chosen.

    .. math:: I(y_1, \dots, y_B; \theta)
              = \sum_b \bigl[H(y_b \mid y_1, \dots, y_{b-1}) - \mathbb{E}_\theta\, H(y_b \mid \theta)\bigr]

    Exact while the answers to the batch have at most `configurations` configurations, and beyond that estimated from as many
    random ones. Looks at the 20,000 candidates of highest score. Each item is labelled once in a batch, and there is none for
    models of types: answers that share a class which draws do not fix are not independent given a draw.

    Parameters
    ----------
    configurations : int

    References
    ----------
    Kirsch, van Amersfoort and Gal (2019), NeurIPS, arXiv:1906.08158.
    """

    configurations: int = 1024

    def __post_init__(self) -> None:
        whole("configurations", self.configurations, least=2)

    def chooser(self, criterion, score, posterior, questions, rng):
        """By joint information."""
        without_types(posterior, "BatchBald()")
        return _Joint(score, posterior, questions, self.configurations, rng)


@dataclass(frozen=True)
class SparseSubset(Batch):
    r"""A batch whose expected log-likelihood is near that of all candidates together (Frank–Wolfe; Pinsler et al. 2019).

    Each question is a vector: its expected log-likelihood under every draw, centred. Steps of Frank and Wolfe's algorithm
    move a sparse weighted sum of questions towards the sum of all; a question enters the batch when it is first stepped to.
    Scores are not used, but to shorten the list to 20,000 candidates.

    References
    ----------
    Pinsler, Gordon, Nalisnick and Hernández-Lobato (2019), NeurIPS, arXiv:1908.02144.
    """

    def chooser(self, criterion, score, posterior, questions, rng):
        """By Frank–Wolfe steps."""
        return _Sparse(score, posterior, questions)


def without_types(posterior: Posterior, what: str) -> None:
    """`SettingError` for models whose annotators are of types: two answers of one annotator tell of the same type."""
    if isinstance(posterior.data, Comparisons) and latent_of(posterior.model, posterior.data):
        raise SettingError(
            f"{what} takes answers as independent given a draw, and those of one annotator share a type in "
            f"{type(posterior.model).__name__}; use Unique()"
        )


def asked_about(questions: Any) -> np.ndarray:
    """A number for what each question is about: the pair in either order, or the item."""
    if isinstance(questions, Labels):
        return np.asarray(questions.item).astype(np.int64)
    first, second = np.asarray(questions.first), np.asarray(questions.second)
    return np.minimum(first, second).astype(np.int64) * questions.num_items + np.maximum(first, second)


class _Tree(Chooser):
    def __init__(self, score, questions):
        super().__init__(score, asked_about(questions))
        self.first, self.second = np.asarray(questions.first), np.asarray(questions.second)
        self.component = np.arange(questions.num_items)
        self.number = questions.num_items

    def best(self, allowed):
        joins = self.component[self.first] != self.component[self.second]
        row = super().best(allowed & joins)
        if row < 0 and (allowed & self.open).any():
            self.component = np.arange(self.number)
            row = super().best(allowed)
        return row

    def take(self, row):
        super().take(row)
        one, other = self.component[self.first[row]], self.component[self.second[row]]
        self.component[self.component == one] = other


class _Short(Chooser):
    """Chooses from the candidates of highest score, whose chances are held together."""

    def __init__(self, score, posterior, questions, about=None):
        super().__init__(score, about)
        number = min(len(self.score), _SHORTLIST)
        self.rows = np.sort(np.argpartition(-self.score, number - 1)[:number])
        self.place = np.full(len(self.score), -1)
        self.place[self.rows] = np.arange(number)
        short = rows_of(questions, self.rows)
        parts = [(posterior.chances(piece), count) for piece, count in posterior.pieces(short)]
        table = np.concatenate([np.asarray(part.table)[..., :count] for part, count in parts], -1)
        self.chances = table.reshape(-1, *table.shape[2:])
        self.weight = np.asarray(parts[0][0].weight).ravel()

    def best(self, allowed):
        usable = (allowed & self.open)[self.rows]
        return int(self.rows[np.where(usable, self.worth(), -np.inf).argmax()]) if usable.any() else -1

    def worth(self) -> np.ndarray:
        """What each of the short list would add, per cost."""
        gain = self.gain()
        return gain if self.price is None else np.maximum(gain, 0.0) / self.price[self.rows]

    def gain(self) -> np.ndarray:
        """What each of the short list would add."""
        raise NotImplementedError

    def take(self, row):
        super().take(row)
        if self.place[row] >= 0:
            self.add(self.place[row])

    def add(self, place: int) -> None:
        """Note what was taken."""
        raise NotImplementedError


class _InTurn(_Short):
    def __init__(self, criterion, score, posterior, questions, once):
        super().__init__(score, posterior, questions, asked_about(questions) if once else None)
        wins = self.chances[:, 0]
        chance = self.weight @ wins
        self.own = np.maximum(chance * (1 - chance), 1e-9)  # variance of each answer, given those taken
        self.centred = wins - chance  # (draw, question)
        wanted = criterion.wanted(posterior, rows_of(questions, self.rows))  # (draw, quantity, question), or 1 for the last
        self.wanted = wanted - np.tensordot(self.weight, wanted, 1)
        self.left = self._covariance(self.wanted, self.centred)
        self.taken: list[tuple[np.ndarray, np.ndarray, float]] = []

    def _covariance(self, wanted, centred):
        """Covariances of what is wanted with answers, shape (quantity, question)."""
        weighted = self.weight[:, None] * centred
        if wanted.shape[2] == 1:
            return wanted[:, :, 0].T @ weighted
        return np.einsum("sqn,sn->qn", wanted, np.broadcast_to(weighted, wanted[:, 0].shape))

    def gain(self):
        return (self.left**2).sum(0) / self.own

    def add(self, place):
        with_answers = (self.weight * self.centred[:, place]) @ self.centred
        with_wanted = self._covariance(self.wanted, self.centred[:, [place]])
        for answers, wanted, variance in self.taken:
            with_answers = with_answers - answers * (answers[place] / variance)
            with_wanted = with_wanted - wanted * (answers[place] / variance)
        variance = float(self.own[place])
        self.taken.append((with_answers, with_wanted, variance))
        self.left = self.left - with_wanted * (with_answers / variance)
        self.own = np.maximum(self.own - with_answers**2 / variance, 1e-9)


class _Joint(_Short):
    def __init__(self, score, posterior, questions, most, rng):
        super().__init__(score, posterior, questions, asked_about(questions) if isinstance(questions, Labels) else None)
        self.most, self.rng = most, rng
        self.noise = self._noise(posterior, rows_of(questions, self.rows))
        # Configurations of the answers taken: how probable each is, and the draws given it, shape (draw, configuration).
        self.chance = np.ones(1)
        self.given = self.weight[:, None].astype(np.float64)

    @staticmethod
    def _noise(posterior, short):
        """Mean entropy of the answer once everything is known, the class included."""
        parts = []
        for piece, count in posterior.pieces(short):
            chances = posterior.chances(piece, by_class=True)
            each = -jax.scipy.special.xlogy(chances.table, chances.table).sum(2)
            weight = chances.weight if chances.weight.ndim == 3 else chances.weight[..., None]
            parts.append(np.asarray((weight * each).sum((0, 1)))[:count])
        return np.concatenate(parts) / np.log(2.0)

    def gain(self):
        left = _conditional_entropy(self.chance.astype(np.float32), self.given.astype(np.float32), self.chances)
        return np.maximum(np.asarray(left) - self.noise, 0.0)

    def add(self, place):
        taken = self.chances[:, :, place].astype(np.float64)
        number, answers = len(self.chance), taken.shape[1]
        answer_given = taken.T @ self.given  # (answer, configuration)
        if number * answers <= self.most:
            self.chance = (answer_given * self.chance).ravel()
            self.given = (taken.T[:, :, None] * self.given).transpose(1, 0, 2).reshape(len(taken), -1)
        else:
            # From here on configurations are drawn, and count alike; each draws its next answer given those that it has.
            kept = self.rng.choice(number, self.most, p=self.chance / self.chance.sum())
            answer = (self.rng.random(self.most) > np.cumsum(answer_given[:, kept], 0)[:-1]).sum(0)
            self.chance, self.given = np.full(self.most, 1 / self.most), self.given[:, kept] * taken[:, answer]
        possible = self.chance > 0
        self.chance, self.given = self.chance[possible], self.given[:, possible]
        self.given = self.given / self.given.sum(0)


@jax.jit
def _conditional_entropy(chance, given, chances):
    """Entropy of each question's answer once the configuration is known, in bits, shape (question,)."""
    entropy = 0.0
    for answer in range(chances.shape[1]):
        likely = given.T @ chances[:, answer]  # (configuration, question)
        entropy = entropy - chance @ jax.scipy.special.xlogy(likely, likely)
    return entropy / jnp.log(2.0)


class _Sparse(_Short):
    def __init__(self, score, posterior, questions):
        super().__init__(score, posterior, questions)
        mean = np.tensordot(self.weight, self.chances, 1)
        log = (mean * np.log(np.maximum(self.chances, 1e-12))).sum(1)  # (draw, question)
        centred = log - self.weight @ log
        self.vectors = (np.sqrt(self.weight)[:, None] * centred).T
        self.size = np.linalg.norm(self.vectors, axis=1) + 1e-12
        self.all = self.vectors.sum(0)
        self.sum = np.zeros_like(self.all)

    def gain(self):
        return self.vectors @ (self.all - self.sum) / self.size

    def best(self, allowed):
        # A step may lead to a question that is in the batch already; it counts all the same, up to a limit.
        for _ in range(100):
            place = int(self.worth().argmax())
            if self.open[self.rows[place]]:
                break
            self.add(place)
        return super().best(allowed)

    def add(self, place):
        corner = self.size.sum() / self.size[place] * self.vectors[place]
        way = corner - self.sum
        share = np.clip(way @ (self.all - self.sum) / max(way @ way, 1e-30), 0.0, 1.0)
        self.sum = self.sum + share * way
