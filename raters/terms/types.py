"""Types of annotators: guessers and adversaries, and types with rewards of their own."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float, Int
from scipy.special import entr

from raters.errors import Reason
from raters.judgements.base import Judgements
from raters.judgements.comparisons import Comparisons
from raters.model import Permute, Shift, Symmetry, Values
from raters.terms.base import Data, Term, sampled, spread_of, worded
from raters.terms.covariates import regression, unlike_features
from raters.terms.rewards import Scaled, win_rates

Codes = Int[np.ndarray, " annotator"]
TypeProbs = Float[np.ndarray, "unit type"]
Profiles = Float[np.ndarray, "annotator feature"]
# Sign of the competence of each type.
DIRECTIONS = {"competent": 1.0, "guesser": 0.0, "adversary": -1.0}
# Prior of the shares of these types.
_SHARES = (6.0, 1.0, 1.0)
# Largest number of items that annotators are clustered by.
_MOST_ITEMS = 200
# Number of clusterings, of which the tightest is used.
_TRIES = 10
# Types count as separated when the judgements resolve this share of the entropy of an annotator's
# type.
_LEAST_RESOLVED = 0.3


@dataclass(frozen=True)
class Guessers(Term):
    r"""Factor of the rewards that is 1 of competent annotators, 0 of guessers and −1 of
    adversaries, types that are summed out: :math:`\eta \sim \mathrm{Dirichlet}(6, 1, 1)`.

    ``Guessers() * Competence("positive") * Rewards()`` is `GuesserBTL`.
    """

    linear = ()

    reference = "raykar2012eliminating"
    exchanged: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = (("type_weight", (2, 1, 0)),)
    number: ClassVar[int] = len(DIRECTIONS)
    names: ClassVar[tuple[str, ...]] = tuple(DIRECTIONS)

    def sample_weight(self) -> Float[Array, " type"]:
        """Sample the share of each type."""
        return sample_weight(jnp.array(_SHARES))

    def sample(self, data: Comparisons) -> Int[Array, " type"]:
        # Whole numbers, which do not widen rewards in single precision.
        return jnp.array(list(DIRECTIONS.values()), int)

    def start(self, data: Comparisons) -> Values:
        return {"type_weight": jnp.asarray(np.array(_SHARES) / sum(_SHARES))}


@dataclass(frozen=True)
class Mixed(Scaled):
    """Rewards of each type of annotator, of which the type is summed out."""

    number: int
    scale: float | None = None
    concentration: float = 1.0

    names: ClassVar[tuple[str, ...]] = ()
    # Axis that the rewards have beside that of the types, and a judgement in words.
    axis: ClassVar[str] = "item"
    word: ClassVar[str] = "vote"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        sites = (*(self.linear or ()), "type_weight")
        return (Permute(sites, share="type_weight"),) if self.number > 1 else ()

    def sample_weight(self) -> Float[Array, " type"]:
        """Sample the share of each type."""
        return sample_weight(jnp.full(self.number, self.concentration))

    def prepare(self, data: Data) -> Any:
        scale = super().prepare(data)
        [site] = self.linear or ()
        plates = {self.axis: len(data.coords[self.axis]), "type": self.number}
        return sampled(site, dist.Normal(0.0, scale), **plates)

    @abc.abstractmethod
    def profiles(self, data: Data) -> Profiles:
        """Features by which annotators are clustered."""

    @abc.abstractmethod
    def start_of_parts(self, parts: Sequence[Data]) -> Values:
        """Start of the rewards from the votes of the annotators of each type."""

    def start(self, data: Data, rng: np.random.Generator | None = None) -> Values:
        share, parts = clustered(data, self.profiles(data), self.number, rng)
        return {"type_weight": jnp.asarray(share)} | self.start_of_parts(parts)

    def why_not(self, data: Data) -> str | None:
        judged = int(np.count_nonzero(data.judgements_by("annotator")))
        if (reason := super().why_not(data)) or self.number <= judged:
            return reason
        problem = f"is not possible with {judged} annotator(s) with {self.word}s"
        expected = f"a type needs one at least; say by `annotator` whose {self.word} it is"
        return Reason("num_types", self.number, problem, expected)

    def warnings(self, data: Data) -> tuple[str, ...]:
        return data_warnings(self.number, data.judgements_by("annotator"))


@dataclass(frozen=True)
class Types(Mixed):
    r"""Rewards of each of some types of annotators, :math:`r_{iz} - r_{jz}`, of which the type z is
    summed out: :math:`r_{iz} \sim \mathrm{Normal}(0, s)`,
    :math:`\eta \sim \mathrm{Dirichlet}(c, \dots, c)`.

    Parameters
    ----------
    number : int
        Number of types.
    scale : float, optional
        Standard deviation s; learned unless given.
    concentration : float
        Concentration c.
    """

    linear = ("reward",)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        return (Shift("reward", axis=0), *super().symmetries)

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, "row type"]:
        return ready[data.first[:, 0]] - ready[data.second[:, 0]]

    def profiles(self, data: Comparisons) -> Profiles:
        return mean_products(data, item_design(data))

    def start_of_parts(self, parts: Sequence[Comparisons]) -> Values:
        return self.started(np.stack([win_rates(part) for part in parts], -1))


@dataclass(frozen=True)
class LinearTypes(Mixed):
    r"""As `Types`, with rewards linear in features of the two sides:
    :math:`\theta_z^\top (\phi_i - \phi_j)`."""

    needs = ("features",)
    linear = ("coefficient",)
    axis = "feature"

    def finish(self, data: Comparisons, ready: Any) -> Float[Array, "row type"]:
        return jnp.asarray(data.features)[:, 0] @ ready

    def profiles(self, data: Comparisons) -> Profiles:
        return mean_products(data, np.asarray(data.features, float))

    def start_of_parts(self, parts: Sequence[Comparisons]) -> Values:
        coefficient = np.stack([regression(part, self.scale) for part in parts], -1)
        scale = {"coefficient_scale": jnp.asarray(spread_of(coefficient))} if self.scales else {}
        return scale | {"coefficient": jnp.asarray(coefficient)}

    def warnings(self, data: Comparisons) -> tuple[str, ...]:
        return (*super().warnings(data), *unlike_features(data))


def sample_weight(concentration: Float[Array, " type"]) -> Float[Array, " type"]:
    """Sample the share of each type."""
    return sampled("type_weight", dist.Dirichlet(concentration), "type")


# ---------------------------------------------------------------------- start


def clusters(profile: Profiles, num_types: int, rng: np.random.Generator, tries: int) -> Codes:
    """Assign a type to each annotator, by k-means of their profiles."""
    from scipy.cluster.vq import kmeans2

    distinct, code = np.unique(profile, axis=0, return_inverse=True)
    if len(distinct) <= num_types:
        return code.ravel()
    best, smallest = np.zeros(len(profile), int), np.inf
    for _ in range(tries):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a cluster without members
            centre, cluster = kmeans2(profile, num_types, minit="++", rng=rng)
        spread = float(((profile - centre[cluster]) ** 2).sum())
        if spread < smallest:
            best, smallest = cluster, spread
    return best


def clustered[Data: Judgements](
    data: Data, profile: Profiles, number: int, rng: np.random.Generator | None
) -> tuple[Float[np.ndarray, " type"], list[Data]]:
    """Return shares of types, and the judgements of the annotators of each, by a clustering."""
    tries = _TRIES if rng is None else 1
    cluster = clusters(profile, number, rng or np.random.default_rng(0), tries)
    of_type = cluster[np.asarray(data.codes("annotator"))]
    return shares(cluster, number), [data.take(of_type == code) for code in range(number)]


def mean_products(data: Comparisons, features: Any) -> Profiles:
    """Return the mean product of votes and features for each annotator."""
    if data.wins is None:
        return np.zeros((data.num_annotators, features.shape[1]))
    count = np.asarray(data.weight, float)
    rows = np.asarray(data.annotator), np.arange(data.num_comparisons)
    member = scipy.sparse.coo_array(
        (np.asarray(data.wins) - count / 2, rows), (data.num_annotators, data.num_comparisons)
    )
    num_votes = np.bincount(rows[0], count, data.num_annotators)
    total = member.tocsr() @ features
    dense = total.toarray() if scipy.sparse.issparse(total) else np.asarray(total)
    return np.asarray(dense / (num_votes + 1)[:, None])


def item_design(data: Comparisons) -> scipy.sparse.csr_array:
    """Return the design of the items with the most votes, shape (comparison, item)."""
    rows = data.num_comparisons
    sign = np.concatenate([np.ones(rows), -np.ones(rows)])
    item = np.concatenate([np.asarray(data.first), np.asarray(data.second)])
    design = scipy.sparse.csr_array(
        (sign, (np.tile(np.arange(rows), 2), item)), (rows, data.num_items)
    )
    return design[:, np.argsort(-data.judgements_by("item"), kind="stable")[:_MOST_ITEMS]]


def shares(cluster: Codes, num_types: int) -> Float[np.ndarray, " type"]:
    """Return the share of each type, smoothed so that none is 0."""
    size = np.bincount(cluster, minlength=num_types) + 1.0
    return np.asarray(size / size.sum())


# ---------------------------------------------------------------------- warnings


def data_warnings(num_types: int, number: Codes, word: str = "vote") -> tuple[str, ...]:
    """Warn of annotators with one judgement, which says little of their type."""
    number = number[number > 0]
    single = int(np.sum(number == 1))
    if num_types == 1 or single == 0:
        return ()
    return (worded("single_answers", single=single, annotators=len(number), word=word),)


def empty_types(responsibility: TypeProbs | None, unit: str) -> tuple[str, ...]:
    """Warn of types without members."""
    size = np.ones(1) if responsibility is None else responsibility.sum(0)
    if not (empty := [f"type {code} ({size[code]:.2g})" for code in np.flatnonzero(size < 1)]):
        return ()
    return (worded("empty_types", empty=empty, types=len(size), unit=unit),)


def separation_warnings(responsibility: TypeProbs | None, word: str) -> tuple[str, ...]:
    """Warn of types without annotators, and of types that the judgements do not separate."""
    if responsibility is None or (num_types := responsibility.shape[1]) == 1:
        return ()
    empty = int((responsibility.sum(0) < 1).sum())
    rest = f". The {word}s speak for {num_types - empty} type(s)"
    sentences = [text + rest for text in empty_types(responsibility, "annotator")]
    prior, posterior = entr(responsibility.mean(0)).sum(), entr(responsibility).sum(1).mean()
    if empty < num_types - 1 and prior - posterior < _LEAST_RESOLVED * prior:
        resolved = max(prior - posterior, 0.0) / prior
        sentences.append(worded("alike_types", word=word, resolved=resolved))
    return tuple(sentences)
