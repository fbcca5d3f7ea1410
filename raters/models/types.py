"""Sites, starts and warnings that the models of types of annotators share."""

from __future__ import annotations

import abc
import warnings
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from scipy.special import entr

from raters.errors import Reason
from raters.judgements.base import Judgements
from raters.model import Permute, Values
from raters.models.settings import CheckedModel

# Number of clusterings, of which the tightest is used.
_TRIES = 10
# Types count as separated when the judgements resolve this share of the entropy of an annotator's
# type.
_LEAST_RESOLVED = 0.3


class TypeModel[Data: Judgements](CheckedModel[Data]):
    """Model of types of annotators, whose starts are clusters of annotators alike."""

    num_types: int
    #: What a judgement is called in sentences.
    word: ClassVar[str] = "vote"

    @abc.abstractmethod
    def profiles(self, data: Data) -> Float[np.ndarray, "annotator feature"]:
        """Features by which annotators are clustered."""

    @abc.abstractmethod
    def start_of_types(self, parts: list[Data]) -> Values:
        """Start of the sites of the types from the judgements of the annotators of each."""

    def start(self, data: Data) -> Values:
        """Start from clusters of annotators with similar judgements."""
        return self._from_clusters(data, np.random.default_rng(0), _TRIES)

    def another_start(self, data: Data, rng: np.random.Generator) -> Values:
        """Start from a single clustering with random seeds."""
        return self._from_clusters(data, rng, tries=1)

    def _from_clusters(self, data: Data, rng: np.random.Generator, tries: int) -> Values:
        cluster = clusters(self.profiles(data), self.num_types, rng, tries)
        of_type = cluster[np.asarray(data.codes("annotator"))]
        parts = [data.take(of_type == code) for code in range(self.num_types)]
        share = {"type_weight": jnp.asarray(shares(cluster, self.num_types))}
        return share | self.start_of_types(parts)

    def fit_warnings(
        self, draws: Values, responsibility: np.ndarray | None, data: Data
    ) -> tuple[str, ...]:
        """Warn of types that are empty or not separated."""
        return separation_warnings(responsibility, self.word)


def permute(model: Any, site: str) -> tuple[Permute, ...]:
    """Return the symmetry under permutations, where there are several types."""
    return (Permute((site, "type_weight"), share="type_weight"),) if model.num_types > 1 else ()


def sample_weight(num_types: int, concentration: float) -> Float[Array, " type"]:
    """Sample the share of each type."""
    prior = dist.Dirichlet(jnp.full(num_types, concentration))
    weight: Array = numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})
    return weight


# ---------------------------------------------------------------------- start


def clusters(
    profile: Float[np.ndarray, "annotator feature"],
    num_types: int,
    rng: np.random.Generator,
    tries: int,
) -> Int[np.ndarray, " annotator"]:
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


def shares(cluster: Int[np.ndarray, " annotator"], num_types: int) -> Float[np.ndarray, " type"]:
    """Return the share of each type, smoothed so that none is 0."""
    size = np.bincount(cluster, minlength=num_types) + 1.0
    return np.asarray(size / size.sum())


# ---------------------------------------------------------------------- refusals and warnings


def why_not(model: Any, data: Any, word: str = "vote") -> str | None:
    """Explain why there are too few annotators for the types, or return None."""
    voted = int(np.count_nonzero(data.judgements_by("annotator")))
    if model.num_types <= voted:
        return None
    problem = f"is not possible with {voted} annotator(s) with {word}s"
    expected = f"a type needs one at least; say by `annotator` whose {word} it is"
    return Reason("num_types", model.num_types, problem, expected)


def data_warnings(
    model: Any, number: Int[np.ndarray, " annotator"], word: str = "vote"
) -> tuple[str, ...]:
    """Warn of annotators with one judgement, which says little of their type."""
    number = number[number > 0]
    single = int(np.sum(number == 1))
    if model.num_types == 1 or single == 0:
        return ()
    if single == len(number):
        return (
            f"every annotator has a single {word}, which says next to nothing of who is of"
            " which type, and of the types only what one set of rewards cannot fit, such as a"
            " cycle. Ask each annotator several questions, or fit a single type",
        )
    return (
        f"{single} of {len(number)} annotators have a single {word}, which says next to nothing"
        " of their type; their responsibilities stay near the shares of the types",
    )


def separation_warnings(
    responsibility: Float[np.ndarray, "annotator type"] | None, word: str
) -> tuple[str, ...]:
    """Warn of types without annotators, and of types that the judgements do not separate."""
    if responsibility is None or (num_types := responsibility.shape[1]) == 1:
        return ()
    sentences = []
    size = responsibility.sum(0)
    if empty := [f"type {code} ({size[code]:.2g})" for code in np.flatnonzero(size < 1)]:
        sentences.append(
            f"{len(empty)} of {num_types} types hold less than one annotator: {', '.join(empty)};"
            f" what their parameters say is the prior. The {word}s speak for"
            f" {num_types - len(empty)} type(s)"
        )
    prior, posterior = entr(responsibility.mean(0)).sum(), entr(responsibility).sum(1).mean()
    if len(empty) < num_types - 1 and prior - posterior < _LEAST_RESOLVED * prior:
        resolved = max(prior - posterior, 0.0) / prior
        sentences.append(
            f"types are not separated: the {word}s tell {resolved:.0%} of what there is to know"
            f" about who is of which type. More {word}s by each annotator, or fewer types, would"
            " tell them apart"
        )
    return tuple(sentences)
