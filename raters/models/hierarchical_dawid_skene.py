"""Dawid–Skene whose annotators borrow from the crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions import ConfusedLabel
from raters.labels import Labels
from raters.model import Model, Values
from raters.models import _labels


@dataclass(frozen=True)
class HierarchicalDawidSkene(Model[Labels]):
    r"""Hierarchical Dawid–Skene: confusion matrices scatter around the crowd's, so that few labels say less than many.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        \pi_{ak} \sim \mathrm{Dirichlet}(\nu_k m_k), \qquad m_k \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere}),
        \qquad \nu_k \sim \mathrm{LogNormal}(\log 4, 1), \qquad p \sim \mathrm{Dirichlet}(c, \dots, c)

    with `crowd` m the crowd's confusion matrix, and `concentration` ν how alike its members are: an annotator is judged
    by their own labels and ν labels of the crowd's. As ν → ∞ it becomes `Pooled`.

    Parameters
    ----------
    diagonal, off_diagonal : float
        Concentrations d and o of the crowd's confusion matrix.
    prevalence : float
        Concentration c of the class frequencies; 1 is flat.

    References
    ----------
    Paun, S. et al. (2018). Comparing Bayesian models of annotation. Transactions of the ACL 6, 571–585; there with
    logistic-normal rows in place of Dirichlet ones.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> result = rt.fit(rt.HierarchicalDawidSkene(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["crowd"].dims
    ('true_class', 'label')
    """

    diagonal: float = 3.0
    off_diagonal: float | None = 1.0
    prevalence: float = 1.0

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = _labels.COMPARED

    def __post_init__(self) -> None:
        _labels.check_concentrations(self)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The class frequencies, then the annotators' confusion matrices; the crowd's are updated from their prior density."""
        return (("prevalence",), ("confusion",))

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        prevalence = _labels.sample_prevalence(self.prevalence, data)
        prior = _labels.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        with numpyro.plate("true_class", data.num_classes):
            crowd = numpyro.sample("crowd", dist.Dirichlet(prior), infer={"event_dims": ["label"]})
            alike = numpyro.sample("concentration", dist.LogNormal(jnp.log(4.0), 1.0))
        confusion = _labels.sample_confusion(alike[:, None] * crowd, data)
        _labels.observe(dist.Categorical(probs=prevalence), ConfusedLabel(confusion, data.annotator), data)

    def start(self, data: Labels) -> Values:
        """Confusion matrices against the majority of votes, of annotators and of all together."""
        number = data.num_classes
        total = _labels.vote_counts(data).sum(0) + np.eye(number) + 0.1
        crowd = total / total.sum(-1, keepdims=True)
        return {
            "prevalence": _labels.start_prevalence(data),
            "crowd": crowd,
            "concentration": np.full(number, 4.0),
            "confusion": _labels.start_confusion(data, 400 * crowd),
        }

    def doubts(self, result: Any) -> tuple[str, ...]:
        """Classes that have been switched."""
        return _labels.switched(result)
