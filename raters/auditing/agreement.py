"""Agreement of annotators without a model: observed agreement, Krippendorff's α, Fleiss' κ and
Gwet's AC₁, with intervals.

No maintained library takes labels with different numbers of annotators per item and has intervals:
irrCAC pins old versions, krippendorff has α only, statsmodels needs equally many labels. The tests
compare with their results.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import ndtri

from raters.auditing.disagreement import Answers, Ratio, nominal, of_class, ordinal, scored
from raters.errors import DataError, DataWarning, refuse, refuse_data
from raters.errors.validation import checked, share
from raters.judgements import Comparisons
from raters.judgements.base import Judgements
from raters.judgements.counts import mean_ranks, numbers_tied, ordered_pairs, ranks
from raters.judgements.names import plural, shorten
from raters.judgements.rankings import Rankings

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
        the agreement on pairs of items, and Kendall's W of those of the same items. Items (of
        comparisons and other kinds: questions) with answers by fewer than two annotators are left
        out. An annotator who answered a question several times counts once, with the shares of
        their answers, and is not compared with themselves.
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
        sides of a pair, or without the numbers or the order that `metric` asks for.

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
    without labels. Both terms use the same items.

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

    The intervals treat the items as a random sample and the annotators as fixed. They are Student's
    with the variance of the linearised statistic (Gwet 2008, 2014), on the scale
    :math:`\log(D / E)`, which keeps their coverage for agreement near 1. Where the estimated
    variance is 0, they end at the disagreement that would have been seen with probability
    (1 + `level`) / 2.

    A high α, κ or AC₁ means that annotators agree, not that they are right, and a low one does not
    show who is wrong: both questions need a model of the annotators.

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76, 378–382; Cicchetti and Feinstein (1990), Journal of
    Clinical Epidemiology 43, 551–558; Gwet (2008), British Journal of Mathematical and Statistical
    Psychology 61, 29–48; Gwet (2014), Handbook of Inter-Rater Reliability; Krippendorff (2011),
    Computing Krippendorff's alpha-reliability.

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

    >>> print(rt.agreement(labels, metric="ordinal").round(2).to_string(index_names=False))
                        estimate   low  high  items  items_left_out
    krippendorff_alpha      0.79  0.69  0.86     45               0
    >>> each = rt.agreement(labels, by_class=True)["estimate"].unstack("statistic")
    >>> each["specific_agreement"].round(2).to_dict()
    {1: 0.86, 2: 0.68, 3: 0.41, 4: 0.51}
    """
    share("level", level)
    if isinstance(data, Rankings):
        return _of_rankings(data, level, metric, by_class)
    _check(data, metric, by_class)
    if isinstance(data, Comparisons) and data.exchangeable:  # Chance is that of two sides.
        data = data.halved()
    answers = Answers.of(data)
    used = answers.num_raters >= 2
    # A unit that nobody was asked about, such as an item without labels, has no row.
    with_units = data.unit not in (data.row, data.judge)
    unit = data.unit if with_units else "question"
    if not used.any():
        raise DataError(
            f"no {unit} has answers by two {plural(data.judge)}, so there is no agreement to"
            f" measure. Put a random part of the questions to two {plural(data.judge)} or more, in"
            " one order of presentation if that is known"
        )
    answers = answers.of_questions(used)
    classes, num_used = _classes(data), int(used.sum())
    if by_class:
        tables = {}
        for code, name in enumerate(classes):
            statistics, of_all = of_class(answers.against_the_rest(code))
            tables[name] = _table(statistics, level).assign(share=of_all)
        table = pd.concat(tables, names=["class"])
    else:
        table = _table(_statistics(answers, data, metric), level)
    if num_used == 1:
        text = f"one {unit} has answers by two {plural(data.judge)} or more"
        warnings.warn(f"{text}; an interval takes two (NaN)", DataWarning, stacklevel=3)
    if undefined := [name for name, value in table["estimate"].items() if np.isnan(value)]:
        warnings.warn(
            f"agreement by chance is certain where all {num_used:,} {unit}(s) have answers of one"
            f" class, and not defined for a class that nobody gave: {shorten(undefined)} (NaN)",
            DataWarning,
            stacklevel=3,
        )
    num_items = data.num_units if with_units else len(used)
    return table.assign(items=num_used, items_left_out=num_items - num_used)


def is_measurable(data: Judgements) -> bool:
    """True if answers can be equal by more than chance: names, sides of a pair, or orders."""
    return data.answer in data.axes or data.pair is not None or isinstance(data, Rankings)


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


def _statistics(answers: Answers, data: Judgements, metric: Metric | None) -> dict[str, Ratio]:
    """Statistics under a metric."""
    if metric is None and data.answer_scale == "ordinal":
        observed = nominal(answers)["observed_agreement"]
        return {"observed_agreement": observed, "krippendorff_alpha": ordinal(answers)}
    if metric in (None, "nominal"):
        return nominal(answers)
    classes = _classes(data)
    number = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce").to_numpy(float)
    if metric == "interval":
        if not np.isfinite(number).all():
            problem = "are no numbers, which metric='interval' takes differences of"
            expected = "name the classes by numbers, or take the order of the classes alone"
            refuse_data("classes", list(classes), problem, expected, instead="metric='ordinal'")
        return {"krippendorff_alpha": scored(answers, number)}
    if data.answer_scale != "ordinal":
        _check_order(list(classes), number)
    return {"krippendorff_alpha": ordinal(answers)}


def _check_order(classes: list[Any], number: Float[np.ndarray, " class"]) -> None:
    """Raise for numbers in another order than by size; warn of the order of the alphabet."""
    step, names = np.diff(number), list(map(str, classes))
    if np.isfinite(number).all():
        if not ((step >= 0).all() or (step <= 0).all()):
            problem = "are numbers in an order that is not theirs"
            expected = "name the classes from the lowest to the highest when the table is read"
            instead = "rt.Labels.from_frame(..., classes=[...])"
            refuse_data("classes", classes, problem, expected, instead=instead)
    elif len(names) > 2 and names == sorted(names) and max(map(len, names)) > 1:
        warnings.warn(
            f"the order of the classes is that of the alphabet, {' < '.join(names[:6])}; where"
            " another is meant, name them from the lowest to the highest when the table is read:"
            " classes=[...]",
            DataWarning,
            stacklevel=5,
        )


def _check(data: Any, metric: str | None, by_class: bool) -> None:
    """Raise unless these are answers that can be compared, in the way that is asked for."""
    if not isinstance(data, Judgements) or not is_measurable(data) or not data.has_answers:
        expected = "give answers that are names or sides of pairs, as rt.Labels and rt.Comparisons"
        refuse_data("data", data, "has no answers that can be equal", expected)
    name, value = ("by_class", True) if by_class else ("metric", metric)
    if data.answer not in data.axes and (by_class or metric not in (None, "nominal")):
        problem = "has no effect on pairs, of which there are two answers"
        expected = "leave it out, or read ties as an answer of their own, with rt.Labels"
        refuse(name, value, problem, expected)
    if by_class and metric not in (None, "nominal"):
        problem = "has no effect where each class stands against the rest"
        refuse("metric", metric, problem, "leave out one of metric and by_class")


# ---------------------------------------------------------------- rankings

# Of each annotator, or each ranking.
PerOne = Float[np.ndarray, " one"]

# Share of the rankings that are of one set of items from which on W is given.
_OF_ONE_SET = 0.1


def _of_rankings(
    rankings: Rankings, level: float, metric: str | None, by_class: bool
) -> pd.DataFrame:
    """Table of `pair_agreement`, and of `kendall_w` where a tenth of the rankings are of one set of
    items, for `raters.agreement`, whose options have no meaning for rankings."""
    if by_class or metric not in (None, "nominal"):
        name, value = ("by_class", True) if by_class else ("metric", metric)
        problem = "has no effect on rankings, whose agreement is that on pairs, and Kendall's W"
        refuse(name, value, problem, "leave it out")
    if rankings.place is None:
        raise DataError("these rankings have no outcomes, so there is no agreement to measure")
    on_pairs, data = pair_agreement(rankings, level), rankings.unpadded()
    number = np.asarray(data.weight)[_most_frequent(data)].sum()
    if number < max(2, _OF_ONE_SET * data.num_rankings):
        return on_pairs
    return pd.concat([on_pairs, kendall_w(data, level)])


def pair_agreement(rankings: Rankings, level: float) -> pd.DataFrame:
    """Probability that two annotators who both order a pair of items order it alike."""
    data = rankings.unpadded()
    alike, both, shared = _shared_pairs(data)
    if not both.any():
        raise DataError(
            "no two annotators order the same pair of items, so there is no agreement to measure;"
            " let a random part of the items be ranked by two annotators or more"
        )
    took_part = both > 0
    left = both.sum() - 2 * both[took_part]
    without = (alike.sum() - 2 * alike[took_part])[left > 0] / left[left > 0]
    used = int(np.asarray(data.weight)[shared].sum())
    estimate, each = alike.sum() / both.sum(), np.ones(len(without))
    return _row("observed_agreement", estimate, without, each, level, used, data.num_rankings)


def _row(
    name: str, estimate: float, without: PerOne, count: PerOne, level: float, used: int, total: int
) -> pd.DataFrame:
    """A statistic with its interval by the jackknife, from its values without each, and the
    rankings it is of."""
    number, reach = count.sum(), np.nan
    if number > 2:
        mean = (count @ without) / number
        deviation = np.sqrt((number - 1) / number * (count @ (without - mean) ** 2))
        reach = float(ndtri((1 + level) / 2) * deviation)
    row = {
        "estimate": estimate,
        "low": np.clip(estimate - reach, 0, 1),
        "high": np.clip(estimate + reach, 0, 1),
        "rankings": used,
        "rankings_left_out": total - used,
    }
    return pd.DataFrame([row], index=pd.Index([name], name="statistic"))


def _shared_pairs(data: Rankings) -> tuple[PerOne, PerOne, Bool[np.ndarray, " ranking"]]:
    """Agreeing others and all others of each annotator, over pairs; rankings with such pairs."""
    offered, count = np.asarray(data.offered, np.int64), np.asarray(data.weight, float)
    row, pair, ahead, count = ordered_pairs(
        np.arange(data.num_rows), offered, np.asarray(data.place), count, data.num_items
    )
    pair = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    who, number = np.asarray(data.annotator, np.int64)[row], data.num_annotators
    cell, own = np.unique(pair * number + who, return_inverse=True)
    share = np.bincount(own, count * ahead) / np.maximum(np.bincount(own, count), 1e-300)
    of_cell, who = np.divmod(cell, number)
    others = np.bincount(of_cell)[of_cell] - 1
    of_others = np.bincount(of_cell, share)[of_cell] - share
    alike = share * of_others + (1 - share) * (others - of_others)
    shared = np.bincount(row, others[own] > 0, data.num_rows) > 0
    return np.bincount(who, alike, number), np.bincount(who, others, number), shared


def kendall_w(rankings: Rankings, level: float) -> pd.DataFrame:
    """Kendall's coefficient of concordance W of the rankings of the most frequent set of items."""
    data = rankings.unpadded()
    rows = _most_frequent(data)
    there = np.asarray(data.offered)[rows][0] >= 0
    place, count = np.asarray(data.place)[rows][:, there], np.asarray(data.weight, float)[rows]
    rank, left = mean_ranks(place, np.ones(place.shape, bool)), (place == 0).sum(1).astype(float)
    tied, number = left**3 - left + (numbers_tied(place) ** 2.0 - 1).sum(1), count.sum()
    total, ties = count @ rank, count @ tied
    estimate = float(_w(total, ties, number))
    without = _w(total - rank, ties - tied, number - 1)
    return _row("kendall_w", estimate, without, count, level, int(number), data.num_rankings)


def _w(total: Float[np.ndarray, "*row item"], ties: np.ndarray, number: float) -> np.ndarray:
    """Return W from the sums of the ranks, and of the ties."""
    size = total.shape[-1]
    spread = ((total - total.mean(-1, keepdims=True)) ** 2).sum(-1)
    most = number**2 * (size**3 - size) - number * ties
    # Where every ranking leaves all open, there is nothing to agree on.
    return np.asarray(12 * spread / np.where(most > 0, most, np.nan))


def _most_frequent(data: Rankings) -> Bool[np.ndarray, " ranking"]:
    """Return the rankings of the most frequent set of items."""
    sets = ranks([np.asarray(data.offered)])
    return np.asarray(sets == np.bincount(sets, np.asarray(data.weight)).argmax())
