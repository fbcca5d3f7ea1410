"""What the models of categorical labels share: the observed site, its priors, and a start from the votes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import logsumexp

from raters._check import plain_positive
from raters.distributions import GroupedMixture
from raters.labels import Labels

# Cited by more than one model.
COMPARED = r"""
@article{paun2018comparing,
  author  = {Paun, Silviu and Carpenter, Bob and Chamberlain, Jon and Hovy, Dirk and Kruschwitz, Udo and Poesio, Massimo},
  title   = {Comparing {B}ayesian Models of Annotation},
  journal = {Transactions of the Association for Computational Linguistics},
  year    = {2018},
  volume  = {6},
  pages   = {571--585},
  doi     = {10.1162/tacl_a_00040},
}
"""


def observe(mixing: Any, component: Any, data: Labels) -> None:
    """The observed site: the labels, the true class of each item summed out."""
    # The plate of all items is "item"; these may be a part of them.
    with numpyro.plate("labelled_item", data.num_units):
        labels = GroupedMixture(mixing, component, data.group, data.num_units, data.count, data.truth)
        numpyro.sample("label", labels, obs=data.label)


def sample_prevalence(concentration: float, data: Labels):
    """How frequent each class is."""
    prior = dist.Dirichlet(jnp.full(data.num_classes, concentration))
    return numpyro.sample("prevalence", prior, infer={"event_dims": ["true_class"]})


def concentration(diagonal: float, off_diagonal: float | None, number: int) -> jnp.ndarray:
    """Dirichlet concentrations of a confusion matrix, shape (true class, label); 1/K off the diagonal by default."""
    off = 1 / number if off_diagonal is None else off_diagonal
    return off + (diagonal - off) * jnp.eye(number)


def sample_confusion(concentration: Any, data: Labels):
    """A confusion matrix for each annotator, after their earlier record if there is one."""
    shape = (data.num_annotators, data.num_classes, data.num_classes)
    prior = jnp.broadcast_to(concentration, shape)
    if data.record is not None:
        prior = prior + data.record
    with numpyro.plate("annotator", data.num_annotators, dim=-2), numpyro.plate("true_class", data.num_classes, dim=-1):
        return numpyro.sample("confusion", dist.Dirichlet(prior), infer={"event_dims": ["label"]})


# ---------------------------------------------------------------------------------------------------------- the start


def vote_shares(data: Labels) -> np.ndarray:
    """Share of each class among an item's labels, shape (item, class); the truth where known, all alike without labels."""
    number = data.num_classes
    if data.label is None:
        votes = np.zeros((data.num_units, number))
    else:
        cell = np.asarray(data.group).astype(np.int64) * number + np.asarray(data.label)
        weights = None if data.count is None else np.asarray(data.count)
        votes = np.bincount(cell, weights, data.num_units * number).reshape(data.num_units, number).astype(float)
    shares = np.where(votes.sum(1, keepdims=True) > 0, votes, 1.0)
    shares /= shares.sum(1, keepdims=True)
    if data.truth is not None:
        known = np.asarray(data.truth) >= 0
        shares[known] = np.eye(number)[np.asarray(data.truth)[known]]
    return shares


def start_prevalence(data: Labels) -> np.ndarray:
    """Frequency of the classes by vote."""
    total = vote_shares(data).sum(0) + 0.1
    return total / total.sum()


def vote_counts(data: Labels) -> np.ndarray:
    """How often each annotator gave each label to items of each class by the votes, shape (annotator, true class, label); the
    earlier record added."""
    number = data.num_classes
    counts = np.zeros((data.num_annotators, number, number))
    if data.label is not None:
        rows = vote_shares(data)[np.asarray(data.group)]
        weights = np.ones(data.num_rows) if data.count is None else np.asarray(data.count, float)
        cell = np.asarray(data.annotator).astype(np.int64) * number + np.asarray(data.label)
        for true_class in range(number):
            found = np.bincount(cell, weights * rows[:, true_class], data.num_annotators * number)
            counts[:, true_class] = found.reshape(data.num_annotators, number)
    return counts if data.record is None else counts + np.asarray(data.record)


def start_confusion(data: Labels, prior: Any) -> np.ndarray:
    """Confusion matrices against the votes, as Dawid and Skene begin; those without labels as the prior has it."""
    # Little enough to leave the votes' verdict as it is, and enough for every probability to be inside.
    counts = vote_counts(data) + 0.01 * (np.asarray(prior) + np.eye(data.num_classes))
    return counts / counts.sum(-1, keepdims=True)


def start_accuracy(data: Labels) -> np.ndarray:
    """Each annotator's share of labels that agree with the votes, softened, shape (annotator,)."""
    counts = vote_counts(data)
    return (np.einsum("akk->a", counts) + 0.7) / (counts.sum((1, 2)) + 1)


def start_coefficient(data: Labels, scale: float | None) -> np.ndarray:
    """The classifier trained on the votes: the mode under the coefficients' prior with vote shares as the truth.

    Begun without it, EM first settles on the truth that the labels alone suggest, and the classifier learns that.
    """
    features, shares = np.asarray(data.features, float), vote_shares(data)
    seen = np.zeros(data.num_units)
    seen[np.asarray(data.group)[np.asarray(data.weight) > 0]] = 1.0
    precision = 1 / np.asarray(coefficient_scales(scale, data)) ** 2

    def loss(flat):
        coefficient = flat.reshape(data.num_features, data.num_classes)
        log_odds = features @ coefficient
        log_total = logsumexp(log_odds, axis=1, keepdims=True)
        value = (seen[:, None] * shares * (log_total - log_odds)).sum() + (precision * coefficient**2).sum() / 2
        slope = features.T @ (seen[:, None] * (np.exp(log_odds - log_total) - shares)) + precision * coefficient
        return value, slope.ravel()

    zero = np.zeros(data.num_features * data.num_classes)
    best = minimize(loss, zero, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return best.reshape(data.num_features, data.num_classes)


# ------------------------------------------------------------------------------------------------------- more priors


def sample_coefficient(scale: float | None, data: Labels):
    """Coefficients of a classifier, for every feature and class; wide for the intercept."""
    with numpyro.plate("feature", data.num_features, dim=-2), numpyro.plate("true_class", data.num_classes, dim=-1):
        return numpyro.sample("coefficient", dist.Normal(0.0, coefficient_scales(scale, data)))


def coefficient_scales(scale: float | None, data: Labels):
    """Prior standard deviations of a classifier's coefficients, shape (feature, 1)."""
    scale = 1.5 / np.sqrt(max(data.num_features - 1, 1)) if scale is None else scale
    return jnp.full((data.num_features, 1), scale).at[0].set(2.5)


def beta_record(data: Labels):
    """Right and wrong labels in the earlier record of each annotator, each of shape (annotator,)."""
    if data.record is None:
        return jnp.zeros(data.num_annotators), jnp.zeros(data.num_annotators)
    right = jnp.einsum("akk->a", jnp.asarray(data.record))
    return right, jnp.asarray(data.record).sum((1, 2)) - right


# ------------------------------------------------------------------------------------------------ refusals and doubts


def why_not_features(data: Labels, name: str) -> str | None:
    """A classifier needs features."""
    if data.features is not None:
        return None
    return f"{name} learns a classifier, and these labels have no features; add them with labels.with_features(...)"


def check_concentrations(model: Any) -> None:
    """The settings of a prior on confusion matrices."""
    plain_positive(model, "diagonal")
    plain_positive(model, "off_diagonal", optional=True)
    if hasattr(model, "prevalence"):
        plain_positive(model, "prevalence")


def few_labels(data: Labels) -> tuple[str, ...]:
    """A sentence when annotators have given too few labels to learn confusion matrices of their own from."""
    given, number = data.votes_by_annotator(), data.num_classes
    typical = float(np.median(given[given > 0]))
    if data.record is not None or typical >= 2 * number:
        return ()
    return (
        f"half of the annotators gave at most {typical:.0f} labels, and a confusion matrix of {number} classes has "
        f"{number * (number - 1)} numbers to learn from them, so majority vote may do as well; HierarchicalDawidSkene() lets "
        "annotators borrow from the crowd, OneCoin() learns one number for each",
    )


def _share_of_labels(result: Any) -> xr.DataArray:
    """The share of all labels that each annotator gave."""
    constant = result["constant_data"]
    count = constant["count"].values if "count" in constant else None
    names = result["posterior"]["annotator"]
    given = np.bincount(constant["annotator_code"].values, count, names.size)
    return xr.DataArray(given / max(float(given.sum()), 1.0), dims="annotator", coords={"annotator": names})


CHANCE = (
    "the crowd as a whole is right less often than by chance (chains {chains}); classes seem to be switched: do not trust the "
    "labels. Add labels, or give known truths with labels.with_truth(...)"
)


def worse_than_chance(result: Any) -> tuple[str, ...]:
    """A sentence when, in some chain, labels are right less often than by chance."""
    accuracy = result["posterior"]["accuracy"].mean("draw")
    if "annotator" in accuracy.dims:
        accuracy = (accuracy * _share_of_labels(result)).sum("annotator")
    chance = 1 / result["classes"]["responsibility"].sizes["true_class"]
    low = [int(chain) for chain in accuracy["chain"].values if float(accuracy.sel(chain=chain)) < chance]
    return (CHANCE.format(chains=low),) if low else ()


def switched(result: Any) -> tuple[str, ...]:
    """A sentence when, in some chain, the crowd as a whole means one class by the name of another."""
    posterior = result["posterior"]
    crowd = posterior["confusion"].mean("draw")
    if "annotator" in crowd.dims:
        crowd = (crowd * _share_of_labels(result)).sum("annotator")
    prevalence = result["classes"]["responsibility"].mean("item").values
    constant = result["constant_data"]
    anchored = set(constant["truth_code"].values.tolist()) if "truth_code" in constant else set()
    for chain in crowd["chain"].values:
        matrix = crowd.sel(chain=chain).transpose("true_class", "label").values
        rows, columns = linear_sum_assignment(-matrix * prevalence[:, None])
        moved = np.flatnonzero(rows != columns)
        if not len(moved):
            continue
        names = posterior["true_class"].values
        listing = ", ".join(f"{names[row]} is called {names[columns[row]]}" for row in moved)
        if set(moved) <= anchored:  # Known truths say which class is which, whatever the crowd calls it.
            return (
                f"the known truths contradict the crowd (chain {chain}: {listing}), and were believed: check them. If they are "
                "right, most of these labels are wrong",
            )
        return (
            f"classes seem to be switched (chain {chain}: {listing}); do not trust labels and confusion matrices. Put more "
            "prior mass on the diagonal (diagonal=...), add labels, or give known truths with labels.with_truth(...)",
        )
    return ()


def why_not_record(data: Labels, name: str) -> str | None:
    """Why a model without confusion matrices cannot use an earlier record, or None."""
    if data.record is None:
        return None
    return f"{name} has nothing that an earlier record could inform; use DawidSkene(), or leave the record out"
