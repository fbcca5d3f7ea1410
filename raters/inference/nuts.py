"""NumPyro's No-U-Turn sampler, with the model's own start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer

from raters._check import share, whole
from raters.inference._trace import latent_sites
from raters.inference.base import Backend, Draws, warn_unless_converged
from raters.model import Model


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
        "Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research, 15, 1593–1623. "
        "Phan, D., Pradhan, N. and Jankowiak, M. (2019). Composable effects for flexible and accelerated probabilistic "
        "programming in NumPyro. arXiv:1912.11554"
    )

    def __post_init__(self) -> None:
        whole("draws", self.draws)
        whole("warmup", self.warmup)
        whole("chains", self.chains)
        share("target_accept", self.target_accept)
        whole("max_tree_depth", self.max_tree_depth)

    def run(self, model: Model, data: Any, key: jax.Array, *, progress: bool = False) -> Draws:
        """Run the chains."""
        with jax.enable_x64(True):
            sampler = _sampler(self, model, progress)
            start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
            sampler.run(
                key,
                jax.tree.map(jnp.asarray, data),
                init_params=_unconstrained(model, data, start, self.chains),
                extra_fields=("diverging", "energy", "num_steps", "accept_prob"),
            )
            values = {name: np.asarray(draws) for name, draws in sampler.get_samples(group_by_chain=True).items()}
            extra = {name: np.asarray(field) for name, field in sampler.get_extra_fields(group_by_chain=True).items()}
        stats = {
            "diverging": extra["diverging"],
            "energy": extra["energy"],
            "n_steps": extra["num_steps"],
            "acceptance_rate": extra["accept_prob"],
        }
        facts = warn_unless_converged(values, int(stats["diverging"].sum()))
        return Draws(values, stats, facts=facts | {"divergences": int(stats["diverging"].sum())})


@lru_cache(maxsize=32)
def _sampler(settings: NUTS, model: Model, progress: bool) -> numpyro.infer.MCMC:
    """One sampler for each model and settings, so that a second run on data of the same shape does not compile again."""
    kernel = numpyro.infer.NUTS(
        model.generate,
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
        dense_mass=settings.dense_mass,
    )
    return numpyro.infer.MCMC(
        kernel,
        num_warmup=settings.warmup,
        num_samples=settings.draws,
        num_chains=settings.chains,
        chain_method="sequential",
        progress_bar=progress,
        jit_model_args=True,
    )


def _unconstrained(model: Model, data: Any, start: dict[str, jax.Array], chains: int) -> dict[str, jax.Array]:
    """The start in NumPyro's unconstrained coordinates, once for each chain."""
    from numpyro.distributions.transforms import biject_to

    sites = latent_sites(model, data)
    flat = {name: biject_to(sites[name].support).inv(value) for name, value in start.items()}
    if chains == 1:
        return flat
    return {name: jnp.broadcast_to(value, (chains, *jnp.shape(value))) for name, value in flat.items()}
