"""Hierarchical Dawid–Skene model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.labels import Labels
from raters.model import Values
from raters.models.labels import _sites


@dataclass(frozen=True)
class HierarchicalDawidSkene(_sites.ConfusionModel):
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

    reference: ClassVar[str] = "paun2018comparing"

    exchanged = (("crowd", -2), ("concentration", -1), ("confusion", -2))

    def confusion(self, data: Labels) -> Float[Array, "annotator true_class label"]:
        prior = _sites.concentration(3.0, 1.0, data.num_classes)
        with numpyro.plate("true_class", data.num_classes):
            crowd = numpyro.sample("crowd", dist.Dirichlet(prior), infer={"event_dims": ["label"]})
            concentration = numpyro.sample("concentration", dist.LogNormal(jnp.log(4.0), 1.0))
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
