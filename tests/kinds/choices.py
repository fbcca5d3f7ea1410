"""A kind of judgement outside the package: a chooser takes one of the alternatives offered, whose
number varies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import raters as rt
from raters.distributions import Repeated
from raters.errors import DataError
from raters.judgements.names import encode_names, name_text
from raters.judgements.reading.columns import read_columns
from raters.judgements.roles import of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Choices(rt.judgements.Judgements):
    """Choices of one of several alternatives: `offered` has a code for each place, −1 where a set
    is shorter."""

    chooser: Any
    offered: Any = of_axes("choice", "place")
    chosen: Any
    count: Any
    choosers: tuple[Any, ...] = static()
    alternatives: tuple[Any, ...] = static()

    axes: ClassVar[Mapping[str, str]] = {
        "chooser": "chooser",
        "offered": "alternative",
        "chosen": "alternative",
    }
    names: ClassVar[Mapping[str, str]] = {"chooser": "choosers", "alternative": "alternatives"}
    answer: ClassVar[str] = "chosen"
    row: ClassVar[str] = "choice"
    judge: ClassVar[str] = "chooser"
    again: ClassVar[bool] = True

    @classmethod
    def from_frame(cls, frame: Any, *, chooser: str, offered: str, chosen: str) -> Choices:
        """Read choices from a table with one row for each.

        Parameters
        ----------
        frame : table
        chooser : str
            Column with who chose.
        offered : str
            Column with the names of the alternatives offered, separated by ``|``.
        chosen : str
            Column with the alternative that was taken.
        """
        columns = read_columns(frame, chooser=chooser, offered=offered, chosen=chosen)
        (who,), choosers = encode_names([columns["chooser"]], None, "chooser")
        texts = [str(columns["offered"].values[code]) for code in columns["offered"].code]
        sets = [text.split("|") for text in texts]
        names = tuple(sorted(set().union(*sets)))
        code = {name: place for place, name in enumerate(names)}
        table = np.full((len(sets), max(map(len, sets))), -1, np.int32)
        for row, members in enumerate(sets):
            table[row, : len(members)] = [code[name] for name in members]
        taken = [name_text(columns["chosen"].values[code]) for code in columns["chosen"].code]
        for row, (name, members) in enumerate(zip(taken, sets, strict=True)):
            if name not in members:
                raise DataError(
                    f"row {row} chooses {name!r}, which was not offered", parameter="chosen"
                )
        return cls(
            who, table, np.array([code[name] for name in taken], np.int32), None, choosers, names
        )

    def canonical(self) -> Choices:
        """A set is the same in whatever order it is shown; −1 stays behind."""
        offered = np.asarray(self.offered)
        key = np.where(offered < 0, len(self.alternatives), offered)
        return dataclasses.replace(self, offered=np.take_along_axis(offered, key.argsort(1), 1))

    def answers(self) -> np.ndarray:
        return np.arange(len(self.alternatives))

    def answer_words(self, row: int) -> dict[str, float]:
        """Only what was offered can be chosen."""
        offered = np.asarray(self.offered)[row]
        return {name_text(self.alternatives[code]): float(code) for code in offered[offered >= 0]}


@dataclass(frozen=True)
class MultinomialLogit(rt.Model[Choices]):
    r"""Multinomial logit with a consistency of each chooser: :math:`P(j) \propto \exp(\beta_k
    u_j)`.

    Parameters
    ----------
    utility_scale : float
        Standard deviation of the utilities.
    """

    utility_scale: float = 1.5

    def generate(self, data: Choices) -> None:
        with numpyro.plate("alternative", len(data.alternatives)):
            utility = numpyro.sample("utility", dist.Normal(0.0, self.utility_scale))
        with numpyro.plate("chooser", len(data.choosers)):
            consistency = numpyro.sample("consistency", dist.LogNormal(0.0, 0.5))
        offered = (data.offered[:, :, None] == jnp.arange(len(data.alternatives))).any(1)
        logits = jnp.where(offered, consistency[data.chooser][:, None] * utility, -1e9)
        with numpyro.plate("choice", data.num_rows):
            numpyro.sample(
                "chosen", Repeated(dist.Categorical(logits=logits), data.count), obs=data.chosen
            )


PICKS = rt.kinds.register(
    rt.kinds.Kind(
        data=Choices,
        models=(MultinomialLogit,),
        words=rt.kinds.Words("choice", "choices"),
        threshold=0.5,
        # The package has choices of its own.
        name="picks",
    )
)


def table(num_choices: int = 120, num_choosers: int = 4, seed: int = 0) -> dict[str, Any]:
    """A table of simulated choices from sets of two to four of five alternatives."""
    rng = np.random.default_rng(seed)
    utility = {"a": 1.5, "b": 0.8, "c": 0.0, "d": -0.8, "e": -1.5}
    rows: dict[str, Any] = {"who": [], "menu": [], "took": []}
    for _ in range(num_choices):
        menu = rng.choice(list(utility), rng.integers(2, 5), replace=False).tolist()
        weight = np.exp([utility[name] for name in menu])
        rows["who"].append(f"k{rng.integers(num_choosers)}")
        rows["menu"].append("|".join(menu))
        rows["took"].append(menu[rng.choice(len(menu), p=weight / weight.sum())])
    return rows
