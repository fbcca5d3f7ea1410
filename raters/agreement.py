"""How far annotators agree, without a model: observed agreement, Krippendorff's α, Fleiss' κ and Gwet's AC₁, with intervals.

The sums are written here because no well-kept library takes labels as they come, several annotators to some items and few to
others: irrCAC 0.4.4 pins SciPy 1.12 and pandas 2 and wants a table of items × annotators; krippendorff 0.9.0 (GPL) has α only,
without an interval; statsmodels 0.15 asserts equally many labels of each item and has no interval; pingouin 0.7 has none of
the four. The tests hold the results of the first three.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from raters._check import share
from raters.errors import DataError, DataWarning
from raters.labels import Labels

# What remains of 0 or of 1 after sums in double precision.
_ROUNDING = 1e-12


def agreement(labels: Labels, *, level: float = 0.9) -> pd.DataFrame:
    r"""Agreement of the annotators with one another, as a share and corrected for chance.

    Parameters
    ----------
    labels : Labels
        The order of the classes plays no part. Items with labels by fewer than two annotators do not enter. An annotator who
        labelled an item several times counts once, with the shares of their labels: nobody is compared with themselves.
    level : float
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each statistic, ``observed_agreement`` (a share; also called percent agreement), ``krippendorff_alpha``
        (nominal), ``fleiss_kappa`` and ``gwet_ac1``, with columns ``estimate``, ``low`` and ``high`` (a confidence interval),
        ``items`` (how many entered) and ``items_left_out`` (how many of the items have labels by fewer than two annotators).

    Raises
    ------
    DataError
        When no item has labels by two annotators.
    SettingError
        When `level` does not lie between 0 and 1.

    Warns
    -----
    DataWarning
        When all labels are of one class: agreement by chance is then certain, and α and κ are not defined (NaN); nor is AC₁
        unless `labels.classes` has a second class. When one item enters, so that the intervals are not defined (NaN).

    Notes
    -----
    Let :math:`r_i` annotators label item :math:`i`, and :math:`r_{ic}` of them as class :math:`c`. Two different annotators
    of the item disagree with probability

    .. math:: d_i = 1 - \sum_c \frac{r_{ic} (r_{ic} - 1)}{r_i (r_i - 1)}.

    Every statistic is :math:`1 - D / E` with :math:`D` a mean of :math:`d_i` and :math:`E` the disagreement by chance:

    ==================  =======================  =================================================================
    statistic           mean of :math:`d_i`      :math:`E`
    ==================  =======================  =================================================================
    observed agreement  over items               1
    Krippendorff's α    weighted by :math:`r_i`  :math:`1 - \sum_c n_c (n_c - 1) / (n (n - 1))`
    Fleiss' κ           over items               :math:`1 - \sum_c \pi_c^2`
    Gwet's AC₁          over items               :math:`1 - \sum_c \pi_c (1 - \pi_c) / (q - 1)`
    ==================  =======================  =================================================================

    where :math:`n_c = \sum_i r_{ic}`, :math:`n = \sum_c n_c`, :math:`\pi_c` is the mean of :math:`r_{ic} / r_i` over items, and
    :math:`q` is the number of `labels.classes`, met or not. Gwet's own programs also count the items with one label into
    :math:`\pi_c`; here both terms are about the same items.

    The intervals take the items as a random sample and the annotators as given. The variance is that of the linearised
    statistic (Gwet 2008, 2014), and the interval is Student's with one degree of freedom less than
    items, on the scale :math:`\log(D / E)`: it stays below 1, and keeps its coverage near 1, where the usual symmetric
    interval falls short. Where all annotators agree, or no two of them, the variance says nothing, and the interval ends
    where the first departure from it would have been likely to be seen:
    :math:`D = 1 - ((1 - \mathtt{level}) / 2)^{1 / \mathtt{items}}` in place of 0, or 1 less that in place of 1.

    A high α, κ or AC₁ says that annotators agree, not that they are right, and a low one does not say who is at fault;
    that takes a model of the annotators.

    References
    ----------
    - Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological Bulletin 76, 378–382.
    - Gwet, K. L. (2008). Computing inter-rater reliability and its variance in the presence of high agreement. British Journal
      of Mathematical and Statistical Psychology 61, 29–48.
    - Gwet, K. L. (2014). Handbook of Inter-Rater Reliability, 4th edition. Advanced Analytics.
    - Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.

    Examples
    --------
    Observer 1 looked at everyone three times, and counts as one of five.

    >>> import raters as rt
    >>> labels = rt.Labels.from_frame(rt.datasets.anesthesia(), item="patient", annotator="observer", label="rating")
    >>> print(rt.agreement(labels).round(2).to_string(index_names=False))
                        estimate   low  high  items  items_left_out
    observed_agreement      0.70  0.63  0.76     45               0
    krippendorff_alpha      0.56  0.46  0.64     45               0
    fleiss_kappa            0.55  0.45  0.64     45               0
    gwet_ac1                0.62  0.52  0.70     45               0
    """
    share("level", level)
    if not isinstance(labels, Labels) or labels.label is None:
        what = "labels without answers" if isinstance(labels, Labels) else f"a {type(labels).__name__}"
        raise DataError(f"agreement is counted on labels with their answers, from rt.Labels.from_frame(...); this is {what}")
    rows = _rows(labels)
    raters = np.rint(np.bincount(rows.item, rows.share, labels.num_items))
    enters = raters >= 2
    if not enters.any():
        raise DataError(
            "no item has labels by two annotators, so there is no agreement to measure. Have a random part of the items "
            "labelled by two annotators or more; if some are already, check the columns given as item= and annotator="
        )
    rows = rows.of_items(enters)
    statistics = _statistics(rows, raters[enters], labels.num_classes)
    entered = int(enters.sum())
    found = pd.DataFrame(
        {name: (1 - ratio.value, *ratio.interval(level)) for name, ratio in statistics.items()},
        index=["estimate", "low", "high"],
    ).T.rename_axis("statistic")
    _warn(found, [labels.classes[code] for code in np.unique(rows.label)], entered)
    return found.assign(items=entered, items_left_out=labels.num_units - entered)


def _warn(found: pd.DataFrame, classes: list[Any], entered: int) -> None:
    """Say why something is NaN."""
    if undefined := list(found.index[found["estimate"].isna()]):
        warnings.warn(
            f"all labels of the {entered} item(s) with two annotators or more are {classes[0]!r}: agreement by chance is then "
            f"certain too, and {', '.join(undefined)} cannot be told (NaN). Read observed_agreement with its interval, or have "
            "items of other classes labelled too",
            DataWarning,
            stacklevel=3,
        )
    if entered == 1:
        warnings.warn(
            "one item has labels by two annotators or more; an interval takes two such items (NaN)", DataWarning, stacklevel=3
        )


@dataclass(frozen=True)
class _Rows:
    """One row for each item, annotator and class said: which `share` of the annotator's labels of the item is of the class."""

    item: np.ndarray
    label: np.ndarray
    share: np.ndarray

    def of_items(self, enters: np.ndarray) -> _Rows:
        """The rows of some items, which are counted anew."""
        keep = enters[self.item]
        return _Rows((np.cumsum(enters) - 1)[self.item[keep]], self.label[keep], self.share[keep])


def _rows(labels: Labels) -> _Rows:
    item, annotator, label = (np.asarray(codes, np.int64) for codes in (labels.item, labels.annotator, labels.label))
    number = np.asarray(labels.weight, float)
    key = (item * labels.num_annotators + annotator) * labels.num_classes + label
    key, place = np.unique(key[number > 0], return_inverse=True)
    number = np.bincount(place, number[number > 0])
    pair, label = np.divmod(key, labels.num_classes)
    place = np.unique(pair, return_inverse=True)[1]
    return _Rows(pair // labels.num_annotators, label, number / np.bincount(place, number)[place])


@dataclass(frozen=True)
class _Ratio:
    """Disagreement over that by chance, D / E, both functions of means over items; `slope` is what each item adds to it."""

    disagreement: float
    chance: float
    slope: np.ndarray

    @classmethod
    def of(cls, disagree: np.ndarray, weight: np.ndarray, chance: float, chance_slope: np.ndarray) -> _Ratio:
        """From the disagreement within each item, its weight (1 on average), E, and the derivative of E in each item."""
        mean = float(np.mean(weight * disagree))
        # E is 0 but for rounding when there is one class.
        chance = chance if chance > _ROUNDING else np.nan
        return cls(mean, chance, (weight * (disagree - mean) - mean / chance * chance_slope) / chance)

    @property
    def value(self) -> float:
        return self.disagreement / self.chance

    def interval(self, level: float) -> tuple[float, float]:
        """An interval for 1 − D / E; NaN for one item."""
        items = len(self.slope)
        if items == 1 or np.isnan(self.chance):
            return np.nan, np.nan
        unseen = 1 - ((1 - level) / 2) ** (1 / items)
        if self.disagreement < _ROUNDING:
            return 1 - unseen / self.chance, 1.0
        error = np.sqrt(np.sum(self.slope**2) / (items * (items - 1)))
        spread = np.exp(scipy.stats.t.ppf((1 + level) / 2, items - 1) * error / self.value)
        most = 1 / self.chance
        least = self.value / spread
        if self.disagreement > 1 - _ROUNDING:
            least = min(least, (1 - unseen) * most)
        return 1 - min(self.value * spread, most), 1 - least


def _statistics(rows: _Rows, raters: np.ndarray, classes: int) -> dict[str, _Ratio]:
    """All four, for items with at least two annotators."""
    items, pairs = len(raters), raters * (raters - 1)
    cell, place = np.unique(rows.item * classes + rows.label, return_inverse=True)
    together = np.bincount(cell // classes, np.bincount(place, rows.share) ** 2, items)
    alone = np.bincount(rows.item, rows.share**2, items)
    disagree = 1 - (together - alone) / pairs

    def same_class(weight: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum of squares of the class shares, and half its derivative in each item."""
        of_item = rows.share / raters[rows.item]
        shares = np.bincount(rows.label, of_item * weight[rows.item], classes) / items
        squares = float(np.sum(shares**2))
        return squares, weight * (np.bincount(rows.item, of_item * shares[rows.label], items) - squares)

    equal, by_labels, labels = np.ones(items), raters / raters.mean(), raters.sum()
    squares, slope = same_class(equal)
    pooled, pooled_slope = same_class(by_labels)
    finite = labels / (labels - 1)
    others = classes - 1 or np.nan
    return {
        "observed_agreement": _Ratio.of(disagree, equal, 1.0, np.zeros(items)),
        "krippendorff_alpha": _Ratio.of(
            disagree, by_labels, 1 - finite * (pooled - alone.sum() / labels**2), -2 * finite * pooled_slope
        ),
        "fleiss_kappa": _Ratio.of(disagree, equal, 1 - squares, -2 * slope),
        "gwet_ac1": _Ratio.of(disagree, equal, 1 - (1 - squares) / others, 2 * slope / others),
    }
