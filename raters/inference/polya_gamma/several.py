"""Sweep of a program of several kinds of judgement: each kind has the plan of its own program, and
what the kinds share is updated given the rows of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from raters.inference.polya_gamma import (
    augmentation,
    found,
    latent_classes,
    local,
    panels,
    sets,
    sweep,
    ties,
)
from raters.inference.polya_gamma.colours import coloured
from raters.inference.polya_gamma.conditionals import (
    DENSE_LIMIT,
    Conditional,
    Dense,
    Diagonal,
    Gaussian,
    Weighted,
)
from raters.inference.polya_gamma.conditionals import conditional as gaussian
from raters.inference.polya_gamma.rows import Block, rows_of
from raters.inference.polya_gamma.set_likelihood import Likelihood, Separate, Summed
from raters.model import Affine, CommonShift, Scale, Symmetry, Transfer, Values
from raters.program import Program, log_joint, placing, pointwise_log_likelihood, start_of
from raters.program.remembered import remembered

# Sites of these are divided anew by their normal priors, which tied sites have not.
_BY_NORMAL_PRIORS = (Transfer, CommonShift, Affine)


class Part(NamedTuple):
    """One kind of judgement.

    Attributes
    ----------
    name : str
    plan : sweep.Plan
        Updates of its own program, with shared and tied sites in blocks of their own.
    sites : tuple of (str, str, tuple of int)
        Of each site its name in the part, its name in the joint program, and its shape.
    """

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
    """Updates of a sweep over several kinds of judgement.

    Attributes
    ----------
    parts : tuple of Part
    members : tuple of tuple of Member
        Of each block, the blocks of the parts that it is. The prior is that of the first.
    ties : tuple of Tie or None
        Of each block, the sites that it is tied to.
    """

    parts: tuple[Part, ...] = ()
    members: tuple[tuple[Member, ...], ...] = ()
    ties: tuple[ties.Tie | None, ...] = ()

    several: ClassVar[bool] = True


# ------------------------------------------------------------------------------------ planning


def why_not(program: Program[Any]) -> str | None:
    """Explain why the sweeps of EM and Gibbs cannot run a program, or return None."""
    if not program.parts:
        return sweep.why_not(program)
    if program.mesh is not None:
        return "rows of several kinds of judgement are not divided over devices; leave mesh= out"
    model: Any = program.model
    bound = {member for group in (*model.shared, *model.tied) for member in group}
    for name, part in program.parts.items():
        if panels.applies(part):
            reason = f"{part.model.title} has a sampler of its own; use NUTS or SVI"
            return f"part {name!r}: {reason}"
        if (reason := sweep.why_not(part)) is not None:
            return f"part {name!r}: {reason}"
        if both := [site for site in part.model.local if (name, site) in bound]:
            return f"part {name!r}: {both[0]!r} is drawn with its classes; use NUTS or SVI"
    return None


def steep_sites(program: Program[Any]) -> tuple[str, ...]:
    """Return the sites of no block with too many entries to update one by one."""
    if not program.parts:
        return sweep.steep_sites(program)
    with jax.enable_x64(True):
        return plan(program, start_of(program.model, program.data)).steep


def plan(program: Program[Any], values: Values) -> sweep.Plan:
    """Plan the sweep of a program of one kind of judgement, or of several."""
    if not program.parts:
        return sweep.plan(program, values)
    planned: Plan = _plan(program, values)
    return planned


@remembered
def _plan(program: Program[Any], values: Values) -> Plan:
    model: Any = program.model
    parts = tuple(_part(program, values, name) for name in program.parts)
    blocks, members, tied = [], [], []
    for block, own in _joined(program, parts).items():
        tie = _tie_of(model, parts, own)
        if (len(own) == 1 or _is_joint(program, values, parts, own)) and (
            tie is None or _is_entrywise(program, values, parts, own[0])
        ):
            blocks.append(block)
            members.append(own)
            tied.append(tie)
    in_blocks = {name for block in blocks for name in block.sites}
    loose = {name: site for name, site in program.sites.items() if name not in in_blocks}
    steep = tuple(n for n, site in loose.items() if np.prod(site.shape) > sweep.STEEP)
    free = tuple(name for name in loose if name not in steep)
    symmetries = [one for one in model.symmetries if not _is_broken(model, one)]

    def named(facts: Callable[[sweep.Plan], frozenset[str]]) -> frozenset[str]:
        return frozenset(
            part.names[site] for part in parts for site in facts(part.plan) if site in part.names
        )

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
        broken=named(lambda own: own.broken),
        transfers=tuple(one for one in symmetries if isinstance(one, Transfer)),
        shifts=tuple(one for one in symmetries if isinstance(one, CommonShift)),
        affine=tuple(one for one in symmetries if isinstance(one, Affine)),
        steep=steep,
        parts=parts,
        members=tuple(members),
        ties=tuple(tied),
    )


def _part(program: Program[Any], values: Values, name: str) -> Part:
    """Plan the program of one kind of judgement, with shared and tied sites in blocks of their
    own."""
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
    sites = tuple(
        (site, model.site_name(name, site), tuple(facts.shape))
        for site, facts in part.sites.items()
    )
    steady = sets.steady_blocks(part, own, tuple(blocks)) if planned.of_sets else frozenset()
    planned = replace(planned, blocks=tuple(blocks), steady=steady, integrated=None, collapsed=())
    return Part(name, planned, sites)


def _joined(program: Program[Any], parts: tuple[Part, ...]) -> dict[Block, tuple[Member, ...]]:
    """Return the blocks of all parts in the names of the joint program, those of a shared site as
    one; without the sites that are in a block of some of their parts only."""
    members: dict[Block, tuple[Member, ...]] = {}
    for place, part in enumerate(parts):
        for block in part.plan.blocks:
            names = tuple(part.names[site] for site in block.sites)
            colours = block.colours if len(names) > 1 else ()
            joint = Block(names, block.kind, block.column, colours)
            members[joint] = (*members.get(joint, ()), Member(place, block))
    number = {name: sum(name in part.names.values() for part in parts) for name in program.sites}
    return {block: own for block, own in members.items() if len(own) == number[block.sites[0]]}


def _tie_of(model: Any, parts: tuple[Part, ...], own: tuple[Member, ...]) -> ties.Tie | None:
    """Return the tie of a block, or None."""
    here = parts[own[0].part].name, own[0].block.sites[0]
    for group in model.tied:
        if here in group:
            return ties.Tie(group, group.index(here))
    return None


def _is_joint(
    program: Program[Any], values: Values, parts: tuple[Part, ...], own: tuple[Member, ...]
) -> bool:
    """Return whether the conditionals of the parts have a product that can be drawn from."""
    first = own[0].block
    if first.kind == "counts":
        return all(
            latent_classes.is_plain(
                parts[one.part].plan.model,
                program.parts[parts[one.part].name].sample(2),
                parts[one.part].values(values),
                one.block.sites[0],
            )
            for one in own
        )
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


def _is_broken(model: Any, symmetry: Symmetry) -> bool:
    """Return whether a symmetry needs normal priors of sites that are tied."""
    tied = {model.site_name(*member) for group in model.tied for member in group}
    if not isinstance(symmetry, _BY_NORMAL_PRIORS):
        return False
    return bool(tied & set(_moved(symmetry)))


def _moved(symmetry: Symmetry) -> tuple[str, ...]:
    """Return the sites that a symmetry moves."""
    if isinstance(symmetry, CommonShift):
        return symmetry.sites
    if isinstance(symmetry, Affine):
        return symmetry.point, symmetry.slope, symmetry.intercept
    assert isinstance(symmetry, Transfer)
    moved = (symmetry.common, symmetry.own)
    return moved if symmetry.factor is None else (*moved, symmetry.factor)


def _reaching(program: Program[Any], values: Values, parts: tuple[Part, ...]) -> frozenset[str]:
    """Return the sites on which the likelihood of a part depends directly."""
    names = set()
    for part in parts:
        own = program.parts[part.name]
        at, sample = part.values(values), own.sample()
        names |= {
            part.names[site]
            for site in own.sites
            if found.depends(pointwise_log_likelihood, own.model, sample, at, (site,))
        }
    return frozenset(names)


# ------------------------------------------------------------------------------------- classes


def drawn_classes(
    plan: sweep.Plan, data: Any, values: Values, rng: np.random.Generator
) -> tuple[Values, Any]:
    """Draw the latent classes, and with them the sites that are local to their units.

    Returns
    -------
    values : dict of str to array
    classes : array (unit, class), or dict of such by part, or None
        One-hot rows; None without latent classes.
    """
    if not isinstance(plan, Plan):
        return _drawn(plan, data, values, rng)
    classes = {}
    for part in plan.parts:
        own, classes[part.name] = _drawn(part.plan, data.part(part.name), part.values(values), rng)
        values = values | {part.names[site]: own[site] for site in part.plan.model.local}
    return values, classes


def _drawn(
    plan: sweep.Plan, data: Any, values: Values, rng: np.random.Generator
) -> tuple[Values, Any]:
    """Draw the classes of one kind of judgement."""
    model, classes = plan.model, None
    if plan.classes and not model.local:
        classes = latent_classes.drawn(model, data, values, augmentation.key_of(rng))
    for site in model.local:
        entries, classes = local.drawn(model, data, values, site, augmentation.key_of(rng))
        values = values | {site: np.asarray(entries)}
    return values, classes


def expected_classes(plan: Plan, data: Any, values: Values) -> dict[str, Any]:
    """Return the expected number of units of each class, by part; None without latent classes."""
    return {
        part.name: latent_classes.expected(
            part.plan.model, data.part(part.name), part.values(values)
        )[0]
        if part.plan.classes
        else None
        for part in plan.parts
    }


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Float[Array, ""]:
    """Return the log joint density, with tied sites in normal scores.

    A Gaussian copula has no largest density where the bounds of two tied sites meet; in scores,
    whose prior is normal, the mode is always inside.
    """
    total = log_joint(plan.model, data, values)
    row = data.first_unit()
    for block, tie in zip(plan.blocks, plan.ties, strict=True):
        if tie is not None:
            total += ties.to_scores(plan, tie, row, values, values[block.sites[0]]).sum()
    return total


# -------------------------------------------------------------------------------- conditionals


class _Reading(NamedTuple):
    """A block of one kind of judgement, with what its conditional is read from."""

    part: Part
    data: Any
    values: Values
    block: Block
    weights: sweep.Weights
    classes: Any
    held: sets.Held

    def rows(self) -> tuple[Gaussian, list[Weighted]]:
        """Return the prior and the weighted rows of a block of log-odds."""
        model = self.part.plan.model
        pieces = list(
            sweep.weighted_rows(
                model, self.data, self.values, self.block, self.weights, self.classes
            )
        )
        prior: Gaussian = jax.tree.map(np.asarray, pieces[0][0].prior)
        return prior, [weighted for _, weighted in pieces]

    def choices(self) -> tuple[Gaussian, Likelihood]:
        """Return the prior and the likelihood of a block of utilities."""
        model = self.part.plan.model
        likelihood, prior = sets.read(
            model, self.data, self.values, self.block, self.classes, self.held
        )
        return prior, likelihood


def conditional(
    plan: sweep.Plan,
    data: Any,
    values: Values,
    block: Block,
    weights: sweep.Weights,
    classes: Any = None,
    *,
    draws: bool,
    held: sets.Held | None = None,
) -> Conditional | latent_classes.Counts | ties.Tied:
    """Assemble the full conditional of a block, given the rows of all parts that it is in; see
    `raters.inference.polya_gamma.sweep.block_conditional`.

    Of a shared site the augmented log-likelihoods of the parts add up, and the prior is that of
    the first part.
    """
    if not isinstance(plan, Plan):
        return sweep.block_conditional(
            plan, data, values, block, weights, classes, draws=draws, held=held
        )
    place = plan.blocks.index(block)
    readings = [
        _reading(plan, data, values, member, weights, classes, held)
        for member in plan.members[place]
    ]
    own: Conditional | latent_classes.Counts
    if len(readings) == 1:
        one = readings[0]
        own = sweep.block_conditional(
            one.part.plan,
            one.data,
            one.values,
            one.block,
            one.weights,
            one.classes,
            draws=draws,
            held=one.held,
        )
    elif block.kind == "counts":
        own = _counted(readings)
    else:
        own = _together(readings, draws)
    tie = plan.ties[place]
    if tie is None:
        return own
    row = data.first_unit() if held is None else held.row(data)
    return ties.Tied(own, plan, tie, row, values, plan.supports[block.sites[0]])


def _reading(
    plan: Plan,
    data: Any,
    values: Values,
    member: Member,
    weights: sweep.Weights,
    classes: Any,
    held: sets.Held | None,
) -> _Reading:
    part = plan.parts[member.part]

    def own_weights(which: Any, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return weights((part.name, which), *rows)

    own = None if classes is None else classes[part.name]
    kept = sets.Held(part.plan.steady)
    if held is not None:
        kept = held.of_part(part.name, part.plan.steady)
    given = part.values({name: np.asarray(value) for name, value in values.items()})
    return _Reading(part, data.part(part.name), given, member.block, own_weights, own, kept)


def _counted(readings: list[_Reading]) -> latent_classes.Counts:
    """Return the conditional of shared probabilities: counts of all parts."""
    first, *others = readings
    site = first.block.sites[0]
    total = latent_classes.parameters(
        first.part.plan.model, first.data, first.values, first.classes, site
    )
    for one in others:
        model, own = one.part.plan.model, one.block.sites[0]
        given = latent_classes.parameters(model, one.data, one.values, one.classes, own)
        row = placing.first_unit(one.data)
        prior = latent_classes.concentrations(model, row, one.values, own)
        total = tuple(
            part + (here - less) for part, here, less in zip(total, given, prior, strict=True)
        )
    return latent_classes.conditional(total, site in first.part.plan.in_logs)


def _together(readings: list[_Reading], draws: bool) -> Conditional:
    """Return the conditional of a shared block of log-odds and utilities.

    Augmented log-odds add a precision and a shift to a normal prior, under which utilities are
    then.
    """
    prior: Gaussian | None = None
    pieces: list[Weighted] = []
    likelihoods: list[Likelihood] = []
    for one in readings:
        if one.part.plan.of_sets:
            own, likelihood = one.choices()
            likelihoods.append(likelihood)
        else:
            own, weighted = one.rows()
            pieces += weighted
        prior = own if prior is None else prior
    assert prior is not None
    if pieces:
        normal = _normal(prior, pieces, draws, dense=bool(likelihoods))
        for piece in pieces:
            normal.add(piece)
        if not likelihoods:
            return normal
        prior = _as_prior(normal)
    chosen = next(one for one in readings if one.part.plan.of_sets)
    likelihood = likelihoods[0] if len(likelihoods) == 1 else Summed(likelihoods)
    return sets.under(prior, likelihood, chosen.held, chosen.block)


def _normal(prior: Gaussian, pieces: list[Weighted], draws: bool, dense: bool) -> Conditional:
    """Return the solver for the rows with the most entries."""
    entries = [piece.entry for piece in pieces]
    widest = None
    if all(entry is not None for entry in entries):
        widest = max((entry for entry in entries if entry is not None), key=len)
    if dense and (widest is None or len(widest) > 1):
        return Dense(prior)
    return gaussian(widest, prior, joint=False, draws=draws)


def _as_prior(normal: Conditional) -> Gaussian:
    """Return a normal conditional as the prior of further judgements."""
    prior = normal.prior
    if isinstance(normal, Diagonal):
        known = normal.diagonal > 0
        mean = np.where(known, normal.shift / np.where(known, normal.diagonal, 1.0), 0.0)
        return prior._replace(mean=mean, precision=normal.diagonal)
    assert isinstance(normal, Dense)
    precision = normal.precision()
    diagonal = np.diag(precision).copy()
    return prior._replace(
        mean=normal.mode(prior.mean), precision=diagonal, across=precision - np.diag(diagonal)
    )
