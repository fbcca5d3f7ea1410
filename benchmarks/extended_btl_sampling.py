"""Effective draws per CPU-second of Extended-BTL: PGGibbs and HMC against NumPyro's NUTS on a
hand-written model.

The posterior is the same to the letter (default priors, learned scales). The hand-written model
comes centred and with standardised rewards. The figure of merit is the smallest bulk effective
sample size over all parameters, divided by CPU-seconds of all threads; compilation is done before
the clock starts, warm-up is counted apart.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from _common import options, report, simulated_votes, table
from numpyro.infer import NUTS, init_to_value

import raters as rt
from raters.errors import ConvergenceWarning


class Design(NamedTuple):
    """Sizes, the standard deviation of the true rewards, and how long to run: (warm-up, draws) for
    Gibbs and for NUTS; HMC takes as many draws as Gibbs."""

    items: int
    annotators: int
    votes: int
    scale: float
    gibbs: tuple[int, int]
    nuts: tuple[int, int]


DESIGNS = {
    "200 × 10 × 20,000": Design(200, 10, 20_000, 1.0, (300, 1000), (400, 400)),
    "200 × 10 × 20,000, r ~ N(0, 16)": Design(200, 10, 20_000, 4.0, (300, 1000), (400, 400)),
    "500 × 50 × 100,000": Design(500, 50, 100_000, 1.0, (200, 500), (200, 150)),
}
QUICK = {"30 × 5 × 2,000": Design(30, 5, 2_000, 1.0, (100, 300), (200, 200))}
CHAINS = 2


def hand_written(votes: rt.Comparisons, *, centred: bool) -> Any:
    """Extended-BTL as a NumPyro user would write it."""
    first, second, who = (
        jnp.asarray(column) for column in (votes.first, votes.second, votes.annotator)
    )
    wins = jnp.asarray(votes.wins)
    count = None if votes.count is None else jnp.asarray(votes.count)

    def model() -> None:
        scale = numpyro.sample("reward_scale", dist.LogNormal(0.0, 1.0))
        spread = numpyro.sample("competence_spread", dist.LogNormal(jnp.log(0.5), 1.0))
        with numpyro.plate("item", votes.num_items):
            if centred:
                reward = numpyro.sample("reward", dist.Normal(0.0, scale))
            else:
                reward = numpyro.deterministic(
                    "reward", scale * numpyro.sample("standard", dist.Normal(0.0, 1.0))
                )
        with numpyro.plate("annotator", votes.num_annotators):
            competence = numpyro.sample(
                "competence", dist.TruncatedNormal(1.0, spread, low=0.0, high=1.0)
            )
        logits = competence[who] * (reward[first] - reward[second])
        outcome = (
            dist.Bernoulli(logits=logits) if count is None else dist.Binomial(count, logits=logits)
        )
        numpyro.sample("outcome", outcome, obs=wins)

    return model


class Run(NamedTuple):
    """Draws of all parameters, CPU-seconds of warm-up and of sampling, and leapfrog steps for each
    draw of NUTS."""

    draws: dict[str, np.ndarray]
    warmup: float
    sampling: float
    steps: float = float("nan")


def run_nuts(votes: rt.Comparisons, design: Design, seed: int, *, centred: bool) -> Run:
    """NumPyro's defaults (float32, target acceptance .8, diagonal metric), from raters' start;
    chains one by one."""
    start = {name: jnp.asarray(value) for name, value in rt.ExtendedBTL().start(votes).items()}
    start["standard"] = start["reward"] / start["reward_scale"]
    kernel = NUTS(hand_written(votes, centred=centred), init_strategy=init_to_value(values=start))
    warmup, draws = design.nuts
    keys = jax.random.split(jax.random.key(seed), CHAINS)
    states = [kernel.init(key, warmup, None, (), {}) for key in keys]
    constrain = jax.jit(jax.vmap(kernel.postprocess_fn((), {})))

    # MCMC.run would compile its loops again for each chain; these compile once, before the clock
    # starts.
    @jax.jit
    def adapt(state: Any) -> Any:
        return jax.lax.fori_loop(0, warmup, lambda _, state: kernel.sample(state, (), {}), state)

    @jax.jit
    def sample(state: Any) -> Any:
        def step(state: Any, _: None) -> Any:
            state = kernel.sample(state, (), {})
            return state, (state.z, state.num_steps)

        return jax.lax.scan(step, state, None, draws)[1]

    adapt, sample = adapt.lower(states[0]).compile(), sample.lower(states[0]).compile()
    begin = time.process_time()
    adapted = jax.block_until_ready([adapt(state) for state in states])
    middle = time.process_time()
    chains = jax.block_until_ready([sample(state) for state in adapted])
    end = time.process_time()
    values = [jax.device_get(constrain(positions)) for positions, _ in chains]
    steps = float(np.mean([steps for _, steps in chains]))
    kept = ("reward", "competence", "reward_scale", "competence_spread")
    return Run(
        {name: np.stack([chain[name] for chain in values]) for name in kept},
        middle - begin,
        end - middle,
        steps,
    )


def run_gibbs(votes: rt.Comparisons, design: Design, seed: int) -> Run:
    """raters' sampler; sweeps of warm-up and of sampling cost the same."""
    warmup, draws = design.gibbs
    model = rt.ExtendedBTL()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table gives the numbers
        rt.PGGibbs(draws=10, warmup=2, chains=CHAINS).run(
            rt.program.Program(model, votes), jax.random.key(seed)
        )
        begin = time.process_time()
        found = rt.PGGibbs(draws=draws, warmup=warmup, chains=CHAINS).run(
            rt.program.Program(model, votes), jax.random.key(seed + 1)
        )
    seconds = time.process_time() - begin
    return Run(
        found.values, seconds * warmup / (warmup + draws), seconds * draws / (warmup + draws)
    )


def run_hmc(votes: rt.Comparisons, design: Design, seed: int) -> Run:
    """raters' Hamiltonian sampler, whose sweeps and adaptation are the warm-up."""
    program = rt.program.Program(rt.ExtendedBTL(), votes)

    def seconds(draws: int, key: int) -> tuple[float, Any]:
        begin = time.process_time()
        found = rt.HMC(draws=draws, chains=CHAINS).run(program, jax.random.key(key))
        return time.process_time() - begin, found

    seconds(1, seed)  # compiles
    warmup, _ = seconds(1, seed + 1)
    whole, found = seconds(design.gibbs[1], seed + 1)
    steps = float(found.stats["n_steps"].mean()) + 1
    return Run(found.values, warmup, whole - warmup, steps)


def worst(run: Run) -> tuple[float, str, float]:
    """The smallest bulk effective sample size with the parameter that has it, and the largest
    R-hat."""
    draws = run.draws | {
        "reward": run.draws["reward"] - run.draws["reward"].mean(-1, keepdims=True)
    }
    tree = xr.Dataset(
        {
            name: (("chain", "draw", *[f"{name}_entry"][: value.ndim - 2]), value)
            for name, value in draws.items()
        }
    )
    ess, rhat = az.ess(tree, method="bulk"), az.rhat(tree)
    name = min(draws, key=lambda name: float(ess[name].min()))
    return float(ess[name].min()), name, max(float(rhat[name].max()) for name in draws)


def disagreement(one: Run, other: Run) -> float:
    """Largest difference of posterior means of rewards and competences, in standard errors of the
    difference."""
    size = 0.0
    for name in ("reward", "competence"):
        means, errors = [], []
        for run in (one, other):
            value = run.draws[name]
            value = value - value.mean(-1, keepdims=True) if name == "reward" else value
            data = xr.Dataset({name: (("chain", "draw", "entry"), value)})
            means.append(value.mean((0, 1)))
            errors.append(az.mcse(data, method="mean")[name].values)
        size = max(size, float(np.max(np.abs(means[0] - means[1]) / np.hypot(*errors))))
    return size


def measure(name: str, design: Design, seed: int) -> list[list[Any]]:
    """The samplers on one design."""
    votes = simulated_votes(design.items, design.annotators, design.votes, seed, scale=design.scale)
    runs = {
        "raters PGGibbs": run_gibbs(votes, design, seed),
        "raters HMC": run_hmc(votes, design, seed),
    }
    print(
        f"  {name}: Gibbs {runs['raters PGGibbs'].warmup + runs['raters PGGibbs'].sampling:.1f}"
        " CPU-s",
        flush=True,
    )
    for label, centred in (("NUTS, centred", True), ("NUTS, standardised rewards", False)):
        runs[label] = run_nuts(votes, design, seed, centred=centred)
        print(
            f"  {name}: {label} {runs[label].warmup + runs[label].sampling:.1f} CPU-s", flush=True
        )
    facts = {label: worst(run) for label, run in runs.items()}
    rates = {label: facts[label][0] / runs[label].sampling for label in runs}
    rows = []
    for label, run in runs.items():
        ess, parameter, rhat = facts[label]
        off = (
            float("nan") if label == "raters PGGibbs" else disagreement(runs["raters PGGibbs"], run)
        )
        draws = int(np.prod(run.draws["reward"].shape[:2]))
        ratio = rates["raters PGGibbs"] / rates[label]
        whole = ess / (run.warmup + run.sampling)
        rows.append(
            [
                name,
                label,
                draws,
                ess,
                parameter,
                f"{rhat:.3f}",
                run.sampling,
                rates[label],
                ratio,
                whole,
                off,
                run.steps,
            ]
        )
    return rows


NOTE = """\
*ESS*: the smallest bulk effective sample size over all rewards (centred), competences and both
scales, of 2 chains. *CPU-s*: of all threads, draws only; *per CPU-s* is their quotient, *PGGibbs is
×* ours over that row's; *with warm-up*: the same with the warm-up's seconds counted. *Off*: the
largest difference from PGGibbs' posterior means over all rewards and competences, in Monte-Carlo
standard errors (the largest of some hundred normal deviates is about 3). *Steps*: gradients for
each draw. NUTS: NumPyro's defaults, float32; PGGibbs, and HMC but for its gradients: float64. The
warm-up of HMC is 150 trajectories. An ESS below 100 is itself uncertain by a third or so, and R-hat
above 1.01 says that the run was too short for it.

**The limit.** Devroye's Pólya–Gamma sampler makes some 13 million draws a second on one core, so a
sweep over 20,000 votes cannot take less than 1.5 ms. Where logits are large (r ~ N(0, 16)) a
Pólya–Gamma weight holds its logit tightly and the chain moves in small steps: PGGibbs mixes slowly
there. A draw of HMC takes some ten gradients of the log density of all rows, and four densities."""


def main() -> None:
    """Measure all designs."""
    arguments = options(__doc__ or "", design=(0, "only design 1, 2 or 3"))
    designs = list((QUICK if arguments.quick else DESIGNS).items())
    rows: list[list[Any]] = []
    for name, design in designs if not arguments.design else [designs[arguments.design - 1]]:
        rows += measure(name, design, arguments.seed)
    header = [
        "design",
        "sampler",
        "draws",
        "ESS",
        "of",
        "R-hat",
        "CPU-s",
        "per CPU-s",
        "PGGibbs is ×",
        "with warm-up",
        "off",
        "steps",
    ]
    title = "Extended-BTL: effective draws per CPU-second"
    report(
        "extended_btl_sampling",
        title,
        [table(header, rows), NOTE],
        arguments.quick or arguments.design > 0,
    )


if __name__ == "__main__":
    main()
