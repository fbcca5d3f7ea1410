"""Ability of annotators against difficulty of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters._check import plain_positive
from raters.distributions import RightOrWrongLabel
from raters.labels import Labels
from raters.model import Model, Scale, Symmetry, Values
from raters.models import _labels


@dataclass(frozen=True)
class ItemDifficulty(Model[Labels]):
    r"""Ability × ease, as GLAD: able annotators are right more often, and everyone is right more often on easy items.

    .. math::

        P(y_{ia} = j \mid t_i = k) = \frac{\exp(\alpha_a \beta_i [j = k])}{\exp(\alpha_a \beta_i) + K - 1}, \qquad
        t_i \sim \mathrm{Categorical}(p), \\
        \alpha_a \sim \mathrm{Normal}(\bar\alpha, \phi), \quad \beta_i \sim \mathrm{Normal}(1, \tau) \text{ on } [0, \infty), \\
        \bar\alpha \sim \mathrm{Normal}(2, 1), \quad \phi \sim \mathrm{LogNormal}(0, ½), \quad
        \tau \sim \mathrm{LogNormal}(\log ½, ½), \quad p \sim \mathrm{Dirichlet}(c, \dots, c)

    An ability of 0 is a guesser, below 0 an adversary; an ease of 0 is an item on which everyone guesses, and 1/β is GLAD's
    difficulty. Departures from GLAD: with K > 2 classes a guesser is right with probability 1/K here, ½ there; the
    scales of ability and ease are learned; the ease is half-normal, not log-normal, which makes it conjugate.

    Identification: the likelihood ignores the scale, (α, β) → (c·α, β/c); the prior puts the reference item at β = 1.

    Parameters
    ----------
    prevalence : float
        Concentration c of the class frequencies; 1 is flat.

    References
    ----------
    Whitehill, J. et al. (2009). Whose vote should count more: optimal integration of labels from labelers of unknown
    expertise. NeurIPS 22.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> result = rt.fit(rt.ItemDifficulty(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["ease"].dims
    ('item',)
    """

    prevalence: float = 1.0

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = r"""
    @inproceedings{whitehill2009whose,
      author    = {Whitehill, Jacob and Ruvolo, Paul and Wu, Tingfan and Bergsma, Jacob and Movellan, Javier},
      title     = {Whose Vote Should Count More: Optimal Integration of Labels from Labelers of Unknown Expertise},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2009},
      volume    = {22},
      pages     = {2035--2043},
    }
    """

    def __post_init__(self) -> None:
        plain_positive(self, "prevalence")

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The class frequencies, the abilities, the eases."""
        return (("prevalence",), ("ability",), ("ease",))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The scale of the abilities against that of the eases."""
        return (Scale(up=("ability", "ability_mean", "ability_spread"), down=("ease",)),)

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        prevalence = _labels.sample_prevalence(self.prevalence, data)
        mean = numpyro.sample("ability_mean", dist.Normal(2.0, 1.0))
        spread = numpyro.sample("ability_spread", dist.LogNormal(0.0, 0.5))
        ease_spread = numpyro.sample("ease_spread", dist.LogNormal(jnp.log(0.5), 0.5))
        with numpyro.plate("annotator", data.num_annotators):
            ability = numpyro.sample("ability", dist.Normal(mean, spread))
        with numpyro.plate("item", data.num_items):
            ease = numpyro.sample("ease", dist.TruncatedNormal(1.0, ease_spread, low=0.0))
        logits = ability[data.annotator] * ease[data.item] - jnp.log(data.num_classes - 1.0)
        _labels.observe(dist.Categorical(probs=prevalence), RightOrWrongLabel(logits[:, None], data.num_classes), data)

    def start(self, data: Labels) -> Values:
        """Log-odds of agreement with the majority; every item alike."""
        accuracy = np.clip(_labels.start_accuracy(data), 0.05, 0.95)
        return {
            "prevalence": _labels.start_prevalence(data),
            "ability_mean": np.asarray(2.0),
            "ability_spread": np.asarray(1.0),
            "ease_spread": np.asarray(0.5),
            "ability": np.log(accuracy / (1 - accuracy)) + np.log(data.num_classes - 1),
            "ease": np.ones(data.num_items),
        }

    def why_not(self, data: Labels) -> str | None:
        """An earlier record has nothing to inform."""
        return _labels.why_not_record(data, type(self).__name__)

    def doubts(self, result: Any) -> tuple[str, ...]:
        """A crowd that is right less often than by chance."""
        ability = result["posterior"]["ability"].mean(("draw", "annotator"))
        low = [int(chain) for chain in ability["chain"].values if float(ability.sel(chain=chain)) < 0]
        return (_labels.CHANCE.format(chains=low),) if low else ()
