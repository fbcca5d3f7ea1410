"""Conditionals of all types of a mixture at once, in EM.

Given the expected classes, the types have no logits in common, so that the rows of one do not
change while those of another are updated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from raters.inference.polya_gamma import augmentation
from raters.inference.polya_gamma.conditionals import Conditional, Gaussian, Weighted, conditional
from raters.inference.polya_gamma.rows import Block, record
from raters.model import Model, Values


def of_types(
    model: Model[Any],
    data: Any,
    values: Values,
    blocks: tuple[Block, ...],
    classes: Any,
    newton: bool,
) -> dict[Block, Conditional]:
    """Return the conditionals of the types of a site, for their modes."""
    found = {}
    parts = jax.tree.map(np.asarray, _weighted(model, data, values, blocks, classes, newton))
    for block, (rows, prior) in zip(blocks, parts, strict=True):
        own = Weighted(*rows)
        found[block] = conditional(own.entry, prior, joint=False, draws=False)
        found[block].add(own)
    return found


@partial(jax.jit, static_argnums=(0, 3, 5))
def _weighted(
    model: Model[Any],
    data: Any,
    values: Values,
    blocks: tuple[Block, ...],
    classes: Any,
    newton: bool,
) -> tuple[tuple[Any, Gaussian], ...]:
    """Record the rows of blocks with their weights: the parts of `Weighted`, and the prior."""
    weights, parts = augmentation.curvature if newton else augmentation.expectation, []
    for block in blocks:
        rows = record(model, data, values, block, classes).stacked()
        omega, kappa, _ = weights(rows.logits, rows.votes, rows.kappa)
        parts.append(((rows.entry, rows.weight, omega, kappa, rows.offset), rows.prior))
    return tuple(parts)
