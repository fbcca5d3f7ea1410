"""Facts of programs that are found once: for the same model and data, and for no others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import sweep
from raters.judgements.comparisons import Comparisons
from raters.model import Shift
from raters.program import Program
from raters.program.remembered import Cache, key_of, remembered


@pytest.fixture(scope="module")
def votes() -> Comparisons:
    return rt.datasets.separated(num_items=4, num_annotators=3, num_votes=60, seed=0).votes


def _plan(model, data) -> sweep.Plan:
    start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
    return sweep.plan(Program(model, data), start)


@dataclass(frozen=True)
class _Squared(rt.BTL):
    """Rewards that count by their squares where a feature says so."""

    blocks = (("reward",),)

    def generate(self, data: Comparisons) -> None:
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        margin = reward[data.first] - reward[data.second]
        bend = 0.0 if data.features is None else data.features[:, 0]
        logits = margin + bend * margin**2
        with numpyro.plate("comparison", data.num_comparisons):
            numpyro.sample("outcome", rt.distributions.Votes(logits, data.weight), obs=data.wins)


@dataclass(frozen=True)
class _Moved(_Squared):
    """The same with another symmetry."""

    @property
    def symmetries(self):
        return ()


def _bent(votes: Comparisons, bend: float) -> Comparisons:
    column = np.full((votes.num_rows, 1), bend, np.float32)
    return replace(votes, features=column, feature_names=("bend",))


def test_the_same_model_and_data_are_looked_at_once(votes) -> None:
    seen = []
    find = remembered(lambda program, values: seen.append(program.model) or len(seen))
    program, values = Program(rt.BTL(), votes), {"reward": np.zeros(4)}
    assert find(program, values) == find(program, values) == 1
    again = Program(rt.BTL(), replace(votes, wins=np.array(votes.wins)))
    assert find(again, {"reward": np.zeros(4)}) == 1  # equal, not the same


@pytest.mark.parametrize(
    "change",
    [
        lambda model, data, values: (rt.BTL(reward_scale=1.0), data, values),
        lambda model, data, values: (rt.ExtendedBTL(), data, values),
        lambda model, data, values: (model, replace(data, wins=1 - np.asarray(data.wins)), values),
        lambda model, data, values: (model, data.padded(64), values),
        lambda model, data, values: (model, replace(data, items=("a", "b", "c", "e")), values),
        lambda model, data, values: (model, data, {"reward": np.ones(4)}),
        lambda model, data, values: (model, data, {"other": np.zeros(4)}),
    ],
)
def test_others_are_looked_at_anew(votes, change) -> None:
    seen = []
    find = remembered(lambda program, values: seen.append(program.model) or len(seen))
    model, data, values = rt.BTL(), votes, {"reward": np.zeros(4)}
    assert find(Program(model, data), values) == 1
    model, data, values = change(model, data, values)
    assert find(Program(model, data), values) == 2


def test_precision_is_part_of_the_key(votes) -> None:
    single = key_of(rt.BTL(), votes)
    with jax.enable_x64(True):
        assert key_of(rt.BTL(), votes) != single


def test_a_plan_is_not_used_for_data_with_which_it_is_not_conjugate(votes) -> None:
    """Of one model and data of one shape: the check sees what the feature does."""
    with jax.enable_x64(True):
        assert _plan(_Squared(reward_scale=1.0), _bent(votes, 0.0)).blocks
        with pytest.raises(NotConjugateError, match="not affine"):
            _plan(_Squared(reward_scale=1.0), _bent(votes, 0.5))
        assert _plan(
            _Squared(reward_scale=1.0), _bent(votes, 0.0)
        ).blocks  # and a failure is not remembered


def test_a_plan_is_not_used_for_a_model_with_other_symmetries(votes) -> None:
    with jax.enable_x64(True):
        one, other = (
            _plan(_Squared(reward_scale=1.0), votes),
            _plan(_Moved(reward_scale=1.0), votes),
        )
    assert type(one.model) is _Squared
    assert type(other.model) is _Moved
    assert any(isinstance(symmetry, Shift) for symmetry in one.model.symmetries)
    assert not other.model.symmetries


def test_readings_of_programs_are_those_of_their_data(votes) -> None:
    more = rt.datasets.separated(num_items=7, num_annotators=3, num_votes=60, seed=0).votes
    for data in (votes, more, votes):
        assert Program(rt.BTL(), data).sites["reward"].shape == (data.num_items,)
    assert Program(rt.BTL(reward_scale=1.0), votes).sites.keys() == {"reward"}
    assert Program(rt.BTL(), votes).sites.keys() == {"reward_scale", "reward"}


def test_compiled_functions_and_models_without_a_hash_have_no_key(votes) -> None:
    assert key_of([], votes) is None
    keys = []
    jax.jit(lambda data: keys.append(key_of(rt.BTL(), data)) or data.wins)(votes)
    assert keys == [None]


def test_the_oldest_facts_are_dropped() -> None:
    cache, found = Cache(), []
    for key in (*range(40), 39, 0):
        cache.of(key, lambda key=key: found.append(key))
    assert found == [*range(40), 0]
    assert len(cache._facts) == 32


@pytest.mark.exhaustive
def test_backends_are_checked_whatever_was_found_before(votes, fit_quietly) -> None:
    """What is known of data, whose compiled functions are gone, is compiled at the first run."""
    model, backend = rt.MixtureBTL(), rt.PGEM(draws=40)
    fit_quietly(model, votes, backend, seed=0)
    jax.clear_caches()
    rt.testing.check_backend(backend, model, votes)
