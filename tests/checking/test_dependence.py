"""Shared mistakes of judges."""

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.checking.dependence import NothingShared
from raters.errors import DataError

pytestmark = pytest.mark.slow

MODEL = rt.models.OneCoin()
FIT = rt.PGEM(draws=200)
_RNG = np.random.default_rng(1)
TRUTH = _RNG.integers(2, size=400)
GOLD = dict(enumerate(TRUTH.tolist()))


def table(said: np.ndarray, given: np.ndarray | None = None) -> rt.Labels:
    """Labels of items by annotators, all or those that are given."""
    item, annotator = np.nonzero(np.ones(said.shape) if given is None else given)
    frame = pd.DataFrame({"item": item, "annotator": annotator, "label": said[item, annotator]})
    return rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label")


def crowd(name: str) -> np.ndarray:
    """400 items, ten annotators who are right on 3 of 4: independent ones; five of them the same
    person; and ten who look at a misleading cue in half of their answers."""
    rng = np.random.default_rng(2)
    alone = np.where(rng.random((400, 10)) < 0.75, TRUTH[:, None], 1 - TRUTH[:, None])
    if name == "copies":
        alone[:, 1:5] = alone[:, :1]
    if name == "misled":
        cue = np.where(rng.random(400) < 0.6, TRUTH, 1 - TRUTH)
        alone = np.where(rng.random((400, 10)) < 0.5, cue[:, None], alone)
    return alone


@pytest.fixture(scope="module")
def crowds(fit_quietly):
    """A fit of each."""
    names = ("alone", "copies", "misled")
    return {name: fit_quietly(MODEL, table(crowd(name)), FIT) for name in names}


def correlations(said: np.ndarray) -> np.ndarray:
    """Correlations of mistakes by pandas, within the two classes."""
    right = pd.DataFrame(said == TRUTH[:, None]).astype(float)
    centred = right - right.groupby(TRUTH).transform("mean")
    return centred.corr().to_numpy()


@pytest.mark.parametrize("name", ["alone", "copies", "misled"])
def test_it_is_that_of_the_correlations(crowds, name):
    shared = rt.checking.dependence(MODEL, crowds[name], GOLD)
    rho = correlations(crowd(name))
    apart = ~np.eye(10, dtype=bool)
    measured = shared.correlation["correlation"].values
    assert np.allclose(measured[apart], rho[apart], atol=0.03)
    assert shared.mean == pytest.approx(rho[apart].mean(), abs=0.01)
    assert shared.effective == pytest.approx(10 / (1 + 9 * max(rho[apart].mean(), 0)), rel=0.08)
    assert shared.effective_interval[0] <= shared.effective <= shared.effective_interval[1]
    assert (shared.known, shared.judges) == (400, 10)
    assert np.isnan(np.diag(measured)).all()


def test_copies_are_found_and_a_common_cue_only_by_known_truths(crowds):
    pairs = rt.checking.dependence(MODEL, crowds["copies"]).pairs()
    assert (pairs.loc[:9, ["annotator", "other"]].max(axis=1) <= 4).all()
    assert pairs.loc[:9, "correlation"].min() > 0.95
    blind, informed = (
        rt.checking.dependence(MODEL, crowds["misled"], gold) for gold in (None, GOLD)
    )
    assert informed.effective_interval[1] < blind.effective_interval[0]


def test_the_interval_by_fifty_truths(crowds):
    """Of 20 samples of 50 truths, a 90 % interval holds the number by all in 12 at least, with
    probability .9999 if it were exact; with half its width it does in fewer than ten."""
    whole = rt.checking.dependence(MODEL, crowds["misled"], GOLD).mean
    truth, held = pd.Series(GOLD), 0
    for seed in range(20):
        some = rt.checking.dependence(MODEL, crowds["misled"], truth.sample(50, random_state=seed))
        held += some.mean_interval[0] <= whole <= some.mean_interval[1]
    assert held >= 12


def test_it_stays_between_one_and_all(fit_quietly):
    """Two who agree on twelve hard items, and have a hundred easy ones each."""
    truth = np.arange(212) % 2
    said, given = np.repeat(truth[:, None], 2, axis=1), np.zeros((212, 2), bool)
    said[:12:2] = 1 - said[:12:2]
    given[:112, 0], given[:12, 1], given[112:, 1] = True, True, True
    result = fit_quietly(MODEL, table(said, given), FIT)
    shared = rt.checking.dependence(MODEL, result, dict(enumerate(truth.tolist())))
    assert shared.mean == pytest.approx(1, abs=1e-3)
    assert shared.effective == pytest.approx(1, abs=1e-3)
    assert shared.known == 12
    assert shared.correlation["questions"].values[0, 1] == 12


def test_three_classes_few_answers_and_truths_of_the_fit(fit_quietly):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    said = np.where(rng.random((200, 12)) < 0.7, truth[:, None], rng.integers(3, size=(200, 12)))
    given = rng.random((200, 12)) < 0.4
    given[:, :2] = True
    labels = table(said, given).with_truth(dict(enumerate(truth[:100].tolist())))
    result = fit_quietly(rt.DawidSkene(), labels, FIT)
    by_fit = rt.checking.dependence(rt.DawidSkene(), result)
    more = rt.checking.dependence(rt.DawidSkene(), result, {100: int(truth[100])})
    assert (by_fit.known, more.known) == (100, 101)
    assert by_fit.mean == pytest.approx(0, abs=0.06)
    with pytest.raises(DataError, match="other classes than those that were known"):
        rt.checking.dependence(rt.DawidSkene(), result, {0: int(1 + truth[0]) % 3})


def test_what_shows_nothing_is_refused(fit_quietly):
    right = table(np.repeat(TRUTH[:60, None], 4, axis=1))
    with pytest.raises(NothingShared):
        rt.checking.dependence(MODEL, fit_quietly(MODEL, right, FIT))
    votes = rt.datasets.separated(num_items=4, num_annotators=4, num_votes=200, seed=0).votes
    with pytest.raises(NothingShared):
        rt.checking.dependence(rt.BTL(), fit_quietly(rt.BTL(), votes, FIT))
