"""NumPyro's No-U-Turn sampler, with the model's own start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer
from numpyro.distributions.transforms import biject_to

from raters._check import boolean, share, whole
from raters.inference._trace import inside, latent_sites
from raters.inference.base import NUMPYRO, Backend, Draws, last_draws, progress_bar
from raters.model import Model, Values

# Steps between two updates of the progress bar.
_BLOCK = 100


@dataclass(frozen=True)
class NUTS(Backend):
    """Hamiltonian Monte Carlo by NumPyro: exact for every model, and the reference for the other back-ends.

    Chains start at the model's start, because NumPyro's default start put half of the chains of Extended-BTL into the
    sign-mirrored mode. Computes in float64: with many votes, energies in float32 are too coarse.

    Parameters
    ----------
    draws : int
        Draws kept from each chain.
    warmup : int
        Adaptation steps before them.
    chains : int
        Run one after the other.
    target_accept : float
        Acceptance rate aimed at; above NumPyro's .8, for the funnels of learned scales.
    max_tree_depth : int
        Trajectories have at most 2 to this power steps.
    dense_mass : bool
        Whether to adapt a full mass matrix.

    References
    ----------
    Hoffman and Gelman (2014), JMLR 15, 1593–1623. Phan, Pradhan and Jankowiak (2019), arXiv:1912.11554.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.NUTS(draws=500, warmup=300, chains=2), seed=0, progress=False)
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

    reference: ClassVar[str] = (
        r"""
    @article{hoffman2014no,
      author  = {Hoffman, Matthew D. and Gelman, Andrew},
      title   = {The {No-U-Turn} Sampler: Adaptively Setting Path Lengths in {H}amiltonian {M}onte {C}arlo},
      journal = {Journal of Machine Learning Research},
      year    = {2014},
      volume  = {15},
      number  = {47},
      pages   = {1593--1623},
    }
    """
        + NUMPYRO
    )

    def __post_init__(self) -> None:
        whole("draws", self.draws)
        whole("warmup", self.warmup)
        whole("chains", self.chains)
        share("target_accept", self.target_accept)
        whole("max_tree_depth", self.max_tree_depth)
        boolean("dense_mass", self.dense_mass)

    def run(self, model: Model, data: Any, key: jax.Array, *, start: Values | None = None, progress: bool = False) -> Draws:
        """Run the chains, from the model's start, or each from the last draw of an earlier chain."""
        total = self.warmup + self.draws
        with jax.enable_x64(True), progress_bar(total, "NUTS", progress) as bar:
            data = jax.tree.map(jnp.asarray, data)
            starts = _unconstrained(model, data, start, self.chains)
            states = _begin(self, model, data, jax.random.split(key, self.chains), starts)
            pieces = []
            # Warm-up ends at the end of a block, so that no draw shares one with it.
            for begin, end in ((0, self.warmup), (self.warmup, total)):
                for done in range(begin, end, _BLOCK):
                    steps = min(_BLOCK, end - done)
                    states, kept = _advance(self, model, data, states, steps)
                    if begin == self.warmup:
                        pieces.append(jax.tree.map(lambda field, steps=steps: np.asarray(field)[:, :steps], kept))
                    bar.update(steps)
        values, stats = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *pieces)
        return Draws(values, stats, facts={"divergences": int(stats["diverging"].sum())})


def _kernel(settings: NUTS, model: Model) -> numpyro.infer.NUTS:
    return numpyro.infer.NUTS(
        model.generate,
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
        dense_mass=settings.dense_mass,
    )


@partial(jax.jit, static_argnums=(0, 1))
def _begin(settings: NUTS, model: Model, data: Any, keys: jax.Array, starts: Values) -> Any:
    """The state of each chain before its first step."""

    def one(entry):
        key, start = entry
        return _kernel(settings, model).init(key, settings.warmup, start, (data,), {})

    return jax.lax.map(one, (keys, starts))


@partial(jax.jit, static_argnums=(0, 1))
def _advance(settings: NUTS, model: Model, data: Any, states: Any, steps: jax.Array) -> tuple[Any, Any]:
    """At most `_BLOCK` steps of each chain, the chains one after the other, and what is kept of each step.

    ``numpyro.infer.MCMC`` compiles anew at every run; this compiles once for a model and a shape of data.
    """

    def chain(state):
        kernel = _kernel(settings, model)
        kernel.init(state.rng_key, settings.warmup, state.z, (data,), {})  # Binds the kernel to the model and the data.
        constrained = kernel.postprocess_fn((data,), {})

        def kept(state):
            stats = {
                "diverging": state.diverging,
                "energy": state.energy,
                "n_steps": state.num_steps,
                "acceptance_rate": state.accept_prob,
            }
            return constrained(state.z), stats

        def step(number, carry):
            state, fields = carry
            state = kernel.sample(state, (data,), {})
            return state, jax.tree.map(lambda field, value: field.at[number].set(value), fields, kept(state))

        empty = jax.tree.map(lambda field: jnp.zeros((_BLOCK, *field.shape), field.dtype), jax.eval_shape(kept, state))
        return jax.lax.fori_loop(0, steps, step, (state, empty))

    return jax.lax.map(chain, states)


def _unconstrained(model: Model, data: Any, start: Values | None, chains: int) -> Values:
    """Where each chain sets out from, in NumPyro's unconstrained coordinates, with a leading axis of chains."""
    supports = {name: site.support for name, site in latent_sites(model, data).items()}
    if start is None:
        points = [{name: jnp.asarray(value, float) for name, value in model.start(data).items()}] * chains
    else:
        points = [inside(point, supports) for point in last_draws(start, chains)]
    transforms = {name: biject_to(support) for name, support in supports.items()}
    return {name: jnp.stack([transform.inv(point[name]) for point in points]) for name, transform in transforms.items()}
