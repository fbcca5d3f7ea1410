"""Model of the ability of annotators and the difficulty of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.judgements.labels import Labels
from raters.model import Scale, Symmetry, Values
from raters.models.labels import _sites


@dataclass(frozen=True)
class ItemDifficulty(_sites.AbilityModel):
    r"""Model of ability × ease, as GLAD: labels are right more often by able annotators and on easy
    items.

    .. math::

        P(y_{ia} = j \mid t_i = k)
        = \frac{\exp(\alpha_a \beta_i [j = k])}{\exp(\alpha_a \beta_i) + K - 1}, \qquad
        t_i \sim \mathrm{Categorical}(p), \\
        \alpha_a \sim \mathrm{Normal}(\bar\alpha, \phi), \quad
        \beta_i \sim \mathrm{Normal}(1, \tau) \text{ on } [0, \infty), \\
        \bar\alpha \sim \mathrm{Normal}(2, 1), \quad \phi \sim \mathrm{LogNormal}(0, ½), \quad
        \tau \sim \mathrm{LogNormal}(\log ½, ½), \quad p \sim \mathrm{Dirichlet}(1, \dots, 1)

    A guesser has ability 0, an adversary a negative one. On an item of ease 0 everyone guesses; 1/β
    is GLAD's difficulty. Departures from GLAD: with K > 2 classes a guesser is right with
    probability 1/K here, ½ there; the scales of ability and ease are learned; the ease is truncated
    normal, not log-normal, which makes it conjugate.

    Identification: the likelihood is invariant to the scale, (α, β) → (c·α, β/c); the prior
    determines it, with the reference item at β = 1.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> model = rt.models.ItemDifficulty()
    >>> result = rt.fit(model, labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["ease"].dims
    ('item',)
    """

    reference: ClassVar[str] = "whitehill2009whose"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        scale = Scale(up=("ability", "ability_mean", "ability_spread"), down=("ease",))
        return (scale, *super().symmetries)

    def logits(self, data: Labels) -> Float[Array, "row 1"]:
        mean = numpyro.sample("ability_mean", dist.Normal(2.0, 1.0))
        spread = numpyro.sample("ability_spread", dist.LogNormal(0.0, 0.5))
        ease_spread = numpyro.sample("ease_spread", dist.LogNormal(jnp.log(0.5), 0.5))
        with numpyro.plate("annotator", data.num_annotators):
            ability = numpyro.sample("ability", dist.Normal(mean, spread))
        with numpyro.plate("item", data.num_items):
            ease = numpyro.sample("ease", dist.TruncatedNormal(1.0, ease_spread, low=0.0))
        logits = ability[data.annotator] * ease[data.item] - jnp.log(data.num_classes - 1.0)
        return logits[:, None]

    def start_labels(self, data: Labels) -> Values:
        return _sites.start_ability(data, ease_spread=0.5) | {"ease": np.ones(data.num_items)}
