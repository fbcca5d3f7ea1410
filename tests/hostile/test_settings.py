"""Bad settings of models, back-ends, verbs, generators and policies of alignment."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
import raters.distributions as rd
from raters.errors import DataError, SettingError
from tests import hand
from tests.hostile.table import (
    HUGE,
    NO_ARRAY,
    NO_COUNT,
    NO_FLAG,
    NO_NUMBER,
    NO_OBJECT,
    NO_SEED,
    TABLE,
    THING,
    check_refused,
    rows,
    without,
)

VOTES = hand.votes(*zip("abca", "bcab", "xyxy", strict=True))
MODEL = rt.BTL(reward_scale=1.0)
REGRET = np.array([[0.0, 1.0], [1.0, 0.0]])
EVEN = jnp.full((2, 2, 2), 0.5)
LOG_PROBS = ("chosen", "rejected", "reference_chosen", "reference_rejected")
OUT_OF_REACH = (0, -1, float("inf"), 1e-300, 1e300)


def settings(*classes, **bad):
    """Rows of bad settings of some classes."""
    for cls in classes:
        yield from rows(cls, {}, SettingError, **bad)


def fit(**options):
    return rt.fit(**{"model": MODEL, "data": VOTES, "seed": 0, "progress": False} | options)


def simulate(**options):
    return rt.simulate(**{"model": MODEL, "questions": VOTES, "seed": 0} | options)


MODELS = [
    *settings(rt.BTL, rt.ExtendedBTL, reward_scale=(*without(NO_NUMBER, None), *OUT_OF_REACH)),
    *settings(rt.BTL, position_bias=NO_FLAG),
    *settings(rt.ExtendedBTL, competence=("sign", None, 1, np.zeros(2))),
    *settings(rt.DawidSkene, prevalence=(0, -1, "x", None)),
    *settings(rt.Raykar, hidden=(-1, 1.5, None, "x")),
]

BACKENDS = [
    *settings(rt.NUTS, rt.PGGibbs, draws=(0, *without(NO_COUNT, None))),
    *settings(rt.PGEM, starts=(0, -1, "x"), max_sweeps=(0, None)),
    *settings(rt.PGEM, tolerance=(0, -1, None, "x")),
    *settings(rt.SVI, guide=("full", None, 3)),
    *settings(rt.Costs, keep_bad=(0, -1, None, "x"), review=(float("nan"),)),
]

VERBS = [
    *rows(fit, {}, SettingError, model=(*NO_OBJECT, rt.BTL)),
    *rows(fit, {}, SettingError, data=(*NO_OBJECT, VOTES.to_frame())),
    *rows(fit, {}, SettingError, backend=(3, "gibbs", rt.PGEM, THING)),
    *rows(fit, {}, SettingError, seed=NO_SEED),
    *rows(fit, {}, DataError, about="result", start=(3, "r.nc", VOTES)),
    *rows(fit, {}, DataError, data=(VOTES.unanswered(),)),
    *rows(simulate, {}, SettingError, model=(3, rt.BTL, None)),
    *rows(simulate, {}, SettingError, given=(3, [1], "x")),
    *rows(
        simulate,
        {},
        SettingError,
        given=({"reward": value} for value in (*NO_ARRAY, [1, 2], 3, [1, 2, np.nan], [[1, 2, 3]])),
    ),
    *rows(rt.fitting.describe, {"data": VOTES}, SettingError, model=(None, 3, rt.BTL)),
]

SIZES = {"num_items": 3, "num_annotators": 2, "num_votes": 10, "seed": 0}
DATASETS = [
    *rows(
        rt.datasets.paper,
        SIZES,
        SettingError,
        num_items=(*NO_COUNT, 1, 0, -1),
        num_votes=(1e12, 10**12, 10**9, "many"),
        num_annotators=(0, None),
    ),
    *rows(
        rt.datasets.label_crowd,
        {"seed": 0},
        SettingError,
        num_classes=(1, None, 10**8),
        labels_per_item=(0, 99),
        num_items=(0, 10**9),
    ),
]

ALIGNMENT = [
    *rows(rt.alignment.hedge, {"regret": REGRET}, SettingError, steps=(0, *NO_COUNT)),
    *rows(
        rt.alignment.linear_programme,
        {},
        DataError,
        regret=(*NO_ARRAY, [1, 2], [[float("nan")]], 3),
    ),
    *rows(
        rt.alignment.dpo_loss,
        {name: -np.ones(1) for name in LOG_PROBS},
        DataError,
        chosen=(None, "x", [None], {}, HUGE**20),
    ),
    *rows(
        rt.alignment.regrets,
        {"policy": [0.5, 0.5], "reward": np.ones((2, 2))},
        DataError,
        policy=([0.5, 0.5 + 0j], [0.5 + 0.1j, 0.5]),
        reward=([[1, 1 + 2j]], np.ones((2, 2), np.complex64)),
    ),
]

DISTRIBUTIONS = [
    *rows(
        rd.ConfusedLabel,
        {"probs": EVEN, "annotator": jnp.array([0])},
        SettingError,
        probs=(None, 3, "x", np.ones(2)),
        annotator=(None, [0], 0, EVEN),
    )
]


@pytest.mark.parametrize(TABLE, [*MODELS, *BACKENDS, *VERBS, *DATASETS, *ALIGNMENT, *DISTRIBUTIONS])
def test_settings(function, arguments, kind, parameter):
    check_refused(function, arguments, kind, parameter)


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"items": ["a", "b", "c"]}, "items"),
        ({"items": ("a", "a", "b")}, "items"),
        ({"items": (["a"], "b", "c")}, "items"),
        ({"annotators": None}, "annotators"),
        ({"count": np.array([1.0, -1, 1, 1])}, "count"),
        ({"count": np.array([1.0, np.nan, 1, 1])}, "count"),
        ({"wins": np.array([7.0, 0, 0, 0])}, "wins"),
        ({"wins": "abcd"}, "wins"),
        ({"ordered": "no"}, "ordered"),
        ({"features": np.full((4, 1), np.nan), "feature_names": ("f",)}, "features"),
        ({"features": np.zeros(4), "feature_names": ("f",)}, "features"),
        ({"second": VOTES.first}, "second"),
    ],
)
def test_a_container_that_does_not_fit_together(changes, parameter):
    with pytest.raises((DataError, SettingError)) as caught:
        rt.fit(MODEL, dataclasses.replace(VOTES, **changes), seed=0, progress=False)
    assert caught.value.parameter == parameter
    assert len(str(caught.value)) <= 600
