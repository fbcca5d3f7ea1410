"""Rows of a product, the solvers that use rows, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.distributions import Votes
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import conditionals, plans, sweep
from raters.inference.polya_gamma.rows import Block
from raters.program import Program, start_of


@dataclass(frozen=True)
class ByProduct(rt.Model[rt.Comparisons]):
    """BTL written as a product of a power with the incidence matrix."""

    power: int = 1

    blocks = (("worth",),)

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.5))
        first, second = (jax.nn.one_hot(side, data.num_items) for side in (data.first, data.second))
        logits = (first - second) @ worth**self.power
        with numpyro.plate("comparison", data.num_comparisons):
            numpyro.sample("outcome", Votes(logits, data.weight), obs=data.wins)


@pytest.mark.slow
def test_conjugate_gradients_agree_with_the_dense_solver(tiny, monkeypatch) -> None:
    """The mode to the solver's tolerance, and the draws' mean and covariance; false-alarm rate 1e-5
    (36 z-scores)."""
    model = rt.BTL(reward_scale=1.0)

    def conditional():
        values = start_of(model, tiny)
        plan = plans.plan(Program(model, tiny), values)

        def weights(_, logits, count, kappa):
            return count * (0.1 + 0.1 * np.abs(np.sin(np.arange(len(logits))))), kappa

        given = plan, tiny, values, Block(("reward",)), weights
        return sweep.block_conditional(*given, draws=True)

    with jax.enable_x64(True):
        dense = conditional()
        monkeypatch.setattr(conditionals, "DENSE_LIMIT", 3)
        sparse = conditional()
    assert isinstance(dense, conditionals.Dense)
    assert isinstance(sparse, conditionals.Sparse)
    start = np.zeros(dense.size)
    np.testing.assert_allclose(sparse.mode(start), dense.mode(start), atol=1e-4)
    rng, size = np.random.default_rng(0), 4000
    factor, mode = np.linalg.cholesky(dense.precision()), dense.mode(start)
    white = np.stack([factor.T @ (sparse.draw(rng, start) - mode) for _ in range(size)])
    assert np.abs(white.mean(0)).max() < 5.2 / np.sqrt(size)
    assert np.abs(white.T @ white / size - np.eye(dense.size)).max() < 5.2 * np.sqrt(2 / size)


@pytest.mark.slow
def test_a_block_in_a_product_has_the_rows_of_one_that_is_indexed(tiny, fit_quietly) -> None:
    product = fit_quietly(ByProduct(), tiny, rt.PGEM(draws=0))["mode"]["worth"]
    indexed = fit_quietly(rt.BTL(reward_scale=1.5), tiny, rt.PGEM(draws=0))["mode"]["reward"]
    np.testing.assert_allclose(product, indexed, atol=1e-5)


def test_what_is_declared_and_not_conjugate_is_refused(tiny) -> None:
    gibbs = rt.PGGibbs(draws=5, warmup=0, chains=1)
    with pytest.raises(NotConjugateError, match=r"block \('worth',\) of ByProduct .* differ by"):
        rt.fit(ByProduct(power=3), tiny, gibbs, seed=0, progress=False)
