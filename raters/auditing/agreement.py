"""Agreement of annotators without a model: observed agreement, Krippendorff's α, Fleiss' κ and
Gwet's AC₁, with intervals.

The statistics are implemented here because no maintained library takes labels with different
numbers of annotators per item: irrCAC 0.4.4 pins SciPy 1.12 and pandas 2 and takes a table of items
× annotators; krippendorff 0.9.0 (GPL) has α only, without an interval; statsmodels 0.15 needs
equally many labels of each item and has no interval; pingouin 0.7 has none of the four. The tests
compare with the results of the first three.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Bool, Float, Int

from raters._validation import checked, share
from raters.errors import DataError, DataWarning
from raters.judgements.base import Judgements
from raters.judgements.names import plural

# Sums in double precision are 0 or 1 within this.
_ROUNDING = 1e-12


@checked
def agreement(data: Judgements, *, level: float = 0.9) -> pd.DataFrame:
    r"""Measure the agreement of the annotators, as a share and corrected for chance.

    Parameters
    ----------
    data : Judgements
        Answers that are names, such as `Labels`: ``data.answer`` is a column of codes. The order of
        the classes has no effect. Items (the questions of other kinds) with labels by fewer than
        two annotators are left out. An annotator who labelled an item several times counts once,
        with the shares of their labels, and is not compared with themselves.
    level : float
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each statistic, ``observed_agreement`` (a share; also called percent agreement),
        ``krippendorff_alpha`` (nominal), ``fleiss_kappa`` and ``gwet_ac1``, with columns
        ``estimate``, ``low`` and ``high`` (a confidence interval), ``items`` (the number of items
        used) and ``items_left_out`` (the number with labels by fewer than two annotators).

    Raises
    ------
    DataError
        When no item has labels by two annotators, or the answers are no names, as of
        `Comparisons`.
    SettingError
        When `level` does not lie between 0 and 1.

    Warns
    -----
    DataWarning
        When all labels are of one class: agreement by chance is then certain, and α and κ are
        undefined (NaN), as is AC₁ unless there is a second class. When only one item is
        used, so that the intervals are undefined (NaN).

    Notes
    -----
    Let :math:`r_i` annotators label item :math:`i`, and :math:`r_{ic}` of them as class :math:`c`.
    Two different annotators of the item disagree with probability

    .. math:: d_i = 1 - \sum_c \frac{r_{ic} (r_{ic} - 1)}{r_i (r_i - 1)}.

    Every statistic is :math:`1 - D / E` with :math:`D` a mean of :math:`d_i` and :math:`E` the
    disagreement by chance:

    ==================  =======================  ==================================================
    statistic           mean of :math:`d_i`      :math:`E`
    ==================  =======================  ==================================================
    observed agreement  over items               1
    Krippendorff's α    weighted by :math:`r_i`  :math:`1 - \sum_c n_c (n_c - 1) / (n (n - 1))`
    Fleiss' κ           over items               :math:`1 - \sum_c \pi_c^2`
    Gwet's AC₁          over items               :math:`1 - \sum_c \pi_c (1 - \pi_c) / (q - 1)`
    ==================  =======================  ==================================================

    where :math:`n_c = \sum_i r_{ic}`, :math:`n = \sum_c n_c`, :math:`\pi_c` is the mean of
    :math:`r_{ic} / r_i` over items, and :math:`q` is the number of classes, including those
    without labels. Gwet's own programs include the items with one label in :math:`\pi_c`;
    here both terms use the same items.

    The intervals treat the items as a random sample and the annotators as fixed. The variance is
    that of the linearised statistic (Gwet 2008, 2014). The interval is Student's with one degree of
    freedom less than items, on the scale :math:`\log(D / E)`: it stays below 1, and keeps its
    coverage for agreement near 1, where the symmetric interval loses it.

    Where all annotators agree, or no two of them do, the estimated variance is 0. The interval then
    ends at the disagreement that would have been seen with probability (1 + `level`) / 2:
    :math:`D = 1 - ((1 - \mathtt{level}) / 2)^{1 / \mathtt{items}}` in place of 0, or 1 minus that
    in place of 1.

    A high α, κ or AC₁ means that annotators agree, not that they are right, and a low one does not
    show who is wrong: both questions need a model of the annotators.

    References
    ----------
    - Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological
      Bulletin 76, 378–382.
    - Gwet, K. L. (2008). Computing inter-rater reliability and its variance in the presence of high
      agreement. British Journal of Mathematical and Statistical Psychology 61, 29–48.
    - Gwet, K. L. (2014). Handbook of Inter-Rater Reliability, 4th edition. Advanced Analytics.
    - Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of
      Pennsylvania.

    Examples
    --------
    Observer 1 rated each patient three times, and counts as one of five annotators.

    >>> import raters as rt
    >>> labels = rt.Labels.from_frame(rt.datasets.anesthesia(), item="patient",
    ...                               annotator="observer", label="rating")
    >>> print(rt.agreement(labels).round(2).to_string(index_names=False))
                        estimate   low  high  items  items_left_out
    observed_agreement      0.70  0.63  0.76     45               0
    krippendorff_alpha      0.56  0.46  0.64     45               0
    fleiss_kappa            0.55  0.45  0.64     45               0
    gwet_ac1                0.62  0.52  0.70     45               0
    """
    share("level", level)
    _check(data)
    rows = _rows(data)
    classes = data.coords[data.axes[data.answer]]
    num_raters = np.rint(np.bincount(rows.item, rows.share))
    used = num_raters >= 2
    if not used.any():
        raise DataError(
            f"no {_noun(data)} has answers by two {plural(data.judge)}, so there is no agreement to"
            f" measure. Put a random part of the questions to two {plural(data.judge)} or more; if"
            " some were already, check the columns that the table was read by"
        )
    rows = rows.of_items(used)
    statistics = _statistics(rows, num_raters[used], len(classes))
    num_used = int(used.sum())
    table = pd.DataFrame(
        {name: (1 - ratio.value, *ratio.interval(level)) for name, ratio in statistics.items()},
        index=["estimate", "low", "high"],
    ).T.rename_axis("statistic")
    _warn(table, [classes[code] for code in np.unique(rows.label)], num_used, data)
    # A unit that nobody was asked about, such as an item without labels, has no row.
    with_units = data.unit not in (data.row, data.judge)
    num_items = data.num_units if with_units else len(used)
    return table.assign(items=num_used, items_left_out=num_items - num_used)


def _check(data: Any) -> None:
    """Raise unless these are answers by name."""
    if not isinstance(data, Judgements) or data.answer not in data.axes:
        why = f"a {type(data).__name__}"
    elif not data.has_answers:
        why = "without answers"
    else:
        return
    raise DataError(
        "agreement is counted on judgements whose answers are names, with their answers, such as"
        f" rt.Labels.from_frame(...); this is {why}",
        parameter="data",
        value=data,
        problem=f"is {why}",
        expected="agreement is counted on judgements whose answers are names, with their answers",
    )


def _noun(data: Judgements) -> str:
    """Name of one question."""
    return "question" if data.unit in (data.row, data.judge) else data.unit


def _warn(table: pd.DataFrame, classes: list[Any], num_used: int, data: Judgements) -> None:
    """Explain each NaN in the table."""
    noun, judges = _noun(data), plural(data.judge)
    if undefined := list(table.index[table["estimate"].isna()]):
        warnings.warn(
            f"all answers to the {num_used} {noun}(s) with two {judges} or more are {classes[0]!r}:"
            f" agreement by chance is then certain too, and {', '.join(undefined)} are not defined"
            " (NaN). Read observed_agreement with its interval, or collect answers of other"
            " classes too",
            DataWarning,
            stacklevel=4,
        )
    if num_used == 1:
        warnings.warn(
            f"one {noun} has answers by two {judges} or more; an interval takes two (NaN)",
            DataWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class _Rows:
    """Share of each class among an annotator's labels of an item, one row for each of these."""

    item: Int[np.ndarray, " row"]
    label: Int[np.ndarray, " row"]
    share: Float[np.ndarray, " row"]

    def of_items(self, used: Bool[np.ndarray, " item"]) -> _Rows:
        """Select the rows of some items, and renumber these."""
        keep = used[self.item]
        return _Rows((np.cumsum(used) - 1)[self.item[keep]], self.label[keep], self.share[keep])


def _rows(data: Judgements) -> _Rows:
    """Aggregate repeated labels into shares."""
    annotator, item, label, count = data.tallies()
    item, label = np.asarray(item, np.int64), np.asarray(label, np.int64)
    num_annotators, num_classes = len(data.judges), len(data.coords[data.axes[data.answer]])
    key = (item * num_annotators + annotator) * num_classes + label
    key, inverse = np.unique(key[count > 0], return_inverse=True)
    count = np.bincount(inverse, count[count > 0])
    pair, label = np.divmod(key, num_classes)
    inverse = np.unique(pair, return_inverse=True)[1]
    total = np.bincount(inverse, count)[inverse]
    return _Rows(pair // num_annotators, label, count / total)


@dataclass(frozen=True)
class _Ratio:
    """Ratio D / E of the disagreement to that by chance, both functions of means over items.

    `influence` is the derivative of the ratio in the weight of each item.
    """

    disagreement: float
    chance: float
    influence: Float[np.ndarray, " item"]

    @classmethod
    def of(
        cls,
        disagree: Float[np.ndarray, " item"],
        weight: Float[np.ndarray, " item"],
        chance: float,
        chance_influence: Float[np.ndarray, " item"],
    ) -> _Ratio:
        """Compute D and the influences from each item's disagreement and weight (1 on average)."""
        mean = float(np.mean(weight * disagree))
        # E is 0, but for rounding, when there is one class.
        chance = chance if chance > _ROUNDING else np.nan
        return cls(
            mean, chance, (weight * (disagree - mean) - mean / chance * chance_influence) / chance
        )

    @property
    def value(self) -> float:
        """Value of the ratio."""
        return self.disagreement / self.chance

    def interval(self, level: float) -> tuple[float, float]:
        """Return an interval for 1 − D / E; NaN for one item."""
        num_items = len(self.influence)
        if num_items == 1 or np.isnan(self.chance):
            return np.nan, np.nan
        unseen = 1 - ((1 - level) / 2) ** (1 / num_items)
        if self.disagreement < _ROUNDING:
            return 1 - unseen / self.chance, 1.0
        error = np.sqrt(np.sum(self.influence**2) / (num_items * (num_items - 1)))
        spread = np.exp(scipy.stats.t.ppf((1 + level) / 2, num_items - 1) * error / self.value)
        most = 1 / self.chance
        least = self.value / spread
        if self.disagreement > 1 - _ROUNDING:
            least = min(least, (1 - unseen) * most)
        return 1 - min(self.value * spread, most), 1 - least


def _statistics(
    rows: _Rows, num_raters: Float[np.ndarray, " item"], num_classes: int
) -> dict[str, _Ratio]:
    """Compute all four statistics, for items with at least two annotators."""
    num_items, pairs = len(num_raters), num_raters * (num_raters - 1)
    cell, inverse = np.unique(rows.item * num_classes + rows.label, return_inverse=True)
    equal_pairs = np.bincount(cell // num_classes, np.bincount(inverse, rows.share) ** 2, num_items)
    self_pairs = np.bincount(rows.item, rows.share**2, num_items)
    disagree = 1 - (equal_pairs - self_pairs) / pairs

    def same_class(weight: Float[np.ndarray, " item"]) -> tuple[float, Float[np.ndarray, " item"]]:
        """Return the sum of squares of the class shares, and half its derivative in each item."""
        of_item = rows.share / num_raters[rows.item]
        shares = np.bincount(rows.label, of_item * weight[rows.item], num_classes) / num_items
        squares = float(np.sum(shares**2))
        return squares, weight * (
            np.bincount(rows.item, of_item * shares[rows.label], num_items) - squares
        )

    equal, by_labels = np.ones(num_items), num_raters / num_raters.mean()
    num_labels = num_raters.sum()
    squares, influence = same_class(equal)
    pooled, pooled_influence = same_class(by_labels)
    finite = num_labels / (num_labels - 1)
    others = num_classes - 1 or np.nan
    return {
        "observed_agreement": _Ratio.of(disagree, equal, 1.0, np.zeros(num_items)),
        "krippendorff_alpha": _Ratio.of(
            disagree,
            by_labels,
            1 - finite * (pooled - self_pairs.sum() / num_labels**2),
            -2 * finite * pooled_influence,
        ),
        "fleiss_kappa": _Ratio.of(disagree, equal, 1 - squares, -2 * influence),
        "gwet_ac1": _Ratio.of(disagree, equal, 1 - (1 - squares) / others, 2 * influence / others),
    }
