"""Blocked Pólya-Gamma Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from raters.errors.validation import plain_whole
from raters.inference import base, modes
from raters.inference.arrays import Rng
from raters.inference.chains import Chain, sampled, starts_of
from raters.inference.polya_gamma import augmentation, latent_classes, local_effects, plans, sweep
from raters.inference.polya_gamma.detection import chooses
from raters.inference.polya_gamma.hmc import HMC
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.sums import (
    Division,
    How,
    Reading,
    Sums,
    first_look,
    solved,
    sums_of,
)
from raters.inference.polya_gamma.ties import log_copula
from raters.model import Values, local_sites
from raters.program import Program

# Sweeps of a compiled run, whose values are in memory at once: so many, of so many numbers.
_SWEEPS, _NUMBERS = 50, 5_000_000
# From so many rows on, a chain shows its progress, and can be stopped, after each sweep.
_MANY = 200_000


# ------------------------------------------------------------------------------------ the sweep


def sweep_once(kernel: Kernel, values: Values, tried: modes.Tried, key: Array) -> Values:
    """Draw the classes given all sites, ω given the logits, the blocks given ω, then what is
    left."""
    class_key, last_key, *keys = jax.random.split(key, 2 + len(kernel.plan.blocks))
    values, classes = draw_classes(kernel, values, class_key)
    omegas: dict[Any, Array] = {}
    for place, use in enumerate(keys):
        values = draw_block(kernel, values, classes, omegas, place, use)
    return draw_rest(kernel, values, tried, last_key)


def draw_classes(kernel: Kernel, values: Values, key: Array) -> tuple[Values, dict[str, Any]]:
    """Draw the classes of each part, with the sites that are local to their units."""
    classes: dict[str, Any] = {}
    for part in kernel.plan.parts:
        model, own = part.model, part.data(kernel.data)
        for site in local_sites(model):
            key, use = jax.random.split(key)
            drawn = local_effects.drawn(model, own, part.values(values), site, use)
            values, classes[part.name] = values | {part.names[site]: drawn[0]}, drawn[1]
        if part.classes and not local_sites(model):
            key, use = jax.random.split(key)
            classes[part.name] = latent_classes.drawn(model, own, part.values(values), use)
    return values, classes


def draw_block(
    kernel: Kernel,
    values: Values,
    classes: dict[str, Any],
    omegas: dict[Any, Array],
    place: int,
    key: Array,
) -> Values:
    """Draw a block given ω of its rows."""
    plan, block, tie = kernel.plan, kernel.plan.blocks[place], kernel.plan.ties[place]
    key, first_key, accept_key = jax.random.split(key, 3)
    division = kernel.divisions[place]
    readings = sweep.readings_of(plan, place, kernel.data, values, classes, division)
    current = block.flat(values)
    if block.kind == "counts":
        first = readings[0]
        own = first.model, first.data, first.values, first.block.sites[0]
        prior = latent_classes.site_prior(*own)
        drawn = latent_classes.sampled(prior, sweep.counts_of(readings), key).ravel()
    else:
        sums = weighed(kernel, place, readings, omegas, first_key)
        drawn = solved(readings, sums, current, key, kernel.how)
    if tie is not None:
        log_density = partial(log_copula, plan, tie, kernel.row, values)
        gain = log_density(drawn) - log_density(current)
        taken = jnp.log(jax.random.uniform(accept_key, gain.shape)) < gain
        drawn = jnp.where(taken, drawn, current)
    return block.placed(values, drawn)


def weighed(
    kernel: Kernel, place: int, readings: list[Reading], omegas: dict[Any, Array], key: Array
) -> list[Sums]:
    """Add up the rows of a block, weighted by ω, which is drawn where no block before drew it."""
    block, sums = kernel.plan.blocks[place], []
    for number, (reading, member) in enumerate(
        zip(readings, kernel.plan.members[place], strict=True)
    ):
        which = member.part, block.kind, block.column
        how, omega = kernel.how, omegas.get(which)
        if omega is None:
            omega = jax.random.fold_in(key, number)
        else:
            how = how._replace(weights="given")
        sums.append(sums_of(reading, omega, how))
        omegas[which] = sums[-1].omega
    return sums


def draw_rest(kernel: Kernel, values: Values, tried: modes.Tried, key: Array) -> Values:
    """Draw places on orbits of scales and free sites by slices, and step to images."""
    plan, row, data = kernel.plan, kernel.row, kernel.data
    woven_key, free_key, image_key = jax.random.split(key, 3)
    # With the classes summed out again; the next sweep draws them anew.
    values = sweep.interwoven(plan, row, data, values, woven_key)
    if plan.free or plan.orbits:
        values = sweep.visit_free(plan, row, data, values, free_key, True)
    return modes.step(plan.model, kernel.images, data, row, values, tried, image_key)


# --------------------------------------------------------------------------------------- chains


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["data", "row", "divisions", "images"],
    meta_fields=["plan", "how"],
)
@dataclass(frozen=True)
class Kernel:
    """Sweeps of a program on its data: the plan and the settings that they are compiled for, and
    the first unit, the parts of blocks and the images beside the data."""

    plan: Plan
    how: How
    data: Any
    row: Any
    divisions: tuple[Division | None, ...]
    images: tuple[modes.Images, ...]

    @classmethod
    def of(
        cls, program: Program[Any], values: Values, images: tuple[modes.Images, ...] = ()
    ) -> Kernel:
        """Return the sweeps of a program; `values` are any of its sites."""
        plan = plans.plan(program, values)
        data, row = sweep.on_devices(program), program.data.take(slice(0, 1))
        values = _on_device(values)
        shapes = jax.eval_shape(partial(sweep.expected_classes, plan, data), values)
        classes = jax.tree.map(lambda one: jnp.ones(one.shape), shapes)
        read = partial(sweep.readings_of, plan, data=data, values=values, classes=classes)
        readings = [
            [] if block.kind == "counts" else read(place) for place, block in enumerate(plan.blocks)
        ]
        how, divisions = first_look(readings, How.of("draw", data))
        return cls(plan, how, data, row, divisions, images)

    def run(self, values: Values, rng: Rng, number: int) -> Values:
        """Return the values after each of some sweeps."""
        size = sum(np.size(value) for value in values.values())
        most = 1 if self.data.num_rows > _MANY else _SWEEPS
        most = min(most, max(1, _NUMBERS // max(size, 1)))
        kept = []
        # At least once, which compiles the sweeps.
        for begin in range(0, max(number, 1), most):
            tried = modes.tries(self.images, rng, (most,))
            sweeps = min(most, number - begin)
            given = _on_device(values), tried, augmentation.key_of(rng), sweeps
            drawn = _sweeps(self, most, *given)
            kept.append({name: np.asarray(value)[:sweeps] for name, value in drawn.items()})
            values = {name: np.asarray(value[sweeps - 1]) for name, value in drawn.items()}
        return {name: np.concatenate([one[name] for one in kept]) for name in values}


def _on_device(values: Values) -> Values:
    return {name: jnp.asarray(value, float) for name, value in values.items()}


@partial(jax.jit, static_argnums=1)
def _sweeps(
    kernel: Kernel, most: int, values: Values, tried: modes.Tried, key: Array, number: int
) -> Values:
    """Return the values after each of some sweeps of at most so many."""

    def step(place: int, state: tuple[Values, Array, Values]) -> tuple[Values, Array, Values]:
        values, key, kept = state
        key, use = jax.random.split(key)
        own = jax.tree.map(lambda some: some[place], tried)
        values = sweep_once(kernel, values, own, use)
        kept = jax.tree.map(lambda every, one: every.at[place].set(one), kept, values)
        return values, key, kept

    kept = {name: jnp.zeros((most, *value.shape)) for name, value in values.items()}
    return jax.lax.fori_loop(0, number, step, (values, jax.random.wrap_key_data(key), kept))[2]


@dataclass(frozen=True)
class PGGibbs(base.Backend):
    r"""Gibbs sampling with Pólya-Gamma augmentation: exact, without tuning.

    A sweep draws :math:`\omega_m \sim \mathrm{PG}(n_m, \psi_m)` for every row, then each of the
    model's blocks from its Gaussian (or truncated Gaussian) full conditional. Then it moves along
    the orbit of each declared scale symmetry, and takes a slice step for each entry of every other
    site; of means and scales of priors of which the rows tell little also one together with what
    they govern. All of it is derived from the model's program, and compiled as one function.
    Computations are in float64, and chains run in threads. Rows stay on the devices where they are.
    Utilities of choices from sets and of rankings, which have no conjugate prior, move along
    trajectories, as in `HMC`.

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
        Above 1, chains end as soon as they have mixed, with a quarter of the draws or more; those
        that have not, but would in at most so many times as many sweeps, go on, with more sweeps
        per draw.

    References
    ----------
    Polson, Scott and Windle (2013), JASA 108, 1339–1349. Liu and Sabatti (2000), Biometrika 87,
    353–369, for the moves along orbits. Yu and Meng (2011), JCGS 20, 531–570, for scales.

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
        if reason := super().why_not(program) or plans.why_not(program):
            return reason
        if chooses(program):
            return None
        if steep := plans.plan_of(program).steep:
            num_entries = sum(int(np.prod(program.sites[name].shape)) for name in steep)
            names = ", ".join(steep)
            which = f"each of the {num_entries:,} entries of {names}"
            return f"PGGibbs would take a slice step for {which}; use EM or SVI"
        return None

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Run the chains."""
        if chooses(program):
            own = HMC(self.draws, max(self.warmup, 1), self.chains, self.longest)
            return own.run(program, key, start=start, progress=progress, thin=self.thin)
        with jax.enable_x64(True):
            cold, starts, rngs = starts_of(program, key, start, self.chains)
        with base.progress_bar(0, "PGGibbs", progress) as bar:
            steps = self._chains(program, cold, starts, rngs)
            # Chains that meet on the devices of a mesh would wait for each other for ever.
            settings: dict[str, Any] = {
                "batch": 1 if program.data.num_rows > _MANY else _SWEEPS,
                "at_once": self.chains if program.mesh is None else 1,
            }
            if self.warmup:
                sampled(steps, 1, bar, thin=self.warmup, **settings)
            settings |= {"thin": self.thin, "longest": self.longest, "program": program}
            values, _, times = sampled(steps, self.draws, bar, **settings)
        drawn = {name: values[name] for name in program.sites}
        return base.Draws(drawn, {}, facts={"times_longer": times})

    def _chains(
        self, program: Program[Any], cold: Values, starts: list[Values], rngs: list[Rng]
    ) -> list[Chain]:
        """Prepare the chains, not in their threads: NumPyro reads a program in one at a time."""
        with jax.enable_x64(True):
            kernel = Kernel.of(program, cold, modes.images(program))
            kernel.run(starts[0], np.random.default_rng(0), 0)  # Compiles.

        def chain(values: Values, rng: Rng) -> Chain:
            def advance(number: int) -> tuple[Values, Values]:
                nonlocal values
                drawn = kernel.run(values, rng, number)
                values = {name: value[-1] for name, value in drawn.items()}
                return drawn, {}

            return advance

        return [chain(*each) for each in zip(starts, rngs, strict=True)]
