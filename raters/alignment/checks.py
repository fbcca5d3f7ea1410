"""Checks of the arguments of `raters.alignment`."""

from __future__ import annotations

import warnings
from typing import NoReturn

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors import PACKAGE, ConvergenceWarning, refuse_data
from raters.errors.validation import numbers

Batch = Float[np.ndarray, "*batch response"]

# Sums of single-precision probabilities are one within this.
ROUNDING = 1e-5
# A line that makes an array of one type or prompt, and two responses.
_TABLE = "np.array([[0.5, 0.5]])"


def as_array(name: str, value: ArrayLike, such: str = _TABLE) -> Batch:
    """Finite numbers in double precision, such as those of a line of Python."""
    array = numbers(name, value, such)
    if array.ndim == 0 or array.size == 0:
        refuse_shape(name, array, "it must have an axis, and at least one number", f"{name}={such}")
    if not np.isfinite(array).all():
        such = f"np.argwhere(~np.isfinite({name}))"
        refuse_data(name, problem="has NaN or infinity", expected="see where", instead=such)
    return array


def refuse_shape(name: str, array: np.ndarray, expected: str, such: str | None = None) -> NoReturn:
    """Raise the error of an array of another shape."""
    refuse_data(name, problem=f"has shape {array.shape}", expected=expected, instead=such)


def warn_unconverged(sentence: str) -> None:
    """Warn where the user calls the package that a result is not what was sought."""
    warnings.warn(sentence, ConvergenceWarning, skip_file_prefixes=PACKAGE)


def as_reward(value: ArrayLike) -> Batch:
    """Rewards, whose differences between responses are finite too."""
    array = as_array("reward", value)
    with np.errstate(over="ignore"):
        spread = np.ptp(array, -1)
    if not np.isfinite(spread).all():
        such = "reward=np.divide(reward, np.abs(reward).max())"
        refuse_data("reward", problem="overflows", expected="divide all by its range", instead=such)
    return array


def as_policy(name: str, value: ArrayLike, such: str = _TABLE) -> Batch:
    """Probabilities, which add up to one over the last axis."""
    array = as_array(name, value, such)
    total = array.sum(-1)
    if array.min() < 0 or np.abs(total - 1).max() > ROUNDING:
        problem = f"has entries from {array.min():g}, sums of {total.min():g} to {total.max():g}"
        expected = "give probabilities that add up to one over the last axis"
        such = f"{name} / {name}.sum(-1, keepdims=True), or scipy.special.softmax({name}, -1)"
        refuse_data(name, problem=problem, expected=expected, instead=such)
    return array


def as_reference(reference: ArrayLike | None, shape: tuple[int, ...]) -> Batch:
    """The reference policy, uniform unless given, broadcast to a shape."""
    if reference is None:
        return np.full(shape, 1 / shape[-1])
    base = as_policy("reference", reference, f"np.full({shape}, 1 / {shape[-1]})")
    if base.ndim > len(shape) or base.shape != shape[len(shape) - base.ndim :]:
        refuse_shape("reference", base, f"it must be {shape}, or the last axes of it")
    return np.broadcast_to(base, shape)
