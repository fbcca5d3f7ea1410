"""Observed site and starts of the models of comparisons with types of annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float

from raters.distributions import GroupedMixture
from raters.distributions.rows import votes_of
from raters.judgements.comparisons import Comparisons
from raters.models import types
from raters.models.comparisons import tied

# Largest number of items that annotators are clustered by.
_MOST_ITEMS = 200


def observe(
    weight: Float[Array, " type"],
    logits: Float[Array, "comparison type"],
    data: Comparisons,
    names: tuple[str, ...] = (),
) -> None:
    """Sample the observed site: votes, with the type of each annotator summed out."""
    votes = votes_of(logits, None if data.count is None else data.count[:, None])
    with numpyro.plate("annotator", data.num_annotators):
        mixture = GroupedMixture(
            dist.Categorical(probs=weight), votes, data.annotator, data.num_annotators
        )
        facts = {"unit": "annotator", "latent_class": "type", "class_names": names}
        numpyro.sample("outcome", mixture, obs=data.wins, infer=facts)


def profiles(data: Comparisons, features: Any) -> Float[np.ndarray, "annotator feature"]:
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


def why_not(model: Any, data: Comparisons) -> str | None:
    """Explain why the types, or ties of their own, cannot be modelled, or return None."""
    return tied.why_not(data) or types.why_not(model, data)
