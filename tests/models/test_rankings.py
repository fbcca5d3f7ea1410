"""Models of rankings: warnings, limits, and what they have in common with models of votes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.errors import DataError, SettingError
from raters.program import pointwise_log_likelihood

PAIRS = {"best": ["x", "y", "x"], "next": ["y", "z", "z"], "who": ["ann", "ann", "bob"]}


def test_rankings_of_two_are_votes() -> None:
    rankings = rt.Rankings.from_wide(
        PAIRS, places=["best", "next"], annotator="who", unranked="not offered", aggregate=False
    )
    votes = rt.Comparisons.from_frame(
        PAIRS, winner="best", loser="next", annotator="who", aggregate=False
    )
    worth, competence = np.array([0.3, -1.0, 0.6]), np.array([0.7, -0.4])
    ours = {"worth": worth, "competence": competence}
    theirs = {"reward": worth, "competence": competence}
    with jax.enable_x64(True):
        for model, other in (
            (rt.PlackettLuce(1.0), rt.BTL(1.0)),
            (
                rt.ExtendedPlackettLuce(worth_scale=1.0),
                rt.ExtendedBTL(competence="signed", reward_scale=1.0),
            ),
        ):
            one = pointwise_log_likelihood(model, rankings, ours)
            two = pointwise_log_likelihood(other, votes, theirs)
            np.testing.assert_allclose(one, two, rtol=1e-12)


def races() -> rt.Rankings:
    """Of four drivers one is always last, and one is met by nobody else."""
    table = {"a": ["x", "y", "v"], "b": ["y", "x", "w"], "c": ["z", "z", None]}
    return rt.Rankings.from_wide(table, places=["a", "b", "c"], unranked="not offered")


def test_items_without_a_most_likely_worth_are_named_under_a_wide_prior() -> None:
    (text,) = rt.PlackettLuce(worth_scale=100.0).data_warnings(races())
    assert text.startswith("3 item(s) have no most likely worth")
    assert ": v, w, z; leave them out" in text
    for model in (rt.PlackettLuce(), rt.PlackettLuce(worth_scale=1.0)):
        assert model.data_warnings(races()) == ()


def test_items_below_all_count_as_behind() -> None:
    table = {"a": ["x", "y"], "b": ["y", "x"]}
    full = rt.Rankings.from_wide(table, places=["a", "b"], unranked="below", items=["x", "y", "z"])
    (text,) = rt.PlackettLuce(worth_scale=100.0).data_warnings(full)
    assert "1 item(s)" in text
    assert ": z;" in text


def test_competences_of_a_single_annotator_are_warned_of() -> None:
    alone = races().take(slice(0, 1))
    assert "by one annotator" in rt.ExtendedPlackettLuce().data_warnings(alone)[0]


@pytest.mark.parametrize("setting", [{"worth_scale": 0.0}, {"competence": "any"}])
def test_settings_out_of_range_are_refused(setting) -> None:
    with pytest.raises(SettingError):
        rt.ExtendedPlackettLuce(**setting)


@pytest.fixture(scope="module")
def fitted(ranked, fit_quietly):
    model = rt.ExtendedPlackettLuce()
    return model, fit_quietly(model, ranked, rt.PGEM(draws=50))


def test_verbs_that_list_answers_refuse_rankings(fitted, ranked) -> None:
    model, result = fitted
    for verb in (
        lambda: rt.predict(model, result),
        lambda: rt.check(model, result),
        lambda: rt.suggest(model, result, rt.Candidates.of(ranked, again=True)),
    ):
        with pytest.raises(DataError, match=r"as many answers as there are orders.*rt\.simulate"):
            verb()


def test_a_result_holds_the_rankings(fitted, ranked) -> None:
    again = rt.Rankings.from_result(fitted[1])
    np.testing.assert_array_equal(again.place, ranked.place)
    assert again.items == ranked.items
