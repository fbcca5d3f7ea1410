"""Bad pools, policies, rules, posteriors, scores, simulations and campaigns."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters import acquisition as acq
from raters.acquisition import scores
from raters.errors import DataError, RatersError, SettingError
from tests import hand
from tests.hostile.table import (
    HALF,
    HUGE,
    NO_ARRAY,
    NO_COUNT,
    NO_FLAG,
    NO_LIST,
    NO_OBJECT,
    NO_SEED,
    NO_SHARE,
    TABLE,
    check_refused,
    rows,
    without,
)

VOTES = hand.votes(("a", "b", "x"), ("b", "c", "x"), ("a", "c", "y"))
LABELS = rt.Labels.from_frame(
    {"i": [1, 1, 2], "k": [*"xyx"], "l": [*"pqq"]}, item="i", annotator="k", label="l"
)
MODEL = rt.BTL(reward_scale=1.0)
RESULT = hand.result(VOTES, reward=np.random.default_rng(0).normal(size=(40, 3)))
POOL = rt.Candidates.pairs(items=["a", "b", "c"], annotators=["x", "y"])
RANDOM = rt.Policy(score=acq.Random())
POSTERIOR = acq.Posterior.of(MODEL, RESULT, draws=10)
ASK = {"model": MODEL, "result": RESULT, "candidates": POOL, "policy": RANDOM}
NEW = {"items": ["a", "b"], "annotators": ["x"]}
NAMES = (*NO_LIST[1:], [], ["a", None], [["a"]], ["a\0"], [HALF], ["a", ""])
DRAWS = np.zeros((30, 3))
PROBS = np.full((1, 20, 2, 3), 0.5)

POOLS = [
    *rows(
        rt.Candidates.pairs,
        NEW,
        DataError,
        "list of names|at least one|no name|a name must be|must be text|comes twice",
        items=(None, *NAMES, ["a", "a"]),
        annotators=(None, *NAMES),
    ),
    *rows(rt.Candidates.pairs, NEW, DataError, "two items", items=(["a"],)),
    *rows(
        rt.Candidates.pairs,
        NEW,
        DataError,
        "boolean array|no name|two different|names such as|a row and a column",
        mask=(3, "ab", [None], [3], [("a",)], [("a", "a")], [("a", "zz")], [("a", None)]),
    ),
    *rows(
        rt.Candidates.pairs,
        NEW,
        DataError,
        "names of annotators|list of items|names such as|no name",
        available=(3, [1], {"zz": ["a"]}, {"x": "a"}, {"x": 3}, {"x": ["zz"]}, {"x": [None]}),
    ),
    *rows(rt.Candidates.pairs, NEW, SettingError, "whole number", limit=(0, *NO_COUNT)),
    *rows(rt.Candidates.pairs, NEW, SettingError, "whole number from 0", seed=NO_SEED),
    *rows(
        rt.Candidates.labels,
        {"items": [1, 2], "annotators": ["x"], "classes": ["p", "q"]},
        SettingError,
        "whole number|again=True or",
        again=NO_FLAG,
        limit=(0, None),
        seed=NO_SEED[:4],
    ),
    *rows(
        rt.Candidates.annotators,
        {"votes": VOTES, "first": "a", "second": "b"},
        SettingError,
        "must be comparisons",
        votes=(*NO_OBJECT, LABELS),
    ),
    *rows(
        rt.Candidates.of, {"data": VOTES}, SettingError, "whole number", seed=(-1, None), limit=(0,)
    ),
]

POLICIES = [
    *rows(rt.Policy, {}, SettingError, "choose one of", target=("rank", 3, [], np.zeros(2))),
    *rows(rt.Policy, {}, SettingError, "it must be", score=(3, "bald", acq.Bald, rt.Policy())),
    *rows(rt.Policy, {}, SettingError, "it must be", batch=(3, acq.Top), annotator=("joint", 3)),
    *rows(rt.Policy, {}, RatersError, "number|must|mapping", costs=(3, [1])),
    *rows(acq.BatchBald, {}, SettingError, "whole number", configurations=(0, None, 1.5)),
    *rows(acq.Power, {}, SettingError, "above 0", exponent=(0, -1, "x", None)),
    *rows(acq.UpperBound, {}, SettingError, "between 0 and 1", level=NO_SHARE),
    *rows(acq.Epig, {}, SettingError, "whole number", targets=(0, None, "x")),
    *rows(acq.VarianceReduction, {}, SettingError, "'rank', 'reward'", of=("ranks", None, 3)),
    *rows(acq.OrderIsRight, {}, SettingError, "between 0 and 1", probability=NO_SHARE),
    *rows(acq.ExpectedTau, {}, SettingError, "between|number", at_least=("x", None, 2)),
    *rows(acq.Budget, {}, SettingError, "number|above 0", cost=(0, -1, "x", None)),
    *rows(
        RANDOM.choose,
        {"posterior": POSTERIOR, "candidates": POOL, "number": 1, "seed": 0},
        SettingError,
        "Posterior.of|questions in the codes|whole number",
        posterior=(None, RESULT),
        candidates=(None, LABELS, 3),
        pending=(3, LABELS),
        number=(-1, None, "x"),
        seed=NO_SEED[:4],
    ),
    *rows(
        RANDOM.choose,
        {"posterior": POSTERIOR, "candidates": POOL, "number": 1, "seed": 0},
        RatersError,
        "give a number for each|give numbers",
        asked=(3, [1], "xy", [[1, 2]], [1, "x"]),
    ),
]

ASKING = [
    *rows(rt.suggest, ASK, SettingError, "must be a model", model=(None, 3, rt.BTL)),
    *rows(rt.suggest, ASK, DataError, "pass a result", result=(None, 3, {}, VOTES)),
    *rows(rt.suggest, ASK, SettingError, "read a table", candidates=(None, 3, {}, [])),
    *rows(rt.suggest, ASK, SettingError, "a policy", policy=(3, "random", rt.Policy, acq.Random())),
    *rows(rt.suggest, ASK, SettingError, "whole number", batch_size=(0, *NO_COUNT), draws=(0, 1)),
    *rows(rt.suggest, ASK, SettingError, "whole number from 0", seed=NO_SEED),
    *rows(rt.suggest, ASK, SettingError, "choose|give one of them", target=("rank", 3, "ranking")),
    *rows(
        acq.Posterior.of,
        {"model": MODEL, "result": RESULT},
        SettingError,
        "whole number",
        draws=(0, -1, None, 1.5),
        seed=NO_SEED[:5],
    ),
    *rows(
        acq.Posterior.prior,
        {"model": MODEL, "questions": VOTES},
        SettingError,
        "whole number|read a table|choose a model|a model",
        draws=(0, -1, None, "x"),
        seed=(-1, None),
        questions=(None, 3, LABELS),
        model=(None, rt.BTL),
    ),
    *rows(POSTERIOR.after, {}, SettingError, "read a table|choose a model", data=(None, 3, LABELS)),
    *rows(
        acq.probability_of_order,
        {"reward": DRAWS},
        RatersError,
        "give numbers|shape|weight of at least|'mean', 'most_probable'",
        reward=(*NO_ARRAY, 3, []),
        weight=([1], np.zeros(30), "x"),
        of=("median", None, []),
    ),
    *rows(acq.probability_of_top, {"reward": DRAWS}, SettingError, "number|most", k=(0, 4, None)),
    *rows(
        acq.expected_share_of_right_pairs, {"reward": DRAWS}, SettingError, "from 0", seed=NO_SEED
    ),
    *rows(
        scores.bald,
        {"probs": PROBS},
        SettingError,
        "axes \\(chain, draw",
        probs=(*without(NO_ARRAY), 3, [0.5], np.zeros(3), np.full((1, 2, 2, 2), "x")),
        weight=(3, [1], np.ones(7), np.ones((1, 19))),
    ),
    *rows(
        scores.epig,
        {"probs": PROBS, "targets": PROBS},
        SettingError,
        "axes \\(chain",
        targets=(None, 3, PROBS[0], PROBS[:, :5]),
    ),
]

LOOP = {"model": MODEL, "policy": RANDOM, "backend": rt.PGEM(), "progress": False}
SIMULATIONS = [
    *rows(
        acq.simulate_campaign,
        LOOP | {"truth": {"reward": np.zeros(3)}, "pool": POOL},
        SettingError,
        "a policy|a model|a back-end|read a table|whole number|true or false|a function|mapping",
        model=(None, rt.BTL),
        policy=(None, 3, "random", [RANDOM]),
        backend=("em", rt.PGEM),
        pool=(None, 3),
        batch_size=(0, None, 1.5),
        batches=(0, None),
        measure=(3, "tau"),
        seed=NO_SEED[:4],
        progress=NO_FLAG[:3],
        truth=(3, None),
    ),
    *rows(
        acq.simulate_campaign,
        LOOP | {"pool": POOL},
        SettingError,
        "the model needs|it maps sites|it must be",
        truth=({"reward": [1]}, {"reward": np.zeros((3, 3))}, {"rewards": np.zeros(3)}),
    ),
    *rows(
        acq.replay_campaign,
        LOOP | {"votes": VOTES},
        RatersError,
        "it must be \\(3,\\)|give numbers|mapping",
        truth=({"reward": [1, 2]}, {"reward": "abc"}, 3),
    ),
    *rows(acq.replay_campaign, LOOP, RatersError, "read a table|replay", votes=(None, POOL)),
    *rows(
        acq.area_under_curve,
        {"curves": xr.Dataset({"tau": 1.0})},
        SettingError,
        "choose one of|dataset|text",
        name=("tau", "zz", 3, None),
        curves=(None, {}, 3),
    ),
]


@pytest.mark.parametrize(TABLE, [*POOLS, *POLICIES, *ASKING, *SIMULATIONS])
def test_acquisition(function, arguments, kind, parameter, remedy):
    check_refused(function, arguments, kind, parameter, remedy)


# ---------------------------------------------------------------- campaigns


@pytest.fixture
def campaign(tmp_path):
    return rt.Campaign(tmp_path / "a.db", rt.BTL(), POOL, policy=RANDOM)


@pytest.mark.parametrize(
    "ids", [None, 3, [None], ["zz"], "x", {"a": 1}, [["a"]], object(), np.array("x"), np.array(3)]
)
def test_withdraw(campaign, ids):
    campaign.ask(2)
    with pytest.raises(RatersError, match=r"give the id|no question"):
        campaign.withdraw(ids)
    assert campaign.outstanding().sizes["id"] == 2


@pytest.mark.parametrize("answers", [None, 3, {"x": None}, {None: "a"}, [("x", "a")], "x", {3: 4}])
def test_tell(campaign, answers):
    campaign.ask(2)
    with pytest.raises(RatersError, match=r"tell takes|no question"):
        campaign.tell(answers)
    assert campaign.data.num_votes == 0


@pytest.mark.parametrize("answer", [3, "zz", float("nan"), ["a"], {"a": 1}, object(), b"\xff", ""])
def test_answers_that_a_question_cannot_have(campaign, answer):
    question = campaign.ask(1)["id"].item()
    with pytest.raises(DataError, match=r"must be one of .*Nothing was written") as caught:
        campaign.tell({question: answer})
    assert len(str(caught.value)) <= 600
    assert campaign.data.num_votes == 0


@pytest.mark.parametrize(
    "path",
    ["", "/nonexistent/a.db", "/tmp", "/dev/null", "/dev/zero", 3, None, "a\0b", b"a", [], HALF],
)
def test_paths_of_a_campaign(path):
    with pytest.raises(RatersError, match=r"name a file|no folder|must be the path"):
        rt.Campaign(path, rt.BTL(), POOL)
    with pytest.raises(RatersError, match=r"name a|no file|must be the path"):
        rt.Campaign.open(path)


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("model", (None, 3, rt.BTL, rt.DawidSkene())),
        ("pool", (None, 3, {}, LABELS, POOL.take([]))),
        ("backend", (3, "em", rt.PGEM)),
        ("policy", (3, "random", rt.Policy, acq.Random())),
        ("batch_size", (0, -1, 1.5, "x", HUGE)),
        ("budget", (0, -1, "x", float("nan"))),
        ("again", (3, "yes")),
        ("stop", (3, "x", acq.ExpectedTau)),
        ("seed", NO_SEED),
        ("data", (3, {}, LABELS)),
    ],
)
def test_settings_of_a_campaign(tmp_path, argument, values):
    for value in values:
        options = {"model": rt.BTL(), "pool": POOL, "policy": RANDOM} | {argument: value}
        with pytest.raises(RatersError) as caught:
            rt.Campaign(tmp_path / "a.db", **options)
        about = {"model": {"model", "pool"}, "pool": {"pool", "data"}}.get(argument, {argument})
        assert caught.value.parameter in about, value
        assert len(str(caught.value)) <= 600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "arguments", "parameter"),
    [
        ("ask", {"number": 0}, "number"),
        ("ask", {"number": "x"}, "number"),
        ("ask", {"number": 1.5}, "number"),
        ("ask", {"annotator": "zz"}, "annotator"),
        ("ask", {"annotator": []}, "annotator"),
        ("ask", {"annotator": [["x"]]}, "annotator"),
        ("ask", {"annotator": np.zeros((2, 2))}, "annotator"),
        ("ask", {"annotator": np.array("zz")}, "annotator"),
        ("outstanding", {"annotator": object()}, "annotator"),
        ("outstanding", {"annotator": [None]}, "annotator"),
        ("status", {"probability": "yes"}, "probability"),
        ("tell", {"answers": {}, "correct": 3}, "correct"),
    ],
)
def test_methods_of_a_campaign(campaign, method, arguments, parameter):
    with pytest.raises(RatersError) as caught:
        getattr(campaign, method)(**arguments)
    assert caught.value.parameter == parameter
    assert len(str(caught.value)) <= 600
