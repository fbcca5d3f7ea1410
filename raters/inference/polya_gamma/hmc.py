"""Hamiltonian Monte Carlo in the metric of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from raters.errors.validation import plain_whole
from raters.inference import base, modes
from raters.inference.arrays import Flat, Rng, Scalar
from raters.inference.nuts import STATISTICS
from raters.inference.polya_gamma import line, plans, sets, unconstrained
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Dense, Diagonal
from raters.inference.polya_gamma.gibbs import PGGibbs
from raters.inference.polya_gamma.laplace import information
from raters.inference.polya_gamma.plans import Plan
from raters.model import Values
from raters.program import Program, log_prior, placing

# Steps between two updates of the progress bar.
_BLOCK = 50
# Mean length of a trajectory, which turns a normal distribution by so much, and shares of it
# between which the length is drawn: with one length, directions that it turns by π would come back
# mirrored, and their squares hardly move.
_LENGTH, _SHORTEST, _LONGEST = 1.8, 0.7, 1.3
# Visits of the orbit of each scale symmetry after a trajectory.
_VISITS = 3
# Most steps of a trajectory.
_MOST = 64
# Error of the energy from which a trajectory counts as divergent, as in NUTS.
_DIVERGENT = 1000.0
# Dual averaging (Hoffman and Gelman 2014, section 3.2).
_GAMMA, _DELAY, _DECAY = 0.05, 10.0, 0.75
_FIRST_STEP, _TARGET = 0.4, 0.8

_MIRROR = 0x6D6972726F72 % 2**31


@dataclass(frozen=True)
class HMC(base.Backend):
    r"""Hamiltonian Monte Carlo in the metric of the rows: exact, and faster than `PGGibbs` where
    log-odds are large.

    Each chain runs some sweeps of `PGGibbs`; the mass matrix is the negative Hessian of the log
    joint density at the mean of their second half, kept positive by the Fisher information of the
    rows. Moves along orbits of scale symmetries and to mirror images follow each trajectory.

    It takes models with up to 2,500 parameters. Where few votes leave competences or learned
    scales open, some trajectories diverge, and `NUTS` is the better choice.

    Parameters
    ----------
    draws : int
        Number of draws of each chain.
    warmup : int
        Number of trajectories that adapt the step size, before the first draw.
    sweeps : int
        Number of Gibbs sweeps before the warm-up.
    chains : int
        Number of chains.

    References
    ----------
    Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo,
    113–162. Shahbaba, B., Lan, S., Johnson, W. O. and Neal, R. M. (2014). Split Hamiltonian Monte
    Carlo. Statistics and Computing 24, 339–349, for the turns.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> model = rt.BTL(reward_scale=1.0)
    >>> result = rt.fit(model, votes, rt.HMC(draws=500), seed=0, progress=False)
    >>> int(result.sample_stats["diverging"].sum())
    0
    """

    draws: int = 1000
    warmup: int = 150
    sweeps: int = 100
    chains: int = 4

    exact: ClassVar[bool] = True

    reference: ClassVar[str] = "neal2011mcmc shahbaba2014split"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", "warmup", "chains")
        plain_whole(self, "sweeps", least=2)

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse what `PGGibbs` refuses, latent classes, choices from sets, and many parameters."""
        if reason := PGGibbs().why_not(program):
            return reason
        if reason := plans.why_one(program):  # The metric is of the rows of one kind of judgement.
            return reason
        if program.counts_classes:
            return "HMC has no metric for latent classes; use PGGibbs or NUTS"
        if sets.chooses(program):
            return "HMC has no metric for choices from sets; use PGGibbs or NUTS"
        size = sum(int(np.prod(site.shape)) for site in program.sites.values())
        if size > DENSE_LIMIT:
            which = f"{program.model.title} has {size:,} parameters here"
            return f"{which}, too many for HMC (at most {DENSE_LIMIT:,}); use PGGibbs"
        return None

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Run the chains, each from the last of some Gibbs sweeps."""
        gibbs_key, key = jax.random.split(key)
        begin = self.sweeps // 2
        gibbs = PGGibbs(draws=self.sweeps - begin, warmup=begin, chains=self.chains)
        swept = gibbs.run(program, gibbs_key, start=start, progress=progress).values
        moves, stop = modes.images(program), Event()
        seeds = base.numpy_seeds(jax.random.fold_in(key, _MIRROR), self.chains)
        total = self.warmup + self.draws
        with jax.enable_x64(True):
            plan = plans.plan(program, {name: value[0, -1] for name, value in swept.items()})
            data = program.placed()
            like = {name: jnp.asarray(value[0, -1]) for name, value in swept.items()}
            run = _Run(self, plan, moves, data, like, stop)
            chains = [
                run.begun({name: value[chain] for name, value in swept.items()}, own)
                for chain, own in enumerate(jax.random.split(key, self.chains))
            ]
            # Compiled here, since NumPyro reads a program in one thread at a time.
            run.advanced(*chains[0], np.random.default_rng(0), 0, adapt=True)
        with base.one_blas_thread(), base.progress_bar(total * self.chains, "HMC", progress) as bar:
            pairs = list(zip(chains, map(np.random.default_rng, seeds), strict=True))
            at_once = self.chains if program.mesh is None else 1
            ends = base.in_threads(
                lambda pair: run.chain(*pair[0], pair[1], bar), pairs, stop, at_once
            )
        values, fields = jax.tree.map(lambda *parts: np.stack(parts), *ends)
        stats = dict(zip(STATISTICS, fields, strict=True))
        return base.Draws(values, stats, facts={"divergences": int(stats["diverging"].sum())})


class _State(NamedTuple):
    """State of a chain: its place, its key, and the adaptation of its step size."""

    place: Flat
    density: Scalar
    key: Array
    log_step: Scalar
    log_mean: Scalar
    error: Scalar
    number: Scalar


@dataclass(frozen=True)
class _Run:
    """Chains of one model on one set of data."""

    settings: HMC
    plan: Plan
    moves: tuple[modes.Images, ...]
    data: Any
    like: Values
    stop: Event

    def begun(self, swept: Values, key: Array) -> tuple[Metric, _State]:
        """Return the metric at the mean of draws, and the state at the last of them."""
        flat = jax.vmap(partial(unconstrained.flat_of, self.plan.supports))(
            {name: jnp.asarray(value) for name, value in swept.items()}
        )
        metric = metric_at(self.plan, self.data, flat.mean(0), self.like)
        place, zero = metric.place(flat[-1]), jnp.zeros(())
        density = density_at(self.plan, self.data, self.like, metric, place)
        first = jnp.log(jnp.asarray(_FIRST_STEP))
        return metric, _State(place, density, key, first, first, zero, zero)

    def advanced(
        self, metric: Metric, state: _State, rng: Rng, steps: int, *, adapt: bool
    ) -> tuple[_State, tuple[Values, Values]]:
        """Return the state after at most `_BLOCK` trajectories, and their draws and statistics."""
        kinds = tuple(move.kind for move in self.moves)
        parts = tuple(dict(move.parts) for move in self.moves)
        tried = modes.tries(self.moves, rng, (_BLOCK,))
        given = self.plan, kinds, self.data, parts, self.like, metric, state, tried, steps, adapt
        return _advance(*given)

    def chain(self, metric: Metric, state: _State, rng: Rng, bar: tqdm) -> tuple[Values, Values]:
        """Run a chain, and return its draws and statistics."""
        blocks, total = [], self.settings.warmup + self.settings.draws
        with jax.enable_x64(True):
            # A block is of warm-up or of draws, never of both.
            for begin, end in ((0, self.settings.warmup), (self.settings.warmup, total)):
                for first in range(begin, end, _BLOCK):
                    if self.stop.is_set():
                        break
                    steps, adapt = min(_BLOCK, end - first), begin == 0
                    state, fields = self.advanced(metric, state, rng, steps, adapt=adapt)
                    if not adapt:
                        blocks.append(jax.tree.map(np.asarray, fields))
                    bar.update(steps)
        return jax.tree.map(lambda *some: np.concatenate(some)[: self.settings.draws], *blocks)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    plan: Plan,
    kinds: tuple[modes.Kind, ...],
    data: Any,
    parts: tuple[modes.Within, ...],
    like: Values,
    metric: Metric,
    state: _State,
    tried: modes.Tried,
    steps: int,
    adapt: bool,
) -> tuple[_State, tuple[Values, Values]]:
    """Run at most `_BLOCK` trajectories of a chain."""
    row = data.take(slice(0, 1))

    density = partial(density_at, plan, data, like, metric)
    slope = jax.grad(density)

    def trajectory(index: int, carry: tuple[_State, Any]) -> tuple[_State, Any]:
        state, fields = carry
        key, momentum_key, size_key, accept_key, orbit_key = jax.random.split(state.key, 5)
        step = jnp.exp(jnp.where(adapt, state.log_step, state.log_mean))
        length = _LENGTH * jax.random.uniform(size_key, minval=_SHORTEST, maxval=_LONGEST)
        number = jnp.clip(jnp.ceil(length / step), 1, _MOST).astype(int)
        # Near a normal a step of any size is accepted, and one by 2π would not move at all.
        step = jnp.minimum(step, length / number)
        momentum = jax.random.normal(momentum_key, state.place.shape)

        def leap(which: int, now: tuple[Array, Array]) -> tuple[Array, Array]:
            # The slope stands at one place in the program, which compiles faster. It costs less
            # than the density, which is taken at the ends alone.
            place, momentum = now
            is_end = (which == 0) | (which == number)
            momentum += jnp.where(is_end, step / 2, step) * (slope(place) + place)
            turn = jnp.where(which < number, step, 0.0)
            cosine, sine = jnp.cos(turn), jnp.sin(turn)
            return cosine * place + sine * momentum, cosine * momentum - sine * place

        place, ended = jax.lax.fori_loop(0, number + 1, leap, (state.place, momentum))
        there = density(place)
        error = momentum @ momentum / 2 - state.density
        error = ended @ ended / 2 - there - error
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        rate = jnp.minimum(1.0, jnp.exp(-error))
        moves = jax.random.uniform(accept_key) < rate
        place, there = jnp.where(moves, place, state.place), jnp.where(moves, there, state.density)
        values = unconstrained.sites_at(plan.supports, like, metric.unconstrained(place))[0]
        if plan.scales or kinds:
            images = jax.tree.map(lambda some: some[index], tried)
            values = _moved(plan, kinds, data, row, parts, values, images, orbit_key)
            place = metric.place(unconstrained.flat_of(plan.supports, values))
            there = density(place)
        energy = momentum @ momentum / 2 - state.density
        stats = error > _DIVERGENT, energy, number, rate
        state = _adapted(state._replace(place=place, density=there, key=key), rate)
        return state, jax.tree.map(
            lambda field, value: field.at[index].set(value), fields, (values, stats)
        )

    empty = tuple(jnp.zeros(_BLOCK, kind) for kind in (bool, float, int, float))
    room = {name: jnp.zeros((_BLOCK, *jnp.shape(value))) for name, value in like.items()}
    return jax.lax.fori_loop(0, steps, trajectory, (state, (room, empty)))


def _adapted(state: _State, rate: Scalar) -> _State:
    """Return the state after a step of dual averaging, which what is not adapted does not read."""
    number = state.number + 1
    share = 1 / (number + _DELAY)
    error = (1 - share) * state.error + share * (_TARGET - rate)
    log_step = jnp.log(_FIRST_STEP) - jnp.sqrt(number) / _GAMMA * error
    weight = number**-_DECAY
    log_mean = weight * log_step + (1 - weight) * state.log_mean
    return state._replace(log_step=log_step, log_mean=log_mean, error=error, number=number)


def _moved(
    plan: Plan,
    kinds: tuple[modes.Kind, ...],
    data: Any,
    row: Any,
    parts: tuple[modes.Within, ...],
    values: Values,
    tried: modes.Tried,
    key: Array,
) -> Values:
    """Move along the orbits of scale symmetries, then to mirror images."""
    key, use = jax.random.split(key)
    joint = partial(log_prior, plan.model, row)
    values = line.visit(joint, plan.supports, plan.scales, (), values, use, visits=_VISITS)
    for kind, own, order_and_part in zip(kinds, parts, tried, strict=True):
        key, use = jax.random.split(key)
        whole = data if kind[1] else row
        values = modes.step(plan.model, kind, own, whole, values, order_and_part, use)
    return values


# Least precision of a coordinate, which the prior may not have at a point, and the largest ratio of
# the precision in any direction to that of the rows and the diagonal of the prior.
_LEAST, _APART = 0.1, 10.0


class Metric(NamedTuple):
    """Coordinates in which a normal of a given precision is standard."""

    centre: Flat
    root: Float[Array, "coordinate coordinate"]
    inverse: Float[Array, "coordinate coordinate"]

    def unconstrained(self, place: Flat) -> Flat:
        """Return the unconstrained coordinates of a place."""
        return self.centre + self.inverse @ place

    def place(self, flat: Flat) -> Flat:
        """Return the place at unconstrained coordinates."""
        return self.root @ (flat - self.centre)


def metric_at(plan: Plan, data: Any, centre: Flat, like: Values) -> Metric:
    """Return the metric at a point of unconstrained coordinates."""
    values, slopes, own = _at(plan, placing.first_unit(data), like, centre)
    sites, normal = information(plan, data, jax.tree.map(np.asarray, values))
    assert isinstance(normal, (Dense, Diagonal))  # Of so few parameters.
    rows = normal.precision() if isinstance(normal, Dense) else np.diag(normal.diagonal)
    rows -= np.diag(normal.prior.precision)
    rows -= 0.0 if normal.prior.across is None else normal.prior.across
    # Places of the sites of the blocks among the coordinates, and their slopes along these.
    places = unconstrained.coordinates_of(plan.supports, like, jnp.arange(centre.size, dtype=float))
    where = np.concatenate([np.ravel(places[name]) for name in sites]).astype(int)
    slope = np.concatenate([np.ravel(slopes[name]) for name in sites])
    mass = np.diag(np.maximum(np.asarray(own), _LEAST))
    mass[np.ix_(where, where)] += slope[:, None] * rows * slope
    full = np.asarray(unconstrained.curvature(plan.model, plan.supports, data, like, centre))
    ratio, directions = scipy.linalg.eigh(full, mass)
    across = mass @ directions
    mass = (across * np.clip(ratio, 1 / _APART, _APART)) @ across.T
    lower = scipy.linalg.cholesky(mass, lower=True)
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(mass)), lower=True, trans="T")
    return Metric(centre, jnp.asarray(lower.T), jnp.asarray(inverse))


@partial(jax.jit, static_argnums=0)
def _at(plan: Plan, row: Any, like: Values, flat: Flat) -> tuple[Values, Values, Flat]:
    """Return the values at a point, their slopes, and the curvature of the log prior."""
    values, slopes = jax.jvp(
        lambda flat: unconstrained.sites_at(plan.supports, like, flat)[0],
        (flat,),
        (jnp.ones_like(flat),),
    )

    def density(flat: Array) -> Array:
        values, volume = unconstrained.sites_at(plan.supports, like, flat)
        return log_prior(plan.model, row, values) + volume

    def along(place: Array) -> Array:
        direction = jnp.zeros_like(flat).at[place].set(1.0)
        return -jax.jvp(jax.grad(density), (flat,), (direction,))[1][place]

    own: Array = jax.lax.map(along, jnp.arange(flat.size))
    return values, slopes, own


@partial(jax.jit, static_argnums=0)
def density_at(plan: Plan, data: Any, like: Values, metric: Metric, place: Flat) -> Scalar:
    """Return the log density at a place in the coordinates of a metric, but for a constant."""
    flat = metric.unconstrained(place)
    return unconstrained.log_density(plan.model, plan.supports, data, like, flat)
