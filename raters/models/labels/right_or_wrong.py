"""Models in which labels are right or wrong, and wrong ones alike."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.labels import RightOrWrongLabel
from raters.judgements.labels import Labels
from raters.model import Model, Scale, Symmetry, Values
from raters.models.labels import _sites
from raters.models.labels._sites import AbilityModel, AccuracyModel
from raters.terms.base import sampled


@dataclass(frozen=True)
class MajorityVote(Model[Labels]):
    r"""Majority vote, as the model in which annotators, classes and mistakes are all alike.

    .. math::

        t_i \sim \mathrm{Uniform}\{1, \dots, K\}, \qquad
        P(y_{ia} = j \mid t_i = k) = \frac{\exp(\alpha [j = k])}{\exp(\alpha) + K - 1}, \qquad
        \alpha \sim \mathrm{Normal}(1.5, 1) \text{ on } [0, \infty)

    The ability α of all annotators is at least that of a guesser, 0; so the most probable class of
    an item is that of most of its labels. This is majority vote with a probability for each class,
    and with a likelihood that ``arviz.compare`` compares with other models. Classes with equally
    many labels are equally probable; the first of them, in the order of the classes, is then
    reported as the item's label.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.Labels.from_frame(
    ...     {"i": [1, 1, 1, 2, 2], "who": list("abcab"), "says": ["x", "x", "y", "x", "y"]},
    ...     item="i", annotator="who", label="says")
    >>> result = rt.fit(rt.models.MajorityVote(), labels, rt.PGEM(), seed=0, progress=False)
    >>> result["classes"]["responsibility"].sel(item=2).values.round(2).tolist()        # a tie
    [0.5, 0.5]
    """

    reference = "sheng2008get"

    def generate(self, data: Labels) -> None:
        ability = numpyro.sample("ability", dist.TruncatedNormal(1.5, 1.0, low=0.0))
        logits = jnp.broadcast_to(ability - jnp.log(data.num_classes - 1.0), (data.num_rows, 1))
        uniform = dist.Categorical(probs=jnp.full(data.num_classes, 1 / data.num_classes))
        _sites.observe(uniform, RightOrWrongLabel(logits, data.num_classes), data)

    def start(self, data: Labels) -> Values:
        return {"ability": np.asarray(1.5)}

    def why_not(self, data: Labels) -> str | None:
        return _sites.why_not_record(data, type(self).__name__)


@dataclass(frozen=True)
class OneCoin(AccuracyModel):
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

    reference = "zhang2016spectral"

    def accuracy(self, data: Labels) -> Float[Array, " annotator"]:
        right, wrong = _sites.beta_record(data)
        prior = dist.Beta(self.right + right, self.wrong + wrong)
        return sampled("accuracy", prior, annotator=data.num_annotators)


@dataclass(frozen=True)
class ItemDifficulty(AbilityModel):
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

    reference = "whitehill2009whose"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        scale = Scale(up=("ability", "ability_mean", "ability_spread"), down=("ease",))
        return (scale, *super().symmetries)

    def logits(self, data: Labels) -> Float[Array, "row 1"]:
        mean = numpyro.sample("ability_mean", dist.Normal(2.0, 1.0))
        spread = numpyro.sample("ability_spread", dist.LogNormal(0.0, 0.5))
        ease_spread = numpyro.sample("ease_spread", dist.LogNormal(jnp.log(0.5), 0.5))
        ability = sampled("ability", dist.Normal(mean, spread), annotator=data.num_annotators)
        truncated = dist.TruncatedNormal(1.0, ease_spread, low=0.0)
        ease = sampled("ease", truncated, item=data.num_items)
        logits = ability[data.annotator] * ease[data.item] - jnp.log(data.num_classes - 1.0)
        return logits[:, None]

    def start_labels(self, data: Labels) -> Values:
        return _sites.start_ability(data, ease_spread=0.5) | {"ease": np.ones(data.num_items)}
