"""Dawid and Skene's model: one confusion matrix per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpyro.distributions as dist

from raters.distributions import ConfusedLabel
from raters.labels import Labels
from raters.model import Model, Values
from raters.models import _labels


@dataclass(frozen=True)
class DawidSkene(Model[Labels]):
    r"""Dawid–Skene: every annotator has a confusion matrix of their own.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        p \sim \mathrm{Dirichlet}(c, \dots, c), \qquad \pi_{ak} \sim \mathrm{Dirichlet}(d \text{ at } k, o \text{ elsewhere})

    The true classes t are summed out. Label switching: the likelihood does not change when the classes are renamed in truth
    and matrices alike. The prior's mass on the diagonal (d > o) says that the crowd as a whole means the classes by
    their names; should they be switched all the same, `raters.fit` warns.

    ``DawidSkene(diagonal=1, off_diagonal=1)`` is the flat prior, under which `raters.PGEM` is the EM of the paper, with the
    class frequencies updated (the algorithm printed in some later texts leaves them as they start). Samplers need the
    mass on the diagonal: with many classes they leave the mode that EM finds.

    Parameters
    ----------
    diagonal : float
        Concentration d: how many right labels the prior is worth, for each annotator and true class.
    off_diagonal : float, optional
        Concentration o of each wrong label; 1/K for K classes by default.
    prevalence : float
        Concentration c of the class frequencies; 1 is flat.

    References
    ----------
    Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates using the EM algorithm.
    Applied Statistics 28, 20–28.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> result = rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["confusion"].dims
    ('chain', 'draw', 'annotator', 'true_class', 'label')
    """

    diagonal: float = 1.0
    off_diagonal: float | None = None
    prevalence: float = 1.0

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = r"""
    @article{dawid1979maximum,
      author  = {Dawid, A. P. and Skene, A. M.},
      title   = {Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm},
      journal = {Journal of the Royal Statistical Society. Series C (Applied Statistics)},
      year    = {1979},
      volume  = {28},
      number  = {1},
      pages   = {20--28},
      doi     = {10.2307/2346806},
    }
    """

    def __post_init__(self) -> None:
        _labels.check_concentrations(self)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The class frequencies, then the confusion matrices."""
        return (("prevalence",), ("confusion",))

    def _concentration(self, data: Labels) -> jnp.ndarray:
        return _labels.concentration(self.diagonal, self.off_diagonal, data.num_classes)

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        prevalence = _labels.sample_prevalence(self.prevalence, data)
        confusion = _labels.sample_confusion(self._concentration(data), data)
        _labels.observe(dist.Categorical(probs=prevalence), ConfusedLabel(confusion, data.annotator), data)

    def cautions(self, data: Labels) -> tuple[str, ...]:
        """With few labels for many classes a matrix of one's own does not pay."""
        return _labels.few_labels(data)

    def doubts(self, result: Any) -> tuple[str, ...]:
        """Classes that have been switched."""
        return _labels.switched(result)

    def start(self, data: Labels) -> Values:
        """Confusion matrices against the majority of votes."""
        return {
            "prevalence": _labels.start_prevalence(data),
            "confusion": _labels.start_confusion(data, self._concentration(data)),
        }
