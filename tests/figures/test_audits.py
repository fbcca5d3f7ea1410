"""The figure of position biases: drawn from the audit's numbers, and readable at every size."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters import figures
from raters.errors import SettingError
from tests.figures.test_fits import judged, of, overlaps, pixels
from tests.refusals import raises_about


def biased(annotators: int) -> rt.auditing.Audit:
    """An audit with position biases, those of the last annotators towards the first item."""
    audit = judged(annotators)
    share = np.linspace(0.3, 0.9, annotators)
    columns = {
        "first_share": share,
        "first_share_low": share - 0.1,
        "first_share_high": share + 0.1,
        "p_position_bias": np.abs(share - 0.5),
    }
    table = audit.table.assign({name: ("annotator", value) for name, value in columns.items()})
    return dataclasses.replace(audit, table=table)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 5, 60, 600])
def test_it_stays_readable_at_every_size(number):
    figure = of(figures.position_bias(biased(number)))
    width, height = pixels(figure)
    assert 1000 <= width <= 2000
    assert 300 <= height <= 2600
    (axes,) = figure.axes
    assert not overlaps([*axes.get_yticklabels(), axes.yaxis.label])
    assert not overlaps(axes.get_xticklabels())


def test_those_who_favour_the_first_most_are_on_top():
    audit = biased(4)
    plots = figures.position_bias(audit)
    xr.testing.assert_identical(
        plots.data["first_share"].drop_attrs(), audit.table["first_share"][::-1]
    )
    assert plots.data.attrs == {"level": 0.9, "margin": 0.05, "mean": pytest.approx(0.6)}
    assert "triangle: mean, 0.60" in plots.get_viz("plot").get_xlabel()


def test_the_mean_is_of_those_who_voted():
    audit = biased(3)
    table = audit.table.assign(judgements=("annotator", [5, 0, 0]))
    plots = figures.position_bias(dataclasses.replace(audit, table=table))
    assert plots.data.attrs["mean"] == pytest.approx(0.3)


def test_of_many_both_ends_are_shown():
    data = figures.position_bias(biased(100), most=10).data
    share = np.linspace(0.3, 0.9, 100)[::-1]
    np.testing.assert_allclose(data["first_share"], np.r_[share[:5], share[-5:]])


@pytest.mark.parametrize("wrong", [judged(3), rt.BTL(), None])
def test_what_has_no_position_bias_is_refused(wrong):
    with raises_about(SettingError, "audit"):
        figures.position_bias(wrong)
