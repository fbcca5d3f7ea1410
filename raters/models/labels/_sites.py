"""Sites, priors, starts from the votes, and warnings that the models of labels share."""

from __future__ import annotations

import abc
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from raters.distributions import ConfusedLabel, GroupedMixture
from raters.distributions.labels import RightOrWrongLabel
from raters.distributions.rows import computed_once
from raters.errors import Reason
from raters.judgements.connection import judges_by_part, part_of
from raters.judgements.labels import Labels
from raters.model import Exchange, Fit, Shift, Symmetry, Values
from raters.models.base import CheckedModel, least_decided, worded
from raters.models.labels._classes import Classifier, Prevalence
from raters.models.labels._names import ConfusionDraws, open_names, shares_of_names
from raters.terms.base import sampled

ClassProbs = Float[np.ndarray, "item true_class"]
Confusions = Float[Array, "annotator true_class label"]
Counts = Float[np.ndarray, "annotator true_class label"]


def observe(mixing: dist.Distribution, component: dist.Distribution, data: Labels) -> None:
    """Sample the observed site: labels, with the true class of each item summed out."""
    # Not the plate "item", since these may be some of the items.
    number, facts = data.num_units, {"unit": "item", "latent_class": "true_class"}
    labels = GroupedMixture(mixing, component, data.group, number, data.count, data.truth)
    sampled("label", labels, obs=data.label, infer=facts, labelled_item=number)


def concentration(
    diagonal: float, off_diagonal: float | None, num_classes: int
) -> Float[Array, "true_class label"]:
    """Return Dirichlet concentrations of a confusion matrix, by default 1/K off the diagonal."""
    off = 1 / num_classes if off_diagonal is None else off_diagonal
    return jnp.where(jnp.eye(num_classes, dtype=bool), diagonal, off)


def sample_confusion(concentration: Array, data: Labels) -> Confusions:
    """Sample a confusion matrix for each annotator, with any earlier record added to its prior."""
    # Not repeated for each annotator, so that the normalising constant is computed once.
    prior = concentration if data.record is None else concentration + data.record
    plates = {"annotator": data.num_annotators, "true_class": data.num_classes}
    return sampled("confusion", dist.Dirichlet(prior), "label", **plates)


# ---------------------------------------------------------------------- start


def vote_counts(data: Labels) -> Counts:
    """Count each annotator's labels of items of each class by vote, and add any earlier record."""
    if data.label is None:
        counts = np.zeros((data.num_annotators, data.num_classes, data.num_classes))
    else:
        counts = counts_by_class(label_counts(data), data.vote_shares())
    return counts if data.record is None else counts + np.asarray(data.record)


def label_counts(data: Labels) -> scipy.sparse.csr_array:
    """Count the labels of each item in columns of annotator and label."""
    column = np.asarray(data.annotator).astype(np.int64) * data.num_classes + np.asarray(data.label)
    shape = data.num_units, data.num_annotators * data.num_classes
    weight = np.asarray(data.weight, float)
    return scipy.sparse.csr_array((weight, (np.asarray(data.group), column)), shape=shape)


def counts_by_class(
    counts: scipy.sparse.csr_array, shares: Float[np.ndarray, "unit true_class"]
) -> Counts:
    """Count each annotator's labels of items of each class, given the shares of the classes."""
    num_classes = shares.shape[1]
    by_column = np.asarray(counts.T @ shares)
    return by_column.reshape(-1, num_classes, num_classes).transpose(0, 2, 1)


def start_confusion(data: Labels, prior: ArrayLike) -> Counts:
    """Return confusion matrices against the votes, as Dawid and Skene begin."""
    # The prior's weight is small, so that the votes decide, but keeps probabilities off 0 and 1.
    counts = vote_counts(data) + 0.01 * (np.asarray(prior) + np.eye(data.num_classes))
    return np.asarray(counts / counts.sum(-1, keepdims=True))


def start_accuracy(data: Labels) -> Float[np.ndarray, " annotator"]:
    """Return each annotator's share of labels that agree with the votes, smoothed."""
    counts = vote_counts(data)
    return np.asarray((np.einsum("akk->a", counts) + 0.7) / (counts.sum((1, 2)) + 1))


def beta_record(data: Labels) -> tuple[Float[Array, " annotator"], Float[Array, " annotator"]]:
    """Count the right and the wrong labels in each annotator's earlier record."""
    if data.record is None:
        return jnp.zeros(data.num_annotators), jnp.zeros(data.num_annotators)
    right = jnp.einsum("akk->a", jnp.asarray(data.record))
    return right, jnp.asarray(data.record).sum((1, 2)) - right


# ---------------------------------------------------------------------- refusals and warnings


def few_labels(data: Labels) -> tuple[str, ...]:
    """Warn of too few labels to learn a confusion matrix for each annotator."""
    num_labels, num_classes = data.judgements_by("annotator"), data.num_classes
    median = float(np.median(num_labels[num_labels > 0]))
    if data.record is not None or median >= 2 * num_classes:
        return ()
    return (worded("few_labels", median=median, classes=num_classes),)


def _crowd_mean(site: ArrayLike, data: Labels) -> Float[np.ndarray, "chain ..."]:
    """Average a site over draws, and over annotators by their share of the labels."""
    shares = data.judgements_by("annotator") / max(data.num_labels, 1)
    return np.tensordot(np.asarray(site).mean(1), shares, (1, 0))


def below_chance(
    skill: Float[np.ndarray, "chain draw annotator"], chance: float, data: Labels
) -> tuple[str, ...]:
    """Warn of a crowd that is worse than chance, and of two classes that may be exchanged."""
    if data.num_classes == 2:
        less, whose = least_decided(skill - chance, data)
        if said := open_names({(1, 0): less}, data, whose):
            return said
    low = np.flatnonzero(_crowd_mean(skill, data) < chance).tolist()
    return (worded("below_chance", chains=low),) if low else ()


def _open_names_of_a_part(
    confusion: ConfusionDraws, prevalence: ArrayLike | None, data: Labels
) -> tuple[str, ...]:
    """Warn where labels leave open which class is which, in the part of the crowd that is worst."""
    if confusion.shape[2] < data.num_annotators:  # All have the same.
        return open_names(shares_of_names(confusion, prevalence, [data.num_labels]), data)
    parts, labels = judges_by_part(data), data.judgements_by("annotator")
    shares = [
        shares_of_names(confusion[:, :, judges], prevalence, labels[judges]) for judges in parts
    ]
    place = int(np.argmax([sum(each.values()) for each in shares]))
    return open_names(shares[place], data, part_of(parts, place, data))


def switched(draws: Values, responsibility: ClassProbs | None, data: Labels) -> tuple[str, ...]:
    """Warn where the crowd's labels of two classes seem to be switched, or may be."""
    confusion = np.asarray(draws["confusion"])
    each = confusion[:, :, None] if confusion.ndim == 4 else confusion
    prevalence = draws.get("prevalence")
    if said := _open_names_of_a_part(each, prevalence, data):
        return said
    crowd = confusion.mean(1) if confusion.ndim == 4 else _crowd_mean(confusion, data)
    assert responsibility is not None  # These models sum the classes out.
    frequency = responsibility.mean(0)
    anchored = set() if data.truth is None else set(np.asarray(data.truth).tolist())
    for chain, matrix in enumerate(crowd):
        weighed = matrix * frequency[:, None]
        if not np.isfinite(weighed).all():  # Diagnostics of convergence say so.
            continue
        rows, columns = linear_sum_assignment(-weighed)
        moved = np.flatnonzero(rows != columns)
        if not len(moved):
            continue
        names = data.classes
        listing = ", ".join(f"{names[row]} is called {names[columns[row]]}" for row in moved)
        # Known truths identify these classes, whatever the crowd calls them.
        return (worded("switched", chain=chain, listing=listing, known=set(moved) <= anchored),)
    return ()


def start_ability(data: Labels, **spreads: float) -> Values:
    """Return abilities by the log-odds of agreement with the majority."""
    accuracy = np.clip(start_accuracy(data), 0.05, 0.95)
    scalars = {"ability_mean": 2.0, "ability_spread": 1.0, **spreads}
    start: Values = {name: np.asarray(value) for name, value in scalars.items()}
    return start | {"ability": np.log(accuracy / (1 - accuracy)) + np.log(data.num_classes - 1)}


def why_not_record(data: Labels, name: str) -> str | None:
    """Explain why a model without confusion matrices cannot use an earlier record, or None."""
    return None if data.record is None else worded("no_record", name=name)


# ---------------------------------------------------------------------- programs


class LabelModel(CheckedModel[Labels]):
    """Model of labels given the true class of each item, which is summed out."""

    # Sites that change places, sign or side where two classes do, beside those of `classes`.
    exchanged: ClassVar[tuple[tuple[str, int], ...]] = ()
    negated: ClassVar[tuple[str, ...]] = ()
    complemented: ClassVar[tuple[str, ...]] = ()
    # Whether an earlier record of the annotators informs it.
    uses_record: ClassVar[bool] = True

    @property
    def classes(self) -> Prevalence | Classifier:
        """Prior of the classes."""
        return Prevalence()

    @abc.abstractmethod
    def labels(self, data: Labels) -> dist.Distribution:
        """Sample the other sites; return the distribution of the labels under each class."""

    @abc.abstractmethod
    def start_labels(self, data: Labels) -> Values:
        """Start of the sites of `labels`."""

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        sites = (*self.classes.exchanged, *self.exchanged)
        # Probabilities of classes do not see what is added to the log-odds of all.
        shifts = (Shift(site, 1) for site, _ in self.classes.exchanged if site != "prevalence")
        return (Exchange(sites, self.negated, self.complemented), *shifts)

    def generate(self, data: Labels) -> None:
        classes = self.classes.sample(data)
        observe(classes, self.labels(data), data)

    def start(self, data: Labels) -> Values:
        return self.classes.start(data) | self.start_labels(data)

    def why_not(self, data: Labels) -> str | None:
        name = type(self).__name__
        if isinstance(self.classes, Classifier) and data.features is None:
            problem = f"is not given: {name} learns a classifier, and these labels have no features"
            return Reason("features", problem=problem, expected="name the columns of the features")
        return None if self.uses_record else why_not_record(data, name)


class AccuracyModel(LabelModel):
    """Model with one accuracy for each annotator."""

    complemented = ("accuracy",)

    @abc.abstractmethod
    def accuracy(self, data: Labels) -> Float[Array, " annotator"]:
        """Sample the accuracies."""

    def labels(self, data: Labels) -> dist.Distribution:
        accuracy = self.accuracy(data)
        logits = computed_once(jnp.log(accuracy) - jnp.log1p(-accuracy))
        return RightOrWrongLabel(logits[data.annotator][:, None], data.num_classes)

    def start_labels(self, data: Labels) -> Values:
        return {"accuracy": start_accuracy(data)}

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        return below_chance(np.asarray(fit.draws["accuracy"]), 1 / data.num_classes, data)


class ConfusionModel(LabelModel):
    """Model with confusion matrices."""

    diagonal: float = 1.0
    off_diagonal: float | None = None

    exchanged: ClassVar[tuple[tuple[str, int], ...]] = (("confusion", -2),)

    def concentration(self, data: Labels) -> Float[Array, "true_class label"]:
        """Concentrations of the Dirichlet prior of a matrix, by default 1/K off the diagonal."""
        return concentration(self.diagonal, self.off_diagonal, data.num_classes)

    def confusion(self, data: Labels) -> Confusions:
        """Sample the matrices."""
        return sample_confusion(self.concentration(data), data)

    def labels(self, data: Labels) -> dist.Distribution:
        return ConfusedLabel(self.confusion(data), data.annotator)

    def start_labels(self, data: Labels) -> Values:
        return {"confusion": start_confusion(data, self.concentration(data))}

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        return switched(fit.draws, fit.responsibility, data)


class AbilityModel(LabelModel):
    """Model of the log-odds of a right label, by abilities on the real line."""

    negated = ("ability", "ability_mean")
    uses_record = False

    @abc.abstractmethod
    def logits(self, data: Labels) -> Float[Array, "row 1"] | Float[Array, "row true_class"]:
        """Sample all sites; return the log-odds of a right label."""

    def labels(self, data: Labels) -> dist.Distribution:
        return RightOrWrongLabel(self.logits(data), data.num_classes)

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        return below_chance(np.asarray(fit.draws["ability"]), 0.0, data)
