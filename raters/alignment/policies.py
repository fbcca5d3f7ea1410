"""Policies and the rewards that they maximise; the DPO loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float
from scipy.special import softmax

from raters.alignment._checks import (
    ROUNDING,
    as_array,
    as_policy,
    as_reference,
    check_positive,
    check_shape,
    uniform,
    with_prompts,
)
from raters.errors import DataError
from raters.errors.validation import checked, numbers, positive

# Probabilities in double precision that differ by less are tied.
_TIE = 1e-12


def dpo_loss(
    chosen: ArrayLike,
    rejected: ArrayLike,
    reference_chosen: ArrayLike,
    reference_rejected: ArrayLike,
    *,
    beta: float = 1.0,
) -> Float[jax.Array, ""]:
    r"""Compute the DPO loss of preferences :math:`y_n^+ \succ y_n^-` (Rafailov et al. 2023, eq. 7).

    .. math:: -\frac{1}{N} \sum_n \log \sigma(r(x_n, y_n^+) - r(x_n, y_n^-)), \qquad
              r(x, y) = \beta \log \frac{\pi(y \mid x)}{\pi_\text{ref}(y \mid x)}

    Parameters
    ----------
    chosen, rejected : array (...)
        Log-probabilities of the preferred response and of the other, under the policy to be
        learned, in nats.
    reference_chosen, reference_rejected : array (...)
        The same under the reference policy. All four of one shape.
    beta : float
        Price of leaving the reference, in units of reward per nat.

    Returns
    -------
    jax.Array, scalar
        Mean loss in nats per comparison, differentiable in the first four arguments.

    Raises
    ------
    DataError, SettingError
        When shapes differ, a value is no logarithm of a probability above 0 (not seen inside
        `jax.grad` or `jax.jit`), or `beta` is not above 0.

    Examples
    --------
    >>> import jax
    >>> # (log(1 + exp(-2)) + log 2) / 2
    >>> float(dpo_loss([-1.0, -2.0], [-3.0, -2.0], [-2.0, -2.0], [-2.0, -2.0]))
    0.4100
    >>> print(jax.grad(dpo_loss)(jax.numpy.array([-1.0, -2.0]),
    ...                          *jax.numpy.full((3, 2), -2.0)).round(2))
    [-0.13 -0.25]
    """
    positive("beta", beta)
    scale = float(beta)
    names = ("chosen", "rejected", "reference_chosen", "reference_rejected")
    given = (chosen, rejected, reference_chosen, reference_rejected)
    values = [
        value
        if isinstance(value, jax.Array) and not jnp.iscomplexobj(value)
        else jnp.asarray(numbers(name, value, "np.log([0.25, 0.5])"))
        for name, value in zip(names, given, strict=True)
    ]
    shapes = [value.shape for value in values]
    if len(set(shapes)) > 1 or 0 in shapes[0]:
        raise DataError(
            f"{', '.join(names)} have shapes {shapes}; give all four one shape, with one entry per"
            " comparison"
        )
    for name, value in zip(names, values, strict=True):
        if isinstance(value, jax.core.Tracer):
            continue
        # NumPy, since JAX would trace the comparison inside jax.jit.
        log_probs = np.asarray(value)
        if not np.all(np.isfinite(log_probs) & (log_probs <= ROUNDING)):
            raise DataError(
                parameter=name,
                problem="must hold logarithms of probabilities",
                expected="they must be finite and at most 0",
                instead=f"jnp.log({name}) if it holds probabilities, and keep those above 0",
            )
    return -jnp.mean(
        jax.nn.log_sigmoid(scale * (values[0] - values[2]) - scale * (values[1] - values[3]))
    )


@checked
def implicit_reward(
    policy: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0
) -> Float[np.ndarray, "*batch response"]:
    r"""Return the reward that a policy maximises,
    :math:`r(x, y) = \beta \log(\pi(y \mid x) / \pi_\text{ref}(y \mid x))`.

    Preferences determine a reward up to a constant for each prompt. The formula fixes it by
    :math:`\sum_y \pi_\text{ref} e^{r / \beta} = 1`; subtract ``r.mean(-1, keepdims=True)`` before
    comparing rewards.

    Parameters
    ----------
    policy : array (..., response)
        Probabilities, all above 0.
    reference : array (..., response), optional
        The reference policy, also above 0, of the shape of `policy` or its last axes; uniform
        unless given.
    beta : float
        Price of leaving the reference, in units of reward per nat.

    Returns
    -------
    numpy.ndarray (..., response)
        In units of reward.

    Raises
    ------
    DataError, SettingError
        When an argument is not a policy, has a zero or another shape, or `beta` is not above 0.

    Examples
    --------
    >>> print(implicit_reward([0.25, 0.5, 0.25], [0.5, 0.25, 0.25]).round(2))
    [-0.69  0.69  0.  ]
    """
    positive("beta", beta)
    probs = as_policy("policy", policy)
    base = as_reference(reference, probs.shape)
    check_positive("policy", probs)
    check_positive("reference", base)
    return beta * (np.log(probs) - np.log(base))


@checked
def policy(
    reward: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0
) -> Float[np.ndarray, "*batch response"]:
    r"""Return the optimal policy for a reward,
    :math:`\pi(y \mid x) \propto \pi_\text{ref}(y \mid x) \exp(r(x, y) / \beta)`.

    It maximises :math:`\mathbb{E}_\pi[r] - \beta \operatorname{KL}(\pi \parallel
    \pi_\text{ref})` (equation 2 of Chidambaram et al. 2024; Rafailov et al. 2023, equation 4).
    `implicit_reward` is its inverse, up to a constant for each prompt.

    Parameters
    ----------
    reward : array (..., response)
        Finite.
    reference : array (..., response), optional
        The reference policy, of the shape of `reward` or its last axes; uniform unless given. Its
        zeros stay zeros.
    beta : float
        Price of leaving the reference, in units of reward per nat.

    Returns
    -------
    numpy.ndarray (..., response)
        Probabilities.

    Raises
    ------
    DataError, SettingError
        When `reward` is not finite, `reference` is not a policy or has another shape, or `beta` is
        not above 0.

    Examples
    --------
    >>> print(policy([0, 1, 2], [0.5, 0.25, 0.25]).round(2))
    [0.17 0.22 0.61]
    """
    positive("beta", beta)
    value = as_array("reward", reward)
    base = as_reference(reference, value.shape)
    # log 0, and rewards far below the best, are both probability 0.
    with np.errstate(divide="ignore", over="ignore"):
        possible = np.where(base > 0, value, -np.inf)
        logits = np.log(base) + (possible - possible.max(-1, keepdims=True)) / beta
        return np.asarray(softmax(logits, -1))


def greedy(policy: ArrayLike) -> Float[np.ndarray, "*batch response"]:
    """Return the policy that gives each prompt its most probable response.

    Parameters
    ----------
    policy : array (..., response)
        Probabilities.

    Returns
    -------
    numpy.ndarray (..., response)
        Probabilities; responses that tie, but for rounding, share equally.

    Raises
    ------
    DataError
        When `policy` is not a policy.

    Examples
    --------
    >>> print(greedy([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4]]))
    [[1.  0.  0. ]
     [0.5 0.  0.5]]
    """
    value = as_policy("policy", policy)
    best = value >= value.max(-1, keepdims=True) - _TIE
    return best / best.sum(-1, keepdims=True)


def ensemble(policies: ArrayLike, weights: ArrayLike) -> Float[np.ndarray, "*prompt response"]:
    r"""Return the mixture of the types' policies, :math:`\pi = \sum_k w_k \pi_k`.

    Parameters
    ----------
    policies : array (type, prompt, response) or (type, response)
        Probabilities.
    weights : array (type,)
        Probability of each type; they add up to one.

    Returns
    -------
    numpy.ndarray (prompt, response) or (response,)

    Raises
    ------
    DataError
        When `policies` are not policies, or `weights` are not one probability for each.

    Examples
    --------
    >>> print(ensemble([[0.8, 0.2], [0.4, 0.6]], [0.25, 0.75]))
    [0.5 0.5]
    """
    probs = as_policy("policies", policies)
    with_prompts("policies", probs)
    type_probs = as_policy("weights", weights, uniform(probs.shape[:1]))
    check_shape("weights", type_probs, probs.shape[:1])
    return np.tensordot(type_probs, probs, 1)
