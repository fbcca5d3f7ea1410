"""Models with a confusion matrix for each annotator, or for all."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from raters.distributions import ConfusedLabel
from raters.judgements.labels import Labels
from raters.model import Fit, Values
from raters.models.base import worded
from raters.models.labels import _sites
from raters.models.labels._classes import Classifier, Prevalence
from raters.models.labels._sites import ClassProbs, ConfusionModel, Confusions
from raters.terms.base import sampled


@dataclass(frozen=True)
class DawidSkene(ConfusionModel):
    r"""Dawid–Skene model: each annotator has a confusion matrix.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        p \sim \mathrm{Dirichlet}(c, \dots, c), \qquad
        \pi_{ak} \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    The true classes t are summed out. The likelihood is invariant to permutations of the true
    classes. The prior's mass on the diagonal (d > o) encodes that the crowd as a whole uses the
    classes by their names; `raters.fit` warns if they are switched nevertheless.

    ``DawidSkene(diagonal=1, off_diagonal=1)`` is the flat prior, under which `raters.PGEM` is the
    EM algorithm of the paper.

    Parameters
    ----------
    diagonal : float
        Concentration d: number of right labels that the prior is worth, for each annotator and
        true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.
    prevalence : float
        Concentration c of the class frequencies; 1 is flat.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> result = rt.fit(rt.DawidSkene(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result.posterior["confusion"].dims
    ('chain', 'draw', 'annotator', 'true_class', 'label')
    """

    diagonal: float = 1.0
    off_diagonal: float | None = None
    prevalence: float = 1.0

    reference = "dawid1979maximum"

    @property
    def classes(self) -> Prevalence:
        return Prevalence(self.prevalence)

    def data_warnings(self, data: Labels) -> tuple[str, ...]:
        return _sites.few_labels(data)

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        if said := super().fit_warnings(data, fit):
            return said
        assert fit.responsibility is not None  # The true classes are summed out.
        return mode_differs(fit.responsibility, self.concentration(data), self.prevalence, data)


@dataclass(frozen=True)
class HierarchicalDawidSkene(ConfusionModel):
    r"""Hierarchical Dawid–Skene model: annotators' confusion matrices vary around the crowd's.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        \pi_{ak} \sim \mathrm{Dirichlet}(\nu_k m_k), \qquad
        m_k \sim \mathrm{Dirichlet}(3 \text{ at } k, 1 \text{ elsewhere}), \\
        \nu_k \sim \mathrm{LogNormal}(\log 4, 1), \qquad
        p \sim \mathrm{Dirichlet}(1, \dots, 1)

    with `crowd` m the crowd's confusion matrix, and `concentration` ν the similarity of its
    members: the crowd counts as ν labels of each annotator, which regularises annotators with few
    labels. As ν → ∞ the model becomes `Pooled`.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> result = rt.fit(rt.HierarchicalDawidSkene(), labels, rt.PGEM(draws=0), seed=0,
    ...                 progress=False)
    >>> result["mode"]["crowd"].dims
    ('true_class', 'label')
    """

    reference = "paun2018comparing"

    exchanged = (("crowd", -2), ("concentration", -1), ("confusion", -2))

    def confusion(self, data: Labels) -> Confusions:
        prior = _sites.concentration(3.0, 1.0, data.num_classes)
        with numpyro.plate("true_class", data.num_classes):
            crowd = sampled("crowd", dist.Dirichlet(prior), "label")
            concentration = sampled("concentration", dist.LogNormal(jnp.log(4.0), 1.0))
        return _sites.sample_confusion(concentration[:, None] * crowd, data)

    def start_labels(self, data: Labels) -> Values:
        num_classes = data.num_classes
        total = _sites.vote_counts(data).sum(0) + np.eye(num_classes) + 0.1
        crowd = total / total.sum(-1, keepdims=True)
        return {
            "crowd": crowd,
            "concentration": np.full(num_classes, 4.0),
            "confusion": _sites.start_confusion(data, 400 * crowd),
        }


@dataclass(frozen=True)
class Pooled(ConfusionModel):
    r"""Pooled multinomial model: all annotators share one confusion matrix.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_k), \\
        p \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad
        \pi_k \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    It is `DawidSkene` with equal matrices: it learns which classes the crowd confuses, but not
    which annotators do.

    Parameters
    ----------
    diagonal : float
        Concentration d: number of right labels that the prior is worth, for each true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> result = rt.fit(rt.models.Pooled(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["confusion"].dims
    ('true_class', 'label')
    """

    diagonal: float = 1.0
    off_diagonal: float | None = None

    reference = "paun2018comparing"

    def concentration(self, data: Labels) -> Float[Array, "true_class label"]:
        prior = super().concentration(data)
        return prior if data.record is None else prior + data.record.sum(0)

    def labels(self, data: Labels) -> dist.Distribution:
        prior = dist.Dirichlet(self.concentration(data))
        confusion = sampled("confusion", prior, "label", true_class=data.num_classes)
        return ConfusedLabel(confusion[None], jnp.zeros(data.num_rows, int))

    def start_labels(self, data: Labels) -> Values:
        prior = self.concentration(data) + np.eye(data.num_classes)
        counts = _sites.vote_counts(data).sum(0) + 0.01 * prior
        return {"confusion": np.asarray(counts / counts.sum(-1, keepdims=True))}


@dataclass(frozen=True)
class Raykar(ConfusionModel):
    r"""Raykar et al.'s model: a classifier of the items, and a confusion matrix for each annotator.

    .. math::

        t_i \mid x_i \sim \mathrm{Categorical}(\mathrm{softmax}(W^\top x_i)), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        w_{fk} \sim \mathrm{Normal}(0, s), \quad
        s \sim \mathrm{LogNormal}(\log(1.5/\sqrt D), 1), \quad
        w_{\mathrm{intercept}, k} \sim \mathrm{Normal}(0, 2.5), \\
        \pi_{ak} \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    `raters.Labels.with_features` standardises the features. Items without labels may be included:
    the classifier predicts their class. The true classes are summed out, with the classifier as
    their prior.

    ``Raykar(hidden=16)`` adds a hidden layer to the classifier, :math:`W^\top x + U^\top
    \tanh(V^\top x)` with normal priors on V and U too, for `raters.SVI` and `raters.PGEM`.

    Parameters
    ----------
    coefficient_scale : float, optional
        Standard deviation s of the coefficients of the D standardised features; learned unless
        given. At the median of its prior the features' sum has a standard deviation of 1.5.
    hidden : int
        Number of units of a hidden layer beside the linear classifier; none by default.
    diagonal : float
        Concentration d: number of right labels that the prior is worth, for each annotator and
        true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.

    Examples
    --------
    >>> import raters as rt
    >>> labels, _ = rt.datasets.label_crowd(80, 5, 3, 2, num_features=3, seed=0)
    >>> result = rt.fit(rt.Raykar(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["coefficient"].dims
    ('feature', 'true_class')
    """

    coefficient_scale: float | None = None
    hidden: int = dataclasses.field(default=0, metadata={"least": 0})
    diagonal: float = 1.0
    off_diagonal: float | None = None

    reference = "raykar2010learning"

    @property
    def classes(self) -> Classifier:
        return Classifier(self.coefficient_scale, self.hidden)


# Share of the items above which a fit says so, and least number of them. On fourteen of fifteen
# public crowds at most 4 % differ, with accuracies within .007; on `web` 12 %, with .074 less.
_DIFFERENT, _FEWEST = 0.05, 5
# Most iterations, and most rows read in all of them: 5 iterations of 10⁶ labels, since a check
# must not take as long as the fit.
_ITERATIONS, _ROWS, _CLOSE = 100, 5_000_000, 1e-3


def mode_differs(
    responsibility: ClassProbs, concentration: ArrayLike, prevalence: float, data: Labels
) -> tuple[str, ...]:
    """Warn where the most probable classes at the mode are others than over the draws."""
    if data.label is None or not np.isfinite(responsibility).all():
        return ()
    labelled = data.judgements_by("item") > 0
    chosen = responsibility.argmax(1)
    number = int((classes_at_mode(concentration, prevalence, data) != chosen)[labelled].sum())
    share = number / max(int(labelled.sum()), 1)
    if number < _FEWEST or share <= _DIFFERENT:
        return ()
    return (worded("mode_differs", number=number, share=share),)


def classes_at_mode(
    concentration: ArrayLike, prevalence: float, data: Labels
) -> Int[np.ndarray, " item"]:
    """Most probable class of each item at the mode that EM climbs to from the vote."""
    prior = np.asarray(concentration, float)
    less = 0.0 if prior.min() < 1 else 1.0
    record = 0.0 if data.record is None else np.asarray(data.record, float)
    shares, counts = data.vote_shares(), _sites.label_counts(data)
    truth = np.full((1, 1), -1) if data.truth is None else np.asarray(data.truth)[:, None]
    excluded = (truth >= 0) & (truth != np.arange(data.num_classes))
    for _ in range(max(1, min(_ITERATIONS, _ROWS // max(data.num_rows, 1)))):
        of_class = shares.sum(0) + prevalence - 1 + 1e-12
        rows = prior - less + record + _sites.counts_by_class(counts, shares) + 1e-12
        log_rows = np.log(rows / rows.sum(-1, keepdims=True))
        by_column = log_rows.transpose(0, 2, 1).reshape(-1, data.num_classes)
        log_shares = np.log(of_class / of_class.sum()) + counts @ by_column
        log_shares = np.where(excluded, -np.inf, log_shares)
        updated = np.exp(log_shares - log_shares.max(1, keepdims=True))
        updated /= updated.sum(1, keepdims=True)
        done = np.abs(updated - shares).max() < _CLOSE
        shares = updated
        if done:
            break
    return shares.argmax(1)
