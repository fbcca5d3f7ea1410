"""Sweep over several kinds of judgement: each kind has the rows of its own program, and what the
kinds share is updated given the rows of all of them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from raters.inference.arrays import Rng, Scalar
from raters.inference.polya_gamma import augmentation, latent_classes, local, sets, sweep, ties
from raters.inference.polya_gamma.conditionals import (
    Conditional,
    Dense,
    Diagonal,
    Gaussian,
    Weighted,
)
from raters.inference.polya_gamma.conditionals import conditional as gaussian
from raters.inference.polya_gamma.rows import Block
from raters.inference.polya_gamma.set_likelihood import Likelihood, Summed
from raters.inference.polya_gamma.several_plan import Member, Part, Plan
from raters.model import Values
from raters.program import log_joint, placing

# ------------------------------------------------------------------------------------- classes


def drawn_classes(plan: sweep.Plan, data: Any, values: Values, rng: Rng) -> tuple[Values, Any]:
    """Draw the latent classes, and with them the sites that are local to their units."""
    if not isinstance(plan, Plan):
        return _drawn(plan, data, values, rng)
    classes = {}
    for part in plan.parts:
        own, classes[part.name] = _drawn(part.plan, data.part(part.name), part.values(values), rng)
        values = values | {part.names[site]: own[site] for site in part.plan.model.local}
    return values, classes


def _drawn(plan: sweep.Plan, data: Any, values: Values, rng: Rng) -> tuple[Values, Any]:
    """Draw the classes of one kind of judgement."""
    model, classes = plan.model, None
    if plan.classes and not model.local:
        classes = latent_classes.drawn(model, data, values, augmentation.key_of(rng))
    for site in model.local:
        entries, classes = local.drawn(model, data, values, site, augmentation.key_of(rng))
        values = values | {site: np.asarray(entries)}
    return values, classes


def expected_classes(plan: sweep.Plan, data: Any, values: Values) -> Any:
    """Return the expected number of units of each class, array (unit, class), or by part; None
    without latent classes."""
    if isinstance(plan, Plan):
        return {
            part.name: expected_classes(part.plan, data.part(part.name), part.values(values))
            for part in plan.parts
        }
    return latent_classes.expected(plan.model, data, values)[0] if plan.classes else None


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Scalar:
    """Return the log joint density, with tied sites in normal scores."""
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
    `raters.inference.polya_gamma.sweep.block_conditional`."""
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
    """Return the conditional of a shared block of log-odds and utilities."""
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
