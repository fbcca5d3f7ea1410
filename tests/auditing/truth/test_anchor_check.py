"""Intervals that known truths give without any assumption about the crowd, and judges compared."""

import dataclasses
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

import raters as rt
from raters.auditing.audit import Audit
from raters.auditing.intervals import table
from raters.auditing.truth.anchor_check import (
    anytime,
    check_table,
    difference,
    jeffreys,
    leads,
    prediction_powered,
)
from raters.auditing.truth.annotator_accuracy import Accuracies
from raters.auditing.truth.calibration import Anchor, Calibration
from raters.auditing.truth.statements import KnownOrders, of_comparisons, of_rankings
from raters.errors import DataError, SettingError

LEVEL = 0.9
NONE = [0.0, 1.0]


def counts(*pairs):
    return np.array(pairs, float).T


# ---------------------------------------------------------------- Jeffreys


def test_jeffreys_interval_is_that_of_the_beta_distribution():
    found = jeffreys(*counts((3, 20), (0, 10), (0, 0)), LEVEL)
    # Beta(3.5, 17.5) and Beta(0.5, 10.5), whose densities scipy.integrate.quad summed up.
    assert found[0] == pytest.approx([0.15, 0.0562480543, 0.3136803574], abs=1e-9)
    assert found[1] == pytest.approx([0.0, 0.0001917363, 0.1707731082], abs=1e-9)
    assert np.isnan(found[2, 0])
    assert found[2, 1:].tolist() == NONE


def test_jeffreys_interval_holds_as_often_as_it_says():
    """Shares from its prior: within four standard errors, a false alarm in 7e-5 of runs."""
    rng, number = np.random.default_rng(0), 20_000
    share, tries = rng.beta(0.5, 0.5, number), rng.integers(1, 50, number)
    _, low, high = jeffreys(rng.binomial(tries, share).astype(float), tries.astype(float), LEVEL).T
    holds = ((low <= share) & (share <= high)).mean()
    assert abs(holds - LEVEL) < 4 * np.sqrt(LEVEL * (1 - LEVEL) / number)


# ---------------------------------------------------------------- prediction-powered


def drawn(rng, known, others, informative=True):
    """Successes, predictions of them, and predictions of others, of share .3."""
    odds = rng.normal(-1, 1.5, known + others)
    success = (rng.random(known + others) < 1 / (1 + np.exp(-odds))).astype(float)
    predicted = 1 / (1 + np.exp(-odds)) if informative else rng.random(known + others)
    return success[:known], predicted[:known], np.ones(known), predicted[known:]


def test_prediction_powered_weight_has_the_least_variance():
    success, predicted, equal, others = drawn(np.random.default_rng(1), 60, 300)
    spread = others.var(ddof=1)

    def variance(slope):
        cross = np.cov(success, predicted)[0, 1]
        return slope**2 * spread * (1 / 300 + 1 / 60) - 2 * slope * cross / 60

    slope = scipy.optimize.minimize_scalar(variance, bounds=(0, 1), method="bounded").x
    assert 0.2 < slope < 0.95
    mean = slope * others.mean() + np.mean(success - slope * predicted)
    left = np.var(success - slope * predicted, ddof=1) / 60
    reach = 1.6448536 * np.sqrt(slope**2 * spread / 300 + left)
    found = prediction_powered(success, predicted, equal, others, LEVEL)
    assert found == pytest.approx([mean, mean - reach, mean + reach], abs=1e-5)


def test_prediction_powered_interval_without_a_use_for_predictions():
    """Equal predictions, and those that point the wrong way, leave the mean of the known ones."""
    success = np.array([1.0, 0, 0, 1, 0, 0, 0, 1])
    reach = scipy.stats.norm.ppf(0.95) * success.std(ddof=1) / np.sqrt(8)
    expected = np.array([0.375, 0.375 - reach, 0.375 + reach])
    flat, equal, rest = np.full(8, 0.4), np.ones(8), np.full(50, 0.4)
    assert prediction_powered(success, flat, equal, rest, LEVEL) == pytest.approx(expected)
    wrong, spread = 1 - success, np.linspace(0, 1, 50)
    assert prediction_powered(success, wrong, equal, spread, LEVEL) == pytest.approx(expected)
    assert prediction_powered(success[:1], flat[:1], equal[:1], rest, LEVEL)[1:].tolist() == NONE


def test_prediction_powered_interval_holds_and_is_narrower():
    """Of 2,000 samples: the share that holds within four standard errors of the level and .01 for
    an interval by the normal distribution, a false alarm in less than 1e-4 of runs."""
    rng = np.random.default_rng(2)
    odds = np.linspace(-15, 15, 3001)
    weight = scipy.stats.norm.pdf(odds, -1, 1.5)
    share = np.average(1 / (1 + np.exp(-odds)), weights=weight)
    samples = [drawn(rng, 200, 800) for _ in range(2000)]
    found = np.array([prediction_powered(*sample, LEVEL) for sample in samples])
    holds = ((found[:, 1] <= share) & (share <= found[:, 2])).mean()
    assert abs(holds - LEVEL) < 4 * np.sqrt(LEVEL * (1 - LEVEL) / 2000) + 0.01
    alone = np.array([2 * 1.6448536 * np.std(one, ddof=1) / np.sqrt(200) for one, *_ in samples])
    assert np.mean(found[:, 2] - found[:, 1]) < 0.95 * alone.mean()


# ---------------------------------------------------------------- at any time


@pytest.mark.parametrize(("won", "number"), [(3, 20), (0, 46), (12, 12), (7.5, 11.25), (60, 90)])
def test_confidence_sequence_ends_where_the_mixture_is_ten_times_as_likely(won, number):
    def log_likelihood(share):
        return won * np.log(share) + (number - won) * np.log1p(-share)

    def weighted(angle):  # The share is sin² of an angle that is uniform under Beta(½, ½).
        share = np.sin(angle) ** 2
        return share**won * (1 - share) ** (number - won) * 2 / np.pi

    mixture, _ = scipy.integrate.quad(weighted, 0, np.pi / 2, epsabs=0, epsrel=1e-10, limit=500)
    low, high = anytime(*counts((won, number)), LEVEL)[0]
    assert (low == 0) == (won == 0)
    assert (high == 1) == (won == number)
    for end in {low, high} - {0.0, 1.0}:
        assert np.log(mixture) - log_likelihood(end) == pytest.approx(np.log(10), abs=1e-6)


def test_confidence_sequence_of_nothing_and_of_much():
    (low, high), (narrow, wide) = anytime(*counts((0, 0), (3e5, 1e6)), LEVEL)
    assert [low, high] == NONE
    assert 0.29 < narrow < 0.3 < wide < 0.31


def test_confidence_sequence_holds_at_all_looks_together():
    """Probabilities of all paths of 200 looks at shares .02, .1 and .5, which are exact."""
    looks, shares = 200, np.array([0.02, 0.1, 0.5])
    won, number = np.array([(won, n) for n in range(1, looks + 1) for won in range(n + 1)], float).T
    lost = {}
    for name, ends in {
        "anytime": anytime(won, number, LEVEL),
        "jeffreys": jeffreys(won, number, LEVEL)[:, 1:],
    }.items():
        inside = np.ones((3, 1))
        for n in range(1, looks + 1):
            low, high = ends[number == n].T
            step = np.pad(inside, [(0, 0), (0, 1)]) * (1 - shares[:, None])
            step[:, 1:] += inside * shares[:, None]
            holds = (low <= shares[:, None]) & (shares[:, None] <= high)
            inside = np.where(holds, step, 0.0)
        lost[name] = 1 - inside.sum(1)
    assert (lost["anytime"] < 1 - LEVEL).all()
    assert (lost["anytime"] > 0.01).all()
    assert (lost["jeffreys"] > 0.3).all()


def test_tables_have_the_confidence_sequence_beside_jeffreys():
    known = counts((10, 20), (1, 20), (19, 20))
    stated = np.tile([0.5, 0.45, 0.55], (3, 1))
    found = check_table(["one", "two", "three"], *known, LEVEL, stated)
    assert found["differs"].values.tolist() == [False, True, True]
    assert difference(found).endswith("of: two, three")
    ends = np.stack([found["anytime_low"], found["anytime_high"]], 1)
    assert ends == pytest.approx(anytime(*known, LEVEL))
    assert (found["anytime_low"] < found["gold_low"]).all()
    assert (found["anytime_high"] > found["gold_high"]).all()


# ---------------------------------------------------------------- two judges


def answers_of(*rows):
    return pd.DataFrame(rows, columns=["annotator", "question", "answers", "number", "right"])


def test_judges_lead_on_questions_that_both_answered():
    single = [
        (code, question, 1, 1, (question >> code) & 1)
        for code, question in product((0, 1), range(4))
    ]
    alone = [(0, 7, 1, 1, 1), (1, 8, 1, 1, 1), (2, 0, 1, 1, 1)]
    assert leads(answers_of(*single, *alone), 0, 1) == (1, 1)
    # Half of the first one's answers, and no answer of the second one's, is right.
    repeated = [(0, 9, 3, 3, 3), (0, 9, 3, 3, 0), (1, 9, 2, 2, 0)]
    assert leads(answers_of(*single, *repeated), 0, 1) == (1.5, 1)
    assert leads(answers_of(*single, *repeated), 1, 0) == (1, 1.5)
    # Dependent answers count as fewer.
    dependent = [(0, 9, 1, 0.5, 0.5), (1, 9, 1, 0.75, 0)]
    assert leads(answers_of(*dependent), 0, 1) == (0.5, 0)
    assert leads(answers_of(*dependent), 0, 2) == (0, 0)


def test_known_answers_of_orders():
    """Votes are counted by the right ones; a ranking's pairs as the number that is independent."""
    pairs = [*["xy", "yx", "xy"], *["xy", "xz", "xu", "yz", "uy", "uz"]]
    votes = pd.DataFrame([list(pair) for pair in pairs], columns=["w", "l"])
    votes["k"] = list("111222222")
    data = rt.Comparisons.from_frame(votes, winner="w", loser="l", annotator="k")
    orders = KnownOrders.read({"x": 4, "y": 3, "z": 2, "u": 1}, data.items)
    found = of_comparisons(data).beside(orders, data.num_items).known_answers()
    sums = found.groupby(["annotator", "question"]).sum()
    assert sums.loc[0].to_numpy().tolist() == [[3, 3, 2]]
    assert sums.loc[1].to_numpy()[:, :2].tolist() == [[1, 1]] * 6
    assert sums.loc[1, "right"].sum() == 4
    ranked = pd.DataFrame({"ranking": 0, "k": "1", "item": list("xyz"), "rank": [1, 2, 3]})
    data = rt.Rankings.from_frame(
        ranked, ranking="ranking", item="item", rank="rank", annotator="k"
    )
    orders = KnownOrders.read({"x": 3, "y": 1, "z": 2}, data.items)
    found = of_rankings(data).beside(orders, data.num_items).known_answers()
    # All pairs of three items count as 9 / (2·3 + 5) each, at most as one.
    assert found["number"].values == pytest.approx([9 / 11] * 3)
    assert found["right"].sum() == pytest.approx(18 / 11)


class Known(Calibration):
    quantities = draw = number = None


@pytest.fixture
def audit():
    """Judges of 30 questions: "b" is right on ten that "a" has wrong, "c" on five each."""
    codes, right = np.arange(30), np.zeros((4, 30))
    right[0, :10] = right[1, :20] = right[2, 5:15] = right[3] = 1
    rows = [(code, q, 1, 1, right[code, q]) for code, q in product(range(4), codes)]
    ability = np.array([[0.4, 0.6, 0.5, 1.0], [0.5, 0.6, 0.4, 1.0]])
    judges = table("annotator", ["a", "b", "c", "told"], {})
    calibration = Known(
        truth=None,
        items=None,
        annotators=judges,
        unknowns=None,
        anchor=Anchor(30, ("told",)),
        level=LEVEL,
        accuracies=Accuracies(ability, ability),
        known_answers=answers_of(*rows),
    )
    return Audit(judges, "", anchor=calibration.anchor, calibration=calibration)


def test_judges_are_compared(audit):
    found = audit.compare("b", "a")
    low, high = anytime(*counts((10, 10)), LEVEL)[0]
    assert found == (1.0, 10, low, high, True)
    assert found.share_low > 0.5
    assert audit.compare("a", "b") == (0.0, 10, 1 - high, 1 - low, True)
    assert audit.compare("a", "c")[:2] == (0.5, 10)
    assert not audit.compare("a", "c").decided


def test_judges_who_cannot_be_compared_are_refused(audit):
    with pytest.raises(DataError, match=r"other='z' is none of the annotators; name one.*a, b, c"):
        audit.compare("a", "z")
    with pytest.raises(DataError, match="one='told' is none"):
        audit.compare("told", "a")
    with pytest.raises(SettingError, match=r"no calibration.*with gold"):
        dataclasses.replace(audit, calibration=None).compare("a", "b")
