"""A program is read without being computed, and its facts are those of the model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints

import raters as rt
from raters.distributions import Votes
from raters.errors import SettingError
from raters.inference.defaults import default_backend, short_backend
from raters.program import placing
from raters.testing import check_model
from tests import hand


def test_sites_have_their_shapes_axes_and_supports(tiny):
    program = rt.program.Program(rt.ExtendedBTL(competence="signed"), tiny)
    competence = program.sites["competence"]
    assert (competence.shape, competence.dims) == ((4,), ("annotator",))
    assert competence.distribution == "Normal"
    assert (program.unit, program.num_units, program.latent) == (tiny.row, tiny.num_rows, None)
    assert program.observed.shape == (tiny.num_rows,)
    assert program.axes == {"item", "annotator"}


@dataclass(frozen=True)
class Bounded(rt.BTL):
    """Rewards below a bound that the program computes."""

    def generate(self, data: rt.Comparisons) -> None:
        bound = jnp.exp(jnp.asarray(1.0))
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Uniform(-bound, bound))
        with numpyro.plate("comparison", data.num_comparisons):
            hand.vote(reward[data.first] - reward[data.second], data)


def test_a_bound_that_the_program_computes_is_a_number(tiny):
    support = rt.program.Program(Bounded(), tiny).supports["reward"]
    assert isinstance(support, type(constraints.interval(0.0, 1.0)))
    np.testing.assert_allclose([support.lower_bound, support.upper_bound], [-np.e, np.e], rtol=1e-6)


@dataclass(frozen=True)
class Base(rt.Model[rt.Comparisons]):
    """Worths of items; the others add what no back-end sees."""

    @property
    def symmetries(self):
        return (rt.model.Shift("worth"), rt.model.Sign(("lead",)))

    def generate(self, data):
        lead = numpyro.sample("lead", dist.Normal(-5.0, 1.0))
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(2.0, 1.0))
        self.more(worth)
        with numpyro.plate("comparison", data.num_comparisons):
            hand.vote(lead * (worth[data.first] - worth[data.second]), data)

    def more(self, worth):
        """Nothing more."""


class Squared(rt.Model[rt.Comparisons]):
    """Worths that are squared, so that the logits are affine in nothing."""

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.0))
        with numpyro.plate("comparison", data.num_comparisons):
            hand.vote(worth[data.first] ** 2 - worth[data.second] ** 2, data)


class Factor(Base):
    def more(self, worth):
        numpyro.factor("penalty", -jnp.sum(worth**2))


class Measured(Base):
    def more(self, worth):
        numpyro.sample("sum", dist.Normal(worth.sum(), 1.0), obs=jnp.asarray(0.0))


class Discrete(Base):
    def more(self, worth):
        numpyro.sample("group", dist.Bernoulli(0.5))


class Elsewhere(Base):
    observed = "votes"


@pytest.mark.parametrize("model", [Factor(), Measured(), Discrete(), Elsewhere()], ids=repr)
def test_sites_that_no_back_end_sees_are_refused(model, tiny):
    word = {Factor: "penalty", Measured: "sum", Discrete: "group", Elsewhere: "votes"}[type(model)]
    for backend in (rt.NUTS(), rt.SVI()):
        with pytest.raises(SettingError, match=word):
            rt.fit(model, tiny, backend, seed=0, progress=False)


@dataclass(frozen=True)
class Plated(rt.Model[rt.Comparisons]):
    """Worths of items, observed in the plate that `observed_in` makes."""

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.0))
        gap = worth[data.first] - worth[data.second]
        one = dist.Bernoulli(logits=gap) if data.count is None else Votes(gap, data.count)
        with self.plate(data):
            numpyro.sample("outcome", one, obs=data.wins)

    def plate(self, data):
        return nullcontext()


class Longer(Plated):
    def plate(self, data):
        return numpyro.plate("comparison", data.num_rows + 1)


@pytest.mark.parametrize("model", [Plated(), Longer()], ids=lambda m: type(m).__name__)
def test_an_observed_site_in_another_plate_is_refused(model, tiny):
    with pytest.raises(SettingError, match=type(model).__name__):
        rt.fit(model, tiny, rt.NUTS(), seed=0, progress=False)
    with pytest.raises(AssertionError, match=type(model).__name__):
        check_model(model, tiny)


def test_a_model_without_a_start_sets_out_from_medians_of_the_prior(tiny):
    start = Base().start(tiny)
    assert abs(start["worth"].sum()) < 1e-5
    assert 2 < abs(start["lead"]) < 8
    np.testing.assert_array_equal(start["worth"], Base().start(tiny.unanswered())["worth"])
    assert len(set(start["worth"].tolist())) == tiny.num_items


class Scaled(Base):
    def more(self, worth):
        with numpyro.handlers.scale(scale=2.0):
            numpyro.sample("extra", dist.Normal(0.0, 1.0))


class OfRows(rt.BTL):
    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        with numpyro.plate("comparison", data.num_comparisons):
            noise = numpyro.sample("noise", dist.Normal(0.0, 1.0))
            hand.vote(reward[data.first] - reward[data.second] + noise, data)


class Uncounted(Base):
    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(2.0, 1.0))
        won = None if data.wins is None else data.wins > 0
        with numpyro.plate("comparison", data.num_comparisons):
            logits = worth[data.first] - worth[data.second]
            numpyro.sample("outcome", dist.Bernoulli(logits=logits), obs=won)


class Negative(Base):
    def more(self, worth):
        numpyro.sample("width", dist.Normal(0.0, -1.0))


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (Scaled(), "scales the density"),
        (OfRows(), "plate 'comparison'"),
        (Uncounted(), "does not use `count`"),
        (Negative(), "invalid scale"),
    ],
)
def test_densities_that_back_ends_would_see_differently_are_refused(model, word, tiny):
    counted = tiny.padded(tiny.num_rows + 1)
    with pytest.raises(SettingError, match=word):
        _ = rt.program.Program(model, counted).sites


@pytest.mark.slow
def test_short_chains_are_of_the_default_sampler(tiny):
    squared, btl = (rt.program.Program(one, tiny) for one in (Squared(), rt.BTL()))
    assert isinstance(short_backend(squared), rt.HMC)
    assert short_backend(btl).draws < default_backend(btl).draws


def test_data_of_few_sizes_are_the_same_judgements(monkeypatch) -> None:
    """In another order, rows of count 0 behind; where a site has an entry of each, in theirs."""
    sets, _ = rt.datasets.choice_crowd(61, 3, seed=2)  # 183, filled up to 192.
    program = rt.program.Program(rt.models.MultinomialLogit(), sets)
    moved = placing.of_few_sizes(program)
    np.testing.assert_array_equal(moved.weight, np.arange(192) < 183)
    order, others = np.argsort(sets.features[:, 0, 0]), np.argsort(moved.features[:183, 0, 0])
    assert (order != others).any()
    for name in ("chosen", "offered", "features", "annotator"):
        columns = getattr(moved, name)[others], getattr(sets, name)[order]
        np.testing.assert_allclose(*columns, rtol=1e-6)
    monkeypatch.setitem(vars(program), "axes", {"set"})
    np.testing.assert_array_equal(placing.of_few_sizes(program).chosen, sets.chosen)
