"""Generators of rankings, choices and item responses: what they promise, and read back from the
tables that the command line writes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

import raters as rt
from raters.checking.orders import OrderDraw
from raters.cli import app
from raters.errors import SettingError


def test_rankings_follow_the_truth() -> None:
    """Log-probabilities of the places against their expectation; false alarm below 1e-6 at 5
    standard deviations."""
    data, truth = rt.datasets.ranking_crowd(12, 6, 200, 4, 2, seed=0, guessers=0.2)
    assert data.num_rankings == 1200
    assert data.depth.tolist() == [2] * 1200
    competence = truth["competence"][data.annotator][:, None]
    draw = OrderDraw(data.place, competence * truth["worth"][data.offered])
    surprise, variance = draw.surprise(np.ones(1200))
    assert abs(surprise.sum()) < 5 * np.sqrt(variance.sum())
    assert sorted(truth["kind"]) == ["adversary", *["competent"] * 4, "guesser"]
    data.check()


def test_the_best_and_the_worst_follow_the_truth() -> None:
    """As above, with the choices of the worst; false alarm below 1e-6 at 5 standard deviations."""
    data, truth = rt.datasets.ranking_crowd(12, 6, 200, 4, best_worst=True, seed=0)
    data.check()
    assert data.depth.tolist() == data.lowest.tolist() == [1] * 1200
    competence = truth["competence"][data.annotator][:, None]
    worst = OrderDraw(data.place, competence * truth["worth"][data.offered]).stages.worst
    assert abs(worst.surprise.sum()) < 5 * np.sqrt(worst.surprise_variance.sum())
    two = rt.datasets.ranking_crowd(12, 2, 3, 4, 2, best_worst=True, seed=0).rankings
    assert np.sort(two.place, axis=1).tolist() == [[-1, 0, 1, 2]] * 6


def test_choices_follow_the_truth() -> None:
    """Choices of each alternative against their expectation; false alarm below 1e-5 at 5 standard
    deviations of four."""
    choices, truth = rt.datasets.choice_crowd(200, 5, seed=0, available=0.6)
    frame = choices.to_frame()
    names = [f"feature {place}" for place in range(2)]
    utility = frame[names] @ truth["coefficient"] + truth["constant"][frame["alternative"]]
    probs = utility.groupby(frame["set"]).transform(softmax)
    excess = (frame["chosen"] - probs).groupby(frame["alternative"]).sum()
    spread = (probs * (1 - probs)).groupby(frame["alternative"]).sum() ** 0.5
    assert (excess.abs() < 5 * spread).all()
    sizes = frame.groupby("set").size()
    assert sizes.min() == 2
    assert sizes.max() == 4
    assert truth["constant"].sum() == pytest.approx(0)


def test_responses_follow_the_truth() -> None:
    """Right responses against their expectation; false alarm below 1e-6 at 5 standard
    deviations."""
    data, truth = rt.datasets.response_crowd(100, 30, seed=0, asked=0.5, guessers=0.1)
    frame = data.to_frame()
    who, what = frame["person"].to_numpy(), frame["item"].to_numpy()
    logits = truth["discrimination"][what] * (truth["ability"][who] - truth["difficulty"][what])
    p = np.where(truth["kind"][who] == "guesser", 0.5, expit(logits))
    excess = (frame["correct"] - p).sum()
    assert abs(excess) < 5 * np.sqrt((p * (1 - p)).sum())
    assert 0.4 < len(frame) / 3000 < 0.6
    assert data.judgements_by("person").min() >= 1
    assert (rt.datasets.response_crowd(5, 4, seed=0, slopes=0).truth["discrimination"] == 1).all()


@pytest.mark.parametrize(
    ("generate", "wrong"),
    [
        (rt.datasets.ranking_crowd, {"set_size": 21}),
        (rt.datasets.ranking_crowd, {"places": 6}),
        (rt.datasets.ranking_crowd, {"places": 5, "best_worst": True}),
        (rt.datasets.ranking_crowd, {"best_worst": "yes"}),
        (rt.datasets.ranking_crowd, {"spread": 0.0}),
        (rt.datasets.ranking_crowd, {"guessers": 0.9}),
        (rt.datasets.choice_crowd, {"num_alternatives": 1}),
        (rt.datasets.choice_crowd, {"available": 0.0}),
        (rt.datasets.response_crowd, {"asked": 1.5}),
        (rt.datasets.response_crowd, {"slopes": -1.0}),
    ],
)
def test_impossible_settings_are_refused(generate, wrong) -> None:
    with pytest.raises(SettingError):
        generate(seed=0, **wrong)


@pytest.mark.parametrize(
    ("design", "read"),
    [
        (
            "ranking-crowd",
            lambda table: (
                rt.Rankings.from_frame(
                    table,
                    ranking="ranking",
                    item="item",
                    rank="rank",
                    annotator="annotator",
                    unranked="not offered",
                ).num_rankings
            ),
        ),
        (
            "choice-crowd",
            lambda table: (
                rt.Choices.from_frame(
                    table,
                    set="set",
                    alternative="alternative",
                    chosen="chosen",
                    features=["feature 0"],
                ).num_choices
            ),
        ),
        (
            "response-crowd",
            lambda table: (
                rt.Responses.from_frame(
                    table, person="person", item="item", correct="correct"
                ).num_judgements
            ),
        ),
    ],
)
def test_designs_of_the_command_line_read_back(design, read, tmp_path, capsys) -> None:
    out = tmp_path / "table.csv"
    assert app.main(["simulate", "--design", design, "--seed", "3", "--out", str(out)]) == 0
    number = {"ranking-crowd": 120, "choice-crowd": 500, "response-crowd": 4000}[design]
    assert f"wrote {number} " in capsys.readouterr().err
    assert read(pd.read_csv(out)) == number
    assert (tmp_path / "table-truth.json").exists()
