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
from raters.inference.polya_gamma.conditionals import BOUNDED


@dataclass(frozen=True)
class ByProduct(rt.Model[rt.Comparisons]):
    """BTL written as a product of a power with the incidence matrix."""

    power: int = 1
    positive: bool = False

    blocks = (("worth",),)

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            prior = dist.HalfNormal(1.5) if self.positive else dist.Normal(0.0, 1.5)
            worth = numpyro.sample("worth", prior)
        first, second = (jax.nn.one_hot(side, data.num_items) for side in (data.first, data.second))
        logits = (first - second) @ worth**self.power
        with numpyro.plate("comparison", data.num_comparisons):
            numpyro.sample("outcome", Votes(logits, data.weight), obs=data.wins)


@pytest.mark.slow
def test_a_block_in_a_product_has_the_rows_of_one_that_is_indexed(tiny, fit_quietly) -> None:
    product = fit_quietly(ByProduct(), tiny, rt.PGEM(draws=0))["mode"]["worth"]
    indexed = fit_quietly(rt.BTL(reward_scale=1.5), tiny, rt.PGEM(draws=0))["mode"]["reward"]
    np.testing.assert_allclose(product, indexed, atol=1e-5)


def test_what_is_declared_and_not_conjugate_is_refused(tiny) -> None:
    gibbs = rt.PGGibbs(draws=5, warmup=0, chains=1)
    with pytest.raises(NotConjugateError, match=r"block \('worth',\) of ByProduct .* differ by"):
        rt.fit(ByProduct(power=3), tiny, gibbs, seed=0, progress=False)


@pytest.mark.parametrize("backend", [rt.PGGibbs(), rt.PGEM()])
def test_entries_with_bounds_that_meet_in_the_same_logits_are_refused(backend, tiny) -> None:
    """Before anything runs: the normal conditional of a block has no bounds."""
    program = rt.program.Program(ByProduct(positive=True), tiny)
    assert BOUNDED in backend.why_not(program)
