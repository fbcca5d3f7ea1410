"""Check that conditionals read by the Pólya-Gamma back-ends are those of a model's blocks."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer.util

from raters.errors import NotConjugateError
from raters.inference.polya_gamma import latent_classes, plans, sums, sweep, ties
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
    for place, block in enumerate(plan.blocks):
        readings = sweep.readings_of(plan, place, data, values, classes)
        _check_slope(plan, place, data, values, readings, block.flat(slope))


def _check_slope(
    plan: plans.Plan, place: int, data: Any, values: Values, readings: Any, expected: Any
) -> None:
    block, tie = plan.blocks[place], plan.ties[place]
    current = block.flat(values)
    if tie is not None:
        expected = expected - ties.copula_slope((plan, tie, data.first_unit(), values), current)
    if block.kind == "counts":
        counts = sweep.counts_of(readings)
        if len(counts) == latent_classes.OF_MIXTURE:
            counts = latent_classes.averaged(counts, current)
        slopes, expected = _slopes_in_logs(counts, np.asarray(current), np.asarray(expected))
    else:
        slopes = sums.Conditional(readings, "mean").slope(np.asarray(current))
    wrong = float(np.max(np.abs(slopes - expected) / (1 + np.abs(expected)), initial=0.0))
    differs = f"has a slope that differs by {wrong:.3g} (relative) from that of the joint density"
    assert wrong <= 100 * _TOLERANCE, f"the conditional read of block {block.sites} {differs}"


def _slopes_in_logs(
    given: latent_classes.Parameters, probs: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of conditional and density along log-odds, as probabilities stay in a simplex."""
    if len(given) == 2:
        right, wrong = (np.ravel(parameter) - 1 for parameter in given)
        return right - (right + wrong) * probs, probs * (1 - probs) * slope
    less = np.asarray(given[0]) - 1
    probs, slope = probs.reshape(less.shape), probs.reshape(less.shape) * slope.reshape(less.shape)
    return less - probs * less.sum(-1, keepdims=True), slope - probs * slope.sum(-1, keepdims=True)
