"""The division of a sum between two normal sites, drawn or maximised given the sum."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from raters.inference.polya_gamma.conditionals import Gaussian, prior
from raters.model import Model, Transfer, Values
from raters.program import trace


def divide(
    model: Model[Any],
    row: Any,
    values: Values,
    transfer: Transfer,
    rng: np.random.Generator | None = None,
) -> Values:
    r"""Move a number from each entry of the one site to the entries of the other.

    The likelihood depends on :math:`c_i + o_{ki}` only, so that the number :math:`\delta_i`, which
    is added to :math:`c_i` and subtracted from all :math:`o_{ki}`, has a normal conditional: that
    of the two priors. Gibbs draws it, which is exact, and EM takes its mode. A sweep that updates
    the two sites one after the other moves slowly along this direction.

    Parameters
    ----------
    model : Model
    row : Judgements
        Any part of the data: the prior does not depend on it.
    values : dict of str to array
    transfer : Transfer
    rng : numpy.random.Generator, optional
        For a draw; the mode without it.

    Returns
    -------
    dict of str to array
    """
    common, own = (np.asarray(values[name]) for name in (transfer.common, transfer.own))
    given = {name: np.asarray(value) for name, value in values.items()}
    of_common, of_own = (
        Gaussian(*(np.asarray(part) for part in each))
        for each in _priors(model, row, given, transfer)
    )
    axes = tuple(range(own.ndim - 1))
    away = np.reshape(of_own.precision, own.shape) * (own - np.reshape(of_own.mean, own.shape))
    precision = of_common.precision + np.reshape(of_own.precision, own.shape).sum(axes)
    shift = away.sum(axes) - of_common.precision * (common - of_common.mean)
    number = shift / precision
    if rng is not None:
        number = number + rng.standard_normal(number.shape) / np.sqrt(precision)
    return values | {transfer.common: common + number, transfer.own: own - number}


@partial(jax.jit, static_argnums=(0, 3))
def _priors(
    model: Model[Any], row: Any, values: Values, transfer: Transfer
) -> tuple[Gaussian, Gaussian]:
    """Return the priors of the two sites."""
    traced = trace(model, row, values)
    common, own = (
        prior(traced[name]["fn"], np.shape(values[name]))
        for name in (transfer.common, transfer.own)
    )
    return common, own
