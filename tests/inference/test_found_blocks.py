"""Blocks that are found in a program, rows that are read from derivatives, and sites that are drawn
with a block integrated out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp, softmax

import raters as rt
from raters.inference.polya_gamma import conditionals, detection, plans
from raters.inference.polya_gamma.rows import rows_of
from raters.program import Program, trace


@pytest.mark.slow
def test_blocks_of_models_that_declare_none(labelled, ranked):
    blocks = {
        rt.DawidSkene(): (labelled, (("prevalence",), ("confusion",))),
        rt.Raykar(hidden=2): (labelled, (("coefficient",), ("output_weight",), ("confusion",))),
        rt.models.Yan(): (labelled, (("coefficient",), ("sensitivity", "tilt"), ("wrong",))),
    }
    for model, (data, expected) in blocks.items():
        assert model.blocks is None
        assert detection.names_of(Program(model, data)) == expected


# ------------------------------------------------------------------------------- plain programs

RNG = np.random.default_rng(0)
X, GROUP, Y = RNG.normal(size=(60, 3)), RNG.integers(0, 5, 60), RNG.integers(0, 2, 60)
DATA = {"x": X, "group": GROUP, "y": Y}


def many(x, group, y=None):
    """Sites of every kind."""
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.0))
    effect = numpyro.sample("effect", dist.Normal(mean, scale).expand([5]).to_event(1))
    slope = numpyro.sample("slope", dist.MultivariateNormal(jnp.zeros(3), 0.5 + jnp.eye(3)))
    positive = numpyro.sample("positive", dist.HalfNormal(jnp.ones(3)))
    single = numpyro.sample("single", dist.Uniform(-1.0, 1.0))
    power = numpyro.sample("power", dist.Normal(0.0, 1.0))
    linear = intercept + effect[group] + x @ slope + x @ positive + single * x[:, 0]
    numpyro.sample("obs", dist.Bernoulli(logits=linear + jnp.exp(power) * x[:, 1]), obs=y)


def whitened(x, group, y=None):
    """Effects in whitened coordinates."""
    scale = numpyro.sample("scale", dist.HalfNormal(jnp.ones(2)))
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.0))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([5, 2]).to_event(2))
    own = (scale * z)[group]
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    logits = intercept + own[:, 0] + own[:, 1] * x[:, 0] + jnp.dot(x, slope)
    numpyro.sample("obs", dist.Bernoulli(logits=logits), obs=y)


def program_of(function) -> Program:
    model = rt.models.numpyro_model(function, observed="y")
    return Program(model, model.read(DATA))


@pytest.mark.slow
def test_blocks_of_a_program_and_reasons_for_the_other_sites():
    blocks, reasons, refusal = detection.detected(program_of(many))
    assert tuple(blocks) == (("intercept", "effect", "slope"), ("single",))
    assert refusal == ""
    assert reasons["mean"] == "the prior of effect depends on it"
    assert reasons["scale"].startswith("its prior LogNormal is not normal")
    assert reasons["positive"] == conditionals.BOUNDED
    assert reasons["power"] == "the logits are not affine in it"


@pytest.mark.slow
@pytest.mark.parametrize(("function", "number"), [(many, 5), (whitened, 6)])
def test_rows_read_from_derivatives_are_the_design(function, number):
    """One derivative for the effects of all groups, and one for each feature."""
    with jax.enable_x64(True):
        program = program_of(function)
        model, data = program.model, program.data
        values = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        block = plans.plan(program, values).blocks[0]
        assert max(block.colours) + 1 == number
        rows = rows_of(model, data, values, block)
        assert rows.entry.shape == (number, 60)
        current = block.flat(values)

        def logits(entries):
            moved = values | block.placed(values, entries)
            return trace(model, data, moved)["y"]["fn"].logits

        design = np.zeros((60, len(current)))
        for entry, weight in zip(np.asarray(rows.entry), np.asarray(rows.weight), strict=True):
            np.add.at(design, (np.arange(60), entry), weight)
        np.testing.assert_allclose(design, jax.jacfwd(logits)(jnp.asarray(current)), atol=1e-12)
        np.testing.assert_allclose(rows.offset + design @ current, logits(current), atol=1e-12)


def spread(total, y=None):
    """Effects of a learned scale, one for each row."""
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand(total.shape).to_event(1))
    numpyro.sample("obs", dist.Binomial(total, logits=scale * z), obs=y)


@pytest.mark.slow
def test_draws_of_a_whitened_scale_are_those_of_the_posterior_by_quadrature(fit_quietly):
    """Means of log scale and of its square; a false alarm in 10,000 runs.

    Many answers of each effect make ω depend on the effects, so that the order of the draws counts.
    """
    total, y = np.full(5, 40), np.array([3, 11, 20, 33, 39])
    node = np.linspace(-9.0, 9.0, 1801)
    log_scale = np.linspace(-6.0, 6.0, 1201)
    logits = np.exp(log_scale)[:, None] * node
    log_prior, log_weight = -(log_scale**2) / 2, -(node**2) / 2
    rows = [
        logsumexp(log_weight + right * logits - 40 * np.logaddexp(0, logits), axis=1) for right in y
    ]
    density = softmax(log_prior + np.sum(rows, axis=0))
    exact = np.array([density @ log_scale, density @ log_scale**2])
    model = rt.models.numpyro_model(spread, observed="y")
    result = fit_quietly(
        model, {"total": total, "y": y}, rt.PGGibbs(draws=2500, warmup=100, chains=2)
    )
    drawn = np.log(result["posterior"]["scale"].values)
    both = np.stack([drawn, drawn**2], -1)
    ess = array_stats.ess(both, chain_axis=0, draw_axis=1, method="mean")
    scores = (both.mean((0, 1)) - exact) / (both.std((0, 1)) / np.sqrt(ess))
    assert np.abs(scores).max() < 4.1, scores
