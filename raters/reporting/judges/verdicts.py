"""Verdicts of judges and draws of what is true of the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.auditing.truth.calibration import Calibration
from raters.errors import refuse_data
from raters.judgements import row_columns
from raters.judgements.comparisons import Comparisons
from raters.judgements.counts import ranks
from raters.judgements.labels import Labels
from raters.judgements.names import name_text
from raters.judgements.reading.columns import read_number

# Answer of a tie; 0 and 1 stand for the two items of a pair in the order of their codes.
TIE, _UNKNOWN = -1, -2
_FLAGS = {"0": 0, "0.0": 0, "no": 0, "false": 0, "1": 1, "1.0": 1, "yes": 1, "true": 1}
Columns = Sequence[str]
# Rows, answers and weights of verdicts; the truth; and the answer that a side of each row means.
_Read = tuple[pd.DataFrame, Int[np.ndarray, "draw question"], dict[str, Int[np.ndarray, " row"]]]


class Verdicts(NamedTuple):
    """One row for each verdict: codes of the judge, the question and the answer, how often it was
    given; for the side that was shown first and the longer one, whether it was chosen (NaN where
    that is unknown), and the answer that means it."""

    table: pd.DataFrame
    truth: Int[np.ndarray, "draw question"]
    judges: tuple[Any, ...]

    def right(self, rows: pd.DataFrame) -> Float[np.ndarray, "draw row"]:
        """Whether verdicts are right under each draw of the truth; a tie is half right."""
        answer, truth = rows["answer"].to_numpy(), self.truth[:, rows["question"].to_numpy()]
        return np.where(answer == TIE, 0.5, truth == answer)

    def untied(self) -> pd.DataFrame:
        """The verdicts with each tie as half a verdict for either side."""
        tied = self.table["answer"] == TIE
        sides = [
            self.table[tied].assign(answer=side, weight=lambda t: t["weight"] / 2)
            for side in (0, 1)
        ]
        return pd.concat([self.table[~tied], *sides]) if tied.any() else self.table


def verdicts_of(
    data: Labels | Comparisons,
    found: Calibration,
    question: str,
    swapped: str,
    lengths: Columns,
    time: str,
) -> Verdicts:
    """Verdicts of labels or comparisons; each name is that of a column, or empty."""
    if isinstance(data, Labels):
        if question:
            problem, expected = "is of comparisons, and items are the questions", "leave it out"
            refuse_data("question", question, problem, expected)
        table, truth, sides = _of_labels(data, found, swapped, lengths)
    else:
        table, truth, sides = _of_comparisons(data, found, question, lengths)
    rows, answer = table["row"].to_numpy(), table["answer"].to_numpy()
    for role, side in sides.items():
        means = side[rows]
        known = (answer != TIE) & (means != _UNKNOWN)
        # Whether an answer is that of a side, and the answer that would be.
        table[role] = np.where(known, answer == means, np.nan)
        table[f"{role}_answer"] = means
    table["judge"] = np.asarray(data.codes(data.judge), int)[rows]
    if time:
        table["time"] = times(data, time)[rows]
    return Verdicts(table[table["weight"] > 0], truth, data.judges)


def _of_labels(data: Labels, found: Calibration, swapped: str, lengths: Columns) -> _Read:
    """Each item is a question, and its two classes the sides of a pair where `swapped` says so."""
    sides = {}
    if swapped:
        sides["first"] = _flags(data, swapped)
    if lengths:
        sides["longer"] = _longer(data, lengths)
    if sides and data.num_classes != 2:
        name, value = ("swapped", swapped) if swapped else ("lengths", tuple(lengths))
        problem = f"is of two answers, and labels have {data.num_classes} classes"
        refuse_data(name, value, problem, "leave it out")
    columns = {"row": np.arange(data.num_rows), "question": np.asarray(data.item, int)}
    columns |= {"answer": np.asarray(data.label, int), "weight": np.asarray(data.weight, float)}
    return pd.DataFrame(columns), np.asarray(found.truth.values, int), sides


def _of_comparisons(
    data: Comparisons, found: Calibration, question: str, lengths: Columns
) -> _Read:
    """Each pair is a question, or each pair with each value of a column."""
    first, second = np.asarray(data.first, int), np.asarray(data.second, int)
    low, high = np.minimum(first, second), np.maximum(first, second)
    parts = [low, high]
    if question:
        parts.append(np.asarray(row_columns.values(data, question)))
    code, turned = ranks(parts), (first > low).astype(int)
    wins, weight = np.asarray(data.wins, float), np.asarray(data.weight, float)
    if data.tied:
        ties = weight * (wins == 0.5)
        numbers = weight * (wins == 1.0), weight * (wins == 0.0), ties
    else:
        # A vote that is halved is a tie.
        ties = (wins % 1 != 0).astype(float)
        numbers = wins - ties / 2, weight - wins - ties / 2, ties
    answers = turned, 1 - turned, np.full(len(turned), TIE)
    columns = {"row": np.tile(np.arange(len(turned)), 3), "question": np.tile(code, 3)}
    columns |= {"answer": np.concatenate(answers), "weight": np.concatenate(numbers)}
    sides = {"first": turned} if data.ordered else {}
    if lengths:
        side = _longer(data, lengths)
        sides["longer"] = np.where(side == _UNKNOWN, side, (side + turned) % 2)
    truth = np.asarray(found.truth.values)
    place = np.unique(code, return_index=True)[1]
    is_high = (truth[:, low[place]] < truth[:, high[place]]).astype(int)
    return pd.DataFrame(columns), is_high, sides


def _longer(data: Any, lengths: Columns) -> Int[np.ndarray, " row"]:
    """0 where the first of two answers is the longer one, and 1 where the second is."""
    first, second = (_numbers(data, name) for name in lengths)
    return np.where(first > second, 0, np.where(first < second, 1, _UNKNOWN))


def _numbers(data: Any, name: str) -> Float[np.ndarray, " row"]:
    """Numbers of a column."""
    if row_columns.levels(data, name):
        expected = "it must be a column of numbers"
        refuse_data("lengths", name, "holds text", expected)
    return np.asarray(row_columns.values(data, name), float)


def _flags(data: Any, name: str) -> Int[np.ndarray, " row"]:
    """A column of 0 and 1, or of no and yes, as numbers."""
    written = [name_text(one).lower() for one in row_columns.written(data, name).tolist()]
    flags = [_FLAGS.get(one, -1) for one in written]
    if min(flags, default=0) < 0:
        value = written[flags.index(-1)]
        refuse_data(
            "swapped", value, f"is in column {name!r}", "it must hold 0 and 1, or no and yes"
        )
    return np.array(flags)


def times(data: Any, name: str) -> Float[np.ndarray, " row"]:
    """Times as numbers in their order; text must hold dates of ISO 8601."""
    values, levels = np.asarray(row_columns.values(data, name)), row_columns.levels(data, name)
    if not levels:
        return values.astype(float)
    numbers = np.array([read_number(level) for level in levels])
    if np.isfinite(numbers).all():  # Seconds, too large for single precision.
        return np.asarray(numbers[values])
    text = pd.Series(levels, dtype=str)
    dates = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
    if dates.isna().any():
        expected = "write dates such as 2026-11-29, or numbers"
        problem = f"holds {text[dates.isna()].iloc[0]!r}, which is no date"
        refuse_data("time", name, problem, expected)
    seconds = dates.astype("datetime64[s, UTC]").astype("int64").to_numpy(float)
    return np.asarray(seconds[values])
