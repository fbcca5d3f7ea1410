"""Blocks that fall into parts, and the division of a sum between two sites."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raters as rt
from raters.inference.polya_gamma import components, conditionals, plans, sweep
from raters.model import Transfer
from raters.program import Program


def problem(seed: int, size: int, number: int):
    """The prior of some entries, and rows that each touch two of them."""
    rng = np.random.default_rng(seed)
    inf = np.full(size, np.inf)
    prior = conditionals.Gaussian(rng.normal(size=size), rng.uniform(0.5, 2, size), -inf, inf)
    first = rng.integers(size, size=number)
    entry = np.stack([first, (first + rng.integers(1, size, size=number)) % size])
    weight, kappa, offset = rng.normal(size=(2, number)), *rng.normal(size=(2, number))
    return prior, conditionals.Weighted(entry, weight, rng.uniform(0.1, 1, number), kappa, offset)


def both(seed: int, size: int, number: int) -> tuple[components.ByComponent, conditionals.Dense]:
    """The conditional in parts, its rows added in two pieces, and as one dense matrix."""
    prior, rows = problem(seed, size, number)
    apart, dense = components.ByComponent(prior), conditionals.Dense(prior)
    early = np.arange(number) < number // 2
    for mask in (early, ~early):
        apart.add(rows.part(mask))
    dense.add(rows)
    return apart, dense


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 14))
def test_parts_have_the_mode_of_the_whole(seed: int, size: int, number: int) -> None:
    apart, dense = both(seed, size, number)
    current = np.random.default_rng(seed).normal(size=size)
    assert np.allclose(apart.mode(current), dense.mode(current))
    assert np.allclose(apart.product(current), dense.product(current), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [components.LIMIT, 3])
def test_draws_have_the_mean_and_the_covariance_of_the_whole(limit, monkeypatch) -> None:
    """Also where parts of more than three entries go by conjugate gradients; false-alarm rate 1e-5
    for each mean and each second moment (|z| < 4.5)."""
    monkeypatch.setattr(components, "LIMIT", limit)
    apart, dense = both(3, 9, 6)
    number = 4000
    rng, zero = np.random.default_rng(0), np.zeros(9)
    draws = np.stack([apart.draw(rng, zero) for _ in range(number)])
    covariance = np.linalg.inv(dense.precision())
    off = (draws - dense.mode(zero)) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert np.abs(off.mean(0)).max() < 4.5 / np.sqrt(number)
    moments = (off.T @ off / number - np.eye(9)) * np.sqrt(number / (1 + np.eye(9)))
    assert np.abs(moments).max() < 4.5


def test_tastes_are_solved_in_parts(tiny) -> None:
    model = rt.HierarchicalBTL()
    with jax.enable_x64(True):
        start = {name: np.asarray(value, float) for name, value in model.start(tiny).items()}
        plan = plans.plan(Program(model, tiny), start)

        def weights(_, logits, votes, kappa):
            return votes / 4, kappa

        reward, taste = (
            sweep.block_conditional(plan, tiny, start, block, weights, draws=True)
            for block in plan.blocks
        )
    assert isinstance(reward, conditionals.Dense)
    assert isinstance(taste, components.ByComponent)
    assert plan.moves == (Transfer("reward", "taste"),)
