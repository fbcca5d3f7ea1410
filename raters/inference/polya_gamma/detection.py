"""Blocks that are found in a program.

A latent site is a block where no other prior depends on it, and its prior is normal or uniform and
the logits, or log-odds of classes, are affine in it; or its probabilities are counted. Sites in
which the logits are affine together are one block, unless one has bounds or a symmetry moves both.
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

Names = tuple[Sites, ...]
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
    if chooses(program):
        return ()
    declared, free = program.model.blocks, Priors(program.model.prior).not_conjugate()
    if declared is None:
        return detected(program).blocks
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
        return f"{name} declares no conjugate blocks for Pólya-Gamma to update; use NUTS or SVI"
    if refusal := detected(program).refusal:
        return f"{name} cannot be augmented by Pólya-Gamma: {refusal}; use NUTS or SVI"
    reasons = "; ".join(f"{site!r}: {text}" for site, text in detected(program).reasons.items())
    return f"{name} has no site that Pólya-Gamma updates ({reasons}); use NUTS or SVI"


@once
def detected(program: Program[Any]) -> Detected:
    """Find the blocks of a program."""
    with jax.enable_x64(True):
        return _detect(program)


class _Site(NamedTuple):
    """Prior of a site."""

    kind: str
    reason: str
    correlated: bool


_Priors = dict[str, _Site]


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
    program: Program[Any], tried: _Tried, priors: _Priors, blocks: list[list[str]], name: str
) -> None:
    """Put a site into the first block in which the logits are affine together with it."""

    def alone(site: str) -> bool:
        return not is_unbounded(program.supports, site) or tried.is_of_classes(site)

    def size(sites: Iterable[str]) -> int:
        return sum(int(np.prod(program.sites[site].shape)) for site in sites)

    for block in blocks:
        joint = (*block, name)
        if (
            all(priors[site].kind == "normal" and not alone(site) for site in joint)
            and size(joint) <= _JOINT
            and not tried.reason(joint)
        ):
            block.append(name)
            return
    blocks.append([name])


def _checked(
    program: Program[Any], values: Values, priors: _Priors, names: Sites
) -> list[tuple[Sites, str]]:
    """Return a block, or its sites alone, each with the reason why it cannot be updated."""
    if not (reason := _limits(program, values, priors, names)):
        return [(names, "")]
    if len(names) == 1:
        return [(names, reason)]
    return [one for name in names for one in _checked(program, values, priors, (name,))]


def _limits(program: Program[Any], values: Values, priors: _Priors, names: Sites) -> str:
    """Return why a block of these sites cannot be updated; an empty text where it can."""
    unlike = "its probabilities are not those of latent classes"
    counts = priors[names[0]].kind == "counts"
    if counts and not program.counts_classes:
        return unlike
    model, sample = program.model, program.sample()
    blocks = kinds_of(program, sample, values, (names,))
    size = sum(np.size(values[name]) for name in names)
    bounded = not all(is_unbounded(program.supports, name) for name in names)
    correlated = any(priors[name].correlated for name in names)
    if correlated and size > conditionals.DENSE_LIMIT:
        return f"it has {size:,} correlated entries (at most {conditionals.DENSE_LIMIT:,})"
    classes = latent_classes.expected_in(program, sample, values)
    try:
        blocks = tuple(coloured(program, values, block) for block in blocks)
        alone = blocks[0].kind != "rows" or not bounded
        if not alone and not is_entrywise(model, sample, values, blocks[0], classes):
            return conditionals.BOUNDED
        for block in blocks:
            check_conjugate(program, values, block)
    except (NotConjugateError, NotImplementedError) as error:
        return unlike if counts else str(error)
    return ""


def _priors(model: Model[Any], data: Any, values: Values) -> _Priors:
    sites: dict[str, _Site] = {}

    def read(values: Values) -> None:
        for name, site in trace(model, data, values).items():
            if site["type"] == "sample" and name != model.observed:
                sites[name] = _prior(site["fn"], np.shape(values[name]))

    jax.eval_shape(read, values)
    return sites


def _prior(fn: dist.Distribution, shape: tuple[int, ...]) -> _Site:
    if isinstance(unwrapped(fn), latent_classes.COUNTED):
        return _Site("counts", "", False)
    try:
        return _Site("normal", "", conditionals.prior(fn, shape).across is not None)
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
    log_odds = fn.log_weights() if isinstance(fn, GroupedMixture) else jnp.zeros((0, 1))
    try:
        rows = conditionals.observation(fn, value, _even_classes(fn))
    except NotImplementedError:  # such as of confused labels, whose probabilities are counted
        rows = conditionals.Observation(jnp.zeros(0), jnp.zeros(0), jnp.zeros(0))
    latent = {name: one for name, one in traced.items() if one["type"] == "sample"}
    del latent[model.observed]
    priors = {name: one["fn"].log_prob(one["value"]).sum() for name, one in latent.items()}
    log_odds = log_odds.reshape(-1, log_odds.shape[-1])
    return _Read(rows.logits.ravel(), log_odds, (rows.votes, rows.kappa, rows.shift), priors)


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

    def dependents(self, name: str) -> list[str]:
        """Return the sites whose prior depends on this one."""
        moved = self._read(self.here | {name: self.there[name]}).priors
        own = self.at_here.priors
        # What is not a number differs, too.
        return [other for other in own if other != name and own[other] != moved[other]]

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


def kinds_of(program: Program[Any], data: Any, values: Values, names: Names) -> tuple[Block, ...]:
    """Return blocks, each with the kind of its conditional."""
    model, classes = program.model, program.counts_classes
    permuted = [one.sites for one in model.symmetries if isinstance(one, Permute)]
    by_type = {site for sites in permuted for site in sites}
    type_of_prior = partial(latent_classes.type_of_prior, model, data, values)
    blocks: list[Block] = []
    for sites in names:
        first, single = sites[0], len(sites) == 1
        columns = range(np.shape(values[first])[-1] if np.ndim(values[first]) else 0)
        if classes and single and issubclass(type_of_prior(first), latent_classes.COUNTED):
            blocks.append(Block(sites, "counts"))
        elif classes and depends(log_weights_of, model, data, values, sites):
            blocks += [Block(sites, "class", column) for column in columns]
        elif single and first in by_type:
            blocks += [Block(sites, "type", column) for column in columns]
        else:
            blocks.append(Block(sites))
    return tuple(blocks)


def depends(
    function: Any, model: Model[Any], data: Any, values: Values, sites: Iterable[str]
) -> bool:
    """Return whether a function of model, data and values depends on any of these sites."""
    values = {name: np.asarray(value, float) for name, value in values.items()}
    gradient = _gradient(function, model, data, values, tuple(sites))
    return any(np.any(np.asarray(part) != 0) for part in gradient.values())


@partial(jax.jit, static_argnums=(0, 1, 4))
def _gradient(function: Any, model: Model[Any], data: Any, values: Values, sites: Sites) -> Values:
    """Differentiate the sum of the sines of the function's entries."""
    own = {name: values[name] for name in sites}
    return jax.grad(lambda part: jnp.sin(function(model, data, values | part)).sum())(own)


def log_weights_of(model: Model[Any], data: Any, values: Values) -> Array:
    """Return the prior log-probabilities of the classes."""
    return trace(model, data, values)[model.observed]["fn"].log_weights()
