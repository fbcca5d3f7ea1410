r"""Blocks in which the utilities of choices from sets are affine: log-concave, and not Gaussian.

With rows :math:`A_S` of a set, the softmax p of their utilities, the times y that each was chosen
out of :math:`n_S`, and a normal prior of mean m and precision Λ, slope and curvature are

.. math::

    g = A^\top (y - n p) - \Lambda (b - m), \qquad
    H = A^\top \mathrm{diag}(n p) A - \sum_S n_S (A_S^\top p_S)(A_S^\top p_S)^\top + \Lambda .
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
import scipy.linalg
import scipy.sparse
from jaxtyping import Float
from numpyro.distributions import constraints

from raters.distributions.choices import Choice, PlackettLuce
from raters.distributions.normals import ScaledReal
from raters.distributions.ties import Davidson
from raters.inference.arrays import Entries, Matrix, Points, Rng
from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Conditional, Dense, Gaussian
from raters.inference.polya_gamma.rows import Block, Rows, block_prior, record
from raters.inference.polya_gamma.set_likelihood import (
    Likelihood,
    Separate,
    Sets,
    likelihood_of_sets,
    sets_of,
)
from raters.model import Model, Values
from raters.program import PooledRows, Program, Supports, placing, scattered, trace

# Under learned scales proposals are made at the mode under the nearest of some precisions, whose
# logarithms are so far apart: 10 % of a scale hardly move a mode. The modes that are kept have at
# most so many numbers.
_PRECISION_STEP, _MOST_KEPT = 0.2, 20_000_000
_MOST_STEPS = 100
# Newton's method converges quadratically: after a step of this length the next one is rounding.
_LAST_STEP = 1e-8
# Newton decrement at which proposals are made: near the mode, in standard deviations, is enough,
# but at a point that the current one has no part in.
_NEAR = 1e-2
BOUNDED = "a prior is bounded, and its entries meet in the utilities of a set"
# Degrees of freedom: of few coefficients the tails matter more than the centre (measured with 9
# coefficients, 10 items and 87 items).
_FEW, _HEAVY, _LIGHT = 10, 8, 30
# Proposals of a draw: more where they cost little beside the rest of a sweep, as on equal sets put
# together, and of many entries, of which fewer are taken (28 % for 87 items, 90 % for 10).
_MANY, _TRIES, _CHEAP_TRIES, _MORE_TRIES = 20, 2, 4, 16
# Proposals are made for one sweep, then for twice as many each time: for so many at most, and with
# so many utilities.
_MOST_SWEEPS, _MOST_UTILITIES = 64, 1_000_000


class Tries(NamedTuple):
    """Proposals of one draw."""

    points: Float[np.ndarray, "entry try"]
    log_ratio: Float[np.ndarray, "*entry try"]
    level: Float[np.ndarray, "*entry try"]


class Proposals:
    """A t distribution at the mode of a conditional, and draws of it that no sweep has used."""

    def __init__(self, mode: Entries, factor: Matrix, likelihood: Likelihood) -> None:
        self.mode, self.factor, self.likelihood = mode, factor, likelihood
        self._freedom = _HEAVY if len(mode) < _FEW else _LIGHT
        few = _CHEAP_TRIES if likelihood.is_cheap else _TRIES
        self._tries = few if len(mode) < _MANY else _MORE_TRIES
        self._sweeps = 0
        self._ahead: list[Tries] = []

    def take(self, rng: Rng) -> Tries:
        """Return the proposals of a sweep."""
        if not self._ahead:
            utilities = self._tries * (len(self.mode) + self.likelihood.num_cells)
            most = min(2 * self._sweeps, _MOST_SWEEPS, _MOST_UTILITIES // utilities)
            self._sweeps = max(1, most)
            points, level = self._drawn(rng, self._sweeps * self._tries)
            log_ratio = self._log_likelihood(points) - self.log_density(points)
            firsts = range(0, points.shape[1], self._tries)
            parts = (np.s_[..., first : first + self._tries] for first in firsts)
            self._ahead = [Tries(points[at], log_ratio[at], level[at]) for at in parts]
        return self._ahead.pop()

    def log_density(self, points: Points) -> np.ndarray:
        """Return the log density at some points, but for a constant."""
        from_mode = self.factor.T @ (points - self.mode[:, None])
        return log_t((from_mode**2).sum(0), len(self.mode), self._freedom)

    def _drawn(self, rng: Rng, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points, and the levels of each."""
        normal = rng.standard_normal((len(self.mode), number))
        wide = np.sqrt(rng.chisquare(self._freedom, number) / self._freedom)
        apart = scipy.linalg.solve_triangular(
            self.factor, normal / wide, lower=True, trans="T", check_finite=False
        )
        return self.mode[:, None] + apart, np.log(rng.uniform(size=number))

    def _log_likelihood(self, points: Points) -> np.ndarray:
        return self.likelihood.at(points)


class SeparateProposals(Proposals):
    """Proposals of entries that share no set: each is drawn by itself."""

    likelihood: Separate

    def __init__(self, mode: Entries, factor: Entries, likelihood: Separate) -> None:
        super().__init__(mode, factor, likelihood)
        self._freedom, self._tries = _HEAVY, _TRIES

    def log_density(self, points: Points) -> np.ndarray:
        from_mode = (points - self.mode[:, None]) * self.factor[:, None]
        return log_t(from_mode**2, 1, self._freedom)

    def _drawn(self, rng: Rng, number: int) -> tuple[np.ndarray, np.ndarray]:
        shape = len(self.mode), number
        wide = np.sqrt(rng.chisquare(self._freedom, shape) / self._freedom)
        apart = rng.standard_normal(shape) / wide / self.factor[:, None]
        return self.mode[:, None] + apart, np.log(rng.uniform(size=shape))

    def _log_likelihood(self, points: Points) -> np.ndarray:
        return self.likelihood.of_each(points)


def log_t(square: np.ndarray, size: int, freedom: int) -> np.ndarray:
    """Log density of a t distribution, but for a constant, at the square of a distance."""
    return np.asarray(-(freedom + size) / 2 * np.log1p(square / freedom))


# Proposals at the mode of a block, by the prior that it is under.
Modes = dict[bytes, Proposals]


def chooses(program: Program[Any]) -> bool:
    """Return whether the observed distribution of a program chooses from sets."""
    choosing = (Choice, Davidson, PlackettLuce, dist.CategoricalLogits)
    return issubclass(program.observed_type, choosing)


def is_unbounded(supports: Supports, site: str) -> bool:
    """Return whether a site is on the whole real line."""
    return isinstance(supports[site], (type(constraints.real), ScaledReal))


def why_not(program: Program[Any], values: Values, blocks: tuple[Block, ...]) -> str | None:
    """Explain why a block of utilities cannot be updated, or return None."""
    for block in blocks:
        if block.kind in ("counts", "class"):  # They have no utilities.
            continue
        size = len(block.current(values))
        bounded = not all(is_unbounded(program.supports, name) for name in block.sites)
        if not bounded and size <= DENSE_LIMIT:
            continue
        model, sample = program.model, program.sample(20)
        classes = latent_classes.expected_in(program, sample, values)
        rows, sets = jax.tree.map(np.asarray, _read(model, sample, values, block, classes))
        if isinstance(likelihood_of_sets(rows, sets), Separate):
            continue
        if bounded:
            return BOUNDED
        return f"block {block.sites} has {size:,} entries that meet in sets (at most {DENSE_LIMIT})"
    return None


@partial(jax.jit, static_argnums=(0, 3))
def _read(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any
) -> tuple[Rows, Sets]:
    """Record the rows of a block, and read the sets that they are in."""
    rows = record(model, data, values, block, classes).stacked()
    site = trace(model, data, values)[model.observed]
    sets = sets_of(site["fn"], classes, site["value"])
    assert sets is not None
    if block.kind == "type":
        num_types = classes.shape[-1]
        code, number, place = jax.tree.map(
            lambda part: part.reshape(-1, num_types)[:, block.column], sets
        )
        sets = Sets(code // num_types, number, place)
    return rows, sets


_prior = jax.jit(block_prior, static_argnums=(0, 3))


@dataclass
class RunCache:
    """Parts of conditionals that stay as they are during a run."""

    steady: frozenset[Block]
    likelihoods: dict[Block, Likelihood] = field(default_factory=dict)
    last: dict[Block, tuple[bytes, SetConditional]] = field(default_factory=dict)
    starts: dict[Block, list[np.ndarray]] = field(default_factory=dict)
    modes: dict[Block, Modes] = field(default_factory=dict)
    first: Any = None
    constant: float | None = None
    pooled: PooledRows | None = None
    parts: dict[str, RunCache] = field(default_factory=dict)

    def of_part(self, name: str, steady: frozenset[Block]) -> RunCache:
        """Return what is kept of one kind of judgement; of the only one, all."""
        if not name:
            return self
        return self.parts.setdefault(name, RunCache(steady))

    def row(self, data: Any) -> Any:
        """Return the first row of the data, which is sliced once."""
        if self.first is None:
            self.first = placing.first_unit(data)
        return self.first


def conditional_of(reading: Any, cache: RunCache) -> Conditional:
    """Return the conditional of a block of utilities."""
    block, values = reading.block, reading.values
    at = reading.model, reading.data, values, block, reading.classes, cache
    if block not in cache.steady:
        likelihood, prior = read(*at)
        return under(prior, likelihood, cache, block)
    others = b"".join(
        np.asarray(value).tobytes() for name, value in values.items() if name not in block.sites
    )
    known, conditional = cache.last.get(block, (None, None))
    if conditional is None or known != others:
        likelihood, prior = read(*at)
        conditional = under(prior, likelihood, cache, block)
        if prior.across is None:
            conditional.modes = cache.modes.setdefault(block, {})
        cache.last[block] = others, conditional
    return conditional


def read(
    model: Model[Any], data: Any, values: Values, block: Block, classes: Any, cache: RunCache | None
) -> tuple[Likelihood, Gaussian]:
    """Return the likelihood of a block, of a steady one as it was read first, and its prior."""
    if cache is not None and block in cache.likelihoods:
        prior = jax.tree.map(np.asarray, _prior(model, cache.row(data), values, block.sites))
        return cache.likelihoods[block], prior
    rows, sets = jax.tree.map(np.asarray, _read(model, data, values, block, classes))
    likelihood = likelihood_of_sets(rows, sets)
    if cache is not None and block in cache.steady:
        cache.likelihoods[block] = likelihood
    return likelihood, rows.prior


def under(
    prior: Gaussian, likelihood: Likelihood, cache: RunCache | None, block: Block
) -> SetConditional:
    """Return the conditional of a block under a prior."""
    separate = isinstance(likelihood, Separate) and prior.across is None
    kind = SeparateConditional if separate else SetConditional
    starts = cache.starts.setdefault(block, []) if cache else []
    return kind(prior, likelihood, starts)


def curved(likelihood: Likelihood, prior: Gaussian, at: np.ndarray) -> Dense:
    """Return the normal with the slope and the curvature of the conditional at a point."""
    normal = Dense(prior)
    _, slope, curvature = likelihood.expanded(at)
    normal.diagonal += np.diag(curvature)
    normal.across += curvature - np.diag(np.diag(curvature))
    normal.shift += slope + curvature @ at
    return normal


class SetConditional(Conditional):
    """Full conditional of a block of utilities: log-concave; draws are proposals at its mode."""

    proposing: type[Proposals] = Proposals

    def __init__(
        self, prior: Gaussian, likelihood: Likelihood, starts: list[np.ndarray] | None = None
    ) -> None:
        super().__init__(prior)
        self.likelihood, self.starts = likelihood, [] if starts is None else starts
        self.modes: Modes | None = None
        self._proposals: Proposals | None = None
        self._drawn: tuple[np.ndarray, float] | None = None

    def log_density(self, entries: Points) -> Float[np.ndarray, " point"]:
        """Return the log density at some points, but for a constant."""
        apart = entries - self.prior.mean[:, None]
        return np.asarray(self.likelihood.at(entries) - self.prior.square(apart) / 2)

    def log_likelihood(self, entries: np.ndarray) -> float:
        """Return the log-likelihood at a point."""
        return float(self.likelihood.at(np.asarray(entries, np.float64)[:, None])[0])

    def slope(self, current: np.ndarray) -> np.ndarray:
        slope = self.likelihood.expanded(current)[1]
        return np.asarray(slope - self.prior.times(current - self.prior.mean))

    def product(self, entries: np.ndarray) -> np.ndarray:
        raise NotImplementedError("the conditional of utilities has no constant precision")

    def _climbed(self, start: np.ndarray, near: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return the mode, up to `near` standard deviations, and the factor of the curvature."""
        entries = np.asarray(start, np.float64)
        density, diagonal = float(self.log_density(entries[:, None])[0]), np.diag_indices(self.size)
        for _ in range(_MOST_STEPS):
            _, slope, curvature = self.likelihood.expanded(entries)
            slope = slope - self.prior.times(entries - self.prior.mean)
            if self.prior.across is not None:
                curvature = curvature + self.prior.across
            # Under a nearly flat prior the sets leave a shift open, beyond rounding.
            curvature[diagonal] = (curvature[diagonal] + self.prior.precision) * (1 + 1e-12)
            factor = scipy.linalg.cholesky(curvature, lower=True, check_finite=False)
            step = scipy.linalg.cho_solve((factor, True), slope, check_finite=False)
            length = float(np.max(np.abs(step), initial=0.0))
            if length < _LAST_STEP or slope @ step < near**2:
                return entries + step, factor
            ahead = entries + step
            there = float(self.log_density(ahead[:, None])[0])
            # Below the rounding error of the density a step is as good as its slope.
            while not there >= density - 1e-12 * (1 + abs(density)) and length > _LAST_STEP:
                step, length = step / 2, length / 2
                ahead = entries + step
                there = float(self.log_density(ahead[:, None])[0])
            entries, density = ahead, there
        return entries, factor

    def mode(self, current: np.ndarray) -> np.ndarray:
        return self._climbed(current)[0]

    def _at_mode(self) -> Proposals:
        """Return proposals at the mode, which must not depend on the current point."""
        mode, factor = self._climbed(self.starts[0] if self.starts else self.prior.mean, _NEAR)
        if not self.starts:
            self.starts.append(mode)
        return self.proposing(mode, factor, self.likelihood)

    def _for_draws(self) -> Proposals:
        """Return proposals at the mode, where they are kept under the nearest prior on a grid."""
        if self.modes is None:
            return self._at_mode()
        with np.errstate(divide="ignore"):  # A flat prior stays flat.
            power = np.round(np.log(self.prior.precision) / _PRECISION_STEP)
        key = power.tobytes() + self.prior.mean.tobytes()
        if key not in self.modes:
            prior = self.prior._replace(precision=np.exp(_PRECISION_STEP * power))
            found = type(self)(prior, self.likelihood, self.starts)._at_mode()
            while self.modes and (len(self.modes) + 1) * found.factor.size > _MOST_KEPT:
                del self.modes[next(iter(self.modes))]
            self.modes[key] = found
        return self.modes[key]

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        if self._proposals is None:
            self._proposals = self._for_draws()
        points, log_ratio, level = self._proposals.take(rng)
        apart, place = points - self.prior.mean[:, None], None
        ratios = (log_ratio - self.prior.square(apart) / 2).tolist()
        here = self._log_ratio_at(current, self._proposals)
        for other, (there, least) in enumerate(zip(ratios, level.tolist(), strict=True)):
            if least < there - here:
                place, here = other, there
        drawn = np.array(current if place is None else points[:, place])
        self._drawn = drawn, here
        return drawn.copy()

    def _log_ratio_at(self, current: np.ndarray, proposals: Proposals) -> float:
        """Return the log density less that of the proposals at a point."""
        if self._drawn is not None and np.array_equal(self._drawn[0], current):
            return self._drawn[1]
        point = np.asarray(current)[:, None]
        return float((self.log_density(point) - proposals.log_density(point))[0])


class SeparateConditional(SetConditional):
    """Full conditional of a block whose entries share no set: independent."""

    likelihood: Separate
    proposing = SeparateProposals

    def _slopes(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope and the negative curvature of the log density along each entry."""
        slope, curvature = self.likelihood.slopes(entries)
        slope = slope - self.prior.precision * (entries - self.prior.mean)
        # A flat prior has no curvature, and an entry without choices then none at all.
        flat = 1 / np.minimum(self.prior.high - self.prior.low, 1e100) ** 2
        return slope, np.maximum(curvature + self.prior.precision, flat)

    def of_each(self, entries: Entries) -> Entries:
        """Return the log density of each entry, but for a constant."""
        return np.asarray(self._densities(entries[:, None])[:, 0])

    def _densities(self, entries: Points) -> np.ndarray:
        """Return the log density of each entry at some points; −∞ outside of the bounds."""
        return np.asarray(self.likelihood.of_each(entries) + self._log_prior(entries))

    def _log_prior(self, entries: Points) -> np.ndarray:
        """Return the log prior density of each entry at some points, but for a constant."""
        low, high = self.prior.low[:, None], self.prior.high[:, None]
        inside = (entries >= low) & (entries <= high)
        apart = entries - self.prior.mean[:, None]
        return np.where(inside, -self.prior.precision[:, None] * apart**2 / 2, -np.inf)

    def slope(self, current: np.ndarray) -> np.ndarray:
        return self._slopes(current)[0]

    def _climbed(self, start: np.ndarray, near: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Go to the mode of each entry, or within `near` standard deviations of it."""
        entries = np.clip(np.asarray(start, np.float64), self.prior.low, self.prior.high)
        density = self._densities(entries[:, None])[:, 0]
        for _ in range(_MOST_STEPS):
            slope, curvature = self._slopes(entries)
            step = slope / curvature
            ahead = np.clip(entries + step, self.prior.low, self.prior.high)
            length, root = np.abs(ahead - entries), np.sqrt(curvature)
            if np.max(length, initial=0.0) < _LAST_STEP or np.all(length * root < near):
                return ahead, root
            there = self._densities(ahead[:, None])[:, 0]
            while (down := there < density - 1e-12 * (1 + np.abs(density))).any():
                ahead = np.where(down, (entries + ahead) / 2, ahead)
                if np.max(np.abs(ahead - entries)[down]) < _LAST_STEP:
                    break
                there = self._densities(ahead[:, None])[:, 0]
            entries, density = ahead, there
        return entries, np.sqrt(curvature)

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        if self._proposals is None:
            self._proposals = self._for_draws()
        points, log_ratio, level = self._proposals.take(rng)
        ratios = log_ratio + self._log_prior(points)
        drawn = np.array(current)
        here = self._densities(drawn[:, None]) - self._proposals.log_density(drawn[:, None])
        here = here[:, 0]
        for point, there, least in zip(points.T, ratios.T, level.T, strict=True):
            taken = least < there - here
            drawn, here = np.where(taken, point, drawn), np.where(taken, there, here)
        return drawn


def steady_blocks(
    program: Program[Any], values: Values, blocks: tuple[Block, ...]
) -> frozenset[Block]:
    """Return the blocks whose rows are the same at two random points."""
    if program.counts_classes:
        return frozenset()
    sample = program.sample()
    rng = np.random.default_rng(0)
    points = [scattered(values, program.supports, rng, least=0.3) for _ in range(2)]

    def constant(block: Block) -> bool:
        first, second = (_read(program.model, sample, at, block, None)[0] for at in points)
        parts = ((np.asarray(a.weight), np.asarray(a.offset)) for a in (first, second))
        return all(
            a.shape == b.shape and np.allclose(a, b, atol=1e-9) for a, b in zip(*parts, strict=True)
        )

    return frozenset(block for block in blocks if constant(block))
