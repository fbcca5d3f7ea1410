"""What to ask next: BALD against other ways to compute it, and the questions that there are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, xlogy
from scipy.stats import norm

import raters as rt
from raters.acquisition import scores
from raters.errors import DataError, SettingError
from tests import hand

RNG = np.random.default_rng(0)
ITEMS, ANNOTATORS, DRAWS = 6, 4, 200
MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
VOTES, _ = rt.datasets.separated(ITEMS, ANNOTATORS, 60, seed=0)
REWARD = RNG.normal(size=(DRAWS, ITEMS)) * [0.1, 0.5, 1, 2, 4, 8]
COMPETENCE = RNG.normal(size=(DRAWS, ANNOTATORS)) * [0.3, 0.5, 0.0, 1.0] + [1.0, 0.5, 0.0, -1.0]
RESULT = hand.result(VOTES, reward=REWARD, competence=COMPETENCE)
PAIRS = rt.Candidates.pairs(VOTES)


def bits(*probabilities: np.ndarray) -> np.ndarray:
    return -sum(xlogy(p, p) for p in probabilities) / np.log(2)


def probabilities(questions: rt.Comparisons) -> np.ndarray:
    """P(first wins), shape (draw, question), in float64."""
    gap = REWARD[:, questions.first] - REWARD[:, questions.second]
    return expit(COMPETENCE[:, questions.annotator] * gap)


def ask(**options):
    return rt.suggest(MODEL, RESULT, options.pop("candidates", PAIRS), draws=DRAWS, **options)


# ------------------------------------------------------------------ the score


def test_the_score_is_the_mutual_information():
    """Brute force: I(y; θ) = Σ p(y, θ) log p(y, θ) / (p(y) p(θ)) over both answers and all draws."""
    score, p_win = scores(MODEL, {"reward": REWARD, "competence": COMPETENCE}, PAIRS)
    p = probabilities(PAIRS)
    joint = np.stack([p, 1 - p]) / DRAWS  # (answer, draw, question)
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    expected = np.sum(xlogy(joint, joint / independent), axis=(0, 1)) / np.log(2)
    np.testing.assert_allclose(score, expected, atol=1e-5)
    np.testing.assert_allclose(p_win, p.mean(0), atol=1e-5)


def test_both_forms_of_bald_agree():
    """The entropy form, which raters computes, and the mean Kullback–Leibler divergence from the averaged answer."""
    score, _ = scores(MODEL, {"reward": REWARD, "competence": COMPETENCE}, PAIRS)
    p = probabilities(PAIRS)
    mean = p.mean(0)
    divergence = (xlogy(p, p / mean) + xlogy(1 - p, (1 - p) / (1 - mean))).mean(0) / np.log(2)
    np.testing.assert_allclose(score, divergence, atol=1e-5)
    np.testing.assert_allclose(score, bits(mean, 1 - mean) - bits(p, 1 - p).mean(0), atol=1e-5)


def test_the_score_lies_between_0_and_the_entropy():
    score, p_win = scores(MODEL, {"reward": REWARD, "competence": COMPETENCE}, PAIRS)
    assert (score >= 0).all()
    assert (score <= np.minimum(1, bits(p_win, 1 - p_win)) + 1e-5).all()


@pytest.mark.parametrize(("mean", "variance"), [(0, 1), (1, 0.5), (2, 4)])
def test_probit_gaussian(mean, variance):
    """A latent normal seen through Φ, against quadrature; Houlsby et al. (2011), equation 3, come near with a closed form."""
    spread = variance**0.5

    def entropy(p):
        return bits(p, 1 - p)

    mean_entropy, _ = quad(lambda z: norm.pdf(z) * entropy(norm.cdf(mean + spread * z)), -10, 10)
    expected = entropy(norm.cdf(mean / np.sqrt(1 + variance))) - mean_entropy
    c = np.sqrt(np.pi * np.log(2) / 2)
    closed_form = entropy(norm.cdf(mean / np.sqrt(1 + variance))) - c * np.exp(-(mean**2) / (2 * (variance + c**2))) / np.sqrt(
        variance + c**2
    )
    assert closed_form == pytest.approx(expected, abs=2e-3)
    latent = mean + spread * norm.ppf((np.arange(4000) + 0.5) / 4000)
    reward = np.stack([norm.logcdf(latent) - norm.logsf(latent), np.zeros(4000)], axis=1)
    questions = hand.votes(("a", "b", "x"), items=["a", "b"]).without_outcomes()
    score, _ = scores(rt.BTL(reward_scale=1.0), {"reward": reward}, questions)
    assert score[0] == pytest.approx(expected, abs=1e-4)


def test_a_guesser_is_not_worth_asking():
    found = ask(batch_size=1000, repeats=True)
    guesser = found["by"].values == 2
    assert guesser.sum() == 15
    assert np.abs(found["score"].values[guesser]).max() < 1e-5
    np.testing.assert_allclose(found["p_win"].values[guesser], 0.5, atol=1e-6)
    assert found["score"].values[~guesser].min() > 1e-4


def test_scores_in_pieces_are_those_of_the_whole(monkeypatch):
    draws = {"reward": REWARD, "competence": COMPETENCE}
    whole = scores(MODEL, draws, PAIRS)
    monkeypatch.setattr("raters.acquisition._CHUNK", 7)
    for one, other in zip(whole, scores(MODEL, draws, PAIRS), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


# ------------------------------------------------------------------ the batch


def test_best_first_and_each_pair_once():
    found = ask(batch_size=1000)
    assert (np.diff(found["score"].values) <= 0).all()
    pairs = [frozenset(pair) for pair in zip(found["first"].values, found["second"].values, strict=True)]
    assert len(pairs) == len(set(pairs)) == 15  # larger than the candidates: everything there is
    score, _ = scores(MODEL, {"reward": REWARD, "competence": COMPETENCE}, PAIRS)
    best = {}
    for i, j, value in zip(PAIRS.first, PAIRS.second, score, strict=True):
        best[frozenset((int(i), int(j)))] = max(best.get(frozenset((int(i), int(j))), 0), value)
    for pair, value in zip(pairs, found["score"].values, strict=True):
        assert value == pytest.approx(best[pair])


def test_a_pair_shown_the_other_way_round_is_the_same_pair():
    flipped = rt.Comparisons(
        np.array([0, 1, 2]), np.array([1, 0, 0]), np.array([0, 1, 0]), None, None, VOTES.items, VOTES.annotators, True
    )
    assert ask(candidates=flipped, batch_size=10).sizes["suggestion"] == 2
    assert ask(candidates=flipped, batch_size=10, repeats=True).sizes["suggestion"] == 3


def test_repeats_put_a_pair_to_several_annotators():
    found = ask(batch_size=1000, repeats=True)
    assert found.sizes["suggestion"] == PAIRS.num_comparisons == 60
    assert (np.diff(found["score"].values) <= 0).all()


def test_whom_to_ask_about_one_pair():
    found = ask(candidates=rt.Candidates.annotators(VOTES, 5, 1), batch_size=10, repeats=True)
    assert set(zip(found["first"].values, found["second"].values, strict=True)) == {(5, 1)}
    assert sorted(found["by"].values) == [0, 1, 2, 3]
    assert found["by"].values[-1] == 2


def test_the_same_seed_gives_the_same_questions():
    few = {"batch_size": 5, "seed": 3}
    one, other = (rt.suggest(MODEL, RESULT, PAIRS, draws=20, **few) for _ in range(2))
    assert one.equals(other)
    assert not one.equals(rt.suggest(MODEL, RESULT, PAIRS, draws=20, batch_size=5, seed=4))


# ------------------------------------------------------------------ candidates


def test_candidates_among_some_names():
    found = rt.Candidates.pairs(VOTES, items=[5, 2, 0], annotators=[3])
    asked = {(VOTES.items[i], VOTES.items[j]) for i, j in zip(found.first, found.second, strict=True)}
    assert asked == {(0, 2), (0, 5), (2, 5)}
    assert set(found.annotator.tolist()) == {3}
    assert found.wins is None


def test_a_sample_of_candidates_is_distinct_and_uniform():
    votes, _ = rt.datasets.separated(100, 20, 300, seed=0)
    found = rt.Candidates.pairs(votes, limit=5000, seed=1)
    rows = np.stack([found.first, found.second, found.annotator], axis=1)
    assert len(np.unique(rows, axis=0)) == len(rows) == 5000
    assert (found.first < found.second).all()
    # Each annotator gets 250 ± 15 (the standard deviation of a share of 1/20); false alarm below 1e-6 at 6 deviations.
    assert np.abs(np.bincount(found.annotator, minlength=20) - 250).max() < 90
    again = rt.Candidates.pairs(votes, limit=5000, seed=1)
    assert np.array_equal(found.first, again.first)
    assert not np.array_equal(found.first, rt.Candidates.pairs(votes, limit=5000, seed=2).first)


def test_a_sample_from_very_many_candidates_is_made_of_pairs():
    many = 2_000_000
    votes = rt.Comparisons(np.array([0]), np.array([1]), np.array([0]), np.array([1.0]), None, range(many), range(1000))
    found = rt.Candidates.pairs(votes, limit=20_000)
    assert (found.first >= 0).all()
    assert (found.first < found.second).all()
    assert found.second.max() < many
    assert found.second.max() > 0.99 * many  # uniform pairs: P(all below) = .99^40000
    assert len(np.unique(found.first.astype(np.int64) * many + found.second)) > 19_990


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rt.Candidates.pairs(VOTES, items=[0]), "a question needs two items; give at least two"),
        (lambda: rt.Candidates.pairs(VOTES, items=[]), "items= names nobody and nothing"),
        (lambda: rt.Candidates.pairs(VOTES, annotators=[]), "annotators= names nobody and nothing"),
        (lambda: rt.Candidates.pairs(VOTES, items=[0, 1, 77]), "1 item(s) are not among the 6 items known, e.g. 77"),
        (lambda: rt.Candidates.pairs(VOTES, annotators=["eve"]), "1 annotator(s) are not among the 4 annotators known"),
        (lambda: rt.Candidates.pairs(VOTES, annotators="eve"), "annotators= takes a list of names"),
        (lambda: rt.Candidates.pairs(VOTES, annotators=3), "annotators= takes a list of names, such as annotators=[3]"),
        (lambda: rt.Candidates.annotators(VOTES, 1, 1), "a question needs two different items; both are 1"),
        (lambda: rt.Candidates.annotators(VOTES, 1, "x"), "1 item(s) are not among the 6 items known, e.g. 'x'"),
    ],
)
def test_candidates_that_cannot_be(make, message):
    with pytest.raises(DataError, match=re.escape(message)):
        make()


def test_candidates_with_a_name_nearly_right():
    votes = hand.votes(("coffee", "tea", "ann"))
    with pytest.raises(DataError, match="did you mean 'coffee'"):
        rt.Candidates.pairs(votes, items=["cofee", "tea"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0 is not possible"),
        ({"batch_size": 2.5}, "batch_size=2.5 is not possible"),
        ({"draws": 1}, "draws=1 is not possible; it must be a whole number, at least 2"),
        ({"candidates": [(0, 1)]}, "candidates must be Comparisons or Labels; it is list"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        rt.suggest(MODEL, RESULT, **({"candidates": PAIRS} | options))


def test_limit_out_of_range():
    with pytest.raises(SettingError, match="limit=0 is not possible"):
        rt.Candidates.pairs(VOTES, limit=0)


def test_unknown_names_in_candidates():
    with pytest.raises(DataError, match=r"1 item\(s\) are not among the 6 items known, e.g. 'zebra'"):
        ask(candidates=hand.votes((0, "zebra", 1)).without_outcomes())
