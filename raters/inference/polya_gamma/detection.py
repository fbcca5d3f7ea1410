"""Blocks that are found in a program.

A latent site is a block where

- its prior is normal (truncated or multivariate, too) or uniform, and the logits of the rows are
  affine in it, the other sites held, at random points; or where a class is summed out, and the
  log-odds of the classes are; or its prior is Dirichlet, Beta or a mixture of these
  over types, and its probabilities are counted; and
- no other site's prior depends on it.

Sites in which the logits are affine together are one block, up to a size, unless one of them has
bounds, or a declared symmetry moves them together already, at no cost. The order is that of the
program.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions.transforms import biject_to

from raters.distributions import GroupedMixture
from raters.errors import NotConjugateError
from raters.inference.polya_gamma import latent_classes, sets
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.conditionals import (
    BOUNDED,
    DENSE_LIMIT,
    Observation,
    observation,
    prior,
)
from raters.inference.polya_gamma.rows import Block, check_conjugate, rows_of
from raters.model import CommonShift, Model, Permute, Transfer, Values
from raters.program import Program, Supports, skeleton, start_of, trace
from raters.program.remembered import Cache, key_of

Names = tuple[tuple[str, ...], ...]
# Entries of a block of several sites: the factor of a dense precision takes milliseconds.
_JOINT = 500
# Largest second difference of logits along a line.
_TOLERANCE = 1e-6
# Random points lie so far from the start in unconstrained coordinates.
_APART = 0.4


class Detected(NamedTuple):
    """Blocks of a program."""

    blocks: Names
    reasons: dict[str, str]
    refusal: str = ""


def names_of(program: Program[Any]) -> Names:
    """Return the sites of each block: those that the model declares, or those that are found."""
    declared = program.model.blocks
    return detected(program).blocks if declared is None else declared


def why_none(program: Program[Any]) -> str | None:
    """Explain why a program has no blocks, or return None where it has some."""
    if names_of(program):
        return None
    name = program.model.title
    if program.model.blocks is not None:
        return f"{name} declares no conjugate blocks for Pólya-Gamma to update; use NUTS or SVI"
    if refusal := detected(program).refusal:
        return f"{name} cannot be augmented by Pólya-Gamma: {refusal}; use NUTS or SVI"
    reasons = "; ".join(f"{site!r}: {text}" for site, text in detected(program).reasons.items())
    return f"{name} has no site that Pólya-Gamma updates ({reasons}); use NUTS or SVI"


_known: Cache[Detected] = Cache()


def detected(program: Program[Any]) -> Detected:
    """Find the blocks of a program, once for a model and data."""

    def find() -> Detected:
        with jax.enable_x64(True):
            return _detect(program)

    return _known.of(key_of(program.model, program.data), find)


class _Site(NamedTuple):
    """Prior of a site."""

    kind: str
    reason: str
    correlated: bool


def _detect(program: Program[Any]) -> Detected:
    model, data = program.model, program.sample()
    values = start_of(model, data)
    if missing := set(program.sites) - set(values):
        raise NotImplementedError(f"its start has no value of {sorted(missing)}")
    priors = _priors(model, data, values)
    tried = _Tried(program, data, values)
    reasons, blocks = {}, []
    for name in program.sites:
        site = priors[name]
        dependents = tried.dependents(name)
        if not site.kind:
            reasons[name] = site.reason
        elif dependents:
            reasons[name] = f"the prior of {', '.join(dependents)} depends on it"
        elif site.kind == "counts":
            if not program.counts_classes or not _is_conjugate(program, values, (name,)):
                reasons[name] = "its probabilities are not those of latent classes"
            else:
                blocks.append([name])
        elif reason := tried.reason((name,)):
            reasons[name] = reason
        else:
            _join(program, tried, priors, blocks, name)
    kept = []
    for sites in blocks:
        for names, reason in _checked(program, values, priors, tuple(sites)):
            if reason:
                reasons |= dict.fromkeys(names, reason)
            else:
                kept.append(names)
    return Detected(tuple(kept), reasons, tried.refusal)


def _join(
    program: Program[Any],
    tried: _Tried,
    priors: dict[str, _Site],
    blocks: list[list[str]],
    name: str,
) -> None:
    """Put a site into the first block in which the logits are affine together with it."""
    apart = _apart(program.model)

    def alone(site: str) -> bool:
        return not sets.is_unbounded(program.supports, site) or tried.is_of_classes(site)

    def size(sites: Iterable[str]) -> int:
        return sum(int(np.prod(program.sites[site].shape)) for site in sites)

    for block in blocks:
        joint = (*block, name)
        if (
            all(priors[site].kind == "normal" and not alone(site) for site in joint)
            and not any({site, name} <= pair for pair in apart for site in block)
            and size(joint) <= (DENSE_LIMIT if sets.chooses(program) else _JOINT)
            and not tried.reason(joint)
        ):
            block.append(name)
            return
    blocks.append([name])


def _apart(model: Model[Any]) -> list[set[str]]:
    """Return sites that a symmetry moves together, so that they need no joint block."""
    moved: list[set[str]] = []
    for symmetry in model.symmetries:
        if isinstance(symmetry, CommonShift):
            moved.append(set(symmetry.sites))
        if isinstance(symmetry, Transfer):
            moved.append({symmetry.common, symmetry.own})
    return moved


def _checked(
    program: Program[Any], values: Values, priors: dict[str, _Site], names: tuple[str, ...]
) -> list[tuple[tuple[str, ...], str]]:
    """Return a block, or its sites alone where the block cannot be updated, each with what is wrong
    with it."""
    if not (reason := _limits(program, values, priors, names)):
        return [(names, "")]
    if len(names) == 1:
        return [(names, reason)]
    return [one for name in names for one in _checked(program, values, priors, (name,))]


def _limits(
    program: Program[Any], values: Values, priors: dict[str, _Site], names: tuple[str, ...]
) -> str:
    """Return why a block of these sites cannot be updated; an empty text where it can."""
    if priors[names[0]].kind == "counts":
        return ""
    model, sample = program.model, program.sample()
    blocks = kinds_of(program, sample, values, (names,))
    size = sum(np.size(values[name]) for name in names)
    bounded = not all(sets.is_unbounded(program.supports, name) for name in names)
    correlated = any(priors[name].correlated for name in names)
    if correlated and size > DENSE_LIMIT:
        return f"it has {size:,} correlated entries (at most {DENSE_LIMIT:,})"
    classes = latent_classes.expected_in(program, sample, values)
    try:
        blocks = tuple(coloured(program, values, block) for block in blocks)
        if blocks[0].kind == "rows" and bounded:
            shapes = jax.eval_shape(
                lambda values, classes: rows_of(model, sample, values, blocks[0], classes),
                values,
                classes,
            )
            alone = shapes.entry is not None and len(shapes.entry) == 1 and not correlated
            if not alone and not sets.chooses(program):
                return BOUNDED
        if sets.chooses(program) and bounded and (text := sets.why_not(program, values, blocks)):
            return text
        for block in blocks:
            check_conjugate(program, values, block)
    except (NotConjugateError, NotImplementedError) as error:
        return str(error)
    return ""


def _is_conjugate(program: Program[Any], values: Values, names: tuple[str, ...]) -> bool:
    """Return whether the probabilities of a site are counted."""
    try:
        check_conjugate(program, values, Block(names, "counts"))
    except (NotConjugateError, NotImplementedError):
        return False
    return True


def _priors(model: Model[Any], data: Any, values: Values) -> dict[str, _Site]:
    """Return the prior of each site."""
    sites: dict[str, _Site] = {}

    def read(values: Values) -> None:
        for name, site in trace(model, data, values).items():
            if site["type"] == "sample" and name != model.observed:
                sites[name] = _prior(site["fn"], np.shape(values[name]))

    jax.eval_shape(read, values)
    return sites


def _prior(fn: dist.Distribution, shape: tuple[int, ...]) -> _Site:
    base = fn
    while isinstance(base, (dist.Independent, dist.ExpandedDistribution)):
        base = base.base_dist
    if isinstance(base, latent_classes.COUNTED):
        return _Site("counts", "", False)
    try:
        return _Site("normal", "", prior(fn, shape).across is not None)
    except NotImplementedError as error:
        return _Site("", str(error), False)


class _Read(NamedTuple):
    """Logits, outcomes and priors of a program at a point."""

    logits: Any
    log_odds: Any
    rest: Any
    priors: Any


@partial(jax.jit, static_argnums=0)
def _read(model: Model[Any], data: Any, values: Values) -> _Read:
    traced = trace(model, data, values)
    fn, value = traced[model.observed]["fn"], traced[model.observed]["value"]
    log_odds, classes = jnp.zeros(0), None
    if isinstance(fn, GroupedMixture):
        log_odds = fn.log_weights()
        size = fn.component_distribution.batch_shape[-1]
        classes = jnp.full((fn.num_groups, size), 1 / size)
    try:
        rows = observation(fn, value, classes)
    except NotImplementedError:  # such as of confused labels, whose probabilities are counted
        rows = Observation(jnp.zeros(0), jnp.zeros(0), jnp.zeros(0))
    priors = {
        name: site["fn"].log_prob(site["value"]).sum()
        for name, site in traced.items()
        if site["type"] == "sample" and name != model.observed
    }
    return _Read(
        rows.logits.ravel(), log_odds.ravel(), (rows.votes, rows.kappa, rows.shift), priors
    )


class _Tried:
    """Readings of a program at random points."""

    def __init__(self, program: Program[Any], data: Any, values: Values) -> None:
        self.model, self.data = program.model, data
        rng = np.random.default_rng(0)
        own = {name: values[name] for name in program.sites}
        self.here, self.there = (
            jax.tree.map(np.asarray, _moved(program.supports, own, int(rng.integers(2**31))))
            for _ in range(2)
        )
        self.at_here = self._read(self.here)
        self.refusal = "" if self.at_here.logits.size else self._refusal()

    def _refusal(self) -> str:
        """Return why the observed distribution has no logits."""
        site = skeleton(self.model, self.data)[self.model.observed]
        fn, classes = site["fn"], None
        if isinstance(fn, GroupedMixture):
            size = fn.component_distribution.batch_shape[-1]
            classes = jnp.full((fn.num_groups, size), 1 / size)
        try:
            observation(fn, site["value"], classes)
        except NotImplementedError as error:
            return str(error)
        return ""

    def _read(self, values: Values) -> _Read:
        # Outcomes that are not known are drawn by the same key each time.
        return jax.tree.map(np.asarray, _read(self.model, self.data, values))

    def _between(self, names: Iterable[str], share: float) -> _Read:
        moved = {name: (1 - share) * self.here[name] + share * self.there[name] for name in names}
        return self._read(self.here | moved)

    def dependents(self, name: str) -> list[str]:
        """Return the sites whose prior depends on this one."""
        moved = self._read(self.here | {name: self.there[name]}).priors
        own = self.at_here.priors
        # What is not a number differs, too.
        return [other for other in own if other != name and own[other] != moved[other]]

    def is_of_classes(self, name: str) -> bool:
        """Return whether the log-odds of the classes depend on a site."""
        return not np.array_equal(self._between((name,), 1.0).log_odds, self.at_here.log_odds)

    def reason(self, names: tuple[str, ...]) -> str:
        """Return why the logits, or the log-odds of the classes, are not affine in some sites."""
        middle, end = self._between(names, 0.5), self._between(names, 1.0)
        start = self.at_here
        if not all(map(np.array_equal, jax.tree.leaves(start.rest), jax.tree.leaves(end.rest))):
            return "it does not enter the likelihood by the logits alone"
        moves = [
            not np.array_equal(getattr(start, part), getattr(end, part))
            for part in ("logits", "log_odds")
        ]
        if not any(moves):
            return "the logits do not depend on it"
        if all(moves):
            return "both the logits and the classes depend on it"
        part = "logits" if moves[0] else "log_odds"
        one, two, three = (getattr(read, part) for read in (start, middle, end))
        if moves[1]:  # Log-odds of all classes against the first.
            size = max(self._num_classes(), 1)
            one, two, three = (
                (each.reshape(-1, size) - each.reshape(-1, size)[:, :1]).ravel()
                for each in (one, two, three)
            )
        bend = one - 2 * two + three
        scale = 1 + np.abs(one) + np.abs(three)
        with np.errstate(invalid="ignore"):
            straight = np.all((np.abs(bend) <= _TOLERANCE * scale) | (one == three))
        return "" if straight else "the logits are not affine in it"

    def _num_classes(self) -> int:
        fn = skeleton(self.model, self.data)[self.model.observed]["fn"]
        return int(fn.component_distribution.batch_shape[-1])


@partial(jax.jit, static_argnums=0)
def _moved(supports: Supports, values: Values, seed: int) -> Values:
    """Return random values in the supports, near these."""
    moved = {}
    for place, (name, support) in enumerate(supports.items()):
        transform = biject_to(support)
        flat = transform.inv(jnp.asarray(values[name], float))
        key = jax.random.fold_in(jax.random.key(seed), place)
        moved[name] = transform(flat + _APART * jax.random.normal(key, flat.shape, flat.dtype))
    return moved


# ------------------------------------------------------------------------------- kinds of blocks


def kinds_of(program: Program[Any], data: Any, values: Values, names: Names) -> tuple[Block, ...]:
    """Return blocks, each with the kind of its conditional."""
    model, classes = program.model, program.counts_classes
    by_type = {
        site
        for symmetry in model.symmetries
        if isinstance(symmetry, Permute)
        for site in symmetry.sites
    }
    blocks: list[Block] = []
    for sites in names:
        counted = classes and len(sites) == 1
        if counted and issubclass(
            latent_classes.type_of_prior(model, data, values, sites[0]), latent_classes.COUNTED
        ):
            blocks.append(Block(sites, "counts"))
        elif classes and depends(log_weights_of, model, data, values, sites):
            blocks += [
                Block(sites, "class", column) for column in range(np.shape(values[sites[0]])[-1])
            ]
        elif len(sites) == 1 and sites[0] in by_type:
            blocks += [
                Block(sites, "type", column) for column in range(np.shape(values[sites[0]])[-1])
            ]
        else:
            blocks.append(Block(sites))
    return tuple(blocks)


def depends(
    function: Any, model: Model[Any], data: Any, values: Values, sites: Iterable[str]
) -> bool:
    """Return whether a function of the model, the data and the values depends on any of these
    sites."""
    values = {name: np.asarray(value, float) for name, value in values.items()}
    gradient = _gradient(function, model, data, values, tuple(sites))
    return any(np.any(np.asarray(part) != 0) for part in gradient.values())


@partial(jax.jit, static_argnums=(0, 1, 4))
def _gradient(
    function: Any, model: Model[Any], data: Any, values: Values, sites: tuple[str, ...]
) -> Values:
    """Differentiate the sum of the sines of the function's entries."""
    own = {name: values[name] for name in sites}
    return jax.grad(lambda part: jnp.sin(function(model, data, values | part)).sum())(own)


def log_weights_of(model: Model[Any], data: Any, values: Values) -> Array:
    """Return the prior log-probabilities of the classes."""
    return trace(model, data, values)[model.observed]["fn"].log_weights()
