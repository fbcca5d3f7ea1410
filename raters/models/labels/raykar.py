"""Raykar et al.'s model: a classifier and the annotators' confusion matrices."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from raters.models.labels._classes import Classifier
from raters.models.labels._sites import ConfusionModel


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

    reference: ClassVar[str] = "raykar2010learning"

    @property
    def classes(self) -> Classifier:
        return Classifier(self.coefficient_scale, self.hidden)
