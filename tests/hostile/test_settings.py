"""Bad settings of models, back-ends, verbs, generators and policies of alignment."""

from __future__ import annotations

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import raters as rt
import raters.distributions as rd
from raters.errors import DataError, SettingError
from tests.hostile.table import (
    HUGE,
    NO_ARRAY,
    NO_COUNT,
    NO_FLAG,
    NO_NUMBER,
    NO_OBJECT,
    NO_SEED,
    NO_SHARE,
    TABLE,
    THING,
    check_refused,
    rows,
    without,
)

VOTES = rt.Comparisons.from_frame(
    {"w": [*"abca"], "l": [*"bcab"], "k": [*"xyxy"]}, winner="w", loser="l", annotator="k"
)
LABELS = rt.Labels.from_frame(
    {"i": [1, 1, 2, 2], "k": [*"xyxy"], "l": [*"pqqq"]}, item="i", annotator="k", label="l"
)
MODEL = rt.BTL(reward_scale=1.0)
REGRET = np.array([[0.0, 1.0], [1.0, 0.0]])
POLICIES = np.array([[0.5, 0.5], [0.2, 0.8]])
EVEN = jnp.full((2, 2, 2), 0.5)
LOG_PROBS = ("chosen", "rejected", "reference_chosen", "reference_rejected")
OUT_OF_REACH = (0, -1, float("inf"), 1e-300, 1e300)


def settings(*classes, remedy, **bad):
    """Rows of bad settings of some classes."""
    for cls in classes:
        yield from rows(cls, {}, SettingError, remedy, **bad)


def fit(**options):
    return rt.fit(**{"model": MODEL, "data": VOTES, "seed": 0, "progress": False} | options)


def simulate(**options):
    return rt.simulate(**{"model": MODEL, "questions": VOTES, "seed": 0} | options)


MODELS = [
    *settings(
        rt.BTL,
        rt.ExtendedBTL,
        remedy="a number above 0 or None|a number between 1e-06 and 1e\\+06",
        reward_scale=(*without(NO_NUMBER, None), *OUT_OF_REACH),
    ),
    *settings(rt.BTL, remedy="position_bias=True or", position_bias=NO_FLAG),
    *settings(
        rt.ExtendedBTL, remedy="choose one of 'unit'", competence=("sign", None, 1, np.zeros(2))
    ),
    *settings(
        rt.ExtendedBTL,
        remedy="above 0|choose one of 'auto', 'learned'",
        competence_spread=("autom", None, -1, 0),
    ),
    *settings(rt.MixtureBTL, remedy="whole number, at least 1", num_types=(*NO_COUNT, 0, -1)),
    *settings(rt.MixtureBTL, remedy="choose one of", competence=("signed", 1, np.zeros(2))),
    *settings(rt.DawidSkene, remedy="number above 0|between", prevalence=(0, -1, "x", None)),
    *settings(rt.Raykar, remedy="whole number, at least 0", hidden=(-1, 1.5, None, "x")),
]

BACKENDS = [
    *settings(
        rt.NUTS, rt.PGGibbs, remedy="whole number, at least 1", draws=(0, *without(NO_COUNT, None))
    ),
    *settings(rt.NUTS, remedy="must lie between 0 and 1", target_accept=NO_SHARE),
    *settings(rt.PGEM, remedy="whole number", starts=(0, -1, "x"), max_sweeps=(0, None)),
    *settings(rt.PGEM, remedy="above 0", tolerance=(0, -1, None, "x")),
    *settings(rt.PGEM, remedy="'block', 'coordinate'", update=("blocks", None, [])),
    *settings(rt.SVI, remedy="choose one of", guide=("full", None, 3)),
    *settings(rt.Costs, remedy="above 0", keep_bad=(0, -1, None, "x"), review=(float("nan"),)),
]

VERBS = [
    *rows(fit, {}, SettingError, "must be a model", model=(*NO_OBJECT, rt.BTL)),
    *rows(fit, {}, SettingError, "read a table first", data=(*NO_OBJECT, VOTES.to_frame())),
    *rows(fit, {}, SettingError, "choose a model of these", data=(LABELS,)),
    *rows(fit, {}, SettingError, "must be a back-end", backend=(3, "gibbs", rt.PGEM, THING)),
    *rows(fit, {}, SettingError, "whole number from 0 to", seed=NO_SEED),
    *rows(fit, {}, SettingError, "true or false", progress=NO_FLAG),
    *rows(fit, {}, SettingError, "true or false", log_likelihood=without(NO_FLAG, None)),
    *rows(fit, {}, DataError, "pass a result", about="result", start=(3, "r.nc", VOTES)),
    *rows(fit, {}, DataError, "simulate them", data=(VOTES.unanswered(),)),
    *rows(simulate, {}, SettingError, "must be a model", model=(3, rt.BTL, None)),
    *rows(simulate, {}, SettingError, "whole number from 0 to", seed=NO_SEED),
    *rows(simulate, {}, SettingError, "mapping", given=(3, [1], "x")),
    *rows(simulate, {}, SettingError, "it has \\['reward'\\]", given=({"rewards": [0]}, {3: 1})),
    *rows(
        simulate,
        {},
        SettingError,
        "give numbers|it must be \\(3,\\)|lie in",
        given=({"reward": value} for value in (*NO_ARRAY, [1, 2], 3, [1, 2, np.nan], [[1, 2, 3]])),
    ),
    *rows(rt.fitting.describe, {"data": VOTES}, SettingError, "a model", model=(None, 3, rt.BTL)),
    *rows(rt.fitting.describe, {"model": MODEL}, SettingError, "read a table", data=(None, 3, {})),
    *rows(
        lambda model: rt.program.Program(model, VOTES).sites,
        {},
        SettingError,
        "must be a model",
        model=(None, "BTL", rt.BTL),
    ),
]

SIZES = {"num_items": 3, "num_annotators": 2, "num_votes": 10, "seed": 0}
DATASETS = [
    *rows(
        rt.datasets.paper,
        SIZES,
        SettingError,
        "whole number|at most",
        num_items=(*NO_COUNT, 1, 0, -1),
        num_votes=(1e12, 10**12, 10**9, "many"),
        num_annotators=(0, None),
    ),
    *rows(rt.datasets.paper, SIZES, SettingError, "from 0 to", seed=NO_SEED),
    *rows(rt.datasets.separated, SIZES, SettingError, "number", scale=(None, "x", HUGE**20, [1])),
    *rows(
        rt.datasets.position_biased,
        SIZES,
        SettingError,
        "number",
        bias=(None, "x", float("inf"), float("nan")),
    ),
    *rows(
        rt.datasets.crowd,
        SIZES,
        SettingError,
        "number|leave someone competent",
        guessers=(None, "x", -0.1, 1, float("nan")),
    ),
    *rows(
        rt.datasets.label_crowd,
        {"seed": 0},
        SettingError,
        "whole|at most",
        num_classes=(1, None, 10**8),
        labels_per_item=(0, 99),
        num_items=(0, 10**9),
    ),
    *rows(
        rt.datasets.label_crowd, {"seed": 0}, SettingError, "between 0 and 1", accuracy=(0, 1, 2)
    ),
    *rows(
        rt.datasets.preference_bandit,
        {"seed": 0},
        SettingError,
        "a number above 0|two groups|a list",
        weights=([1], [], [0, 1], [1, -1], 3, "ab"),
    ),
    *rows(
        rt.datasets.preference_types,
        {"seed": 0},
        DataError,
        "give numbers",
        weights=(["a", "b", "c"], [1, [2, 3], 4]),
    ),
]

ALIGNMENT = [
    *rows(
        rt.alignment.hedge, {"regret": REGRET}, SettingError, "whole number", steps=(0, *NO_COUNT)
    ),
    *rows(
        rt.alignment.hedge,
        {"regret": REGRET},
        SettingError,
        "above 0|a number",
        step_size=(0, -1, "x", float("nan")),
    ),
    *rows(
        rt.alignment.linear_programme,
        {},
        DataError,
        "give numbers|must have|must be|must be finite",
        regret=(*NO_ARRAY, [1, 2], [[float("nan")]], 3),
    ),
    *rows(rt.alignment.greedy, {}, DataError, "probabilities|give numbers", policy=([[2, 3]], "x")),
    *rows(
        rt.alignment.ensemble,
        {"policies": POLICIES},
        DataError,
        "it must|give",
        weights=([1], [0.5, 0.6], None, "x"),
    ),
    *rows(
        rt.alignment.implicit_reward,
        {"policy": POLICIES},
        SettingError,
        "above 0|a number",
        beta=(0, "x"),
    ),
    *rows(
        rt.alignment.dpo_loss,
        {name: -np.ones(1) for name in LOG_PROBS},
        DataError,
        "give numbers",
        chosen=(None, "x", [None], {}, HUGE**20),
    ),
    *rows(
        rt.alignment.dpo_loss,
        {name: -np.ones(1) for name in LOG_PROBS},
        DataError,
        "give numbers",
        rejected=([-1 + 1j], -jnp.ones(1, complex)),
    ),
    *rows(
        rt.alignment.regrets,
        {"policy": [0.5, 0.5], "reward": np.ones((2, 2))},
        DataError,
        "real numbers",
        policy=([0.5, 0.5 + 0j], [0.5 + 0.1j, 0.5]),
        reward=([[1, 1 + 2j]], np.ones((2, 2), np.complex64)),
        prompt_weights=([1j],),
    ),
]

DISTRIBUTIONS = [
    *rows(
        rd.ConfusedLabel,
        {"probs": EVEN, "annotator": jnp.array([0])},
        SettingError,
        "axes \\(",
        probs=(None, 3, "x", np.ones(2)),
        annotator=(None, [0], 0, EVEN),
    ),
    *rows(
        rd.Repeated,
        {"base": dist.Bernoulli(0.5), "count": jnp.ones(1)},
        SettingError,
        "Distribution",
        base=(None, 3, dist.Bernoulli),
    ),
]


@pytest.mark.parametrize(TABLE, [*MODELS, *BACKENDS, *VERBS, *DATASETS, *ALIGNMENT, *DISTRIBUTIONS])
def test_settings(function, arguments, kind, parameter, remedy):
    check_refused(function, arguments, kind, parameter, remedy)


def test_features_that_a_model_does_not_use():
    labels = LABELS.with_features(np.array([[1.0], [2.0]]), names=["length"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rt.fit(rt.models.MajorityVote(), labels, rt.PGEM(draws=5), seed=0, progress=False)
        rt.fit(
            rt.models.MajorityVote(),
            labels.without_features(),
            rt.PGEM(draws=5),
            seed=0,
            progress=False,
        )
    said = [str(one.message) for one in caught if "features" in str(one.message)]
    assert said == [
        "rt.models.MajorityVote() does not use the features of these data (length); rt.Raykar() and"
        " rt.models.Yan() would. To fit without them on purpose, pass data.without_features()"
    ]


def test_settings_are_checked_before_anything_is_compiled(monkeypatch):
    monkeypatch.setattr(rt.program.Program, "_read", property(lambda _: pytest.fail("compiled")))
    for options in ({"seed": -1}, {"progress": 1}, {"backend": 3}, {"data": 3}):
        with pytest.raises(SettingError):
            fit(**options)


@pytest.mark.parametrize("field", ["first", "second", "annotator"])
@pytest.mark.parametrize(
    "wrong", [None, 3, "ab", [9] * 4, [-1] * 4, [[0]] * 4, [0.5] * 4, [1], [[0], 1]]
)
def test_columns_of_a_container(field, wrong):
    votes = dataclasses.replace(VOTES, **{field: wrong})
    with pytest.raises(DataError, match=r"it must be|every column must") as caught:
        votes.check()
    assert caught.value.parameter in (field, "first")


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
