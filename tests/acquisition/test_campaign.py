"""Campaigns: what is asked, what becomes of answers, when it is done, and that a journal is all
that it takes to go on."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.acquisition import GainBelow, Policy, Random, Top, formats
from raters.acquisition.batches import Unique
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.stopping import Stop
from raters.errors import BackendError, DataError, SettingError
from tests import hand
from tests.acquisition import crashing
from tests.refusals import raises_about


@dataclasses.dataclass(frozen=True)
class Answers(Stop):
    """Stop after so many votes."""

    at_least: int

    def value(self, posterior) -> float:
        return posterior.data.num_votes


BY_CHANCE = Policy(score=Random(), batch=Top())
# Where syncing costs nothing.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """Nine votes about three drinks, by two people."""
    rows = [("tea", "milk", "ann"), ("tea", "beer", "ann"), ("milk", "beer", "bob")]
    return hand.votes(*rows * 3)


@pytest.fixture(scope="module")
def labels() -> rt.Labels:
    """Four labels of three pages, by two people."""
    table = {"page": [1, 1, 2, 3], "who": ["ann", "bob"] * 2, "says": ["ham", "spam"] * 2}
    return rt.Labels.from_frame(table, item="page", annotator="who", label="says")


@pytest.fixture
def folder():
    """A folder for journals."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@pytest.fixture
def start(folder, votes):
    """A campaign that chooses at random, of the six questions about three drinks."""

    def made(pool=None, path="campaign.db", model=None, **given) -> Campaign:
        pool = rt.Candidates.pairs(votes) if pool is None else pool
        model = rt.BTL() if model is None else model
        settings = {"policy": BY_CHANCE, "batch_size": 2} | given
        return Campaign(folder / path, model, pool, **settings)

    return made


def ids(table) -> list[str]:
    return table["id"].values.tolist()


def triplets(table) -> list[tuple]:
    columns = [table[name].values.tolist() for name in ("first", "second", "by")]
    return list(zip(*columns, strict=True))


def same(one, other) -> bool:
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


# ---------------------------------------------------------------- ask


def test_a_batch_is_in_the_journal_when_it_is_handed_out(start):
    campaign = start()
    asked = campaign.ask()
    assert dict(asked.sizes) == {"id": 2}
    assert triplets(Campaign.open(campaign.path).outstanding()) == triplets(asked)
    assert ids(campaign.ask(3)) == [f"{ids(asked)[0][:4]}-{number}" for number in (3, 4, 5)]


def test_a_campaign_keeps_the_back_end_that_it_began_with(start):
    other = start(backend=rt.PGGibbs(draws=20, warmup=10, chains=1)).backend
    assert start().backend == other


def test_an_open_question_is_not_handed_out_again(start):
    campaign = start(again=True)
    asked = [one for _ in range(4) for one in triplets(campaign.ask())]
    assert len(asked) == len(set(asked)) == 6
    assert campaign.why_done.endswith("waiting for an answer: 6")
    campaign.tell({ids(campaign.outstanding())[0]: "first"})
    assert campaign.why_done is None
    assert triplets(campaign.ask()) == [asked[0]]


def test_only_those_who_are_there_are_asked(start):
    campaign = start()
    assert set(campaign.ask(6, annotator="bob")["by"].values) == {"bob"}
    assert campaign.ask(annotator=["bob"]).sizes["id"] == 0
    assert not campaign.done
    assert campaign.outstanding(annotator="ann").sizes["id"] == 0
    assert campaign.outstanding(annotator="bob").sizes["id"] == 3
    with raises_about(DataError, "annotator"):
        campaign.ask(annotator=[])
    with raises_about(DataError, "annotator", "bobby"):
        campaign.ask(annotator="bobby")


def test_either_item_comes_first(start, votes):
    pool = rt.Candidates.pairs(items=range(20), annotators=["ann"])
    campaign = start(pool, path="mixed.db")
    turned = np.asarray(campaign.pool.first) > np.asarray(campaign.pool.second)
    assert 60 < turned.sum() < 130  # of 190, five standard deviations of 6.9
    assert same(start(pool, path="mixed.db").pool, campaign.pool)
    assert same(start(campaign.pool, path="mixed.db").pool, campaign.pool)  # mixed already
    ordered = dataclasses.replace(pool, ordered=True)
    assert same(start(ordered, path="ordered.db").pool, ordered)
    described = pool.with_features(np.arange(20.0)[:, None])
    found = start(described, path="described.db", model=rt.models.ContextualBTL()).pool
    assert np.array_equal(found.features[:, 0], np.asarray(found.first) - np.asarray(found.second))


def test_two_processes_do_not_ask_the_same(start, votes):
    """Each has read the journal before the other writes to it."""
    one, other = start(again=False), start(again=False)
    choose = one._choose

    def slowly(*arguments):
        found = choose(*arguments)
        one._choose = choose
        asked.extend(triplets(other.ask(3)))
        return found

    asked: list[tuple] = []
    one._choose = slowly
    asked.extend(triplets(one.ask(3)))
    assert len(set(asked)) == 6


# ---------------------------------------------------------------- tell


def test_a_withdrawn_question_may_be_asked_anew_and_answered_late(start):
    campaign = start(again=False, budget=6.0)
    first = ids(campaign.ask(6))
    assert campaign.withdraw(first[:2]) == tuple(first[:2])
    assert campaign.withdraw(first[0]) == ()
    second = ids(campaign.ask(6))
    assert len(second) == 2
    told = campaign.tell(dict.fromkeys([first[0], *second], "first"))
    assert told.late == (first[0],)
    assert (campaign.data.num_votes, campaign.spent) == (3, 3.0)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_however_answers_arrive_the_data_are_the_same(data):
    """In any order, one by one or together, twice, before or after other batches, after they were
    withdrawn."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "campaign.db"
        campaign = crashing.campaign(path)
        expected = {one: crashing.answer_to(one) for one in ids(campaign.ask(5))}
        campaign.withdraw(data.draw(st.lists(st.sampled_from(sorted(expected)), unique=True)))
        more = ids(campaign.ask(3))
        expected |= {one: crashing.answer_to(one) for one in more}
        plain = {one.partition("-")[2]: answer for one, answer in expected.items()}

        arrivals = data.draw(st.permutations(sorted(expected) * 2))
        cuts = sorted(data.draw(st.sets(st.integers(1, len(arrivals) - 1), max_size=4)))
        told = []
        for begin, end in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
            if data.draw(st.booleans()):
                campaign = Campaign.open(path)  # as after a crash
            told.append(campaign.tell({one: expected[one] for one in arrivals[begin:end]}))
        assert sorted(one for part in told for one in part.new) == sorted(expected)

        found = campaign.data
        values = {"first": 1.0, "second": 0.0, "tie": 0.5}
        assert found.wins.tolist() == [values[plain[str(number)]] for number in range(1, 9)]
        seen = campaign._journal.read()
        assert np.array_equal(found.first, np.asarray(campaign.pool.first)[seen.row])
        assert campaign.spent == 8.0


@pytest.mark.parametrize(("word", "wins"), [("first", 1.0), ("second", 0.0), ("tie", 0.5)])
def test_answers_of_other_tools_are_sides_whatever_items_are_called(start, word, wins):
    pool = rt.Comparisons([0], [1], [0], None, None, ("second", "first"), ("ann",))
    campaign = start(dataclasses.replace(pool, ordered=True))
    (one,) = ids(campaign.ask())
    result = [{"type": "choices", "value": {"choices": [word]}}]
    done = {"completed_by": 7, "result": result}
    tasks = [{"data": {"question_id": one, "by": "ann"}, "annotations": [done]}]
    campaign.tell(formats.from_label_studio(tasks).answers)
    assert campaign.data.wins.tolist() == [wins]


def test_words_for_an_answer(start, votes):
    campaign = start(rt.Candidates.pairs(votes, items=["beer", "milk"], annotators=["ann"]))
    (one,) = ids(campaign.ask())
    words = {"tie": 0.5, "milk": 0.0, "beer": 1.0, "Second": 0.0, "first": 1.0, " right": 0.0}
    for word, wins in words.items():
        campaign.tell(one, word, correct=True)
        assert campaign.data.wins.tolist() == [wins]
        assert campaign.tell(one, word).again == (one,)


# ---------------------------------------------------------------- what is known


def test_answers_are_added_to_earlier_votes(start, votes):
    campaign = start(data=votes)
    assert same(campaign.data, votes)
    campaign.tell(dict.fromkeys(ids(campaign.ask(2)), "first"))
    found = campaign.data
    assert (found.num_votes, found.items, found.annotators) == (11, votes.items, votes.annotators)
    assert same(found.take(slice(0, votes.num_comparisons)), votes)
    resumed = start()  # the votes are in the journal
    assert same(resumed.data, found)
    assert same(Campaign.open(campaign.path).data, found)


def test_everything_that_labels_carry_is_kept(start, labels):
    known = labels.with_truth({1: "ham"}).with_features(np.arange(6.0).reshape(3, 2))
    campaign = start(
        rt.Candidates.labels(known), model=rt.Raykar(), data=known, backend=rt.PGEM(draws=50)
    )
    campaign.tell(dict.fromkeys(ids(campaign.ask(1)), "spam"))
    found = Campaign.open(campaign.path).data
    assert found.num_labels == 5
    assert np.array_equal(found.truth, known.truth)
    assert np.array_equal(found.features, known.features)
    assert found.feature_names == known.feature_names


@pytest.mark.slow
def test_fits_are_made_when_enough_is_new(start, votes):
    campaign = start(
        policy=Policy(target="everything", batch=Top()), backend=rt.PGEM(draws=100), batch_size=3
    )

    def fits() -> int:
        return campaign._fits.number

    first = ids(campaign.ask(5))
    assert fits() == 0  # from the prior
    campaign.tell(first[0], "first")
    prior = campaign.posterior
    assert fits() == 0
    assert prior.effective_draws < 0.99 * prior.weight.size
    assert campaign.posterior is prior
    campaign.tell(dict.fromkeys(first[1:3], "first"))
    campaign.ask(1)
    assert fits() == 1
    assert campaign.posterior.effective_draws == pytest.approx(100)
    campaign.tell(first[3], "second")
    assert campaign.posterior.effective_draws < 100
    assert fits() == 1
    campaign.tell(first[0], "second", correct=True)  # what was fitted was wrong
    campaign.ask(1)
    assert fits() == 2


# ---------------------------------------------------------------- when it is done


def test_a_budget_is_never_passed(start):
    campaign = start(
        policy=Policy(score=Random(), batch=Top(), costs={"ann": 2.0, "bob": 0.5}),
        budget=3.5,
        again=False,
    )
    while not campaign.done:
        campaign.tell(dict.fromkeys(ids(campaign.ask(4)), "first"))
    assert campaign.spent in (2.0 + 1.5, 2 * 0.5 + 2.0)
    status = campaign.status(probability=False)
    assert (status.spent, status.committed, status.budget) == (campaign.spent, 0.0, 3.5)
    assert status.why_done == campaign.why_done
    more = Campaign.open(campaign.path, budget=100.0, stop=GainBelow(1e-9))
    assert more.budget == 100.0
    assert campaign.budget == 100.0
    again = Campaign.open(campaign.path)
    assert (again.budget, again.stop, again.batch_size) == (100.0, GainBelow(1e-9), 2)
    changed = Campaign.open(campaign.path, budget=np.inf, stop=False)
    assert (changed.budget, changed.stop) == (None, None)
    assert Campaign.open(campaign.path).stop is None


def test_a_rule_stops(start):
    campaign = start(stop=Answers(2), backend=rt.PGEM(draws=50))
    asked = ids(campaign.ask())
    campaign.tell(asked[0], "first")
    assert not campaign.done
    campaign.tell(asked[1], "first")
    assert campaign.why_done.startswith("the stopping rule is met: Answers(")
    assert campaign.ask().sizes["id"] == 0
    with raises_about(SettingError, "stop"):
        Campaign.open(campaign.path, stop=lambda posterior: True)
    assert Campaign.open(campaign.path).done


def test_status_counts(start, votes):
    campaign = start(data=votes, backend=rt.PGGibbs(draws=40, warmup=10, chains=2))
    asked = ids(campaign.ask(4))
    campaign.tell({asked[0]: "first", asked[1]: "tie"})
    campaign.withdraw(asked[2])
    status = campaign.status()
    assert (status.answered, status.open, status.withdrawn, status.batches) == (2, 1, 1, 1)
    assert sum(status.by_annotator.values()) == 2
    assert status.fits == 1
    assert status.max_rhat > 1.0
    assert campaign.posterior.independent == status.min_ess
    assert 0 < status.order_probability <= 1
    assert -1 < status.expected_tau <= 1
    assert status.expected_accuracy is None
    assert status.why_done is None


def test_a_question_that_waits_is_not_yet_without_gain(start):
    """The question of the largest gain is being answered; until it is, the gain of the others is
    not known."""
    known = hand.votes(*[("a", "b", "ann")] * 100, ("d", "a", "ann"))
    campaign = start(
        pool=rt.Candidates.pairs(known),
        data=known,
        policy=Policy(target="everything"),
        stop=GainBelow(0.05),
    )
    assert campaign.why_done is None
    asked = campaign.ask(1)
    assert campaign.why_done is None
    assert GainBelow(0.05)(
        dataclasses.replace(campaign.posterior, pool=rt.Candidates.pairs(known, items=["a", "b"]))
    )
    campaign.withdraw(ids(asked))
    assert campaign.why_done is None


# ---------------------------------------------------------------- going on


def test_going_on_takes_the_path_alone(start, votes):
    policy = Policy(
        target="competence", batch=Unique(), costs={"ann": 2.0}, quota={"bob": 5}, least_share=0.1
    )
    campaign = start(
        model=rt.ExtendedBTL(competence="signed", reward_scale=2.0),
        policy=policy,
        data=votes,
        budget=20.0,
        seed=3,
        again=False,
    )
    again = Campaign.open(campaign.path)
    for name in ("model", "policy", "backend", "again", "seed", "batch_size", "budget", "stop"):
        assert getattr(again, name) == getattr(campaign, name)
    assert same(again.pool, campaign.pool)
    assert same(again.data, campaign.data)
    assert Campaign.open(campaign.path, batch_size=7).batch_size == campaign.batch_size == 7


def test_another_campaign_is_refused(start, votes, labels):
    start(data=votes)
    for changed in [
        {"model": rt.ExtendedBTL()},
        {"policy": Policy()},
        {"backend": rt.PGEM()},
        {"again": False},
        {"seed": 1},
        {"pool": rt.Candidates.pairs(votes, items=["tea", "milk"])},
        {"data": votes.take([0])},
        {"pool": rt.Candidates.labels(labels), "model": rt.DawidSkene()},
    ]:
        with raises_about(DataError, "path"):
            start(**changed)


# ---------------------------------------------------------------- bad input


def test_pools_and_votes_that_cannot_be(start, votes, labels):
    names = ("a", "b"), ("x",)
    for wrong in [
        {"data": labels},
        {"data": rt.Candidates.pairs(votes)},
        {"pool": rt.Comparisons([0], [9], [0], None, None, *names)},
        {"pool": rt.Comparisons([0], [1], [-1], None, None, *names)},
        {"pool": rt.Comparisons([1], [1], [0], None, None, *names)},
        {"pool": labels, "model": rt.DawidSkene(), "data": labels.take([0])},
    ]:
        with pytest.raises(DataError):
            start(**wrong)


def test_a_policy_that_the_model_cannot_serve(start, labels, folder):
    with raises_about(SettingError, "target"):
        start(rt.Candidates.labels(labels), model=rt.DawidSkene(), policy=Policy(target="ranking"))
    with raises_about(BackendError, "position_bias", True):
        start(model=rt.BTL(position_bias=True))
    with raises_about(DataError, "costs", "eve"):
        start(policy=Policy(score=Random(), costs={"eve": 1.0}))
    assert not list(folder.iterdir())


# ---------------------------------------------------------------- classes of other packages


def rewritten(campaign: Campaign, name: str, change) -> Path:
    """The journal with one of its facts changed."""
    with closing(sqlite3.connect(campaign.path)) as db, db:
        query = "SELECT value FROM fact WHERE name = ?"
        ((text,),) = db.execute(query, (f"identity/{name}",)).fetchall()
        db.execute("DELETE FROM fact WHERE name = ?", (f"identity/{name}",))
        db.execute("INSERT INTO fact VALUES (?, ?)", (f"identity/{name}", change(text)))
    return campaign.path


@pytest.mark.parametrize("what", ["model", "kind"])
def test_a_journal_imports_and_calls_nothing(start, what):
    def changed(text: str) -> str:
        name = "antigravity:fly"
        return name if what == "kind" else json.dumps({"class": name, "fields": {}})

    imported = set(sys.modules)
    path = rewritten(start(), what, changed)
    with raises_about(SettingError, what):
        Campaign.open(path)
    assert set(sys.modules) == imported
