"""A classifier and the annotators' confusion matrices, learned together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters._check import plain_positive, whole
from raters.distributions import ConfusedLabel
from raters.labels import Labels
from raters.model import Model, Values
from raters.models import _labels


@dataclass(frozen=True)
class Raykar(Model[Labels]):
    r"""Raykar et al.: the true class depends on the item's features, and every annotator has a confusion matrix.

    .. math::

        t_i \mid x_i \sim \mathrm{Categorical}(\mathrm{softmax}(W^\top x_i)), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        w_{fk} \sim \mathrm{Normal}(0, s), \quad w_{\mathrm{intercept}, k} \sim \mathrm{Normal}(0, 2.5), \qquad
        \pi_{ak} \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    Features come standardised from `raters.Labels.with_features`. Items without any label take part: the classifier predicts
    their class, as it does for new items in `raters.predict`.

    The classes of the training items are summed out with the classifier as their prior. Some printed versions of
    the EM algorithm weight the confusion counts with the classifier's prediction in place of the posterior of the truth, and
    leave the classifier out of the E-step; those have no likelihood that they climb.

    ``Raykar(hidden=16)`` adds a hidden layer to the classifier, :math:`W^\top x + U^\top \tanh(V^\top x)` with normal priors
    on V and U too, for `raters.SVI` and `raters.PGEM`: a posterior over networks has many modes, which samplers do not visit.
    It is written in NumPyro like the rest, so it needs no library of networks.

    With symmetric priors the coefficients of all classes are kept: what they share does not change the likelihood, and the
    prior settles it.

    Parameters
    ----------
    coefficient_scale : float, optional
        Standard deviation s of the coefficients of the D standardised features; :math:`1.5 / \sqrt{D}` by default, so that what
        the features add to the score of a class has a prior standard deviation of about 1.5.
    hidden : int
        Units of a hidden layer beside the linear classifier; none by default.
    diagonal : float
        Concentration d: how many right labels the prior is worth, for each annotator and true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.

    References
    ----------
    Raykar, V. C. et al. (2010). Learning from crowds. JMLR 11, 1297–1322.

    Examples
    --------
    >>> import raters as rt
    >>> labels, _ = rt.datasets.label_crowd(80, 5, 3, 2, num_features=3, seed=0)
    >>> result = rt.fit(rt.Raykar(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["coefficient"].dims
    ('feature', 'true_class')
    """

    coefficient_scale: float | None = None
    hidden: int = 0
    diagonal: float = 1.0
    off_diagonal: float | None = None

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = r"""
    @article{raykar2010learning,
      author  = {Raykar, Vikas C. and Yu, Shipeng and Zhao, Linda H. and Valadez, Gerardo Hermosillo
                 and Florin, Charles and Bogoni, Luca and Moy, Linda},
      title   = {Learning From Crowds},
      journal = {Journal of Machine Learning Research},
      year    = {2010},
      volume  = {11},
      number  = {43},
      pages   = {1297--1322},
    }
    """

    def __post_init__(self) -> None:
        _labels.check_concentrations(self)
        plain_positive(self, "coefficient_scale", optional=True)
        whole("hidden", self.hidden, least=0)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The classifier, one class at a time; then the confusion matrices."""
        return (("coefficient",), *((("output_weight",),) if self.hidden else ()), ("confusion",))

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        coefficient = _labels.sample_coefficient(self.coefficient_scale, data)
        prior = _labels.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        confusion = _labels.sample_confusion(prior, data)
        log_odds = data.features @ coefficient
        if self.hidden:
            log_odds = log_odds + self._hidden_layer(data)
        _labels.observe(dist.Categorical(logits=log_odds), ConfusedLabel(confusion, data.annotator), data)

    def _hidden_layer(self, data: Labels):
        shape = (data.num_features, self.hidden)
        into = dist.Normal(0.0, 1 / np.sqrt(data.num_features)).expand(shape).to_event(2)
        hidden_weight = numpyro.sample("hidden_weight", into, infer={"event_dims": ["feature", "hidden"]})
        shape = (self.hidden, data.num_classes)
        out_of = dist.Normal(0.0, 1.5 / np.sqrt(self.hidden)).expand(shape).to_event(2)
        output_weight = numpyro.sample("output_weight", out_of, infer={"event_dims": ["hidden", "true_class"]})
        return jnp.tanh(data.features @ hidden_weight) @ output_weight

    def start(self, data: Labels) -> Values:
        """Confusion matrices against the majority of votes, and a classifier trained on the votes."""
        prior = _labels.concentration(self.diagonal, self.off_diagonal, data.num_classes)
        start: Values = {
            "coefficient": _labels.start_coefficient(data, self.coefficient_scale),
            "confusion": _labels.start_confusion(data, prior),
        }
        if self.hidden:
            # Hidden units must differ to begin with, or they stay alike.
            rng = np.random.default_rng(0)
            start["hidden_weight"] = rng.normal(size=(data.num_features, self.hidden)) / np.sqrt(data.num_features)
            start["output_weight"] = 0.01 * rng.normal(size=(self.hidden, data.num_classes))
        return start

    def why_not(self, data: Labels) -> str | None:
        """A classifier needs features."""
        return _labels.why_not_features(data, type(self).__name__)

    def doubts(self, result: Any) -> tuple[str, ...]:
        """Classes that have been switched."""
        return _labels.switched(result)
