"""One-coin model: one accuracy per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.labels import Labels
from raters.models.labels import _sites


@dataclass(frozen=True)
class OneCoin(_sites.AccuracyModel):
    r"""One-coin Dawid–Skene model: each annotator has one accuracy, the same for all classes.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        P(y_{ia} = j \mid t_i = k)
        = \begin{cases} \alpha_a & j = k \\ (1 - \alpha_a)/(K - 1) & j \ne k \end{cases}, \\
        p \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad \alpha_a \sim \mathrm{Beta}(a, b)

    It has one parameter per annotator where `DawidSkene` has K(K − 1), for few labels per annotator
    or many classes. It fails where mistakes depend on the class, as when half of the crowd does not
    recognise one class.

    Parameters
    ----------
    right, wrong : float
        Concentrations a and b: numbers of right and wrong labels that the prior is worth.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> result = rt.fit(rt.models.OneCoin(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["accuracy"].dims
    ('annotator',)
    """

    right: float = 2.0
    wrong: float = 1.0

    reference: ClassVar[str] = "zhang2016spectral"

    def accuracy(self, data: Labels) -> Float[Array, " annotator"]:
        right, wrong = _sites.beta_record(data)
        with numpyro.plate("annotator", data.num_annotators):
            return numpyro.sample("accuracy", dist.Beta(self.right + right, self.wrong + wrong))
