"""The audit of labels, against numbers recomputed from the same draws, and against crowds whose
truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.kinds.labels import audit as label_audit

MODEL = rt.DawidSkene()
# ann is always right, bob never, eve says "yes" to everything; zoe gave no label.
TABLE = {
    "page": [1, 1, 1, 2, 2, 2, 3, 3, 4, 4],
    "who": ["ann", "bob", "eve", "ann", "bob", "eve", "ann", "bob", "ann", "bob"],
    "says": ["no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "no"],
}
MATRICES = np.array(
    [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, 1], [0, 1]], [[0.8, 0.2], [0.4, 0.6]]]
)


def hand_labels() -> rt.Labels:
    names = {"annotators": ["ann", "bob", "eve", "zoe"], "classes": ["no", "yes"]}
    return rt.Labels.from_frame(TABLE, item="page", annotator="who", label="says", **names)


def _write(group: xr.DataTree, name: str, values: np.ndarray) -> None:
    group[name] = group[name].copy(data=values.astype(float))


@pytest.fixture(scope="module")
def hand(fit_quietly) -> xr.DataTree:
    """A result whose draws are written by hand: confusion matrices that do not vary, and classes
    that are known."""
    result = fit_quietly(MODEL, hand_labels(), rt.PGEM(draws=200))
    prevalence = np.array([[0.5, 0.5], [0.5, 0.5], [0.75, 0.25], [0.75, 0.25]] * 50)
    _write(result["posterior"], "confusion", np.broadcast_to(MATRICES, (1, 200, 4, 2, 2)))
    _write(result["posterior"], "prevalence", prevalence[None])
    _write(
        result["classes"],
        "responsibility",
        np.array([[0.85, 0.15], [0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]),
    )
    return result


@pytest.fixture(scope="module")
def crowd():
    """Three classes, features, and every kind of annotator."""
    sizes = {
        "num_items": 120,
        "num_annotators": 15,
        "labels_per_item": 6,
        "num_classes": 3,
        "num_features": 2,
    }
    return rt.datasets.label_crowd(**sizes, seed=1, spammers=0.2, adversaries=0.14)


@pytest.fixture(scope="module")
def difficult(crowd, fit_quietly) -> xr.DataTree:
    """A fit whose matrices depend on the item."""
    return fit_quietly(rt.models.ItemDifficulty(), crowd.labels, rt.PGEM(draws=20))


def column(audit: rt.auditing.Audit, name: str) -> dict:
    return dict(
        zip(
            audit.table["annotator"].values.tolist(), audit.table[name].values.tolist(), strict=True
        )
    )


# ---------------------------------------------------------------------------------------- by hand


def test_information_in_bits(hand):
    audit = rt.audit(MODEL, hand, reference="crowd")
    of_quarter = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    information = column(audit, "information")
    assert information["ann"] == pytest.approx((1 + of_quarter) / 2, abs=1e-6)
    assert information["bob"] == pytest.approx((1 + of_quarter) / 2, abs=1e-6)
    assert information["eve"] == pytest.approx(0.0, abs=1e-6)
    assert column(audit, "p_spammer") == {"ann": 0.0, "bob": 0.0, "eve": 1.0, "zoe": 0.0}
    # An adversary is wrong; a spammer, whose competence may be below 0 as well, is not one.
    assert column(audit, "p_adversarial") == {"ann": 0.0, "bob": 1.0, "eve": 0.0, "zoe": 0.0}
    assert column(rt.audit(MODEL, hand, margin=0.9, reference="crowd"), "p_spammer") == {
        "ann": 0.5,
        "bob": 0.5,
        "eve": 1.0,
        "zoe": 1.0,
    }
    assert (
        column(rt.audit(MODEL, hand, margin=0.9, reference="crowd"), "p_adversarial")["bob"] == 0.5
    )


def test_items_and_what_stopping_now_costs(hand):
    audit = rt.audit(MODEL, hand, reference="crowd")
    assert audit.items["item"].values.tolist() == [1, 2, 3, 4]
    assert audit.items["label"].values.tolist() == [
        "no",
        "yes",
        "no",
        "no",
    ]  # of equally probable ones the first
    assert audit.items["probability"].values.tolist() == pytest.approx([0.85, 0.75, 1.0, 0.5])
    entropy = [-sum(p * math.log2(p) for p in (q, 1 - q)) for q in (0.15, 0.25)]
    assert audit.items["entropy"].values.tolist() == pytest.approx([*entropy, 0.0, 1.0])
    assert audit.items["judgements"].values.tolist() == [3, 3, 2, 2]
    assert audit.expected_wrong == pytest.approx(0.15 + 0.25 + 0.0 + 0.5)


# ---------------------------------------------------------------------- recomputed from draws


def entropy(table: np.ndarray) -> np.ndarray:
    return -(table * np.log2(np.where(table > 0, table, 1))).sum(-1)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [pytest.param(2, marks=pytest.mark.exhaustive), 3])
def test_every_column_follows_from_the_draws(classes, fit_quietly):
    labels, _ = rt.datasets.label_crowd(40, 5, 4, classes, seed=2)
    result = fit_quietly(MODEL, labels, rt.PGEM(draws=50))
    audit = rt.audit(MODEL, result, level=0.8, margin=0.3, threshold=0.4, reference="crowd")
    confusion, prevalence = (
        result.posterior[name].values[0] for name in ("confusion", "prevalence")
    )
    table = audit.table
    for name, of in (("mean", confusion.mean(0)), ("low", np.quantile(confusion, 0.1, axis=0))):
        np.testing.assert_allclose(audit.confusion[name], of, atol=1e-5)
    right = np.einsum("dakk->dak", confusion)
    competence = (right.mean(-1) * classes - 1) / (classes - 1)
    given = np.einsum("dk,dakj->daj", prevalence, confusion)
    # Mutual information the other way round: entropy of the label less that given the class.
    information = entropy(given) - np.einsum("dk,dak->da", prevalence, entropy(confusion))
    expected = {
        "competence": competence,
        "accuracy": (right * prevalence[:, None]).sum(-1),
        "information": information,
    }
    if classes == 2:
        expected |= {"sensitivity": confusion[:, :, 1, 1], "specificity": confusion[:, :, 0, 0]}
    for name, draws in expected.items():
        np.testing.assert_allclose(table[name], draws.mean(0), atol=1e-5)
        np.testing.assert_allclose(table[f"{name}_low"], np.quantile(draws, 0.1, axis=0), atol=1e-5)
        np.testing.assert_allclose(
            table[f"{name}_high"], np.quantile(draws, 0.9, axis=0), atol=1e-5
        )
    np.testing.assert_allclose(table["p_below"], (competence < 0.4).mean(0))
    np.testing.assert_allclose(table["p_spammer"], (information < 0.3).mean(0))
    np.testing.assert_allclose(
        table["p_adversarial"], ((competence < 0) & (information >= 0.3)).mean(0)
    )
    excess = given.mean(0) - prevalence.mean(0)
    assert table["bias_class"].values.tolist() == excess.argmax(1).tolist()
    np.testing.assert_allclose(table["bias"], excess.max(1), atol=1e-5)
    assert ("sensitivity" in table) == (classes == 2)


# ---------------------------------------------------------------------- read off every program


@pytest.mark.slow
def test_items_of_a_class_are_averaged_where_difficulty_differs(difficult, monkeypatch):
    monkeypatch.setattr(label_audit, "_ITEMS", 1000)  # all of them, so that the average is known
    audit = rt.audit(rt.models.ItemDifficulty(), difficult, reference="crowd")
    ability, ease = (difficult.posterior[name].values[0] for name in ("ability", "ease"))
    odds = np.exp(ability[:, :, None] * ease[:, None, :])
    right = (odds / (odds + 2)).mean(0)
    weight = difficult["classes"]["responsibility"].values
    expected = right @ weight / weight.sum(0)
    mean = np.einsum("akk->ak", audit.confusion["mean"].values)
    np.testing.assert_allclose(mean, expected, atol=1e-4)
    np.testing.assert_allclose(audit.confusion["mean"].sum("label"), 1.0, atol=1e-5)
