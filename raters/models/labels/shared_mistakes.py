"""Model of families of annotators that make the same mistakes."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float

from raters.errors import Reason
from raters.judgements.labels import Labels
from raters.model import Local, Values
from raters.models.base import worded
from raters.models.labels import _sites
from raters.terms.base import sample_about_mean, sample_vectors


@dataclass(frozen=True)
class SharedMistakes(_sites.AbilityModel):
    r"""Model of families of annotators, such as LLM judges with one base model, that are right and
    wrong together.

    .. math::

        P(y_{ia} = j \mid t_i = k) = \begin{cases} \sigma(\psi_{iak}) & j = k \\
        (1 - \sigma(\psi_{iak})) / (K - 1) & j \ne k \end{cases}, \qquad
        \psi_{iak} = \alpha_a + u_{f(a), i} + v_{ik} - \log(K - 1), \\
        t_i \sim \mathrm{Categorical}(p), \quad p \sim \mathrm{Dirichlet}(1, \dots, 1), \\
        \alpha_a \sim \mathrm{Normal}(\bar\alpha, \phi), \quad
        u_{fi} \sim \mathrm{Normal}(0, \tau), \quad v_{ik} \sim \mathrm{Normal}(0, \omega), \\
        \bar\alpha \sim \mathrm{Normal}(2, 1), \quad \phi \sim \mathrm{LogNormal}(0, ½), \quad
        \tau, \omega \sim \mathrm{LogNormal}(\log ½, 1)

    :math:`u_{fi}` is the effect of family f on item i: below :math:`-\alpha` most of the family is
    wrong. v, present only with ``item_effects=True``, is by how much easier item i is if its class
    is k: an item may look like another class to everybody. At τ = 0, and without v, this is
    `OneCoin` with another prior.

    An annotator without a family, or alone in one, has no effect u. With more than two classes, the
    wrong labels of a family are independent of each other, so labels that agree on a wrong class
    still count as more evidence than they are.

    Known truths (`raters.Labels.with_truth`) inform τ and ω; without them the crowd outside the
    family does. What all families get wrong together no label shows.

    Parameters
    ----------
    item_effects : bool
        Learn the effects v of items.

    Examples
    --------
    >>> import raters as rt
    >>> labels, _ = rt.datasets.label_crowd(60, 4, 2, 3, seed=0)
    >>> table = labels.to_frame()
    >>> table["vendor"] = ["A" if who < 2 else "B" for who in table["annotator"]]
    >>> labels = rt.Labels.from_frame(
    ...     table, item="item", annotator="annotator", label="label", count="count",
    ...     family="vendor")
    >>> result = rt.fit(rt.SharedMistakes(), labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["family_effect"].dims
    ('family', 'item')
    """

    item_effects: bool = False

    reference = "paun2018comparing"

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        items = (("item_effect",),) if self.item_effects else ()
        return (("prevalence",), ("ability",), ("family_effect",), *items)

    @property
    def exchanged(self) -> tuple[tuple[str, int], ...]:  # type: ignore[override]
        return (("item_effect", -1),) if self.item_effects else ()

    @property
    def negated(self) -> tuple[str, ...]:  # type: ignore[override]
        items = ("item_effect",) if self.item_effects else ()
        return ("ability", "ability_mean", "family_effect", *items)

    @property
    def facts(self) -> tuple[Local, ...]:
        items = ("item_effect",) if self.item_effects else ()
        return (Local(("family_effect", *items)),)

    def logits(self, data: Labels) -> Float[Array, "row 1"] | Float[Array, "row true_class"]:
        mean, spread = dist.Normal(2.0, 1.0), dist.LogNormal(0.0, 0.5)
        ability = sample_about_mean("ability", mean, spread, data.num_annotators)
        chance = jnp.log(data.num_classes - 1.0)
        logits = ability[data.annotator] + _family_effects(data) - chance
        if not self.item_effects:
            return logits[:, None]
        effect = _effects("item", data.num_items, "true_class", data.num_classes)
        return logits[:, None] + effect[data.item[:, None], jnp.arange(data.num_classes)]

    def start_labels(self, data: Labels) -> Values:
        start = _sites.start_ability(data) | {
            "family_spread": np.asarray(0.5),
            "family_effect": np.zeros((data.num_families, data.num_items)),
        }
        if self.item_effects:
            start["item_spread"] = np.asarray(0.5)
            start["item_effect"] = np.zeros((data.num_items, data.num_classes))
        return start

    def why_not(self, data: Labels) -> str | None:
        if data.family is None:
            problem = "is not given, and SharedMistakes learns what a family gets wrong together"
            expected = "name the column of the annotators' families"
            return Reason("family", problem=problem, expected=expected)
        family = np.asarray(data.family)
        if np.bincount(family[family >= 0], minlength=1).max() < 2:
            expected = "annotators of one family must have the same name in it"
            return Reason("family", problem="has one annotator in each", expected=expected)
        return super().why_not(data)

    def data_warnings(self, data: Labels) -> tuple[str, ...]:
        family = np.asarray(data.family)[np.asarray(data.judgements_by("annotator")) > 0]
        if data.num_known or len(family) == 0 or family[0] < 0 or (family != family[0]).any():
            return ()
        return (worded("one_family"),)


def _effects(axis: str, size: int, event: str, width: int) -> Float[Array, "group event"]:
    """Sample effects about 0 and their size: one axis of a plate and one of the event."""
    spread = numpyro.sample(f"{axis}_spread", dist.LogNormal(jnp.log(0.5), 1.0))
    return sample_vectors(f"{axis}_effect", spread, (axis, size), (event, width))


def _family_effects(data: Labels) -> Float[Array, " row"]:
    """Effect of each row's family on its item, 0 for an annotator without kin."""
    effect = _effects("family", data.num_families, "item", data.num_items)
    kin = _kin(data)[data.annotator]
    family = jnp.where(kin, data.codes("family"), 0)
    return jnp.where(kin, effect[family, data.item], 0.0)


def _kin(data: Labels) -> Bool[Array, " annotator"]:
    """True for annotators with another one in their family."""
    family = jnp.asarray(data.family)
    place = jnp.where(family >= 0, family, 0)
    number = jnp.zeros(data.num_families, int).at[place].add(family >= 0)
    return (family >= 0) & (number[place] > 1)
