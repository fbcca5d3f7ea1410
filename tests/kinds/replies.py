"""A kind of judgement outside the package: persons answer items right or wrong; a 2PL model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import raters as rt
from raters.distributions import Votes
from raters.judgements.reading.columns import read_columns, read_numbers
from raters.judgements.roles import static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Replies(rt.judgements.Judgements):
    """Replies of persons to items: how many of `count` are right."""

    person: Any
    item: Any
    correct: Any
    count: Any
    persons: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()

    axes: ClassVar[Mapping[str, str]] = {"person": "person", "item": "item"}
    names: ClassVar[Mapping[str, str]] = {"person": "persons", "item": "items"}
    answer: ClassVar[str] = "correct"
    row: ClassVar[str] = "response"
    judge: ClassVar[str] = "person"
    answer_scale: ClassVar[Any] = "binary"

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str,
        item: str,
        correct: str,
        persons: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
    ) -> Replies:
        """Read responses from a table with one row for each.

        Parameters
        ----------
        frame : table
        person : str
            Column with who responded.
        item : str
            Column with what was asked.
        correct : str
            Column with 1 for a right response and 0 for a wrong one.
        persons, items : iterable, optional
            All names in the order wanted.
        """
        columns = read_columns(frame, person=person, item=item, correct=correct)
        who, person_names = columns.codes("person", persons)
        what, item_names = columns.codes("item", items)
        right = read_numbers(columns["correct"]).astype(np.float32)
        return cls(who, what, right, None, person_names, item_names)

    @property
    def num_responses(self) -> int:
        return self.num_rows


@dataclass(frozen=True)
class OwnTwoPL(rt.Model[Replies]):
    r"""Two-parameter logistic model: :math:`P(\text{right}) = \sigma(a_i (\theta_p - b_i))`.

    Parameters
    ----------
    ability_scale : float
        Standard deviation of the abilities.
    """

    ability_scale: float = 1.0

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        return (("ability",), ("discrimination",), ("intercept",))

    def generate(self, data: Replies) -> None:
        with numpyro.plate("person", len(data.persons)):
            ability = numpyro.sample("ability", dist.Normal(0.0, self.ability_scale))
        with numpyro.plate("item", len(data.items)):
            prior = dist.TruncatedNormal(1.0, 0.5, low=0.0)
            discrimination = numpyro.sample("discrimination", prior)
            intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.5))
        logits = discrimination[data.item] * ability[data.person] + intercept[data.item]
        with numpyro.plate("response", data.num_responses):
            one = data.count is None
            right = dist.Bernoulli(logits=logits) if one else Votes(logits, data.count)
            numpyro.sample("correct", right, obs=data.correct)

    def start(self, data: Replies) -> dict[str, Any]:
        return {
            "ability": jnp.zeros(len(data.persons)),
            "discrimination": jnp.ones(len(data.items)),
            "intercept": jnp.zeros(len(data.items)),
        }


REPLIES = rt.kinds.register(
    rt.kinds.Kind(
        data=Replies,
        models=(OwnTwoPL,),
        words=rt.kinds.Words("response", "responses"),
        threshold=-1.0,
    )
)


def table(num_persons: int = 30, num_items: int = 8, seed: int = 0) -> dict[str, Any]:
    """A table of simulated responses."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=num_persons), np.linspace(-1.5, 1.5, num_items)
    person, item = (grid.ravel() for grid in np.indices((num_persons, num_items)))
    right = rng.random(len(person)) < 1 / (1 + np.exp(difficulty[item] - ability[person]))
    return {
        "who": [f"p{code:02d}" for code in person],
        "question": [f"q{code}" for code in item],
        "right": right.astype(int),
    }
