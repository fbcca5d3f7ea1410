"""What a model is: one generative NumPyro function, and a few facts that back-ends use."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from raters._judgements import Judgements

Values = dict[str, Any]


@dataclass(frozen=True)
class Shift:
    """The likelihood is unchanged when a constant is added to every entry of `site`; draws are centred to sum to 0."""

    site: str


@dataclass(frozen=True)
class Scale:
    """The likelihood is unchanged when `up` is multiplied and `down` is divided by the same positive number.

    Sites that do not enter the likelihood (a prior's scale) may be listed too: moving them along keeps
    the prior density of what they govern in proportion, which makes the move longer.
    The priors say where on the orbit the posterior lies, so draws are not rescaled.
    """

    up: tuple[str, ...]
    down: tuple[str, ...]


@dataclass(frozen=True)
class Sign:
    """The likelihood is unchanged when all `sites` change sign together; the prior must prefer one of the two."""

    sites: tuple[str, ...]


Symmetry = Shift | Scale | Sign


@dataclass(frozen=True)
class Model[Data](abc.ABC):
    """A generative model of judgements. Subclasses are final frozen dataclasses whose fields are hyper-parameters.

    A subclass writes `generate`; that alone buys `raters.NUTS`, `raters.SVI` and every verb. `blocks` buys the Pólya-Gamma
    back-ends: each block is one latent site, or several that are updated jointly, in which the logits
    are affine and whose priors are Gaussian, truncated Gaussian or uniform, or a site with a Dirichlet or Beta prior whose
    probabilities are counted. The claim is checked before sampling.
    """

    reference: ClassVar[str] = ""
    observed: ClassVar[str] = "outcome"
    takes: ClassVar[type] = Judgements

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """Conjugate blocks, in the order in which they are updated."""
        return ()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Transformations that leave the likelihood unchanged."""
        return ()

    @abc.abstractmethod
    def generate(self, data: Data) -> None:
        """The NumPyro program. Outcomes that are None in `data` are drawn."""

    @abc.abstractmethod
    def start(self, data: Data) -> Values:
        """A point of finite density from which optimisers and samplers set out, on the right side of each symmetry."""

    def why_not(self, data: Data) -> str | None:
        """The sentence that says why this model cannot be fitted to these data, or None."""
        return None

    def cautions(self, data: Data) -> tuple[str, ...]:
        """Sentences about what these data cannot tell this model; `raters.fit` warns of each."""
        return ()

    def doubts(self, result: Any) -> tuple[str, ...]:
        """Sentences about what is wrong with a fit that diagnostics of convergence do not see; `raters.fit` warns of each."""
        return ()


def identify(model: Model, values: dict[str, np.ndarray], batch_ndim: int) -> dict[str, np.ndarray]:
    """Draws on the identified section: for every `Shift`, centred over the site's own axes.

    Exact for independent equal normal priors, because the likelihood does not see the shift and a normal vector's mean is
    independent of its deviations from the mean.
    """
    identified = dict(values)
    for symmetry in model.symmetries:
        if isinstance(symmetry, Shift):
            site = identified[symmetry.site]
            axes = tuple(range(batch_ndim, site.ndim))
            identified[symmetry.site] = site - site.mean(axis=axes, keepdims=True)
    return identified
