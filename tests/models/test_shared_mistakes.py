"""Families of annotators that are right and wrong together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import raters as rt
from raters.program import pointwise_log_likelihood


def crowd(deceived: float, seed: int, items: int = 120) -> tuple[rt.Labels, np.ndarray]:
    """Eight annotators of two classes, of whom the first five are one family, which is wrong
    together on a share of the items; and the truth."""
    rng = np.random.default_rng(seed)
    truth, chance = rng.integers(2, size=items), np.full((items, 8), 0.8)
    chance[rng.random(items) < deceived, :5] = 0.1
    item, who = np.divmod(np.arange(items * 8), 8)
    label = np.where(rng.random(items * 8) < chance[item, who], truth[item], 1 - truth[item])
    vendor = np.where(who < 5, "A", np.where(who == 5, "B", ""))
    table = {"item": item, "annotator": who, "label": label, "family": vendor}
    return rt.Labels.from_frame(table, **{role: role for role in table}), truth


def point(model: rt.SharedMistakes, labels: rt.Labels) -> dict[str, np.ndarray]:
    """Values of all sites drawn at random."""
    rng = np.random.default_rng(0)
    return {
        name: np.abs(value) if name.endswith("spread") else value
        for name, value in (
            (name, np.asarray(value) + rng.normal(size=np.shape(value)))
            for name, value in model.start(labels).items()
            if name != "prevalence"
        )
    } | {"prevalence": np.array([0.3, 0.7])}


@pytest.mark.parametrize("items", [False, True])
def test_likelihood_is_that_of_the_equation(items: bool) -> None:
    """Of each item, by hand; those alone in a family, or without one, have no effect of it."""
    labels, _ = crowd(0.2, 0, 6)
    model = rt.SharedMistakes(item_effects=items)
    at = point(model, labels)
    found = np.asarray(pointwise_log_likelihood(model, labels, at))
    table = labels.to_frame()
    for item in range(6):
        log_joint = np.log(at["prevalence"])
        for _, row in table[table["item"] == item].iterrows():
            logit = at["ability"][row["annotator"]]
            if row["annotator"] < 5:
                logit = logit + at["family_effect"][0, item]
            logits = logit + (at["item_effect"][item] if items else np.zeros(2))
            right = np.arange(2) == row["label"]
            log_joint = log_joint + np.log(np.where(right, expit(logits), expit(-logits)))
        assert found[item] == pytest.approx(logsumexp(log_joint), rel=1e-4)


@pytest.mark.exhaustive
def test_a_family_counts_for_less_and_its_effect_is_found(fit_quietly) -> None:
    """Against the truth, over three crowds: a family that is wrong together on a quarter of the
    items, and independent annotators. The bounds are at more than four standard errors of a crowd
    of 120 items; with the family's effect held at 0 the first three fail."""
    backend = rt.PGGibbs(draws=150, warmup=100, chains=2)
    loss = {}
    for deceived in (0.25, 0.0):
        for model in (rt.models.OneCoin(), rt.SharedMistakes()):
            found = []
            for seed in range(3):
                labels, truth = crowd(deceived, seed)
                result = fit_quietly(model, labels, backend, log_likelihood=False)
                chances = result["classes"]["responsibility"].values
                wrong = (chances.argmax(1) != truth).sum() - (1 - chances.max(1)).sum()
                spread = result.posterior.get("family_spread", np.asarray(np.nan))
                found.append(
                    [
                        -np.log(chances[np.arange(len(truth)), truth]).mean(),
                        wrong,
                        float(np.mean(spread)),
                    ]
                )
            loss[deceived, type(model).__name__] = np.mean(found, 0)
    one, shared = loss[0.25, "OneCoin"], loss[0.25, "SharedMistakes"]
    assert shared[0] < one[0] - 0.05, loss
    assert abs(shared[1]) < abs(one[1]) / 2, loss
    assert shared[2] > 1, loss
    one, shared = loss[0.0, "OneCoin"], loss[0.0, "SharedMistakes"]
    assert shared[0] < one[0] + 0.03, loss
    assert shared[2] < 0.7, loss
