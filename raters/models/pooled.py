"""One confusion matrix for the whole crowd."""

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
class Pooled(Model[Labels]):
    r"""Pooled multinomial: all annotators share one confusion matrix.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_k), \\
        p \sim \mathrm{Dirichlet}(c, \dots, c), \qquad \pi_k \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    It knows which classes the crowd mixes up, not who does. `DawidSkene` with tied matrices; the settings are its.

    Parameters
    ----------
    diagonal : float
        Concentration d: how many right labels the prior is worth, for each true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.
    prevalence : float
        Concentration c of the class frequencies; 1 is flat.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> result = rt.fit(rt.Pooled(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["confusion"].dims
    ('true_class', 'label')
    """

    diagonal: float = 1.0
    off_diagonal: float | None = None
    prevalence: float = 1.0

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = _labels.COMPARED

    def __post_init__(self) -> None:
        _labels.check_concentrations(self)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The class frequencies, then the confusion matrix."""
        return (("prevalence",), ("confusion",))

    def _concentration(self, data: Labels) -> jnp.ndarray:
        prior = _labels.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        return prior if data.record is None else prior + data.record.sum(0)

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        prevalence = _labels.sample_prevalence(self.prevalence, data)
        with numpyro.plate("true_class", data.num_classes):
            confusion = numpyro.sample("confusion", dist.Dirichlet(self._concentration(data)), infer={"event_dims": ["label"]})
        one = ConfusedLabel(confusion[None], jnp.zeros(data.num_rows, int))
        _labels.observe(dist.Categorical(probs=prevalence), one, data)

    def start(self, data: Labels) -> Values:
        """The confusion matrix against the majority of votes."""
        counts = _labels.vote_counts(data).sum(0) + 0.01 * (self._concentration(data) + np.eye(data.num_classes))
        return {
            "prevalence": _labels.start_prevalence(data),
            "confusion": np.asarray(counts / counts.sum(-1, keepdims=True)),
        }

    def doubts(self, result: Any) -> tuple[str, ...]:
        """Classes that have been switched."""
        return _labels.switched(result)
