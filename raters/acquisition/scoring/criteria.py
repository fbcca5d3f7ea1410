"""Criteria: scores of questions from a `Posterior`, by the functions of `scores`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from raters.acquisition.scoring import scores
from raters.acquisition.scoring.posterior import AnswerProbs, Posterior, sample_of
from raters.errors import SettingError
from raters.errors.validation import whole
from raters.judgements.counts import pad_to
from raters.model import Scale

# Questions scored at a time against many others.
_SLICE = 1024

# Scores of a piece of the questions, shape (question,).
Scorer = Callable[[Any], Any]


@dataclass(frozen=True)
class Criterion(abc.ABC):
    """Score of questions: the higher, the more an answer is worth.

    A subclass is a frozen dataclass that writes `reader`.
    """

    def __call__(
        self, posterior: Posterior, questions: Any, *, seed: int = 0
    ) -> Float[np.ndarray, " question"]:
        """Score questions, in pieces so that memory stays bounded."""
        score = self.reader(posterior, questions, np.random.default_rng(seed))
        parts = [
            np.asarray(score(piece), np.float64)[:size]
            for piece, size in posterior.pieces(questions)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    @abc.abstractmethod
    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Return the function that scores a piece of the questions, one number for each row.

        Parameters
        ----------
        posterior : Posterior
        questions : Judgements
            All questions.
        rng : numpy.random.Generator

        Returns
        -------
        callable
            ``score(piece)`` gives the scores of a piece, shape (question,).

        Raises
        ------
        SettingError
            When the criterion has no meaning for the model or the questions.
        """


@dataclass(frozen=True)
class _OfAnswers(Criterion):
    """A function of the answer probabilities alone."""

    function: ClassVar[Callable[..., Float[Array, " question"]]]
    by_class: ClassVar[bool] = False

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Return `function` of the answer probabilities."""
        return lambda piece: type(self).function(
            *posterior.answer_probs(piece, by_class=self.by_class)
        )


@dataclass(frozen=True)
class Bald(_OfAnswers):
    """Information about all parameters, and about the class that the likelihood sums out: see
    `scores.bald`."""

    function = staticmethod(scores.bald)
    by_class = True


@dataclass(frozen=True)
class Entropy(_OfAnswers):
    """Uncertainty of the answer: see `scores.entropy`. Among several annotators it prefers the
    worst."""

    function = staticmethod(scores.entropy)


@dataclass(frozen=True)
class LeastConfidence(_OfAnswers):
    """Improbability of the most probable answer: see `scores.least_confidence`."""

    function = staticmethod(scores.least_confidence)


@dataclass(frozen=True)
class Margin(_OfAnswers):
    """Closeness of the two most probable answers: see `scores.margin`."""

    function = staticmethod(scores.margin)


@dataclass(frozen=True)
class VoteEntropy(_OfAnswers):
    """Query by committee, with votes: see `scores.vote_entropy`."""

    function = staticmethod(scores.vote_entropy)


@dataclass(frozen=True)
class CommitteeDivergence(_OfAnswers):
    """Query by committee, with divergences: see `scores.committee_divergence`."""

    function = staticmethod(scores.committee_divergence)


@dataclass(frozen=True)
class About(Criterion):
    """Information about some parameters, with the others integrated out: see `scores.bald_about`.

    ``About("reward")`` scores by the information about the rewards, whatever an answer tells about
    the competences. Draws of the other parameters are independent of those of the chosen ones,
    after all draws have been brought to one scale. That is exact when the two are independent given
    the data, and an approximation otherwise.

    Parameters
    ----------
    *names : str
        Names of the chosen parameters.
    draws : int
        Number of draws of each of the two; all pairs of them are computed.
    sites : tuple of str
        The names as a tuple, in place of `names`.
    """

    sites: tuple[str, ...]
    draws: int = 30

    def __init__(self, *names: str, draws: int = 30, sites: tuple[str, ...] = ()) -> None:
        whole("draws", draws, least=2)
        object.__setattr__(self, "sites", names or tuple(sites))
        object.__setattr__(self, "draws", draws)

    def __repr__(self) -> str:
        return f"About({', '.join(map(repr, self.sites))}, draws={self.draws})"

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Cross draws of the chosen parameters with draws of the others: see `Criterion.reader`."""
        if not self.sites or set(self.sites) - set(posterior.draws):
            raise SettingError(
                parameter="sites",
                value=self.sites,
                expected=f"{type(posterior.model).__name__} has {sorted(posterior.draws)}",
            )
        values = _on_one_scale(posterior)
        weight = flat_weight(posterior)
        chosen, other = (rng.choice(len(weight), self.draws, p=weight) for _ in range(2))
        crossed = {}
        for name, value in values.items():
            flat = value.reshape(-1, *value.shape[2:])
            part = flat[chosen][:, None] if name in self.sites else flat[other][None]
            crossed[name] = np.broadcast_to(part, (self.draws, self.draws, *flat.shape[1:]))
        equal = np.full((self.draws, self.draws), 1 / self.draws**2, np.float32)
        both = Posterior(posterior.model, posterior.data, crossed, equal)
        return lambda piece: scores.bald_about(both.answer_probs(piece).table)


@dataclass(frozen=True)
class _Predictive(Criterion):
    """Scores of an answer against the answers to other questions."""

    targets: int = 500
    function: ClassVar[Callable[..., Float[Array, " question"]]]

    def __post_init__(self) -> None:
        whole("targets", self.targets)

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Sample the targets."""
        targets = sample_of(questions, self.targets, rng)
        table = posterior.answer_probs(targets).table
        latent = posterior.program.latent
        if latent is None:
            return lambda piece: against(type(self).function, posterior.answer_probs(piece), table)
        by_class = posterior.answer_probs(targets, by_class=True).table
        target_unit = np.asarray(targets.codes(latent.unit))

        def score(piece: Any) -> Float[Array, " question"]:
            summed, classes = (posterior.answer_probs(piece, by_class=own) for own in (False, True))
            unit = np.asarray(piece.codes(latent.unit))

            def together(rows: slice) -> Float[Array, "answer question target_answer target"]:
                """Joint probabilities; those of questions and targets of one unit by its class."""
                joint: jax.Array = scores.joint(summed.table[..., rows], table, summed.weight)
                same = np.flatnonzero(np.isin(target_unit, unit[rows]))
                if not len(same):
                    return joint
                # Padded with the last one, for few shapes to compile.
                same = same[np.minimum(np.arange(pad_to(len(same), 1)), len(same) - 1)]
                through_class = scores.joint(
                    classes.table[..., rows], by_class[..., same], classes.weight[..., rows]
                )
                shared = (unit[rows, None] == target_unit[same])[:, None, :]
                by_target = jnp.where(shared, through_class, joint[..., same])
                return jnp.asarray(joint.at[..., same].set(by_target))

            return against(type(self).function, summed, table, together)

        return score


@dataclass(frozen=True)
class Epig(_Predictive):
    """Information about the answers to other questions: see `scores.epig`.

    Answers that share a class which the likelihood sums out (labels of one item, votes of one
    annotator of some type) inform about each other through that class, too.

    Parameters
    ----------
    targets : int
        Number of candidates, drawn at random, that are the other questions. A question that is
        among them counts as if it were asked a second time.
    """

    function = staticmethod(scores.epig)


@dataclass(frozen=True)
class ErrorReduction(_Predictive):
    """Expected log-loss on other questions, drawn as in `Epig`: see `scores.error_reduction`."""

    function = staticmethod(scores.error_reduction)


@dataclass(frozen=True)
class Random(Criterion):
    """Equal chances for all questions: the baseline of the other criteria."""

    def reader(self, posterior: Posterior, questions: Any, rng: np.random.Generator) -> Scorer:
        """Draw scores, and read nothing: see `Criterion.reader`."""
        return lambda piece: rng.random(piece.num_rows)


def rewards(posterior: Posterior) -> Float[Array, "chain draw item ..."]:
    """Rewards of the items, or their worths."""
    return posterior.site(order_site(posterior), "so items have no order of their own")


def order_site(posterior: Posterior) -> str:
    """Name of the site that the order of the items follows from."""
    return "worth" if "worth" in posterior.draws else "reward"


def against(
    function: Callable[..., Float[Array, " question"]],
    probs: AnswerProbs,
    others: Shaped[Array, "chain draw ..."],
    together: Callable[[slice], Float[Array, "answer question target_answer target"]] | None = None,
) -> Float[Array, " question"]:
    """Score questions against many others, in slices: the joint table is as large as questions ×
    others."""
    parts = []
    for start in range(0, probs.table.shape[-1], _SLICE):
        rows = slice(start, start + _SLICE)
        more = () if together is None else (together(rows),)
        parts.append(function(probs.table[..., rows], others, probs.weight, *more))
    return jnp.concatenate(parts)


def competence_site(posterior: Posterior) -> str:
    """Name of the first site of the program with a value for each judge."""
    judge, sites = posterior.data.judge, posterior.program.sites
    return next((name for name, site in sites.items() if judge in site.dims), "competence")


def flat_weight(posterior: Posterior) -> Float[np.ndarray, " draw"]:
    """Weight of each draw."""
    weight: np.ndarray = np.asarray(posterior.weight, np.float64).ravel()
    return np.asarray(weight / weight.sum())


def _on_one_scale(posterior: Posterior) -> dict[str, Float[np.ndarray, "chain draw ..."]]:
    """Draws moved along each `Scale` orbit of the model to where its first site has one size."""
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
