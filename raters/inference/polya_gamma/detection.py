"""Blocks that are found in a program.

A latent site is a block where no other prior depends on it, and its prior is normal or uniform and
the logits, or log-odds of classes, are affine in it; or its probabilities are counted. Sites in
which the logits are affine together are one block, unless one has bounds or a symmetry moves both.
"""

from __future__ import annotations

import itertools
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
from raters.distributions.choices import OfSets
from raters.distributions.correlated import unwrapped
from raters.distributions.priors import Priors
from raters.distributions.ties import Davidson
from raters.errors import NotConjugateError
from raters.inference.arrays import Sites
from raters.inference.polya_gamma import conditionals, latent_classes
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.rows import Block, check_conjugate, is_entrywise
from raters.inference.polya_gamma.unconstrained import is_unbounded
from raters.model import Marginal, Model, Permute, Values, marginal_of
from raters.program import Program, Supports, skeleton, start_of, trace
from raters.program.program import once
from raters.program.traces import read_by

Names = tuple[Sites, ...]
# Entries of a block of several sites: the factor of a dense precision takes milliseconds.
_JOINT = 500
# In place of a reason: the prior is one of probabilities.
_COUNTS = "counts"
# Largest second difference of logits along a line.
_TOLERANCE = 1e-6
# Random points lie so far from the start in unconstrained coordinates.
_APART = 0.4


class Detected(NamedTuple):
    """Blocks of a program by their sites, and why other sites are in none."""

    blocks: dict[Sites, tuple[Block, ...]]
    reasons: dict[str, str]
    refusal: str = ""


def names_of(program: Program[Any]) -> Names:
    """Return the sites of each block: those that the model declares, or those that are found."""
    if chooses(program):
        return ()
    declared, free = program.model.blocks, Priors(program.model.prior).not_conjugate()
    if declared is None:
        return tuple(detected(program).blocks)
    if not free:
        return declared
    kept = (tuple(site for site in block if site not in free) for block in declared)
    return tuple(block for block in kept if block)


def chooses(program: Program[Any]) -> bool:
    """Return whether there are choices from sets, whose utilities have no conjugate prior."""
    choosing = (OfSets, Davidson, dist.CategoricalLogits)
    return any(
        issubclass(part.observed_type, choosing) and part.model.blocks != ()
        for part in program.parts.values()
    )


def why_no_mode(program: Program[Any]) -> str | None:
    """Explain why priors of the user leave sites of a block without one, or return None."""
    model, sites = program.model, program.sites
    changed = [site for site in Priors(model.prior).not_conjugate() if sites[site].shape]
    if model.prior and isinstance(marginal_of(model, program.data), Marginal):
        return f"PGEM integrates a site of {model.title} out with its own priors; use PGGibbs"
    if not changed:
        return None
    return (
        f"PGEM has no update of {', '.join(map(repr, changed))} of {model.title} with a prior"
        " that is not conjugate; use PGGibbs, NUTS, HMC or SVI, or give a normal prior"
    )


def why_none(program: Program[Any]) -> str | None:
    """Explain why a program has no blocks, or return None where it has some."""
    if names_of(program) or chooses(program):
        return None
    name = program.model.title
    if program.model.blocks is not None:
        return f"{name} declares no blocks for Pólya-Gamma to update; use HMC, NUTS or SVI"
    if refusal := detected(program).refusal:
        return f"{name} cannot be augmented by Pólya-Gamma: {refusal}; use HMC, NUTS or SVI"
    reasons = "; ".join(f"{site!r}: {text}" for site, text in detected(program).reasons.items())
    return f"{name} has no site that Pólya-Gamma updates ({reasons}); use HMC, NUTS or SVI"


@once
def detected(program: Program[Any]) -> Detected:
    """Find the blocks of a program."""
    with jax.enable_x64(True):
        return _detect(program)


def blocks_of(program: Program[Any]) -> tuple[Block, ...]:
    """Return the blocks of one kind of judgement, each with the kind of its conditional."""
    if program.model.blocks is None and not chooses(program):
        return tuple(itertools.chain(*detected(program).blocks.values()))
    return _declared(program)


@once
def _declared(program: Program[Any]) -> tuple[Block, ...]:
    """Check the blocks that a model declares."""
    names = names_of(program)
    if missing := {site for sites in names for site in sites} - set(program.sites):
        raise NotConjugateError(
            f"blocks of {program.model.title} name {sorted(missing)}, which it does not sample; it"
            f" has {sorted(program.sites)}"
        )
    with jax.enable_x64(True):
        values = start_of(program.model, program.sample())
        each = [_checked(program, values, sites) for sites in names]
    return tuple(itertools.chain(*each))


def _detect(program: Program[Any]) -> Detected:
    model, data = program.model, program.sample()
    values = start_of(model, data)
    if missing := set(program.sites) - set(values):
        raise NotImplementedError(f"its start has no value of {sorted(missing)}")
    priors = _priors(model, data, values)
    above = {name: governors(model, data, values, name) for name in program.sites}
    tried = _Tried(program, data, values)
    reasons, groups = {}, []
    for name in program.sites:
        counts = priors[name] == _COUNTS
        dependents = [other for other in above if name in above[other]]
        if priors[name] and not counts:
            reasons[name] = priors[name]
        elif dependents:
            reasons[name] = f"the prior of {', '.join(dependents)} depends on it"
        elif counts and not program.counts_classes:
            reasons[name] = "its probabilities are not those of latent classes"
        elif counts:
            groups.append([name])
        elif reason := tried.reason((name,)):
            reasons[name] = reason
        else:
            _join(program, tried, priors, groups, name)
    blocks = {}
    queue = [tuple(sites) for sites in groups]
    while queue:
        sites = queue.pop(0)
        try:
            blocks[sites] = _checked(program, values, sites)
        except (NotConjugateError, NotImplementedError) as error:
            if len(sites) == 1:
                reasons[sites[0]] = str(error)
            queue = [(site,) for site in sites if len(sites) > 1] + queue
    return Detected(blocks, reasons, tried.refusal)


def _join(
    program: Program[Any], tried: _Tried, priors: dict[str, str], groups: list[list[str]], name: str
) -> None:
    """Put a site into the first group in which the logits are affine together with it."""

    def joins(site: str) -> bool:
        unbounded = is_unbounded(program.supports, site)
        return not priors[site] and unbounded and not tried.is_of_classes(site)

    for group in groups:
        joint = (*group, name)
        size = sum(int(np.prod(program.sites[site].shape)) for site in joint)
        if size <= _JOINT and all(map(joins, joint)) and not tried.reason(joint):
            group.append(name)
            return
    groups.append([name])


def _checked(program: Program[Any], values: Values, sites: Sites) -> tuple[Block, ...]:
    """Return the block of some sites, or one for each column, and raise where it has no
    conditional."""
    sample = program.sample()
    classes = latent_classes.expected_in(program, sample, values)
    bounded = not all(is_unbounded(program.supports, site) for site in sites)
    blocks = kinds_of(program, sample, values, sites)
    blocks = tuple(coloured(program, values, block) for block in blocks)
    for block in blocks:
        alone = is_entrywise(program.model, sample, values, block, classes)
        if bounded and not alone:
            raise NotImplementedError(conditionals.BOUNDED)
        check_conjugate(program, values, block)
    return blocks


def _priors(model: Model[Any], data: Any, values: Values) -> dict[str, str]:
    """Return why the prior of each site is not normal; an empty text where it is."""
    reasons: dict[str, str] = {}

    def read(values: Values) -> None:
        for name, site in trace(model, data, values).items():
            if site["type"] == "sample" and name != model.observed:
                reasons[name] = _reason(site["fn"], np.shape(values[name]))

    jax.eval_shape(read, values)
    return reasons


def governors(model: Model[Any], data: Any, values: Values, name: str) -> set[str]:
    """Return the sites on which the prior of a site depends."""

    def log_prob(values: Values) -> Array:
        return jnp.asarray(trace(model, data, values)[name]["fn"].log_prob(values[name]))

    return read_by(log_prob, values) - {name}


def _reason(fn: dist.Distribution, shape: tuple[int, ...]) -> str:
    if isinstance(unwrapped(fn), latent_classes.COUNTED):
        return _COUNTS
    try:
        conditionals.prior(fn, shape)
    except NotImplementedError as error:
        return str(error)
    return ""


class _Read(NamedTuple):
    """Logits and outcomes of a program at a point."""

    logits: Any
    log_odds: Any
    rest: Any


@partial(jax.jit, static_argnums=0)
def _read(model: Model[Any], data: Any, values: Values) -> _Read:
    traced = trace(model, data, values)
    fn, value = traced[model.observed]["fn"], traced[model.observed]["value"]
    log_odds = fn.log_weights() if isinstance(fn, GroupedMixture) else jnp.zeros((0, 1))
    try:
        rows = conditionals.observation(fn, value, _even_classes(fn))
    except NotImplementedError:  # such as of confused labels, whose probabilities are counted
        rows = conditionals.Observation(jnp.zeros(0), jnp.zeros(0), jnp.zeros(0))
    log_odds = log_odds.reshape(-1, log_odds.shape[-1])
    return _Read(rows.logits.ravel(), log_odds, (rows.votes, rows.kappa, rows.shift))


def _even_classes(fn: dist.Distribution) -> Array | None:
    """Even probabilities of the classes of a mixture; None of another distribution."""
    if not isinstance(fn, GroupedMixture):
        return None
    size = fn.component_distribution.batch_shape[-1]
    return jnp.full((fn.num_groups, size), 1 / size)


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
        try:
            conditionals.observation(site["fn"], site["value"], _even_classes(site["fn"]))
        except NotImplementedError as error:
            return str(error)
        return ""

    def _read(self, values: Values) -> _Read:
        # Outcomes that are not known are drawn by the same key each time.
        return jax.tree.map(np.asarray, _read(self.model, self.data, values))

    def _between(self, names: Iterable[str], share: float) -> _Read:
        moved = {name: (1 - share) * self.here[name] + share * self.there[name] for name in names}
        return self._read(self.here | moved)

    def is_of_classes(self, name: str) -> bool:
        """Return whether the log-odds of the classes depend on a site."""
        return not np.array_equal(self._between((name,), 1.0).log_odds, self.at_here.log_odds)

    def reason(self, names: Sites) -> str:
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
            one, two, three = (each - each[:, :1] for each in (one, two, three))
        bend = one - 2 * two + three
        scale = 1 + np.abs(one) + np.abs(three)
        with np.errstate(invalid="ignore"):
            straight = np.all((np.abs(bend) <= _TOLERANCE * scale) | (one == three))
        return "" if straight else "the logits are not affine in it"


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


def kinds_of(program: Program[Any], data: Any, values: Values, sites: Sites) -> tuple[Block, ...]:
    """Return the block of some sites, or one for each column, with the kind of its conditional."""
    model, classes = program.model, program.counts_classes
    permuted = [one.sites for one in model.symmetries if isinstance(one, Permute)]
    first, single = sites[0], len(sites) == 1
    columns = range(np.shape(values[first])[-1] if np.ndim(values[first]) else 0)
    if classes and single and _is_counted(model, data, values, first):
        return (Block(sites, "counts"),)
    if classes and not read_by(partial(log_weights_of, model, data), values).isdisjoint(sites):
        return tuple(Block(sites, "class", column) for column in columns)
    if single and any(first in names for names in permuted):
        return tuple(Block(sites, "type", column) for column in columns)
    return (Block(sites),)


def _is_counted(model: Model[Any], data: Any, values: Values, site: str) -> bool:
    kind = latent_classes.type_of_prior(model, data, values, site)
    return issubclass(kind, latent_classes.COUNTED)


def log_weights_of(model: Model[Any], data: Any, values: Values) -> Array:
    """Return the prior log-probabilities of the classes."""
    return trace(model, data, values)[model.observed]["fn"].log_weights()
