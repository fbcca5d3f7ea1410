"""Leaderboards: their tables, notes and forms."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import raters as rt
from raters.errors import SettingError
from raters.figures.base import Plots

NAMES = ["alpha", "<b>|*", "gamma", "delta"]


@pytest.fixture(scope="module")
def arena() -> rt.Comparisons:
    """Votes with style, two topics, an order of presentation, and a voter with own taste."""
    rng, number = np.random.default_rng(0), 800
    first = rng.integers(4, size=number)
    second = (first + rng.integers(1, 4, size=number)) % 4
    quality, style = np.array([1.2, 0.5, 0.0, -1.5]), np.array([-1.0, 0, 0, 1.5])
    length = [style[side] + rng.normal(size=number) for side in (first, second)]
    topic = rng.integers(2, size=number)
    own = np.where(topic == 0, 1, -1) * ((first == 1) * 1.5 - (second == 1) * 1.5)
    gap = quality[first] - quality[second] + 0.8 * (length[0] - length[1]) + 0.5 + own
    frame = {
        "a": np.array(NAMES)[first],
        "b": np.array(NAMES)[second],
        "length_a": length[0],
        "length_b": length[1],
        "topic": np.array(["code", "talk"])[topic],
        "winner": np.where(rng.random(number) < expit(gap), "a", "b"),
        "who": rng.integers(5, size=number),
    }
    columns = {"first": "a", "second": "b", "outcome": "winner", "annotator": "who"}
    features = {"length": ("length_a", "length_b")}
    return rt.Comparisons.from_frame(frame, **columns, features=features, stratum="topic")


@pytest.fixture(scope="module")
def result(arena, fit_quietly):
    model = rt.BTL(covariates=True, position_bias=True)
    return fit_quietly(model, arena, rt.PGEM(draws=600))


@pytest.fixture(scope="module")
def board(result) -> rt.reporting.Leaderboard:
    return rt.leaderboard(result)


def test_the_table_is_one_board_with_all_columns(board, arena) -> None:
    table = board.to_frame()
    assert table is not board.table
    assert table["item"].tolist() == NAMES
    number = dict(zip(arena.items, arena.judgements_by("item"), strict=True))
    assert table["judgements"].tolist() == [number[name] for name in NAMES]
    assert (table["joint_low"] <= table["rank_low"]).all()
    assert (table["joint_high"] >= table["rank_high"]).all()
    assert np.isnan(table["votes_needed"].iloc[-1])
    assert (table["votes_needed"] == 0).sum() == (table["p_above_next"] >= 0.9).sum()


def test_units_change_scores_alone(board, result) -> None:
    logits = board.table["score"].to_numpy()
    for unit, expected in {"elo": 1000 + 400 / np.log(10) * logits, "win": expit(logits)}.items():
        other = rt.leaderboard(result, unit=unit).table
        np.testing.assert_allclose(other["score"], expected)
        scores = ["score", "score_low", "score_high"]
        pd.testing.assert_frame_equal(other.drop(columns=scores), board.table.drop(columns=scores))


def test_notes_have_numbers(board) -> None:
    notes = {note["code"]: note for note in board.notes}
    (style,) = notes["style"]["features"]
    assert 0.4 < style["coefficient_low"] < 0.8 < style["coefficient_high"] + 0.1
    assert notes["position"]["first_share_low"] > 0.5
    assert notes["further"]["pairs"] == []
    assert notes["further"]["probability"] == board.table["p_best"][0]
    assert not notes["cycles"]["fails"]


def test_style_as_written_is_near_a_fit_without_it(result, arena, fit_quietly) -> None:
    table = rt.leaderboard(result, by="style").table
    plain = fit_quietly(rt.BTL(position_bias=True), arena.without_features(), rt.PGEM(draws=300))
    reward = plain["posterior"]["reward"].mean(("chain", "draw")).to_series()
    written = table[table["style"] == "as written"].set_index("item")["score"]
    assert np.corrcoef(written[reward.index], reward)[0, 1] > 0.98
    equal = table[table["style"] == "equal"]["item"].tolist()
    assert equal == NAMES
    assert written.index.tolist() != NAMES


def test_categories_are_side_by_side(arena, fit_quietly) -> None:
    fitted = fit_quietly(rt.BTL(covariates=True, strata=True), arena, rt.PGEM(draws=300))
    board = rt.leaderboard(fitted, by="category")
    first = board.table.groupby("category").first()["item"]
    assert first.to_dict() == {"code": "<b>|*", "talk": "alpha"}
    votes = board.table.groupby("category")["judgements"].sum()
    assert votes.sum() == 2 * arena.num_votes
    assert "category code" in board.to_text()
    assert "votes_needed" in board.table
    # More votes in these categories do not tell what others would say.
    assert "votes_needed" not in rt.leaderboard(fitted).table


def test_types_have_a_board_each(fit_quietly) -> None:
    votes = rt.datasets.preference_types(4, 12, 30, 2, seed=0).votes
    fitted = fit_quietly(rt.MixtureBTL(num_types=2), votes, rt.PGEM(draws=200))
    board = rt.leaderboard(fitted)
    assert board.table.groupby("type")["rank"].apply(list).tolist() == [[1, 2, 3, 4]] * 2
    assert "type 1" in board.to_markdown()
    with pytest.raises(SettingError, match="mixture"):
        rt.leaderboard(fitted, by="style")


def test_a_judge_with_most_of_the_information_is_named(fit_quietly) -> None:
    votes = rt.datasets.separated(num_items=5, num_annotators=4, num_votes=400, seed=0).votes
    frame = votes.to_frame()
    frame.loc[frame["annotator"] == 0, "count"] *= 20
    roles = {"first": "first", "second": "second", "annotator": "annotator", "count": "count"}
    many = rt.Comparisons.from_frame(frame, outcome="outcome", **roles)
    fitted = fit_quietly(rt.ExtendedBTL(), many, rt.PGEM(draws=100))
    (note,) = [one for one in rt.leaderboard(fitted).notes if one["code"] == "leading"]
    assert note["name"] == 0
    assert 0.5 < note["share_low"] < note["share"] < note["share_high"] <= 1


def test_voters_who_repeat_their_taste_are_noted(fit_quietly) -> None:
    rng, number = np.random.default_rng(0), 900
    first = rng.integers(5, size=number)
    second, who = (first + rng.integers(1, 5, size=number)) % 5, rng.integers(15, size=number)
    taste = rng.normal(0, 1.0, (15, 5))
    won = rng.random(number) < expit(taste[who, first] - taste[who, second])
    pair = {"winner": np.where(won, first, second), "loser": np.where(won, second, first)}
    columns = {"winner": "winner", "loser": "loser", "annotator": "who"}
    votes = rt.Comparisons.from_frame(pair | {"who": who}, **columns)
    found = {}
    for model in (rt.BTL(), rt.HierarchicalBTL()):
        fitted = fit_quietly(model, votes, rt.PGEM(draws=300))
        board = rt.leaderboard(fitted)
        found[type(model)] = board.table
        said = [one["code"] for one in board.notes]
        assert ("clustered" in said) == isinstance(model, rt.BTL)
    width = {
        model: (table["joint_high"] - table["joint_low"]).sum() for model, table in found.items()
    }
    assert width[rt.HierarchicalBTL] > width[rt.BTL]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)


def test_every_form_shows_the_names_as_they_are(board) -> None:
    text = board.to_text(2)
    assert "… 2 more" in text
    assert all(name in board.to_text() for name in NAMES)
    assert "&lt;b&gt;\\|\\*" in board.to_markdown()
    for page in (board.to_html(), board._repr_html_()):
        reader = _Reader()
        reader.feed(page)
        assert "b" not in reader.tags[1:] or "&lt;b&gt;|*" in page
        assert "&lt;b&gt;|*" in page
    facts = json.loads(board.to_json())
    assert [row["item"] for row in facts["rows"]] == NAMES
    assert facts["rows"][-1]["votes_needed"] is None
    assert repr(board).startswith("Leaderboard of BTL: alpha is first")
    assert isinstance(board.plot(), Plots)


def test_what_has_no_board_is_refused(board, result, fit_quietly) -> None:
    labels = rt.datasets.label_crowd(10, 5, seed=0).labels
    fitted = fit_quietly(rt.models.MajorityVote(), labels, rt.PGEM(draws=20))
    with pytest.raises(SettingError, match="order"):
        rt.leaderboard(fitted)
    with pytest.raises(SettingError, match="strata=True"):
        rt.leaderboard(result, by="category")
    responses = rt.datasets.response_crowd(10, 5, seed=0).responses
    abilities = fit_quietly(rt.Rasch(), responses, rt.PGEM(draws=50))
    assert rt.leaderboard(abilities).table.columns[0] == "person"
    with pytest.raises(SettingError, match="unit"):
        rt.leaderboard(abilities, unit="elo")
    twice = pd.concat([board.table, board.table])
    with pytest.raises(SettingError, match="one board"):
        rt.figures.leaderboard(twice)
