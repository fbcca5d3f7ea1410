"""Sets of items to rank: candidates, suggestions, and campaigns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import raters as rt
from raters.acquisition import Policy, Posterior, Random, formats
from raters.errors import BackendError, DataError, SettingError
from raters.program import pointwise_log_likelihood

MODEL = rt.ExtendedPlackettLuce(worth_scale=1.5)
ITEMS, DRAWS = 8, 400
_RNG = np.random.default_rng(0)
# Four items far apart, of known places, and four of which nothing is known; eve guesses.
WORTH = np.concatenate(
    [np.linspace(6, -6, 4) + 0.1 * _RNG.normal(size=(DRAWS, 4)), _RNG.normal(0, 1.5, (DRAWS, 4))],
    axis=1,
)
COMPETENCE = _RNG.normal([1.5, 0.0], [0.1, 0.05], (DRAWS, 2))


def questions() -> rt.Rankings:
    """One ranking that counts for nothing: the draws stand for all that was learned."""
    offered = np.arange(3, dtype=np.int32)[None]
    none = np.zeros(1, np.float32)
    return rt.Rankings(
        none.astype(np.int32),
        np.full(1, 3, np.int32),
        none,
        offered,
        offered + 1,
        ("ann", "eve"),
        tuple(range(ITEMS)),
    )


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    draws = {"worth": WORTH, "competence": COMPETENCE}
    draws = {name: value.astype(np.float32) for name, value in draws.items()}
    return Posterior(MODEL, questions(), draws, np.full(DRAWS, 1 / DRAWS, np.float32))


@pytest.fixture(scope="module")
def pool() -> rt.Rankings:
    return rt.Candidates.sets(questions(), again=True)


def drawn(asked: rt.Rankings, draw: int, rng: np.random.Generator) -> rt.Rankings:
    """Rankings by the worths and competences of a draw."""
    competence = COMPETENCE[draw, np.asarray(asked.annotator)][:, None]
    noisy = competence * WORTH[draw, np.asarray(asked.offered)] + rng.gumbel(
        size=asked.offered.shape
    )
    return asked.answered((-noisy).argsort(1).argsort(1) + 1)


def test_suggested_sets_tell_more_of_the_order_than_random_ones(posterior, pool) -> None:
    """Squared errors of expected ranks after four rankings, over 100 worths that the posterior has
    as possible. Were suggestions no better than random sets, one run in 10,000 would pass (z >
    3.72); z is 10 here, so that the alarm is false less than once in a million runs.
    """
    rank = WORTH.argsort(1).argsort(1)
    chosen = Policy().choose(posterior, pool, 4, seed=0).rows
    rng = np.random.default_rng(0)

    def loss(rows: np.ndarray, draw: int) -> float:
        after = posterior.after(questions().joined(drawn(pool.rows(rows), draw, rng)))
        return float(((after.weight @ rank - rank[draw]) ** 2).sum())

    by_chance = [rng.choice(pool.num_rows, 4, replace=False) for _ in range(100)]
    gain = np.array([loss(rows, s) - loss(chosen, s) for s, rows in enumerate(by_chance)])
    assert gain.mean() / (gain.std() / 10) > 3.72


def test_the_probability_of_an_order_is_a_product_over_first_places(posterior) -> None:
    """Under every draw, the first place of the set times that of the rest is the ranking's."""
    asked = pool_of([0, 4, 6], size=3)
    first = np.asarray(posterior.answer_probs(asked).table)
    order = asked.answered(np.array([[2, 1, 3]] * 2))  # 4, then 0, then 6
    other = pool_of([0, 6], size=2)
    last = np.asarray(posterior.answer_probs(other).table)
    sites = {"worth": WORTH[0], "competence": COMPETENCE[0]}
    log = np.asarray(pointwise_log_likelihood(MODEL, order, sites))
    np.testing.assert_allclose(np.exp(log), first[0, 1] * last[0, 0], rtol=1e-4)
    np.testing.assert_allclose(first.sum(1), 1, rtol=1e-5)


def pool_of(items: list[int], **options) -> rt.Rankings:
    return rt.Candidates.sets(questions(), items=items, again=True, **options)


# ---------------------------------------------------------------- candidates


def test_sets_are_all_combinations_for_every_annotator(ranked) -> None:
    sets = rt.Candidates.sets(ranked, size=3, again=True)
    every = list(itertools.combinations(range(5), 3))
    assert sets.offered.tolist() == [list(one) for one in every for _ in range(3)]
    assert sets.annotator.tolist() == [0, 1, 2] * len(every)
    assert not sets.has_answers
    sets.check()
    assert rt.Candidates.of(ranked, size=3, again=True).num_rows == sets.num_rows


def test_the_worst_is_asked_for_where_it_mostly_is(best_worst, ranked) -> None:
    usual = rt.Candidates.sets(best_worst, size=4, again=True)
    assert set(usual.depth.tolist()) == {1}
    assert usual.lowest.tolist() == [1] * usual.num_rows
    assert rt.Candidates.sets(best_worst, size=4, lowest=False).lowest is None
    assert rt.Candidates.sets(best_worst, size=2).depth.tolist()[:1] == [1]
    assert rt.Candidates.sets(ranked, size=4).lowest is None
    asked = rt.Candidates.sets(ranked, size=4, lowest=True)
    asked.check()
    assert asked.depth.tolist()[:1] == asked.lowest.tolist()[:1] == [1]
    first = rt.Candidates.sets(items=list("abcd"), annotators=["x"], size=4, lowest=True)
    assert (first.depth.tolist(), first.lowest.tolist()) == ([1], [1])
    assert first.instruction == "Which of these is the best, and which is the worst?"
    assert "in order" in ranked.instruction
    with pytest.raises(SettingError, match="lowest"):
        rt.Candidates.sets(ranked, size=4, lowest="yes")


# ---------------------------------------------------------------- the verbs


def test_campaigns_take_orders(tmp_path, ranked) -> None:
    pool = rt.Candidates.sets(ranked, size=3, annotators=["who 0"])
    by_chance = Policy(score=Random())
    campaign = rt.Campaign(tmp_path / "orders.db", MODEL, pool, data=ranked, policy=by_chance)
    asked = campaign.ask(3)
    one, other, third = asked["id"].values.tolist()
    words = [text.split(", ") for text in asked["offered"].values]
    campaign.tell({one: " > ".join(words[0][::-1]), other: words[1][:2]})
    for wrong in (words[2][:1], [words[2][0]] * 3, [*words[2][:2], "item 9"]):
        with pytest.raises(DataError):
            campaign.tell({third: " > ".join(wrong)})
    with pytest.raises(DataError):
        formats.to_label_studio(asked)
    again = rt.Campaign.open(tmp_path / "orders.db")
    assert again.data.num_rankings == ranked.num_rankings + 2
    last = again.data.rows(slice(-2, None))
    assert last.place.tolist()[0][:3] == [3, 2, 1]
    assert last.place.tolist()[1][:3] == [1, 2, 3]
    assert again.asked["answer"].values.tolist()[:2] == [
        " > ".join(words[0][::-1]),
        " > ".join(words[1]),
    ]


def test_campaigns_take_ties(tmp_path, tied_ranks) -> None:
    pool = rt.Candidates.sets(tied_ranks, size=3, annotators=["who 0"])
    settings = {"data": tied_ranks, "policy": Policy(score=Random())}
    with pytest.raises(BackendError, match="equal ranks"):
        rt.Campaign(tmp_path / "strict.db", MODEL, pool, **settings)
    model = rt.ExtendedPlackettLuce(ties="davidson")
    asked = rt.Campaign(tmp_path / "ties.db", model, pool, **settings).ask(2)
    names = asked["offered"].values[0].split(", ")
    answer = f"{names[1]} > {names[0]} = {names[2]}"
    rt.Campaign.open(tmp_path / "ties.db").tell({asked["id"].values[0]: answer})
    again = rt.Campaign.open(tmp_path / "ties.db")
    assert again.data.rows(slice(-1, None)).place.tolist()[0][:3] == [2, 1, 2]
    assert again.asked["answer"].values[0] == answer
