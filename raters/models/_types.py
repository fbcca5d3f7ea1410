"""What the models of preference types share: the observed site, the shares of the types, starts from clusters, doubts."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from scipy.cluster.vq import kmeans2
from scipy.special import entr

from raters._check import one_of, plain_positive, whole
from raters.data import Comparisons
from raters.distributions import GroupedMixture, StickBreaking, Votes
from raters.model import Permute

TypePrior = Literal["dirichlet", "stick_breaking"]
# Clusterings, of which the tightest is kept.
_TRIES = 10
# Clusters are told from so many items.
_MOST_ITEMS = 200
# Types are called separated when the votes tell this share of the entropy of an annotator's type.
_LEAST_TOLD = 0.3
# Cited by more than one model.
UNOBSERVED = r"""
@misc{chidambaram2024direct,
  author        = {Chidambaram, Keertana and Seetharaman, Karthik Vinay and Syrgkanis, Vasilis},
  title         = {Direct Preference Optimization With Unobserved Preference Heterogeneity},
  year          = {2024},
  eprint        = {2405.15065},
  archiveprefix = {arXiv},
}
"""


def check_settings(model: Any) -> None:
    """The settings that all models of types have."""
    if isinstance(model.num_types, np.integer):
        object.__setattr__(model, "num_types", int(model.num_types))
    whole("num_types", model.num_types)
    one_of("type_prior", model.type_prior, ("dirichlet", "stick_breaking"))
    plain_positive(model, "concentration")


def permute(model: Any, site: str) -> tuple[Permute, ...]:
    """The numbering of several types has no meaning."""
    return (Permute((site, "type_weight"), share="type_weight"),) if model.num_types > 1 else ()


def sample_weight(model: Any):
    """The share of each type."""
    if model.type_prior == "stick_breaking":
        breaks = jnp.ones(model.num_types - 1)
        prior: Any = StickBreaking(breaks, model.concentration * breaks)
    else:
        prior = dist.Dirichlet(jnp.full(model.num_types, model.concentration))
    return numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})


def observe(weight: Any, logits: Any, data: Comparisons) -> None:
    """The observed site: votes with log-odds of shape (comparison, type), the type of each annotator summed out."""
    votes = dist.Bernoulli(logits=logits) if data.count is None else Votes(logits, data.count[:, None])
    with numpyro.plate("annotator", data.num_annotators):
        mixture = GroupedMixture(dist.Categorical(probs=weight), votes, data.annotator, data.num_annotators)
        numpyro.sample("outcome", mixture, obs=data.wins)


# ---------------------------------------------------------------------------------------------------------- the start


def profiles(data: Comparisons, features: Any) -> np.ndarray:
    """What each annotator's votes favour: votes less what chance gives, times the features, per vote; (annotator, feature)."""
    if data.wins is None:
        return np.zeros((data.num_annotators, features.shape[1]))
    count = np.ones(data.num_comparisons) if data.count is None else np.asarray(data.count, float)
    rows = np.asarray(data.annotator), np.arange(data.num_comparisons)
    member = scipy.sparse.coo_array((np.asarray(data.wins) - count / 2, rows), (data.num_annotators, data.num_comparisons))
    given = np.bincount(rows[0], count, data.num_annotators)
    favoured = member.tocsr() @ features
    return (favoured.toarray() if scipy.sparse.issparse(favoured) else favoured) / (given + 1)[:, None]


def item_design(data: Comparisons) -> scipy.sparse.csr_array:
    """1 for the first item and −1 for the second, shape (comparison, item), of the items with the most votes."""
    number = data.num_comparisons
    sign = np.concatenate([np.ones(number), -np.ones(number)])
    item = np.concatenate([np.asarray(data.first), np.asarray(data.second)])
    whole = scipy.sparse.csr_array((sign, (np.tile(np.arange(number), 2), item)), (number, data.num_items))
    return whole[:, np.argsort(-data.votes_by_item(), kind="stable")[:_MOST_ITEMS]]


def clusters(profile: np.ndarray, number: int, rng: np.random.Generator, tries: int = _TRIES) -> np.ndarray:
    """A type for each annotator by k-means of their profiles, shape (annotator,)."""
    distinct, code = np.unique(profile, axis=0, return_inverse=True)
    if len(distinct) <= number:
        return code.ravel()
    best, tightest = np.zeros(len(profile), int), np.inf
    for _ in range(tries):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a cluster without members
            centre, found = kmeans2(profile, number, minit="++", rng=rng)
        spread = float(((profile - centre[found]) ** 2).sum())
        if spread < tightest:
            best, tightest = found, spread
    return best


def shares(cluster: np.ndarray, number: int) -> np.ndarray:
    """The share of each type, none of them 0."""
    size = np.bincount(cluster, minlength=number) + 1.0
    return size / size.sum()


# ------------------------------------------------------------------------------------------------ refusals and doubts


def why_not(model: Any, data: Comparisons) -> str | None:
    """Types are learned from annotators, of whom there must be enough."""
    voted = int(np.count_nonzero(data.votes_by_annotator()))
    if model.num_types <= voted:
        return None
    return (
        f"{type(model).__name__} looks for {model.num_types} types among {voted} annotator(s) with votes; a type needs at "
        f"least one. Write num_types={max(1, min(voted - 1, 2))}"
        + ("" if data.num_annotators > 1 else ", and name the column that says who voted (annotator=...)")
    )


def cautions(model: Any, data: Comparisons) -> tuple[str, ...]:
    """Annotators with one vote say nothing of their type; with few, little."""
    given = data.votes_by_annotator()
    given = given[given > 0]
    single = int(np.sum(given == 1))
    if model.num_types == 1 or single == 0:
        return ()
    if single == len(given):
        return (
            "every annotator has a single vote, which says next to nothing of who is of which type, and of the types only what "
            "one set of rewards cannot fit, such as a cycle. Ask each annotator several questions, or fit num_types=1",
        )
    return (
        f"{single} of {len(given)} annotators have a single vote, which says next to nothing of their type; their "
        "responsibilities stay near the shares of the types",
    )


def doubts(result: Any) -> tuple[str, ...]:
    """Types without annotators, and types that the annotators' votes do not tell apart."""
    responsibility = result["types"]["responsibility"]
    names = responsibility["type"].values.tolist()
    if len(names) == 1:
        return ()
    found = []
    size = responsibility.sum("annotator").values
    if empty := [f"type {name} ({number:.2g})" for name, number in zip(names, size, strict=True) if number < 1]:
        found.append(
            f"{len(empty)} of {len(names)} types hold less than one annotator: {', '.join(empty)}; what their parameters say "
            f"is the prior. The votes speak for {len(names) - len(empty)} type(s)"
        )
    share = responsibility.mean("annotator")
    whole, left = (float(entr(part).sum("type").mean()) for part in (share, responsibility))
    if len(empty) < len(names) - 1 and whole - left < _LEAST_TOLD * whole:
        told = max(whole - left, 0.0) / whole
        found.append(
            f"types are not separated: the votes tell {told:.0%} of what there is to know about who is of "
            "which type. More votes by each annotator, or fewer types, would tell them apart"
        )
    return tuple(found)
