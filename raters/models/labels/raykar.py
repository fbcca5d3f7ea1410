"""Raykar et al.'s model: a classifier and the annotators' confusion matrices."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions import ConfusedLabel
from raters.judgements.labels import Labels
from raters.model import Exchange, Spread, Symmetry, Values
from raters.models.labels import _sites


@dataclass(frozen=True)
class Raykar(_sites.ConfusionModel):
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

    reference: ClassVar[str] = "raykar2010learning"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        layer = (("output_weight", -1),) if self.hidden else ()
        return (Exchange((("coefficient", -1), *layer, ("confusion", -2))),)

    @property
    def facts(self) -> tuple[Spread, ...]:
        return _sites.coefficient_spreads(self.coefficient_scale)

    def generate(self, data: Labels) -> None:
        coefficient = _sites.sample_coefficient(self.coefficient_scale, data)
        log_odds = data.features @ coefficient
        if self.hidden:
            log_odds = log_odds + self._hidden_layer(data)
        prior = _sites.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        confusion = _sites.sample_confusion(prior, data)
        _sites.observe(
            dist.Categorical(logits=log_odds), ConfusedLabel(confusion, data.annotator), data
        )

    def _hidden_layer(self, data: Labels) -> Float[Array, "item true_class"]:
        shape = (data.num_features, self.hidden)
        hidden_prior = dist.Normal(0.0, 1 / np.sqrt(data.num_features)).expand(shape).to_event(2)
        hidden_weight = numpyro.sample(
            "hidden_weight", hidden_prior, infer={"event_dims": ["feature", "hidden"]}
        )
        shape = (self.hidden, data.num_classes)
        output_prior = dist.Normal(0.0, 1.5 / np.sqrt(self.hidden)).expand(shape).to_event(2)
        output_weight = numpyro.sample(
            "output_weight", output_prior, infer={"event_dims": ["hidden", "true_class"]}
        )
        return jnp.tanh(data.features @ hidden_weight) @ output_weight

    def start(self, data: Labels) -> Values:
        prior = _sites.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        start = _sites.start_classifier(data, self.coefficient_scale)
        start["confusion"] = _sites.start_confusion(data, prior)
        if self.hidden:
            # Random, since hidden units that start equal stay equal.
            rng = np.random.default_rng(0)
            start["hidden_weight"] = rng.normal(size=(data.num_features, self.hidden)) / np.sqrt(
                data.num_features
            )
            start["output_weight"] = 0.01 * rng.normal(size=(self.hidden, data.num_classes))
        return start

    def why_not(self, data: Labels) -> str | None:
        return _sites.why_not_features(data, type(self).__name__)
