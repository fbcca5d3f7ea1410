"""Pooled model: one confusion matrix for the whole crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import ConfusedLabel
from raters.judgements.labels import Labels
from raters.model import Values
from raters.models.labels import _sites


@dataclass(frozen=True)
class Pooled(_sites.ConfusionModel):
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

    reference: ClassVar[str] = "paun2018comparing"

    def concentration(self, data: Labels) -> Float[Array, "true_class label"]:
        prior = super().concentration(data)
        return prior if data.record is None else prior + data.record.sum(0)

    def labels(self, data: Labels) -> dist.Distribution:
        prior = dist.Dirichlet(self.concentration(data))
        with numpyro.plate("true_class", data.num_classes):
            confusion = numpyro.sample("confusion", prior, infer={"event_dims": ["label"]})
        return ConfusedLabel(confusion[None], jnp.zeros(data.num_rows, int))

    def start_labels(self, data: Labels) -> Values:
        counts = _sites.vote_counts(data).sum(0) + 0.01 * (
            self.concentration(data) + np.eye(data.num_classes)
        )
        return {"confusion": np.asarray(counts / counts.sum(-1, keepdims=True))}
