"""Every model and back-end keeps the public contract."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
from raters import models
from tests.inference.scripts import printed, script

# Each model, on the data of a fixture; the first one of each kind runs in `make test`.
FIRST = {
    "tiny": (
        rt.BTL(),
        rt.ExtendedBTL(),
        rt.models.GuesserBTL(),
        rt.models.FactorBTL(),
        rt.HierarchicalBTL(),
    ),
    "described": (rt.MixtureBTL(), rt.models.ContextualBTL(), rt.models.LinearExtendedBTL()),
    "labelled": (
        rt.DawidSkene(),
        rt.models.MajorityVote(),
        rt.models.Pooled(),
        rt.models.OneCoin(),
        rt.HierarchicalDawidSkene(),
        rt.models.GuesserOneCoin(),
        rt.models.GuesserDawidSkene(),
        rt.models.ItemDifficulty(),
        rt.Raykar(),
        rt.models.Yan(),
        rt.SharedMistakes(),
    ),
    "ranked": (rt.PlackettLuce(), rt.ExtendedPlackettLuce(), rt.models.MixturePlackettLuce()),
    "answered": (rt.Rasch(), rt.TwoPL(), rt.models.IdealPoint()),
    "rated": (rt.ManyFacet(), rt.models.FineScale()),
    "graded": (rt.models.GradedResponse(),),
    "chosen": (
        rt.MultinomialLogit(),
        rt.models.LatentClassLogit(),
        rt.MixedLogit(),
        rt.models.NestedLogit(nests=(("1", "3"),)),
        rt.models.MultinomialProbit(),
    ),
    "demonstrated": (rt.MaxEntIRL(), rt.models.BehaviouralCloning()),
}
# Configurations whose programs have more sites, or other ones.
MORE = {
    "tiny": (
        rt.BTL(position_bias=True),
        rt.ExtendedBTL(competence="positive"),
        rt.ExtendedBTL(competence="signed", position_bias=True),
        rt.models.FactorBTL(num_dimensions=2),
        rt.HierarchicalBTL(competence="signed", position_bias=True),
    ),
    "tied": (rt.BTL(ties="davidson"), rt.BTL(ties="rao-kupper")),
    "stratified": (rt.ExtendedBTL(strata=True),),
    "described": (
        rt.MixtureBTL(num_types=3, competence="unit"),
        rt.models.ContextualBTL(num_types=2),
        rt.BTL(covariates=True),
    ),
    "labelled": (rt.SharedMistakes(item_effects=True), rt.Raykar(hidden=2)),
    "best_worst": (rt.PlackettLuce(), rt.ExtendedPlackettLuce()),
    "tied_ranks": (rt.PlackettLuce(ties="davidson"), rt.ExtendedPlackettLuce(ties="davidson")),
    "answered": (rt.TwoPL(discrimination="signed"), rt.models.IdealPoint(num_dimensions=2)),
    "rated": (rt.ManyFacet(competence="positive", thresholds="shared"),),
    "chosen": (
        rt.MultinomialLogit(interactions=True),
        rt.models.LatentClassLogit(ignored=("price",)),
        rt.MixedLogit(random=("price",), error_components=(("1", "3"),), interactions=True),
        rt.MixedLogit(correlated=True),
    ),
}
GIBBS = rt.PGGibbs(draws=40, warmup=20, chains=2)
EM = rt.PGEM(draws=40)
NUTS = rt.NUTS(draws=40, warmup=60, chains=2)
HMC = rt.HMC(draws=40, warmup=60, chains=2)
BACKENDS = (NUTS, rt.SVI(steps=500, draws=40), GIBBS, EM, HMC)
# One fit for each code path of a back-end: a kind of block, of latent class, or of symmetry.
# NUTS and SVI read nothing of a model but its density, which `check_model` checks.
QUICK = (
    *(("tiny", rt.BTL(), backend) for backend in BACKENDS),
    ("tiny", rt.ExtendedBTL(), GIBBS),
    ("labelled", rt.DawidSkene(), GIBBS),
    ("labelled", rt.DawidSkene(), EM),
    ("ranked", rt.PlackettLuce(), GIBBS),
    ("answered", rt.Rasch(), GIBBS),
    ("chosen", rt.MultinomialLogit(), GIBBS),
)
PATHS = (
    ("tiny", rt.ExtendedBTL(), EM),
    ("tiny", rt.ExtendedBTL(competence="signed", position_bias=True), GIBBS),
    ("tiny", rt.ExtendedBTL(competence="positive"), HMC),
    ("tiny", rt.models.GuesserBTL(), GIBBS),
    ("tiny", rt.models.FactorBTL(), GIBBS),
    ("tiny", rt.HierarchicalBTL(), EM),
    ("tied", rt.BTL(ties="davidson"), GIBBS),
    ("tied", rt.BTL(ties="rao-kupper"), EM),
    ("stratified", rt.ExtendedBTL(strata=True), GIBBS),
    ("described", rt.BTL(covariates=True), GIBBS),
    ("described", rt.MixtureBTL(), GIBBS),
    ("described", rt.MixtureBTL(), EM),
    ("described", rt.MixtureBTL(), NUTS),
    ("described", rt.models.ContextualBTL(num_types=2), GIBBS),
    ("labelled", rt.DawidSkene(), NUTS),
    ("labelled", rt.DawidSkene(), HMC),
    ("labelled", rt.models.Pooled(), GIBBS),
    ("labelled", rt.models.GuesserOneCoin(), GIBBS),
    ("labelled", rt.models.ItemDifficulty(), GIBBS),
    ("labelled", rt.Raykar(), GIBBS),
    ("labelled", rt.models.Yan(), EM),
    ("labelled", rt.SharedMistakes(), GIBBS),
    ("ranked", rt.ExtendedPlackettLuce(), EM),
    ("ranked", rt.models.MixturePlackettLuce(), GIBBS),
    ("best_worst", rt.ExtendedPlackettLuce(), GIBBS),
    ("answered", rt.TwoPL(), EM),
    ("answered", rt.models.IdealPoint(), GIBBS),
    ("rated", rt.ManyFacet(), GIBBS),
    ("rated", rt.ManyFacet(), EM),
    ("graded", rt.models.GradedResponse(), GIBBS),
    ("chosen", rt.models.LatentClassLogit(), GIBBS),
    ("chosen", rt.models.LatentClassLogit(), EM),
    ("chosen", rt.MixedLogit(), GIBBS),
    ("chosen", rt.MixedLogit(), EM),
    ("chosen", rt.models.NestedLogit(nests=(("1", "3"),)), NUTS),
    ("chosen", rt.models.MultinomialProbit(), GIBBS),
    ("demonstrated", rt.MaxEntIRL(), EM),
    ("demonstrated", rt.models.BehaviouralCloning(), GIBBS),
)


@pytest.fixture(scope="session")
def answered() -> rt.Responses:
    """12 persons and 4 items, two thirds of the cells, some answered twice."""
    rng = np.random.default_rng(0)
    rows = rng.choice(48, 32, replace=False)
    rows = np.concatenate([rows, rows[:6]])
    table = {"person": rows // 4, "item": rows % 4, "correct": rng.integers(0, 2, len(rows))}
    return rt.Responses.from_frame(table, person="person", item="item", correct="correct")


@pytest.fixture(scope="session")
def rated() -> rt.Ratings:
    """5 items, 4 annotators and 3 levels, two thirds of the cells, some rated twice."""
    rng = np.random.default_rng(0)
    rows = rng.choice(20, 14, replace=False)
    rows = np.concatenate([rows, rows[:4]])
    rating = np.clip(rows // 8 + rng.integers(0, 2, len(rows)), 0, 2)
    table = {"item": rows // 4, "annotator": rows % 4, "rating": rating}
    return rt.Ratings.from_frame(table, item="item", annotator="annotator", rating="rating")


@pytest.fixture(scope="session")
def graded(rated) -> rt.GradedResponses:
    """The same, as responses of persons to items."""
    return rt.GradedResponses(
        rated.annotator, rated.item, rated.rating, rated.count, (0, 1, 2, 3), rated.items, (0, 1, 2)
    )


@pytest.fixture(scope="session")
def chosen() -> rt.Choices:
    """40 choices of 4 choosers from sets of two to four alternatives, with features of both."""
    rng = np.random.default_rng(0)
    rows: dict[str, list] = {"set": [], "mode": [], "price": [], "time": [], "who": [], "age": []}
    for trip in range(40):
        offered = rng.permutation(4)[: rng.integers(2, 5)]
        rows["set"] += [trip] * len(offered)
        rows["mode"] += offered.tolist()
        rows["price"] += (100 * rng.normal(size=len(offered))).tolist()
        rows["time"] += rng.normal(size=len(offered)).tolist()
        rows["who"] += [trip % 4] * len(offered)
        rows["age"] += [20.0 + 10 * (trip % 3)] * len(offered)
    taken = np.append(True, np.diff(rows["set"]) != 0)
    return rt.Choices.from_frame(
        rows | {"taken": taken},
        set="set",
        alternative="mode",
        chosen="taken",
        annotator="who",
        features=["price", "time"],
        choosers=["age"],
    )


@pytest.fixture(scope="session")
def demonstrated() -> rt.Demonstrations:
    """Walks of 3 demonstrators through a grid of 4 cells, with 2 features."""
    return rt.datasets.demonstration_crowd(2, 2, 3, 3, 4, seed=0, num_features=2).demonstrations


@pytest.fixture(scope="session")
def labelled(labelled) -> rt.Labels:
    """With a family of two annotators, one alone in another, and one without."""
    family = np.array([0, 1, -1, 0], np.int32)
    return dataclasses.replace(labelled, family=family, families=("A", "B"))


def _cases(quick, slow) -> list:
    """Cases of the fast lane, and of the slow one."""
    return [*quick, *(pytest.param(*case, marks=pytest.mark.slow) for case in slow)]


def _pairs(zoo) -> list:
    return [(data, model) for data, models in zoo.items() for model in models]


def _name(case) -> str:
    if isinstance(case, str):
        return case
    return type(case).__name__ if isinstance(case, rt.inference.Backend) else repr(case)


def test_every_model_of_the_zoo_is_here() -> None:
    tried = {type(model).__name__ for _, model in _pairs(FIRST)}
    # Combinations of terms are in `tests/terms`.
    assert tried == set(models.__all__) - {"JointModel", "PairwiseModel", "numpyro_model"}


QUICKLY = [(data, models[0]) for data, models in FIRST.items()]
SLOWLY = [pair for pair in _pairs(FIRST) if pair not in QUICKLY] + _pairs(MORE)


@pytest.mark.parametrize(("data", "model"), _cases(QUICKLY, SLOWLY), ids=_name)
def test_model_keeps_the_contract(data, model, request) -> None:
    data = request.getfixturevalue(data)
    rt.testing.check_model(model, data)
    assert not _kept_in_float64(data)


@pytest.mark.parametrize(("data", "model", "backend"), _cases(QUICK, PATHS), ids=_name)
def test_backend_keeps_the_contract(data, model, backend, request) -> None:
    data = request.getfixturevalue(data)
    rt.testing.check_backend(backend, model, data)
    assert not _kept_in_float64(data)


def _kept_in_float64(data: Any) -> list[str]:
    """Columns of which JAX keeps a float64 buffer that float32 code would be given, and fail on."""
    return [
        str(path[0])
        for path, column in jax.tree_util.tree_leaves_with_path(data)
        if jnp.asarray(column).dtype.itemsize > 4
    ]


@pytest.mark.slow
def test_mistakes_that_have_one_place_to_go(fit_quietly) -> None:
    """With two classes, where a wrong label goes is certain."""
    labels = rt.datasets.label_crowd(12, 4, 3, 2, num_features=2, seed=0).labels
    rt.testing.check_result(
        fit_quietly(rt.models.Yan(), labels, rt.PGGibbs(draws=40, warmup=20, chains=2)),
        rt.models.Yan(),
        labels,
    )


@pytest.mark.parametrize("backend", BACKENDS, ids=_name)
def test_backend_says_why_not(backend, tiny, labelled) -> None:
    unordered = rt.datasets.separated(num_items=6, num_annotators=4, num_votes=150, seed=0).votes
    assert "order of presentation" in backend.why_not(
        rt.program.Program(rt.BTL(position_bias=True), unordered)
    )
    rt.testing.check_backend(backend, rt.BTL(position_bias=True), unordered)
    plain = dataclasses.replace(labelled, features=None, centre=None, scale=None, feature_names=())
    assert "have no features" in backend.why_not(rt.program.Program(rt.Raykar(), plain))
    rt.testing.check_backend(backend, rt.Raykar(), plain)


@pytest.mark.exhaustive
def test_rows_on_eight_devices(request, tmp_path) -> None:
    """Draws of every model that Gibbs takes are those of one device, but for rounding."""
    cases = [(model, request.getfixturevalue(data)) for data, model in _pairs(FIRST) + _pairs(MORE)]
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    apart = printed(script("eight_devices.py", str(tmp_path / "cases")), 7200)["apart"]
    assert len(apart) > 20
    assert not {name: value for name, value in apart.items() if not value < 1e-10}
