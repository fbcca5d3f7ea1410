"""Warnings and predictions of the models of labels, and the network classifier."""

import dataclasses
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.acquisition import Posterior
from raters.acquisition.scores import Bald
from raters.errors import BackendError, DataError, SettingError
from raters.fitting.result import fit_warnings
from raters.fitting.storage import from_json, to_json
from raters.model import Model
from raters.models.labels import _sites
from raters.program import Program
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


def test_few_labels_for_many_classes_are_warned_of():
    thin, _ = rt.datasets.label_crowd(40, 40, 4, 6, seed=0)
    (sentence,) = rt.DawidSkene().data_warnings(thin)
    assert "at most 4 labels, and a confusion matrix of 6 classes has 30 numbers" in sentence
    assert not rt.DawidSkene().data_warnings(CROWD)
    assert not rt.models.OneCoin().data_warnings(thin)


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


@pytest.mark.slow
def test_a_crowd_worse_than_chance_is_warned_of(fit_quietly):
    found = fit_quietly(rt.models.OneCoin(), CROWD, EM, seed=0)
    assert not warnings_of(rt.models.OneCoin(), found)
    found["posterior"]["accuracy"] = found["posterior"]["accuracy"] * 0 + 0.2
    (sentence,) = warnings_of(rt.models.OneCoin(), found)
    assert "less often than by chance" in sentence


@pytest.mark.parametrize("model", [rt.Raykar(), rt.models.Yan()])
def test_a_classifier_needs_features(model):
    plain = dataclasses.replace(CROWD, features=None, centre=None, scale=None, feature_names=())
    with raises_about(BackendError, "features"):
        rt.fit(model, plain, EM, seed=0)


@pytest.mark.parametrize("model", [rt.models.ItemDifficulty(), rt.models.Yan()])
def test_a_record_must_have_something_to_inform(model):
    record = CROWD.with_record({"annotator": [0], "truth": [1], "label": [1]})
    with pytest.raises(BackendError, match="nothing that an earlier record could inform"):
        rt.fit(model, record, EM, seed=0)


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


@pytest.mark.parametrize(
    ("wrong", "about"),
    [
        (lambda: rt.DawidSkene(diagonal=0), ("diagonal", 0)),
        (lambda: rt.DawidSkene(off_diagonal=-1.0), ("off_diagonal", -1.0)),
        (lambda: rt.models.OneCoin(right="2"), ("right", "2")),
        (lambda: rt.Raykar(hidden=-1), ("hidden", -1)),
        (lambda: rt.Raykar(coefficient_scale=float("nan")), ("coefficient_scale", float("nan"))),
    ],
)
def test_settings_are_checked(wrong, about):
    with raises_about(SettingError, *about):
        wrong()


def test_numpy_settings_are_written_as_numbers():
    model = rt.Raykar(coefficient_scale=np.float64(0.1), diagonal=np.float32(2))
    assert from_json(to_json(model), (Model,), "model") == model


# ---------------------------------------------------------------------- predict


def test_predict_is_bayes_rule(fitted):
    """New items, labelled by known annotators: prevalence times the entries of the confusion
    matrices, normalised."""
    new = rt.Labels.from_frame(
        {"i": ["x", "x", "y"], "who": [0, 3, 5], "says": [2, 2, 0]},
        item="i",
        annotator="who",
        label="says",
        classes=[0, 1, 2],
    )
    found = rt.predict(rt.DawidSkene(), fitted, new)
    assert found.dims == ("chain", "draw", "item", "true_class")
    draws = fitted["posterior"]
    prevalence, confusion = draws["prevalence"].values, draws["confusion"].values
    x = prevalence * confusion[:, :, 0, :, 2] * confusion[:, :, 3, :, 2]
    np.testing.assert_allclose(found.sel(item="x"), x / x.sum(-1, keepdims=True), rtol=2e-4)


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


@pytest.mark.slow
def test_items_of_a_model_with_items_must_be_known(fit_quietly, labelled):
    result = fit_quietly(rt.models.ItemDifficulty(), labelled, EM, seed=0)
    answer = {"i": ["x"], "who": [labelled.annotators[0]], "says": [labelled.classes[2]]}
    new = rt.Labels.from_frame(
        answer, item="i", annotator="who", label="says", classes=labelled.classes
    )
    with raises_about(DataError, "item", "x"):
        rt.predict(rt.models.ItemDifficulty(), result, new)


def test_labels_are_left_out_by_item_only(fitted):
    assert rt.log_likelihood(rt.DawidSkene(), fitted)["log_likelihood"]["label"].dims == (
        "chain",
        "draw",
        "item",
    )
    with raises_about(SettingError, "by", "annotator"):
        rt.log_likelihood(rt.DawidSkene(), fitted, by="annotator")


# ---------------------------------------------------------------------- suggest


def test_the_score_of_a_label_is_its_mutual_information(fitted):
    """Enumerated: the answer against the item's class and the parameters, over draws."""
    posterior = fitted["posterior"]
    draws = {name: posterior[name].values[0, :20] for name in ("prevalence", "confusion")}
    item, annotator = np.array([4, 4, 30]), np.array([0, 2, 5])
    weight = np.full((1, 20), 1 / 20, np.float32)
    posterior = Posterior(
        rt.DawidSkene(), CROWD, {name: value[None] for name, value in draws.items()}, weight
    )
    questions = dataclasses.replace(CROWD, group=item, annotator=annotator, label=None, count=None)
    score = Bald()(posterior, questions)
    mean = np.asarray(posterior.answer_probs(questions).table[0]).mean(0)
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


def test_suggestions_name_new_questions_once(fitted):
    asked = set(zip(CROWD.item.tolist(), CROWD.annotator.tolist(), strict=True))
    candidates = rt.Candidates.labels(CROWD)
    assert candidates.num_rows == 60 * 6 - len(asked)
    found = rt.suggest(rt.DawidSkene(), fitted, candidates, batch_size=10)
    pairs = list(zip(found["item"].values.tolist(), found["by"].values.tolist(), strict=True))
    assert not asked & set(pairs)
    assert len({item for item, _ in pairs}) == 10
    assert np.all(np.diff(found["score"]) <= 0)
    only = rt.suggest(
        rt.DawidSkene(),
        fitted,
        rt.Candidates.labels(CROWD, annotators=[2], items=[3, 4], again=True),
        batch_size=9,
        policy=rt.Policy(batch=rt.acquisition.Top()),
    )
    assert set(only["by"].values) == {2}
    assert set(only["item"].values) == {3, 4}


# ---------------------------------------------------------------------- network


def test_labels_are_counted_by_annotator_class_and_label():
    """By hand; a row of two labels counts twice."""
    labels = rt.Labels.from_frame(
        {"item": [*"aab"], "who": [*"xyx"], "says": [*"nyn"], "times": [2, 1, 1]},
        item="item",
        annotator="who",
        label="says",
        count="times",
    )
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    counts = _sites.counts_by_class(_sites.label_counts(labels), shares)
    np.testing.assert_allclose(counts, [[[1.5, 0], [1.5, 0]], [[0, 0.25], [0, 0.75]]])


@pytest.mark.exhaustive
def test_a_hidden_layer_learns_what_a_line_cannot(fit_quietly):
    """Classes by the sign of a product of two features; items without labels are told apart by the
    network alone."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (240, 2))
    true_class = (features[:, 0] * features[:, 1] > 0).astype(int)
    item = np.repeat(np.arange(180), 3)
    label = np.where(rng.random(540) < 0.9, true_class[item], 1 - true_class[item])
    table = {"item": item, "who": rng.integers(5, size=540), "says": label}
    labels = rt.Labels.from_frame(
        table, item="item", annotator="who", label="says", items=range(240)
    ).with_features(features)
    right = {}
    for model in (rt.Raykar(), rt.Raykar(hidden=8)):
        found = fit_quietly(model, labels, rt.PGEM(draws=0, max_sweeps=30), seed=0)["classes"][
            "responsibility"
        ].values
        right[model.hidden] = (found[180:].argmax(1) == true_class[180:]).mean()
    assert right[0] < 0.7
    assert right[8] > 0.85


def test_gibbs_refuses_a_large_network():
    rng = np.random.default_rng(0)
    wide = CROWD.with_features(rng.normal(size=(60, 40)))
    with pytest.raises(
        BackendError,
        match=r"a slice step for each of the 656 entries of hidden_weight; use EM or SVI",
    ):
        rt.fit(rt.Raykar(hidden=16), wide, rt.PGGibbs(draws=10), seed=0)


# ---------------------------------------------------------------------- datasets


def test_label_crowd_is_what_it_says():
    labels, truth = rt.datasets.label_crowd(4000, 20, 5, 3, spammers=0.2, adversaries=0.1, seed=0)
    assert (np.bincount(labels.item) == 5).all()
    assert labels.count is None
    assert [(truth["kind"] == kind).sum() for kind in ("spammer", "adversary")] == [4, 2]
    seen = np.zeros((20, 3, 3))
    np.add.at(seen, (labels.annotator, truth["true_class"][labels.item], labels.label), 1)
    seen /= seen.sum(2, keepdims=True)
    np.testing.assert_allclose(seen, truth["confusion"], atol=0.08)
    spammer = np.flatnonzero(truth["kind"] == "spammer")[0]
    assert np.ptp(truth["confusion"][spammer], axis=0).max() == 0


# ---------------------------------------------------------------------- what a stranger tried


@pytest.mark.slow
def test_fit_warnings_weigh_labels_by_their_count() -> None:
    """Two annotators are right in 500 labels of each item, three are wrong in one: the crowd is
    right."""
    item, who = np.repeat(np.arange(10), 5), np.tile(np.arange(5), 10)
    said = np.where(who < 2, item % 2, 1 - item % 2)
    table = {"i": item, "a": who, "l": said, "n": np.where(who < 2, 500, 1)}
    labels = rt.Labels.from_frame(table, item="i", annotator="a", label="l", count="n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rt.errors.ConvergenceWarning)
        rt.fit(rt.models.OneCoin(), labels, rt.PGEM(draws=200), seed=0, progress=False)


def test_a_part_of_the_items_cannot_be_fitted() -> None:
    with pytest.raises(DataError, match=r"these are 10 of \d+ items, as take"):
        rt.fit(rt.DawidSkene(), CROWD.take(slice(0, 10)), rt.PGEM(), seed=0, progress=False)


@pytest.mark.slow
def test_a_single_new_item_is_scaled_like_those_fitted(fit_quietly) -> None:
    labels = rt.datasets.label_crowd(40, 4, 3, 2, num_features=2, seed=0).labels
    model = rt.Raykar()
    result = fit_quietly(model, labels, rt.PGEM(draws=20))
    one = rt.Labels.from_frame(
        {"i": ["new"], "a": [0], "l": [1]},
        item="i",
        annotator="a",
        label="l",
        classes=labels.classes,
    )
    raw = np.array([[0.3, -1.0]])
    chance = rt.predict(model, result, one.with_features(raw, like=labels)).mean(("chain", "draw"))
    assert chance.sizes == {"item": 1, "true_class": 2}
    scaled = one.with_features(raw, like=labels).features[0]
    np.testing.assert_allclose(
        scaled[1:] * np.asarray(labels.scale)[1:] + np.asarray(labels.centre)[1:], raw[0], rtol=1e-5
    )
    with raises_about(DataError, "like"):
        one.with_features(raw[:, :1], like=labels)


def test_dropping_strangers_is_refused(fitted) -> None:
    found = rt.audit(rt.DawidSkene(), fitted, threshold=0.99, reference="crowd")
    other = rt.datasets.label_crowd(20, 3, 2, 3, seed=0).labels
    named = dataclasses.replace(other, annotators=("x", "y", "z"))
    with raises_about(SettingError, "data"):
        rt.auditing.drop(rt.DawidSkene(), named, found, rt.PGEM(), seed=0, progress=False)


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
