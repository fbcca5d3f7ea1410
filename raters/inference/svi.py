"""Stochastic variational inference by NumPyro."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer
import numpyro.optim
from jaxtyping import Array, Float
from numpyro.handlers import seed
from numpyro.infer import autoguide
from numpyro.infer.initialization import init_to_value
from numpyro.infer.util import log_density
from numpyro.primitives import Messenger

from raters.errors import Reason
from raters.errors.validation import one_of, plain_whole
from raters.inference.arrays import Sites
from raters.inference.base import Backend, Draws, Start, centre, progress_bar, warn, worded
from raters.judgements.names import plural
from raters.model import Model, Values
from raters.program import Program, Supports, inside, log_joint, placing

Guide = Literal["mean_field", "low_rank", "full_rank"]


class _LowRank(autoguide.AutoLowRankMultivariateNormal):
    def _get_posterior(self, *args: Any, **kwargs: Any) -> Any:
        size = self.latent_dim
        self.rank = min(round(size**0.5), _LARGEST_RANK, max(_LOW_RANK_NUMBERS // size, 1))
        return super()._get_posterior(*args, **kwargs)


_GUIDES = {
    "mean_field": autoguide.AutoNormal,
    "low_rank": _LowRank,
    "full_rank": autoguide.AutoMultivariateNormal,
}
# Largest rank, and largest number of entries of the part of low rank: a step takes time in
# proportion to these.
_LARGEST_RANK = 32
_LOW_RANK_NUMBERS = 200_000
# Steps between two updates of the progress bar, and the first step size.
_BLOCK, _STEP_SIZE = 500, 0.02
# Up to so many rows a step reads all of them by default, beyond that about so many.
_ALL_ROWS = 100_000
_MINI_BATCH = 20_000


class _ScaleOutcomes(Messenger):
    """Effect handler that scales the log-likelihood of the observed site for a mini-batch."""

    def __init__(self, model: Model[Any], factor: float) -> None:
        self.observed, self.factor = model.observed, factor
        super().__init__(model)

    def process_message(self, msg: dict[str, Any]) -> None:
        """Scale the observed site."""
        if msg["type"] == "sample" and msg["name"] == self.observed:
            msg["scale"] = self.factor if msg["scale"] is None else msg["scale"] * self.factor


@dataclass(frozen=True)
class SVI(Backend):
    r"""Stochastic variational inference: a normal approximation in unconstrained coordinates that
    maximises the evidence lower bound (ELBO).

    It is fast and approximate: intervals tend to be too narrow, most of all with ``"mean_field"``,
    which ignores the correlation between the scales of competences and rewards.
    ``arviz.loo_approximate_posterior`` corrects for it by ``log_p`` and ``log_q``. The optimiser is
    Adam, with a cosine schedule from 0.02 to 0.

    Parameters
    ----------
    guide : {"mean_field", "low_rank", "full_rank"}
        Covariance of the normal: diagonal; diagonal plus a part of low rank (the square root of the
        number of parameters, 32 at most, and less above 6,250 parameters, of which it has 200,000
        numbers in all); unrestricted.
    steps : int
        Number of optimisation steps, rounded up to whole blocks of 500.
    batch_size : int, optional
        Number of units in a mini-batch: comparisons, or items with all their labels. By default all
        up to 100,000 rows (comparisons, or labels), and beyond as many as have 20,000 on average.
        A mini-batch is a window, at a random place, of the units in random order.
    draws : int
        Number of draws from the fitted approximation.

    References
    ----------
    Hoffman, Blei, Wang and Paisley (2013), JMLR 14, 1303–1347. Kucukelbir et al. (2017), JMLR 18,
    1–45.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> svi = rt.SVI(steps=2000, draws=1)
    >>> result = rt.fit(rt.BTL(), votes, svi, seed=0, progress=False)
    >>> result["optimisation"]["elbo"].dims
    ('step',)
    """

    guide: Guide = "low_rank"
    steps: int = 10_000
    batch_size: int | None = None
    draws: int = 1000

    exact: ClassVar[bool] = False

    reference: ClassVar[str] = "hoffman2013stochastic kucukelbir2017automatic phan2019composable"

    def __post_init__(self) -> None:
        one_of("guide", self.guide, _GUIDES)
        plain_whole(self, "steps", least=_BLOCK)
        plain_whole(self, "batch_size", optional=True)
        plain_whole(self, "draws")

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse mini-batches of rows where the likelihood is a product over another axis."""
        model, data = program.model, program.data
        if reason := super().why_not(program):
            return reason
        if self.batch_size is not None and program.unit != data.unit:
            problem = (
                f"asks for mini-batches of {plural(data.unit)}, and the likelihood of"
                f" {model.title} is a product over {plural(program.unit)}"
            )
            return Reason("batch_size", self.batch_size, problem, "leave it out")
        return None

    def _batch_size(self, program: Program[Any]) -> int:
        """Number of units in a mini-batch."""
        data = program.data
        number, rows = int(data.num_units), int(data.num_rows)
        if self.batch_size is None and rows > _ALL_ROWS and program.unit == data.unit:
            return max(round(number * _MINI_BATCH / rows), 1)
        return min(self.batch_size or number, number)

    def run(
        self, program: Program[Any], key: Array, *, start: Start = None, progress: bool = False
    ) -> Draws:
        """Fit from the model's start or the centre of earlier draws."""
        model, data = program.model, program.data
        batch_size = self._batch_size(program)
        location = {name: jnp.asarray(value) for name, value in model.start(data).items()}
        if start is not None:
            location = {
                name: jnp.asarray(value, float)
                for name, value in inside(centre(model, start), program.supports).items()
            }
        init_key, step_key, draw_key = jax.random.split(key, 3)
        batch, batched = _batches(program, batch_size, step_key)
        row = jax.tree.map(jnp.asarray, data.take(slice(0, 1)))
        factor = 1.0 if batch is None else batched.num_units / batch_size
        svi = _svi(self, model, factor, jax.tree.structure(batched), program.supports)
        # The guide may be that of an earlier run on data of this shape, whose start is replaced.
        svi.guide.init_loc_fn = init_to_value(values=location)
        svi.guide.prototype_trace = None
        state = svi.init(init_key, row)
        elbo = []
        blocks = -(-self.steps // _BLOCK)
        with progress_bar(blocks * _BLOCK, "SVI", progress) as bar:
            for block_key in jax.random.split(step_key, blocks):
                state, losses = _steps(svi, batch, batched, state, block_key)
                elbo.append(-np.asarray(losses))
                bar.update(_BLOCK)
                bar.set_postfix(elbo=f"{elbo[-1].mean():.1f}", refresh=False)
        history = np.concatenate(elbo)
        if (increase := still_rising(history)) is not None:
            warn(worded("still_rising", rise=increase[0], noise=increase[1]), 3)
        values, log_q = _draw(
            svi, tuple(program.sites), row, svi.get_params(state), draw_key, self.draws
        )
        with jax.enable_x64(True):
            values = {name: np.asarray(value, np.float64) for name, value in values.items()}
            log_p = _log_joint_of_draws(model, program.placed(), values)
        stats = {"log_p": np.asarray(log_p)[None], "log_q": np.asarray(log_q, np.float64)[None]}
        facts = {"elbo": float(history[-len(history) // 10 :].mean())}
        return Draws(
            {name: value[None] for name, value in values.items()}, stats, {"elbo": history}, facts
        )


# Units of a mini-batch, and rows of an array that holds so many of them.
_Batch = tuple[int, int]


def _batches(program: Program[Any], units: int, key: Array) -> tuple[_Batch | None, Any]:
    """Size of a mini-batch, and the data that it is a window of, in random order."""
    number = program.data.num_units
    if units == number:
        return None, program.placed()
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    data = jax.tree.map(np.asarray, program.data).take(rng.permutation(number))
    return (units, data.window_rows(units)), placing.placed(data, program.mesh)


@lru_cache(maxsize=32)
def _svi(
    settings: SVI, model: Model[Any], factor: float, shape: Any, supports: Supports
) -> numpyro.infer.SVI:
    """Return NumPyro's SVI; the guide and what is compiled keep the supports of the data."""
    total = -(-settings.steps // _BLOCK) * _BLOCK

    def cosine(step: Array) -> Array:
        return _STEP_SIZE * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(step / total, 1.0)))

    return numpyro.infer.SVI(
        _ScaleOutcomes(model, factor),
        _GUIDES[settings.guide](model, init_scale=0.05),
        numpyro.optim.ClippedAdam(cosine, clip_norm=100.0),
        numpyro.infer.Trace_ELBO(),
    )


@partial(jax.jit, static_argnums=(0, 1))
def _steps(
    svi: numpyro.infer.SVI, size: _Batch | None, data: Any, state: Any, key: Array
) -> tuple[Any, Float[Array, " step"]]:
    """Run a block of optimisation steps, each on a new mini-batch; return the state and losses."""

    def step(state: Any, key: Array) -> tuple[Any, Array]:
        batch = data
        if size is not None:
            batch = data.window(jax.random.randint(key, (), 0, data.num_units), *size)
        return svi.stable_update(state, batch)

    return jax.lax.scan(step, state, jax.random.split(key, _BLOCK))


@partial(jax.jit, static_argnums=(0, 1, 5))
def _draw(
    svi: numpyro.infer.SVI, names: Sites, row: Any, parameters: Any, key: Array, num_draws: int
) -> tuple[Values, Float[Array, " draw"]]:
    """Draw from the guide, and return the draws with their log-densities."""

    def draw(key: Array) -> tuple[Values, Array]:
        log_q, trace = log_density(seed(svi.guide, key), (row,), {}, parameters)
        return {name: trace[name]["value"] for name in names}, log_q

    return jax.lax.map(draw, jax.random.split(key, num_draws))


@partial(jax.jit, static_argnums=0)
def _log_joint_of_draws(model: Model[Any], data: Any, values: Any) -> Array:
    return jax.lax.map(lambda draw: log_joint(model, data, draw), values)


def still_rising(elbo: Float[np.ndarray, " step"]) -> tuple[float, float] | None:
    """Return the rise of the ELBO over the last tenth of the steps; None if it has settled."""
    tenth = max(len(elbo) // 10, 1)
    last, before = elbo[-tenth:], elbo[-2 * tenth : -tenth]
    rise = float(last.mean() - before.mean())
    noise = float(np.sqrt(last.var() / len(last) + before.var() / len(before)))
    return (rise, noise) if not np.isfinite(elbo[-1]) or rise > max(4 * noise, 0.5) else None
