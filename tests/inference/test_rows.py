"""Recorded rows, the solvers that use them, and what is refused."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import conditionals, sweep
from raters.inference.polya_gamma.rows import Block, logits_of, rows_of, split
from raters.program import Program, log_joint


def _votes(logits, data) -> None:
    votes = (
        dist.Bernoulli(logits=logits)
        if data.count is None
        else dist.Binomial(data.count, logits=logits)
    )
    with numpyro.plate("comparison", data.num_comparisons):
        numpyro.sample("outcome", votes, obs=data.wins)


@dataclass(frozen=True)
class Bilinear(rt.Model[rt.Comparisons]):
    """Worth of both items and of a neighbour of the first, times skill, plus a scalar: three slots
    and it in one block."""

    @property
    def blocks(self):
        return (("worth", "home"), ("skill",))

    def start(self, data):
        return {
            "worth": jnp.linspace(-1.0, 1.0, data.num_items),
            "skill": jnp.ones(data.num_annotators),
            "home": jnp.asarray(0.2),
        }

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.5))
        with numpyro.plate("annotator", data.num_annotators):
            skill = numpyro.sample("skill", dist.Normal(1.0, 0.5))
        home = numpyro.sample("home", dist.Normal(0.0, 1.0))
        neighbour = (data.first + 1) % data.num_items
        _votes(
            skill[data.annotator]
            * (worth[data.first] - 1.3 * worth[data.second] + 0.4 * worth[neighbour])
            + home,
            data,
        )


@dataclass(frozen=True)
class ByProduct(rt.Model[rt.Comparisons]):
    """BTL written as a product with the incidence matrix, or by indexing."""

    product: bool = True

    @property
    def blocks(self):
        return (("worth",),)

    def start(self, data):
        return {"worth": jnp.linspace(-1.0, 1.0, data.num_items)}

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.5))
        if self.product:
            design = jax.nn.one_hot(data.first, data.num_items) - jax.nn.one_hot(
                data.second, data.num_items
            )
            logits = design @ worth
        else:
            logits = worth[data.first] - worth[data.second]
        _votes(logits, data)


@dataclass(frozen=True)
class Cubic(ByProduct):
    """Declared conjugate, and not."""

    def generate(self, data):
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.5))
        _votes(worth[data.first] ** 3 - worth[data.second], data)


@pytest.fixture
def wide():
    """float64 inside the test."""
    with jax.enable_x64(True):
        yield


def _scattered(model, data, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(value) + 0.3 * rng.uniform(size=np.shape(value))
        for name, value in model.start(data).items()
    }


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("block", [("worth", "home"), ("skill",)])
def test_recorded_weights_are_the_derivatives(block, tiny) -> None:
    model, values = Bilinear(), _scattered(Bilinear(), tiny)
    rows = rows_of(model, tiny, values, Block(block))
    assert len(rows.entry) == (4 if "worth" in block else 1)
    current = jnp.concatenate([jnp.ravel(values[name]) for name in block])
    design = np.zeros((tiny.num_comparisons, len(current)))
    for entry, weight in zip(np.asarray(rows.entry), np.asarray(rows.weight), strict=True):
        np.add.at(design, (np.arange(tiny.num_comparisons), entry), weight)
    expected = jax.jacrev(
        lambda entries: logits_of(model, tiny, values | split(entries, values, block))
    )(current)
    np.testing.assert_allclose(design, expected, atol=1e-12)
    np.testing.assert_allclose(
        rows.offset + design @ current, logits_of(model, tiny, values), atol=1e-12
    )


def _conditional(model, data, values, block, *, draws=False):
    """The conditional at fixed, uneven ω."""
    plan = sweep.plan(Program(model, data), values)

    def weights(_, logits, count, kappa):
        return count * (0.1 + 0.1 * np.abs(np.sin(np.arange(len(logits))))), kappa

    return sweep.block_conditional(plan, data, values, Block(block), weights, draws=draws)


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_conditional_is_the_quadratic_of_the_augmented_density(tiny) -> None:
    """Mode and precision, from autodiff of log prior + Σ κψ − ωψ²/2."""
    model, values, block = Bilinear(), _scattered(Bilinear(), tiny), ("worth", "home")
    given = _conditional(model, tiny, values, block)
    count = np.asarray(tiny.count)
    omega = count * (0.1 + 0.1 * np.abs(np.sin(np.arange(len(count)))))

    def augmented(entries):
        point = values | split(entries, values, block)
        psi = logits_of(model, tiny, point)
        free = log_joint(model, dataclasses.replace(tiny, wins=count * 0, count=count * 0), point)
        return free + ((np.asarray(tiny.wins) - count / 2) * psi - omega * psi**2 / 2).sum()

    current = jnp.zeros(given.size)
    precision = -jax.hessian(augmented)(current)
    np.testing.assert_allclose(given.precision(), precision, atol=1e-8)
    np.testing.assert_allclose(
        given.mode(current), np.linalg.solve(precision, jax.grad(augmented)(current)), atol=1e-8
    )


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_conjugate_gradients_agree_with_the_dense_solver(tiny, monkeypatch) -> None:
    """The mode to the solver's tolerance, and the draws' mean and covariance; false-alarm rate 1e-5
    (36 z-scores)."""
    model, values, block = Bilinear(), _scattered(Bilinear(), tiny), ("worth", "home")
    dense = _conditional(model, tiny, values, block)
    monkeypatch.setattr(conditionals, "DENSE_LIMIT", 3)
    sparse = _conditional(model, tiny, values, block, draws=True)
    assert isinstance(dense, conditionals.Dense)
    assert isinstance(sparse, conditionals.Sparse)
    start = np.zeros(dense.size)
    np.testing.assert_allclose(sparse.mode(start), dense.mode(start), atol=1e-4)
    rng = np.random.default_rng(0)
    factor = np.linalg.cholesky(dense.precision())
    whitened = np.stack(
        [factor.T @ (sparse.draw(rng, start) - dense.mode(start)) for _ in range(4000)]
    )
    size = len(whitened)
    assert np.abs(whitened.mean(0)).max() < 5.2 / np.sqrt(size)
    assert np.abs(whitened.T @ whitened / size - np.eye(dense.size)).max() < 5.2 * np.sqrt(2 / size)


@pytest.mark.slow
def test_block_used_by_a_product_falls_back_and_agrees(tiny, fit_quietly, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="raters"):
        product = fit_quietly(ByProduct(), tiny, rt.PGEM(draws=0))
    assert "its design is dense" in caplog.text
    indexed = fit_quietly(ByProduct(product=False), tiny, rt.PGEM(draws=0))
    np.testing.assert_allclose(product["mode"]["worth"], indexed["mode"]["worth"], atol=1e-5)
    gibbs = rt.PGGibbs(draws=5, warmup=0, chains=1)
    one, other = (
        fit_quietly(ByProduct(product=used), tiny, gibbs)["posterior"]["worth"]
        for used in (True, False)
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_what_is_declared_and_not_conjugate_is_refused(tiny) -> None:
    with pytest.raises(NotConjugateError, match=r"block \('worth',\) of Cubic .* differ by [\d.]+"):
        rt.fit(Cubic(), tiny, rt.PGGibbs(draws=5, warmup=0, chains=1), seed=0, progress=False)
