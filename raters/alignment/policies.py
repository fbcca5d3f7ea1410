"""Policies and the rewards that they maximise; the DPO loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float
from scipy.special import softmax

from raters.alignment.checks import ROUNDING, Batch, as_array, as_reference
from raters.errors import refuse_data
from raters.errors.validation import checked, numbers, positive


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
    names = ("chosen", "rejected", "reference_chosen", "reference_rejected")
    given = (chosen, rejected, reference_chosen, reference_rejected)
    for name, value in zip(names, given, strict=True):
        if isinstance(value, jax.core.Tracer):  # which is not looked into
            continue
        log_probs = numbers(name, value, "np.log([0.25, 0.5])")
        if not np.all(np.isfinite(log_probs) & (log_probs <= ROUNDING)):
            expected = "give logarithms of probabilities, finite and at most 0"
            refuse_data(name, expected=expected, instead=f"jnp.log({name}) of probabilities")
    values = [jnp.asarray(value) for value in given]
    shapes = [value.shape for value in values]
    if len(set(shapes)) > 1 or 0 in shapes[0]:
        expected = "give all four one shape, with one entry per comparison"
        refuse_data("chosen", problem=f"and the others have shapes {shapes}", expected=expected)
    scale = float(beta)
    reward = scale * (values[0] - values[2]) - scale * (values[1] - values[3])
    return -jnp.mean(jax.nn.log_sigmoid(reward))


@checked
def policy(reward: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0) -> Batch:
    r"""Return the optimal policy for a reward,
    :math:`\pi(y \mid x) \propto \pi_\text{ref}(y \mid x) \exp(r(x, y) / \beta)`.

    It maximises :math:`\mathbb{E}_\pi[r] - \beta \operatorname{KL}(\pi \parallel
    \pi_\text{ref})` (equation 2 of Chidambaram et al. 2024; Rafailov et al. 2023, equation 4). So
    the implicit reward of a policy is :math:`r(x, y) = \beta \log(\pi(y \mid x) /
    \pi_\text{ref}(y \mid x))`, up to a constant for each prompt.

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
