"""Hamiltonian Monte Carlo in white coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpyro.distributions import constraints
from numpyro.infer.hmc_util import dual_averaging

from raters.distributions.correlated import unwrapped
from raters.errors.validation import plain_whole
from raters.inference import base, chains, modes
from raters.inference.arrays import Flat, Rng, Scalar, Sites
from raters.inference.polya_gamma import line, unconstrained
from raters.inference.polya_gamma.metric import Metric, curvatures, near_sites, numbers_of
from raters.model import Model, Scale, Translation, Values
from raters.program import Program, Supports, densities, log_joint, log_prior, placing, trace
from raters.program.traces import read_by
from raters.program.whitening import has_white, white

# Statistics of each draw.
STATISTICS = "diverging", "energy", "n_steps", "acceptance_rate"
# Trajectories of a compiled run, after each of which the bar shows progress.
_BLOCK = 50
# Shares of the warm-up after which the metric is found anew, and the step size adapted to it.
_WINDOWS = 0.15, 0.45, 1.0
# Mean length of a trajectory, which turns a normal distribution by so much, and shares of it
# between which the length is drawn: after about a quarter of a turn neither a coordinate nor its
# square, whose mixing R-hat tells as well, depends on where it began.
_LENGTH, _SHORTEST, _LONGEST = 1.7, 0.7, 1.3
# Points at which the curvature is averaged.
_POINTS = 4
# Judgements for each entry of a site from which on its values tell its scale, and where orbits end
# at a bound, which holds the scale back: with fewer, white values mix better.
_MOST_ROWS, _MOST_AT_BOUNDS = 50, 1000
# Bounds of the spread of hyper-parameters in units of the curvature's.
_SPREADS = 0.7, 4.0
# Visits of the orbit of each symmetry, and of hyper-parameters, after a trajectory.
_VISITS = 2
# Least and most steps of a trajectory: a single one turns by too much where the density is skew.
_FEWEST, _MOST = 2, 64
# Error of the energy from which a trajectory counts as divergent, as in NUTS.
_DIVERGENT = 1000.0
# First step size, and target acceptance rate of its adaptation.
_FIRST_STEP, _TARGET = 0.4, 0.95


@dataclass(frozen=True)
class HMC(base.Backend):
    r"""Hamiltonian Monte Carlo in units of the priors: exact, and faster than `PGGibbs` where
    log-odds are large.

    Coordinates of sites with normal priors, truncated or not, are white where the rows are few:
    their prior is standard normal, whatever governs its scale. The mass matrix is the negative
    Hessian of the log joint density with a bound on its eigenvalues: at the start, then twice its
    mean over trajectories, corrected along hyper-parameters by the draws; of more than 2,500
    coordinates those of the largest sites have a diagonal of it. Slices of hyper-parameters, moves
    along the orbits of symmetries and moves to mirror images follow each trajectory.

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
    Carlo. Statistics and Computing 24, 339–349, for the turns. Papaspiliopoulos, O., Roberts, G. O.
    and Sköld, M. (2007). A general framework for the parametrization of hierarchical models.
    Statistical Science 22, 59–73, for white coordinates.

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

    reference: ClassVar[str] = "neal2011mcmc shahbaba2014split papaspiliopoulos2007general"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", "warmup", "chains", "longest")

    def run(
        self,
        program: Program[Any],
        key: Array,
        *,
        start: base.Start = None,
        progress: bool = False,
        thin: int = 1,
    ) -> base.Draws:
        """Run the chains, with so many trajectories for each draw."""
        with jax.enable_x64(True):
            cold, starts, rngs = chains.starts_of(program, key, start, self.chains)
            space = Space.of(program, cold)
            flats = space.starts(cold, starts)
            metric = space.metric(flats[np.zeros(_POINTS, int)], flats[0])
            assert metric is not None  # A start has finite derivatives.
            keys = jax.random.split(key, self.chains)
            each = [
                Trajectories(space, metric, *given) for given in zip(flats, keys, rngs, strict=True)
            ]
            # Compiled here, since NumPyro reads a program in one thread at a time.
            each[0](0)
        at_once = self.chains if program.mesh is None else 1
        settings: dict[str, Any] = {"batch": _BLOCK, "at_once": at_once}
        with base.progress_bar(0, "HMC", progress) as bar:
            ends = {math.ceil(share * self.warmup) for share in _WINDOWS}
            for begin, end in itertools.pairwise((0, *sorted(ends))):
                if begin:
                    with jax.enable_x64(True):
                        adapt(each)
                chains.sampled(each, 1, bar, thin=end - begin, **settings)
            # What suits the middle of a skew posterior is too long in its tails; a chain that is
            # lost does not hold back the others.
            logs = np.array([float(chain.state.steps[1]) for chain in each])
            step: Any = np.asarray(max(logs.min(), np.median(logs) - math.log(2)))
            for chain in each:
                steps = chain.state.steps[0], step, *chain.state.steps[2:]
                chain.adapting, chain.state = False, chain.state._replace(steps=steps)
            settings |= {"longest": self.longest, "program": program, "thin": thin}
            values, stats, times = chains.sampled(each, self.draws, bar, **settings)
        facts = {"divergences": sum(one.divergences for one in each)}
        return base.Draws(values, stats, facts=facts | {"times_longer": times})


class State(NamedTuple):
    """Place of a chain, its key, and the adaptation of the log of its step size: the next one, its
    mean, and the state of dual averaging."""

    flat: Flat
    key: Array
    steps: tuple[Array | np.ndarray, ...]

    @classmethod
    def at(cls, flat: Flat, key: Array) -> State:
        """Return the state with a step size that is not adapted yet."""
        first, zero = np.asarray(math.log(_FIRST_STEP)), np.zeros(())
        return cls(flat, key, (first, first, zero, np.zeros((), int), first))


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["moves", "data", "like"],
    meta_fields=["model", "hyper", "white", "supports"],
)
@dataclass(frozen=True)
class Space:
    """Unconstrained coordinates of a program on its data: white values of most sites.

    Hyper-parameters, `hyper`, enter the likelihood only through other sites.
    """

    model: Model[Any]
    hyper: Supports
    white: Sites
    supports: Supports
    moves: tuple[modes.Images, ...]
    data: Any
    like: Values

    @classmethod
    def of(cls, program: Program[Any], values: Values) -> Space:
        """Return the coordinates of a program; `values` are any of its sites."""
        model, supports, data = program.model, program.supports, placing.of_few_sizes(program)
        read = read_by(partial(densities.pointwise_log_likelihood, model, data), values)
        sites = trace(model, placing.first_unit(program.data), values)
        ends = (name for one in _orbits(model) if isinstance(one, Scale) for name in one.down)
        is_unbounded = partial(unconstrained.is_unbounded, supports)
        most = _MOST_ROWS if all(map(is_unbounded, ends)) else _MOST_AT_BOUNDS
        entries = program.data.num_judgements / most
        few = [name for name in supports if np.size(values[name]) >= entries]
        # Far in a tail scores are infinite.
        own = {name: _white(sites, values, name) for name in few if has_white(sites[name]["fn"])}
        white = tuple(name for name in own if np.isfinite(own[name]).all())
        hyper = Supports({name: one for name, one in supports.items() if name not in read})
        supports = Supports({**supports, **dict.fromkeys(white, constraints.real)})
        supports = unconstrained.by_scores(supports)
        like = {name: jnp.asarray(value, float) for name, value in values.items()}
        return cls(model, hyper, white, supports, modes.images(program), data, like)

    @property
    def row(self) -> Any:
        """A row, which is enough where only priors are needed."""
        return self.data.take(slice(0, 1))

    def narrowed[Tree](self, tree: Tree) -> Tree:
        """Return numbers in single precision; where there are correlations as they are, since
        NumPyro's map to these takes no others."""
        related = type(constraints.corr_cholesky)
        if any(isinstance(one, related) for one in self.supports.values()):
            return tree
        return jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == float else x, tree)

    def density(self, data: Any, like: Values, flat: Flat) -> Scalar:
        """Return the log density of coordinates."""
        values, volume = unconstrained.sites_at(self.supports, like, flat)
        return log_joint(self.model, data, like | values, self.white) + volume

    def values(self, flat: Flat) -> Values:
        """Return the sites at coordinates."""
        values = unconstrained.sites_at(self.supports, self.like, flat)[0]
        sites = trace(self.model, self.row, self.like | values, self.white)
        return {name: sites[name]["value"] for name in self.like}

    def flat(self, values: Values) -> Flat:
        """Return the coordinates of a point."""
        values = {name: jnp.asarray(value, float) for name, value in values.items()}
        sites = trace(self.model, self.row, values)
        own = {name: _white(sites, values, name) for name in self.white}
        return unconstrained.flat_of(self.supports, values | own)

    def starts(self, cold: Values, starts: Sequence[Values]) -> Float[np.ndarray, "_ coordinate"]:
        """Return the coordinates of the starts of chains."""
        found = np.asarray(_flats(self, jax.tree.map(lambda *some: np.stack(some), cold, *starts)))
        # On a bound, to rounding, a point has no coordinates.
        return np.where(np.isfinite(found), found, found[0])[1:]

    @property
    def moves_along(self) -> bool:
        """True where chains move between trajectories."""
        return bool(_orbits(self.model) or self.hyper or self.moves)

    def moved(self, flat: Flat, tried: modes.Tried, key: Array, follows: Array) -> Flat:
        """Move along orbits, draw hyper-parameters given all else by slices, and step to images,
        where that follows: a scale that is learned at a start without effects would vanish."""
        model, row, hyper = self.model, self.row, self.hyper
        orbit_key, image_key = jax.random.split(key)
        given = partial(log_prior, model, row), hyper, _orbits(model), tuple(hyper)
        values = line.visit(*given, self.values(flat), orbit_key, visits=_VISITS)
        values = modes.step(model, self.moves, self.data, row, values, tried, image_key)
        there = self.flat(values)
        # A point on a bound, to rounding, has no coordinates.
        return jnp.where(follows & jnp.isfinite(there).all(), there, flat)

    def metric(self, points: Float[np.ndarray, "point coordinate"], centre: Any) -> Metric | None:
        """Return the metric about a centre of the mean curvature at some points; None where it is
        not finite."""
        near, *found = map(np.asarray, _curvatures(self, points))
        return Metric.of(centre, near, *(one.astype(float) for one in found))


def _orbits(model: Model[Any]) -> tuple[Scale | Translation, ...]:
    """Return the orbits along which chains move: those of scales, and translations."""
    return tuple(one for one in model.symmetries if isinstance(one, Scale | Translation))


def _white(sites: Mapping[str, Any], values: Values, name: str) -> Array:
    """Return the white values of a site of a trace."""
    return white(unwrapped(sites[name]["fn"]), values[name])


class Trajectories:
    """A chain, whose metric is that of its last trajectories."""

    def __init__(self, space: Space, metric: Metric, flat: Flat, key: Array, rng: Rng) -> None:
        self.space, self.metric, self.rng = space, metric, rng
        self.state, self.places = State.at(flat, key), list[np.ndarray]()
        self.adapting, self.divergences = True, 0

    def __call__(self, number: int) -> tuple[Values, Values]:
        """Return the draws of at most `_BLOCK` trajectories, and their statistics."""
        space = self.space
        tried = modes.tries(space.moves, self.rng, (_BLOCK,))
        given = self.metric, self.state, tried, number, self.adapting
        self.state, fields = _advance(space, *given)
        flats, values, stats = jax.tree.map(lambda some: np.asarray(some)[:number], fields)
        stats = dict(zip(STATISTICS, stats, strict=True))
        if self.adapting:
            self.places.append(flats)
        else:  # Also of trajectories between those that are kept.
            self.divergences += int(stats["diverging"].sum())
        return values, stats


def adapt(each: Sequence[Trajectories]) -> None:
    """Adapt the step sizes anew, in the metric of the trajectories since the last one: of all
    chains, but where these may lie in different images of the posterior."""
    space = each[0].space
    places = np.stack([np.concatenate(chain.places) for chain in each], 1)
    numbers = numbers_of(space.supports, space.like, tuple(space.hyper))
    found, apart = list[tuple[Metric, Any]](), []
    for some in np.split(places, len(each), 1) if space.moves else [places]:
        own = some.reshape(-1, places.shape[2])
        late = np.linspace(len(own) // 2, len(own) - 1, _POINTS).round().astype(int)
        metric = space.metric(own[late], own.mean(0)) or each[len(found)].metric
        axes = metric.axes(numbers[np.isin(numbers, metric.near)])
        apart.append((own - metric.centre)[len(own) // 3 :, metric.near] @ metric.root.T @ axes)
        found.append((metric, axes))
    # The curvature at a few points says less of hyper-parameters than the draws do; the root of
    # their spread, since steps get shorter where the metric is wider.
    spread = np.clip(np.concatenate(apart).std(0), *_SPREADS) ** 0.5
    for chain, (metric, axes) in zip(each, itertools.cycle(found), strict=False):
        chain.metric, chain.places = metric.stretched(axes, spread), []
        chain.state = State.at(chain.state.flat, chain.state.key)


@jax.jit
def _advance(
    space: Space, metric: Metric, state: State, tried: modes.Tried, steps: int, adapt: bool
) -> tuple[State, Any]:
    """Run at most `_BLOCK` trajectories of a chain; return their places, draws and statistics."""
    data, like = space.data, space.like

    def density(given: tuple[Any, Values], metric: Metric, place: Flat) -> Scalar:
        return space.density(*given, metric.unconstrained(place))

    # Any slope keeps volumes, and an end is accepted by its density in double precision.
    singly = space.narrowed(((data, like), metric))
    slope = jax.grad(density, 2)

    def trajectory(index: int, carry: tuple[State, Any]) -> tuple[State, Any]:
        state, fields = carry
        key, momentum_key, size_key, accept_key, move_key = jax.random.split(state.key, 5)
        step = jnp.exp(jnp.where(adapt, state.steps[0], state.steps[1]))
        length = _LENGTH * jax.random.uniform(size_key, minval=_SHORTEST, maxval=_LONGEST)
        origin = metric.place(state.flat)
        momentum = jax.random.normal(momentum_key, origin.shape)
        number = jnp.clip(jnp.ceil(length / step), _FEWEST, _MOST).astype(int)
        # Near a normal a step of any size is accepted, and one by 2π would not move at all.
        step = jnp.minimum(step, length / number)

        def leap(which: int, now: tuple[Array, Array]) -> tuple[Array, Array]:
            # The slope stands at one place in the program, which compiles faster.
            place, momentum = now
            is_end = (which == 0) | (which == number)
            force = slope(*singly, space.narrowed(place)).astype(float) + place
            momentum += jnp.where(is_end, step / 2, step) * force
            turn = jnp.where(which < number, step, 0.0)
            cosine, sine = jnp.cos(turn), jnp.sin(turn)
            return cosine * place + sine * momentum, cosine * momentum - sine * place

        place, ended = jax.lax.fori_loop(0, number + 1, leap, (origin, momentum))
        ends = jnp.stack([origin, place])
        begun, reached = jax.lax.map(partial(density, (data, like), metric), ends)
        energy = momentum @ momentum / 2 - begun
        error = ended @ ended / 2 - reached - energy
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        rate = jnp.minimum(1.0, jnp.exp(-error))
        accepted = jax.random.uniform(accept_key) < rate
        flat = jnp.where(accepted, metric.unconstrained(place), state.flat)
        if space.moves_along:
            images = jax.tree.map(lambda some: some[index], tried)
            flat = space.moved(flat, images, move_key, accepted | jnp.logical_not(adapt))
        values = space.values(flat)
        adapted = state._replace(steps=dual_averaging()[1](_TARGET - rate, state.steps))
        state = jax.tree.map(partial(jnp.where, adapt), adapted, state)
        drawn = flat, values, (error > _DIVERGENT, energy, number, rate)
        fields = jax.tree.map(lambda field, value: field.at[index].set(value), fields, drawn)
        return state._replace(flat=flat, key=key), fields

    empty = tuple(jnp.zeros(_BLOCK, kind) for kind in (bool, float, int, float))
    room = {name: jnp.zeros((_BLOCK, *jnp.shape(value))) for name, value in like.items()}
    flats = jnp.zeros((_BLOCK, state.flat.size))
    return jax.lax.fori_loop(0, steps, trajectory, (state, (flats, room, empty)))


@jax.jit
def _flats(space: Space, points: Values) -> Float[Array, "point coordinate"]:
    """Return the coordinates of several points."""
    return jax.lax.map(space.flat, points)


@jax.jit
def _curvatures(space: Space, points: Float[Array, "point coordinate"]) -> tuple[Array, ...]:
    """Return the mean curvatures at some points."""
    near = near_sites(space.model, space.like)
    density = partial(space.density, *space.narrowed((space.data, space.like)))
    number = numbers_of(space.supports, space.like, near)
    each = jax.lax.map(partial(curvatures, density, number), space.narrowed(points))
    return number, *(one.mean(0) for one in each)
