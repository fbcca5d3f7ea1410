"""Yan et al.'s model: a classifier, and annotators whose errors depend on the item's features."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions.labels import RightOrWrongLabel
from raters.judgements.labels import Labels
from raters.model import Fit, Values
from raters.models.labels import _sites
from raters.models.labels._classes import Classifier
from raters.terms.base import sampled


@dataclass(frozen=True)
class Yan(_sites.LabelModel):
    r"""Yan et al.'s model: as `Raykar`, with accuracies that depend on the item's features too.

    .. math::

        t_i \mid x_i \sim \mathrm{Categorical}(\mathrm{softmax}(W^\top x_i)), \qquad
        P(y_{ia} = j \mid t_i = k, x_i) = \begin{cases} \sigma(c_{ak} + v_a^\top x_i) & j = k \\
        (1 - \sigma(c_{ak} + v_a^\top x_i)) \, m_{akj} & j \ne k \end{cases}, \\
        c_{ak} \sim \mathrm{Normal}(\bar c, \phi), \quad v_{af} \sim \mathrm{Normal}(0, \tau), \quad
        m_{ak} \sim \mathrm{Dirichlet}(1, \dots, 1), \\
        \bar c \sim \mathrm{Normal}(1, 1), \quad \phi \sim \mathrm{LogNormal}(0, ½), \quad
        \tau \sim \mathrm{LogNormal}(\log 0.3, ½)

    `sensitivity` c is the log-odds of a right label for each true class, `tilt` v its slope in the
    features, and `wrong` m the distribution of the mistakes (over the classes other than the true
    one, in order; absent with two classes). At v = 0 the model is `Raykar` with another prior on
    the confusion matrices. The paper has two classes and one sensitivity for both. The coefficients
    W of the classifier have the prior of `Raykar`.

    Examples
    --------
    >>> import raters as rt
    >>> labels, _ = rt.datasets.label_crowd(80, 5, 3, 2, num_features=3, seed=0)
    >>> result = rt.fit(rt.models.Yan(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["tilt"].dims
    ('annotator', 'feature')
    """

    reference = "yan2010modeling"

    exchanged = (("sensitivity", -1),)
    negated = ("sensitivity", "sensitivity_mean", "tilt")
    uses_record = False

    @property
    def classes(self) -> Classifier:
        return Classifier()

    def labels(self, data: Labels) -> dist.Distribution:
        mean = numpyro.sample("sensitivity_mean", dist.Normal(1.0, 1.0))
        spread = numpyro.sample("sensitivity_spread", dist.LogNormal(0.0, 0.5))
        tilt_spread = numpyro.sample("tilt_spread", dist.LogNormal(jnp.log(0.3), 0.5))
        # One plate, since NumPyro gives each plate one axis: the axes of classes and features are
        # events.
        number, classes = data.num_annotators, data.num_classes
        with numpyro.plate("annotator", number):
            by_class = dist.Normal(mean, spread).expand([classes]).to_event(1)
            sensitivity = sampled("sensitivity", by_class, "true_class")
            by_feature = dist.Normal(0.0, tilt_spread).expand([data.num_features]).to_event(1)
            tilt = sampled("tilt", by_feature, "feature")
            uniform = dist.Dirichlet(jnp.ones((number, classes, classes - 1))).to_event(1)
            wrong = sampled("wrong", uniform, "true_class", "wrong_label")
        annotator = jnp.broadcast_to(data.annotator[:, None], (data.num_rows, data.num_classes))
        logits = sensitivity[annotator, jnp.arange(data.num_classes)]
        for feature in range(data.num_features):
            logits = logits + data.features[data.group, feature][:, None] * tilt[annotator, feature]
        return RightOrWrongLabel(logits, data.num_classes, wrong, data.annotator)

    def start_labels(self, data: Labels) -> Values:
        confusion = _sites.start_confusion(data, np.ones((data.num_classes, data.num_classes)))
        right = np.clip(np.einsum("akk->ak", confusion), 0.1, 0.9)
        shape = (data.num_annotators, data.num_classes, data.num_classes - 1)
        return {
            "sensitivity_mean": np.asarray(1.0),
            "sensitivity_spread": np.asarray(1.0),
            "tilt_spread": np.asarray(0.3),
            "sensitivity": np.log(right / (1 - right)),
            "wrong": np.full(shape, 1 / shape[-1]),
            "tilt": np.zeros((data.num_annotators, data.num_features)) + 0.01,
        }

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        sensitivity = np.asarray(fit.draws["sensitivity"]).mean(-1)
        return _sites.below_chance(sensitivity, -np.log(data.num_classes - 1), data)
