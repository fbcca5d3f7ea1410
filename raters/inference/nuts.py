"""No-U-Turn sampler of NumPyro, from the model's own start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from numpyro.infer.util import unconstrain_fn

from raters.distributions.correlated import unwrapped
from raters.errors.validation import boolean, plain_whole, share
from raters.inference import modes
from raters.inference.base import Backend, Draws, Start, last_draws, numpy_seeds, progress_bar
from raters.inference.polya_gamma import line
from raters.model import Model, Scale, Values, own_sites
from raters.program import Program, Supports, inside, log_prior, trace
from raters.program.placing import first_unit
from raters.program.whitening import white, white_name, whitened

# Steps between two updates of the progress bar.
_BLOCK = 100

# Statistics of each draw of Hamiltonian Monte Carlo.
STATISTICS = "diverging", "energy", "n_steps", "acceptance_rate"
# Far from the numbers by which NUTS splits its key, whose stream stays as it is.
_MIRROR, _ORBIT = 0x6D6972726F72 % 2**31, 0x6F72626974 % 2**31


def sampled(model: Model[Any], data: Any, values: Values) -> Values:
    """Return the values of the sites of the program with white vectors of single judges."""
    sampled = dict(values)
    for site in own_sites(model):
        sampled[white_name(site)] = _white(model, site, data, values)
        del sampled[site]
    return sampled


@partial(jax.jit, static_argnums=(0, 1))
def _white(model: Model[Any], site: str, data: Any, values: Values) -> Array:
    return white(unwrapped(trace(model, data, values)[site]["fn"]), jnp.asarray(values[site]))


@dataclass(frozen=True)
class NUTS(Backend):
    """Hamiltonian Monte Carlo by NumPyro: exact for every model, and the reference for the other
    back-ends.

    Chains start at the model's start, because from NumPyro's default start half of the chains of
    Extended-BTL were in the mode of reversed sign. Computations are in float64, since energies of
    many votes are too coarse in float32.

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
        """Run the chains, from the model's start or the last draws of an earlier fit."""
        model, total = program.model, self.warmup + self.draws
        with jax.enable_x64(True), progress_bar(total, "NUTS", progress) as bar:
            data = program.placed()
            starts = _unconstrained(program, start, self.chains)
            states = _begin(self, model, data, jax.random.split(key, self.chains), starts)
            moves, blocks = modes.images(program), []
            own = np.random.default_rng(numpy_seeds(jax.random.fold_in(key, _MIRROR), 1)[0])
            # A block is of warm-up or of draws, never of both.
            for begin, end in ((0, self.warmup), (self.warmup, total)):
                for first in range(begin, end, _BLOCK):
                    steps = min(_BLOCK, end - first)
                    tried = modes.tries(moves, own, (self.chains, _BLOCK))
                    states, draws = _advance(self, model, moves, data, states, tried, steps)
                    if begin == self.warmup:
                        blocks.append(jax.tree.map(np.asarray, draws))
                    bar.update(steps)
        values, stats = jax.tree.map(
            lambda *parts: np.concatenate(parts, axis=1)[:, : self.draws], *blocks
        )
        # NumPyro adds what is deterministic.
        values = {name: value for name, value in values.items() if name in program.sites}
        return Draws(values, stats, facts={"divergences": int(stats["diverging"].sum())})


def _kernel(settings: NUTS, model: Model[Any]) -> numpyro.infer.NUTS:
    """Return NumPyro's kernel with these settings."""
    return numpyro.infer.NUTS(
        whitened(model, own_sites(model)),
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
        dense_mass=settings.dense_mass,
    )


@partial(jax.jit, static_argnums=(0, 1))
def _begin(settings: NUTS, model: Model[Any], data: Any, keys: Array, starts: Values) -> Any:
    """Return the state of each chain before its first step."""

    def init(entry: tuple[Array, Values]) -> Any:
        key, start = entry
        return _kernel(settings, model).init(key, settings.warmup, start, (data,), {})

    return jax.lax.map(init, (keys, starts))


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    settings: NUTS,
    model: Model[Any],
    moves: tuple[modes.Images, ...],
    data: Any,
    states: Any,
    tried: modes.Tried,
    steps: int,
) -> tuple[Any, tuple[Values, Values]]:
    """Run at most `_BLOCK` steps of each chain, one chain after the other."""

    scales = tuple(one for one in model.symmetries if isinstance(one, Scale))

    def chain(entry: tuple[Any, Any]) -> tuple[Any, tuple[Values, Values]]:
        state, orders = entry
        kernel = _kernel(settings, model)
        # Sets the potential of the kernel, from the model and the data.
        kernel.init(state.rng_key, settings.warmup, state.z, (data,), {})
        constrained = kernel.postprocess_fn((data,), {})

        def collect(state: Any) -> tuple[Values, Values]:
            stats = state.diverging, state.energy, state.num_steps, state.accept_prob
            return constrained(state.z), dict(zip(STATISTICS, stats, strict=True))

        def values_at(state: Any) -> Values:
            values = constrained(state.z)
            return {name: values[name] for name in state.z}

        def moved(state: Any, values: Values) -> Any:
            z = unconstrain_fn(model, (data,), {}, values)
            energy, slope = jax.value_and_grad(kernel.get_potential_fn((data,), {}))(z)
            there = state._replace(z=z, z_grad=slope, potential_energy=energy)
            # A point on a bound, to rounding, has no coordinates.
            return jax.tree.map(partial(jnp.where, jnp.isfinite(energy)), there, state)

        def step(index: int, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, fields = carry
            state = kernel.sample(state, (data,), {})
            values, row = values_at(state), first_unit(data)
            own = jax.random.fold_in(state.rng_key, _MIRROR)
            each = jax.tree.map(lambda some: some[index], orders)
            values = modes.step(model, moves, data, row, values, each, own)
            if scales:
                # Trajectories walk along an orbit slowly, since it is narrow.
                own = jax.random.fold_in(state.rng_key, _ORBIT)
                joint = partial(log_prior, model, row)
                values = line.visit(joint, Supports(), scales, (), values, own)
            if moves or scales:
                state = moved(state, values)
            return state, jax.tree.map(
                lambda field, value: field.at[index].set(value), fields, collect(state)
            )

        empty = jax.tree.map(
            lambda field: jnp.zeros((_BLOCK, *field.shape), field.dtype),
            jax.eval_shape(collect, state),
        )
        return jax.lax.fori_loop(0, steps, step, (state, empty))

    return jax.lax.map(chain, (states, tried))


def _unconstrained(program: Program[Any], start: Values | None, chains: int) -> Values:
    """Return the starts of the chains in unconstrained coordinates, shape (chain, ...)."""
    supports = program.supports
    if start is None:
        begin = program.model.start(program.data)
        points = [{name: jnp.asarray(value, float) for name, value in begin.items()}] * chains
    else:
        points = [inside(point, supports) for point in last_draws(start, chains)]
    points = [sampled(program.model, program.data, point) for point in points]
    transforms = {name: biject_to(supports.get(name, constraints.real)) for name in points[0]}
    return {
        name: jnp.stack([transform.inv(point[name]) for point in points])
        for name, transform in transforms.items()
    }
