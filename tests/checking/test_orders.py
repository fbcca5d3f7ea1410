"""Checks of rankings: stages by hand, and what each discrepancy sees."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.checking.discrepancies import Layout
from raters.checking.orders import OrderDraw, order_draws, utility_and_places
from raters.distributions import GroupedMixture
from raters.distributions.choices import PlackettLuce
from raters.kinds import rankings as discrepancies
from raters.program import Program, pointwise_log_likelihood

MODEL = rt.PlackettLuce(worth_scale=1.0)
WORTH = np.array([1.0, 0.3, -0.4, -0.9])


def drawn(utility: np.ndarray, rng: np.random.Generator, **changes) -> rt.Rankings:
    """Rankings of all items by these utilities, shape (ranking, item), one by each annotator unless
    they are given."""
    place = (-utility - rng.gumbel(size=utility.shape)).argsort(1).argsort(1) + 1
    number, size = utility.shape
    who = changes.get("annotator", np.arange(number))
    return rt.Rankings(
        who.astype(np.int32),
        np.full(number, size, np.int32),
        None,
        np.tile(np.arange(size, dtype=np.int32), (number, 1)),
        changes.get("place", place).astype(np.int32),
        tuple(range(int(who.max()) + 1)),
        tuple("abcdefgh"[:size]),
    )


@pytest.mark.parametrize(("size", "depth", "lowest"), [(3, 3, 0), (4, 2, 1)])
def test_stages_have_no_expectation_and_their_variance(size, depth, lowest) -> None:
    """Over all orders of three, and the best two and the worst of four, by their probabilities."""
    utility = WORTH[:size]
    orders = list(itertools.permutations(range(size), depth + lowest))
    place = np.zeros((len(orders), size), int)
    numbers = [*range(1, depth + 1), *[-1] * lowest]
    for row, order in enumerate(orders):
        place[row, list(order)] = numbers
    draw = OrderDraw(place, np.tile(utility, (len(orders), 1)))
    data = dataclasses.replace(
        drawn(draw.utility, np.random.default_rng(0), place=place),
        depth=np.full(len(orders), depth, np.int32),
        lowest=np.ones(len(orders), np.int32) if lowest else None,
    )
    data.check()
    log = np.asarray(pointwise_log_likelihood(MODEL, data, {"worth": utility}))
    prob, stages = np.exp(log), draw.stages
    np.testing.assert_allclose(prob.sum(), 1, rtol=1e-5)
    pairs = list(zip(stages.residual, stages.variance, strict=True))
    pairs += [stages.total, draw.surprise(np.ones(len(orders)))]
    for residual, variance in pairs:
        np.testing.assert_allclose(prob @ residual, 0, atol=1e-6)
        np.testing.assert_allclose(prob @ residual**2, prob @ variance, rtol=1e-5, atol=1e-9)


def test_replicated_orders_follow_the_utilities() -> None:
    """Of 4,000 first places; a frequency is off by four standard errors once in 16,000 runs."""
    data = drawn(np.tile(WORTH, (1000, 1)), np.random.default_rng(0))
    draws = {"worth": np.tile(WORTH, (4, 1))}
    pairs = list(order_draws(Program(MODEL, data), draws, seed=0))
    first = np.mean([(one.place == 1).mean(0) for _, one in pairs], axis=0)
    share = np.exp(WORTH) / np.exp(WORTH).sum()
    assert (np.abs(first - share) < 4 * np.sqrt(share * (1 - share) / 4000)).all()
    np.testing.assert_array_equal(pairs[0][0].place, data.place)


def misfits() -> dict[str, rt.Rankings]:
    """Rankings that PlackettLuce does not fit, by the discrepancy that shows it."""
    rng = np.random.default_rng(1)
    base = np.tile(WORTH, (240, 1))
    who = np.arange(240) % 12
    # The first place by the worths, and all others by chance.
    first = (-base - rng.gumbel(size=base.shape)).argmin(1)
    chance = rng.gumbel(size=base.shape)
    chance[np.arange(240), first] = np.inf
    late = (-chance).argsort(1).argsort(1) + 1
    # A third rank upside down; each annotator likes one of the items.
    upside_down = np.where(who < 4, -1.0, 1.5)[:, None] * base
    liked = base + 2.5 * (np.arange(4) == (who % 4)[:, None])
    return {
        "late_places": drawn(base, rng, annotator=who, place=late),
        "competence": drawn(upside_down, rng, annotator=who),
        "tastes": drawn(liked, rng, annotator=who),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["late_places", "competence", "tastes"])
def test_a_check_sees_what_does_not_fit(name, fit_quietly) -> None:
    """The observed value is beyond all 600 replicates, by several times their spread."""
    data = misfits()[name]
    result = fit_quietly(MODEL, data, rt.PGEM(draws=400))
    found = rt.check(MODEL, result, replicates=600)
    assert name in found.failed, str(found)


@pytest.mark.slow
def test_a_check_sees_an_item_that_is_the_worst_for_itself(fit_quietly) -> None:
    """The last item is named as the worst whatever else is offered, and comes first as its worth
    says; the other worst ones are by the worths."""
    rng, number = np.random.default_rng(0), 240
    base = np.tile(np.array([1.0, 0.3, -0.4, 0.9]), (number, 1))
    asked = drawn(base, rng, annotator=np.arange(number) % 12)
    ones = np.ones(number, np.int32)
    asked = dataclasses.replace(asked, place=None, depth=ones, lowest=ones)
    fair = OrderDraw(np.asarray(rt.simulate(MODEL, asked, seed=0).data.place), base).place
    place = np.where(fair == 1, 1, 0)
    worst = np.where(place[:, 3] == 1, (place == 1).argmin(1), 3)
    place[np.arange(number), worst] = -1
    data = dataclasses.replace(asked, place=place.astype(np.int32))
    data.check()
    result = fit_quietly(MODEL, data, rt.PGEM(draws=400))
    found = rt.check(MODEL, result, replicates=600)
    assert "worst" in found.failed, str(found)


def test_concordance_is_kendalls_w() -> None:
    data = drawn(np.tile(WORTH, (30, 1)), np.random.default_rng(0))
    measure = discrepancies.concordance.prepare(Layout(Program(MODEL, data)))
    value = measure(OrderDraw(np.asarray(data.place), np.zeros((30, 4))))
    assert value == pytest.approx(rt.agreement(data).loc["kendall_w", "estimate"])


def test_orders_of_a_mixture_are_of_the_types_that_their_annotators_are_of() -> None:
    """Two annotators of two types, sure beyond 1e-6: each has the utilities of theirs, and their
    orders drawn anew are like their own."""
    utility = jnp.array([[9.0, 0.0, -9.0], [-9.0, 0.0, 9.0]])
    component = PlackettLuce(jnp.stack([utility, utility]))
    mixture = GroupedMixture(
        dist.Categorical(probs=jnp.array([0.9, 0.1])), component, jnp.arange(2), 2
    )
    place = jnp.array([[3, 2, 1], [1, 2, 3]])
    found, drawn = utility_and_places(mixture, place, jax.random.key(0))
    np.testing.assert_array_equal(found, utility[::-1])
    np.testing.assert_array_equal(drawn, place)
