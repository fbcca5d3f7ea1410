"""Checks of the arguments of `raters.alignment`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.errors import DataError
from raters.errors.validation import numbers

# Sums of single-precision probabilities are one within this.
ROUNDING = 1e-5
# A line that makes an array of one type or prompt, and two responses.
_TABLE = "np.array([[0.5, 0.5]])"


def as_array(
    name: str, value: ArrayLike, such: str = _TABLE
) -> Float[np.ndarray, "*batch response"]:
    """Return finite numbers in double precision, such as those of a line of Python."""
    array = numbers(name, value, such)
    if array.ndim == 0 or array.size == 0:
        raise DataError(
            parameter=name,
            problem=f"has shape {array.shape}",
            expected="it must have an axis, and at least one number",
            instead=f"{name}={such}",
        )
    if not np.isfinite(array).all():
        raise DataError(
            parameter=name,
            problem="has NaN or infinite entries",
            expected="all must be finite numbers",
            instead=f"np.argwhere(~np.isfinite({name})) to see where",
        )
    return array


def as_reward(
    name: str, value: ArrayLike, such: str = _TABLE
) -> Float[np.ndarray, "*batch response"]:
    """Return rewards, whose differences between responses are finite too."""
    array = as_array(name, value, such)
    with np.errstate(over="ignore"):
        spread = np.ptp(array, -1)
    if not np.isfinite(spread).all():
        raise DataError(
            parameter=name,
            problem="has differences that overflow",
            expected="responses to a prompt must differ by less than 1e308",
            instead=f"{name}=np.divide({name}, np.abs({name}).max())",
        )
    return array


def has_draws(value: ArrayLike) -> bool:
    """True for an array whose axes have names, such as that of `type_rewards`, one of them draw."""
    return "draw" in getattr(value, "dims", ())


def uniform(shape: tuple[int, ...]) -> str:
    """Line that makes the uniform policy of a shape."""
    return f"np.full({shape}, 1 / {shape[-1]})"


def as_policy(
    name: str, value: ArrayLike, such: str = _TABLE
) -> Float[np.ndarray, "*batch response"]:
    """Return probabilities, which add up to one over the last axis."""
    array = as_array(name, value, such)
    total = array.sum(-1)
    if array.min() < 0 or np.abs(total - 1).max() > ROUNDING:
        wrong = (
            f"has the entry {array.min():g}"
            if array.min() < 0
            else f"adds up to {total.flat[np.abs(total - 1).argmax()]:g}"
        )
        instead = (
            f"{name} / {name}.sum(-1, keepdims=True), or scipy.special.softmax({name}, -1) of"
            " logits"
        )
        raise DataError(
            parameter=name,
            problem=wrong,
            expected="it must hold probabilities that add up to one over the last axis",
            instead=instead,
        )
    return array


def as_reference(
    reference: ArrayLike | None, shape: tuple[int, ...]
) -> Float[np.ndarray, "*batch response"]:
    """Return the reference policy, uniform unless given, broadcast to `shape`."""
    if reference is None:
        return np.full(shape, 1 / shape[-1])
    base = as_policy("reference", reference, uniform(shape))
    check_shape("reference", base, shape)
    return np.broadcast_to(base, shape)


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Check that the array has this shape, or the last axes of it."""
    if array.ndim > len(shape) or array.shape != shape[len(shape) - array.ndim :]:
        also = "".join(f" or {shape[axis:]}" for axis in range(1, len(shape)))
        raise DataError(
            parameter=name, problem=f"has shape {array.shape}", expected=f"it must be {shape}{also}"
        )


def with_prompts(
    name: str, array: Float[np.ndarray, "type *prompt response"]
) -> Float[np.ndarray, "type prompt response"]:
    """Add the axis of prompts where there is one prompt."""
    if array.ndim not in (2, 3):
        expected = "(type, prompt, response) or (type, response)"
        raise DataError(
            parameter=name,
            problem=f"has shape {array.shape}",
            expected=f"it must be {expected}",
            instead=f"{name}=[{name}] for one type" if array.ndim == 1 else None,
        )
    return array if array.ndim == 3 else array[:, None]


def check_positive(name: str, array: np.ndarray) -> None:
    """Check that no probability is 0, since its logarithm is needed."""
    if not array.all():
        response = np.argwhere(array == 0)[0][-1]
        smooth = f"0.999 * {name} + 0.001 / {name}.shape[-1]"
        raise DataError(
            parameter=name,
            problem=f"has a 0 in [..., {response}], where its logarithm is needed",
            expected="smooth it first",
            instead=smooth,
        )


def mean_over_prompts(
    values: Float[np.ndarray, "*batch prompt"], prompt_weights: ArrayLike | None
) -> Float[np.ndarray, "*batch"]:
    """Return the weighted mean over the last axis."""
    return np.asarray(np.average(values, -1, prompt_probs(prompt_weights, values.shape[-1])))


def prompt_probs(prompt_weights: ArrayLike | None, number: int) -> Float[np.ndarray, " prompt"]:
    """Return the frequencies of the prompts, which add up to one."""
    if prompt_weights is None:
        return np.full(number, 1 / number)
    weights = as_array("prompt_weights", prompt_weights, f"np.ones({number})")
    check_shape("prompt_weights", weights, (number,))
    if weights.min() < 0 or weights.sum() == 0:
        raise DataError(
            parameter="prompt_weights",
            problem="has negative entries, or is all 0",
            expected="give weights of at least 0, or leave it out to weigh all prompts alike",
        )
    return np.asarray(weights / weights.sum())
