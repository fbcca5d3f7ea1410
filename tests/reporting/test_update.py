"""An update agrees with a fit of all judgements, and knows new names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.errors import DataError, DataWarning, SettingError

VOTES = rt.datasets.separated(num_items=8, num_annotators=4, num_votes=3000, seed=0)[0]


def parts(number: int) -> tuple[rt.Comparisons, rt.Comparisons]:
    """Votes, and so many others."""
    rows = np.random.default_rng(0).permutation(VOTES.num_rows)
    return VOTES.rows(np.sort(rows[number:])), VOTES.rows(np.sort(rows[:number]))


def test_an_update_agrees_with_a_fit_of_all_votes() -> None:
    old, new = parts(6)
    model, settings = rt.BTL(), rt.PGGibbs(draws=1000)
    before = rt.fit(model, old, settings, seed=0, progress=False)
    updated = rt.update(before, new, progress=False)
    assert updated.pareto_k < 0.7
    before.attrs["min_ess"] = 50.0  # Of chains that have not mixed.
    assert np.isinf(rt.update(before, new, progress=False).pareto_k)
    full = rt.fit(model, old.joined(new), settings, seed=1, progress=False)
    assert updated.result["observed_data"].sizes == full["observed_data"].sizes
    names = "chain", "draw"
    first, last, new_one = (one.posterior["reward"] for one in (before, full, updated.result))
    spread = last.std(names)
    # Each mean has an error of about .05 spreads; 4.5 of them are a false alarm of 1e-4 in all.
    assert float(abs((new_one.mean(names) - last.mean(names)) / spread).max()) < 0.23
    assert float(abs(np.log(new_one.std(names) / spread)).max()) < 0.23
    # The new votes move the means by more than that.
    assert float(abs((first.mean(names) - last.mean(names)) / spread).max()) > 0.3
    assert [*updated.changes] == ["what", "name", "before", "after", "probability"]
    assert "has not settled" not in rt.leaderboard(updated.result).to_html()


def test_new_annotators_have_their_prior_and_their_votes() -> None:
    old, new = parts(6)
    names = tuple(f"new {name}" for name in new.annotators)
    before = rt.fit(rt.ExtendedBTL("signed"), old, rt.PGGibbs(), seed=0, progress=False)
    updated = rt.update(before, replace(new, annotators=names), progress=False)
    posterior = updated.result.posterior
    assert posterior["annotator"].values.tolist() == [*map(str, VOTES.annotators), *names]
    spread = posterior["competence"].std(("chain", "draw"))
    assert float(spread[4:].mean()) > 1.3 * float(spread[:4].mean())


def test_a_new_item_has_its_place_among_the_others() -> None:
    old, new = parts(3)
    names = (*VOTES.items, "new")
    before = rt.fit(rt.BTL(reward_scale=2.0), old, rt.PGGibbs(draws=1000), seed=0, progress=False)
    place, wins = np.arange(12), np.tile([1.0, 0.0], 6)
    columns = {"first": np.full(12, 8), "second": place % 8, "annotator": place % 4}
    more = replace(
        new.rows(np.zeros(12, int)), **columns, wins=wins, count=np.ones(12), items=names
    )
    updated = rt.update(before, more, progress=False)
    both = old.with_names("item", names).joined(more)
    full = rt.fit(rt.BTL(reward_scale=2.0), both, rt.PGGibbs(draws=1000), seed=1, progress=False)
    rewards = [
        one.posterior["reward"].stack(sample=("chain", "draw")) for one in (updated.result, full)
    ]
    for reward in rewards:
        np.testing.assert_allclose(reward.sum("item"), 0, atol=1e-5)
    # Each mean has an error of about .05 spreads; 4.5 of them are a false alarm of 1e-4 in all.
    apart = (rewards[0].mean("sample") - rewards[1].mean("sample")) / rewards[1].std("sample")
    assert float(abs(apart).max()) < 0.25
    assert updated.changes["before"].isna().tolist() == [True]


def test_a_swap_of_ranks_has_its_probability() -> None:
    old, new = parts(3)
    before = rt.fit(rt.BTL(), old, rt.PGEM(), seed=0, progress=False)
    order = before.posterior["reward"].mean(("chain", "draw")).argsort().values
    better, worse = order[-1], order[-2]  # each vote is for the second against the first
    votes = np.full(400, 1)
    more = replace(
        new.rows(np.zeros(400, int)),
        first=better * votes,
        second=worse * votes,
        wins=0.0 * votes,
        count=1.0 * votes,
    )
    updated = rt.update(before, more, progress=False)
    rows = updated.changes.query("what == 'rank'").set_index("name")
    names = [str(VOTES.items[place]) for place in (better, worse)]
    assert rows.loc[names, "after"].tolist() == [2, 1]
    reward = updated.result.posterior["reward"]
    is_second = reward[..., worse] > reward[..., better]
    assert rows.loc[names[1], "probability"] == pytest.approx(float(is_second.mean()), abs=0.02)


@pytest.mark.parametrize("again", ["the same", "the last", "all and some"])
def test_what_was_fitted_already_is_noticed(again: str) -> None:
    old, new = parts(12)
    before = rt.fit(rt.BTL(), old.joined(new), rt.PGEM(), seed=0, progress=False)
    more = {
        "the same": old.joined(new),
        "the last": new,
        "all and some": old.joined(new).joined(new),
    }
    with pytest.warns(DataWarning, match="already"):
        rt.update(before, more[again], progress=False)


def test_classes_are_fitted_again() -> None:
    labels, _ = rt.datasets.label_crowd(60, 4, 3, 2, seed=0)
    table = labels.to_frame()
    is_new = table["item"].astype(int) >= 50  # by annotators who are known
    roles = {name: name for name in ("item", "annotator", "label")}
    old, new = (rt.Labels.from_frame(table[rows], **roles) for rows in (~is_new, is_new))
    before = rt.fit(rt.models.OneCoin(), old, rt.PGEM(), seed=0, progress=False)
    updated = rt.update(before, new, progress=False)
    assert updated.result["observed_data"].sizes["row"] == old.num_rows + new.num_rows


@pytest.mark.filterwarnings("ignore:the draws")
def test_a_new_lowest_level_comes_first() -> None:
    ratings, _ = rt.datasets.rating_crowd(12, 3, 3, num_levels=4, seed=0)
    lowest = np.asarray(ratings.rating) == 0
    more = ratings.rows(np.flatnonzero(lowest)).to_frame()
    rest = ratings.rows(np.flatnonzero(~lowest)).to_frame()
    roles = {"item": "item", "annotator": "annotator", "rating": "rating"}
    old, new = (
        rt.Ratings.from_frame(rows, **roles) for rows in (rest, pd.concat([more, rest[:9]]))
    )
    before = rt.fit(rt.ManyFacet(), old, rt.PGEM(draws=100), seed=0, progress=False)
    updated = rt.update(before, new, progress=False)
    assert updated.result.posterior["step"].values.tolist() == [2, 3, 4]
    text = rt.Ratings.from_frame(more.assign(rating="low"), **roles, levels=["low", "high"])
    with pytest.raises(SettingError, match="same levels"):
        rt.update(before, text, progress=False)


def test_judgements_of_another_kind_are_refused() -> None:
    old, _ = parts(6)
    before = rt.fit(rt.BTL(), old, rt.PGEM(), seed=0, progress=False)
    labels, _ = rt.datasets.label_crowd(10, 3, 2, 2, seed=0)
    with pytest.raises((DataError, SettingError)):
        rt.update(before, labels, progress=False)
