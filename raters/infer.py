"""Pólya-Gamma Gibbs sampling as a kernel of NumPyro's `numpyro.infer.MCMC`."""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int
from numpyro import handlers
from numpyro.infer import HMC, NUTS, init_to_uniform
from numpyro.infer.hmc import hmc
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import initialize_model, potential_energy
from numpyro.primitives import Messenger
from numpyro.util import is_prng_key

from raters.errors import NotConjugateError, refuse
from raters.inference.arrays import PerRow
from raters.inference.polya_gamma.augmentation import draw_series
from raters.inference.polya_gamma.conditionals import Gaussian
from raters.inference.polya_gamma.rows import Rows
from raters.inference.polya_gamma.sums import How, Sums, added, log_integral, solved

__all__ = ["PolyaGamma"]

Values = dict[str, Array]
Entries = Float[Array, " entry"]
# Entries of a block whose precision is a dense matrix, of several sites that are one block, and of
# a block that is integrated out of the density of the other sites.
_DENSE, _JOINT, _INTEGRATED = 600, 500, 120
# Numbers of a dense design, which is faster than rows of more entries than this.
_MOST_NUMBERS, _MOST_SLOTS = 20_000_000, 8
# Largest second difference of what is affine, relative to its size in single precision.
_BEND, _CLOSE = 2e-5, 1e-5
_GIVEN = "_polya_gamma"
_WRAPPED = (dist.Independent, dist.ExpandedDistribution, dist.MaskedDistribution)


class _Terms(NamedTuple):
    """Terms κu − (weight + ω)u²/2 + constant of the log density, with ω ~ PG(trials, u)."""

    u: PerRow
    trials: PerRow
    kappa: PerRow
    weight: PerRow
    constant: PerRow


def _terms(site: dict[str, Any]) -> _Terms | None:
    """Return the terms of a site whose log density is quadratic in u; None of another one."""
    fn, value = site["fn"], site["value"]
    times = _along(_scale(site), fn)
    for one in _layers(fn):
        if isinstance(one, dist.MaskedDistribution):
            times = times * _along(one._mask, one)
    fn = _layers(fn)[-1]
    parts: tuple[Any, ...]
    if type(fn) in (dist.BernoulliLogits, dist.BinomialLogits):
        count = fn.total_count if isinstance(fn, dist.BinomialLogits) else 1.0
        parts = (fn.logits, times * count, times * (value - count / 2), 0.0, 0.0)
    elif type(fn) is dist.Normal:
        u = (value - fn.loc) / fn.scale
        parts = (u, 0.0, 0.0, times, -times * jnp.log(fn.scale))
    elif type(fn) is dist.MultivariateNormal:
        apart = value - fn.loc
        factor = jnp.broadcast_to(fn.scale_tril, (*apart.shape, apart.shape[-1]))
        u = solve_triangular(factor, apart[..., None], lower=True)[..., 0]
        log_scale = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1))
        parts = (u, 0.0, 0.0, times, -times * log_scale)
    else:
        return None
    arrays = jnp.broadcast_arrays(*(jnp.asarray(part, float) for part in parts))
    return _Terms(*map(jnp.ravel, arrays))


def _scale(site: dict[str, Any]) -> Any:
    return 1.0 if site["scale"] is None else site["scale"]


def _layers(fn: dist.Distribution) -> list[dist.Distribution]:
    """Return a distribution and those that it wraps."""
    layers = [fn]
    while isinstance(layers[-1], _WRAPPED):
        layers.append(layers[-1].base_dist)
    return layers


def _along(of_batch: Any, fn: dist.Distribution) -> Array:
    """Append the axes of an event to an array along the batch."""
    return jnp.reshape(jnp.asarray(of_batch, float), jnp.shape(of_batch) + (1,) * fn.event_dim)


def _trace(model: Any, args: Any, kwargs: Any, values: Values) -> dict[str, Any]:
    seeded = handlers.seed(handlers.substitute(model, data=values), jax.random.key(0))
    sites: dict[str, Any] = handlers.trace(seeded).get_trace(*args, **kwargs)
    return {name: site for name, site in sites.items() if site["type"] == "sample"}


@dataclass(frozen=True)
class _Block:
    """Latent sites that are normal together given ω, with their terms and the entries touched."""

    shapes: dict[str, tuple[int, ...]]
    terms: tuple[str, ...]
    entries: dict[str, Int[np.ndarray, "slot row"] | None]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First entry and number of entries of each site."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        return list(zip(itertools.accumulate(sizes, initial=0), sizes, strict=False))

    @property
    def size(self) -> int:
        return sum(size for _, size in self.spans)

    def join(self, values: Values) -> Entries:
        return jnp.concatenate([jnp.ravel(values[name]) for name in self.shapes])

    def split(self, entries: Entries) -> Values:
        parts = zip(self.shapes.items(), self.spans, strict=True)
        return {name: entries[at : at + size].reshape(shape) for (name, shape), (at, size) in parts}


class _Reading(NamedTuple):
    """Rows of a block, as the engine asks for them."""

    given: Rows
    division: None = None

    def rows(self) -> Rows:
        return self.given


_Parts = list[tuple[_Reading, Sums]]


def _linear(run: Any, block: _Block, values: Values, omega: Values) -> tuple[Any, _Terms]:
    """Return the derivative of the rows of a block, and their terms, weighted by ω too."""

    def rows(entries: Entries) -> tuple[PerRow, _Terms]:
        sites = run(values | block.split(entries))
        each = {name: _terms(sites[name]) for name in block.terms}
        own = [
            one._replace(weight=one.weight + omega.get(name, 0.0))
            for name, one in each.items()
            if one is not None
        ]
        terms = _Terms(*map(jnp.concatenate, zip(*own, strict=True)))
        return terms.u, terms

    _, push, terms = jax.linearize(rows, block.join(values), has_aux=True)
    return push, terms


def _read(run: Any, block: _Block, values: Values, omega: Values) -> _Parts:
    """Return the rows of a block around its current entries, and their sums; the terms of the log
    density that do not depend on the entries are its log-likelihood."""
    if not block.terms:
        return []
    push, terms = _linear(run, block, values, omega)
    entry, slope = _columns(push, block)
    flat = jnp.zeros(block.size)
    prior = Gaussian(flat, flat, flat - jnp.inf, flat + jnp.inf)
    rows = Rows(jnp.asarray(entry), slope, terms.u, terms.u, terms.kappa, terms.trials, prior)
    if len(entry) > _MOST_SLOTS:
        number = np.arange(entry.shape[1])
        design = jnp.zeros((len(number), block.size)).at[number, entry].add(slope)
        rows = rows._replace(entry=None, weight=design)
    level = jnp.sum(terms.kappa * terms.u - terms.weight * terms.u**2 / 2 + terms.constant)
    sums = added(rows, terms.weight, _how(), None)
    return [(_Reading(rows), sums._replace(log_likelihood=level))]


def _how() -> How:
    return How("given", accelerated=jax.default_backend() != "cpu", limit=_DENSE)


def _log_integral(parts: _Parts) -> Array:
    """Return the log of the density of some rows, integrated over their block."""
    sums = [one for _, one in parts]
    return log_integral(sums) + sum(one.log_likelihood for one in sums)


def _drawn(block: _Block, values: Values, parts: _Parts, key: Array) -> Values:
    """Draw a block, from the way to new entries."""
    readings, sums = map(list, zip(*parts, strict=True))
    step = solved(readings, sums, jnp.zeros(block.size), key, _how())
    return block.split(block.join(values) + step)


def _digits(size: int) -> Float[np.ndarray, "bit entry"]:
    """Return the binary digits of the numbers of entries."""
    digits = np.arange(max((size - 1).bit_length(), 1))
    return (np.arange(size) >> digits[:, None] & 1).astype(np.float32)


def _columns(push: Any, block: _Block) -> tuple[Int[np.ndarray, "slot row"], Array]:
    """Return the entries that rows touch, and derivatives along them; of a site where a row touches
    two at most, by the binary digits of entries, of others along each entry."""
    sites = list(zip(block.spans, block.entries.values(), strict=True))
    directions = []
    for (at, size), entry in sites:
        own = np.eye(size) if entry is None else np.ones((1, size))
        if entry is not None and len(entry) > 1:
            own = np.concatenate([own, _digits(size)])
        directions.append(np.pad(own, ((0, 0), (at, block.size - at - size))))
    along = jax.vmap(push)(jnp.asarray(np.concatenate(directions), float))
    parts = jnp.split(along, np.cumsum([len(part) for part in directions])[:-1])
    entries, slopes = [], []
    for ((at, size), entry), part in zip(sites, parts, strict=True):
        if entry is None:
            entry = np.broadcast_to(np.arange(size)[:, None], part.shape)
        elif len(entry) > 1:
            first = jnp.take_along_axis(part, 1 + entry[2:], axis=0)
            part = jnp.concatenate([first, part[:1] - first])
        entries.append(at + entry[: len(part)])
        slopes.append(part)
    return np.concatenate(entries), jnp.concatenate(slopes)


@dataclass(frozen=True)
class _Plan:
    """Blocks of a program; the one integrated out, and its terms; the sites that are augmented."""

    blocks: tuple[_Block, ...]
    others: frozenset[str]
    integrated: _Block | None
    free: _Block | None
    fixed: _Block | None
    augmented: tuple[str, ...]
    single: bool


class _Hide(Messenger):  # type: ignore[misc]
    """Leave the densities of some sites out."""

    def __init__(self, fn: Any, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(fn)

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "sample" and msg["name"] in self.names:
            msg["fn"] = msg["fn"].mask(False)


# ------------------------------------------------------------------------- what is found at set-up


class _Program:
    """Readings of a program at random points of its unconstrained space."""

    def __init__(self, model: Any, args: Any, kwargs: Any) -> None:
        self.run = partial(_trace, model, args, kwargs)
        self.kinds: dict[str, str] = {}
        discrete: list[str] = []

        def start(key: Array) -> Values:
            strategy = init_to_uniform(radius=1.5)
            seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=strategy)
            sites = handlers.trace(seeded).get_trace(*args, **kwargs)
            sites = {name: site for name, site in sites.items() if site["type"] == "sample"}
            kinds = {name: type(_layers(site["fn"])[-1]).__name__ for name, site in sites.items()}
            self.kinds.update(kinds)
            latent = {name: site for name, site in sites.items() if not site["is_observed"]}
            discrete[:] = [n for n, site in latent.items() if site["fn"].support.is_discrete]
            return {name: site["value"] for name, site in latent.items()}

        drawn = jax.jit(start)
        self.points = [jax.tree.map(np.asarray, drawn(jax.random.key(seed))) for seed in range(4)]
        if discrete:
            problem = f"has discrete latent sites {discrete}"
            expected = "Pólya-Gamma needs a program without them"
            such = "numpyro.infer.DiscreteHMCGibbs(NUTS(model))"
            refuse("model", problem=problem, expected=expected, instead=such)
        self._read = jax.jit(self._parts)
        self.terms, _ = self.read(self.points[0])
        self.augmented = tuple(n for n, one in self.terms.items() if np.any(one.trials > 0))

    def _parts(self, values: Values) -> tuple[dict[str, _Terms], Values]:
        sites = self.run(values)
        each = {name: _terms(site) for name, site in sites.items()}
        others = {
            name: jnp.sum(_scale(site) * site["fn"].log_prob(site["value"]))
            for name, site in sites.items()
            if each[name] is None
        }
        return {name: one for name, one in each.items() if one is not None}, others

    def read(self, values: Values) -> tuple[dict[str, _Terms], Values]:
        return jax.tree.map(np.asarray, self._read(values))

    def tried(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return why the log density is not quadratic in some sites, and the terms they enter."""
        entered: set[str] = set()
        for here, there in (self.points[:2], self.points[2:]):
            half, end = ({n: (1 - s) * here[n] + s * there[n] for n in names} for s in (0.5, 1.0))
            (one, before), (two, _), (three, after) = (
                self.read(here | moved) for moved in ({}, half, end)
            )
            for name, value in before.items():
                if value != after[name]:
                    return f"{name!r} ({self.kinds[name]}) depends on it", ()
            for name in one:
                if not all(map(np.array_equal, one[name][1:], three[name][1:])):
                    return f"the spread or the count of {name!r} depends on it", ()
                first, middle, last = one[name].u, two[name].u, three[name].u
                if np.array_equal(first, last):
                    continue
                entered.add(name)
                what = "logits" if name in self.augmented else "mean"
                size = np.abs(first).max() + np.abs(last).max()
                if not np.all(np.abs(first - 2 * middle + last) <= _BEND * (1 + size)):
                    return f"the {what} of {name!r} are not affine in it", ()
                if np.any(one[name].trials % 1):
                    return f"the counts of {name!r}, times its scale, are not whole numbers", ()
        return "", tuple(name for name in self.terms if name in entered)

    def moved_by(self, names: frozenset[str]) -> set[str]:
        """Return the terms that change with some sites."""
        here, there, *_ = self.points
        one, other = (self.read(here | {n: at[n] for n in names})[0] for at in (here, there))
        return {name for name in one if not all(map(np.array_equal, one[name], other[name]))}


def _found(model: Any, args: Any, kwargs: Any) -> _Plan:
    """Find the blocks of a program."""
    reading = _Program(model, args, kwargs)
    reasons: dict[str, str] = {}
    groups: list[tuple[str, ...]] = []
    for name in reading.points[0]:
        if name not in reading.terms:
            reasons[name] = f"its prior {reading.kinds[name]} is not normal"
        elif reason := reading.tried((name,))[0]:
            reasons[name] = reason
        else:
            _join(reading, groups, name)
    blocks = []
    for names in groups:
        block = _block(reading, names)
        rows = sum(reading.terms[name].u.size for name in block.terms)
        if all(entry is not None for entry in block.entries.values()) or (
            block.size <= _DENSE and block.size * rows <= _MOST_NUMBERS
        ):
            blocks.append(block)
        else:
            reasons |= dict.fromkeys(names, f"rows touch many of its {block.size:,} entries")
    augmented = tuple(n for n in reading.augmented if any(n in block.terms for block in blocks))
    if not augmented:
        given = "; ".join(f"{name!r}: {reason}" for name, reason in reasons.items())
        if not reading.augmented:
            given = f"no site is observed from Bernoulli or Binomial with logits=; {given}"
        raise NotConjugateError(f"Pólya-Gamma updates no site of the program ({given}); use NUTS")
    single = all(np.max(reading.terms[name].trials) <= 1 for name in augmented)
    others = frozenset(reading.points[0]).difference(*(block.shapes for block in blocks))
    small = [block for block in blocks if block.size <= _INTEGRATED]
    if not others or not small:
        return _Plan(tuple(blocks), others, None, None, None, augmented, single)
    integrated = max(small, key=lambda block: block.size)
    # Drawn first, while the other blocks are as they were when it was integrated out.
    blocks.sort(key=lambda block: block is not integrated)
    moved = reading.moved_by(others)
    free, fixed = (
        _block(reading, tuple(integrated.shapes), tuple(filter(inside, integrated.terms)))
        for inside in (moved.__contains__, lambda name: name not in moved)
    )
    return _Plan(tuple(blocks), others, integrated, free, fixed, augmented, single)


def _join(reading: _Program, groups: list[tuple[str, ...]], name: str) -> None:
    """Put a site into the first block in which the log density is quadratic together with it."""
    for place, names in enumerate(groups):
        joint = (*names, name)
        size = sum(np.size(reading.points[0][one]) for one in joint)
        if size <= _JOINT and not reading.tried(joint)[0]:
            groups[place] = joint
            return
    groups.append((name,))


def _block(reading: _Program, names: tuple[str, ...], terms: Any = None) -> _Block:
    """Return the block of some sites and terms, with the entries that rows touch."""
    shapes = {name: np.shape(reading.points[0][name]) for name in names}
    terms = reading.tried(names)[1] if terms is None else terms
    block = _Block(shapes, terms, {})
    if not terms:
        return block

    @jax.jit
    def derivative(point: Values, along: Entries) -> PerRow:
        return _linear(reading.run, block, point, {})[0](along)

    for name, (at, size) in zip(shapes, block.spans, strict=True):

        def along(point: Values, own: Any, at: int = at, size: int = size) -> np.ndarray:
            padded = np.pad(own, ((0, 0), (at, block.size - at - size)))
            return np.stack([derivative(point, jnp.asarray(one, float)) for one in padded])

        one, other, *_ = (partial(along, point) for point in reading.points)
        entry = _touched(one, size)
        block.entries[name] = entry if entry is None else _confirmed(other, size, entry)
    return block


def _touched(along: Any, size: int) -> Int[np.ndarray, "slot row"] | None:
    """Return the one or two entries that each row touches; of a row that touches more, some or
    None."""
    digits = _digits(size) > 0

    def reached(entries: Bool[np.ndarray, "some entry"]) -> Bool[np.ndarray, "some row"]:
        # NaN along an entry is NaN in each row that touches it.
        return np.isnan(along(np.where(entries, np.nan, 0.0)))

    ones = reached(digits)
    apart = ones & reached(~digits)
    # The first entry has the lowest digit in which the two differ.
    first, lowest = ones.copy(), np.where(apart.any(0), apart.argmax(0), -1)
    for place, digit in enumerate(digits):
        rows = lowest == place
        first[:, rows] = reached(digits & digit)[:, rows]
    powers = 1 << np.arange(len(digits))[:, None]
    both = first, np.where(apart, ~first, ones)
    one, two = ((entry * powers).sum(0) for entry in both)
    if max(one.max(), two.max()) >= size:
        return None
    if np.array_equal(one, two):
        return one[None].astype(np.int32)
    # A digit that the first entry has, and the second has not.
    two = np.where(one == two, np.where(one > 0, 0, 1), two)
    one, two = np.where(one & ~two, one, two), np.where(one & ~two, two, one)
    digit = np.frexp((one & ~two).astype(float))[1] - 1
    return np.stack([one, two, digit]).astype(np.int32)


def _confirmed(along: Any, size: int, entry: np.ndarray) -> np.ndarray | None:
    """Return the entries where they give a derivative along a random vector at another point."""
    vector = np.random.default_rng(1).normal(size=size)
    expected, total, *parts = along(np.stack([vector, np.ones(size), *_digits(size)]))
    given = total * vector[entry[0]]
    if len(entry) > 1:
        first = np.take_along_axis(np.stack(parts), entry[2:], axis=0)[0]
        given = first * vector[entry[0]] + (total - first) * vector[entry[1]]
    close = 10 * _CLOSE * (np.abs(given) + np.abs(parts).max(0, initial=0.0) + np.abs(total))
    return entry if np.all(np.abs(given - expected) <= close) else None


# -------------------------------------------------------------------------------------- the kernel


class PolyaGammaState(NamedTuple):
    """State of `PolyaGamma`: values `z`, their negative log joint density `potential_energy`, the
    Pólya-Gamma variables `omega`, and through it the fields of the inner kernel's state."""

    z: Values
    potential_energy: Array
    diverging: Array
    omega: Values
    hmc_state: Any
    rng_key: Array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.hmc_state, name)


class PolyaGamma(MCMCKernel):  # type: ignore[misc]
    r"""Pólya-Gamma Gibbs sampling of any NumPyro program, as a kernel of `numpyro.infer.MCMC`.

    A row of y successes in n trials with log-odds ψ has the likelihood [1]_

    .. math::
        \frac{e^{\psi y}}{(1 + e^\psi)^n} = 2^{-n} e^{(y - n/2) \psi}
        \int e^{-\omega \psi^2 / 2} \, \mathrm{PG}(\omega \mid n, 0) \, d\omega .

    Given ω ~ PG(n, ψ) it is quadratic in ψ. Latent sites in which the log-odds of all ``Bernoulli``
    and ``Binomial`` sites with ``logits=`` are affine, and of which all else in the program is
    normal (priors, means of priors, normal likelihoods), are one multivariate normal block, and
    are drawn jointly. All other sites are updated by `inner_kernel`, with a block of up to 120
    entries integrated out of their density given ω [2]_, so that scales of effects mix.

    Parameters
    ----------
    model : callable
        A NumPyro program, as NUTS takes it, without discrete latent sites. Plates, masks,
        ``handlers.condition``, ``handlers.reparam`` and ``handlers.scale`` by whole numbers are as
        usual.
    inner_kernel : numpyro.infer.HMC or numpyro.infer.NUTS, optional
        Kernel of the other sites, made of the same `model`; ``NUTS(model)`` by default.

    Raises
    ------
    NotConjugateError
        In ``mcmc.run``, when there is no such block; it names the reason for each site.
    SettingError
        When `inner_kernel` is of another program, or the program has discrete latent sites.

    Notes
    -----
    The program is read on the data before it is compiled: affinity is checked at random points,
    and the entries of a block that each row touches are recorded, so that a sweep takes time
    proportional to the rows. Extra fields are ``potential_energy`` and those of the inner kernel,
    such as ``accept_prob``.

    References
    ----------
    .. [1] Polson, N. G., Scott, J. G. and Windle, J. (2013). Bayesian inference for logistic models
       using Pólya-Gamma latent variables. Journal of the American Statistical Association 108,
       1339-1349.
    .. [2] van Dyk, D. A. and Park, T. (2008). Partially collapsed Gibbs samplers. Journal of the
       American Statistical Association 103, 790-796.

    Examples
    --------
    >>> import jax, numpy as np, numpyro, numpyro.distributions as dist
    >>> from numpyro.infer import MCMC
    >>> from raters.infer import PolyaGamma
    >>> def model(x, y=None):
    ...     slope = numpyro.sample("slope", dist.Normal(0, 2))
    ...     numpyro.sample("obs", dist.Bernoulli(logits=slope * x), obs=y)
    >>> x = np.linspace(-3, 3, 100)
    >>> mcmc = MCMC(PolyaGamma(model), num_warmup=50, num_samples=500, progress_bar=False)
    >>> mcmc.run(jax.random.key(0), x, y=(x > np.sin(9 * x)).astype(int))
    >>> mcmc.get_samples()["slope"].shape
    (500,)
    """

    sample_field = "z"
    default_fields = ("z", "diverging")

    def __init__(self, model: Callable[..., Any], inner_kernel: HMC | None = None) -> None:
        inner = NUTS(model) if inner_kernel is None else inner_kernel
        if not isinstance(inner, HMC) or inner.model is not model:
            expected = "it must be HMC or NUTS of the same program"
            such = "PolyaGamma(model, NUTS(model))"
            refuse("inner_kernel", inner_kernel, expected=expected, instead=such)
        self._model: Callable[..., Any] = model
        self._init_strategy = inner._init_strategy
        self.inner_kernel = copy.copy(inner)
        self.inner_kernel._model = None
        self.inner_kernel._potential_fn_gen = density = self._density_of_others
        self.inner_kernel._init_fn, self.inner_kernel._sample_fn = hmc(
            potential_fn_gen=density, kinetic_fn=inner._kinetic_fn, algo=inner._algo
        )
        self._read: tuple[list[Any], _Plan] | None = None
        self._potential: Any = None
        self._postprocess: Any = None
        self._sample_fn: Any = None

    @property
    def model(self) -> Callable[..., Any]:
        """The program."""
        return self._model

    def get_diagnostics_str(self, state: PolyaGammaState) -> str:
        """Return the text of the inner kernel for the progress bar."""
        inner = state.hmc_state
        return "" if inner is None else self.inner_kernel.get_diagnostics_str(inner)

    def postprocess_fn(self, model_args: Any, model_kwargs: Any) -> Callable[[Values], Values]:
        """Return the function from `z` to the values of all sites."""
        return self._postprocess(*model_args, **(model_kwargs or {}))

    def _plan(self, args: Any, kwargs: Any) -> _Plan:
        """Read the program on some data, once."""
        leaves = jax.tree.leaves((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            problem = "are traced, and the program is read on data before it is compiled"
            expected = "call mcmc.run outside of jax.jit, and without jit_model_args=True"
            refuse("model_args", problem=problem, expected=expected)
        known, plan = self._read or ([], None)
        if plan is None or len(known) != len(leaves) or not all(map(operator.is_, known, leaves)):
            with jax.ensure_compile_time_eval():
                plan = _found(self._model, args, kwargs)
            self._read = leaves, plan
        return plan

    def init(
        self, rng_key: Array, num_warmup: int, init_params: Any, model_args: Any, model_kwargs: Any
    ) -> PolyaGammaState:
        """Read the program, and return the first state; one for each of several keys."""
        kwargs = model_kwargs or {}
        self._plan(model_args, kwargs)
        self._sample_fn = self._step
        start = partial(self._start, num_warmup, model_args, kwargs)
        started = start if is_prng_key(rng_key) else jax.vmap(start)
        return started(rng_key, init_params)

    def _start(
        self, num_warmup: int, args: Any, kwargs: Any, rng_key: Array, init_params: Any
    ) -> PolyaGammaState:
        plan = self._plan(args, kwargs)
        rng_key, key, inner_key, omega_key = jax.random.split(rng_key, 4)
        given = {"model_args": args, "model_kwargs": kwargs, "dynamic_args": True}
        info = initialize_model(key, self._model, init_strategy=self._init_strategy, **given)
        self._potential, self._postprocess = info.potential_fn, info.postprocess_fn

        @jax.jit
        def start(z: Values, rng_key: Array, inner_key: Array, omega_key: Array) -> Any:
            omega = self._augmented(omega_key, plan.augmented, args, kwargs, z)
            state, diverging = None, jnp.zeros((), bool)
            if plan.others:
                others = {name: z[name] for name in plan.others}
                given = kwargs | {_GIVEN: (z, omega, self._fixed(args, kwargs, z, omega))}
                state = self.inner_kernel.init(inner_key, num_warmup, others, args, given)
                diverging = state.diverging
            potential = self._potential(*args, **kwargs)(z)
            return PolyaGammaState(z, potential, diverging, omega, state, rng_key)

        z = info.param_info.z | (init_params or {})
        return start(z, rng_key, inner_key, omega_key)

    def _constrained(self, z: Values, args: Any, kwargs: Any) -> Values:
        """Return the values of the latent sites; others may be deterministic."""
        values = self.postprocess_fn(args, kwargs)(z)
        return {name: values[name] for name in z}

    def sample(self, state: PolyaGammaState, model_args: Any, model_kwargs: Any) -> PolyaGammaState:
        """Return the next state."""
        step = partial(self._step, model_args, model_kwargs or {})
        stepped = step if is_prng_key(state.rng_key) else jax.vmap(step)
        return stepped(state)

    def _density_of_others(self, *args: Any, **kwargs: Any) -> Callable[[Values], Array]:
        """Return the potential energy of the sites in no block, given ω and the blocks."""
        z, omega, fixed = kwargs.pop(_GIVEN)
        plan = self._plan(args, kwargs)
        hidden = _Hide(self._model, plan.integrated.terms if plan.integrated else ())

        def potential(others: Values) -> Array:
            energy: Array = potential_energy(hidden, args, kwargs, z | others)
            if plan.free is None:
                return energy
            values = self._constrained(z | others, args, kwargs)
            run = partial(_trace, self._model, args, kwargs)
            return energy - _log_integral(fixed + _read(run, plan.free, values, omega))

        return potential

    def _step(self, args: Any, kwargs: Any, state: PolyaGammaState) -> PolyaGammaState:
        plan = self._plan(args, kwargs)
        run = partial(_trace, self._model, args, kwargs)
        number = 4 + len(plan.blocks)
        rng_key, inner_key, first_key, last_key, *keys = jax.random.split(state.rng_key, number)
        z, omega, inner, diverging = state.z, state.omega, state.hmc_state, state.diverging
        if inner is not None:
            fixed = self._fixed(args, kwargs, z, omega)
            given = kwargs | {_GIVEN: (z, omega, fixed)}
            inner = self.inner_kernel.refresh(inner._replace(rng_key=inner_key), args, given)
            inner = self.inner_kernel.sample(inner, args, given)
            z, diverging = z | inner.z, inner.diverging
        # The other sites were drawn given ω of the integrated block's terms alone, so that ω of
        # all others is drawn anew before it is used.
        of_integrated = plan.integrated.terms if plan.integrated else ()
        anew = tuple(name for name in plan.augmented if name not in of_integrated)
        omega = omega | self._augmented(first_key, anew, args, kwargs, z)
        values = self._constrained(z, args, kwargs)
        for block, key in zip(plan.blocks, keys, strict=True):
            if block is plan.integrated and plan.free is not None:
                parts = fixed + _read(run, plan.free, values, omega)
            else:
                parts = _read(run, block, values, omega)
            new = _drawn(block, values, parts, key)
            values, z = values | new, z | new
        rest = tuple(name for name in plan.augmented if name in of_integrated)
        last = self._augmented(last_key, rest, args, kwargs, z)
        potential, omega = self._potential(*args, **kwargs)(z), omega | last
        # In single precision a factor fails at scales near 0: the chain then stays where it was.
        kept = jnp.isfinite(potential)
        drawn, before = (z, potential, omega), (state.z, state.potential_energy, state.omega)
        z, potential, omega = jax.tree.map(partial(jnp.where, kept), drawn, before)
        if inner is not None:
            inner = inner._replace(z={name: z[name] for name in inner.z})
        return PolyaGammaState(z, potential, diverging, omega, inner, rng_key)

    def _augmented(
        self, key: Array, names: tuple[str, ...], args: Any, kwargs: Any, z: Values
    ) -> Values:
        """Draw ω ~ PG(n, ψ) of each row of some sites."""
        omega: Values = {}
        single = self._plan(args, kwargs).single
        sites = _trace(self._model, args, kwargs, self._constrained(z, args, kwargs))
        for place, name in enumerate(names):
            terms = _terms(sites[name])
            assert terms is not None
            with jax.enable_x64(True):  # The moments of the series' tail are differences.
                own = jax.random.fold_in(key, place)
                omega[name] = draw_series(own, terms.trials, terms.u, single=single)
        return omega

    def _fixed(self, args: Any, kwargs: Any, z: Values, omega: Values) -> _Parts:
        """Add up the terms of the integrated block that the sites in no block do not enter."""
        plan, values = self._plan(args, kwargs), self._constrained(z, args, kwargs)
        run = partial(_trace, self._model, args, kwargs)
        return [] if plan.fixed is None else _read(run, plan.fixed, values, omega)
