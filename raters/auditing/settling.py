"""Known truths that would settle the verdicts that are open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from raters.auditing.verdicts import Costs
from raters.judgements.base import Judgements

# Numbers of known truths that are looked at, and draws of each annotator that are read.
_NUMBERS, _DRAWS = (10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000), 200
# Of more judges than this a random sample stands for all.
_JUDGES = 60
# Answers that an annotator has among the known ones are counted up to this.
_MOST = 300


class Settling(NamedTuple):
    """Known truths that would settle the verdicts that are open."""

    open: int
    number: int
    settled: float
    questions: pd.DataFrame

    @property
    def is_enough(self) -> bool:
        """True if most of the open verdicts are expected to be settled."""
        return self.settled > self.open / 2


def settling(
    data: Judgements,
    is_open: Bool[np.ndarray, " judge"],
    accuracy: Float[np.ndarray, "draw judge"],
    is_bad: Bool[np.ndarray, "draw judge"],
    costs: Costs,
    seed: int,
    known: Int[np.ndarray, " question"] | None = None,
) -> Settling | None:
    """Known truths that would settle the verdicts that are open."""
    judge, about, _, weight = data.tallies()
    asked = is_open[judge] & (weight > 0)
    if known is not None:
        asked &= ~np.isin(about, known)
    subjects = np.unique(about[asked])
    if not len(subjects):
        return None
    those = np.flatnonzero(is_open)
    every = np.unique(np.stack([judge[asked], about[asked]]), axis=1)
    answered = np.bincount(every[0], minlength=len(is_open))[those] / len(subjects)
    step, rng = max(1, len(accuracy) // _DRAWS), np.random.default_rng(seed)
    some = np.sort(rng.choice(len(those), min(len(those), _JUDGES), replace=False))
    draws = [(accuracy[::step, one], is_bad[::step, one]) for one in those[some]]

    def settled_by(number: int) -> float:
        counts = np.minimum(np.round(answered[some] * number), _MOST).astype(int)
        pairs = zip(counts.tolist(), draws, strict=True)
        shares = [_settled(count, *one, costs) for count, one in pairs]
        return float(np.mean(shares)) * len(those)

    numbers = [number for number in _NUMBERS if number < len(subjects)] + [len(subjects)]
    number, settled = 0, 0.0
    for number in numbers:
        settled = settled_by(number)
        if settled > len(those) / 2:
            break
    chosen = rng.permutation(subjects)[:number]
    return Settling(len(those), number, settled, _questions(data, chosen))


def _settled(
    count: int, accuracy: Float[np.ndarray, " draw"], bad: Bool[np.ndarray, " draw"], costs: Costs
) -> float:
    """Probability that so many known answers settle a verdict."""
    from scipy.stats import binom

    right = np.arange(count + 1)[:, None]
    likelihood = binom.pmf(right, count, np.clip(accuracy, 1e-6, 1 - 1e-6))
    probability = likelihood.mean(1)
    p_bad = (likelihood * bad).mean(1) / np.maximum(probability, 1e-300)
    cost = np.minimum(p_bad * costs.keep_bad, (1 - p_bad) * costs.drop_good)
    return float(probability[cost <= costs.review].sum())


def _questions(data: Judgements, subjects: Int[np.ndarray, " question"]) -> pd.DataFrame:
    """Names of the questions, in the order given."""
    numbers, rows = np.unique(data.about(), return_index=True)
    rows = rows[np.searchsorted(numbers, subjects)]
    names = {name: one for name, one in data.rows(rows).question_names().items() if name != "by"}
    return pd.DataFrame(names)
