"""Sites, starts and warnings that the models of types of annotators share."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from scipy.special import entr

from raters.distributions import StickBreaking
from raters.errors import Reason
from raters.errors.validation import one_of, plain_positive, plain_whole
from raters.model import Permute

TypePrior = Literal["dirichlet", "stick_breaking"]
# Number of clusterings, of which the tightest is used.
_TRIES = 10
# Types count as separated when the judgements resolve this share of the entropy of an annotator's
# type.
_LEAST_RESOLVED = 0.3


def check_settings(model: Any) -> None:
    """Check the settings that all models of types have."""
    plain_whole(model, "num_types")
    one_of("type_prior", model.type_prior, ("dirichlet", "stick_breaking"))
    plain_positive(model, "concentration")


def permute(model: Any, site: str) -> tuple[Permute, ...]:
    """Return the symmetry under permutations, where there are several types."""
    return (Permute((site, "type_weight"), share="type_weight"),) if model.num_types > 1 else ()


def sample_weight(model: Any) -> Float[Array, " type"]:
    """Sample the share of each type."""
    if model.type_prior == "stick_breaking":
        breaks = jnp.ones(model.num_types - 1)
        prior: Any = StickBreaking(breaks, model.concentration * breaks)
    else:
        prior = dist.Dirichlet(jnp.full(model.num_types, model.concentration))
    weight: Array = numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})
    return weight


# ---------------------------------------------------------------------- start


def clusters(
    profile: Float[np.ndarray, "annotator feature"],
    num_types: int,
    rng: np.random.Generator,
    tries: int = _TRIES,
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
    """Explain why there are too few annotators with judgements, as which `word` names each, for the
    types, or return None."""
    voted = int(np.count_nonzero(data.judgements_by("annotator")))
    if model.num_types <= voted:
        return None
    fewer, named = max(1, min(voted - 1, 2)), data.num_annotators > 1
    return Reason(
        "num_types",
        model.num_types,
        f"is not possible with {voted} annotator(s) with {word}s",
        (
            f"a type needs at least one, so write {fewer}"
            + (
                ""
                if named
                else f", and name the column that says whose {word} it is by `annotator`"
            )
        ),
    )


def data_warnings(
    model: Any, number: Int[np.ndarray, " annotator"], word: str = "vote"
) -> tuple[str, ...]:
    """Warn of annotators with one vote, or choice of another name, which carries little information
    about their type."""
    number = number[number > 0]
    single = int(np.sum(number == 1))
    if model.num_types == 1 or single == 0:
        return ()
    if single == len(number):
        return (
            (
                f"every annotator has a single {word}, which says next to nothing of who is of"
                " which type, and of the types only what one set of rewards cannot fit, such as a"
                " cycle. Ask each annotator several questions, or fit a single type"
            ),
        )
    return (
        (
            f"{single} of {len(number)} annotators have a single {word}, which says next to nothing"
            " of their type; their responsibilities stay near the shares of the types"
        ),
    )


def fit_warnings(
    responsibility: Float[np.ndarray, "annotator type"] | None, word: str = "vote"
) -> tuple[str, ...]:
    """Warn of types without annotators, and of types that the judgements, as which `word` names
    each, do not separate."""
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
