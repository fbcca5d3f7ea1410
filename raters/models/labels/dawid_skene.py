"""Dawid and Skene's model: one confusion matrix per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.judgements.labels import Labels
from raters.model import Fit
from raters.models.labels._classes import Prevalence
from raters.models.labels._mode import mode_differs
from raters.models.labels._sites import ConfusionModel, few_labels


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

    reference: ClassVar[str] = "dawid1979maximum"

    @property
    def classes(self) -> Prevalence:
        return Prevalence(self.prevalence)

    def data_warnings(self, data: Labels) -> tuple[str, ...]:
        return few_labels(data)

    def fit_warnings(self, data: Labels, fit: Fit) -> tuple[str, ...]:
        if said := super().fit_warnings(data, fit):
            return said
        assert fit.responsibility is not None  # The true classes are summed out.
        return mode_differs(fit.responsibility, self.concentration(data), self.prevalence, data)
