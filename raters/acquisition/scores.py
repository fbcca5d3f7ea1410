"""Scores of questions: how much an answer is worth, by the draws of a `Posterior`.

Formulas read a table `probs` of axes (draw, answer, question), the probability of each answer under
each draw, and `weight`, of axes (draw,) or (draw, question), which sums to 1 over the draws.
Information is in bits.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NoReturn, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, Int

from raters.acquisition.posterior import Posterior, Weight, sample_of
from raters.errors import refuse
from raters.errors.validation import one_of, whole
from raters.model import Scale

# Bound of probabilities from below in divisions and in logarithms.
_TINY = 1e-12

Probs = Float[Array, "draw answer question"]
Targets = Float[Array, "draw target_answer target"]
Joint = Float[Array, "answer question target_answer target"]
Quantities = Float[Array, "draw quantity _"]
Scores = Float[Array, " question"]
PerQuestion = Float[np.ndarray, " question"]
# Scores of a piece of the questions, shape (question,).
Scorer = Callable[[Any], Any]


def _compiled(formula: Any) -> Any:
    """A compiled formula of a score, which reads no settings."""
    return staticmethod(jax.jit(formula))


def mean(values: Float[Array, "draw ... question"], weight: Weight) -> Float[Array, "... question"]:
    """Average over the draws."""
    if weight.ndim == 1:
        return jnp.tensordot(weight, values, 1)
    return (jnp.expand_dims(weight, tuple(range(1, values.ndim - 1))) * values).sum(0)


def bits(probs: Float[Array, " ..."], axis: int = -2) -> Float[Array, " ..."]:
    """Entropy over the answers, in bits; rounding does not take it below 0."""
    return jnp.maximum(-xlogy(probs, probs).sum(axis) / jnp.log(2.0), 0.0)


@dataclass(frozen=True)
class Criterion(abc.ABC):
    """Score of questions, the higher the better: a frozen dataclass with a `formula` of the
    probabilities of answers, or with a `reader` that says what else to read."""

    # Most questions that are scored at a time, and whether draws stand once for each class.
    most: ClassVar[int] = 1 << 14
    by_class: ClassVar[bool] = False
    formula: ClassVar[Callable[..., Scores]]

    def __call__(self, posterior: Posterior, questions: Any, *, seed: int = 0) -> PerQuestion:
        """Score questions, in pieces so that memory stays bounded."""
        score = self.reader(posterior, questions, np.random.default_rng(seed))
        if not questions.num_rows:
            return np.zeros(0)
        return posterior.by_pieces(questions, score, self.most).astype(np.float64)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Return the function that scores rows of questions; raise where it has no meaning."""
        read = partial(posterior.answer_probs, by_class=self.by_class)
        return lambda piece: self.formula(*read(piece))


# ---------------------------------------------------------------- of the answer alone


@dataclass(frozen=True)
class Bald(Criterion):
    r"""Information about all parameters, and about the class that the likelihood sums out.

    .. math:: I(y; \theta) = H(\mathbb{E}_\theta\, p(y \mid \theta))
              - \mathbb{E}_\theta\, H(p(y \mid \theta))

    References
    ----------
    Houlsby, Huszár, Ghahramani and Lengyel (2011), arXiv:1112.5745.
    """

    by_class = True

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """Mutual information of the answer and all parameters, as a difference of entropies."""
        return jnp.maximum(bits(mean(probs, weight)) - mean(bits(probs), weight), 0.0)


@dataclass(frozen=True)
class Entropy(Criterion):
    r"""Uncertainty of the answer, :math:`H(\mathbb{E}_\theta\, p(y \mid \theta))`. Among several
    annotators it prefers the *worst*: a guesser's answer is the most uncertain of all."""

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """Entropy of the predicted answer."""
        return bits(mean(probs, weight))


@dataclass(frozen=True)
class LeastConfidence(Criterion):
    """Improbability of the most probable answer; with two answers it orders as `Entropy` does."""

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """One minus the probability of the most probable answer."""
        return jnp.maximum(1.0 - mean(probs, weight).max(-2), 0.0)


@dataclass(frozen=True)
class VoteEntropy(Criterion):
    """Query by committee: each draw votes for its likeliest answer (Dagan and Engelson 1995)."""

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """Entropy of the votes."""
        votes = jax.nn.one_hot(probs.argmax(-2), probs.shape[-2], axis=-2)
        return bits(mean(votes, weight))


@dataclass(frozen=True)
class CommitteeDivergence(Criterion):
    r"""Query by committee: mean divergence of the draws from each other,
    :math:`\mathbb{E}_{\theta, \theta'}\, \mathrm{KL}(p(y \mid \theta) \,\|\, p(y \mid \theta'))`.
    From their mean it is `Bald`."""

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """Mean divergence over ordered pairs of draws, with replacement."""
        log = jnp.log2(jnp.maximum(probs, _TINY))
        across = (mean(probs, weight) * mean(log, weight)).sum(-2)
        return jnp.maximum(mean((probs * log).sum(-2), weight) - across, 0.0)


@dataclass(frozen=True)
class About(Criterion):
    """Information about some parameters, such as ``About("reward")``, with the others integrated
    out. All pairs of their draws are computed, which is exact when the two are independent given
    the data.

    Parameters
    ----------
    *sites : str
        Names of the chosen parameters.
    draws : int
        Number of draws of each of the two.
    """

    sites: tuple[str, ...]
    draws: int = 30

    def __init__(self, *names: str, draws: int = 30, sites: tuple[str, ...] = ()) -> None:
        whole("draws", draws, least=2)
        object.__setattr__(self, "sites", names or tuple(sites))
        object.__setattr__(self, "draws", draws)

    @_compiled
    def formula(probs: Float[Array, "phi_draw psi_draw answer question"]) -> Scores:
        """Mutual information of the answer and φ, with ψ integrated out."""
        given = probs.mean(1)
        return jnp.maximum(bits(given.mean(0)) - bits(given).mean(0), 0.0)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Cross draws of the chosen parameters with draws of the others."""
        if not self.sites or set(self.sites) - set(posterior.draws):
            refuse("sites", self.sites, expected=f"the model has {sorted(posterior.draws)}")
        weight, number = posterior.share, self.draws
        chosen, other = (rng.choice(len(weight), number, p=weight) for _ in range(2))
        crossed, rows = {}, (np.repeat(chosen, number), np.tile(other, number))
        for name, value in _on_one_scale(posterior).items():
            crossed[name] = value[rows[name not in self.sites]]
        both = Posterior.equal(posterior.program, crossed)

        def score(piece: Any) -> Scores:
            table = both.answer_probs(piece).table
            return self.formula(table.reshape(number, number, *table.shape[1:]))

        return score


@dataclass(frozen=True)
class Random(Criterion):
    """Equal chances for all questions: the baseline of the other scores."""

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Draw scores, and read nothing."""
        return lambda piece: rng.random(piece.num_rows)


def _on_one_scale(posterior: Posterior) -> dict[str, Float[np.ndarray, "draw ..."]]:
    """Draws moved along each `Scale` orbit of the model to where its first site has one size."""
    values = dict(posterior.draws)
    for symmetry in [one for one in posterior.model.symmetries if isinstance(one, Scale)]:
        site = np.asarray(values[symmetry.up[0]], np.float64)
        log_size = np.log(np.square(site).mean(tuple(range(1, site.ndim)))) / 2
        factor = np.exp(log_size.mean() - log_size)
        for name in (*symmetry.up, *symmetry.down):
            moved = factor if name in symmetry.up else 1 / factor
            expanded = moved.reshape(-1, *(1,) * (values[name].ndim - 1))
            values[name] = (values[name] * expanded).astype(np.float32)
    return values


# ---------------------------------------------------------------- other answers


@jax.jit
def joint(probs: Probs, targets: Targets, weight: Weight) -> Joint:
    """Probability of each answer to each question together with each answer to each target."""
    draws = len(probs)
    left = probs * weight.reshape(draws, 1, -1)
    pairs = left.reshape(draws, -1).T @ targets.reshape(draws, -1)
    return pairs.reshape(*probs.shape[1:], *targets.shape[1:])


@dataclass(frozen=True)
class Epig(Criterion):
    r"""Information about the answers to other questions, drawn at random from the candidates. The
    expected log-loss on them after the answer (Roy and McCallum 2001) is the same up to a constant.

    .. math:: \frac1M \sum_m I(y; y_m)
              = \frac1M \sum_m \bigl[H(y_m) - \mathbb{E}_y\, H(y_m \mid y)\bigr]

    Answers that share a class which the likelihood sums out (labels of one item, votes of one
    annotator of some type) inform about each other through that class, too.

    Parameters
    ----------
    targets : int
        Number of the other questions. A question that is among them counts as if it were asked a
        second time.

    References
    ----------
    Bickford Smith, Kirsch, Farquhar, Gal, Foster and Rainforth (2023), AISTATS, arXiv:2304.08151.
    """

    targets: int = 500
    most = 1024  # The joint table is as large as questions × targets.

    def __post_init__(self) -> None:
        whole("targets", self.targets)

    @_compiled
    def formula(probs: Probs, targets: Targets, weight: Weight, pairs: Joint) -> Scores:
        """Mean mutual information of the answer and the answers to `targets`, which have these
        probabilities together."""
        both = bits(pairs.transpose(0, 2, 1, 3).reshape(-1, pairs.shape[1], pairs.shape[3]), 0)
        gain = bits(mean(probs, weight))[:, None] + bits(mean(targets, weight))[None, :] - both
        return jnp.maximum(gain.mean(-1), 0.0)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Sample the targets."""
        targets = sample_of(questions, self.targets, rng)
        table = posterior.answer_probs(targets).table
        latent = posterior.program.latent
        by_class = posterior.answer_probs(targets, by_class=True).table

        def score(piece: Any) -> Scores:
            summed = posterior.answer_probs(piece)
            pairs = joint(summed.table, table, summed.weight)
            if latent is not None:  # Questions and targets of one unit answer by its class.
                classes = posterior.answer_probs(piece, by_class=True)
                through_class = joint(classes.table, by_class, classes.weight)
                unit, of_target = (np.asarray(one.codes(latent.unit)) for one in (piece, targets))
                pairs = jnp.where((unit[:, None] == of_target)[:, None], through_class, pairs)
            return self.formula(summed.table, table, summed.weight, pairs)

        return score


# ---------------------------------------------------------------- the order


@dataclass(frozen=True)
class OrderEntropy(Criterion):
    """Uncertainty of the order of the two items under a committee of so many draws, which is chosen
    anew each time. It does not depend on the annotator."""

    draws: int = 10

    def __post_init__(self) -> None:
        whole("draws", self.draws, least=2)

    @_compiled
    def formula(gap: Float[Array, "draw question"], weight: Weight) -> Scores:
        """Entropy of the order, which each draw gives by the sign of the difference."""
        # Weights that sum to a little more than 1 would make a share of draws whose complement has
        # no logarithm.
        above = jnp.clip(mean((gap > 0) + 0.5 * (gap == 0), weight), 0.0, 1.0)
        return bits(jnp.stack([above, 1 - above]), 0)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Draw the committee."""
        reward, _ = rewards(posterior), sides_of(questions)
        if reward.ndim > 2:
            _refuse_target("needs one order of the items, and there is one for each type")
        committee = reward[rng.choice(len(reward), self.draws, p=posterior.share)]
        equal = jnp.full(self.draws, 1 / self.draws)

        def score(piece: Any) -> Any:
            first, second = sides_of(piece)
            entropy = self.formula(committee[:, first] - committee[:, second], equal)
            # Ten draws give many equal scores; without noise the same items would come first each
            # time.
            return np.asarray(entropy) + 1e-6 * rng.random(len(entropy))

        return score


@dataclass(frozen=True)
class OfVariance(Criterion):
    """Base of the scores that are the expected reduction of the variance of some quantities."""

    @abc.abstractmethod
    def quantity(self, posterior: Posterior, questions: Any) -> Float[np.ndarray, "draw _ _"]:
        """Quantities under each draw, shape (draw, quantity, question), or (draw, quantity, 1)."""

    @_compiled
    def formula(probs: Probs, quantity: Quantities, weight: Weight) -> Scores:
        """Expected reduction of the variance, summed over the quantities."""
        centred = (quantity - jnp.tensordot(weight, quantity, 1)) * weight[:, None, None]
        if quantity.shape[2] == 1:
            covariance = jnp.tensordot(probs, centred[..., 0], ((0,), (0,)))
        else:
            covariance = jnp.einsum("saq,snq->aqn", probs, centred)
        return ((covariance**2).sum(-1) / jnp.maximum(mean(probs, weight), _TINY)).sum(0)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the quantities."""
        quantity = self.quantity(posterior, questions.rows(slice(0, 1)))
        of_all = isinstance(self, VarianceReduction)

        def score(piece: Any) -> Any:
            probs = posterior.answer_probs(piece)
            each = quantity if of_all else self.quantity(posterior, piece)
            return self.formula(probs.table, jnp.asarray(each), probs.weight)

        return score


@dataclass(frozen=True)
class OrderVariance(OfVariance):
    """Expected reduction of the variance of the order of the two items by an answer about them,
    summed over types where there are several."""

    def quantity(self, posterior: Posterior, questions: Any) -> Float[np.ndarray, "draw _ _"]:
        """1 where the first item is the better, and 0 elsewhere, for each type."""
        first, second = sides_of(questions)
        reward = np.asarray(rewards(posterior), np.float32)
        by_type = reward.reshape(*reward.shape[:2], -1).transpose(0, 2, 1)
        better: np.ndarray = by_type[:, :, first] > by_type[:, :, second]
        return better.astype(np.float32)


Quantity = Literal["rank", "reward", "competence", "coefficient", "top_k"]


@dataclass(frozen=True)
class VarianceReduction(OfVariance):
    r"""Expected reduction of the posterior variance of some quantities by an answer, summed over
    them.

    Parameters
    ----------
    of : {"rank", "reward", "competence", "coefficient", "top_k"}
        The rank of each item, its reward, the competence (or confusion matrix) of each annotator,
        the coefficient of each feature, on a scale that does not depend on the priors, or
        membership of each item in the `k` best.
    k : int
        Number of best items, with ``of="top_k"``.
    """

    of: Quantity = "rank"
    k: int = 1

    def __post_init__(self) -> None:
        one_of("of", self.of, get_args(Quantity))
        whole("k", self.k)

    def quantity(self, posterior: Posterior, questions: Any) -> Float[np.ndarray, "draw _ 1"]:
        """Quantities under each draw."""
        quantity = np.asarray(self._by_draw(posterior), np.float32)
        return quantity.reshape(posterior.weight.size, -1, 1)

    def _by_draw(self, posterior: Posterior) -> Float[Array, "draw ..."]:
        if self.of == "competence":
            return posterior.site(competence_site(posterior))
        if self.of == "coefficient":
            return _coefficients(posterior)
        reward = rewards(posterior)
        if self.of == "reward":
            return reward - reward.mean(1, keepdims=True)
        num_items = reward.shape[1]
        if self.of == "top_k" and self.k >= num_items:
            refuse("k", self.k, expected=f"it must be less than the number of items, {num_items}")
        rank = reward.argsort(1).argsort(1)
        return rank if self.of == "rank" else rank >= num_items - self.k


def _coefficients(posterior: Posterior) -> Float[Array, "draw quantity"]:
    """Coefficients, times the mean size of what a scale symmetry divides them by."""
    values = posterior.site("coefficient")
    flat = values.reshape(len(values), -1)
    for symmetry in posterior.model.symmetries:
        if isinstance(symmetry, Scale) and "coefficient" in symmetry.up:
            for name in symmetry.down:
                other = jnp.asarray(posterior.draws[name])
                flat = flat * jnp.abs(other.reshape(len(other), -1)).mean(-1, keepdims=True)
    return flat


@dataclass(frozen=True)
class TruthVariance(Criterion):
    """Expected reduction of the posterior variance of an item's true class by a label; class
    probabilities allow for mistakes that the crowd makes together."""

    @_compiled
    def formula(probs: Probs, weight: Weight) -> Scores:
        """Expected reduction of the variance of the indicators, summed over classes."""
        labels, questions = probs.shape[1:]
        # Each draw stands once for each class, and classes are labels.
        weighted = (weight[:, None, :] * probs).reshape(-1, labels, labels, questions)
        both = weighted.sum(0)
        truth, label = both.sum(1, keepdims=True), both.sum(0, keepdims=True)
        return ((both - truth * label) ** 2 / jnp.maximum(label, _TINY)).sum((0, 1))

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Read the probabilities by class."""
        if not posterior.program.has_truth:
            _refuse_target("'truth' needs true classes, and the model has none")
        read = partial(posterior.answer_probs, by_class=True, calibrated=True)
        return lambda piece: self.formula(*read(piece))


# ---------------------------------------------------------------- parts of a posterior


def rewards(posterior: Posterior) -> Float[Array, "draw item ..."]:
    """Rewards of the items, or their worths."""
    return posterior.site(order_site(posterior))


def order_site(posterior: Posterior) -> str:
    """Name of the site that the order of the items follows from."""
    return "worth" if "worth" in posterior.draws else "reward"


def competence_site(posterior: Posterior) -> str:
    """Name of the first site of the program with a value for each judge."""
    judge, sites = posterior.data.judge, posterior.program.sites
    return next((name for name, site in sites.items() if judge in site.dims), "competence")


def _refuse_target(problem: str) -> NoReturn:
    instead = "target='everything'"
    refuse("target", problem=problem, expected="choose another target", instead=instead)


def sides_of(questions: Any) -> tuple[Int[np.ndarray, " question"], Int[np.ndarray, " question"]]:
    """Codes of the two items of each question; `SettingError` for questions of another kind."""
    if questions.pair is None:
        _refuse_target("is about the order of two items, and these questions are of another kind")
    first, second = (np.asarray(getattr(questions, side)) for side in questions.pair)
    return first, second
