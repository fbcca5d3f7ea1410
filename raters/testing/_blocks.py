"""Check that conditionals read by the Pólya-Gamma back-ends are those of a model's blocks."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer.util

from raters.errors import NotConjugateError
from raters.inference.polya_gamma import latent_classes, plans, sweep, ties
from raters.inference.polya_gamma.rows import Block
from raters.model import Model, Values
from raters.program import Program, log_prior, pointwise_log_likelihood


class Densities(NamedTuple):
    """Log densities at one point."""

    prior: jax.Array
    joint: jax.Array
    pointwise: jax.Array
    slope: Values
    by_numpyro: jax.Array


@partial(jax.jit, static_argnums=0)
def densities(model: Model[Any], data: Any, values: Values) -> Densities:
    """Compute all densities together: one compilation serves every check."""

    def joint(values: Values) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        prior = log_prior(model, data, values)
        pointwise = pointwise_log_likelihood(model, data, values)
        return prior + pointwise.sum(), (prior, pointwise)

    (total, (prior, pointwise)), slope = jax.value_and_grad(joint, has_aux=True)(values)
    by_numpyro = numpyro.infer.util.log_density(model, (data,), {}, values)[0]
    return Densities(prior, total, pointwise, slope, by_numpyro)


_TOLERANCE = 1e-8


def check_blocks(program: Program[Any], values: Values) -> None:
    """Blocks are conjugate, and each conditional has the slope of the joint density."""
    model = program.model
    if program.is_joint and plans.why_not(program):
        return
    try:
        plan = plans.plan(program, values)
    except NotImplementedError:
        return
    except NotConjugateError as error:
        raise AssertionError(str(error)) from error
    if not plan.blocks:
        return
    data = jax.tree.map(jnp.asarray, program.data)
    values = {name: jnp.asarray(value, float) for name, value in values.items()}
    classes = sweep.expected_classes(plan, data, values)
    slope = densities(model, data, values).slope
    for block in plan.blocks:
        _check_slope(plan, data, values, block, classes, slope)


def _check_slope(
    plan: plans.Plan, data: Any, values: Values, block: Block, classes: Any, slope: Values
) -> None:
    given = sweep.conditional(plan, data, values, block, sweep.Weights("mean"), classes)
    current, expected = block.current(values), block.current(slope)
    if isinstance(given, ties.Tied):
        expected = expected - given.copula_slope(current)
        given = given.own
    if isinstance(given, latent_classes.Mixed):
        given = given.averaged(current)
    if isinstance(given, latent_classes.Counts):
        slopes, expected = _slopes_in_logs(given, current, expected)
    else:
        slopes = given.slope(current)
    wrong = float(np.max(np.abs(slopes - expected) / (1 + np.abs(expected)), initial=0.0))
    assert wrong <= 100 * _TOLERANCE, (
        f"the conditional read of block {block.sites} has a slope that differs by {wrong:.3g}"
        " (relative) from that of the joint density"
    )


def _slopes_in_logs(
    given: latent_classes.Counts, probs: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of conditional and density along log-odds, as probabilities stay in a simplex."""
    if len(given.parameters) == 2:
        right, wrong = (parameter.ravel() - 1 for parameter in given.parameters)
        return right - (right + wrong) * probs, probs * (1 - probs) * slope
    less = given.parameters[0] - 1
    probs, slope = probs.reshape(less.shape), probs.reshape(less.shape) * slope.reshape(less.shape)
    return less - probs * less.sum(-1, keepdims=True), slope - probs * slope.sum(-1, keepdims=True)
