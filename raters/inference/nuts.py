"""No-U-Turn sampler of NumPyro, in the coordinates of `HMC`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer
from jaxtyping import Array, Float

from raters.errors.validation import boolean, plain_whole, share
from raters.inference import modes
from raters.inference.base import Backend, Draws, Start, progress_bar
from raters.inference.chains import starts_of
from raters.inference.polya_gamma.hmc import STATISTICS, Space
from raters.model import Values
from raters.program import Program

# Steps between two updates of the progress bar.
_BLOCK = 100
# Far from the numbers by which NUTS splits its key.
_MOVES = 0x6D6F766573 % 2**31


@dataclass(frozen=True)
class NUTS(Backend):
    """Hamiltonian Monte Carlo by NumPyro: exact for every model, and the reference for the other
    back-ends.

    Chains start near the model's start, because from NumPyro's default start half of the chains of
    Extended-BTL were in the mode of reversed sign. Coordinates and moves between trajectories are
    those of `HMC`. Computations are in float64, since energies of many votes are too coarse in
    float32.

    Parameters
    ----------
    draws : int
        Number of draws of each chain.
    warmup : int
        Number of adaptation steps before the first draw.
    chains : int
        Number of chains, which run one after the other.
    target_accept : float
        Target acceptance rate; above NumPyro's 0.8, for the funnels of learned scales.
    max_tree_depth : int
        Trajectories have at most ``2**max_tree_depth`` steps.
    dense_mass : bool
        Adapt a full mass matrix; otherwise a diagonal one.

    References
    ----------
    Hoffman and Gelman (2014), JMLR 15, 1593–1623. Phan, Pradhan and Jankowiak (2019),
    arXiv:1912.11554.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.NUTS(draws=500, warmup=300, chains=2), seed=0,
    ...                 progress=False)
    >>> int(result.sample_stats["diverging"].sum())
    0
    """

    draws: int = 1000
    warmup: int = 1000
    chains: int = 4
    target_accept: float = 0.9
    max_tree_depth: int = 10
    dense_mass: bool = False

    exact: ClassVar[bool] = True

    reference: ClassVar[str] = "hoffman2014no phan2019composable"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", "warmup", "chains", "max_tree_depth")
        share("target_accept", self.target_accept)
        boolean("dense_mass", self.dense_mass)

    def run(
        self, program: Program[Any], key: Array, *, start: Start = None, progress: bool = False
    ) -> Draws:
        """Run the chains, from near the model's start or the last draws of an earlier fit."""
        total = self.warmup + self.draws
        with jax.enable_x64(True), progress_bar(total, "NUTS", progress) as bar:
            cold, starts, rngs = starts_of(program, key, start, self.chains)
            space, blocks = Space.of(program, cold), []
            flats = space.starts(cold, starts)
            states = _begin(self, space, jax.random.split(key, self.chains), flats)
            # A block is of warm-up or of draws, never of both.
            for begin, end in ((0, self.warmup), (self.warmup, total)):
                for first in range(begin, end, _BLOCK):
                    steps = min(_BLOCK, end - first)
                    tried = modes.tries(space.moves, rngs[0], (self.chains, _BLOCK))
                    states, draws = _advance(self, space, states, tried, steps)
                    if begin == self.warmup:
                        blocks.append(jax.tree.map(np.asarray, draws))
                    bar.update(steps)
        values, stats = jax.tree.map(
            lambda *parts: np.concatenate(parts, axis=1)[:, : self.draws], *blocks
        )
        return Draws(values, stats, facts={"divergences": int(stats["diverging"].sum())})


def _kernel(settings: NUTS, space: Space) -> numpyro.infer.NUTS:
    """Return NumPyro's kernel with these settings."""
    return numpyro.infer.NUTS(
        potential_fn=lambda flat: -space.density(space.data, space.like, flat),
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
        dense_mass=settings.dense_mass,
    )


@partial(jax.jit, static_argnums=0)
def _begin(
    settings: NUTS, space: Space, keys: Array, starts: Float[Array, "chain coordinate"]
) -> Any:
    """Return the state of each chain before its first step."""

    def init(entry: tuple[Array, Array]) -> Any:
        key, start = entry
        return _kernel(settings, space).init(key, settings.warmup, start, (), {})

    return jax.lax.map(init, (keys, starts))


@partial(jax.jit, static_argnums=0)
def _advance(
    settings: NUTS, space: Space, states: Any, tried: modes.Tried, steps: int
) -> tuple[Any, tuple[Values, Values]]:
    """Run at most `_BLOCK` steps of each chain, one chain after the other."""

    def chain(entry: tuple[Any, Any]) -> tuple[Any, tuple[Values, Values]]:
        state, orders = entry
        kernel = _kernel(settings, space)
        # Prepares the kernel; the state is left as it is.
        kernel.init(state.rng_key, settings.warmup, state.z, (), {})

        def collect(state: Any) -> tuple[Values, Values]:
            stats = state.diverging, state.energy, state.num_steps, state.accept_prob
            return space.values(state.z), dict(zip(STATISTICS, stats, strict=True))

        def step(index: int, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            before, fields = carry
            state = kernel.sample(before, (), {})
            if space.moves_along:
                key = jax.random.fold_in(state.rng_key, _MOVES)
                images = jax.tree.map(lambda some: some[index], orders)
                follows = (state.z != before.z).any() | (before.i >= settings.warmup)
                flat = space.moved(state.z, images, key, follows)
                energy, slope = jax.value_and_grad(kernel.get_potential_fn((), {}))(flat)
                state = state._replace(z=flat, z_grad=slope, potential_energy=energy)
            return state, jax.tree.map(
                lambda field, value: field.at[index].set(value), fields, collect(state)
            )

        empty = jax.tree.map(
            lambda field: jnp.zeros((_BLOCK, *field.shape), field.dtype),
            jax.eval_shape(collect, state),
        )
        return jax.lax.fori_loop(0, steps, step, (state, empty))

    return jax.lax.map(chain, (states, tried))
