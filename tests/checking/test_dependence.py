"""Mistakes that judges share."""

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters import figures
from raters.errors import DataError, SettingError

MODEL = rt.OneCoin()
FIT = rt.PGEM(draws=200)


def table(said: np.ndarray) -> rt.Labels:
    """Labels of all items by all annotators."""
    item, annotator = (code.ravel() for code in np.indices(said.shape))
    frame = pd.DataFrame({"item": item, "annotator": annotator, "label": said.ravel()})
    return rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label")


@pytest.fixture(scope="module")
def crowds(fit_quietly):
    """400 items, ten annotators who are right on 3 of 4: independent ones; five of them the same
    person; and ten who look at a misleading cue in half of their answers. With truths."""
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=400)
    alone = np.where(rng.random((400, 10)) < 0.75, truth[:, None], 1 - truth[:, None])
    copies = alone.copy()
    copies[:, 1:5] = copies[:, :1]
    cue = np.where(rng.random(400) < 0.6, truth, 1 - truth)
    misled = np.where(rng.random((400, 10)) < 0.5, cue[:, None], alone)
    found = {}
    for name, said in (("alone", alone), ("copies", copies), ("misled", misled)):
        labels = table(said)
        found[name] = labels, fit_quietly(MODEL, labels, FIT)
    return found, dict(enumerate(truth.tolist()))


def exact(labels: rt.Labels, truth: dict) -> float:
    """Effective number by pandas: from the correlations of who is right, of constant accuracy."""
    wide = labels.to_frame().pivot(index="item", columns="annotator", values="label")
    right = wide.eq(pd.Series(truth).loc[wide.index], axis=0).astype(float)
    rho = right.corr().to_numpy()
    size = len(rho)
    return size / (1 + (size - 1) * max((rho.sum() - size) / (size * (size - 1)), 0))


@pytest.mark.parametrize("name", ["alone", "copies", "misled"])
def test_effective_number_is_that_of_the_correlations(crowds, name):
    """Of marks by one class and another, so that the two differ a little."""
    found, truth = crowds
    labels, result = found[name]
    measured = rt.dependence(MODEL, result, truth)
    assert measured.effective == pytest.approx(exact(labels, truth), rel=0.12)
    low, high = measured.effective_interval
    assert low <= measured.effective <= high
    assert measured.known == 400
    assert measured.judges == 10


def test_copies_are_found_and_a_common_cue_only_by_known_truths(crowds):
    found, truth = crowds
    pairs = rt.dependence(MODEL, found["copies"][1]).pairs()
    assert (pairs.loc[:9, ["annotator", "other"]].max(axis=1) <= 4).all()
    assert pairs.loc[:9, "correlation"].min() > 0.95
    blind, told = (rt.dependence(MODEL, found["misled"][1], gold) for gold in (None, truth))
    assert told.effective_interval[1] < blind.effective_interval[0]
    assert "at most so many" in blind.sentence
    assert "by 400 questions of known truth" in told.sentence
    assert "at most" not in told.sentence


def test_intervals_hold_the_truth(crowds):
    """The mean correlation is 0 for independent annotators: an interval of 99.9 % misses it by
    chance once in a thousand."""
    found, truth = crowds
    for gold in (None, truth):
        low, high = rt.dependence(MODEL, found["alone"][1], gold, level=0.999).mean_interval
        assert low <= 0 <= high


def test_names_and_counts_do_not_matter(crowds):
    found, truth = crowds
    _, result = found["copies"]
    some = dict(list(truth.items())[:30])
    one = rt.dependence(MODEL, result, some)
    assert one.correlation["questions"].max() == 30
    values = one.correlation["correlation"].values
    assert np.allclose(values, values.T, equal_nan=True)
    assert np.isnan(np.diag(values)).all()
    again = rt.dependence(MODEL, result, pd.Series(some))
    assert again.effective == one.effective


def test_comparisons_and_figures(fit_quietly):
    votes, _ = rt.datasets.crowd(num_items=6, num_annotators=8, num_votes=600, seed=0)
    result = fit_quietly(rt.BTL(), votes, FIT)
    found = rt.dependence(rt.BTL(), result)
    assert 1 <= found.effective <= 8
    plots = figures.dependence(found, most=5)
    assert plots.data["correlation"].shape == (5, 5)
    with pytest.raises(SettingError, match="true classes"):
        rt.dependence(rt.BTL(), result, {0: 1})
    with pytest.raises(SettingError, match="must be a dependence"):
        figures.dependence(votes)


def test_without_a_common_question(fit_quietly):
    labels = table(np.array([[0], [1], [0], [1], [1]]))
    result = fit_quietly(MODEL, labels, FIT)
    with pytest.raises(DataError, match="no two answered the same question"):
        rt.dependence(MODEL, result)
