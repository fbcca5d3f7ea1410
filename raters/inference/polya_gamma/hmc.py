"""Hamiltonian Monte Carlo in the metric of the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int
from numpyro.distributions import constraints
from numpyro.infer.hmc_util import dual_averaging

from raters.errors.validation import plain_whole
from raters.inference import base, chains, modes
from raters.inference.arrays import Flat, Matrix, Rng, Scalar, Sites
from raters.inference.nuts import STATISTICS
from raters.inference.polya_gamma import detection, line, plans, sweep, unconstrained
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Block
from raters.inference.polya_gamma.sums import How, Reading, sums_of
from raters.model import Scale, Translation, Values, moved_sites, own_sites
from raters.program import Program, Supports, log_joint, log_prior, placing

# Trajectories of a compiled run, after each of which the bar shows progress.
_BLOCK = 50
# Shares of the warm-up after which the metric is found anew, and the step size adapted to it.
_WINDOWS = 0.15, 0.45, 1.0
# Mean length of a trajectory, which turns a normal distribution by so much, and shares of it
# between which the length is drawn: after about a quarter of a turn neither a coordinate nor its
# square, whose mixing R-hat tells as well, depends on where it began.
_LENGTH, _SHORTEST, _LONGEST = 1.7, 0.7, 1.3
# Visits of the orbit of each scale symmetry, and of hyper-parameters, after a trajectory.
_VISITS = 2
# Least and most steps of a trajectory: a single one turns by too much where the density is skew.
_FEWEST, _MOST = 2, 64
# Error of the energy from which a trajectory counts as divergent, as in NUTS.
_DIVERGENT = 1000.0
# First step size, and target acceptance rate of its adaptation.
_FIRST_STEP, _TARGET = 0.4, 0.9


@dataclass(frozen=True)
class HMC(base.Backend):
    r"""Hamiltonian Monte Carlo in the metric of the rows: exact, and faster than `PGGibbs` where
    log-odds are large.

    The mass matrix is the negative Hessian of the log joint density, kept positive by the Fisher
    information of the rows (of choices from sets, and of programs without blocks, by a bound on its
    eigenvalues): at the start, then twice at the mean of the trajectories so far.
    A trajectory stays near a place on the orbit of each scale symmetry; moves along the orbits
    and to mirror images follow it.

    It takes models with up to 2,500 parameters, and of choices and rankings with more. Where few
    votes leave competences or learned scales open, some trajectories diverge, and `PGGibbs` is the
    better choice.

    Parameters
    ----------
    draws : int
        Number of draws of each chain.
    warmup : int
        Number of trajectories that adapt the mass matrix and the step size, before the first draw.
    chains : int
        Number of chains.
    longest : int
        As of `PGGibbs`.

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
    chains: int = 4
    longest: int = 1

    exact: ClassVar[bool] = True

    reference: ClassVar[str] = "neal2011mcmc shahbaba2014split"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", "warmup", "chains", "longest")

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse blocks that `PGGibbs` refuses, latent classes, and many parameters."""
        if reason := super().why_not(program):
            return reason
        if detection.chooses(program):
            return plans.why_not(program)
        if reason := plans.why_one(program):  # The metric is of the rows of one kind of judgement.
            return reason
        try:
            has_blocks = bool(detection.names_of(program))
        except NotImplementedError:  # Of which the plan says more.
            has_blocks = True
        if has_blocks and (reason := plans.why_not(program)):
            return reason
        if program.counts_classes:
            return "HMC has no metric for latent classes; use PGGibbs or NUTS"
        size = sum(int(np.prod(site.shape)) for site in program.sites.values())
        if size > DENSE_LIMIT:
            which = f"{program.model.title} has {size:,} parameters here"
            return f"{which}, too many for HMC (at most {DENSE_LIMIT:,}); use PGGibbs"
        return None

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Run the chains."""
        return run_chains(self, program, key, start, progress)


def run_chains(
    backend: HMC,
    program: Program[Any],
    key: Array,
    start: base.Start,
    progress: bool,
    thin: int = 1,
) -> base.Draws:
    """Run the chains of a back-end, with so many trajectories for each draw."""
    with jax.enable_x64(True):
        cold, starts, rngs = chains.starts_of(program, key, start, backend.chains)
        space = Space.of(program, cold)
        metric = space.metric(space.flat(starts[0]))
        assert metric is not None  # A start has finite derivatives.
        keys = jax.random.split(key, backend.chains)
        each = [
            Trajectories(space, metric, space.flat(values), own, rng)
            for values, own, rng in zip(starts, keys, rngs, strict=True)
        ]
        # Compiled here, since NumPyro reads a program in one thread at a time.
        each[0](0)
    at_once = backend.chains if program.mesh is None else 1
    settings: dict[str, Any] = {"batch": _BLOCK, "at_once": at_once}
    with base.progress_bar(0, "HMC", progress) as bar:
        ends = {math.ceil(share * backend.warmup) for share in _WINDOWS}
        for begin, end in itertools.pairwise((0, *sorted(ends))):
            if begin:
                with jax.enable_x64(True):
                    adapt(each)
            chains.sampled(each, 1, bar, thin=end - begin, **settings)
        for chain in each:
            chain.adapting = False
        settings |= {"longest": backend.longest, "program": program, "thin": thin}
        values, stats, times = chains.sampled(each, backend.draws, bar, **settings)
    facts = {"divergences": sum(one.divergences for one in each)}
    return base.Draws(values, stats, facts=facts | {"times_longer": times})


class State(NamedTuple):
    """Place of a chain, its key, and the adaptation of the log of its step size: the next one, its
    mean, and the state of dual averaging."""

    flat: Flat
    key: Array
    steps: tuple[Array, ...]

    @classmethod
    def at(cls, flat: Flat, key: Array) -> State:
        """Return the state with a step size that is not adapted yet."""
        first, zero = jnp.full((), math.log(_FIRST_STEP), float), jnp.zeros((), float)
        return cls(flat, key, (first, first, zero, jnp.zeros((), int), first))


@partial(
    jax.tree_util.register_dataclass, data_fields=["moves", "data", "like"], meta_fields=["plan"]
)
@dataclass(frozen=True)
class Space:
    """Unconstrained coordinates of a program on its data."""

    plan: Plan
    moves: tuple[modes.Images, ...]
    data: Any
    like: Values

    @classmethod
    def of(cls, program: Program[Any], values: Values) -> Space:
        """Return the coordinates of a program; `values` are any of its sites."""
        plan = plans.plan(program, values)
        plan = replace(plan, supports=unconstrained.by_scores(plan.supports))
        like = {name: jnp.asarray(value, float) for name, value in values.items()}
        data = placing.of_few_sizes(program)
        return cls(plan, modes.images(program), data, like)

    def flat(self, values: Values) -> Flat:
        """Return the coordinates of a point."""
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        return unconstrained.flat_of(self.plan.supports, values)

    def metric(self, centre: Flat, expected: Flat | None = None) -> Metric | None:
        """Return the metric at a point, with the expected curvatures of hyper-parameters; None
        where it is not finite."""
        how = How.of("curvature", self.data)
        return metric_at(self.plan, how, self.data, self.like, centre, expected)


class Trajectories:
    """A chain, whose metric is that of its last trajectories."""

    def __init__(self, space: Space, metric: Metric, flat: Flat, key: Array, rng: Rng) -> None:
        self.space, self.metric, self.rng = space, metric, rng
        self.state, self.total, self.number = State.at(flat, key), jnp.zeros((2, flat.size)), 0
        self.adapting, self.divergences = True, 0

    def adapt(self, metric: Metric | None) -> None:
        """Take a metric, and adapt the step size anew."""
        self.metric = metric or self.metric
        self.state = State.at(self.state.flat, self.state.key)
        self.total, self.number = jnp.zeros_like(self.total), 0

    def __call__(self, number: int) -> tuple[Values, Values]:
        """Return the draws of at most `_BLOCK` trajectories, and their statistics."""
        space = self.space
        tried = modes.tries(space.moves, self.rng, (_BLOCK,))
        given = self.metric, self.state, tried, number, self.adapting
        self.state, total, fields = _advance(space, *given)
        self.total, self.number = self.total + total, self.number + number
        values, stats = jax.tree.map(lambda some: np.asarray(some)[:number], fields)
        stats = dict(zip(STATISTICS, stats, strict=True))
        if not self.adapting:  # Also of trajectories between those that are kept.
            self.divergences += int(stats["diverging"].sum())
        return values, stats


def adapt(each: Sequence[Trajectories]) -> None:
    """Take the metric at the mean of the trajectories since the last one: of all chains, but where
    these may lie in different images of the posterior."""
    space = each[0].space
    means = jnp.stack([chain.total / chain.number for chain in each])
    if not space.moves:
        means = means.mean(0, keepdims=True)
    metrics = [space.metric(*mean) for mean in means]
    for chain, metric in zip(each, itertools.cycle(metrics), strict=False):
        chain.adapt(metric)


@jax.jit
def _advance(
    space: Space, metric: Metric, state: State, tried: modes.Tried, steps: int, adapt: bool
) -> tuple[State, Flat, tuple[Values, Any]]:
    """Run at most `_BLOCK` trajectories of a chain; return the sums of their places, and of their
    squared slopes along hyper-parameters, too."""
    plan, data, like = space.plan, space.data, space.like
    row = data.take(slice(0, 1))
    hyper = numbers_of(plan.supports, like, plan.hyper)

    def density(given: tuple[Any, Values], metric: Metric, place: Flat, moves: Array) -> Scalar:
        data, like = given
        flat = straight(plan, like, metric.unconstrained(place), moves)
        values, volume = unconstrained.sites_at(plan.supports, like, flat)
        apart = positions(plan, values) - metric.position - moves
        joint = log_joint(plan.model, data, like | values) + volume
        return joint - (apart**2).sum() / (2 * _ALONG**2)

    # Any slope keeps volumes, and an end is accepted by its density in double precision.
    # NumPyro's map to correlations takes numbers in double precision alone.
    related = type(constraints.corr_cholesky)
    is_double = any(isinstance(one, related) for one in plan.supports.values())
    narrowed = (lambda tree: tree) if is_double else _in_single
    singly = narrowed((data, like))
    slope = jax.grad(density, 2)

    # Hyper-parameters are those of priors alone, so that one row is as good as all.
    at_row = partial(unconstrained.log_density, plan.model, plan.supports, row, like)

    def trajectory(index: int, carry: tuple[State, Any, Any]) -> tuple[State, Any, Any]:
        state, total, fields = carry
        key, *keys = jax.random.split(state.key, 6)
        along_key, momentum_key, size_key, accept_key, orbit_key = keys
        step = jnp.exp(jnp.where(adapt, state.steps[0], state.steps[1]))
        length = _LENGTH * jax.random.uniform(size_key, minval=_SHORTEST, maxval=_LONGEST)
        # The point stays near a place on each orbit, drawn anew for each trajectory, at which the
        # orbit is straight.
        values = unconstrained.sites_at(plan.supports, like, state.flat)[0]
        moves = positions(plan, values) - metric.position
        moves += _ALONG * jax.random.normal(along_key, moves.shape)
        first = straight(plan, like, state.flat, -moves)
        here = metric.through(first)
        origin, narrow = here.place(first), narrowed((here, moves))
        momentum = here.moving * jax.random.normal(momentum_key, origin.shape)
        if held_sites(plan):
            step /= stiffness(plan, row, like, here)
        number = jnp.clip(jnp.ceil(length / step), _FEWEST, _MOST).astype(int)
        # Near a normal a step of any size is accepted, and one by 2π would not move at all.
        step = jnp.minimum(step, length / number)

        def leap(which: int, now: tuple[Array, Array]) -> tuple[Array, Array]:
            # The slope stands at one place in the program, which compiles faster.
            place, momentum = now
            is_end = (which == 0) | (which == number)
            force = slope(singly, narrow[0], narrowed(place), narrow[1]).astype(float) + place
            momentum += jnp.where(is_end, step / 2, step) * force
            turn = jnp.where(which < number, step, 0.0)
            cosine, sine = jnp.cos(turn), jnp.sin(turn)
            return cosine * place + sine * momentum, cosine * momentum - sine * place

        place, ended = jax.lax.fori_loop(0, number + 1, leap, (origin, momentum))
        ends = jnp.stack([origin, place])
        begun, reached = jax.lax.map(lambda end: density((data, like), here, end, moves), ends)
        energy = momentum @ momentum / 2 - begun
        error = ended @ ended / 2 - reached - energy
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        rate = jnp.minimum(1.0, jnp.exp(-error))
        accepted = jax.random.uniform(accept_key) < rate
        proposed = straight(plan, like, here.unconstrained(place), moves)
        accepted &= jnp.isfinite(proposed).all()
        flat = jnp.where(accepted, proposed, state.flat)
        values = unconstrained.sites_at(plan.supports, like, flat)[0]
        images = jax.tree.map(lambda some: some[index], tried)
        values = _moved(space, row, values, images, orbit_key)
        # At a start without effects their learned scale would vanish; and a point on a bound, to
        # rounding, has no coordinates.
        moved = unconstrained.flat_of(plan.supports, values)
        follows = (accepted | jnp.logical_not(adapt)) & jnp.isfinite(moved).all()
        flat = jnp.where(follows, moved, flat)
        values = unconstrained.sites_at(plan.supports, like, flat)[0]
        state = state._replace(flat=flat, key=key)
        slopes = jnp.zeros_like(flat).at[hyper].set(jax.grad(at_row)(flat)[hyper])
        total += jnp.stack([flat, slopes**2])
        adapted = state._replace(steps=dual_averaging()[1](_TARGET - rate, state.steps))
        state = jax.tree.map(partial(jnp.where, adapt), adapted, state)
        drawn = values, (error > _DIVERGENT, energy, number, rate)
        fields = jax.tree.map(lambda field, value: field.at[index].set(value), fields, drawn)
        return state, total, fields

    empty = tuple(jnp.zeros(_BLOCK, kind) for kind in (bool, float, int, float))
    room = {name: jnp.zeros((_BLOCK, *jnp.shape(value))) for name, value in like.items()}
    begin = state, jnp.zeros((2, state.flat.size)), (room, empty)
    return jax.lax.fori_loop(0, steps, trajectory, begin)


def stiffness(plan: Plan, row: Any, like: Values, metric: Metric) -> Scalar:
    """Return how many times shorter steps are where the sites that stay make priors narrow: the
    same at all points of a trajectory, since it is taken at the centre."""

    def prior(flat: Flat) -> Scalar:
        values = unconstrained.sites_at(plan.supports, like, flat)[0]
        return log_prior(plan.model, row, like | values)

    precision = -jax.jvp(jax.grad(prior), (metric.centre,), (metric.moving,))[1]
    size = metric.spread.at[metric.near].set((metric.root**2).sum(0) ** -0.5)
    return jnp.sqrt((precision * size**2).max(initial=1.0))


def _in_single[Tree](tree: Tree) -> Tree:
    """Return numbers in single precision, and all else as it is."""
    return jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, tree)


def positions(plan: Plan, values: Values) -> Float[Array, " scale"]:
    """Return the place of a point on each orbit: of a scale the log of a factor, of a translation
    the mean of its column."""

    def log_norm(names: Sites) -> Scalar:
        # Finite where all are 0, as at a start.
        return jnp.log(0.01 + sum((values[name] ** 2).sum() for name in names)) / 2

    each = [
        values[one.site][..., one.column].mean()
        if isinstance(one, Translation)
        else (log_norm(one.up) - log_norm(one.down)) / 2
        for one in plan.orbits
    ]
    return jnp.stack(each) if each else jnp.zeros(0)


def straight(plan: Plan, like: Values, flat: Flat, moves: Array) -> Flat:
    """Return the coordinates after a move along each orbit of the sites without two bounds."""
    each = unconstrained.coordinates_of(plan.supports, like, flat)
    kept = [n for n, one in plan.supports.items() if not isinstance(one, constraints.interval)]
    orbits = [plans.within(one, kept) if isinstance(one, Scale) else one for one in plan.orbits]
    names = tuple(dict.fromkeys(name for one in orbits for name in moved_sites(one)))
    values = unconstrained.placed(plan.supports, {name: each[name] for name in names})[0]
    for symmetry, move in zip(orbits, moves, strict=True):
        values = line.orbit(values, symmetry, move)
    each |= unconstrained.coordinates(plan.supports, values, names)
    return ravel_pytree(each)[0].astype(flat.dtype)


def _moved(space: Space, row: Any, values: Values, tried: modes.Tried, key: Array) -> Values:
    """Move along orbits, draw hyper-parameters by slices, alone and with what they govern, and step
    to images."""
    plan, data = space.plan, space.data
    orbit_key, woven_key, image_key = jax.random.split(key, 3)
    joint = partial(log_prior, plan.model, row)
    given = plan.supports, plan.orbits, plan.hyper, values, orbit_key
    values = line.visit(joint, *given, visits=_VISITS)
    values = sweep.interwoven(plan, row, data, values, woven_key)
    return modes.step(plan.model, space.moves, data, row, values, tried, image_key)


# Least precision of a coordinate of a block, which the prior may not have at a point, and of one of
# no block, whose curvature at a point says little of that elsewhere; least and largest ratio of the
# precision in any direction to that of the rows and the diagonal of the prior.
_LEAST, _LEAST_FREE, _LEAST_RATIO, _LARGEST_RATIO = 0.1, 0.5, 0.3, 10.0
# Least curvature along a hyper-parameter, as a share of what is expected.
_EXPECTED = 0.5
# Products that give the diagonal of a Hessian.
_PROBES = 16
# Standard deviation of the place on an orbit during a trajectory, in logs: orbits bend, and have
# moves of their own.
_ALONG = 0.1


class Metric(NamedTuple):
    """Coordinates in which a normal of a given precision is standard; of many coordinates, those
    of the largest sites, which are not `near`, are independent in it given the near ones, from
    which they have a `slope`, and those with a `spread` of 0 do not move."""

    centre: Flat
    root: Float[Array, "near near"]
    inverse: Float[Array, "near near"]
    position: Float[Array, " scale"]
    near: Int[Array, " near"]
    spread: Flat
    slope: Float[Array, "near coordinate"]

    def unconstrained(self, place: Flat) -> Flat:
        """Return the unconstrained coordinates of a place."""
        if len(self.near) == len(place):
            return self.centre + self.inverse @ place
        near = self.inverse @ place[self.near]
        flat = self.centre + self.spread * place - near @ self.slope
        return flat.at[self.near].set(self.centre[self.near] + near)

    def place(self, flat: Flat) -> Flat:
        """Return the place at unconstrained coordinates."""
        apart = flat - self.centre
        if len(self.near) == len(flat):
            return self.root @ apart
        near = apart[self.near]
        far = (apart + near @ self.slope) / jnp.where(self.spread > 0, self.spread, jnp.inf)
        return far.at[self.near].set(self.root @ near)

    @property
    def moving(self) -> Any:
        """1 for coordinates that move, 0 for others."""
        return (self.spread > 0).astype(self.centre.dtype)

    def through(self, flat: Flat) -> Metric:
        """Return the metric with the coordinates that do not move at those of a point."""
        return self._replace(centre=jnp.where(self.spread > 0, self.centre, flat))


def metric_at(
    plan: Plan, how: How, data: Any, like: Values, centre: Flat, expected: Flat | None = None
) -> Metric | None:
    r"""Return the metric at a point of unconstrained coordinates; None where it is not finite.

    At the mean of what it governs the curvature along a hyper-parameter may be a hundredth of that
    at most draws, which is expected to be the mean square of the slope,
    :math:`-E[\partial^2 \log p] = E[(\partial \log p)^2]`.
    """
    found = jax.tree.map(np.asarray, _curvatures(plan, how, data, like, centre))
    where, of_blocks, full, position, slopes, near, diagonal, slope = found
    if expected is not None:
        lacking = _EXPECTED * np.asarray(expected)[near] - np.diag(full)
        full = full + np.diag(np.maximum(lacking, 0.0))
    along = slopes[:, near].T @ slopes[:, near] / _ALONG**2
    mass = np.diag(np.maximum(np.diag(full), _LEAST_FREE))
    mass[np.ix_(where, where)] = of_blocks
    mass, full = mass + along, full + along
    if not np.isfinite(mass + full).all():
        return None
    root, inverse = _root(mass, full) if len(near) else (mass, mass)
    spread = 1 / np.sqrt(diagonal + (slopes**2).sum(0) / _ALONG**2)
    return Metric(centre, *map(jnp.asarray, (root, inverse, position, near, spread, slope)))


def _root(mass: Matrix, full: Matrix) -> tuple[Matrix, Matrix]:
    """Return a root of a negative Hessian, kept near the mass, and the inverse of the root."""
    lower = scipy.linalg.cholesky(mass, lower=True)
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
    ratio, directions = scipy.linalg.eigh(inverse @ full @ inverse.T)
    size = np.sqrt(np.clip(ratio, _LEAST_RATIO, _LARGEST_RATIO))
    return size[:, None] * (lower @ directions).T, inverse.T @ directions / size


def _near_sites(plan: Plan, like: Values) -> Supports:
    """Return the supports of sites that together have few coordinates: all but the largest, vectors
    of single judges, and, of choices, the hyper-parameters, which are drawn by slices alone."""
    far = {*held_sites(plan), *own_sites(plan.model)}
    moved = [name for name in plan.supports if name not in far]
    kept = sorted(moved, key=lambda name: jnp.size(like[name]))
    while sum(jnp.size(like[name]) for name in kept) > DENSE_LIMIT:
        kept.pop()
    return Supports({name: plan.supports[name] for name in moved if name in kept})


@partial(jax.jit, static_argnums=(0, 1))
def _curvatures(plan: Plan, how: How, data: Any, like: Values, centre: Flat) -> tuple[Array, ...]:
    """Return the places of the sites with a precision of their own among the near coordinates, this
    precision, the negative Hessian of the near ones with the others at their modes, the places on
    orbits with their slopes, the places of the near coordinates, the diagonal of the negative
    Hessian of the others, and their slope along the near ones."""
    model, supports = plan.model, plan.supports
    values, slopes = jax.jvp(
        lambda flat: unconstrained.sites_at(supports, like, flat)[0],
        (centre,),
        (jnp.ones_like(centre),),
    )
    near = _near_sites(plan, like)
    number, held = (numbers_of(supports, like, names) for names in (sorted(near), held_sites(plan)))
    full = unconstrained.curvature(model, supports, data, like, centre, number)
    diagonal = jnp.maximum(_diagonal(plan, number, held, data, like, centre), _LEAST)
    diagonal = diagonal.at[held].set(jnp.inf)
    across = full.at[:, number].set(0.0)
    slope_of_others = across / diagonal
    full = full[:, number] - across @ slope_of_others.T
    own = {name: like[name] for name in near}
    places = unconstrained.coordinates_of(near, own, jnp.arange(number.size, dtype=float))
    block = Block(tuple(name for block in plan.blocks for name in block.sites))
    if plan.chooses or not plan.blocks:
        steep = [jnp.ravel(places[name]).astype(int) for name in plan.steep if name in near]
        where = jnp.concatenate([jnp.zeros(0, int), *steep])
        precision = _positive(full[jnp.ix_(where, where)], [one.size for one in steep])
    else:
        where = block.flat(places).astype(int)
        if any(one.colours for one in plan.blocks):
            block = Block(block.sites, colours=tuple(range(len(block.flat(values)))))
        sums = sums_of(Reading(model, block, data, values), None, how)
        slope = block.flat(slopes)
        precision = jnp.diag(sums.diagonal + sums.prior.precision)
        precision += 0.0 if sums.across is None else sums.across
        precision += 0.0 if sums.prior.across is None else sums.prior.across
        precision = slope[:, None] * precision * slope
        precision += jnp.diag(jnp.maximum(_LEAST - jnp.diag(precision), 0.0))

    def along(flat: Flat) -> Array:
        return positions(plan, unconstrained.sites_at(supports, like, flat)[0])

    found = where, precision, full, along(centre), jax.jacrev(along)(centre), number
    return *found, diagonal, slope_of_others


def _positive(precision: Array, sizes: list[int]) -> Array:
    """Return a negative Hessian, that of each site alone where there is no maximum, bounded from
    below."""
    if not sizes:
        return precision
    site = np.repeat(np.arange(len(sizes)), sizes)
    alone = precision * (site[:, None] == site)
    if len(sizes) > 1:
        precision = jnp.where(jnp.linalg.eigvalsh(precision)[0] > 0, precision, alone)
    least, vectors = jnp.linalg.eigh(precision)
    return (vectors * jnp.maximum(least, _LEAST)) @ vectors.T


def numbers_of(supports: Supports, like: Values, names: Sequence[str]) -> Int[Array, " part"]:
    """Return the places of the coordinates of some sites."""
    size = sum(jnp.size(like[name]) for name in supports)
    places = unconstrained.coordinates_of(supports, like, jnp.arange(size, dtype=float))
    return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(places[n]) for n in names)]).astype(int)


def held_sites(plan: Plan) -> Sites:
    """Return the sites that trajectories leave where they are: the scale of the worths of few
    rankings and the worths together are a funnel, which one metric does not suit."""
    return tuple(name for name in plan.hyper if plan.chooses and name in plan.supports)


def _diagonal(plan: Plan, near: Array, held: Array, data: Any, like: Values, centre: Flat) -> Flat:
    """Return the diagonal of the negative Hessian of the coordinates that are not near, by products
    with random signs, which are exact where these are independent of each other given the near ones
    (Bekas, Kokiopoulou and Saad 2007)."""
    if near.size + held.size == centre.size:
        return jnp.ones_like(centre)
    density = partial(unconstrained.log_density, plan.model, plan.supports, data, like)
    signs = jax.random.rademacher(jax.random.key(0), (_PROBES, centre.size), centre.dtype)
    signs = signs.at[:, near].set(0.0).at[:, held].set(0.0)
    product = jax.lax.map(lambda sign: -jax.jvp(jax.grad(density), (centre,), (sign,))[1], signs)
    return (signs * product).mean(0)
