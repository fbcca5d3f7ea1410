"""Audits that stand on known truths, on trusted annotators, or on the crowd alone."""

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.auditing.settling import settling
from raters.auditing.verdicts import DIFFERS, gives_one_answer
from raters.errors import DataWarning
from tests import hand

pytestmark = pytest.mark.slow

MODEL = rt.DawidSkene()
FIT = rt.PGGibbs(draws=500, chains=2)
NAMES = [f"crowd{place}" for place in range(7)] + ["right", "mute"]


@pytest.fixture(scope="module")
def misled():
    """A crowd of seven that is wrong together on nearly half of 300 items, one annotator who is
    right on nearly all, and one who always says "no"."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    seen = np.where(rng.random(300) < 0.47, 1 - truth, truth)
    crowd = np.where(rng.random((300, 7)) < 0.9, seen[:, None], 1 - seen[:, None])
    right = np.where(rng.random(300) < 0.97, truth, 1 - truth)
    codes = np.column_stack([crowd, right, np.zeros(300, int)])
    words = np.array(["no", "yes"])[codes]
    data = hand.labels(*((item, NAMES[who], word) for (item, who), word in np.ndenumerate(words)))
    result = rt.fit(MODEL, data, FIT, seed=0, progress=False)
    return data, result, pd.Series(np.array(["no", "yes"])[truth], data.items)


def verdict_of(audit):
    table = audit.table["verdict"]
    return dict(zip(table["annotator"].values.tolist(), table.values.tolist(), strict=True))


def test_the_crowd_alone_drops_nobody_for_disagreement(misled):
    _, result, _ = misled
    audit = rt.audit(MODEL, result)
    found = verdict_of(audit)
    assert audit.flagged == ["mute"]
    assert found["right"] in (DIFFERS, "review")
    assert str(audit).startswith("Annotators were measured against the crowd alone")
    assert "differs from the crowd" in audit.rule


def test_known_truths_move_verdicts(misled):
    """Accuracy on known truths counts for what it is, whatever the crowd says."""
    _, result, truth = misled
    audit = rt.audit(MODEL, result, truth.sample(100, random_state=2))
    found, accuracy = verdict_of(audit), audit.table["accuracy"].to_series()
    assert found["right"] == "keep"
    assert accuracy["right"] > 0.85
    assert (accuracy.drop(["right", "mute"]) < 0.7).all()
    assert set(found.values()) <= {"keep", "review", "drop"}


def test_judges_are_compared_on_known_truths(misled):
    """All 100 known items were answered by both: those that one alone has right decide."""
    data, result, truth = misled
    gold = truth.sample(100, random_state=2)
    audit = rt.audit(MODEL, result, gold)
    answers = data.to_frame().pivot(index="item", columns="annotator", values="label")
    right = answers.loc[gold.index].eq(gold, axis=0)
    found = audit.compare("right", "crowd0")
    assert found.discordant == (right["right"] != right["crowd0"]).sum()
    assert found.decided
    assert 0.5 < found.share_low < found.share_high
    assert found.p_better > 0.99
    checked = audit.anchor_check
    assert (checked["anytime_low"] <= checked["gold"]).all()
    assert (checked["gold"] <= checked["anytime_high"]).all()


def test_a_trusted_annotator_is_an_anchor(misled):
    _, result, _ = misled
    audit = rt.audit(MODEL, result, reference=["right"])
    assert verdict_of(audit)["right"] == "keep"
    assert "right" in audit.anchor.sentence
    assert DIFFERS not in verdict_of(audit).values()


def test_truths_that_are_wanted_are_of_open_verdicts(misled):
    data, result, _ = misled
    audit = rt.audit(MODEL, result)
    wanted = audit.settling
    is_open = audit.table["verdict"].isin(["review", DIFFERS]).values
    assert wanted.open == is_open.sum()
    assert 0 < wanted.number == len(wanted.questions) <= data.num_items
    assert wanted.settled > wanted.open / 2
    assert list(wanted.questions) == ["item"]
    assert wanted.questions["item"].is_unique


# ---------------------------------------------------------------- verdicts


def test_one_answer_is_told_from_a_common_class():
    """100 of 100 labels of a class that 99 of 100 labels are says nothing; of one of two does."""
    same, number = np.array([100.0, 100.0, 99.0, 5.0]), np.array([100.0, 100.0, 100.0, 5.0])
    chance = np.array([0.99, 0.5, 0.5, 0.5])
    assert gives_one_answer(same, number, chance).tolist() == [False, True, False, False]


# ---------------------------------------------------------------- truths that are wanted


@pytest.fixture(scope="module")
def answered():
    """Ann answers all of 400 questions, bob a tenth of them."""
    items = np.concatenate([np.arange(400), np.arange(40)])
    frame = {"item": items, "annotator": ["ann"] * 400 + ["bob"] * 40, "label": items % 2}
    return rt.Labels.from_frame(
        pd.DataFrame(frame), item="item", annotator="annotator", label="label"
    )


def test_truths_that_settle_a_verdict_do_so_when_they_are_drawn(answered):
    """Of annotators drawn from the same prior, as many are settled as was expected: 2,000 of them,
    error below .034 (three standard errors)."""
    rng = np.random.default_rng(1)
    accuracy = rng.beta(4, 3, (4000, 2))
    bad = accuracy < 0.6
    costs = rt.Costs(review=0.1)
    verdict = np.array(["review", "too few draws"])
    found = settling(answered, verdict, accuracy, bad, costs, 0)
    kept, is_bad = accuracy[::20, 0], bad[::20, 0]
    right = rng.binomial(found.number, rng.choice(kept, 2000))
    log_odds = right[:, None] * np.log(kept) + (found.number - right)[:, None] * np.log1p(-kept)
    weight = np.exp(log_odds - log_odds.max(1, keepdims=True))
    p_bad = (weight * is_bad).sum(1) / weight.sum(1)
    settled = (np.minimum(p_bad, 1 - p_bad) <= costs.review).mean()
    assert found.settled == pytest.approx(settled, abs=0.034)


def test_a_verdict_that_would_open_again_counts_against_the_truths(answered):
    """Ann is open; bob, just decided, would be open after some of his ten answers."""
    accuracy = np.random.default_rng(2).beta(4, 3, (4000, 2))
    bad, costs = accuracy < np.array([0.6, 0.44]), rt.Costs(review=0.2)
    alone, both = (
        settling(answered, np.array(["review", bob]), accuracy, bad, costs, 0)
        for bob in ("too few draws", "keep")
    )
    assert both is None or both.settled < alone.settled - 0.05 or both.number > alone.number


# ---------------------------------------------------------------- how truths were chosen


@pytest.fixture(scope="module")
def plain(fit_quietly):
    """Labels of 120 items of two classes, their fit, and their true classes."""
    labels, truth = rt.datasets.label_crowd(120, 8, 5, 2, seed=3)
    result = fit_quietly(rt.DawidSkene(), labels, rt.PGEM(draws=200))
    return labels, result, pd.Series(truth["true_class"], labels.items)


def test_truths_of_one_class_are_no_random_sample(plain):
    _, result, truth = plain
    one = truth[truth == truth.iloc[0]].iloc[:40]
    with pytest.warns(DataWarning, match="no random sample, as the classes"):
        rt.calibrate(rt.DawidSkene(), result, one)


def test_shares_of_right_labels_do_not_depend_on_how_items_were_chosen(plain):
    labels, result, truth = plain
    gold = pd.DataFrame({"item": truth.index, "truth": truth.values})
    gold["probability"] = np.where(np.arange(len(gold)) % 2, 0.2, 0.8)
    found = rt.calibrate(rt.DawidSkene(), result, gold).annotators
    right = labels.to_frame().assign(
        right=lambda frame: frame["label"] == truth[frame["item"]].values
    )
    share = right.groupby("annotator")["right"].mean()
    assert found["accuracy_low"].values == pytest.approx(share.values)
    assert found["accuracy_high"].values == pytest.approx(share.values)


# ---------------------------------------------------------------- truths that are few or wrong


def test_classes_the_other_way_round_give_a_warning(plain):
    _, result, truth = plain
    with pytest.warns(DataWarning, match=r"of 40 known classes contradict the crowd.*gold names"):
        rt.calibrate(rt.DawidSkene(), result, 1 - truth.sample(40, random_state=0))
