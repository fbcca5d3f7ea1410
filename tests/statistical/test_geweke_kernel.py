"""Geweke's joint test of the Pólya-Gamma kernel for NumPyro's MCMC, and an error that it catches.

Chains start at exact draws of parameters and outcomes, and alternate outcomes given parameters with
a sweep; a statistic then has the same mean at the end as at the start.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import HMC

from raters import infer

_CHAINS, _SWEEPS = 4000, 12
# False-alarm rate 7e-6 for each of the statistics.
_BOUND = 4.5
_X = np.linspace(-1, 1, 8)
_GROUP = np.arange(8) % 3


def integrated(answer=None, count=None, seconds=None):
    """Effects of groups with a learned scale, and three likelihoods that they enter."""
    scale = numpyro.sample("scale", dist.LogNormal(0, 0.5))
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    effect = numpyro.sample("effect", dist.Normal(mean, scale).expand([3]))
    numpyro.sample("answer", dist.Bernoulli(logits=effect[_GROUP] * _X), obs=answer)
    numpyro.sample("count", dist.Binomial(3, logits=effect - 0.5 * scale), obs=count)
    numpyro.sample("seconds", dist.Normal(effect[0] - effect[1], scale), obs=seconds)


def alternating(answer=None, count=None):
    """A product of two blocks and a site in neither; the second likelihood is of one block."""
    slope = numpyro.sample("slope", dist.LogNormal(0, 0.5))
    ability = numpyro.sample("ability", dist.Normal(0, 1).expand([3]))
    loading = numpyro.sample("loading", dist.Normal(0.5, 0.5).expand([2]))
    logits = slope * loading[_GROUP % 2] * ability[_GROUP] - 0.3
    numpyro.sample("answer", dist.Bernoulli(logits=logits), obs=answer)
    numpyro.sample("count", dist.Binomial(2, logits=slope * loading), obs=count)


def outcomes(program, key, values):
    """Outcomes of a program at values of its latent sites, or all sites without values."""
    seeded = handlers.seed(handlers.substitute(program, data=values), key)
    sites = handlers.trace(seeded).get_trace()
    return {name: site["value"] for name, site in sites.items()}


def scores(program, names) -> np.ndarray:
    """Differences of the means of statistics at the end and the start, in standard errors."""
    kernel = infer.PolyaGamma(
        program, HMC(program, step_size=0.3, num_steps=3, trajectory_length=None)
    )
    first = outcomes(program, jax.random.key(0), {})
    data = {name: first[name] for name in names}
    state = kernel.init(jax.random.key(1), 0, None, (), data)
    plan = kernel._plan((), data)
    kernel._plan = lambda args, kwargs: plan  # of any outcomes

    def latent(values):
        return {name: value for name, value in values.items() if name not in names}

    def chain(key):
        start_key, omega_key, *keys = jax.random.split(key, 2 + _SWEEPS)
        start = latent(outcomes(program, start_key, {}))
        z = {name: jnp.log(v) if name in ("scale", "slope") else v for name, v in start.items()}
        omega = kernel._augmented(omega_key, plan.augmented, (), data, z)
        inner = state.hmc_state._replace(z={name: z[name] for name in plan.others})

        def sweep(carried, key):
            outcome_key, own = jax.random.split(key)
            values = kernel._constrained(carried.z, (), data)
            drawn = outcomes(program, outcome_key, values)
            given = {name: drawn[name] for name in names}
            return kernel.sample(carried._replace(rng_key=own), (), given), None

        begin = state._replace(z=z, omega=omega, hmc_state=inner)
        end, _ = jax.lax.scan(sweep, begin, jnp.stack(keys))

        def statistics(values):
            flat = jnp.concatenate([jnp.ravel(values[name]) for name in sorted(values)])
            return jnp.concatenate(
                [jnp.arcsinh(flat), flat**2 / (1 + flat**2), flat[:-1] * flat[1:]]
            )

        return statistics(end.z) - statistics(z)

    moved = np.asarray(
        jax.lax.map(chain, jax.random.split(jax.random.key(2), _CHAINS), batch_size=500)
    )
    return moved.mean(0) / (moved.std(0) / np.sqrt(_CHAINS))


_PROGRAMS = {
    "integrated": (integrated, ("answer", "count", "seconds")),
    "alternating": (alternating, ("answer", "count")),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_the_kernel_leaves_the_joint_distribution_invariant(name: str) -> None:
    z = scores(*_PROGRAMS[name])
    assert np.abs(z).max() < _BOUND, z


def test_a_wrong_exponent_is_caught(monkeypatch) -> None:
    draw = infer.draw_series

    def wrong(key, count, logits, *, single):
        return draw(key, count * 1.5, logits, single=False)

    monkeypatch.setattr(infer, "draw_series", wrong)
    assert np.abs(scores(*_PROGRAMS["integrated"])).max() > _BOUND
