"""Plan of a sweep over several kinds of judgement, with the blocks that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.distributions import biject_to, constraints

from raters.distributions.correlated import given_scores, normal_score
from raters.inference.arrays import PerJudge, Rng, Sites
from raters.inference.polya_gamma import detection, latent_classes, panels, sets, sweep
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Conditional, Diagonal
from raters.inference.polya_gamma.latent_classes import Counts
from raters.inference.polya_gamma.moves import Move, moves_of
from raters.inference.polya_gamma.rows import Block, rows_of
from raters.inference.polya_gamma.set_likelihood import Separate
from raters.inference.polya_gamma.sets import SeparateConditional
from raters.model import Scale, Values, local_sites, moved_sites
from raters.program import Program, pointwise_log_likelihood, start_of, trace
from raters.program.program import once

# Reach of a step of EM in unconstrained coordinates, and number of narrowings of it.
_REACH, _NARROWINGS = 2.0, 40
_RATIO = (5**0.5 - 1) / 2


class Tie(NamedTuple):
    """A site and those that it is tied to."""

    group: tuple[tuple[str, str], ...]
    place: int


def _score(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> tuple[Array, ...]:
    """Return the score of entries, its mean and deviation given those tied to it, and log f."""
    scores, own = [], None
    for place, (name, site) in enumerate(tie.group):
        part = next(one for one in plan.parts if one.name == name)
        given = part.values(values)
        if place == tie.place:
            given = given | {site: entries.reshape(jnp.shape(given[site]))}
        fn = trace(part.plan.model, row.part(name), given)[site]["fn"]
        score = normal_score(fn, given[site]).ravel()
        if place == tie.place:
            own = score, jnp.ravel(fn.log_prob(given[site]))
        else:
            scores.append(score)
    assert own is not None
    correlation = values[plan.model.correlation_of(tie.group)]
    return own[0], *given_scores(scores, correlation), own[1]


@partial(jax.jit, static_argnums=(0, 1))
def log_copula(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    """Return the log density of each entry given those tied to it, less that by itself."""
    score, mean, spread, _ = _score(plan, tie, row, values, entries)
    return dist.Normal(mean, spread).log_prob(score) - dist.Normal().log_prob(score)


@partial(jax.jit, static_argnums=(0, 1))
def to_scores(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    r"""Return the logarithm of dx/du of each entry x with the score u."""
    score, _, _, log_prob = _score(plan, tie, row, values, entries)
    return dist.Normal().log_prob(score) - log_prob


@partial(jax.jit, static_argnums=(0, 1))
def _log_score(plan: Any, tie: Tie, row: Any, values: Values, entries: Array) -> PerJudge:
    """Return the log density of each score given those tied to it, less that of the entry."""
    at = plan, tie, row, values, entries
    return log_copula(*at) + to_scores(*at)


@partial(jax.jit, static_argnums=(0, 1))
def _log_ratio(
    plan: Any, tie: Tie, row: Any, values: Values, proposed: Array, current: Array
) -> PerJudge:
    """Return the logarithm of the ratio of the copula's densities at two values of each entry."""
    at = partial(log_copula, plan, tie, row, values)
    return at(proposed) - at(current)


class Tied(NamedTuple):
    """Full conditional of independent entries, each tied to others."""

    own: Conditional | Counts
    given: tuple[Any, Tie, Any, Values]
    support: constraints.Constraint

    def copula_slope(self, entries: np.ndarray) -> np.ndarray:
        """Return the derivative of the copula's log density along each entry."""
        slope = jax.grad(lambda entries: log_copula(*self.given, entries).sum())
        return np.asarray(slope(jnp.asarray(entries)))

    def draw(self, rng: Rng, current: np.ndarray) -> np.ndarray:
        """Return a draw, or the current value, of each entry."""
        proposed = self.own.draw(rng, current)
        gain = np.asarray(_log_ratio(*self.given, proposed, current))
        return np.where(np.log(rng.random(len(gain))) < gain, proposed, current)

    def _density(self, entries: np.ndarray) -> np.ndarray:
        """Return the log density of each entry in normal scores, but for a constant."""
        return log_density(self.own, entries) + np.asarray(_log_score(*self.given, entries))

    def mode(self, current: np.ndarray) -> np.ndarray:
        """Return a likelier point of each entry by golden-section search, or the current one."""
        transform = biject_to(self.support)
        start = np.asarray(transform.inv(jnp.asarray(current)))

        def at(move: np.ndarray) -> np.ndarray:
            return np.asarray(transform(jnp.asarray(start + move)))

        def density(move: np.ndarray) -> np.ndarray:
            each = self._density(at(move))
            return np.where(np.isnan(each), -np.inf, each)

        low, high = np.full(len(start), -_REACH), np.full(len(start), _REACH)
        for _ in range(_NARROWINGS):
            left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
            falls = density(left) > density(right)
            low, high = np.where(falls, low, left), np.where(falls, right, high)
        middle = (low + high) / 2
        higher = density(middle) > density(np.zeros(len(start)))
        return np.where(higher, at(middle), current)


def log_density(own: Conditional | Counts, entries: np.ndarray) -> np.ndarray:
    """Return the log density of each entry of independent ones, but for a constant."""
    if isinstance(own, Counts):
        first, second = own.parameters
        return np.asarray((first - 1) * np.log(entries) + (second - 1) * np.log1p(-entries))
    if isinstance(own, SeparateConditional):
        return own.of_each(entries)
    assert isinstance(own, Diagonal)
    return np.asarray(own.shift * entries - own.diagonal * entries**2 / 2)


class Part(NamedTuple):
    """One kind of judgement."""

    name: str
    plan: sweep.Plan
    sites: tuple[tuple[str, str, tuple[int, ...]], ...]

    @property
    def names(self) -> Mapping[str, str]:
        """Name in the joint program of each site."""
        return {own: name for own, name, _ in self.sites}

    def values(self, values: Values) -> Values:
        """Return values of the sites of the part, of those of the joint program."""
        return {own: values[name].reshape(shape) for own, name, shape in self.sites}


class Member(NamedTuple):
    """A block of one kind of judgement: its place among the parts, and the block there."""

    part: int
    block: Block


@dataclass(frozen=True)
class Plan(sweep.Plan):
    """Updates of a sweep over several kinds of judgement."""

    parts: tuple[Part, ...] = ()
    members: tuple[tuple[Member, ...], ...] = ()
    ties: tuple[Tie | None, ...] = ()


# ------------------------------------------------------------------------------------ planning


def why_not(program: Program[Any]) -> str | None:
    """Explain why the sweeps of EM and Gibbs cannot run a program, or return None."""
    if not program.is_joint:
        return sweep.why_not(program)
    if program.mesh is not None:
        return "rows of several kinds of judgement are not divided over devices; leave mesh= out"
    model: Any = program.model
    bound = {member for group in (*model.shared, *model.tied) for member in group}
    for name, part in program.parts.items():
        reason = sweep.why_not(part)
        if panels.applies(part):
            reason = f"{part.model.title} has a sampler of its own; use NUTS or SVI"
        if reason is not None:
            return f"part {name!r}: {reason}"
        if both := [site for site in local_sites(part.model) if (name, site) in bound]:
            return f"part {name!r}: {both[0]!r} is drawn with its classes; use NUTS or SVI"
    return None


def steep_sites(program: Program[Any]) -> Sites:
    """Return the sites of no block with too many entries to update one by one."""
    if not program.is_joint:
        return sweep.steep_sites(program)
    with jax.enable_x64(True):
        return plan(program, start_of(program.model, program.data)).steep


def plan(program: Program[Any], values: Values) -> sweep.Plan:
    """Plan the sweep of a program of one kind of judgement, or of several."""
    if not program.is_joint:
        return sweep.plan(program, values)
    return _plan(program, values)


@once
def _plan(program: Program[Any], values: Values) -> Plan:
    model: Any = program.model
    sites = program.sites  # Raises where the parts do not fit together.
    parts = tuple(_part(program, values, name) for name in program.parts)
    blocks, members, tied = [], [], []
    for block, own in _joined(program, parts).items():
        here = parts[own[0].part].name, own[0].block.sites[0]
        tie = next((Tie(one, one.index(here)) for one in model.tied if here in one), None)
        if (len(own) == 1 or _is_joint(program, values, parts, own)) and (
            tie is None or _is_entrywise(program, values, parts, own[0])
        ):
            blocks.append(block)
            members.append(own)
            tied.append(tie)
    in_blocks = {name for block in blocks for name in block.sites}
    loose = {name: site for name, site in sites.items() if name not in in_blocks}
    steep = tuple(name for name, one in loose.items() if np.prod(one.shape) > sweep.STEEP)
    free = tuple(name for name in loose if name not in steep)
    # Ties leave no normal priors, which moves along symmetries need.
    tied_sites = {model.site_name(*member) for group in model.tied for member in group}
    symmetries = [
        one
        for one in model.symmetries
        if not isinstance(one, Move) or tied_sites.isdisjoint(moved_sites(one))
    ]

    def named(facts: Callable[[sweep.Plan], frozenset[str]]) -> frozenset[str]:
        return frozenset(part.names[site] for part in parts for site in facts(part.plan))

    of_ties = {name for block, tie in zip(blocks, tied, strict=True) if tie for name in block.sites}
    return Plan(
        model=model,
        supports=program.supports,
        classes=any(part.plan.classes for part in parts),
        blocks=tuple(blocks),
        scales=tuple(one for one in symmetries if isinstance(one, Scale)),
        free=free,
        reaching=frozenset(free) & _reaching(program, values, parts),
        in_logs=named(lambda own: own.in_logs) - of_ties,
        moves=moves_of(symmetries),
        steep=steep,
        parts=parts,
        members=tuple(members),
        ties=tuple(tied),
    )


def _part(program: Program[Any], values: Values, name: str) -> Part:
    """Plan the program of one kind of judgement."""
    model: Any = program.model
    part = program.parts[name]
    own = model.in_part(values, name, part.sites)
    bound = {site for group in (*model.shared, *model.tied) for of, site in group if of == name}
    planned = sweep.plan(part, own)
    blocks: list[Block] = []
    for block in planned.blocks:
        alone = [site for site in block.sites if site in bound]
        if not alone or len(block.sites) == 1:
            blocks.append(block)
            continue
        rest = tuple(site for site in block.sites if site not in bound)
        for sites in [(site,) for site in alone] + ([rest] if rest else []):
            blocks.append(coloured(part, own, Block(sites)))
    named = tuple(
        (site, model.site_name(name, site), tuple(facts.shape))
        for site, facts in part.sites.items()
    )
    steady = sets.steady_blocks(part, own, tuple(blocks)) if planned.of_sets else frozenset()
    planned = replace(planned, blocks=tuple(blocks), steady=steady, integrated=None, collapsed=())
    return Part(name, planned, named)


def _joined(program: Program[Any], parts: tuple[Part, ...]) -> dict[Block, tuple[Member, ...]]:
    """Return the blocks of all parts by their joint names, those of a shared site as one."""
    members: dict[Block, tuple[Member, ...]] = {}
    for place, part in enumerate(parts):
        for block in part.plan.blocks:
            names = tuple(part.names[site] for site in block.sites)
            joint = Block(names, block.kind, block.column)  # Rows are read by those of the parts.
            members[joint] = (*members.get(joint, ()), Member(place, block))
    number = {name: sum(name in part.names.values() for part in parts) for name in program.sites}
    return {block: own for block, own in members.items() if len(own) == number[block.sites[0]]}


def _is_joint(
    program: Program[Any], values: Values, parts: tuple[Part, ...], own: tuple[Member, ...]
) -> bool:
    """Return whether the conditionals of the parts have a product that can be drawn from."""
    first = own[0].block
    if first.kind == "counts":
        types = set()
        for part, (site, *_) in ((parts[one.part], one.block.sites) for one in own):
            sample = program.parts[part.name].sample(2)
            given = part.plan.model, sample, part.values(values), site
            types.add(latent_classes.type_of_prior(*given))
        return types <= {dist.Dirichlet, dist.Beta}
    names = parts[own[0].part].names
    bounded = not all(sets.is_unbounded(program.supports, names[site]) for site in first.sites)
    size = len(first.current(parts[own[0].part].values(values)))
    entrywise = all(_is_entrywise(program, values, parts, one) for one in own)
    of_sets = any(parts[one.part].plan.of_sets for one in own)
    if not of_sets:
        return entrywise or not bounded
    several = sum(parts[one.part].plan.of_sets for one in own) > 1
    return (entrywise and not several) or (not bounded and size <= DENSE_LIMIT)


def _is_entrywise(
    program: Program[Any], values: Values, parts: tuple[Part, ...], member: Member
) -> bool:
    """Return whether the entries of a block are independent of each other, given all else."""
    part, block = parts[member.part], member.block
    if block.kind == "counts":
        return True
    own, sample = program.parts[part.name], program.parts[part.name].sample(20)
    model, at = own.model, part.values(values)
    classes = latent_classes.expected(model, sample, at)[0] if part.plan.classes else None
    if part.plan.of_sets:
        return isinstance(sets.read(model, sample, at, block, classes, None)[0], Separate)
    rows = jax.eval_shape(lambda at: rows_of(model, sample, at, block, classes), at)
    correlated = rows.prior.across is not None
    return rows.entry is not None and len(rows.entry) == 1 and not correlated


def _reaching(program: Program[Any], values: Values, parts: tuple[Part, ...]) -> frozenset[str]:
    """Return the sites on which the likelihood of a part depends directly."""
    names = set()
    for part in parts:
        own = program.parts[part.name]
        at, sample = part.values(values), own.sample()
        given = pointwise_log_likelihood, own.model, sample, at
        names |= {part.names[site] for site in own.sites if detection.depends(*given, (site,))}
    return frozenset(names)
