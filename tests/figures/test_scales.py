"""Item–person maps, and shares of the levels."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters import figures
from raters.errors import SettingError


@pytest.fixture(scope="module")
def graded(fit_quietly):
    rng = np.random.default_rng(0)
    table = {f"q{item}": rng.integers(0, 3, 30) for item in range(4)} | {"who": range(30)}
    responses = rt.GradedResponses.from_wide(table, person="who")
    return fit_quietly(rt.models.GradedResponse(), responses, rt.PGEM(draws=50))


@pytest.fixture(scope="module")
def rated(fit_quietly):
    ratings = rt.datasets.rating_crowd(20, 5, 3, 4, seed=0).ratings
    result = fit_quietly(rt.ManyFacet(), ratings, rt.PGEM(draws=100))
    return result, rt.audit(rt.ManyFacet(), result)


def test_a_map_has_persons_above_items_from_the_hardest_on(graded, tmp_path) -> None:
    plots = figures.item_person_map(graded, most=3)
    data = plots.data
    assert data["ability"].sizes == {"person": 30}
    assert data["difficulty"].sizes == {"item": 3, "step": 2}
    mean = data["difficulty"].mean("step").values
    assert (np.diff(mean) <= 0).all()
    assert (data["difficulty_low"] <= data["difficulty_high"]).all()
    everything = graded["posterior"]["difficulty"].mean(("chain", "draw", "step"))
    assert mean[0] == pytest.approx(float(everything.max()), rel=1e-6)
    plots.savefig(tmp_path / "map.png")
    above, items = plots.get_viz("figure").axes
    assert above.get_xlim() == items.get_xlim()


def test_a_map_needs_abilities(rated) -> None:
    with pytest.raises(SettingError, match="has no abilities and difficulties"):
        figures.item_person_map(rated[0])


def test_levels_are_shares_from_the_most_severe_on(rated, graded, tmp_path) -> None:
    audit = rated[1]
    plots = figures.levels(audit)
    np.testing.assert_allclose(plots.data["share"].sum("level"), 1)
    bias = audit.table["bias"].to_series()
    assert list(plots.data["annotator"].values) == list(bias.sort_values(kind="stable").index)
    few = figures.levels(audit, most=2)
    assert list(few.data["annotator"].values) == [bias.idxmin(), bias.idxmax()]
    plots.savefig(tmp_path / "levels.png")
    with pytest.raises(SettingError, match="has no shares of levels"):
        figures.levels(rt.audit(rt.models.GradedResponse(), graded))


def test_rewards_of_ratings_are_in_standard_deviations(rated) -> None:
    axes = figures.rewards(rated[0]).get_viz("figure").axes[0]
    assert "standard deviations" in axes.get_xlabel()
