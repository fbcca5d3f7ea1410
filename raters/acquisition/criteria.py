"""Criteria: how much each question is worth asking, read off a `Posterior` with the functions of `scores`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from raters._check import one_of, whole
from raters._judgements import pad_to
from raters.acquisition import scores
from raters.acquisition.posterior import Chances, Posterior, sample_of
from raters.errors import SettingError
from raters.inference._trace import latent_sites
from raters.labels import Labels
from raters.model import Scale
from raters.predict import latent_of

# With more items, the order of a random sample of their pairs stands for that of all.
_MOST_PAIRS = 500
_SLICE = 1024


@dataclass(frozen=True)
class Criterion(abc.ABC):
    """Scores questions; the higher, the more worth asking."""

    def __call__(self, posterior: Posterior, questions: Any, *, seed: int = 0) -> np.ndarray:
        """The score of each question, shape (question,). Reads the questions in pieces, so that memory stays bounded."""
        score = self.reader(posterior, questions, np.random.default_rng(seed))
        parts = [np.asarray(score(piece), np.float64)[:number] for piece, number in posterior.pieces(questions)]
        return np.concatenate(parts) if parts else np.zeros(0)

    @abc.abstractmethod
    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Callable[[Any], Any]:
        """The function that scores a piece of the questions."""


@dataclass(frozen=True)
class _OfChances(Criterion):
    """A function of the chances alone."""

    function: ClassVar[Callable[..., jax.Array]]
    by_class: ClassVar[bool] = False

    def reader(self, posterior, questions, rng):
        """Reads `function`."""
        return lambda piece: type(self).function(*posterior.chances(piece, by_class=self.by_class))


@dataclass(frozen=True)
class Bald(_OfChances):
    """Information about all parameters at once, and about the class that is summed out: see `scores.bald`."""

    function = staticmethod(scores.bald)
    by_class = True


@dataclass(frozen=True)
class Entropy(_OfChances):
    """Uncertainty of the answer: see `scores.entropy`. Put to a choice of annotators it asks the worst."""

    function = staticmethod(scores.entropy)


@dataclass(frozen=True)
class LeastConfidence(_OfChances):
    """See `scores.least_confidence`."""

    function = staticmethod(scores.least_confidence)


@dataclass(frozen=True)
class Margin(_OfChances):
    """See `scores.margin`."""

    function = staticmethod(scores.margin)


@dataclass(frozen=True)
class VoteEntropy(_OfChances):
    """Query by committee, with votes: see `scores.vote_entropy`."""

    function = staticmethod(scores.vote_entropy)


@dataclass(frozen=True)
class CommitteeDivergence(_OfChances):
    """Query by committee, with divergences: see `scores.committee_divergence`."""

    function = staticmethod(scores.committee_divergence)


@dataclass(frozen=True)
class OrderEntropy(Criterion):
    """Uncertainty of which of the two items is better: see `scores.order_entropy`. It does not look at who is asked.

    Parameters
    ----------
    draws : int
        Size of the committee of draws, chosen anew each time.
    """

    draws: int = 10

    def __post_init__(self) -> None:
        whole("draws", self.draws, least=2)

    def reader(self, posterior, questions, rng):
        """Reads the rewards."""
        reward = _one_order(posterior, self)
        flat = reward.reshape(-1, *reward.shape[2:])
        committee = jnp.asarray(flat[rng.choice(len(flat), self.draws, p=_flat_weight(posterior))])[None]

        def score(piece):
            difference = committee[:, :, piece.first] - committee[:, :, piece.second]
            entropy = scores.order_entropy(difference)
            # Of equal scores, which ten draws give many, any is as good: the first would be the same items each time.
            return np.asarray(entropy) + 1e-6 * rng.random(len(entropy))

        return score


@dataclass(frozen=True)
class About(Criterion):
    """Information about some parameters, the others integrated out: see `scores.bald_about`.

    ``About("reward")`` asks what tells the rewards, whatever it tells of the competences, and the other way round. Draws of
    the other parameters are taken independently of the chosen ones', after all draws have been brought to one scale: that is
    exact when the two are independent given the data, and an approximation otherwise.

    Parameters
    ----------
    *sites : str
        Names of the chosen parameters.
    draws : int
        Draws of each of the two; their square is computed.
    """

    sites: tuple[str, ...]
    draws: int = 30

    def __init__(self, *sites: str, draws: int = 30) -> None:
        whole("draws", draws, least=2)
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "draws", draws)

    def __repr__(self) -> str:
        return f"About({', '.join(map(repr, self.sites))}, draws={self.draws})"

    def reader(self, posterior, questions, rng):
        """Crosses the draws."""
        if not self.sites or (unknown := sorted(set(self.sites) - set(posterior.draws))):
            raise SettingError(
                f"{self!r} names {f'{unknown}, which are none of its sites' if self.sites else 'nothing'}; "
                f"{type(posterior.model).__name__} has {sorted(posterior.draws)}"
            )
        values = _on_one_scale(posterior)
        weight = _flat_weight(posterior)
        chosen, other = (rng.choice(len(weight), self.draws, p=weight) for _ in range(2))
        crossed = {}
        for name, value in values.items():
            flat = value.reshape(-1, *value.shape[2:])
            part = flat[chosen][:, None] if name in self.sites else flat[other][None]
            crossed[name] = np.broadcast_to(part, (self.draws, self.draws, *flat.shape[1:]))
        number = self.draws**2
        both = Posterior(posterior.model, posterior.data, crossed, np.full((self.draws, self.draws), 1 / number, np.float32))
        return lambda piece: scores.bald_about(both.chances(piece).table)


@dataclass(frozen=True)
class _Predictive(Criterion):
    """What an answer tells of the answers to other questions."""

    targets: int = 500
    function: ClassVar[Callable[..., jax.Array]]

    def __post_init__(self) -> None:
        whole("targets", self.targets)

    def reader(self, posterior, questions, rng):
        """Samples the targets."""
        targets = sample_of(questions, self.targets, rng)
        others = posterior.chances(targets).table
        latent = latent_of(posterior.model, posterior.data)
        if latent is None:
            return lambda piece: _against(type(self).function, posterior.chances(piece), others)
        by_class = posterior.chances(targets, by_class=True).table
        unit_of_target = np.asarray(getattr(targets, latent.axes[0]))

        def score(piece):
            of, apart = posterior.chances(piece), posterior.chances(piece, by_class=True)
            unit = np.asarray(getattr(piece, latent.axes[0]))

            def together(here):
                apart_from_class = scores.joint(of.table[..., here], others, of.weight)
                same = np.flatnonzero(np.isin(unit_of_target, unit[here]))
                if not len(same):
                    return apart_from_class
                same = same[np.minimum(np.arange(pad_to(len(same), 1)), len(same) - 1)]  # the last again, for few shapes
                through_class = scores.joint(apart.table[..., here], by_class[..., same], apart.weight[..., here])
                shared = (unit[here, None] == unit_of_target[same])[:, None, :]
                return apart_from_class.at[..., same].set(jnp.where(shared, through_class, apart_from_class[..., same]))

            return _against(type(self).function, of, others, together)

        return score


@dataclass(frozen=True)
class Epig(_Predictive):
    """Information about the answers to other questions: see `scores.epig`.

    Answers that share a class which the likelihood sums out (labels of one item, votes of one annotator of some type) tell of
    each other through it, too.

    Parameters
    ----------
    targets : int
        So many candidates, drawn at random, are the other questions. Where a question is among them itself, what counts is its
        answer if it were put again.
    """

    function = staticmethod(scores.epig)


@dataclass(frozen=True)
class ErrorReduction(_Predictive):
    """Expected log-loss on other questions, those of `Epig`: see `scores.error_reduction`."""

    function = staticmethod(scores.error_reduction)


@dataclass(frozen=True)
class OrderInformation(Criterion):
    """Information about the order of each pair of items, summed over the pairs: see `scores.event_information`.

    Where there are more than 500 pairs, over a random sample of 500.
    """

    def reader(self, posterior, questions, rng):
        """Reads the rewards."""
        reward = _one_order(posterior, self)
        first, second = np.triu_indices(reward.shape[2], 1)
        if len(first) > _MOST_PAIRS:
            rows = rng.choice(len(first), _MOST_PAIRS, replace=False)
            first, second = first[rows], second[rows]
        events = reward[:, :, first] > reward[:, :, second]

        return lambda piece: _against(scores.event_information, posterior.chances(piece), events)


@dataclass(frozen=True)
class OfVariance(Criterion):
    """Criteria that are the expected fall of the variance of something."""

    @abc.abstractmethod
    def wanted(self, posterior: Posterior, questions: Any) -> np.ndarray:
        """What is wanted, under each draw, shape (draw, quantity, question), or (draw, quantity, 1) if it is the same for all
        questions."""


Quantity = Literal["rank", "reward", "competence", "top_k"]


@dataclass(frozen=True)
class VarianceReduction(OfVariance):
    r"""By how much an answer is expected to lower the posterior variance of what is wanted: see `scores.variance_reduction`.

    Parameters
    ----------
    of : {"rank", "reward", "competence", "top_k"}
        The rank of each item, its reward, the competence (or confusion matrix) of each annotator, or whether each item is
        among the `k` best.
    k : int
    """

    of: Quantity = "rank"
    k: int = 1

    def __post_init__(self) -> None:
        one_of("of", self.of, ("rank", "reward", "competence", "top_k"))
        whole("k", self.k)

    def reader(self, posterior, questions, rng):
        """Reads the quantity."""
        quantity = self.quantity(posterior)

        def score(piece):
            chances = posterior.chances(piece)
            return scores.variance_reduction(chances.table, quantity, chances.weight)

        return score

    def wanted(self, posterior, questions):
        """The quantity."""
        quantity = self.quantity(posterior)
        return np.asarray(quantity, np.float32).reshape(-1, quantity.shape[-1], 1)

    def quantity(self, posterior: Posterior) -> jax.Array:
        """What is wanted, under each draw, shape (chain, draw, quantity)."""
        if self.of == "competence":
            of = posterior.site(competence_site(posterior), "so nothing is to be learned of annotators")
            return of.reshape(*of.shape[:2], -1)
        reward = _rewards(posterior)
        if self.of == "reward":
            return (reward - reward.mean(2, keepdims=True)).reshape(*reward.shape[:2], -1)
        if self.of == "top_k" and self.k >= reward.shape[2]:
            raise SettingError(f"k={self.k} is not possible with {reward.shape[2]} items; it must be less than that")
        rank = reward.argsort(2).argsort(2).reshape(*reward.shape[:2], -1)
        return (rank if self.of == "rank" else rank >= reward.shape[2] - self.k).astype(jnp.float32)


@dataclass(frozen=True)
class OrderVariance(OfVariance):
    """By how much an answer is expected to lower the variance of the order of its two items, under each type where there are
    several: see `scores.order_variance_reduction`."""

    def wanted(self, posterior, questions):
        """Whether the first item is the better."""
        reward = np.asarray(_rewards(posterior), np.float32)
        by_type = reward.reshape(-1, *reward.shape[2:3], int(np.prod(reward.shape[3:]))).transpose(0, 2, 1)
        return (by_type[:, :, np.asarray(questions.first)] > by_type[:, :, np.asarray(questions.second)]).astype(np.float32)

    def reader(self, posterior, questions, rng):
        """Reads the rewards."""
        reward = _rewards(posterior)
        by_type = reward.reshape(*reward.shape[:3], -1)

        def score(piece):
            chances = posterior.chances(piece)
            difference = by_type[:, :, piece.first] - by_type[:, :, piece.second]
            of_type = [
                scores.order_variance_reduction(chances.table, difference[..., column], chances.weight)
                for column in range(difference.shape[-1])
            ]
            return sum(of_type)

        return score


@dataclass(frozen=True)
class TruthVariance(Criterion):
    """By how much a label is expected to lower the posterior variance of the true class of its item (its Gini index)."""

    def reader(self, posterior, questions, rng):
        """Reads each item's class."""
        if not isinstance(posterior.data, Labels):
            raise SettingError(f"{type(posterior.model).__name__} has no true classes; write target='ranking'")

        def score(piece):
            chances = posterior.chances(piece, by_class=True)
            return scores.class_variance_reduction(chances.table, chances.weight, chances.table.shape[2])

        return score


@dataclass(frozen=True)
class ExpectedImprovement(Criterion):
    """To find the best item: see `scores.expected_improvement`. It does not look at who is asked."""

    def reader(self, posterior, questions, rng):
        """Reads the rewards."""
        reward, weight = _one_order(posterior, self), jnp.asarray(posterior.weight)
        best = reward[:, :, jnp.tensordot(weight, reward, 2).argmax()]
        return lambda piece: scores.expected_improvement(reward[:, :, piece.first], reward[:, :, piece.second], best, weight)


@dataclass(frozen=True)
class Thompson(Criterion):
    """To find the best item: the two that independent draws name best (double Thompson sampling; Wu and Liu 2016).

    The score is the logarithm of that probability plus Gumbel noise, so that the highest scores are a sample without
    replacement.
    """

    def reader(self, posterior, questions, rng):
        """Reads the rewards."""
        reward = _one_order(posterior, self)
        named = np.bincount(np.asarray(reward.argmax(2)).ravel(), _flat_weight(posterior), reward.shape[2])

        def score(piece):
            first, second = named[np.asarray(piece.first)], named[np.asarray(piece.second)]
            return np.log(np.maximum(2 * first * second, 1e-12)) + rng.gumbel(size=len(first))

        return score


@dataclass(frozen=True)
class Random(Criterion):
    """Any question is as good as another: what the others are measured against."""

    def reader(self, posterior, questions, rng):
        """Reads nothing."""
        return lambda piece: rng.random(len(piece.annotator))


def _rewards(posterior: Posterior) -> jax.Array:
    """Rewards of the items, shape (chain, draw, item, ...)."""
    return posterior.site("reward", "so items have no order of their own")


def _against(
    function: Callable[..., jax.Array],
    chances: Chances,
    others: jax.Array,
    together: Callable[[slice], jax.Array] | None = None,
) -> jax.Array:
    """A score against many `others`, in slices of the questions: the joint table is as large as questions × others. What is
    known of it beyond draws is `together`, of a slice."""
    parts = []
    for at in range(0, chances.table.shape[-1], _SLICE):
        here = slice(at, at + _SLICE)
        more = () if together is None else (together(here),)
        parts.append(function(chances.table[..., here], others, chances.weight, *more))
    return jnp.concatenate(parts)


def _one_order(posterior: Posterior, criterion: Criterion) -> jax.Array:
    """Rewards of the items, shape (chain, draw, item); `SettingError` where there are those of several types."""
    reward = _rewards(posterior)
    if reward.ndim > 3:
        raise SettingError(
            f"{criterion!r} needs one order of the items, and {type(posterior.model).__name__} has one for each type; "
            "write target='ranking'"
        )
    return reward


def competence_site(posterior: Posterior) -> str:
    """The first site of the program that each annotator has an own value of."""
    sites = latent_sites(posterior.model, posterior.data)
    return next((name for name, site in sites.items() if "annotator" in site.dims), "competence")


def _flat_weight(posterior: Posterior) -> np.ndarray:
    weight = np.asarray(posterior.weight, np.float64).ravel()
    return weight / weight.sum()


def _on_one_scale(posterior: Posterior) -> dict[str, np.ndarray]:
    """The draws moved along each `Scale` orbit of the model to where its first site has one size."""
    values = dict(posterior.draws)
    for symmetry in posterior.model.symmetries:
        if isinstance(symmetry, Scale):
            site = np.asarray(values[symmetry.up[0]], np.float64)
            log_size = np.log(np.square(site).mean(tuple(range(2, site.ndim)))) / 2
            factor = np.exp(log_size.mean() - log_size)
            for names, power in ((symmetry.up, 1), (symmetry.down, -1)):
                for name in names:
                    expanded = factor.reshape(*factor.shape, *(1,) * (values[name].ndim - 2))
                    values[name] = (values[name] * expanded**power).astype(np.float32)
    return values
