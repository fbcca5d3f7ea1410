"""Public votes with known answers: read as their owners would read them, and scored against what is
recorded elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

import raters as rt
from raters.errors import ConvergenceWarning, DataError, DataWarning
from raters.fitting.parts import fit_warnings
from raters.fitting.result import program_of
from tests.real import data_folder
from tests.refusals import raises_about

SIGNED = rt.ExtendedBTL(competence="signed")
# Short chains, and graphs in several parts: what the data are, not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind.__module__}.{kind.__name__}")
    for kind in (DataWarning, ConvergenceWarning)
]


def means(result) -> tuple[pd.Series, pd.Series]:
    """Posterior means of rewards and competences, by name."""
    posterior = result["posterior"]
    return tuple(
        posterior[site].mean(("chain", "draw")).to_series() for site in ("reward", "competence")
    )


def fit(votes: rt.Comparisons, backend: rt.PGGibbs | rt.PGEM, model: rt.Model = SIGNED):
    return rt.fit(model, votes, backend, seed=0, progress=False, log_likelihood=False)


# ------------------------------------------------------------------ reading level


def reading_level() -> tuple[rt.Comparisons, pd.Series, pd.Series]:
    folder = data_folder("reading_level")
    frame = pd.read_csv(folder / "comparisons.csv")
    frame = frame[frame["winner"] != frame["loser"]]
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    grade = pd.read_csv(folder / "items.csv").set_index("item")["grade_level"]
    quality = pd.read_csv(folder / "annotators.csv").set_index("annotator")["recorded_quality"]
    return votes, grade, quality


def test_reading_level_has_two_texts_compared_with_themselves():
    frame = pd.read_csv(data_folder("reading_level") / "comparisons.csv")
    with raises_about(DataError, "winner") as caught:
        rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    assert "268 in row 11994 (counted from 0; 2 such row(s))" in str(caught.value)


@pytest.mark.parametrize(
    ("backend", "correlation"),
    # The exact posterior means reach .49 over those with ten votes, the Laplace approximation .51.
    [(rt.PGGibbs(draws=500, warmup=300, chains=2), 0.47), (rt.PGEM(draws=300), 0.5)],
    ids=["PGGibbs", "PGEM"],
)
def test_reading_level_agrees_with_grades_and_recorded_quality(backend, correlation):
    votes, grade, quality = reading_level()
    assert (votes.num_votes, votes.num_annotators, votes.num_items) == (12_726, 624, 490)
    reward, competence = means(fit(votes, backend))
    assert kendalltau(reward, grade[reward.index]).statistic >= 0.36
    assert 8 <= (competence < 0).sum() <= 22
    often = competence.index[votes.judgements_by("annotator") >= 10]
    assert spearmanr(competence[often], quality[often]).statistic >= correlation


# ------------------------------------------------------------------ country population


def test_country_population_agrees_with_the_truth():
    folder = data_folder("country_population")
    frame = pd.read_csv(folder / "comparisons.csv")
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    assert (votes.num_votes, votes.num_annotators, votes.num_items) == (3184, 199, 15)
    assert set(votes.judgements_by("annotator")) == {16}
    rank = pd.read_csv(folder / "items.csv").set_index("item")["true_rank"]
    reward, competence = means(fit(votes, rt.PGGibbs(draws=300, warmup=200, chains=2)))
    assert kendalltau(reward, -rank[reward.index]).statistic >= 0.7
    right = frame["winner"].map(rank) < frame["loser"].map(rank)
    agreement = right.groupby(frame["annotator"]).mean()
    assert spearmanr(competence, agreement[competence.index]).statistic >= 0.6


# ------------------------------------------------------------------ MT-bench


def mtbench(ties: str) -> rt.Comparisons:
    folder = data_folder("mtbench_human")
    frame = pd.concat(
        pd.read_csv(folder / f"comparisons_{judges}.csv") for judges in ("human", "gpt4")
    )
    return rt.Comparisons.from_frame(
        frame, first="model_a", second="model_b", outcome="winner", annotator="annotator", ties=ties
    )


def test_mtbench_is_read_as_it_is():
    with raises_about(DataError, "ties") as caught:
        mtbench("error")
    assert "1380 such row(s)" in str(caught.value)
    assert mtbench("drop").num_votes == 4375
    votes = mtbench("half")
    assert votes.num_votes == 5755
    assert votes.ordered
    assert float((votes.wins % 1 == 0.5).sum()) > 0


def test_mtbench_with_ties_as_half_votes():
    votes = mtbench("half")
    reward, competence = means(fit(votes, rt.PGEM(draws=300)))
    assert reward.sort_values().index.tolist() == [
        "llama-13b",
        "alpaca-13b",
        "vicuna-13b-v1.2",
        "gpt-3.5-turbo",
        "claude-v1",
        "gpt-4",
    ]
    assert competence["gpt4_pair"] > 1


def test_mtbench_without_ties():
    reward, _ = means(fit(mtbench("drop"), rt.PGEM(draws=300)))
    assert reward.idxmax() == "gpt-4"
    assert reward.idxmin() == "llama-13b"


def test_mtbench_keeps_the_order_of_people_beside_a_judge_with_many_votes(fit_quietly):
    folder = data_folder("mtbench_human")
    people, judge = (pd.read_csv(folder / f"comparisons_{who}.csv") for who in ("human", "gpt4"))

    def votes(times: int) -> rt.Comparisons:
        return rt.Comparisons.from_frame(
            pd.concat([people, *[judge] * times]),
            first="model_a",
            second="model_b",
            outcome="winner",
            annotator="annotator",
            ties="half",
        ).aggregate()

    alone = fit_quietly(rt.BTL(), votes(0), rt.PGEM(draws=0))["posterior"]["reward"].mean(
        ("chain", "draw")
    )
    backend = rt.PGGibbs(draws=300, warmup=150, chains=2)
    for times in (1, 10):
        beside = fit_quietly(rt.HierarchicalBTL(), votes(times), backend)["posterior"]["reward"]
        reward = beside.mean(("chain", "draw")).sel(item=alone["item"])
        assert kendalltau(reward, alone).statistic >= 0.9
        assert np.corrcoef(reward, alone)[0, 1] > 0.995
    extended = rt.ExtendedBTL()
    for times, warned in ((1, False), (3, True), (10, True)):
        result = fit_quietly(extended, votes(times), rt.PGEM(draws=200))
        said = fit_warnings(program_of(extended, result), result)
        assert any("the ranking follows this annotator" in each for each in said) == warned


@pytest.mark.parametrize(
    "crowd", [pytest.param("reading_level", marks=pytest.mark.exhaustive), "country_population"]
)
def test_ordinary_crowds_are_not_taken_over(crowd, fit_quietly):
    frame = pd.read_csv(data_folder(crowd) / "comparisons.csv")
    frame = frame[frame["winner"] != frame["loser"]]
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    for competence in ("unit", "signed"):
        model = rt.ExtendedBTL(competence)
        result = fit_quietly(model, votes, rt.PGEM(draws=100))
        said = fit_warnings(program_of(model, result), result)
        assert not any("the ranking follows" in each for each in said)


# ------------------------------------------------------------------ LLMBar


def llmbar() -> tuple[pd.DataFrame, rt.Comparisons]:
    """An item is one answer to one instruction, "7/1" or "7/2"; `swapped` says which was shown
    first."""
    frame = pd.read_csv(data_folder("llmbar_judges") / "judgments.csv.gz")
    answer = frame["pair"].astype(str) + "/"
    frame["shown_first"] = answer + (1 + frame["swapped"]).astype(str)
    frame["shown_second"] = answer + (2 - frame["swapped"]).astype(str)
    frame["better"] = answer + frame["winner"].astype(str)
    votes = rt.Comparisons.from_frame(
        frame, first="shown_first", second="shown_second", outcome="better", annotator="annotator"
    )
    return frame, votes


def test_llmbar_is_read_with_its_order_of_presentation():
    _, votes = llmbar()
    assert (votes.num_items, votes.num_annotators) == (838, 65)
    assert votes.ordered
    falcon = np.array([name.startswith("Falcon") for name in votes.annotators])[votes.annotator]
    falcons = votes.take(falcon)
    assert falcons.wins.sum() / falcons.num_votes == pytest.approx(
        0.84, abs=0.005
    )  # the share that is recorded with the data


def test_llmbar_competence_and_position_bias():
    frame, votes = llmbar()
    gold = pd.read_csv(data_folder("llmbar_judges") / "pairs.csv").set_index("pair")["gold_winner"]
    result = fit(
        votes, rt.PGEM(draws=100, starts=1), rt.ExtendedBTL(competence="signed", position_bias=True)
    )
    _, competence = means(result)
    accuracy = (frame["winner"] == frame["pair"].map(gold)).groupby(frame["annotator"]).mean()
    assert spearmanr(competence, accuracy[competence.index]).statistic >= 0.6
    bias = result["posterior"]["position_bias"].mean(("chain", "draw")).to_series()
    shown_first = (frame["better"] == frame["shown_first"]).groupby(frame["annotator"]).mean()
    assert spearmanr(bias, shown_first[bias.index]).statistic >= 0.9
