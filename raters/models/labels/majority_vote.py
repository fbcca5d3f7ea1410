"""Majority vote as a Bayesian model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions.labels import RightOrWrongLabel
from raters.judgements.labels import Labels
from raters.model import Model, Values
from raters.models.labels import _sites


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

    reference: ClassVar[str] = "sheng2008get"

    def generate(self, data: Labels) -> None:
        ability = numpyro.sample("ability", dist.TruncatedNormal(1.5, 1.0, low=0.0))
        logits = jnp.broadcast_to(ability - jnp.log(data.num_classes - 1.0), (data.num_rows, 1))
        uniform = dist.Categorical(probs=jnp.full(data.num_classes, 1 / data.num_classes))
        _sites.observe(uniform, RightOrWrongLabel(logits, data.num_classes), data)

    def start(self, data: Labels) -> Values:
        return {"ability": np.asarray(1.5)}

    def why_not(self, data: Labels) -> str | None:
        return _sites.why_not_record(data, type(self).__name__)
