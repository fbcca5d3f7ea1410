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

MODELS = (
    rt.BTL(),
    rt.BTL(position_bias=True),
    rt.BTL(reward_scale=1.0),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="positive"),
    rt.ExtendedBTL(competence="signed", competence_spread="learned"),
    rt.ExtendedBTL(competence="signed", position_bias=True),
    rt.ExtendedBTL(reward_scale=1.0, competence_spread=0.5),
    rt.models.GuesserBTL(),
    rt.models.GuesserBTL(reward_scale=1.0, competence_spread=0.5, position_bias=True),
    rt.models.FactorBTL(),
    rt.models.FactorBTL(num_dimensions=2, reward_scale=1.0, loading_scale=0.5),
    rt.HierarchicalBTL(),
    rt.HierarchicalBTL(competence="signed", position_bias=True),
    rt.HierarchicalBTL(competence="unit", own_spread=True),
    rt.HierarchicalBTL(reward_scale=1.0, taste_spread=0.5),
)
TIE_MODELS = (rt.BTL(ties="davidson"), rt.BTL(ties="rao-kupper"))
COVARIATE_MODELS = (rt.BTL(covariates=True), rt.models.LinearExtendedBTL())
STRATUM_MODELS = (rt.ExtendedBTL(strata=True),)
TYPE_MODELS = (
    rt.MixtureBTL(),
    rt.MixtureBTL(num_types=3, competence="unit", reward_scale=1.0, type_prior="stick_breaking"),
    rt.models.ContextualBTL(),
    rt.models.ContextualBTL(num_types=2),
)
LABEL_MODELS = (
    rt.models.MajorityVote(),
    rt.models.Pooled(),
    rt.models.OneCoin(),
    rt.DawidSkene(),
    rt.HierarchicalDawidSkene(),
    rt.models.GuesserOneCoin(),
    rt.models.GuesserDawidSkene(),
    rt.models.ItemDifficulty(),
    rt.Raykar(),
    rt.models.Yan(),
    rt.SharedMistakes(),
    rt.SharedMistakes(item_effects=True),
)
RANKING_MODELS = (
    rt.PlackettLuce(),
    rt.PlackettLuce(worth_scale=1.0),
    rt.ExtendedPlackettLuce(),
    rt.ExtendedPlackettLuce(competence="unit", worth_scale=1.0),
    rt.models.MixturePlackettLuce(),
)
# On best–worst answers the same models have one more stage, of which quicker tests ask the same.
WORST_MODELS = (rt.PlackettLuce(), rt.ExtendedPlackettLuce())
RESPONSE_MODELS = (
    rt.Rasch(),
    rt.Rasch(ability_scale=1.0),
    rt.TwoPL(),
    rt.TwoPL(discrimination="signed"),
    rt.models.IdealPoint(),
    rt.models.IdealPoint(num_dimensions=2),
)
RATING_MODELS = (rt.ManyFacet(), rt.ManyFacet(competence="positive", thresholds="shared"))
GRADED_MODELS = (rt.models.GradedResponse(),)
CHOICE_MODELS = (
    rt.MultinomialLogit(),
    rt.MultinomialLogit(interactions=True),
    rt.MultinomialLogit(features=False),
    rt.models.LatentClassLogit(),
    rt.models.LatentClassLogit(features=False, interactions=True, num_types=3),
    rt.models.LatentClassLogit(ignored=("price",)),
    rt.MixedLogit(),
    rt.MixedLogit(random=("price",), error_components=(("1", "3"),), interactions=True),
    rt.MixedLogit(correlated=True),
    rt.models.NestedLogit(nests=(("1", "3"),)),
    rt.models.MultinomialProbit(),
)
DEMONSTRATION_MODELS = (
    rt.MaxEntIRL(),
    rt.MaxEntIRL(entropy="total"),
    rt.models.BehaviouralCloning(),
)
# The data that each is tried on, by fixture.
MODELS_ON = {
    "tiny": MODELS,
    "tied": TIE_MODELS,
    "stratified": STRATUM_MODELS,
    "described": (*TYPE_MODELS, *COVARIATE_MODELS),
    "labelled": LABEL_MODELS,
    "rated": RATING_MODELS,
    "ranked": RANKING_MODELS,
    "best_worst": WORST_MODELS,
    "answered": RESPONSE_MODELS,
    "graded": GRADED_MODELS,
    "chosen": CHOICE_MODELS,
    "demonstrated": DEMONSTRATION_MODELS,
}
ALL_MODELS = tuple(model for zoo in MODELS_ON.values() for model in zoo)
BACKENDS = (
    rt.NUTS(draws=40, warmup=60, chains=2),
    rt.SVI(steps=500, draws=40),
    rt.PGGibbs(draws=40, warmup=20, chains=2),
    rt.PGEM(draws=40),
    rt.HMC(draws=40, warmup=40, sweeps=20, chains=2),
    rt.PGVI(draws=40),
)
# Compiling is what costs: in `make test`, one configuration of each model, PGGibbs on each, and the
# other back-ends on two models; `make test-slow` adds the other configurations, and PGEM where it
# goes its own way; `make test-all` is every model on every back-end.
FIRST = tuple({type(model): model for model in reversed(ALL_MODELS)}.values())
# Models whose modes differ in how they are found.
FOR_EM = (
    rt.ExtendedBTL(),
    rt.MixtureBTL(),
    rt.ExtendedPlackettLuce(),
    rt.Rasch(),
    rt.ManyFacet(),
    rt.MultinomialLogit(),
    rt.MixedLogit(),
    rt.models.BehaviouralCloning(),
)
# Configurations that only leave out what the first one of the model has.
LESS = (
    rt.BTL(reward_scale=1.0),
    rt.ExtendedBTL(reward_scale=1.0, competence_spread=0.5),
    rt.HierarchicalBTL(reward_scale=1.0, taste_spread=0.5),
    rt.PlackettLuce(worth_scale=1.0),
    rt.Rasch(ability_scale=1.0),
    rt.MultinomialLogit(features=False),
)
FOR_EVERY_BACKEND = (rt.BTL(), rt.DawidSkene())


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


def _models() -> list:
    """Every model and its data; all but the first configuration of each are slow."""
    more = [("labelled", rt.Raykar(hidden=2))]
    pairs = [(data, model) for data, zoo in MODELS_ON.items() for model in zoo] + more

    def marks(data: str, model: rt.Model) -> tuple:
        if _is_first(data, model):
            return ()
        return (pytest.mark.exhaustive if model in LESS else pytest.mark.slow,)

    return [pytest.param(*pair, marks=marks(*pair)) for pair in pairs]


def _is_first(data: str, model) -> bool:
    """True for the first configuration of a model, on its first data."""
    return model in FIRST and data != "best_worst"


def _fits() -> list:
    """Every model on every back-end, and its data."""
    fits = []
    for data, model, backend in (
        (data, model, backend)
        for data, zoo in MODELS_ON.items()
        for model in zoo
        for backend in BACKENDS
    ):
        sampled = isinstance(backend, rt.PGGibbs) and _is_first(data, model)
        quick = sampled or model in FOR_EVERY_BACKEND
        # NUTS and SVI read nothing of a model but its density, which `check_model` checks, and HMC
        # and PGVI nothing else but the rows of PGGibbs. What PGEM does with the blocks of a model,
        # PGGibbs does too; what it does by itself differs between kinds.
        alone = isinstance(backend, rt.NUTS) and model == TYPE_MODELS[0]
        own = isinstance(backend, rt.PGEM) and model in FOR_EM and data != "best_worst"
        slow = pytest.mark.slow if alone or own else pytest.mark.exhaustive
        fits.append(pytest.param(data, model, backend, marks=() if quick else slow))
    return fits


def _name(case) -> str:
    if isinstance(case, str):
        return case
    return type(case).__name__ if isinstance(case, rt.inference.Backend) else repr(case)


def test_every_model_of_the_zoo_is_here() -> None:
    assert {type(model).__name__ for model in ALL_MODELS} == set(models.__all__)


@pytest.mark.parametrize(("data", "model"), _models(), ids=_name)
def test_model_keeps_the_contract(data, model, request) -> None:
    data = request.getfixturevalue(data)
    rt.testing.check_model(model, data)
    assert not _kept_in_float64(data)


@pytest.mark.parametrize(("data", "model", "backend"), _fits(), ids=_name)
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
    cases = [
        (model, request.getfixturevalue(data)) for data, zoo in MODELS_ON.items() for model in zoo
    ]
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    found = printed(script("eight_devices.py", str(tmp_path / "cases")), 7200)["apart"]
    assert len(found) > 20
    assert not {name: apart for name, apart in found.items() if not apart < 1e-10}
