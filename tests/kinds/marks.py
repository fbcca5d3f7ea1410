"""A kind of judgement outside the package whose rows belong together: readers mark sentences of
texts as good or not. A question also has a number, the place of the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import raters as rt
from raters.distributions import Votes
from raters.judgements.grouped import Grouped
from raters.judgements.reading.columns import read_columns, read_numbers
from raters.judgements.roles import of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Marks(Grouped):
    """Marks of sentences: how many of `count` are good."""

    group: Any
    reader: Any
    place: Any
    good: Any
    count: Any
    unit_code: Any = of_axes("unit")
    texts: tuple[Any, ...] = static()
    readers: tuple[Any, ...] = static()
    most: int = static(default=1, derived=True)
    even: bool = static(default=False)

    axes: ClassVar[Mapping[str, str]] = {"unit_code": "text", "reader": "reader"}
    names: ClassVar[Mapping[str, str]] = {"text": "texts", "reader": "readers"}
    answer: ClassVar[str] = "good"
    row: ClassVar[str] = "mark"
    unit: ClassVar[str] = "text"
    judge: ClassVar[str] = "reader"
    answer_scale: ClassVar[Any] = "binary"

    @classmethod
    def from_frame(
        cls, frame: Any, *, text: str, reader: str, place: str, good: str, count: str | None = None
    ) -> Marks:
        """Read marks from a table with one row for each.

        Parameters
        ----------
        frame : table
        text : str
            Column with the text.
        reader : str
            Column with who read it.
        place : str
            Column with the place of the sentence.
        good : str
            Column with 1 for a good sentence and 0 for another.
        count : str, optional
            Column with the number of equal marks.
        """
        columns = read_columns(frame, text=text, reader=reader, place=place, good=good, count=count)
        what, texts = columns.codes("text")
        who, readers = columns.codes("reader")
        number = columns.counts()
        good_ones = read_numbers(columns["good"]) * (1 if number is None else number)
        rows = {
            "reader": who,
            "place": read_numbers(columns["place"]).astype(np.float32),
            "good": good_ones.astype(np.float32),
            "count": number,
        }
        return cls.of_all(what, rows, texts=texts, readers=readers)

    def answer_words(self, row: int) -> dict[str, float]:
        return {"bad": 0.0, "good": 1.0}


@dataclass(frozen=True)
class Mild(rt.Model[Marks]):
    """Quality of each text, mildness of each reader, and a slope along the text.

    Parameters
    ----------
    quality_scale : float
        Standard deviation of the qualities.
    """

    quality_scale: float = 1.0
    blocks = (("quality",), ("mildness",), ("slope",))

    def generate(self, data: Marks) -> None:
        with numpyro.plate("text", len(data.texts)):
            quality = numpyro.sample("quality", dist.Normal(0.0, self.quality_scale))
        with numpyro.plate("reader", len(data.readers)):
            mildness = numpyro.sample("mildness", dist.Normal(0.0, 1.0))
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
        text = data.unit_code[data.group]
        logits = quality[text] + mildness[data.reader] + slope * jnp.asarray(data.place)
        one = data.count is None
        good = dist.Bernoulli(logits=logits) if one else Votes(logits, data.count)
        with numpyro.plate("mark", data.num_rows):
            numpyro.sample("good", good, obs=data.good)


MARKS = rt.kinds.register(
    rt.kinds.Kind(data=Marks, models=(Mild,), words=rt.kinds.Words("mark", "marks"), threshold=-1.0)
)


def table(num_texts: int = 8, num_readers: int = 5, seed: int = 0) -> dict[str, Any]:
    """A table of simulated marks of three sentences of each text; some stand for several."""
    rng = np.random.default_rng(seed)
    quality, mildness = rng.normal(size=num_texts), np.linspace(-1, 1, num_readers)
    text, reader, place = (grid.ravel() for grid in np.indices((num_texts, num_readers, 3)))
    chance = 1 / (1 + np.exp(-quality[text] - mildness[reader] + 0.5 * place))
    return {
        "page": [f"t{code}" for code in text],
        "who": [f"r{code}" for code in reader],
        "sentence": place,
        "good": (rng.random(len(text)) < chance).astype(int),
        "times": rng.integers(1, 3, len(text)),
    }
