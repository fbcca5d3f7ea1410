"""Every model and back-end keeps the public contract."""

from __future__ import annotations

import dataclasses

import pytest

import raters as rt
from raters import models

MODELS = (
    rt.BTL(),
    rt.BTL(position_bias=True),
    rt.BTL(reward_scale=1.0),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="positive"),
    rt.ExtendedBTL(competence="signed", competence_spread="learned"),
    rt.ExtendedBTL(competence="signed", position_bias=True),
    rt.ExtendedBTL(reward_scale=1.0, competence_spread=0.5),
)
TYPE_MODELS = (
    rt.MixtureBTL(),
    rt.MixtureBTL(num_types=3, competence="unit", reward_scale=1.0, type_prior="stick_breaking"),
    rt.ContextualBTL(),
    rt.ContextualBTL(num_types=2),
)
LABEL_MODELS = (
    rt.MajorityVote(),
    rt.Pooled(),
    rt.OneCoin(),
    rt.DawidSkene(),
    rt.HierarchicalDawidSkene(),
    rt.ItemDifficulty(),
    rt.Raykar(),
    rt.Yan(),
)
# Compiling is what costs: in every run, each back-end meets the two ends of each model.
FEW_MODELS = (rt.BTL(), rt.BTL(position_bias=True), rt.ExtendedBTL(), rt.ExtendedBTL(competence="signed", position_bias=True))
BACKENDS = (
    rt.NUTS(draws=40, warmup=60, chains=2),
    rt.SVI(steps=500, draws=40),
    rt.PGGibbs(draws=40, warmup=20, chains=2),
    rt.PGEM(draws=40),
)
PAIRS = [
    (model, backend) if model in FEW_MODELS else pytest.param(model, backend, marks=pytest.mark.thorough)
    for backend in BACKENDS
    for model in (MODELS if isinstance(backend, rt.PGGibbs) else FEW_MODELS)
]


def _every_pair(models, in_every_run) -> list:
    """Every model on every back-end; NUTS and SVI, which are slow to compile, in every run only for some models."""
    pairs = [(model, backend) for model in models for backend in BACKENDS]
    return [
        pair
        if isinstance(pair[1], (rt.PGGibbs, rt.PGEM)) or pair[0] in in_every_run
        else pytest.param(*pair, marks=pytest.mark.thorough)
        for pair in pairs
    ]


TYPE_PAIRS = _every_pair((*TYPE_MODELS[:2], TYPE_MODELS[3]), (TYPE_MODELS[0], TYPE_MODELS[3]))
LABEL_PAIRS = _every_pair(LABEL_MODELS, (rt.DawidSkene(),))


def _name(case) -> str:
    return type(case).__name__ if isinstance(case, rt.inference.Backend) else repr(case)


def test_every_model_of_the_zoo_is_here() -> None:
    assert {type(model).__name__ for model in MODELS + TYPE_MODELS + LABEL_MODELS} == set(models.__all__)


@pytest.mark.parametrize("model", MODELS, ids=_name)
def test_model_keeps_the_contract(model, tiny) -> None:
    rt.testing.check_model(model, tiny)


@pytest.mark.parametrize(("model", "backend"), PAIRS, ids=_name)
def test_backend_keeps_the_contract(model, backend, tiny) -> None:
    rt.testing.check_backend(backend, model, tiny)


@pytest.mark.parametrize("model", TYPE_MODELS, ids=_name)
def test_model_of_types_keeps_the_contract(model, described) -> None:
    rt.testing.check_model(model, described)


@pytest.mark.parametrize(("model", "backend"), TYPE_PAIRS, ids=_name)
def test_backend_keeps_the_contract_for_types(model, backend, described) -> None:
    rt.testing.check_backend(backend, model, described)


@pytest.mark.parametrize("model", [*LABEL_MODELS, rt.Raykar(hidden=2)], ids=_name)
def test_label_model_keeps_the_contract(model, labelled) -> None:
    rt.testing.check_model(model, labelled)


@pytest.mark.parametrize(("model", "backend"), LABEL_PAIRS, ids=_name)
def test_backend_keeps_the_contract_for_labels(model, backend, labelled) -> None:
    rt.testing.check_backend(backend, model, labelled)


def test_mistakes_that_have_one_place_to_go(fit_quietly) -> None:
    """With two classes, where a wrong label goes is certain."""
    labels = rt.datasets.label_crowd(12, 4, 3, 2, num_features=2, seed=0).labels
    rt.testing.check_result(fit_quietly(rt.Yan(), labels, rt.PGGibbs(draws=40, warmup=20, chains=2)), rt.Yan(), labels)


@pytest.mark.parametrize("backend", BACKENDS, ids=_name)
def test_backend_says_why_not(backend, tiny, labelled) -> None:
    unordered = rt.datasets.separated(num_items=6, num_annotators=4, num_votes=150, seed=0).votes
    assert "order of presentation" in backend.why_not(rt.BTL(position_bias=True), unordered)
    rt.testing.check_backend(backend, rt.BTL(position_bias=True), unordered)
    plain = dataclasses.replace(labelled, features=None, centre=None, scale=None, feature_names=())
    assert "have no features" in backend.why_not(rt.Raykar(), plain)
    rt.testing.check_backend(backend, rt.Raykar(), plain)
