"""Known truths that would settle the verdicts that are open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped

from raters.auditing.truth.true_classes import PRIOR
from raters.auditing.verdicts import DIFFERS, Costs
from raters.judgements.base import Judgements

# Numbers of known truths that are looked at, and draws of each annotator that are read.
_NUMBERS, _DRAWS = (10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000), 200
# Of more judges than this a random sample stands for all.
_JUDGES = 60
# A plan that settles fewer verdicts than this is none.
_LEAST = 0.5
# Verdicts that known truths may settle, and those that they may put back under review.
_OPEN, _DECIDED = ("review", DIFFERS), ("keep", "drop")
# Answers that an annotator has among the known ones are counted up to this.
_MOST = 300

PerDraw = Shaped[np.ndarray, " *draw"]


class Settling(NamedTuple):
    """Known truths that would settle the verdicts that are open: `settled` is by how many fewer are
    expected to be open."""

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
    verdict: Shaped[np.ndarray, " judge"],
    accuracy: Float[np.ndarray, "draw judge"],
    is_bad: Bool[np.ndarray, "draw judge"],
    costs: Costs,
    seed: int,
    known: Int[np.ndarray, " question"] | None = None,
) -> Settling | None:
    """Number of truths of random questions that would settle the verdicts that are open, and put
    few of those that are decided back under review; None where none would."""
    is_open, is_decided = (np.isin(verdict.astype(str), some) for some in (_OPEN, _DECIDED))
    judge, about, _, weight = data.tallies()
    asked = weight > 0 if known is None else (weight > 0) & ~np.isin(about, known)
    if not (is_open[judge] & asked).any():
        return None
    subjects = np.unique(about[asked])
    every = np.unique(np.stack([judge[asked], about[asked]]), axis=1)
    answered = np.bincount(every[0], minlength=len(is_open)) / len(subjects)
    step, rng = max(1, len(accuracy) // _DRAWS), np.random.default_rng(seed)
    accuracy, is_bad = accuracy[::step], is_bad[::step]
    mean = np.clip(accuracy.mean(1), 1e-3, 1 - 1e-3)
    # Answers to one question depend on each other.
    variance = np.exp(PRIOR.dependence[0]) * (mean * (1 - mean)).mean()
    those = [np.flatnonzero(some) for some in (is_open, is_decided)]
    some = [np.sort(rng.choice(part, min(len(part), _JUDGES), replace=False)) for part in those]

    def still_open(number: int, part: Int[np.ndarray, " some"]) -> float:
        counts = np.minimum(np.round(answered[part] * number), _MOST).astype(int).tolist()
        # Likelihood of each draw's mean accuracy where another's is true, by so many answers.
        alike = np.exp(-((mean[:, None] - mean) ** 2) / (2 * (variance / number)))
        each = zip(counts, accuracy[:, part].T, is_bad[:, part].T, strict=True)
        return float(np.sum([_share_open(*one, alike, costs) for one in each])) / max(len(part), 1)

    numbers = [number for number in _NUMBERS if number < len(subjects)] + [len(subjects)]
    sizes = [len(part) for part in those]
    settled, number = 0.0, 0
    for more in numbers:
        shares = [still_open(more, part) for part in some]
        fewer = sizes[0] * (1 - shares[0]) - sizes[1] * shares[1]
        settled, number = max((settled, number), (fewer, more))
        if settled > sizes[0] / 2:
            break
    if settled < _LEAST:
        return None
    chosen = rng.permutation(subjects)[:number]
    codes, rows = np.unique(data.about(), return_index=True)
    asked_of = data.rows(rows[np.searchsorted(codes, chosen)]).question_names()
    names = {name: one for name, one in asked_of.items() if name != "by"}
    return Settling(sizes[0], number, settled, pd.DataFrame(names))


def _share_open(count: int, accuracy: PerDraw, bad: PerDraw, alike: PerDraw, costs: Costs) -> float:
    """Probability that a verdict is open after so many known answers."""
    from scipy.stats import binom

    right = np.arange(count + 1)
    likelihood = binom.pmf(right, count, np.clip(accuracy, 1e-6, 1 - 1e-6)[:, None])
    p_bad = alike @ (likelihood * bad[:, None]) / (alike @ likelihood)
    cost = np.minimum(p_bad * costs.keep_bad, (1 - p_bad) * costs.drop_good)
    return float((likelihood * (cost > costs.review)).sum(1).mean())
