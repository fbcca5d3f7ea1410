"""Figures are readable with 2 rows and with 600, one type and twelve, one class and eight."""

from __future__ import annotations

import pytest

from raters import figures
from tests.figures.made import check_readable, fitted, judged, judged_labels, typed

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
LONG = [f"{word} of some very long class" for word in WORDS]


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 5, 60, 600])
def test_rows_of_any_number(number):
    for draw in (figures.rewards, figures.ranks):
        check_readable(draw(fitted(number)))
    for draw in (figures.competences, figures.auditor, figures.position_bias):
        check_readable(draw(judged(number)))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [["no", "yes"], ["no", "perhaps", "yes"], LONG], ids=len)
@pytest.mark.parametrize("number", [1, 5, 600])
def test_classes_of_any_number(number, classes):
    for draw in (figures.confusions, figures.auditor):
        check_readable(draw(judged_labels(number, classes)))


@pytest.mark.slow
@pytest.mark.parametrize("types", [1, 2, 6, 12])
def test_types_of_any_number(types):
    for items, site in ((2, "reward"), (30, "coefficient"), (200, "reward")):
        check_readable(figures.profiles(typed(types, items, site=site)))
    for annotators in (1, 60, 5000):
        check_readable(figures.responsibilities(typed(types, 3, annotators)))
