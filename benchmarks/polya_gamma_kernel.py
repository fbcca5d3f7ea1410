"""`raters.infer.PolyaGamma` under NumPyro's MCMC, beside NUTS, on three programs of its gallery.

Logistic regression with intercepts and slopes of groups, the two-parameter item response model and
the Bradley-Terry model, on simulated data. Seconds are those of the CPU. Effective draws are the
bulk ESS of the number that mixes worst, of four chains; per second of sampling alone, and per
second of a first call, with setting up, compiling and warming up. Differences of means and of
means of squares are in Monte-Carlo errors of both kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from _common import options, report, table
from arviz_stats.base import array_stats
from numpyro.infer import MCMC, NUTS
from numpyro.infer.mcmc import MCMCKernel

from raters.infer import PolyaGamma

_CHAINS = 4


def regression(x, group, num_groups, y=None):
    """Logistic regression with intercepts and slopes of groups."""
    mean = numpyro.sample("mean", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1).expand([2]).to_event(1))
    with numpyro.plate("group", num_groups):
        intercept = numpyro.sample("intercept", dist.Normal(mean, scale[0]))
        own_slope = numpyro.sample("own_slope", dist.Normal(0, scale[1]))
    logits = intercept[group] + own_slope[group] * x[:, 0] + x @ slope
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
    """Bradley-Terry model with a learned scale."""
    scale = numpyro.sample("scale", dist.HalfNormal(2))
    with numpyro.plate("player", num_players):
        ability = numpyro.sample("ability", dist.Normal(0, scale))
    numpyro.sample("obs", dist.Bernoulli(logits=ability[i] - ability[j]), obs=y)


def programs(rng: np.random.Generator, quick: bool) -> dict[str, tuple[Callable, dict[str, Any]]]:
    """Return each program with data that are drawn from it."""
    rows = 400 if quick else 2000
    group, x = rng.integers(0, 20, rows), rng.normal(size=(rows, 3))
    effects = rng.normal(size=(2, 20)) * [[1.0], [0.5]]
    logits = effects[0, group] + effects[1, group] * x[:, 0] + x @ [1.0, -0.5, 0.2]
    regressed = {"x": x, "group": group, "num_groups": 20, "y": _answers(rng, logits)}
    persons, items = (40 if quick else 200), 20
    person, item = (grid.ravel() for grid in np.indices((persons, items)))
    slope, ability, difficulty = (rng.normal(size=size) for size in (items, persons, items))
    logits = np.exp(0.3 * slope)[item] * (ability[person] - difficulty[item])
    tested = {"person": person, "item": item, "num_persons": persons, "num_items": items}
    players, games = 50, (500 if quick else 5000)
    i = rng.integers(0, players, games)
    j = (i + rng.integers(1, players, games)) % players
    ability = rng.normal(size=players)
    played = {"i": i, "j": j, "num_players": players, "y": _answers(rng, ability[i] - ability[j])}
    return {
        "regression with groups": (regression, regressed),
        "item responses": (responses, tested | {"y": _answers(rng, logits)}),
        "Bradley-Terry": (matches, played),
    }


def _answers(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    return (rng.random(logits.size) < 1 / (1 + np.exp(-logits))).astype(int)


def measured(kernel: MCMCKernel, data: dict[str, Any], draws: int, seed: int) -> dict[str, Any]:
    """Return draws of all sites, and CPU seconds of the call and of sampling alone."""
    settings = {"chain_method": "vectorized", "progress_bar": False, "num_chains": _CHAINS}
    mcmc = MCMC(kernel, num_warmup=500, num_samples=draws, **settings)
    begin = time.process_time()
    mcmc.run(jax.random.key(seed), **data)
    sites = {name: np.asarray(one) for name, one in mcmc.get_samples(group_by_chain=True).items()}
    seconds = time.process_time() - begin
    steps = draws // 4
    run = jax.jit(lambda state: jax.lax.fori_loop(0, steps, lambda _, at: step(at), state))

    def step(state: Any) -> Any:
        return kernel.sample(state, (), data)

    state = jax.block_until_ready(run(mcmc.last_state))
    begin = time.process_time()
    jax.block_until_ready(run(state))
    return {"sites": sites, "all": seconds, "sampling": 4 * (time.process_time() - begin)}


def flat(sites: dict[str, np.ndarray]) -> np.ndarray:
    """Return the draws of all numbers: (number, chain, draw)."""
    each = [one.reshape(*one.shape[:2], -1) for one in sites.values()]
    return np.moveaxis(np.concatenate(each, -1), -1, 0).astype(float)


def ess(numbers: np.ndarray, method: str = "bulk") -> np.ndarray:
    """Return the effective sample size of each number."""
    return array_stats.ess(numbers, chain_axis=1, draw_axis=2, method=method)


def main() -> None:
    """Write the table."""
    given = options(__doc__ or "", draws=(1000, "draws of each chain"))
    rows = []
    for name, (program, data) in programs(np.random.default_rng(given.seed), given.quick).items():
        both = [
            measured(kernel, data, given.draws, given.seed)
            for kernel in (PolyaGamma(program), NUTS(program))
        ]
        numbers = [flat(one["sites"]) for one in both]
        scores = []
        for power in (1, 2):
            means, errors = zip(
                *(
                    (one.mean((1, 2)), (one.var((1, 2)) / ess(one, "mean")))
                    for one in (part**power for part in numbers)
                ),
                strict=True,
            )
            scores.append(np.abs(means[0] - means[1]) / np.sqrt(sum(errors)))
        for label, one, part in zip(("PolyaGamma", "NUTS"), both, numbers, strict=True):
            least = ess(part).min()
            own = f"{np.max(scores):.1f} of {part.shape[0]}" if label == "PolyaGamma" else ""
            speeds = (least / one["sampling"], least / one["all"])
            print(name, label, speeds, own, flush=True)
            rows.append((name, label, least, 1000 * one["sampling"] / given.draws, *speeds, own))
    header = ("program", "kernel", "least bulk ESS", "ms a draw (4 chains)")
    header += ("ESS/s, sampling", "ESS/s, all", "largest abs z")
    title = "The Pólya-Gamma kernel under NumPyro's MCMC"
    report("polya_gamma_kernel", title, [table(header, rows)], given.quick)


if __name__ == "__main__":
    main()
