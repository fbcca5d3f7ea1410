"""Blocked Pólya-Gamma Gibbs sampling."""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import Any, ClassVar

import jax
import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from raters._check import whole
from raters.inference import _classes, _polyagamma, _sweep
from raters.inference._trace import latent_sites, scattered
from raters.inference.base import Backend, Draws, last_draws, numpy_seeds, progress_bar
from raters.model import Model, Values


@dataclass(frozen=True)
class PGGibbs(Backend):
    r"""Gibbs sampling with Pólya-Gamma augmentation: exact, without tuning.

    A sweep draws :math:`\omega_m \sim \mathrm{PG}(n_m, \psi_m)` for every row, then each of the model's blocks from its
    Gaussian (or truncated Gaussian) full conditional, then moves along the orbit of each declared scale symmetry, then
    takes a slice step for each entry of every other site. All of it is read from the model's program. Computes in float64
    on the CPU; chains run in threads.

    Mixes slowly where many logits are large (\|ψ\| ≫ 3): watch the effective sample size, or use `NUTS`.

    Parameters
    ----------
    draws : int
        Draws kept from each chain.
    warmup : int
        Sweeps left out before them.
    chains : int
    thin : int
        Sweeps for each draw kept.

    References
    ----------
    Polson, Scott and Windle (2013), JASA 108, 1339–1349. Liu and Sabatti (2000), Biometrika 87, 353–369, for the moves
    along orbits.

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

    exact: ClassVar[bool] = True

    reference: ClassVar[str] = (
        _polyagamma.REFERENCE
        + r"""
    @article{liu2000generalised,
      author  = {Liu, Jun S. and Sabatti, Chiara},
      title   = {Generalised {G}ibbs Sampler and Multigrid {M}onte {C}arlo for {B}ayesian Computation},
      journal = {Biometrika},
      year    = {2000},
      volume  = {87},
      number  = {2},
      pages   = {353--369},
      doi     = {10.1093/biomet/87.2.353},
    }
    """
    )

    def __post_init__(self) -> None:
        whole("draws", self.draws)
        whole("warmup", self.warmup, least=0)
        whole("chains", self.chains)
        whole("thin", self.thin)

    def why_not(self, model: Model, data: Any) -> str | None:
        """The model must declare blocks, and the observed distribution and priors must be ones that augmentation covers."""
        if reason := model.why_not(data) or _sweep.why_not(model, data):
            return reason
        if steep := _sweep.steep_sites(model, data):
            number = sum(int(np.prod(latent_sites(model, data)[name].shape)) for name in steep)
            names = ", ".join(steep)
            return f"PGGibbs would take a slice step for each of the {number:,} entries of {names}; use PGEM() or SVI()"
        return None

    def run(self, model: Model, data: Any, key: jax.Array, *, start: Values | None = None, progress: bool = False) -> Draws:
        """Run the chains, from the model's start scattered, or each from the last draw of an earlier chain."""
        with jax.enable_x64(True):
            cold = {name: np.asarray(value, np.float64) for name, value in model.start(data).items()}
            plan = _sweep.plan(model, data, cold)
            supports = {name: site.support for name, site in latent_sites(model, data).items()}
        total = self.warmup + self.draws * self.thin
        stop = Event()
        rngs = [np.random.default_rng(seed) for seed in numpy_seeds(key, self.chains)]
        starts = [scattered(cold, supports, rng) for rng in rngs] if start is None else last_draws(start, self.chains)
        # BLAS threads of their own would only fight with those of the chains: six times the CPU seconds on two cores.
        with (
            threadpool_limits(1, user_api="blas"),
            progress_bar(total * self.chains, "PGGibbs", progress) as bar,
            ThreadPoolExecutor(self.chains) as pool,
        ):
            futures = [
                pool.submit(self._chain, plan, data, values, rng, bar, stop) for values, rng in zip(starts, rngs, strict=True)
            ]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.set()  # Ctrl-C or an error in one chain ends the others at their next sweep.
            chains = [future.result() for future in futures]
        values = {name: np.stack([chain[name] for chain in chains]) for name in supports}
        return Draws(values, {})

    def _chain(self, plan, data, values: Values, rng, bar: tqdm, stop: Event) -> Values:
        with jax.enable_x64(True):
            data = _sweep.on_device(data)
            row = data.take(slice(0, 1))
            kept: dict[str, list[np.ndarray]] = {name: [] for name in values}
            for number in range(self.warmup + self.draws * self.thin):
                if stop.is_set():
                    break
                values = gibbs_sweep(plan, row, data, values, rng)
                if number >= self.warmup and (number - self.warmup) % self.thin == 0:
                    for name in kept:
                        kept[name].append(np.asarray(values[name]))
                bar.update()
            return {name: np.stack(draws) for name, draws in kept.items()}


def gibbs_sweep(plan: _sweep.Plan, row: Any, data: Any, values: Values, rng: np.random.Generator) -> Values:
    """One sweep of the kernel; leaves the posterior invariant."""
    omegas: dict[Any, np.ndarray] = {}

    def drawn(which, logits, count, kappa):
        # One draw of ω serves all blocks of the sweep that have the same logits.
        if which not in omegas:
            omegas[which] = _polyagamma.draw(rng, count, logits)
        return omegas[which], kappa

    classes = _classes.drawn(plan.model, data, values, _key(rng)) if plan.classes else None
    for block in plan.blocks:
        given = _sweep.block_conditional(plan, data, values, block, drawn, classes, draws=True)
        values = block.put(values, given.draw(rng, block.current(values)))
    if plan.free or plan.scales:
        # The classes are summed out again here, and drawn anew before they are next needed.
        values = _sweep.visit_free(plan, row, data, values, _key(rng), True)
    return values


def _key(rng: np.random.Generator) -> jax.Array:
    return jax.random.key(rng.integers(2**32, dtype=np.uint64))
