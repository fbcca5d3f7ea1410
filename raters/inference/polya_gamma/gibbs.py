"""Blocked Pólya-Gamma Gibbs sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array

from raters.errors.validation import plain_whole
from raters.inference import base, modes
from raters.inference.arrays import Rng
from raters.inference.mixing import times_longer
from raters.inference.polya_gamma import (
    augmentation,
    collapsed,
    label_switching,
    moves,
    panel_gibbs,
    panels,
    plans,
    sets,
    sweep,
)
from raters.inference.polya_gamma.latent_classes import Counts
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block, rows_of
from raters.model import Values
from raters.program import Program, placing, scattered, start_of

# A sweep of a chain, given its number.
Step = Callable[[int], Values]


@dataclass(frozen=True)
class PGGibbs(base.Backend):
    r"""Gibbs sampling with Pólya-Gamma augmentation: exact, without tuning.

    A sweep draws :math:`\omega_m \sim \mathrm{PG}(n_m, \psi_m)` for every row, then each of the
    model's blocks from its Gaussian (or truncated Gaussian) full conditional, then moves along the
    orbit of each declared scale symmetry, then takes a slice step for each entry of every other
    site. All of it is derived from the model's program. Computations are in float64, and chains
    run in threads.

    On an accelerator, or with ``rt.fit(..., mesh=...)``, the rows stay on the devices.

    It mixes slowly where many logits are large (\|ψ\| ≫ 3): check the effective sample size, or use
    `HMC`.

    Parameters
    ----------
    draws : int
        Number of draws of each chain.
    warmup : int
        Number of sweeps before the first draw.
    chains : int
        Number of chains.
    thin : int
        Number of sweeps per draw.
    longest : int
        Chains that have not mixed, but would in at most so many times as many sweeps, go on, with
        more sweeps per draw.

    References
    ----------
    Polson, Scott and Windle (2013), JASA 108, 1339–1349. Liu and Sabatti (2000), Biometrika 87,
    353–369, for the moves along orbits.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGGibbs(draws=2000), seed=0, progress=False)
    >>> dict(result.posterior.sizes)["draw"]
    2000
    """

    draws: int = 1000
    warmup: int = 300
    chains: int = 4
    thin: int = 1
    longest: int = 1

    exact: ClassVar[bool] = True

    reference: ClassVar[str] = "polson2013bayesian liu2000generalised"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", "chains", "thin", "longest")
        plain_whole(self, "warmup", least=0)

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse models without blocks, and distributions that augmentation does not cover."""
        if reason := super().why_not(program):
            return reason
        if panels.applies(program):
            return panels.why_not(program)
        if reason := plans.why_not(program):
            return reason
        if steep := plans.steep_sites(program):
            num_entries = sum(int(np.prod(program.sites[name].shape)) for name in steep)
            names = ", ".join(steep)
            which = f"each of the {num_entries:,} entries of {names}"
            return f"PGGibbs would take a slice step for {which}; use EM or SVI"
        return None

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Run the chains."""
        with jax.enable_x64(True):
            cold = start_of(program.model, program.data)
        rngs = [np.random.default_rng(seed) for seed in base.numpy_seeds(key, self.chains)]
        if start is None:
            starts = [scattered(cold, program.supports, rng) for rng in rngs]
        else:
            starts = base.last_draws(start, self.chains)
        # One BLAS thread per chain: more would compete with those of the other chains, at six times
        # the CPU seconds on two cores.
        with base.one_blas_thread():
            steps = self._steps(program, cold, starts, rngs)
            # Chains that meet on the devices of a mesh would wait for each other for ever.
            at_once = self.chains if program.mesh is None else 1
            values = self._drawn_by(steps, at_once, self.warmup, self.thin, progress)
            times = times_longer(values, self.longest) if self.longest > 1 else 1
            if times > 1:
                values = self._drawn_by(steps, at_once, 0, self.thin * times, progress)
        facts = {"times_longer": times} if times > 1 else {}
        return base.Draws({name: values[name] for name in program.sites}, {}, facts=facts)

    def _steps(
        self, program: Program[Any], cold: Values, starts: list[Values], rngs: list[Rng]
    ) -> list[Step]:
        """Prepare the chains, not in their threads: NumPyro reads a program in one at a time."""
        if panels.applies(program):
            with jax.enable_x64(True):
                panel = panels.panel_of(program, cold)
                samplers = [panel_gibbs.Sampler(panel, values) for values in starts]
                samplers[0].compile()
            pairs = zip(samplers, rngs, strict=True)
            return [partial(sampler.step, rng, self.warmup) for sampler, rng in pairs]
        with jax.enable_x64(True):
            plan = plans.plan(program, cold)
            data, row = sweep.on_devices(program), program.data.take(slice(0, 1))
            single = sweep.is_single(plan, data, cold)
        images = modes.images(program)

        def chain(values: Values, rng: Rng) -> Step:
            own, cache = rng.spawn(1)[0], sets.RunCache(plan.steady, single=single)

            def step(index: int) -> Values:
                nonlocal values
                values = gibbs_sweep(plan, row, data, values, rng, cache, images, own)
                return values

            return step

        return [chain(*one) for one in zip(starts, rngs, strict=True)]

    def _drawn_by(
        self, steps: list[Step], at_once: int, warmup: int, thin: int, progress: bool
    ) -> Values:
        """Run the chains on from where they are, and return their draws."""
        stop, total = Event(), warmup + self.draws * thin
        name = "PGGibbs" + f", {thin} sweeps a draw" * (thin > self.thin)

        def drawn(step: Step) -> Values:
            draws: list[Values] = []
            with jax.enable_x64(True):
                for index in range(self.warmup - warmup, self.warmup - warmup + total):
                    if stop.is_set():
                        break
                    values = step(index)
                    if index >= self.warmup and (index - self.warmup) % thin == 0:
                        draws.append({name: np.asarray(value) for name, value in values.items()})
                    bar.update()
            return _stacked(draws)

        with base.progress_bar(total * self.chains, name, progress) as bar:
            return _stacked(base.in_threads(drawn, steps, stop, at_once))


def _stacked(values: list[Values]) -> Values:
    """Values of each site, along a new first axis."""
    return {name: np.stack([one[name] for one in values]) for name in (values or [{}])[0]}


def gibbs_sweep(
    plan: Plan,
    row: Any,
    data: Any,
    values: Values,
    rng: Rng,
    cache: sets.RunCache | None = None,
    images: tuple[modes.Images, ...] = (),
    own: Rng | None = None,
) -> Values:
    """Run one sweep; steps to images of the point have random numbers of their `own`."""
    single = cache is not None and cache.single
    weights = augmentation.Drawn(rng, single=single)
    on_devices = placing.stays_on_devices(data)
    values, classes = sweep.drawn_classes(plan, data, values, rng)
    ready: dict[str, Counts] = {}
    switches = tuple(one for one in images if label_switching.is_collapsed(plan, one))
    if switches and own is not None:
        given = plan, switches, row, data, values, classes[""], own
        values, classes[""], ready = label_switching.step(*given)
    for block in plan.blocks:
        if block.kind != "counts":  # The priors of counted sites may depend on it.
            ready = {}
        if block == plan.integrated and not on_devices:
            values = _collapsed(plan, data, values, block, weights, rng)
        conditional = ready.get(block.sites[0]) or sweep.conditional(
            plan, data, values, block, weights, classes, draws=True, cache=cache
        )
        values = block.put(values, conditional.draw(rng, block.current(values)))
    for symmetry in plan.moves:
        values = moves.move(plan.model, row, values, symmetry, rng)
    for spread, column in plan.spreads:
        values = moves.stretch(plan.model, row, data, values, spread, column, rng)
    plan = plan if on_devices else plan.after_collapsed()
    if plan.free or plan.scales:
        # With the classes summed out again; the next sweep draws them anew.
        values = sweep.visit_free(plan, row, data, values, augmentation.key_of(rng), True)
    others = tuple(one for one in images if one not in switches)
    return values if own is None else modes.step(plan.model, others, row, data, values, own)


def _collapsed(
    plan: Plan, data: Any, values: Values, block: Block, weights: sweep.Weights, rng: Rng
) -> Values:
    """Draw the collapsed sites, under the ω that the block is drawn with next."""
    rows = rows_of(plan.model, data, values, block)
    logits, votes, kappa = (np.asarray(part) for part in (rows.logits, rows.votes, rows.kappa))
    omega, kappa = weights((block.kind, block.column, 0), logits, votes, kappa)
    drawn = collapsed.visit(plan, data, values, omega, kappa, augmentation.key_of(rng))
    return {name: np.asarray(value) for name, value in drawn.items()}
