"""Agreement statistics, against published numbers, the libraries that have some of them, and counts
by enumeration."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

import raters as rt
from raters.auditing.agreement import agreement
from raters.errors import DataWarning

# One text per annotator, one character per item; "." where the annotator gave no label.
# Krippendorff (2011), four observers, and the three of his Wikipedia example: only items with two
# labels or more.
FOUR = ["123321412..", "1233224125.", ".3332342251", "12332441251"]
THREE = ["...341211333", "213343......", "21344.211334"]
# Gwet (2014), five observers with gaps: `raw_5observers` of irrCAC.
FIVE = [
    "112.001122.0131",
    "1130000.2110231",
    "203000222100221",
    ".13....0.10022.",
    "2..0001.2....31",
]
# Gwet (2014), two abstractors of 100 records: `table_cont3x3abstractors` of irrCAC.
ABSTRACTORS = [
    "a" * 13 + "b" * 20 + "b" * 7 + "c" * 4 + "c" * 56,
    "a" * 13 + "b" * 20 + "c" * 7 + "b" * 4 + "c" * 56,
]
# Fleiss (1971), Table 1: six diagnoses of each of 30 patients, not always by the same six
# psychiatrists.
FLEISS = [
    "422521311511212311215221121215",
    "423521311542242311235421421235",
    "423523334544244311435444421435",
    "453543334544344341455454421435",
    "453543534544344351455454425435",
    "455543544544345552455454545435",
]


def labels_of(rows, count=None, num_items=None, num_classes=None) -> rt.Labels:
    """Labels from rows of (item, annotator, label), all of them codes; equal rows are not put
    together."""
    table = dict(zip(("item", "annotator", "label"), np.array(rows).T, strict=True))
    items, classes = (
        range(number or table[of].max() + 1)
        for number, of in ((num_items, "item"), (num_classes, "label"))
    )
    counts = {} if count is None else {"count": count}
    columns = {name: name for name in table | counts}
    return rt.Labels.from_frame(
        table | counts, **columns, items=items, classes=classes, aggregate=False
    )


def rows_of(texts: list[str]) -> list[tuple[int, int, int]]:
    classes = sorted(set("".join(texts)) - {"."})
    return [
        (i, k, classes.index(c))
        for k, text in enumerate(texts)
        for i, c in enumerate(text)
        if c != "."
    ]


def error(row, level: float = 0.9) -> float:
    """The standard error that an interval on the scale log(1 − θ) was made from."""
    half = np.log((1 - row["low"]) / (1 - row["high"])) / 2
    return (1 - row["estimate"]) * half / stats.t.ppf((1 + level) / 2, row["items"] - 1)


# ---------------------------------------------------------------- published numbers, and libraries


@pytest.mark.parametrize(
    ("texts", "statistic", "value"),
    [
        (FOUR, "krippendorff_alpha", 0.743),  # Krippendorff 2011
        (THREE, "krippendorff_alpha", 0.691),  # Wikipedia, "Krippendorff's alpha"
        (FLEISS, "fleiss_kappa", 0.430),  # Fleiss 1971
        (ABSTRACTORS, "observed_agreement", 0.89),
    ],
)
def test_published(texts, statistic, value):
    assert agreement(labels_of(rows_of(texts))).loc[statistic, "estimate"] == pytest.approx(
        value, abs=5e-4
    )


# irrCAC 0.4.4 (Python), CAC(...).krippendorff(), .fleiss() and .gwet(), to 12 digits. α is that of
# krippendorff 0.9.0 too, and the κ of Fleiss's data that of statsmodels 0.15.0.
@pytest.mark.parametrize(
    ("texts", "alpha", "kappa", "ac1"),
    [
        (
            FOUR,
            (0.743421052632, 0.145573886985),
            (0.762483130904, 0.135438598518),
            (0.775151708719, 0.125271926003),
        ),
        (
            THREE,
            (0.691358024691, 0.171346401993),
            (0.688142934488, 0.170474278113),
            (0.708551189071, 0.154632253955),
        ),
        (
            FIVE,
            (0.480530240265, 0.113507529056),
            (0.457621686772, 0.12045007194),
            (0.496622054873, 0.121973368005),
        ),
        (
            FLEISS,
            (0.433409828282, 0.054198935515),
            (0.43024452006, 0.054198935515),
            (0.447884515845, 0.055662141682),
        ),
        (
            ABSTRACTORS,
            (0.797258497731, 0.059352240146),
            (0.796239696212, 0.059352240146),
            (0.849330548231, 0.04343518914),
        ),
    ],
)
def test_estimates_and_errors_are_those_of_the_library(texts, alpha, kappa, ac1):
    rows = rows_of(texts)
    table = agreement(labels_of(rows))
    for name, (value, spread) in {
        "fleiss_kappa": kappa,
        "gwet_ac1": ac1,
        "krippendorff_alpha": alpha,
    }.items():
        assert table.loc[name, "estimate"] == pytest.approx(value, abs=1e-11)
        if name == "krippendorff_alpha":  # irrCAC leaves the factor 1 − 1/n of α out of its error.
            assert error(table.loc[name]) == pytest.approx(spread * (1 - 1 / len(rows)), rel=2e-3)
        else:
            assert error(table.loc[name]) == pytest.approx(spread, abs=1e-11)


# ---------------------------------------------------------------- what enters


def test_the_table():
    table = agreement(labels_of(rows_of(FIVE)))
    assert list(table.index) == [
        "observed_agreement",
        "krippendorff_alpha",
        "fleiss_kappa",
        "gwet_ac1",
    ]
    assert list(table.columns) == ["estimate", "low", "high", "items", "items_left_out"]
    assert (table["low"] < table["estimate"]).all()
    assert (table["estimate"] < table["high"]).all()


def repeated(seed: int) -> list[tuple[int, int, int]]:
    """Labels of 12 items by 4 annotators, some of whom label some items two or three times."""
    rng = np.random.default_rng(seed)
    cells = itertools.product(range(12), range(4))
    return [(i, k, int(rng.integers(3))) for i, k in cells for _ in range(rng.integers(0, 4))]


@pytest.mark.parametrize("seed", range(5))
def test_repeated_labels_by_enumeration(seed):
    """Two different annotators of an item are drawn, then a label of each; by chance, two different
    (item, annotator)."""
    rows = repeated(seed)
    given = {(i, k): [c for j, m, c in rows if (j, m) == (i, k)] for i, k, _ in rows}
    by_item = {i: [k for j, k in given if j == i] for i in range(12)}
    by_item = {i: who for i, who in by_item.items() if len(who) >= 2}

    def differ(one, two):
        return np.mean([a != b for a, b in itertools.product(given[one], given[two])])

    d = {
        i: np.mean([differ((i, k), (i, m)) for k, m in itertools.permutations(who, 2)])
        for i, who in by_item.items()
    }
    cells = [(i, k) for i, who in by_item.items() for k in who]
    chance = np.mean([differ(one, two) for one, two in itertools.permutations(cells, 2)])
    shares = np.mean(
        [np.mean([np.eye(3)[given[i, k]].mean(0) for k in who], 0) for i, who in by_item.items()], 0
    )
    size = [len(who) for who in by_item.values()]
    within = np.mean(list(d.values()))

    table = agreement(labels_of(rows, num_items=12, num_classes=3))["estimate"]
    assert table["observed_agreement"] == pytest.approx(1 - within)
    assert table["krippendorff_alpha"] == pytest.approx(
        1 - np.average(list(d.values()), weights=size) / chance
    )
    assert table["fleiss_kappa"] == pytest.approx(1 - within / (1 - np.sum(shares**2)))
    assert table["gwet_ac1"] == pytest.approx(1 - within / (1 - np.sum(shares * (1 - shares)) / 2))


def test_a_count_is_as_many_rows():
    rows = repeated(0)
    distinct = sorted(set(rows))
    count = [rows.count(row) for row in distinct]
    np.testing.assert_allclose(
        agreement(labels_of(distinct, count)), agreement(labels_of(rows)), rtol=1e-12
    )


# ---------------------------------------------------------------- the edges


def test_one_class():
    rows = [(i, k, 0) for i in range(9) for k in range(3)]
    with pytest.warns(DataWarning, match="krippendorff_alpha, fleiss_kappa, gwet_ac1"):
        table = agreement(dataclasses.replace(labels_of(rows, num_classes=2), classes=(0,)))
    assert table.loc["observed_agreement", "estimate"] == 1
    assert table[["estimate", "low", "high"]].iloc[1:].isna().all(axis=None)


def test_one_item():
    with pytest.warns(DataWarning, match="one item"):
        table = agreement(labels_of([(0, 0, 0), (0, 1, 1), (0, 2, 0), (1, 0, 0)]))
    assert table.loc["observed_agreement", "estimate"] == pytest.approx(1 / 3)
    assert table[["low", "high"]].isna().all(axis=None)
