"""Effects of annotators learned from known classes, weights of these, and the dependence of labels
that can be seen."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

from raters.auditing.truth import true_classes
from raters.auditing.truth.gold_weights import given_probabilities, weights
from raters.auditing.truth.true_classes import PRIOR, class_scores, learn_unknowns
from raters.errors import DataError
from tests.hand import label_table

SCALES = np.array([0.25, 0.5, 1, 2, 4, 8, 16])


def test_scores_are_modes_averaged_over_scales_and_do_not_know_their_own_class():
    """Against the mode by another optimiser, and a step of Newton's method without each item."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=30)
    codes = np.where(rng.random((30, 4)) < [0.9, 0.7, 0.5, 0.4], truth[:, None], 0)
    votes = np.zeros((30, 3, 4))
    np.put_along_axis(votes, codes[:, None], 0.6, axis=1)
    known, weight = np.arange(20), np.where(np.arange(20) < 5, 2.0, 0.8)
    offset = np.log(np.tile([0.5, 0.3, 0.2], (20, 1)))
    found = class_scores(csr_array(votes.reshape(90, 4)), offset, known, truth[:20], weight)

    def mode(rows, scale):
        def loss(effect):
            fit = log_softmax(offset[rows] + votes[rows] @ effect, axis=1)
            of_truth = fit[np.arange(len(rows)), truth[rows]]
            return effect @ effect / (2 * scale**2) - weight[rows] @ of_truth

        return minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x

    def without(one, scale):
        effect, curvature = mode(known, scale), np.eye(4) / scale**2
        slope = effect / scale**2
        for item in np.delete(known, one):
            probs = np.exp(log_softmax(offset[item] + votes[item] @ effect))
            slope = slope + weight[item] * (probs @ votes[item] - votes[item][truth[item]])
            curvature = curvature + weight[item] * np.cov(votes[item].T, aweights=probs, ddof=0)
        return votes[one] @ (effect - np.linalg.solve(curvature, slope))

    left_out = np.array([[without(one, scale) for one in known] for scale in SCALES])
    fits = log_softmax(offset + left_out, axis=2)[:, known, truth[:20]] @ weight
    share = np.exp(fits - np.log(SCALES) ** 2 / 2)
    share /= share.sum()
    effect = sum(part * mode(known, scale) for part, scale in zip(share, SCALES, strict=True))
    assert found[20:] == pytest.approx(votes[20:] @ effect, abs=1e-3)
    assert found[:20] == pytest.approx(np.einsum("s,sik->ik", share, left_out), abs=1e-3)


def test_known_classes_steer_labels_to_whom_they_prove_right():
    """Six of seven share their mistakes on two fifths of the items; one is right on nine tenths."""
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=500)
    seen = np.where(rng.random(500) < 0.4, 1 - truth, truth)
    crowd = np.where(rng.random((500, 6)) < 0.9, seen[:, None], 1 - seen[:, None])
    right = np.where(rng.random(500) < 0.9, truth, 1 - truth)
    labels = label_table(np.column_stack([crowd, right]))
    chances = np.where(np.arange(2) == crowd.mean(1)[:, None].round(), 0.99, 0.01)
    known = np.where(np.arange(500) < 50, truth, -1)
    found, unknowns = learn_unknowns(chances, labels, known, np.ones(500), 200, rng)
    assert found.scores is not None
    log_odds = found.scores[50:, 1] - found.scores[50:, 0]
    assert ((log_odds > 0) == truth[50:]).mean() > 0.85
    assert unknowns["weight"].mean() > 0.5


def test_items_that_are_chosen_more_often_weigh_less():
    labels = label_table(np.zeros((100, 3), int), classes=(0, 1))
    gold = pd.DataFrame({"item": range(40), "truth": 0, "probability": [0.8] * 20 + [0.2] * 20})
    chosen = given_probabilities(gold, labels)
    weight, doubt = weights(labels, np.arange(100) < 40, chosen)
    assert not doubt
    assert weight[20] == pytest.approx(4 * weight[0])
    # Kish: (sum w)^2 / sum w^2 with weights 1 and 4.
    assert weight.sum() == pytest.approx(20 * 25 / 17)
    assert not weight[40:].any()
    equal, _ = weights(labels, np.arange(100) < 40, np.where(np.arange(100) < 40, 0.3, np.nan))
    assert equal[:40] == pytest.approx(1)


@pytest.mark.parametrize("value", [0, 1.5, -0.2])
def test_what_is_no_probability_of_choice_is_refused(value):
    gold = pd.DataFrame({"item": [0, 1], "truth": 0, "probability": [0.5, value]})
    with pytest.raises(DataError, match="must hold probabilities, above 0"):
        given_probabilities(gold, label_table(np.eye(2, dtype=int)))


def test_hard_items_weigh_as_all_items_like_them():
    """Known items are those that annotators disagree about, and a few others."""
    rng = np.random.default_rng(2)
    codes = (rng.random((300, 5)) < np.where(np.arange(300) < 100, 0.45, 0.02)[:, None]).astype(int)
    known = np.isin(np.arange(300), np.concatenate([np.arange(60), np.arange(200, 215)]))
    weight, doubt = weights(label_table(codes), known, None)
    assert "agreement" in doubt or "classes" in doubt
    assert weight[200:215].mean() > 2 * weight[:60].mean()


def test_dependence_is_seen_where_labels_share_more_than_the_class():
    """A tenth of the items of one crowd is seen the other way round by half of its annotators;
    the score of independent ones is within five standard deviations."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=800)
    alone = np.where(rng.random((800, 6)) < 0.8, truth[:, None], 1 - truth[:, None])
    chances = np.eye(2)[truth]
    seen = true_classes.visible_dependence(label_table(alone), chances)
    assert abs(seen.score) < 5
    assert seen.labels == 6
    hard = rng.random(800) < 0.1
    shared = np.where(hard[:, None] & (rng.random((800, 6)) < 0.5), 1 - alone, alone)
    assert true_classes.visible_dependence(label_table(shared), chances).score > 5


def test_without_visible_dependence_mistakes_are_likelier_to_be_independent():
    none, much, few = (
        PRIOR.given(true_classes.Visible(*seen)) for seen in ((0, 8), (20, 8), (0, 3))
    )
    assert none.independent > 5 * PRIOR.independent > 50 * much.independent
    assert few.independent == pytest.approx(PRIOR.independent, rel=0.4)


def test_items_that_all_agree_alike_give_no_doubt():
    known = np.arange(60) < 30
    weight, doubt = weights(label_table(np.arange(60)[:, None] % 2), known, None)
    assert (doubt, weight.tolist()) == ("", known.tolist())
