"""Mode of the sites of a panel, everybody's own vectors integrated out."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special
from jaxtyping import Array, Float, Int
from numpyro.distributions.transforms import biject_to

from raters.inference.arrays import EntryArray, Flat, FlatPoint, Matrix, Rng, Scalar, Sites, Vectors
from raters.inference.base import Draws
from raters.inference.polya_gamma.panel_gibbs import Reference, at_modes, climbed, normals, referred
from raters.inference.polya_gamma.panels import Names, Panel, factors, log_t, panel_of
from raters.inference.polya_gamma.rows import split
from raters.inference.polya_gamma.unconstrained import maximised, placed
from raters.model import Model, Values
from raters.program import Program, Supports, log_prior

# Rounds of maximisation, each at new points, steps of each, and the gains, in nats, below which few
# points and more are done with: those that suit one round differ by more from those of another.
_ROUNDS, _STEPS, _GAINS = 30, 20, (0.5, 0.05)
# Slope, in nats by standard deviation, at which a round ends.
_SLOPE = 0.02
# Step of the differences of slopes that give the curvature, in standard deviations.
_STEP = 1e-2


# Shifts, and degrees of freedom of the t distribution, which has half of the points. Judges who
# always choose alike have a prior cut off on one side, which it does not reach: with a ninth of
# the points from the prior, the sum over 752 people was off by 30 nats, and its error said 2.
SHIFTS, _OWN_FREEDOM = 4, 20
# Error of the sum over judges, in nats, above which there are more points, and most of them.
_WANTED, _LARGEST = 0.35, 1024
# Utility of what is not offered, in single precision.
_LOWEST = -1e30
# Bits of the points, which shifts flip.
_BITS = 30
_CELLS = float(2**_BITS)
FEW, SOME, POINTS, MANY = 8, 32, 64, 128


class Points(NamedTuple):
    """Points from which those of each judge are made."""

    apart: Float[np.ndarray, "judge shift point entry"]
    white: Float[np.ndarray, "judge shift point entry"]


def points_of(judges: int, size: int, seed: int, per_shift: int = POINTS) -> Points:
    """Return the points of each judge."""
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)

    def shifted(number: int, axes: int) -> np.ndarray:
        nets = [qmc.Sobol(axes, scramble=True, rng=rng).random(number) for _ in range(SHIFTS)]
        base = (np.stack(nets) * _CELLS).astype(np.uint32)
        shift = rng.integers(2**_BITS, size=(judges, SHIFTS, 1, axes), dtype=np.uint32)
        return np.asarray(((base ^ shift) + 0.5) / _CELLS)

    unit = shifted(per_shift, size + 1)
    wide = np.sqrt(2 * scipy.special.gammaincinv(_OWN_FREEDOM / 2, unit[..., size:]) / _OWN_FREEDOM)
    white = scipy.special.ndtri(shifted(per_shift, size))
    return Points(scipy.special.ndtri(unit[..., :size]) / wide, white)


class Drawn(NamedTuple):
    """Vectors at which the likelihood is averaged."""

    vectors: Float[np.ndarray, "judge point entry"]
    utility: Float[np.ndarray, "place set point"]
    log_density: Float[np.ndarray, "judge point"]


def drawn(
    panel: Panel, reference: Reference, of_all: np.ndarray, factor: np.ndarray, points: Points
) -> Drawn:
    """Return vectors from the proposals of each judge."""
    own = normals(panel, reference, of_all, factor)
    near = own.mean[:, None, None] + np.matmul(points.apart, own.root.transpose(0, 2, 1)[:, None])
    vectors = np.concatenate([near, points.white @ factor.T], axis=2)
    vectors = vectors.reshape(len(vectors), -1, panel.num_own)
    of_sets = vectors.astype(np.float32)[panel.judge].transpose(0, 2, 1)
    utility = np.matmul(panel.own.astype(np.float32)[:, :, None], of_sets)[:, :, 0]
    square = (np.matmul(vectors - own.mean[:, None], own.factor) ** 2).sum(2)
    density = np.logaddexp(
        _log_t_density(square, panel.num_own) + own.log_volume[:, None],
        _own_log_prior(vectors, factor),
    )
    return Drawn(vectors, utility, density - np.log(2))


def _log_t_density(square: np.ndarray, size: int) -> np.ndarray:
    """Return the log density of a t distribution at the square of a distance from its centre."""
    half = (_OWN_FREEDOM + size) / 2
    constant = scipy.special.gammaln(half) - scipy.special.gammaln(_OWN_FREEDOM / 2)
    constant -= size / 2 * np.log(_OWN_FREEDOM * np.pi)
    return np.asarray(constant + log_t(square, size, _OWN_FREEDOM))


def _own_log_prior(
    vectors: Float[np.ndarray, "judge point entry"], factor: np.ndarray
) -> np.ndarray:
    """Return the log density of the vectors under their prior."""
    square = ((vectors @ np.linalg.inv(factor).T) ** 2).sum(2)
    constant = len(factor) / 2 * np.log(2 * np.pi) + np.log(np.abs(factor.diagonal())).sum()
    return np.asarray(-square / 2 - constant)


class Averages(NamedTuple):
    """Integrated likelihoods."""

    log_mean: Float[np.ndarray, " judge"]
    error: Float[np.ndarray, " judge"]
    weight: Float[np.ndarray, "judge point"]

    @property
    def log_likelihood(self) -> Float[np.ndarray, " judge"]:
        """Logarithms of the likelihoods without their bias."""
        return np.asarray(self.log_mean + self.error**2 / 2)

    @property
    def total_error(self) -> float:
        """Standard error of the sum over judges."""
        return float(np.sqrt((self.error**2).sum()))


def averaged(panel: Panel, at: Drawn, of_all: np.ndarray, factor: np.ndarray) -> Averages:
    """Return the likelihood of each judge's choices with their vector integrated out."""
    return _averaged(at, factor, _likelihoods(panel, at, of_all)[0])


def averaged_choices(
    panel: Panel, at: Drawn, of_all: np.ndarray, factor: np.ndarray
) -> tuple[Averages, Float[np.ndarray, "place set"]]:
    """Return the same, and the expected choices of each place under the judges' posteriors."""
    log_likelihood, exps, total = _likelihoods(panel, at, of_all)
    own = _averaged(at, factor, log_likelihood)
    share = own.weight[panel.judge] * panel.number[:, None] / total
    expected = np.matmul(exps.transpose(1, 0, 2), share.astype(np.float32)[:, :, None])
    return own, np.asarray(expected[:, :, 0].T, np.float64)


def _likelihoods(
    panel: Panel, at: Drawn, of_all: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log-likelihoods at the points, e to the utilities, and its sums, in float32."""
    exps = np.maximum(of_all, _LOWEST).astype(np.float32)[:, :, None] + at.utility
    exps -= exps.max(0)
    taken = np.matmul(panel.chosen.T.astype(np.float32)[:, None], exps.transpose(1, 0, 2))[:, 0]
    np.exp(exps, out=exps)
    total = exps.sum(0)
    number = panel.number.astype(np.float32)[:, None]
    return panel.by_judge(taken - number * np.log(total)), exps, total


def _averaged(
    at: Drawn, factor: np.ndarray, log_likelihood: Float[np.ndarray, "judge point"]
) -> Averages:
    log_weight = log_likelihood - at.log_density + _own_log_prior(at.vectors, factor)
    top = log_weight.max(1, keepdims=True)
    weight = np.exp(log_weight - top)
    mean = weight.mean(1)
    of_shifts = weight.reshape(len(weight), SHIFTS, -1).mean(2)
    error = of_shifts.std(1, ddof=1) / np.sqrt(SHIFTS) / mean
    return Averages(np.log(mean) + top[:, 0], error, weight / weight.sum(1, keepdims=True))


def log_likelihoods(
    program: Program[Any], draws: Values
) -> tuple[Float[np.ndarray, "draw judge"], float]:
    """Log-likelihood of each judge's choices under draws, their own vectors integrated out."""
    with jax.enable_x64(True):
        number = len(next(iter(draws.values())))
        at = [{name: value[place] for name, value in draws.items()} for place in range(number)]
        panel = panel_of(program, at[0])
        mean = {name: value.mean(0) for name, value in draws.items()}
        reference, points = _suited(panel, mean)
        rows, errors = [], []
        for values in at:
            found = _averaged_at(panel, reference, values, points)
            rows.append(found.log_likelihood)
            errors.append(found.total_error)
    return np.stack(rows), float(np.median(errors))


def _averaged_at(panel: Panel, reference: Reference, values: Values, points: Points) -> Averages:
    given = panel.given(values)
    return averaged(panel, drawn(panel, reference, *given, points), *given)


def _suited(panel: Panel, values: Values) -> tuple[Reference, Points]:
    """Return the expansion that suits some values, and as many points as the error asks for."""
    reference, given = at_modes(panel, values), panel.given(values)
    pilot = drawn(panel, reference, *given, points_of(panel.num_judges, panel.num_own, 1))
    own = own_means(averaged(panel, pilot, *given), pilot)
    reference, number = referred(panel, own, reference.both), POINTS
    while True:
        points = points_of(panel.num_judges, panel.num_own, 0, number)
        found = _averaged_at(panel, reference, values, points)
        if found.total_error < _WANTED or number >= _LARGEST:
            return reference, points
        number *= 2


def places_drawn(weight: Float[np.ndarray, "judge point"], rng: Rng) -> Int[np.ndarray, " judge"]:
    """Return a point of each judge, drawn in proportion to the weights."""
    level = rng.uniform(size=(len(weight), 1))
    places: np.ndarray = (weight.cumsum(1) < level).sum(1)
    return np.asarray(np.minimum(places, weight.shape[1] - 1))


class Mode(NamedTuple):
    """Mode of the shared sites and of what the priors of the vectors depend on."""

    values: Values
    point: FlatPoint
    curvature: Float[np.ndarray, "coordinate coordinate"]
    log_likelihood: float
    error: float
    history: Float[np.ndarray, " round"]


class Marginal:
    """Density of the sites of a panel but the vectors of the judges, which are integrated out."""

    def __init__(self, panel: Panel, values: Values, with_curvature: bool = True) -> None:
        self.panel, self.with_curvature, program = panel, with_curvature, panel.program
        self.program, self.row = program, panel.first
        self.names = (*panel.names.scales, *panel.names.hyper)
        self.values, self.reference = climbed(panel, values)
        self.points = points_of(panel.num_judges, panel.num_own, 0, FEW)
        coordinates = [
            np.ravel(biject_to(program.supports[name]).inv(jnp.asarray(self.values[name])))
            for name in self.names
        ]
        self.first = np.concatenate([panel.shared_of(self.values), *coordinates])
        self.num_shared = panel.shared.shape[2]

    def at(self, point: FlatPoint) -> Values:
        """Return the values at a point, the vectors as they were."""
        shared = self.panel.put(self.values, shared=point[: self.num_shared])
        hyper = jnp.asarray(point[self.num_shared :])
        other = _placed(self.program.supports, self.names, _shapes(self), hyper)[0]
        return shared | {name: np.asarray(value) for name, value in other.items()}

    def drawn_at(self, point: np.ndarray) -> Drawn:
        """Return vectors from proposals that suit a point."""
        given = self.panel.given(self.at(point))
        return drawn(self.panel, self.reference, *given, self.points)

    def averaged(self, point: np.ndarray, at: Drawn) -> Averages:
        """Return the likelihood of each judge's choices at a point."""
        return averaged(self.panel, at, *self.panel.given(self.at(point)))

    def slopes(
        self, point: np.ndarray, at: Drawn, is_centred: bool = False
    ) -> tuple[float, np.ndarray, Float[np.ndarray, "judge coordinate"]]:
        """Return the log density at a point, its slope, and that of each judge's likelihood."""
        panel, number = self.panel, self.num_shared
        shapes, hyper = _shapes(self), jnp.asarray(point[number:])
        prior = _prior(
            self.program.model, self.program.supports, panel.names, self.names, shapes,
            self.row, self.values, jnp.asarray(point[:number]), hyper,
        )  # fmt: skip
        density, (of_shared, of_hyper), precision, volume = jax.tree.map(np.asarray, prior)
        of_all, factor = panel.given(self.at(point))
        # Fisher's identity: the slope is the mean of that of the likelihood with the vector known.
        found, expected = averaged_choices(panel, at, of_all, factor)
        rest = panel.chosen - expected
        shared = panel.by_judge(np.einsum("js,jsq->sq", rest, panel.shared))
        if is_centred:
            shared = _centred(panel, shared, factor, own_means(found, at))
        moment = np.matmul(at.vectors.transpose(0, 2, 1) * found.weight[:, None], at.vectors)
        by_hyper = -volume - np.einsum("kpq,pqh->kh", moment, precision) / 2
        each = np.concatenate([shared, by_hyper], axis=1)
        slope = each.sum(0) + np.concatenate([of_shared, of_hyper])
        return float(found.log_mean.sum() + density), slope, each

    def mode(self) -> Mode:
        """Maximise by BFGS in rounds, each at points that suit where the last one ended."""
        point: np.ndarray = self.first
        history: list[float] = []
        for number, gain in zip((FEW, SOME), _GAINS, strict=True):
            self.points = points_of(self.panel.num_judges, self.panel.num_own, 0, number)
            point = self._climbed(point, history, gain)
        return self._ended(point, np.array(history))

    def _climbed(self, point: np.ndarray, history: list[float], gain: float) -> np.ndarray:
        best = -np.inf
        for _ in range(_ROUNDS):
            at = self.drawn_at(point)
            before, _, each = self.slopes(point, at)
            # The slopes of few judges do not span all coordinates, and none the shift of constants.
            ridge = np.concatenate(
                [self.panel.prior.precision, np.ones(len(point) - self.num_shared)]
            )
            root = np.linalg.inv(np.linalg.cholesky(each.T @ each + np.diag(ridge))).T
            # Steps from the point are in about standard deviations.
            objective = partial(self._along, point, root, at)
            options = {"maxiter": _STEPS, "gtol": _SLOPE}
            found = maximised(objective, np.zeros(len(point)), method="BFGS", options=options)
            point = point + root @ found.x
            history.append(-found.fun)
            self.refer(point)
            if -found.fun < max(before, best) + gain:
                break
            best = max(best, -found.fun)
        return np.asarray(point)

    def _along(
        self, point: np.ndarray, root: np.ndarray, at: Drawn, step: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the log density and its slope at a step from a point."""
        density, slope, _ = self.slopes(point + root @ step, at)
        return density, root.T @ slope

    def refer(self, point: np.ndarray) -> None:
        """Expand the likelihood of each judge at the mean of their vector."""
        at = self.drawn_at(point)
        own = own_means(self.averaged(point, at), at)
        self.values = self.panel.put(self.at(point), own=own)
        self.reference = referred(self.panel, own, self.panel.both_of(self.values))

    def _ended(self, point: np.ndarray, history: np.ndarray) -> Mode:
        curvature = self._curvature(point) if self.with_curvature else np.eye(len(point))
        # At points that the maximum does not suit by chance.
        self.points = points_of(self.panel.num_judges, self.panel.num_own, 1, MANY)
        found = self.averaged(point, self.drawn_at(point))
        total = float(found.log_likelihood.sum())
        return Mode(self.values, point, curvature, total, found.total_error, history)

    def _curvature(self, point: np.ndarray) -> np.ndarray:
        """Return the negative curvature, by differences of slopes at vectors with common noise."""

        def slope(at: np.ndarray) -> np.ndarray:
            return self.slopes(at, self.drawn_at(at), is_centred=True)[1]

        _, _, each = self.slopes(point, self.drawn_at(point))
        steps = _STEP / np.sqrt((each**2).sum(0) + 1e-12)
        columns = [
            (slope(point - step) - slope(point + step)) / (2 * size)
            for size, step in zip(steps, np.diag(steps), strict=True)
        ]
        curvature = np.stack(columns)
        return np.asarray((curvature + curvature.T) / 2)

    def log_prior(self, point: np.ndarray) -> float:
        """Return the log prior of all sites but the vectors, in the unconstrained coordinates."""
        values, hyper = self.at(point), jnp.asarray(point[self.num_shared :])
        volume = _placed(self.program.supports, self.names, _shapes(self), hyper)[1]
        prior = _log_prior(self.program.model, self.panel.names.own, self.row, values)
        return float(prior + volume)


def own_means(found: Averages, at: Drawn) -> Vectors:
    """Return the mean of everybody's vector under their own posterior."""
    return np.asarray(np.einsum("kr,krp->kp", found.weight, at.vectors))


def _centred(panel: Panel, slope: Vectors, factor: Matrix, mean: Vectors) -> Vectors:
    """Return slopes in the shared sites."""
    of_vectors = scipy.linalg.cho_solve((factor, True), mean.T).T
    return np.asarray(slope + (of_vectors - slope @ panel.common) @ np.linalg.pinv(panel.common))


Shapes = tuple[tuple[int, ...], ...]


def _shapes(marginal: Marginal) -> Shapes:
    """Return the shapes of the unconstrained coordinates."""
    supports, values = marginal.program.supports, marginal.values
    return tuple(
        tuple(biject_to(supports[name]).inverse_shape(np.shape(values[name])))
        for name in marginal.names
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def _placed(supports: Supports, names: Sites, shapes: Shapes, flat: Flat) -> tuple[Values, Scalar]:
    """Return the other sites at their unconstrained coordinates, and the log volume element."""
    like = {name: np.empty(shape) for name, shape in zip(names, shapes, strict=True)}
    return placed(supports, split(flat, like, names))


@partial(jax.jit, static_argnums=(0, 1))
def _log_prior(model: Model[Any], own: Sites, row: Any, values: Values) -> Array:
    return log_prior(model, row, values, without=own)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _prior(
    model: Model[Any],
    supports: Supports,
    names: Names,
    hyper_names: Sites,
    shapes: Shapes,
    row: Any,
    values: Values,
    shared: EntryArray,
    flat: Flat,
) -> tuple[Array, tuple[Array, Array], Array, Array]:
    """Return the log prior without the vectors, its slope, and derivatives of their covariance."""

    def at(shared: Array, flat: Array) -> Values:
        other = _placed(supports, hyper_names, shapes, flat)[0]
        return values | split(shared, values, names.shared) | other

    def density(shared: Array, flat: Array) -> Array:
        own: Array = log_prior(model, row, at(shared, flat), without=names.own)
        return own + _placed(supports, hyper_names, shapes, flat)[1]

    def precision(flat: Array) -> Array:
        factor = factors(model, names.own, row, at(shared, flat))
        inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(factor)), lower=True)
        return inverse.T @ inverse

    def volume(flat: Array) -> Array:
        diagonal = jnp.diagonal(factors(model, names.own, row, at(shared, flat)))
        return jnp.log(jnp.abs(diagonal)).sum()

    value, slope = jax.value_and_grad(density, argnums=(0, 1))(shared, flat)
    return value, slope, jax.jacfwd(precision)(flat), jax.grad(volume)(flat)


# Curvature of what the choices tell nothing of: the logarithm of a spread near 0 has a standard
# deviation of 1, by its prior.
_UNKNOWN = 0.25
# Degrees of freedom of the draws: the logarithm of a spread of which the choices tell little has an
# exponential tail, which the weights of normal draws do not reach.
_FREEDOM = 5


def run(program: Program[Any], draws: int, start: Values, rng: Rng) -> Draws:
    """Return the mode, and draws of a t distribution around it with draws of all vectors."""
    with jax.enable_x64(True):
        panel = panel_of(program, start)
        marginal = Marginal(panel, start, with_curvature=draws > 0)
        mode = marginal.mode()
        values = {name: np.asarray(mode.values[name]) for name in program.sites}
        facts = {"marginal_log_likelihood": mode.log_likelihood, "monte_carlo_error": mode.error}
        history = {"log_joint": mode.history}
        if not draws:
            one = {name: value[None, None] for name, value in values.items()}
            return Draws(one, {}, history, facts, values)
        drawn, stats = _around(marginal, mode, draws, rng)
    return Draws(drawn, stats, history, facts, values)


def _around(marginal: Marginal, mode: Mode, draws: int, rng: Rng) -> tuple[Values, Values]:
    """Return draws around the mode, with their log densities and those of the posterior."""
    panel, size = marginal.panel, len(mode.point)
    least = np.concatenate([panel.prior.precision, np.full(size - marginal.num_shared, _UNKNOWN)])
    root = _root(mode.curvature, least)
    wide = np.sqrt(rng.chisquare(_FREEDOM, (draws, 1)) / _FREEDOM)
    white = rng.standard_normal((draws, size)) / wide
    marginal.points = points_of(panel.num_judges, panel.num_own, int(rng.integers(2**31)), FEW)
    rows, log_p = [], []
    for point in mode.point + white @ root.T:
        at = marginal.drawn_at(point)
        found = marginal.averaged(point, at)
        places = places_drawn(found.weight, rng)
        own = at.vectors[np.arange(len(places)), places]
        rows.append(panel.put(marginal.at(point), own=own))
        log_p.append(found.log_likelihood.sum() + marginal.log_prior(point))
    values = {name: np.stack([row[name] for row in rows])[None] for name in rows[0]}
    log_q = log_t((white**2).sum(1), size, _FREEDOM)
    return values, {"log_p": np.array(log_p)[None], "log_q": log_q[None]}


def _root(
    curvature: Float[np.ndarray, "coordinate coordinate"], least: FlatPoint
) -> Float[np.ndarray, "coordinate coordinate"]:
    """Return a root of the covariance of the draws."""
    unit = 1 / np.sqrt(np.maximum(np.diag(curvature), least))
    eigenvalues, vectors = np.linalg.eigh(curvature * unit[:, None] * unit)
    along = (vectors**2 * (unit**2 * least)[:, None]).sum(0)
    return np.asarray(unit[:, None] * vectors / np.sqrt(np.maximum(eigenvalues, along)))
