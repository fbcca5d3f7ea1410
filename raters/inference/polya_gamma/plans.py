"""Plan of a sweep: the blocks of each kind of judgement, what they share, and all other updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from raters.inference.arrays import Sites
from raters.inference.polya_gamma import detection, latent_classes, local_effects
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.rows import Block, is_entrywise
from raters.inference.polya_gamma.ties import Tie
from raters.inference.polya_gamma.unconstrained import is_unbounded
from raters.model import Model, Scale, Translation, Values, local_sites
from raters.program import Program, Supports, placing, pointwise_log_likelihood, start_of
from raters.program.program import once
from raters.program.traces import read_by

# EM updates a free site with more entries than this by its gradient.
STEEP = 500


class Part(NamedTuple):
    """One kind of judgement: its blocks, and its sites with their names in the program."""

    name: str
    model: Model[Any]
    classes: bool
    chooses: bool
    blocks: tuple[Block, ...]
    in_logs: frozenset[str]
    sites: tuple[tuple[str, str, tuple[int, ...]], ...]

    @property
    def names(self) -> dict[str, str]:
        """Name in the program of each site."""
        return {own: name for own, name, _ in self.sites}

    def data(self, data: Any) -> Any:
        """Return the judgements of this kind."""
        return data.part(self.name) if self.name else data

    def values(self, values: Values) -> Values:
        """Return values of the sites of the part, of those of the program."""
        if not self.name:
            return values
        return {own: values[name].reshape(shape) for own, name, shape in self.sites}


class Member(NamedTuple):
    """A block of one kind of judgement: its place among the parts, and the block there."""

    part: int
    block: Block


@dataclass(frozen=True)
class Plan:
    """Updates of a sweep."""

    model: Model[Any]
    supports: Supports
    parts: tuple[Part, ...]
    blocks: tuple[Block, ...]
    members: tuple[tuple[Member, ...], ...]
    ties: tuple[Tie | None, ...]
    scales: tuple[Scale, ...]
    free: Sites
    reaching: frozenset[str]
    in_logs: frozenset[str]
    steep: Sites = ()
    governed: Sites = ()
    governors: Sites = ()

    @property
    def is_joint(self) -> bool:
        """True for several kinds of judgement."""
        return len(self.parts) > 1

    @property
    def classes(self) -> bool:
        """True if the likelihood of a part sums classes out."""
        return any(part.classes for part in self.parts)

    @property
    def chooses(self) -> bool:
        """True where a part has choices from sets, whose sites are moved by their gradient."""
        return any(part.chooses for part in self.parts)

    @property
    def hyper(self) -> Sites:
        """Hyper-parameters: free sites that enter the likelihood only through other sites."""
        return tuple(name for name in self.free if name not in self.reaching)

    @property
    def orbits(self) -> tuple[Scale | Translation, ...]:
        """Orbits along which samplers move: those of scales, and translations."""
        symmetries = self.model.symmetries
        return (*self.scales, *(one for one in symmetries if isinstance(one, Translation)))

    def moved_with(self, site: str) -> Sites:
        """Return what scales move with entries of a site between bounds, at which orbits end."""
        if is_unbounded(self.supports, site):
            return ()
        return tuple(up for scale in self.scales if site in scale.down for up in scale.up)

    def holding_hyper(self) -> Plan:
        """Return the plan of the same sweep with fixed hyper-parameters."""
        kept = [name for name in self.supports if name not in self.hyper]
        free = tuple(name for name in self.free if name in kept)
        return replace(self, scales=tuple(within(one, kept) for one in self.scales), free=free)


def within(scale: Scale, names: Sequence[str]) -> Scale:
    """Return the symmetry of some of its sites."""
    up, down = (tuple(one for one in side if one in names) for side in (scale.up, scale.down))
    return Scale(up, down)


def why_not(program: Program[Any]) -> str | None:
    """Explain why the sweeps of EM and Gibbs cannot run a program, or return None."""
    if program.is_joint and program.mesh is not None:
        return "rows of several kinds of judgement are not divided over devices; leave mesh= out"
    for name, part in program.parts.items():
        reason = _why_not(part)
        if not name:
            return reason
        bound = _bound(program.model, name)
        if reason is None and (both := [site for site in local_sites(part.model) if site in bound]):
            reason = f"{both[0]!r} is drawn with its classes; use HMC, NUTS or SVI"
        if reason is not None:
            return f"part {name!r}: {reason}"
    return None


def _bound(model: Any, part: str) -> set[str]:
    """Return the sites of a part that are shared or tied."""
    groups = (*model.shared, *model.tied) if part else ()
    return {site for group in groups for of, site in group if of == part}


def _why_not(program: Program[Any]) -> str | None:
    """Explain why Pólya-Gamma back-ends cannot run a program of one kind of judgement."""
    try:
        with jax.enable_x64(True):  # In the precision of a run.
            if reason := detection.why_none(program):
                return reason
            detection.blocks_of(program)
    except NotImplementedError as error:
        title = program.model.title
        return f"{title} cannot be augmented by Pólya-Gamma: {error}; use HMC, NUTS or SVI"
    return None


def plan_of(program: Program[Any]) -> Plan:
    """Return the plan of a program at its start."""
    with jax.enable_x64(True):
        return plan(program, start_of(program.model, program.data))


@once
def plan(program: Program[Any], values: Values) -> Plan:
    """Plan a model's sweep, and check its blocks and symmetries."""
    model: Any = program.model
    sites = program.sites
    parts = tuple(_part(program, values, name) for name in program.parts)
    ties = model.tied if program.is_joint else ()
    blocks, members, tied = [], [], []
    for block, own in _joined(program, parts).items():
        here = parts[own[0].part].name, own[0].block.sites[0]
        tie = next((Tie(one, one.index(here)) for one in ties if here in one), None)
        if (len(own) == 1 or _is_joint(program, values, parts, own)) and (
            tie is None or _is_entrywise(program, values, parts, own[0])
        ):
            blocks.append(block)
            members.append(own)
            tied.append(tie)
    in_blocks = {name for block in blocks for name in block.sites}
    loose = {name: site for name, site in sites.items() if name not in in_blocks}
    chosen = _reaching(program, values, tuple(one for one in parts if one.chooses), tuple(loose))
    # Without blocks, one kind of judgement has a gradient in all sites.
    limit = STEEP if blocks or program.is_joint or chosen else -1
    large = {name for name, site in loose.items() if np.prod(site.shape) > limit}
    steep = tuple(name for name in loose if name in large | chosen)
    free = tuple(name for name in loose if name not in steep)
    of_ties = {name for block, tie in zip(blocks, tied, strict=True) if tie for name in block.sites}
    in_logs = {part.names[site] for part in parts for site in part.in_logs}
    found = Plan(
        model=model,
        supports=program.supports,
        parts=parts,
        blocks=tuple(blocks),
        members=tuple(members),
        ties=tuple(tied),
        scales=tuple(one for one in model.symmetries if isinstance(one, Scale)),
        free=free,
        reaching=_reaching(program, values, parts, free),
        in_logs=frozenset(in_logs - of_ties),
        steep=steep,
    )
    return _with_governed(program, found, values)


def _with_governed(program: Program[Any], plan: Plan, values: Values) -> Plan:
    """Add the sites of blocks that move with what governs them: their priors do not depend on what
    a scale moves with them, which would be others on the way back; and what governs those between
    bounds."""
    each = [block for block, tie in zip(plan.blocks, plan.ties, strict=True) if tie is None]
    each = [block for block in each if block.kind != "counts" and block.column == 0 and plan.hyper]

    governed, governors = [], set[str]()
    unit = placing.first_unit(program.data)
    for name in (name for block in each for name in block.sites):
        ups, above = plan.moved_with(name), detection.governors(program.model, unit, values, name)
        if above.isdisjoint(ups):
            governed.append(name)
            governors |= above & set(plan.hyper if ups else ())
    return replace(plan, governed=tuple(governed), governors=tuple(sorted(governors)))


def _part(program: Program[Any], values: Values, name: str) -> Part:
    """Find the blocks of one kind of judgement, and check them."""
    joint: Any = program.model
    own, at = program.parts[name], values
    model = own.model
    named = [(site, site, tuple(facts.shape)) for site, facts in own.sites.items()]
    if name:
        at = joint.in_part(values, name, own.sites)
        named = [(site, joint.site_name(name, site), shape) for site, _, shape in named]
    blocks = detection.blocks_of(own)
    local_effects.check(own, at)
    counted = {block.sites[0] for block in blocks if block.kind == "counts"}
    unbounded = latent_classes.is_unbounded
    in_logs = frozenset(site for site in counted if unbounded(model, own.data, at, site))
    bound, kept = _bound(joint, name), list[Block]()
    for block in blocks:
        alone = [site for site in block.sites if site in bound]
        if not alone or len(block.sites) == 1:
            kept.append(block)
            continue
        rest = tuple(site for site in block.sites if site not in bound)
        for sites in [(site,) for site in alone] + ([rest] if rest else []):
            kept.append(coloured(own, at, Block(sites)))
    facts = own.counts_classes, detection.chooses(own), tuple(kept), in_logs
    return Part(name, model, *facts, tuple(named))


def _reaching(
    program: Program[Any], values: Values, parts: tuple[Part, ...], free: Sites
) -> frozenset[str]:
    """Return the free sites on which the likelihood of a part depends directly."""
    names = set()
    for part in parts:
        own, at = program.parts[part.name], part.values(values)
        # Arrays on the host would meet traced ones in NumPyro's checks of values.
        data = jax.tree.map(jnp.asarray, own.data)
        read = read_by(partial(pointwise_log_likelihood, own.model, data), at)
        names |= {part.names[site] for site in read} & set(free)
    return frozenset(names)


def _joined(program: Program[Any], parts: tuple[Part, ...]) -> dict[Block, tuple[Member, ...]]:
    """Return the blocks of all parts by their joint names, those of a shared site as one."""
    members: dict[Block, tuple[Member, ...]] = {}
    for place, part in enumerate(parts):
        for block in part.blocks:
            names = tuple(part.names[site] for site in block.sites)
            # Rows are read by the blocks of the parts.
            joint = Block(names, block.kind, block.column) if part.name else block
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
            given = part.model, sample, part.values(values), site
            types.add(latent_classes.type_of_prior(*given))
        return types <= {dist.Dirichlet, dist.Beta}
    names = parts[own[0].part].names
    bounded = not all(is_unbounded(program.supports, names[site]) for site in first.sites)
    return not bounded or all(_is_entrywise(program, values, parts, one) for one in own)


def _is_entrywise(
    program: Program[Any], values: Values, parts: tuple[Part, ...], member: Member
) -> bool:
    """Return whether the entries of a block are independent of each other, given all else."""
    part = parts[member.part]
    own, sample = program.parts[part.name], program.parts[part.name].sample(20)
    model, at = own.model, part.values(values)
    classes = latent_classes.expected(model, sample, at)[0] if part.classes else None
    return is_entrywise(model, sample, at, member.block, classes)
