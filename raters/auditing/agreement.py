"""Agreement of annotators without a model: observed agreement, Krippendorff's α, Fleiss' κ and
Gwet's AC₁, with intervals.

The statistics are implemented here because no maintained library takes labels with different
numbers of annotators per item: irrCAC 0.4.4 pins SciPy 1.12 and pandas 2 and takes a table of items
× annotators; krippendorff 0.9.0 (GPL) has α only, without an interval; statsmodels 0.15 needs
equally many labels of each item and has no interval; pingouin 0.7 has none of the four. The tests
compare with the results of the first three.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from raters.auditing.disagreement import Answers, Ratio, nominal, of_class, ordinal, scored
from raters.errors import DataError, DataWarning, SettingError
from raters.errors.validation import boolean, checked, one_of, share
from raters.judgements import Comparisons
from raters.judgements.base import Judgements
from raters.judgements.names import plural, shorten
from raters.kinds import found_kind

#: How far apart two classes are.
Metric = Literal["nominal", "ordinal", "interval"]


@checked
def agreement(
    data: Judgements, *, level: float = 0.9, metric: Metric | None = None, by_class: bool = False
) -> pd.DataFrame:
    r"""Measure the agreement of the annotators, as a share and corrected for chance.

    Parameters
    ----------
    data : Judgements
        Answers that are names, such as `Labels`, or comparisons; or `Rankings`, of which it is
        the agreement on pairs of items, and Kendall's W of those of the same items
        (`raters.auditing.concordance`). Items (of comparisons and other
        kinds: questions) with answers by fewer than two annotators are left out. An annotator who
        answered a question several times counts once, with the shares of their answers, and is not
        compared with themselves.
    level : float
        Coverage of the intervals.
    metric : {"nominal", "ordinal", "interval"}, optional
        Distance of two classes in Krippendorff's α: any two are equally far apart, whatever the
        order of the classes; classes have the order of `Labels.classes`; or they are numbers. By
        default nominal, and of `Ratings` ordinal.
    by_class : bool
        Measure the agreement on each class against the rest.

    Returns
    -------
    pandas.DataFrame
        A row for each statistic, ``observed_agreement`` (a share; also called percent agreement),
        ``krippendorff_alpha``, ``fleiss_kappa`` and ``gwet_ac1``, with columns ``estimate``,
        ``low`` and ``high`` (a confidence interval), ``items`` (the number of items used) and
        ``items_left_out`` (the number with answers by fewer than two annotators). With another
        metric than ``"nominal"`` a row for α alone, and of `Ratings` by default also one for
        observed agreement.

        With `by_class`, rows for each class (index ``class``, ``statistic``), among them
        ``specific_agreement``, and a column ``share``, the share of the class among the answers.

    Raises
    ------
    DataError
        When no question has answers by two annotators; when the answers are neither names nor
        sides of a pair; when classes are no numbers (``metric="interval"``), or are numbers in an
        order other than by size (``metric="ordinal"``).
    SettingError
        When `level` does not lie between 0 and 1; when `metric` or `by_class` have no meaning for
        these data.

    Warns
    -----
    DataWarning
        When all answers are of one class: agreement by chance is then certain, and α and κ are
        undefined (NaN), as is AC₁ unless there is a second class. When only one question is
        used, so that the intervals are undefined (NaN). When the order of classes
        (``metric="ordinal"``) is that of the alphabet, which need not be meant.

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

    **Distances.** With classes at a distance, the disagreement of two labels c and k is
    :math:`\delta_{ck}^2` in both terms of α,

    .. math:: \delta_{ck} = x_c - x_k \text{ (interval)}, \qquad
        \delta_{ck} = \sum_{g=c}^{k} n_g - \frac{n_c + n_k}{2} \text{ (ordinal)},

    with :math:`x_c` the number that is the name of class c. The second is the difference of the
    mean ranks of the two classes among all labels. With two classes the three metrics are equal.

    **Each class.** The statistics are those of labels of two classes, this one and the rest. Of a
    rare class observed agreement is always high; specific agreement is the probability that another
    annotator gives the class, given that one did,

    .. math:: S_c = \frac{\sum_i r_{ic} (r_{ic} - 1) / (r_i - 1)}{\sum_i r_{ic}}.

    **Comparisons.** Two annotators answered the same question if they compared the same two items,
    in the same order where the order of presentation is known (``votes.ordered``), with the same
    features of the comparison, if there are any. The classes are then the first and the second, and
    chance includes a position bias that all share. Where the order is not known, the sides have no
    meaning, and chance is ½: :math:`E = 1/2`, so that κ = AC₁ = 2 · observed agreement − 1. A tie
    that was read as half a vote for each side is half an answer for each; with ``ties="keep"`` it
    is an answer of its own where the order of presentation is known.

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
    - Cicchetti, D. V. and Feinstein, A. R. (1990). High agreement but low kappa: II. Resolving the
      paradoxes. Journal of Clinical Epidemiology 43, 551–558.
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

    Ratings are ordered: the metric counts a rating of 1 against 4 as a worse disagreement than one
    of 1 against 2.

    >>> print(rt.agreement(labels, metric="ordinal").round(2).to_string(index_names=False))
                        estimate   low  high  items  items_left_out
    krippendorff_alpha      0.79  0.69  0.86     45               0
    >>> each = rt.agreement(labels, by_class=True)["estimate"].unstack("statistic")
    >>> each["specific_agreement"].round(2).to_dict()
    {1: 0.86, 2: 0.68, 3: 0.41, 4: 0.51}

    Comparisons; and the same votes with the tie as an answer of its own.

    >>> table = {"left": [*"aaabbb"], "right": [*"bbbccc"], "who": ["x", "y", "z"] * 2,
    ...          "better": ["left", "left", "tie", "left", "right", "left"]}
    >>> votes = rt.Comparisons.from_frame(table, first="left", second="right", outcome="better",
    ...                                   annotator="who", ties="half")
    >>> float(rt.agreement(votes).loc["observed_agreement", "estimate"])
    0.5
    >>> votes = rt.Comparisons.from_frame(table, first="left", second="right", outcome="better",
    ...                                   annotator="who", ties="keep")
    >>> round(float(rt.agreement(votes).loc["observed_agreement", "estimate"]), 3)
    0.333
    """
    share("level", level)
    if metric is not None:
        one_of("metric", metric, get_args(Metric))
    boolean("by_class", by_class)
    if (own := _own(data)) is not None:
        return own(data, level, metric, by_class)
    _check(data, metric, by_class)
    if isinstance(data, Comparisons) and data.exchangeable:  # Chance is that of two sides.
        data = data.halved()
    answers = Answers.of(data)
    used = answers.num_raters >= 2
    if not used.any():
        raise DataError(_alone(data))
    answers = answers.of_questions(used)
    classes, num_used = _classes(data), int(used.sum())
    given = [classes[code] for code in np.unique(answers.label)]
    if by_class:
        table = _by_class(answers, classes, level)
        _warn_of_classes([one for one in classes if one not in given])
    else:
        table = _table(_statistics(answers, data, given, metric), level)
        _warn_of_one_class(table, given[0], num_used, data)
    if num_used == 1:
        text = f"one {_noun(data)} has answers by two {plural(data.judge)} or more"
        warnings.warn(f"{text}; an interval takes two (NaN)", DataWarning, stacklevel=3)
    # A unit that nobody was asked about, such as an item without labels, has no row.
    with_units = data.unit not in (data.row, data.judge)
    num_items = data.num_units if with_units else len(used)
    return table.assign(items=num_used, items_left_out=num_items - num_used)


def is_measurable(data: Judgements) -> bool:
    """True if answers to the same question can be equal by more than chance: they are names, sides
    of a pair, or orders."""
    names = data.answer in data.axes or data.pair is not None
    return names or _own(data) is not None


def _own(data: Any) -> Callable[..., pd.DataFrame] | None:
    """Statistics that the kind of these data has itself; None also for kinds not registered."""
    kind = found_kind(data)
    return None if kind is None else kind.agreement


def _classes(data: Judgements) -> Sequence[Any]:
    """Names of the answers, in the order of their codes."""
    if data.answer in data.axes:
        return data.coords[data.axes[data.answer]]
    return ("second", "tie", "first") if len(data.answers()) > 2 else ("second", "first")


def _table(statistics: Mapping[str, Ratio], level: float) -> pd.DataFrame:
    """Estimates and intervals, a row for each statistic."""
    rows = {name: (1 - ratio.value, *ratio.interval(level)) for name, ratio in statistics.items()}
    table = pd.DataFrame(rows, index=["estimate", "low", "high"]).T
    return table.rename_axis("statistic")


def _statistics(
    answers: Answers, data: Judgements, given: Sequence[Any], metric: Metric | None
) -> dict[str, Ratio]:
    """Statistics under a metric."""
    if metric is None and data.graded:
        observed = nominal(answers)["observed_agreement"]
        return {"observed_agreement": observed, "krippendorff_alpha": ordinal(answers)}
    if metric in (None, "nominal"):
        return nominal(answers)
    classes = _classes(data)
    if metric == "ordinal":
        if not data.graded:
            _check_order(classes, given)
        return {"krippendorff_alpha": ordinal(answers)}
    return {"krippendorff_alpha": scored(answers, np.array(_numbers(classes)))}


def _by_class(answers: Answers, classes: Sequence[Any], level: float) -> pd.DataFrame:
    """Estimates and intervals for each class against the rest."""
    tables = {}
    for code, name in enumerate(classes):
        statistics, of_all = of_class(answers.against_the_rest(code))
        tables[name] = _table(statistics, level).assign(share=of_all)
    return pd.concat(tables, names=["class"])


# ---------------------------------------------------------------- checks


def _check(data: Any, metric: str | None, by_class: bool) -> None:
    """Raise unless these are answers that can be compared, in the way that is asked for."""
    if not isinstance(data, Judgements) or not is_measurable(data):
        why = f"a {type(data).__name__}"
    elif not data.has_answers:
        why = "without answers"
    else:
        _check_asked(data, metric, by_class)
        return
    expected = "agreement is counted on names or sides of pairs, with their answers"
    raise DataError(
        f"{expected}, such as rt.Labels.from_frame(...) or rt.Comparisons.from_frame(...); this is"
        f" {why}",
        parameter="data",
        value=data,
        problem=f"is {why}",
        expected=expected,
    )


def _check_asked(data: Judgements, metric: str | None, by_class: bool) -> None:
    """Raise unless the options have a meaning for these data."""
    if data.answer not in data.axes and (by_class or metric not in (None, "nominal")):
        raise SettingError(
            parameter="by_class" if by_class else "metric",
            value=True if by_class else metric,
            problem="has no effect on pairs, of which there are two answers",
            expected="leave it out, or read ties as an answer of their own, with rt.Labels",
        )
    if by_class and metric not in (None, "nominal"):
        raise SettingError(
            parameter="metric",
            value=metric,
            problem="has no effect where each class stands against the rest",
            expected="leave out one of metric and by_class",
        )


def _numbers(classes: Sequence[Any]) -> list[float]:
    """The numbers that are names of classes; `DataError` when one is none."""
    numbers = [_number(name) for name in classes]
    if bad := [name for name, number in zip(classes, numbers, strict=True) if number is None]:
        raise DataError(
            parameter="classes",
            value=list(bad),
            problem="are no numbers, which metric='interval' takes differences of",
            expected="name the classes by numbers, or take the order of the classes alone",
            instead="metric='ordinal'",
        )
    return [number for number in numbers if number is not None]


def _number(name: Any) -> float | None:
    """The finite number that a name is, or None."""
    try:
        number = float(name)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _check_order(classes: Sequence[Any], given: Sequence[Any]) -> None:
    """Raise for numbers in another order than by size; warn of the order of the alphabet."""
    numbers, names = [_number(name) for name in classes], [str(name) for name in classes]
    if None not in numbers:
        if list(numbers) not in (sorted(numbers), sorted(numbers, reverse=True)):  # type: ignore[type-var]
            raise DataError(
                parameter="classes",
                value=list(classes),
                problem="are numbers in an order that is not theirs",
                expected="name the classes from the lowest to the highest when the table is read",
                instead="rt.Labels.from_frame(..., classes=[...])",
            )
    elif len(given) > 2 and names == sorted(names) and max(map(len, names)) > 1:
        warnings.warn(
            f"the order of the classes is that of the alphabet, {' < '.join(names[:6])}"
            f"{' < …' if len(names) > 6 else ''}; where another is meant, name them from the lowest"
            " to the highest when the table is read: classes=[...]",
            DataWarning,
            stacklevel=5,
        )


def _alone(data: Judgements) -> str:
    """Say that nobody answered the same question as another."""
    same = ""
    if data.pair is not None:
        same = (
            " (the same pair, in the same order)" if not data.exchangeable else " (the same pair)"
        )
    return (
        f"no {_noun(data)}{same} has answers by two {plural(data.judge)}, so there is no agreement"
        f" to measure. Put a random part of the questions to two {plural(data.judge)} or more; if"
        " some were already, check the columns that the table was read by"
    )


def _noun(data: Judgements) -> str:
    """Name of one question."""
    return "question" if data.unit in (data.row, data.judge) else data.unit


def _warn_of_one_class(table: pd.DataFrame, given: Any, num_used: int, data: Judgements) -> None:
    """Explain what is NaN because all answers are equal."""
    if undefined := list(table.index[table["estimate"].isna()]):
        rest = " Read observed_agreement with its interval, or collect answers of other classes too"
        warnings.warn(
            f"all answers to the {num_used} {_noun(data)}(s) with two {plural(data.judge)} or more"
            f" are {given!r}: agreement by chance is then certain too, and"
            f" {', '.join(undefined)} {'is' if len(undefined) == 1 else 'are'} not defined"
            f" (NaN).{rest}",
            DataWarning,
            stacklevel=4,
        )


def _warn_of_classes(lacking: Sequence[Any]) -> None:
    """Explain what is NaN because nobody gave a class."""
    if lacking:
        warnings.warn(
            f"{len(lacking)} class(es) were not given where two or more answered, and have no"
            f" agreement by chance (NaN): {shorten(lacking)}",
            DataWarning,
            stacklevel=4,
        )
