"""Known orders of pairs: how they are read, what they tell of true rewards, and audits by them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

import raters as rt
from raters.auditing.truth.statements import KnownOrders, StatedOrders
from raters.auditing.truth.true_orders import SIZE, draw_true_rewards
from raters.errors import ConvergenceWarning, DataError, DataWarning

ITEMS = ("a", "b", "c", "d")
MODEL = rt.ExtendedBTL(competence="signed")


def pairs_of(orders):
    return set(zip(orders.better.tolist(), orders.worse.tolist(), strict=True))


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "gold",
    [
        [("a", "b"), ["c", "d"]],
        pd.DataFrame({"winner": ["a", "c"], "loser": ["b", "d"]}),
        pd.DataFrame(
            {"first": ["b", "c", "a"], "second": ["a", "d", "c"], "winner": ["a", "c", None]}
        ),
        pl.DataFrame({"winner": ["a", "c", None], "loser": ["b", "d", None]}),
        {"winner": np.array(["a", "c"]), "loser": np.array(["b", "d"])},
    ],
)
def test_pairs_are_read(gold):
    assert pairs_of(KnownOrders.read(gold, ITEMS)) == {(0, 1), (2, 3)}


def test_values_give_all_pairs_that_differ_and_links_that_they_follow_from():
    orders = KnownOrders.read({"a": 1, "b": 3, "c": 1, "d": float("nan")}, ITEMS)
    assert pairs_of(orders) == {(1, 0), (1, 2)}
    table = pd.DataFrame({"item": ["a", "b", "d"], "value": [1, 3, None]})
    assert pairs_of(KnownOrders.read(table, ITEMS)) == {(1, 0)}
    ranks = KnownOrders.read(pd.Series([1, 2, 3, 4], ITEMS), ITEMS)
    assert len(ranks.better) == 6
    assert ranks.chain.tolist() == [[1, 0], [2, 1], [3, 2]]


@pytest.mark.parametrize(
    ("gold", "match"),
    [
        ([("a", "z")], "none of the items"),
        ([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")], "a, b, c' are known.*contradict"),
        ([("a", "a")], "above itself"),
        ({"a": "high", "b": 1}, "holds 'high'.*must hold finite numbers"),
        (pd.DataFrame({"item": ["a", "a"], "value": [1, 2]}), "a' have several values"),
        (pd.DataFrame({"winner": ["a", "b"], "loser": ["b", None]}), "no winner and other side"),
        (3, "no set of known orders"),
        (pd.DataFrame({"better": ["a"], "worse": ["b"]}), "winner and loser"),
        (pd.DataFrame({"first": ["a"], "second": ["b"], "winner": ["c"]}), "one of the two"),
    ],
)
def test_what_is_no_order_is_refused(gold, match):
    with pytest.raises(DataError, match=match):
        KnownOrders.read(gold, ITEMS)


# ---------------------------------------------------------------- true rewards


def test_without_known_orders_rewards_err_by_the_prior():
    """20,000 draws: error of a probability below .011 (three standard errors)."""
    rng = np.random.default_rng(0)
    reward = np.tile([1.0, -1.0], (100, 1))
    none = KnownOrders.read(None, ("a", "b"))
    truth, _ = draw_true_rewards(reward, none, 20_000, rng)
    sizes = np.exp(SIZE[0] + SIZE[1] * np.linspace(-5, 5, 2001))
    density = norm.pdf(np.linspace(-5, 5, 2001))
    expected = (norm.cdf(2 / (np.sqrt(2) * sizes)) * density).sum() / density.sum()
    assert (truth[:, 0] > truth[:, 1]).mean() == pytest.approx(expected, abs=0.011)


@pytest.mark.slow
@pytest.mark.parametrize("scores", [None, [[1.0, 0.3], [-0.8, 0.5], [0.2, -1.0], [-0.6, 0.2]]])
def test_true_rewards_are_those_of_importance_sampling(scores):
    """Four items with correlated rewards and two known orders against 2 million weighted draws from
    the prior; 8,000 draws: error of a mean below .06 (more than four standard errors)."""
    rng = np.random.default_rng(1)
    root = np.array([[0.3, 0, 0, 0], [0.2, 0.2, 0, 0], [0, 0.1, 0.3, 0], [0.2, 0, 0.1, 0.2]])
    reward = np.array([0.5, 0.2, 0.0, -0.7]) + rng.standard_normal((4000, 4)) @ root.T
    orders = KnownOrders.read([("c", "a"), ("b", "d")], ITEMS)
    own = csr_array((4, 2) if scores is None else np.array(scores))
    truth, sizes = draw_true_rewards(reward, orders, 8000, np.random.default_rng(2), scores=own)
    spread = reward.std(axis=1).mean()
    size = np.exp(SIZE[0] + SIZE[1] * rng.standard_normal((2_000_000, 1)))
    share = rng.choice([0, 0.2, 0.4, 0.6, 0.8, 0.95], (2_000_000, 1)) * (scores is not None)
    error = np.sqrt(share) * (rng.standard_normal((2_000_000, 2)) @ own.T)
    error += np.sqrt(1 - share) * rng.standard_normal(error.shape)
    drawn = reward[rng.integers(4000, size=2_000_000)] + size * spread * error
    gaps = drawn[:, [2, 1]] - drawn[:, [0, 3]]
    weight = np.exp(norm.logcdf(gaps / (0.1 * spread)).sum(1))
    weight /= weight.sum()
    assert truth.mean(0) == pytest.approx(weight @ drawn, abs=0.06)
    assert np.log(sizes).mean() == pytest.approx(weight @ np.log(size[:, 0]), abs=0.04)
    assert (truth[:, 2] > truth[:, 0]).mean() > 0.95


def test_items_of_known_value_are_in_their_order():
    """Also where the crowd is sure of the opposite."""
    rng, names = np.random.default_rng(0), tuple(range(20))
    reward = np.linspace(-2, 2, 20) + 0.1 * rng.standard_normal((500, 20))
    orders = KnownOrders.read(dict(zip(names, range(20, 0, -1), strict=True)), names)
    truth, _ = draw_true_rewards(reward, orders, 500, rng)
    assert (truth[:, :-1] > truth[:, 1:]).mean() > 0.9


def test_known_orders_steer_towards_the_annotator_whom_they_prove_right():
    """Six annotators who share an error, and one who is right; 12 known orders of 190."""
    rng, loss = np.random.default_rng(0), []
    truth, error = rng.standard_normal((2, 20))
    pairs = np.array(np.nonzero(truth[:, None] > truth))
    own = np.array([0.4 * truth + error] * 6 + [truth])
    gap = own[:, pairs[0]] - own[:, pairs[1]] + 0.5 * rng.standard_normal((7, 190))
    better, worse = np.where(gap[:, None] > 0, pairs, pairs[::-1]).swapaxes(0, 1).reshape(2, -1)
    one = np.ones(len(better))
    stated = StatedOrders(np.repeat(range(7), 190), better, worse, one, np.arange(len(one)), one)
    reward = own[0] + 0.2 * rng.standard_normal((500, 20))
    known, rest = np.split(pairs[:, rng.permutation(190)], [12], axis=1)
    orders = KnownOrders.read(known.T.tolist(), tuple(range(20)))
    for scores in (None, stated.scores(np.zeros(0, int), 20)):
        drawn, _ = draw_true_rewards(reward, orders, 500, rng, SIZE, scores)
        right = (drawn[:, rest[0]] > drawn[:, rest[1]]).mean(0)
        loss.append(-np.log(np.clip(right, 0.002, 1)).mean())
    assert loss[1] < loss[0] - 0.1


# ---------------------------------------------------------------- the verb, and audits


@pytest.fixture(scope="module")
def misled():
    """Eight annotators who agree on an order that is wrong for six of twelve items, and one who
    knows the truth; 200 votes each."""
    rng = np.random.default_rng(0)
    truth = np.linspace(-2, 2, 12)
    seen = truth.copy()
    seen[:6] = truth[:6][::-1]
    rows = []
    for annotator in range(9):
        own = 2.0 * (truth if annotator == 8 else seen)
        for _ in range(200):
            one, other = rng.choice(12, 2, replace=False)
            wins = rng.random() < 1 / (1 + np.exp(own[other] - own[one]))
            rows.append((one, other, f"k{annotator}") if wins else (other, one, f"k{annotator}"))
    frame = pd.DataFrame(rows, columns=["winner", "loser", "annotator"])
    votes = rt.Comparisons.from_frame(frame, winner="winner", loser="loser", annotator="annotator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        backend = rt.PGGibbs(draws=500, chains=2)
        result = rt.fit(MODEL, votes, backend, seed=0, progress=False)
    return votes, result, pd.Series(truth, range(12))


@pytest.mark.slow
def test_known_values_turn_the_order(misled):
    votes, result, truth = misled
    by_crowd = rt.calibrate(MODEL, result)
    assert by_crowd.anchor.is_missing
    assert by_crowd.p_above(0, 5) > 0.5
    with pytest.warns(DataWarning, match="6 of 10 known orders contradict the crowd"):
        found = rt.calibrate(MODEL, result, truth.iloc[[0, 2, 4, 5, 8]])
    assert found.p_above(0, 5) < 0.05
    assert found.p_above(8, 0) > 0.95
    assert list(found.items["item"].values) == list(votes.items)
    with pytest.raises(DataError, match="one='nothing' is none of the items"):
        found.p_above("nothing", 0)
    assert np.median(found.unknowns["shared"]) > np.median(by_crowd.unknowns["shared"])


def test_gold_moves_verdicts_of_comparisons(misled):
    _, result, truth = misled
    alone = rt.audit(MODEL, result)
    assert alone.calibration is None
    assert alone.anchor.is_missing
    assert not alone.flagged
    audit = rt.audit(MODEL, result, truth)
    accuracy = audit.table["accuracy"].to_series()
    assert accuracy.idxmax() == "k8"
    assert audit.anchor.known == 66
    assert "66 known" in str(audit)
    assert audit.table["verdict"].sel(annotator="k8") == "keep"


@pytest.mark.slow
def test_trusted_annotators_order_pairs(misled):
    _, result, truth = misled
    found = rt.calibrate(MODEL, result, reference=["k8"])
    tau = found.truth.mean("draw").to_series().rank().corr(truth.rank())
    by_model = result.posterior["reward"].mean(("chain", "draw")).to_series().rank()
    assert tau > by_model.corr(truth.rank()) + 0.1


def test_known_orders_settle_a_mirrored_crowd(misled):
    """Draws of two mirrored worlds: known orders leave the one that they are true in."""
    _, result, truth = misled
    both = result.copy(deep=True)
    posterior = both["posterior"].to_dataset()
    for name in ("reward", "competence"):
        turned = posterior[name].copy()
        turned[:, ::2] *= -1
        posterior[name] = turned
    both["posterior"] = type(both)(posterior)
    found = rt.calibrate(MODEL, both, truth.iloc[6:])
    assert found.p_above(11, 6) > 0.99
    assert rt.calibrate(MODEL, both).p_above(11, 6) == pytest.approx(0.5, abs=0.15)
