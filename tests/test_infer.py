"""The Pólya-Gamma kernel of NumPyro's MCMC: its blocks, its exactness, and what MCMC asks of it."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import HMC, MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam

import raters
from raters import infer
from raters.errors import NotConjugateError, SettingError

# False-alarm rate 7e-6 for each scalar: |z| > 4.5 under the normal distribution.
_BOUND = 4.5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---------------------------------------------------------------------------- programs, with data


def groups(x, group, num_groups, y=None):
    """Logistic regression with intercepts and slopes of groups, whose scales are learned."""
    mean = numpyro.sample("mean", dist.Normal(0, 2))
    scale = numpyro.sample("scale", dist.HalfNormal(1).expand([2]).to_event(1))
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1).to_event(1))
    with numpyro.plate("group", num_groups):
        intercept = numpyro.sample("intercept", dist.Normal(mean, scale[0]))
        z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.deterministic("own_slope", slope[0] + scale[1] * z)
    with numpyro.plate("row", len(group)):
        logits = intercept[group] + scale[1] * z[group] * x[:, 0] + x @ slope
        numpyro.sample("obs", dist.Bernoulli(logits=logits), obs=y)


def responses(person, item, num_persons, num_items, y=None):
    """Two-parameter item response model."""
    with numpyro.plate("person", num_persons):
        ability = numpyro.sample("ability", dist.Normal(0, 1))
    with numpyro.plate("item", num_items):
        difficulty = numpyro.sample("difficulty", dist.Normal(0, 1.5))
        discrimination = numpyro.sample("discrimination", dist.LogNormal(0, 0.5))
    logits = discrimination[item] * (ability[person] - difficulty[item])
    numpyro.sample("obs", dist.Bernoulli(logits=logits), obs=y)


def matches(i, j, num_players, y=None):
    """Bradley-Terry model whose scale is learned."""
    scale = numpyro.sample("scale", dist.HalfNormal(2))
    with numpyro.plate("player", num_players):
        ability = numpyro.sample("ability", dist.Normal(0, scale))
    with numpyro.plate("match", len(i)):
        numpyro.sample("won", dist.Bernoulli(logits=ability[i] - ability[j]), obs=y)


def schools(count, y=None):
    """Schools, classes and pupils, with counts of right answers."""
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    num_schools, num_classes, num_pupils = count.shape
    with numpyro.plate("school", num_schools, dim=-3):
        school = numpyro.sample("of_school", dist.Normal(mean, scale))
        with numpyro.plate("class", num_classes, dim=-2):
            of_class = numpyro.sample("of_class", dist.Normal(0, 0.5))
            with numpyro.plate("pupil", num_pupils, dim=-1):
                logits = school + of_class
                numpyro.sample("right", dist.Binomial(count, logits=logits), obs=y)


def trials(asked, seconds, y=None):
    """Subjects, conditions and items with a mask, and times of answers."""
    tau = numpyro.sample("tau", dist.LogNormal(-0.5, 0.5))
    with numpyro.plate("item", asked.shape[2], dim=-1):
        item = numpyro.sample("of_item", dist.Normal(0, 1))
    with numpyro.plate("subject", asked.shape[0], dim=-3):
        subject = numpyro.sample("of_subject", dist.Normal(0, tau))
        numpyro.sample("seconds", dist.Normal(0.5 * subject, 1.0), obs=seconds)
        with numpyro.plate("condition", asked.shape[1], dim=-2):
            condition = numpyro.sample("of_condition", dist.Normal(subject, 1))
            with numpyro.plate("trial", asked.shape[2], dim=-1), handlers.mask(mask=asked):
                numpyro.sample("answer", dist.Bernoulli(logits=condition - item), obs=y)


def data_of(name: str) -> dict[str, Any]:
    """Small data of a program."""
    rng = np.random.default_rng(0)
    if name == "groups":
        group, x = np.arange(160) % 8, rng.normal(size=(160, 2))
        y = rng.random(160) < sigmoid(rng.normal(size=8)[group] + x @ [1, -0.5])
        return {"x": x, "group": group, "num_groups": 8, "y": y.astype(int)}
    if name == "responses":
        person, item = (grid.ravel() for grid in np.indices((30, 6)))
        y = rng.random(180) < sigmoid(rng.normal(size=30)[person] - rng.normal(size=6)[item])
        shape = {"num_persons": 30, "num_items": 6}
        return {"person": person, "item": item, "y": y.astype(int), **shape}
    if name == "matches":
        i = rng.integers(0, 9, 150)
        j = (i + rng.integers(1, 9, 150)) % 9
        y = rng.random(150) < sigmoid(np.linspace(-1, 1, 9)[i] - np.linspace(-1, 1, 9)[j])
        return {"i": i, "j": j, "num_players": 9, "y": y.astype(int)}
    if name == "schools":
        count = rng.integers(1, 6, (5, 3, 4))
        logits = rng.normal(size=(5, 1, 1)) + np.zeros((5, 3, 4))
        return {"count": count, "y": rng.binomial(count, sigmoid(logits))}
    asked = rng.random((8, 2, 5)) < 0.7
    y = rng.random((8, 2, 5)) < sigmoid(rng.normal(size=(8, 1, 1)) - rng.normal(size=5))
    return {"asked": asked, "seconds": rng.normal(size=(8, 1, 1)), "y": y.astype(int)}


PROGRAMS = {one.__name__: one for one in (groups, responses, matches, schools, trials)}
_BLOCKS = {
    "groups": [("mean", "slope", "intercept", "z")],
    "responses": [("ability", "difficulty")],
    "matches": [("ability",)],
    "schools": [("mean", "of_school", "of_class")],
    "trials": [("of_item", "of_subject", "of_condition")],
}


# ---------------------------------------------------------------------------- blocks


def found(program, data) -> infer._Plan:
    """The plan of a program."""
    return infer._found(program, (), data)


def log_density(program, data, block, omega, values, entries) -> jax.Array:
    """Log density of the block's terms given ω, up to a constant, by NumPyro's distributions."""
    sites = infer._trace(program, (), data, values | block.split(entries))
    total = jnp.zeros(())
    for name in block.terms:
        fn, value = sites[name]["fn"], sites[name]["value"]
        if name not in omega:
            total += fn.log_prob(value).sum()
            continue
        mask = jnp.ones(())
        if isinstance(fn, dist.MaskedDistribution):
            mask, fn = fn._mask, fn.base_dist
        count = getattr(fn, "total_count", 1)
        logits = jnp.broadcast_to(fn.logits, jnp.shape(value))
        kappa = mask * (value - count / 2)
        total += (kappa * logits - omega[name].reshape(logits.shape) * logits**2 / 2).sum()
    return total


@pytest.mark.parametrize(
    "name",
    [
        "matches",
        pytest.param("groups", marks=pytest.mark.slow),
        pytest.param("trials", marks=pytest.mark.slow),
    ],
)
def test_systems_are_those_of_the_density(name: str) -> None:
    """Precision, gradient and integral are those by automatic differentiation, to rounding."""
    program, data = PROGRAMS[name], data_of(name)
    plan = found(program, data)
    assert [sorted(block.shapes) for block in plan.blocks] == [sorted(*_BLOCKS[name])]
    (block,) = plan.blocks
    assert plan.integrated is not None
    run = partial(infer._trace, program, (), data)
    values = infer._Program(program, (), data).points[3]
    terms = {site: infer._terms(run(values)[site]) for site in plan.augmented}
    omega = {site: 0.3 * one.trials for site, one in terms.items()}
    system = infer._read(run, block, values, omega)
    ((_, sums),) = system
    at, density = block.join(values), partial(log_density, program, data, block, omega, values)
    precision = -jax.hessian(density)(at)
    gradient = jax.grad(density)(at)
    summed = np.diag(sums.diagonal) + (0 if sums.across is None else sums.across)
    np.testing.assert_allclose(summed, precision, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(sums.shift, gradient, rtol=2e-4, atol=1e-3)
    step = np.linalg.solve(np.float64(precision), np.float64(gradient))
    integral = density(at) + gradient @ step / 2 - np.linalg.slogdet(precision)[1] / 2
    other = values | {site: 1.3 * values[site] for site in plan.others}
    free, fixed = (infer._read(run, part, values, omega) for part in (plan.free, plan.fixed))
    parts, whole = map(infer._log_integral, (free + fixed, system))
    np.testing.assert_allclose(parts, whole, rtol=1e-4)
    moved = infer._read(run, block, other, omega)
    density = partial(log_density, program, data, block, omega, other)
    gradient, precision = jax.grad(density)(at), -jax.hessian(density)(at)
    step = np.linalg.solve(np.float64(precision), np.float64(gradient))
    expected = density(at) + gradient @ step / 2 - np.linalg.slogdet(precision)[1] / 2 - integral
    difference = infer._log_integral(moved) - infer._log_integral(system)
    np.testing.assert_allclose(difference, expected, rtol=1e-3, atol=5e-3)


def test_entries_of_a_large_block_are_recorded_not_its_columns() -> None:
    data = {"i": np.arange(900), "j": (np.arange(900) * 7 + 3) % 1000, "num_players": 1000}
    plan = found(matches, data | {"y": np.arange(900) % 2})
    (block,) = plan.blocks
    assert block.size == 1000
    assert plan.integrated is None
    entry = block.entries["ability"]
    rows = {tuple(sorted(pair)) for pair in entry[:2, 1000:].T.tolist()}
    assert rows == {tuple(sorted(pair)) for pair in zip(data["i"], data["j"], strict=True)}


def test_other_likelihoods_keep_a_site_out_of_the_blocks() -> None:
    def counts(y, events):
        rate = numpyro.sample("rate", dist.Normal(0, 1))
        effect = numpyro.sample("effect", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.factor("more", -(rate**4))
        numpyro.sample("events", dist.Poisson(jnp.exp(effect[0])), obs=events)
        other = numpyro.sample("other", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Bernoulli(logits=rate + effect.sum() + other), obs=y)

    plan = found(counts, {"y": np.ones(5), "events": np.ones(2)})
    assert plan.others == {"rate", "effect"}
    assert [list(block.shapes) for block in plan.blocks] == [["other"]]


# ---------------------------------------------------------------------------- refusals


def test_a_program_without_blocks_is_refused_with_reasons() -> None:
    def probabilities(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        s = numpyro.sample("s", dist.Gamma(1, 1))
        numpyro.sample("obs", dist.Bernoulli(probs=jax.nn.sigmoid(s * x)), obs=y)

    mcmc = MCMC(infer.PolyaGamma(probabilities), num_warmup=1, num_samples=1, progress_bar=False)
    told = r"logits=; 's': its prior Gamma .*; 'x': 'obs' \(BernoulliProbs\) depends on it"
    with pytest.raises(NotConjugateError, match=told):
        mcmc.run(jax.random.key(0), np.ones(3))

    def squares(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Bernoulli(logits=x + 0.01 * x**2), obs=y)

    with pytest.raises(NotConjugateError, match="the logits of 'obs' are not affine in it"):
        found(squares, {"y": np.ones(3)})

    def tempered(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        with handlers.scale(scale=0.5):
            numpyro.sample("obs", dist.Bernoulli(logits=x), obs=y)

    with pytest.raises(NotConjugateError, match="not whole numbers"):
        found(tempered, {"y": np.ones(3)})


def test_errors_of_the_program_are_shown_as_they_are() -> None:
    def wrong(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Bernoulli(logits=x.no_such_method()), obs=y)

    mcmc = MCMC(infer.PolyaGamma(wrong), num_warmup=1, num_samples=1, progress_bar=False)
    with pytest.raises(AttributeError, match="no_such_method"):
        mcmc.run(jax.random.key(0), np.ones(3))


def test_other_refusals() -> None:
    def mixed(y):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("obs", dist.Bernoulli(logits=z * 1.0), obs=y)

    with pytest.raises(SettingError, match=re.escape("discrete latent sites ['z']")):
        found(mixed, {"y": np.ones(3)})
    with pytest.raises(SettingError, match="of the same program"):
        infer.PolyaGamma(matches, NUTS(groups))
    data = data_of("matches")
    mcmc = MCMC(
        infer.PolyaGamma(matches),
        num_warmup=1,
        num_samples=1,
        progress_bar=False,
        jit_model_args=True,
    )
    with pytest.raises(SettingError, match="without jit_model_args"):
        mcmc.run(jax.random.key(0), **data)


# ---------------------------------------------------------------------------- under MCMC


def run(kernel, data, *, samples=30, warmup=30, seed=0, **settings) -> MCMC:
    """MCMC of some samples."""
    fields = settings.pop("extra_fields", ())
    settings = {"progress_bar": False} | settings
    mcmc = MCMC(kernel, num_warmup=warmup, num_samples=samples, **settings)
    mcmc.run(jax.random.key(seed), extra_fields=fields, **data)
    return mcmc


def test_mcmc_runs_the_kernel_as_its_own(capsys) -> None:
    data, fields = data_of("matches"), ("potential_energy", "accept_prob", "num_steps")
    kernel = raters.infer.PolyaGamma(matches, NUTS(matches, target_accept_prob=0.9))
    settings = {"num_chains": 2, "extra_fields": fields, "chain_method": "vectorized"}
    mcmc = run(kernel, data, progress_bar=True, **settings)
    samples = mcmc.get_samples(group_by_chain=True)
    assert samples["ability"].shape == (2, 30, 9)
    assert samples["scale"].shape == (2, 30)
    extra = mcmc.get_extra_fields(group_by_chain=True)
    assert set(extra) == {*fields, "diverging"}
    last = {name: value[0, -1] for name, value in samples.items()}
    log_joint = numpyro.infer.util.log_density(matches, (), data, last)[0] + jnp.log(last["scale"])
    assert extra["potential_energy"][0, -1] == pytest.approx(-float(log_joint), rel=1e-5)
    mcmc.print_summary()
    assert "Number of divergences" in capsys.readouterr().out
    tree = az.from_numpyro(mcmc, log_likelihood=True)
    assert tree["posterior"]["ability"].dims == ("chain", "draw", "player")
    assert tree["log_likelihood"]["won"].dims == ("chain", "draw", "match")
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(jax.random.key(1), **data)
    assert np.isfinite(mcmc.get_samples()["ability"]).all()


@pytest.mark.slow
def test_a_seed_gives_its_draws_and_deterministic_sites_follow() -> None:
    def linear(x, y=None):
        with handlers.reparam(config={"slope": LocScaleReparam(0.0)}):
            slope = numpyro.sample("slope", dist.Normal(0.5, 2.0))
        effect = numpyro.deterministic("effect", 2 * slope)
        numpyro.sample("obs", dist.Bernoulli(logits=effect * x), obs=y)

    data = {"x": np.linspace(-2, 2, 20), "y": np.arange(20) % 2}
    one, same, other = (
        run(infer.PolyaGamma(linear), data, seed=seed).get_samples() for seed in (0, 0, 1)
    )
    assert set(one) == {"slope", "slope_decentered", "effect"}
    np.testing.assert_array_equal(one["effect"], same["effect"])
    np.testing.assert_allclose(one["effect"], 2 * one["slope"], rtol=1e-6)
    assert not np.array_equal(one["effect"], other["effect"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sequential", "vectorized", jax.vmap])
def test_chains_by_each_method(method) -> None:
    data = data_of("schools")
    kernel = infer.PolyaGamma(schools, HMC(schools, trajectory_length=1.0))
    samples = run(kernel, data, num_chains=2, chain_method=method).get_samples(group_by_chain=True)
    assert samples["of_class"].shape == (2, 30, 5, 3, 1)
    assert not np.array_equal(samples["mean"][0], samples["mean"][1])


# ---------------------------------------------------------------------------- exactness


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_means_and_squares_agree_with_nuts(name: str) -> None:
    """In Monte-Carlo standard errors, of each scalar."""
    program, data = PROGRAMS[name], data_of(name)
    settings = {"warmup": 500, "samples": 4000, "num_chains": 2, "chain_method": "vectorized"}
    drawn = [
        run(kernel, data, **settings).get_samples(group_by_chain=True)
        for kernel in (infer.PolyaGamma(program), NUTS(program, target_accept_prob=0.9))
    ]
    worst = {}
    for site in drawn[0]:
        for power in (1, 2):
            one, other = (np.asarray(draws[site], float) ** power for draws in drawn)
            error = sum(
                each.var((0, 1)) / np.minimum(effective_sample_size(each), each[..., 0].size)
                if each.ndim == 2
                else each.var((0, 1)) / effective_sample_size(each)
                for each in (one, other)
            )
            z = (one.mean((0, 1)) - other.mean((0, 1))) / np.sqrt(error)
            worst[site, power] = float(np.abs(z).max())
    assert max(worst.values()) < _BOUND, worst
