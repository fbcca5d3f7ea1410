"""Modes of several kinds of judgement and of choices from sets."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from raters.inference.arrays import Scalar
from raters.inference.polya_gamma import conditionals, detection, plans, ties
from raters.inference.polya_gamma.plans import Plan
from raters.model import Values, marginal_of
from raters.program import Program, log_joint


@partial(jax.jit, static_argnums=0)
def objective(plan: Plan, data: Any, values: Values) -> Scalar:
    """Return the log joint density, with tied sites in normal scores."""
    total = log_joint(plan.model, data, values)
    row = data.first_unit()
    for block, tie in zip(plan.blocks, plan.ties, strict=True):
        if tie is not None:
            total += ties.to_scores(plan, tie, row, values, values[block.sites[0]]).sum()
    return total


def why_not(program: Program[Any], draws: int) -> str | None:
    """Explain why `PGEM` has no mode of several kinds or of choices, or no draws around it."""
    if not program.is_joint and not detection.chooses(program):
        return None
    for name, part in program.parts.items():
        marginal = marginal_of(part.model, part.data)
        if isinstance(marginal, str):
            return f"part {name!r}: {marginal}"
        if marginal is not None:
            which = f"PGEM integrates {marginal.site!r} of {part.model.title} out"
            return f"part {name!r}: {which}, in one kind of judgement only; use PGGibbs or NUTS"
    plan = plans.plan_of(program)
    if not (plan.blocks or plan.chooses):
        return f"{program.model.title} has no site that EM updates by a block; use NUTS or SVI"
    moved = {*plan.steep, *(name for block in plan.blocks for name in block.sites)}
    model: Any = program.model
    tied = [model.site_name(*one) for group in model.tied for one in group] if plan.is_joint else []
    if loose := [name for name in tied if name not in moved]:
        return f"{loose[0]!r} is tied, and its entries are not independent; use PGGibbs or NUTS"
    size = sum(
        int(np.prod(site.shape)) for name, site in program.sites.items() if name not in plan.hyper
    )
    if draws and size > conditionals.DENSE_LIMIT and not plan.chooses:
        what = f"draws around a mode of {size:,} numbers (at most {conditionals.DENSE_LIMIT:,})"
        return f"PGEM has no {what}; PGEM(draws=0) gives the mode, and PGGibbs draws"
    return None
