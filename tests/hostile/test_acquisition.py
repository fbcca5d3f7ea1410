"""Bad pools, policies, rules, posteriors, scores, simulations and campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import raters as rt
from raters import acquisition as acq
from raters.errors import DataError, RatersError
from tests import hand
from tests.hostile.table import HALF, HUGE, NO_COUNT, NO_FLAG, NO_LIST, NO_SEED

VOTES = hand.votes(("a", "b", "x"), ("b", "c", "x"), ("a", "c", "y"))
LABELS = hand.labels((1, "x", "p"), (1, "y", "q"), (2, "x", "q"))
MODEL = rt.BTL(reward_scale=1.0)
RESULT = hand.result(VOTES, reward=np.random.default_rng(0).normal(size=(40, 3)))
POOL = rt.Candidates.pairs(items=["a", "b", "c"], annotators=["x", "y"])
RANDOM = rt.Policy(score=acq.Random())
POSTERIOR = acq.Posterior.of(MODEL, RESULT, draws=10)
NAMES = (*NO_LIST[1:], [], ["a", None], [["a"]], ["a\0"], [HALF], ["a", ""])

Calls = list[tuple[Callable[..., Any], Mapping[str, Any], dict[str, Iterable[Any]]]]


def not_refused(calls: Calls, kind: type[RatersError] = RatersError) -> list[str]:
    """What is wrong with the refusals: calls are good but for one argument, which takes each of the
    bad values; the error is about that parameter, in one line."""
    wrong = []
    for function, good, bad in calls:
        for name, values in bad.items():
            for value in values:
                call = f"{getattr(function, '__qualname__', function)}({name}={value!r})"[:200]
                try:
                    function(**{**good, name: value})
                except kind as error:
                    short = len(str(error)) <= 600 and "\n" not in str(error)
                    if error.parameter != name or not short:
                        wrong.append(f"{call}: about {error.parameter}: {error}")
                except Exception as error:
                    wrong.append(f"{call}: {type(error).__name__}: {error}")
                else:
                    wrong.append(f"{call}: accepted")
    return wrong


NEW = {"items": ["a", "b"], "annotators": ["x"]}
NEW_LABELS = {"items": [1, 2], "annotators": ["x"], "classes": ["p", "q"]}
ASK = {"model": MODEL, "result": RESULT, "candidates": POOL, "policy": RANDOM}
LOOP = {"model": MODEL, "policy": RANDOM, "backend": rt.PGEM(), "progress": False}
SIMULATE = LOOP | {"truth": {"reward": np.zeros(3)}, "pool": POOL}
CALLS: Calls = [
    (
        rt.Candidates.pairs,
        NEW,
        {
            "items": (None, *NAMES, ["a"], ["a", "a"]),
            "annotators": (None, *NAMES),
            "mask": (3, "ab", [("a", "b")], np.ones((2, 2), bool), lambda i, j: i),
            "available": (3, [1], {"zz": ["a"]}, {"x": "a"}, {"x": 3}, {"x": ["zz"]}),
            "limit": (0, *NO_COUNT),
            "seed": NO_SEED,
        },
    ),
    (rt.Candidates.labels, NEW_LABELS, {"again": NO_FLAG, "limit": (0, None), "seed": NO_SEED[:4]}),
    (rt.Candidates.of, {"data": VOTES}, {"seed": (-1, None), "limit": (0,)}),
    (
        rt.Policy,
        {},
        {
            "target": ("rank", 3, [], np.zeros(2)),
            "score": (3, "bald", acq.scores.Bald, rt.Policy()),
            "batch": (3, acq.Top),
            "annotator": ("joint", 3),
            "costs": (3, [1], {"x": -1.0}, {"x": 0}, {"x": float("nan")}),
            "quota": ("3", -1, {"x": "two"}),
            "least_share": (2,),
            "k": (0,),
        },
    ),
    (acq.ExpectedTau, {}, {"at_least": ("x", None, 2)}),
    (
        rt.suggest,
        ASK,
        {
            "model": (None, 3, rt.BTL),
            "result": (None, 3, {}, VOTES),
            "candidates": (None, 3, {}, []),
            "policy": (3, "random", rt.Policy, acq.Random()),
            "batch_size": (0, *NO_COUNT),
            "draws": (0, 1),
            "seed": NO_SEED,
            "target": ("rank", 3, "ranking"),
        },
    ),
    (POSTERIOR.after, {}, {"data": (None, 3, LABELS)}),
    (
        acq.simulate_campaign,
        SIMULATE,
        {
            "model": (None, rt.BTL),
            "policy": (None, 3, "random", [RANDOM]),
            "backend": ("em", rt.PGEM),
            "pool": (None, 3),
            "batch_size": (0, None, 1.5),
            "batches": (0, None),
            "seed": NO_SEED[:4],
            "progress": NO_FLAG[:3],
            "truth": (3, None, {"reward": [1]}, {"rewards": np.zeros(3)}),
        },
    ),
    (
        acq.replay_campaign,
        LOOP | {"votes": VOTES},
        {"truth": ({"reward": [1, 2]}, {"reward": "abc"}, 3), "votes": (None, POOL)},
    ),
]


def test_acquisition():
    assert not (wrong := not_refused(CALLS)), "\n".join(wrong)


# ---------------------------------------------------------------- campaigns


@pytest.fixture
def campaign(tmp_path):
    return rt.Campaign(tmp_path / "a.db", rt.BTL(), POOL, policy=RANDOM)


def test_answers_and_ids(campaign):
    question = campaign.ask(2)["id"].values[0]
    bad_ids = (None, 3, [None], ["zz"], "x", {"a": 1}, [["a"]], object(), np.array("x"))
    bad = (None, 3, {"x": None}, {None: "a"}, [("x", "a")], "x", {3: 4})
    bad_words = (3, "zz", True, 1.5, None, float("nan"), ["a"], {"a": 1}, object(), b"\xff", "")
    calls = [(campaign.withdraw, ids) for ids in bad_ids]
    calls += [(campaign.tell, answers) for answers in bad]
    calls += [(campaign.tell, {question: answer}) for answer in bad_words]
    for function, argument in calls:
        with pytest.raises(RatersError) as caught:
            function(argument)
        assert len(str(caught.value)) <= 600, argument
    assert campaign.outstanding().sizes["id"] == 2
    assert campaign.data.num_votes == 0


def test_paths_of_a_campaign():
    for path in ("", "/nonexistent/a.db", "/tmp", "/dev/null", 3, None, "a\0b", b"a", [], HALF):
        for make, more in ((rt.Campaign, (rt.BTL(), POOL)), (rt.Campaign.open, ())):
            with pytest.raises(DataError):
                make(path, *more)


def test_settings_of_a_campaign(tmp_path):
    good = {"path": tmp_path / "a.db", "model": rt.BTL(), "pool": POOL, "policy": RANDOM}
    bad = {
        "model": (None, 3, rt.BTL),
        "pool": (None, 3, {}, LABELS, POOL.take([])),
        "backend": (3, "em", rt.PGEM),
        "policy": (3, "random", rt.Policy, acq.Random()),
        "batch_size": (0, -1, 1.5, "x", HUGE),
        "budget": (0, -1, "x", float("nan")),
        "again": (3, "yes"),
        "stop": (3, "x", acq.ExpectedTau),
        "seed": NO_SEED,
        "data": (3, {}, LABELS),
    }
    assert not (wrong := not_refused([(rt.Campaign, good, bad)])), "\n".join(wrong)
    assert list(tmp_path.iterdir()) == []


def test_methods_of_a_campaign(campaign):
    nobody = ("zz", [], [["x"]], np.zeros((2, 2)), np.array("zz"), object(), [None])
    calls: Calls = [
        (campaign.ask, {}, {"number": (0, "x", 1.5), "annotator": nobody}),
        (campaign.outstanding, {}, {"annotator": nobody}),
        (campaign.status, {}, {"probability": ("yes",)}),
        (campaign.tell, {"answers": {}}, {"correct": (3,)}),
        (campaign.consider, {"question": {}}, {"rate": (0, 1, "x"), "question": (3, {}, POOL)}),
    ]
    assert not (wrong := not_refused(calls)), "\n".join(wrong)
