"""Warnings and predictions of the models of labels, and the network classifier."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.scores import Bald
from raters.errors import DataError
from raters.fitting.parts import fit_warnings
from raters.program import Program
from tests import hand
from tests.refusals import raises_about

EM = rt.PGEM(draws=200)
CROWD, TRUTH = rt.datasets.label_crowd(60, 6, 5, 3, spammers=0.0, num_features=2, seed=0)


@pytest.fixture(scope="module")
def fitted(fit_quietly) -> xr.DataTree:
    return fit_quietly(rt.DawidSkene(), CROWD, EM, seed=0)


# ---------------------------------------------------------------------- models


def test_majority_vote_is_the_majority(fit_quietly):
    """Wherever one class has more labels than any other, it is the most probable; ties are equally
    probable."""
    found = fit_quietly(rt.models.MajorityVote(), CROWD, EM, seed=0)["classes"][
        "responsibility"
    ].values
    votes = CROWD.votes()
    winner = votes == votes.max(1, keepdims=True)
    clear = winner.sum(1) == 1
    assert clear.sum() > 40
    assert np.array_equal(found[clear].argmax(1), votes[clear].argmax(1))
    for chances, tied in zip(found[~clear], winner[~clear], strict=True):
        assert np.ptp(chances[tied]) < 1e-6
        assert chances[tied].min() > chances[~tied].max(initial=0)


def warnings_of(model, result):
    return fit_warnings(Program(model, CROWD), result)


def test_switched_classes_are_said_to_be(fitted):
    model = rt.DawidSkene()
    assert not warnings_of(model, fitted)
    turned = fitted.copy(deep=True)
    confusion = turned["posterior"]["confusion"]
    turned["posterior"]["confusion"] = confusion.copy(data=confusion.values[:, :, :, [1, 0, 2]])
    (sentence,) = warnings_of(model, turned)
    assert "0 is called 1, 1 is called 0" in sentence
    assert "diagonal" in sentence
    # Known truths say which class is which, whatever the crowd calls it.
    known = np.full(60, -1)
    known[:2] = 0, 1
    truthful = dataclasses.replace(CROWD, truth=known.astype(np.int32))
    (sentence,) = fit_warnings(Program(model, truthful), turned)
    assert "the known truths contradict the crowd" in sentence


def test_a_record_is_worth_its_labels():
    """With a record, DawidSkene's prior is that of pseudo-counts: the log joint differs by exactly
    theirs."""
    record = CROWD.with_record({"annotator": [0, 0, 3], "truth": [1, 1, 2], "label": [1, 0, 2]})
    model = rt.DawidSkene(diagonal=2.0, off_diagonal=1.0)
    from raters.program import log_prior

    with jax.enable_x64(True):
        one, other = (
            {name: jnp.asarray(value) for name, value in model.start(CROWD).items()}
            for _ in range(2)
        )
        other["confusion"] = 0.5 * other["confusion"] + 0.5 / 3
        change = [
            float(log_prior(model, data, one) - log_prior(model, data, other))
            for data in (CROWD, record)
        ]
        log = np.log(one["confusion"] / other["confusion"])
    assert change[1] - change[0] == pytest.approx(
        float(log[0, 1, 1] + log[0, 1, 0] + log[3, 2, 2]), abs=1e-9
    )


# ---------------------------------------------------------------------- predict


def test_predict_is_bayes_rule(fitted):
    """New items, labelled by known annotators: prevalence times the entries of the confusion
    matrices, normalised."""
    new = hand.labels(("x", 0, 2), ("x", 3, 2), ("y", 5, 0), classes=[0, 1, 2])
    found = rt.predict(rt.DawidSkene(), fitted, new)
    assert found.dims == ("chain", "draw", "item", "true_class")
    draws = fitted["posterior"]
    prevalence, confusion = draws["prevalence"].values, draws["confusion"].values
    x = prevalence * confusion[:, :, 0, :, 2] * confusion[:, :, 3, :, 2]
    np.testing.assert_allclose(found.sel(item="x"), x / x.sum(-1, keepdims=True), rtol=2e-4)


@pytest.mark.slow
def test_unlabelled_items_get_what_the_classifier_says(fit_quietly):
    """The softmax of the linear predictor, in the features' own units; by array or by table."""
    model = rt.Raykar()
    result = fit_quietly(model, CROWD, EM, seed=0)
    raw = np.array([[0.5, -1.0], [2.0, 3.0], [0.0, 0.0]])
    found = rt.predict(model, result, CROWD.unlabelled(raw))
    scaled = (raw - np.asarray(CROWD.centre)[1:]) / np.asarray(CROWD.scale)[1:]
    log_odds = np.einsum(
        "if,cdfk->cdik",
        np.column_stack([np.ones(3), scaled]),
        result["posterior"]["coefficient"].values,
    )
    np.testing.assert_allclose(
        found, np.exp(log_odds) / np.exp(log_odds).sum(-1, keepdims=True), atol=1e-4
    )
    table = {"x2": raw[[2, 0, 1], 1], "name": ["c", "a", "b"], "x1": raw[[2, 0, 1], 0]}
    again = rt.predict(model, result, CROWD.unlabelled(table, item="name"))
    np.testing.assert_allclose(again.sel(item=["a", "b", "c"]), found, atol=1e-5)
    with raises_about(DataError, "features", "x2"):
        CROWD.unlabelled([[1.0, 2.0], [1.0, np.nan]])
    with raises_about(DataError, "names", ("x1", "x2")):
        CROWD.unlabelled([[1.0], [2.0]])


# ---------------------------------------------------------------------- suggest


def test_the_score_of_a_label_is_its_mutual_information(fitted):
    """Enumerated: the answer against the item's class and the parameters, over draws."""
    posterior = fitted["posterior"]
    draws = {name: posterior[name].values[0, :20] for name in ("prevalence", "confusion")}
    item, annotator = np.array([4, 4, 30]), np.array([0, 2, 5])
    weight = np.full(20, 1 / 20, np.float32)
    posterior = Posterior(rt.DawidSkene(), CROWD, draws, weight)
    questions = dataclasses.replace(CROWD, group=item, annotator=annotator, label=None, count=None)
    score = Bald()(posterior, questions)
    mean = np.asarray(posterior.answer_probs(questions).table).mean(0)
    answer, p_answer = mean.argmax(0), mean.max(0)
    for row, (unit, who) in enumerate(zip(item, annotator, strict=True)):
        joint = np.zeros((20, 3, 3))  # draw, class, answer
        for draw, true_class in itertools.product(range(20), range(3)):
            chance = draws["prevalence"][draw].copy()
            for other, label in zip(
                CROWD.annotator[CROWD.group == unit], CROWD.label[CROWD.group == unit], strict=True
            ):
                chance = chance * draws["confusion"][draw, other, :, label]
            chance = chance / chance.sum()
            joint[draw, true_class] = (
                chance[true_class] * draws["confusion"][draw, who, true_class] / 20
            )
        said = joint.sum((0, 1))
        information = (joint * np.log2(joint / (joint.sum(2, keepdims=True) * said))).sum()
        assert score[row] == pytest.approx(information, abs=2e-4)
        assert p_answer[row] == pytest.approx(said.max(), abs=1e-4)
        assert answer[row] == said.argmax()


# ---------------------------------------------------------------------- network


@pytest.mark.exhaustive
def test_a_hidden_layer_learns_what_a_line_cannot(fit_quietly):
    """Classes by the sign of a product of two features; items without labels are told apart by the
    network alone."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (240, 2))
    true_class = (features[:, 0] * features[:, 1] > 0).astype(int)
    item = np.repeat(np.arange(180), 3)
    label = np.where(rng.random(540) < 0.9, true_class[item], 1 - true_class[item])
    rows = zip(item, rng.integers(5, size=540), label, strict=True)
    labels = hand.labels(*rows, items=range(240)).with_features(features)
    right = {}
    for model in (rt.Raykar(), rt.Raykar(hidden=8)):
        found = fit_quietly(model, labels, rt.PGEM(draws=0, max_sweeps=30), seed=0)["classes"][
            "responsibility"
        ].values
        right[model.hidden] = (found[180:].argmax(1) == true_class[180:]).mean()
    assert right[0] < 0.7
    assert right[8] > 0.85


# ---------------------------------------------------------------------- what a stranger tried


def test_even_votes_are_even_beyond_rounding(fit_quietly) -> None:
    """So that the first class of them is not that of a rounding error, which differs by machine."""
    rng = np.random.default_rng(0)
    items, annotators = 300, 10
    label = np.stack([rng.permutation(np.repeat([0, 1], annotators // 2)) for _ in range(items)])
    item, annotator = (grid.ravel() for grid in np.indices(label.shape))
    table = {"item": item, "annotator": annotator, "label": label.ravel()}
    # Some items on which all agree, without which nobody would be better than chance.
    sure = {"item": np.repeat(np.arange(items, 400), 3), "annotator": np.tile([0, 1, 2], 100)}
    sure["label"] = sure["item"] % 2
    table = {name: np.concatenate([table[name], sure[name]]) for name in table}
    labels = rt.Labels.from_frame(table, **{name: name for name in table})
    result = fit_quietly(rt.models.MajorityVote(), labels, rt.PGEM(draws=0), seed=0)
    probs = result["classes"]["responsibility"].values[:items]
    assert (probs[:, 0] == probs[:, 1]).all()
