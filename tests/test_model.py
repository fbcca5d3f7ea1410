"""Facts of a model, its equality and its storage."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import SettingError
from raters.fitting.storage import from_json, shown, to_json
from raters.inference import Backend
from raters.model import Model, Scale, Shift, Sign, identify

MODELS = [
    rt.BTL(),
    rt.BTL(reward_scale=2.5),
    rt.BTL(position_bias=True),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="signed", position_bias=True),
    rt.ExtendedBTL(competence="positive", reward_scale=1.0, competence_spread=0.5),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_model_is_rebuilt_from_its_text(model):
    again = from_json(to_json(model), (Model,), "model")
    assert again == model
    assert hash(again) == hash(model)
    assert shown(to_json(model)) == repr(model)


def test_a_back_end_of_an_earlier_version_is_rebuilt_without_what_has_gone():
    text = to_json(rt.HMC(draws=7)).replace('"draws": 7', '"draws": 7, "sweeps": 100')
    assert from_json(text, (Backend,), "back-end") == rt.HMC(draws=7)
    text = '{"class": "raters.inference.polya_gamma.vi:PGVI", "fields": {"draws": 40}}'
    assert from_json(text, (Backend,), "back-end") == rt.PGEM(draws=40)
    text = to_json(rt.BTL()).replace("comparisons.btl", "comparisons.file_of_before")
    assert from_json(text, (Model,), "model") == rt.BTL()
    text = to_json(rt.BTL()).replace('"fields": {', '"fields": {"gone": 1, ')
    with pytest.raises(SettingError, match="cannot rebuild"):
        from_json(text, (Model,), "model")


def test_models_that_differ_are_told_apart():
    assert len({*MODELS, rt.BTL()}) == len(MODELS)


def test_a_description_names_sites_axes_blocks_and_symmetries():
    votes, _ = rt.datasets.separated(4, 3, 50, seed=0)
    text = rt.fitting.describe(rt.ExtendedBTL(competence="signed"), votes)
    for part in (
        "reward",
        "(item: 4)",
        "(annotator: 3)",
        "observed",
        "blocks: reward; competence",
        "Sign(",
    ):
        assert part in text


def test_symmetries_follow_the_options():
    kinds = {
        kind: [type(s) for s in rt.ExtendedBTL(competence=kind).symmetries]
        for kind in ("unit", "positive", "signed")
    }
    assert kinds == {
        "unit": [Shift, Scale],
        "positive": [Shift, Scale],
        "signed": [Shift, Scale, Sign],
    }


def test_identified_rewards_sum_to_zero_and_keep_their_differences():
    draws = np.random.default_rng(0).normal(3, 1, size=(2, 5, 4))
    found = identify(rt.BTL(), {"reward": draws, "reward_scale": np.ones((2, 5))}, 2)
    np.testing.assert_allclose(found["reward"].sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose(np.diff(found["reward"]), np.diff(draws))
    assert (found["reward_scale"] == 1).all()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_starts_have_the_shapes_of_the_sites(model):
    votes, _ = rt.datasets.position_biased(4, 3, 50, seed=0)
    start = model.start(votes)
    assert np.shape(start["reward"]) == (4,)
    assert all(np.isfinite(value).all() for value in start.values())
    if isinstance(model, rt.ExtendedBTL):
        assert np.shape(start["competence"]) == (3,)
        assert (np.asarray(start["competence"]) > 0).all()
