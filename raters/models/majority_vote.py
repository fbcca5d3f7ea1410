"""Majority vote, as the model whose posterior it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.distributions import RightOrWrongLabel
from raters.labels import Labels
from raters.model import Model, Values
from raters.models import _labels


@dataclass(frozen=True)
class MajorityVote(Model[Labels]):
    r"""Majority vote: every annotator equally accurate, every class equally frequent, every mistake equally likely.

    .. math::

        t_i \sim \mathrm{Uniform}\{1, \dots, K\}, \qquad
        P(y_{ia} = j \mid t_i = k) = \begin{cases} \alpha & j = k \\ (1 - \alpha)/(K - 1) & j \ne k \end{cases}, \qquad
        \alpha \sim \mathrm{Beta}(a, b)

    Under this model the most probable class of an item is the one that most of its labels name, so this is majority
    vote with a probability attached, and with a likelihood that ``arviz.compare`` sets against those of better models. Classes
    that are named equally often are equally probable; the first of them, in the order of the classes, is then reported
    as the item's label.

    Parameters
    ----------
    right, wrong : float
        Concentrations a and b of the accuracy: how many right and wrong labels the prior is worth.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.Labels.from_frame(
    ...     {"i": [1, 1, 1, 2, 2], "who": list("abcab"), "says": ["x", "x", "y", "x", "y"]},
    ...     item="i", annotator="who", label="says")
    >>> result = rt.fit(rt.MajorityVote(), labels, rt.PGEM(), seed=0, progress=False)
    >>> result["classes"]["responsibility"].sel(item=2).values.round(2).tolist()        # a tie
    [0.5, 0.5]
    """

    right: float = 2.0
    wrong: float = 1.0

    observed: ClassVar[str] = "label"
    takes: ClassVar[type] = Labels
    reference: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _labels.plain_positive(self, "right", "wrong")

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The accuracy."""
        return (("accuracy",),)

    def generate(self, data: Labels) -> None:
        """The NumPyro program."""
        right, wrong = _labels.beta_record(data)
        accuracy = numpyro.sample("accuracy", dist.Beta(self.right + right.sum(), self.wrong + wrong.sum()))
        logits = jnp.broadcast_to(jnp.log(accuracy) - jnp.log1p(-accuracy), (data.num_rows, 1))
        even = dist.Categorical(probs=jnp.full(data.num_classes, 1 / data.num_classes))
        _labels.observe(even, RightOrWrongLabel(logits, data.num_classes), data)

    def start(self, data: Labels) -> Values:
        """The share of labels that agree with the majority."""
        return {
            "accuracy": np.clip(np.average(_labels.start_accuracy(data), weights=1 + data.votes_by_annotator()), 0.05, 0.95)
        }

    def doubts(self, result: Any) -> tuple[str, ...]:
        """A crowd that is right less often than by chance."""
        return _labels.worse_than_chance(result)
