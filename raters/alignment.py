"""Policies for several types of people, and the mixture of them whose worst regret is least: the arithmetic of MinMax-DPO.

A policy gives each response to a prompt a probability, and stands for a reward: the one it is best for when leaving a
reference policy has a price (direct preference optimisation, DPO). Arrays have the responses in their last axis, before it
the prompts, before those the types; with one prompt its axis may be left out. All is NumPy in double precision but for
`dpo_loss`, which is JAX, to be differentiated.

References
----------
- Chidambaram, Seetharaman and Syrgkanis (2024). Direct preference optimization with unobserved preference heterogeneity.
  arXiv:2405.15065.
- Rafailov et al. (2023). Direct preference optimization: your language model is secretly a reward model. NeurIPS 36.
- Syrgkanis, Agarwal, Luo and Schapire (2015). Fast convergence of regularized learning in games. NeurIPS 28.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.optimize import linprog
from scipy.special import softmax

from raters._check import positive, whole
from raters.errors import DataError

# Sums of single-precision probabilities are one within the first; double-precision ties are equal within the second.
_ROUNDING, _TIE = 1e-5, 1e-12


def dpo_loss(
    chosen: ArrayLike, rejected: ArrayLike, reference_chosen: ArrayLike, reference_rejected: ArrayLike, *, beta: float = 1.0
) -> jax.Array:
    r"""The loss of DPO, in nats per comparison, of answers :math:`y_n^+ \succ y_n^-` (Rafailov et al. 2023, equation 7).

    .. math:: -\frac{1}{N} \sum_n \log \sigma(r(x_n, y_n^+) - r(x_n, y_n^-)), \qquad
              r(x, y) = \beta \log \frac{\pi(y \mid x)}{\pi_\text{ref}(y \mid x)}

    Parameters
    ----------
    chosen, rejected : array (...)
        Log-probabilities, under the policy to be learned, of the response that was preferred and of the other.
    reference_chosen, reference_rejected : array (...)
        The same under the reference policy. All four of one shape.
    beta : float
        Price of leaving the reference.

    Raises
    ------
    DataError, SettingError
        When shapes differ, a value is no logarithm of a probability above 0 (not seen inside `jax.grad` or `jax.jit`), or
        `beta` is not above 0.

    Examples
    --------
    >>> import jax
    >>> float(dpo_loss([-1.0, -2.0], [-3.0, -2.0], [-2.0, -2.0], [-2.0, -2.0]))  # (log(1 + exp(-2)) + log 2) / 2
    0.4100
    >>> print(jax.grad(dpo_loss)(jax.numpy.array([-1.0, -2.0]), *jax.numpy.full((3, 2), -2.0)).round(2))
    [-0.13 -0.25]
    """
    positive("beta", beta)
    names = ("chosen", "rejected", "reference_chosen", "reference_rejected")
    values = [jnp.asarray(value) for value in (chosen, rejected, reference_chosen, reference_rejected)]
    shapes = [value.shape for value in values]
    if len(set(shapes)) > 1 or 0 in shapes[0]:
        raise DataError(f"{', '.join(names)} have shapes {shapes}; give all four one shape, with one entry per comparison")
    for name, value in zip(names, values, strict=True):
        if isinstance(value, jax.core.Tracer):
            continue
        known = np.asarray(value)  # NumPy, since inside jax.jit what JAX computes from it would be traced
        if not np.all(np.isfinite(known) & (known <= _ROUNDING)):
            hint = f"write jnp.log({name}) if it holds probabilities, and keep those above 0"
            raise DataError(f"{name} must hold logarithms of probabilities, finite and at most 0; {hint}")
    return -jnp.mean(jax.nn.log_sigmoid(beta * (values[0] - values[2]) - beta * (values[1] - values[3])))


def implicit_reward(policy: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0) -> np.ndarray:
    r"""The reward that a policy is best for, :math:`r(x, y) = \beta \log(\pi(y \mid x) / \pi_\text{ref}(y \mid x))`.

    Preferences do not tell a constant for each prompt. It is left as the formula has it, which makes
    :math:`\sum_y \pi_\text{ref} e^{r / \beta} = 1`; subtract ``r.mean(-1, keepdims=True)`` before rewards are compared.

    Parameters
    ----------
    policy : array (..., response)
        Probabilities, all above 0.
    reference : array (..., response), optional
        The reference policy, also above 0, of the shape of `policy` or its last axes; uniform unless given.
    beta : float
        Price of leaving the reference, in units of reward per nat.

    Raises
    ------
    DataError, SettingError
        When something is no policy, has a zero or another shape, or `beta` is not above 0.

    Examples
    --------
    >>> print(implicit_reward([0.25, 0.5, 0.25], [0.5, 0.25, 0.25]).round(2))
    [-0.69  0.69  0.  ]
    """
    positive("beta", beta)
    of = _policy("policy", policy)
    base = _reference(reference, of.shape)
    _nowhere_zero("policy", of)
    _nowhere_zero("reference", base)
    return beta * (np.log(of) - np.log(base))


def policy(reward: ArrayLike, reference: ArrayLike | None = None, *, beta: float = 1.0) -> np.ndarray:
    r"""The best policy for a reward, :math:`\pi(y \mid x) \propto \pi_\text{ref}(y \mid x) \exp(r(x, y) / \beta)`.

    It has the greatest :math:`\mathbb{E}_\pi[r] - \beta \operatorname{KL}(\pi \parallel \pi_\text{ref})` (equation 2 of
    Chidambaram et al. 2024; Rafailov et al. 2023, equation 4). `implicit_reward` leads back.

    Parameters
    ----------
    reward : array (..., response)
    reference : array (..., response), optional
        The reference policy, of the shape of `reward` or its last axes; uniform unless given. Its zeros stay zeros.
    beta : float
        Price of leaving the reference, in units of reward per nat.

    Raises
    ------
    DataError, SettingError
        When `reward` is not finite, `reference` is no policy or has another shape, or `beta` is not above 0.

    Examples
    --------
    >>> print(policy([0, 1, 2], [0.5, 0.25, 0.25]).round(2))
    [0.17 0.22 0.61]
    """
    positive("beta", beta)
    value = _array("reward", reward)
    base = _reference(reference, value.shape)
    with np.errstate(divide="ignore", over="ignore"):  # log 0, and rewards far below the best: both are probability 0
        possible = np.where(base > 0, value, -np.inf)
        return softmax(np.log(base) + (possible - possible.max(-1, keepdims=True)) / beta, -1)


def greedy(policy: ArrayLike) -> np.ndarray:
    """The policy of the most probable response to each prompt; responses that tie, but for rounding, share equally.

    Parameters
    ----------
    policy : array (..., response)

    Raises
    ------
    DataError
        When `policy` is not one.

    Examples
    --------
    >>> print(greedy([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4]]))
    [[1.  0.  0. ]
     [0.5 0.  0.5]]
    """
    value = _policy("policy", policy)
    best = value >= value.max(-1, keepdims=True) - _TIE
    return best / best.sum(-1, keepdims=True)


def ensemble(policies: ArrayLike, weights: ArrayLike) -> np.ndarray:
    r"""The policy that draws a type and answers as its policy does, :math:`\pi = \sum_k w_k \pi_k`.

    Parameters
    ----------
    policies : array (type, prompt, response) or (type, response)
    weights : array (type,)
        Adding up to one.

    Raises
    ------
    DataError
        When `policies` are no policies, or `weights` are not one probability for each.

    Examples
    --------
    >>> print(ensemble([[0.8, 0.2], [0.4, 0.6]], [0.25, 0.75]))
    [0.5 0.5]
    """
    parts, share = _policy("policies", policies), _policy("weights", weights)
    _by_type("policies", parts)
    _matches("weights", share, parts.shape[:1])
    return np.tensordot(share, parts, 1)


def regret_matrix(
    policies: ArrayLike, reference: ArrayLike | None = None, prompt_weights: ArrayLike | None = None, *, beta: float = 1.0
) -> np.ndarray:
    r"""How much less reward a type expects from another's policy than from its own, by the rewards that policies stand for.

    .. math:: R_{kk'} = \beta (L_{kk} - L_{kk'}), \qquad
              L_{kk'} = \mathbb{E}_x \sum_y \pi_{k'}(y \mid x) \log \frac{\pi_k(y \mid x)}{\pi_\text{ref}(y \mid x)},

    below a row of zeros for :math:`z_0`, whom nothing harms (Chidambaram et al. 2024, section 5.2). The regrets of the types
    under an ensemble with weights :math:`w` are :math:`R w`.

    Parameters
    ----------
    policies : array (type, prompt, response) or (type, response)
        Each type's own.
    reference : array (prompt, response) or (response,), optional
        The reference policy; uniform unless given.
    prompt_weights : array (prompt,), optional
        How often each prompt is met, up to a factor; equally often unless given.
    beta : float
        Price of leaving the reference with which the policies were learned, in units of reward per nat.

    Returns
    -------
    numpy.ndarray (1 + type, type)

    Raises
    ------
    DataError, SettingError
        When something is no policy or has another shape, a response that one type's policy gives has probability 0 under
        another's or the reference, or `beta` is not above 0.

    Notes
    -----
    The paper's appendix D prints :math:`L` with :math:`\log \pi_{k'}` and the regret with its sign reversed; section 5.2,
    as here, has both right but leaves :math:`\beta` out. :math:`R_{kk'}` is also :math:`\beta \, \mathbb{E}_x` of
    :math:`\operatorname{KL}(\pi_k \parallel \pi_\text{ref}) - \operatorname{KL}(\pi_{k'} \parallel \pi_\text{ref}) +
    \operatorname{KL}(\pi_{k'} \parallel \pi_k)`. It can be negative, since a type's own policy also minds the reference,
    but not for the type furthest from it: the row of :math:`z_0` decides nothing unless :math:`L` is estimated.

    Types count by the size of their rewards, which few answers shrink; to count them alike, divide each row but that of
    :math:`z_0` by its largest entry.

    Examples
    --------
    >>> print(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]).round(2))
    [[0.   0.  ]
     [0.   1.25]
     [0.55 0.  ]]
    """
    positive("beta", beta)
    parts = _by_type("policies", _policy("policies", policies))
    base = _reference(reference, parts.shape[1:])
    given = (parts > 0).any(0)
    _nowhere_zero("policies", np.where(given, parts, 1))
    _nowhere_zero("reference", np.where(given, base, 1))
    log_ratio = np.log(np.where(given, parts, 1)) - np.log(np.where(given, base, 1))
    expected = _over_prompts(np.einsum("kxy,jxy->kjx", log_ratio, parts), prompt_weights)
    return np.vstack([np.zeros(len(parts)), beta * (np.diag(expected)[:, None] - expected)])


def regrets(policy: ArrayLike, reward: ArrayLike, prompt_weights: ArrayLike | None = None) -> np.ndarray:
    r"""What each type loses under a policy, where rewards are known: :math:`\mathbb{E}_x [\max_y r_k - \sum_y \pi r_k]`.

    Parameters
    ----------
    policy : array (prompt, response) or (response,)
    reward : array (type, prompt, response) or (type, response)
    prompt_weights : array (prompt,), optional
        How often each prompt is met, up to a factor; equally often unless given.

    Returns
    -------
    numpy.ndarray (type,)
        In units of reward. It compares with the best response, not with the best policy near a reference: never negative.

    Raises
    ------
    DataError
        When `policy` is not one, `reward` is not finite, or shapes do not match.

    Examples
    --------
    >>> print(regrets([0.5, 0.25, 0.25], [[4, 0, 0], [0, 8, 4]]))
    [2. 5.]
    """
    value = _by_type("reward", _array("reward", reward))
    served = _policy("policy", policy)
    _matches("policy", served, value.shape[1:])
    return _over_prompts(np.sum(served * (value.max(-1, keepdims=True) - value), -1), prompt_weights)


class MinMax(NamedTuple):
    """Weights of the types' policies (type,), the worst regret under them, and weights after each step (step, type)."""

    weights: np.ndarray
    value: float
    history: np.ndarray | None = None


def linear_programme(regret: ArrayLike) -> MinMax:
    r"""The weights whose worst regret is least, :math:`\min_w \max_k (R w)_k`, exactly.

    The problem of Chidambaram et al. (2024), section 5.2: the least :math:`v` with :math:`R w \le v` in each row.

    Parameters
    ----------
    regret : array (row, type)
        From `regret_matrix`.

    Raises
    ------
    DataError
        When `regret` is not a matrix of finite numbers.

    Examples
    --------
    >>> found = linear_programme(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]))
    >>> print(found.weights.round(2), round(found.value, 2))
    [0.69 0.31] 0.38
    """
    matrix, scale = _game(regret)
    rows, types = matrix.shape
    least_worst = np.append(np.zeros(types), 1)
    below = np.column_stack([matrix, -np.ones(rows)])
    bounds = [(0, None)] * types + [(None, None)]
    found = linprog(least_worst, below, np.zeros(rows), [[1] * types + [0]], [1], bounds)
    weights = np.maximum(found.x[:-1], 0)
    weights /= weights.sum()
    return MinMax(weights, scale * float(np.max(matrix @ weights)))


def hedge(regret: ArrayLike, *, steps: int = 2000, step_size: float | None = None) -> MinMax:
    r"""The same by optimistic Hedge against optimistic Hedge (algorithm 2 of Chidambaram et al. 2024), nearly.

    .. math:: w_t \propto w_{t-1} \exp(-\eta (2 R^\top p_{t-1} - R^\top p_{t-2})), \qquad
              p_t \propto p_{t-1} \exp(\eta (2 R w_{t-1} - R w_{t-2}))

    Parameters
    ----------
    regret : array (row, type)
        From `regret_matrix`. The steps take it divided by its largest absolute entry.
    steps : int
        How many iterates are averaged, :math:`T`.
    step_size : float, optional
        :math:`\eta`; 1/2 unless given, the largest that is known to converge.

    Returns
    -------
    MinMax
        With the average of the first :math:`t` iterates in row :math:`t` of `history`, the last of them in `weights`.

    Raises
    ------
    DataError, SettingError
        When `regret` is not a matrix of finite numbers, `steps` is below 1 or `step_size` is not above 0.

    Notes
    -----
    For :math:`\eta \le 1/2` and :math:`K + 1` rows the worst regret is within :math:`(\log K(K+1) / \eta + 2 \eta) / T`
    of the least, in units of the largest entry (by theorem 4 of Syrgkanis et al. 2015). The printed algorithm leaves open
    what was before the start, divides a sum of :math:`T + 1` iterates by :math:`T`, and has a step that does not know the
    scale of :math:`R`. Here :math:`w_0` and :math:`p_0` are uniform, the payoffs before them 0, and
    :math:`w_0, \dots, w_{T-1}` are averaged.

    Examples
    --------
    >>> found = hedge(regret_matrix([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2]]))
    >>> print(found.weights.round(2), round(found.value, 2), found.history.shape)
    [0.69 0.31] 0.38 (2000, 2)
    """
    whole("steps", steps)
    rate = 0.5 if step_size is None else step_size
    positive("step_size", rate)
    matrix, scale = _game(regret)
    iterates = np.empty((steps, matrix.shape[1]))
    loss, gain = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[0])
    last_loss, last_gain = loss, gain
    for step in range(steps):
        # The recursion of the docstring, added up: the past, with its last part counted twice.
        w, p = softmax(-rate * (loss + last_loss)), softmax(rate * (gain + last_gain))
        last_loss, last_gain = matrix.T @ p, matrix @ w
        loss, gain = loss + last_loss, gain + last_gain
        iterates[step] = w
    history = np.cumsum(iterates, 0) / np.arange(1, steps + 1)[:, None]
    return MinMax(history[-1], scale * float(np.max(matrix @ history[-1])), history)


# ------------------------------------------------------------------------------------------------- checks


def _array(name: str, value: ArrayLike) -> np.ndarray:
    """Finite numbers in double precision."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is no array of numbers: {error}. Give rows of one length, such as [[0.5, 0.5]]") from error
    if array.ndim == 0 or array.size == 0:
        raise DataError(f"{name} has shape {array.shape}; expected an axis of responses or types, such as [0.5, 0.5]")
    if not np.isfinite(array).all():
        raise DataError(f"{name} has NaN or infinite entries; np.argwhere(~np.isfinite({name})) says where")
    return array


def _policy(name: str, value: ArrayLike) -> np.ndarray:
    """Probabilities over the last axis."""
    array = _array(name, value)
    total = array.sum(-1)
    if array.min() < 0 or np.abs(total - 1).max() > _ROUNDING:
        wrong = (
            f"has the entry {array.min():g}" if array.min() < 0 else f"adds up to {total.flat[np.abs(total - 1).argmax()]:g}"
        )
        instead = f"{name} / {name}.sum(-1, keepdims=True), or scipy.special.softmax({name}, -1) of logits"
        raise DataError(f"{name} {wrong}; expected probabilities that add up to one over the last axis, such as {instead}")
    return array


def _reference(reference: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    base = np.full(shape[-1], 1 / shape[-1]) if reference is None else _policy("reference", reference)
    _matches("reference", base, shape)
    return np.broadcast_to(base, shape)


def _matches(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """The shape, or the last axes of it."""
    if array.ndim > len(shape) or array.shape != shape[len(shape) - array.ndim :]:
        also = "".join(f" or {shape[axis:]}" for axis in range(1, len(shape)))
        raise DataError(f"{name} has shape {array.shape}; expected {shape}{also}")


def _by_type(name: str, array: np.ndarray) -> np.ndarray:
    """With an axis of prompts."""
    if array.ndim not in (2, 3):
        expected = "(type, prompt, response) or (type, response)"
        raise DataError(f"{name} has shape {array.shape}; expected {expected}; for one type write {name}[None]")
    return array if array.ndim == 3 else array[:, None]


def _nowhere_zero(name: str, array: np.ndarray) -> None:
    if not array.all():
        response = np.argwhere(array == 0)[0][-1]
        smooth = f"0.999 * {name} + 0.001 / {name}.shape[-1]"
        raise DataError(f"{name}[..., {response}] has a 0 where its logarithm is needed; smooth it first: {smooth}")


def _over_prompts(values: np.ndarray, prompt_weights: ArrayLike | None) -> np.ndarray:
    """The mean over the last axis."""
    if prompt_weights is None:
        return values.mean(-1)
    share = _array("prompt_weights", prompt_weights)
    _matches("prompt_weights", share, values.shape[-1:])
    if share.min() < 0 or share.sum() == 0:
        raise DataError("prompt_weights must not be negative, nor all 0; None weighs all prompts alike")
    return np.average(values, -1, share)


def _game(regret: ArrayLike) -> tuple[np.ndarray, float]:
    """The matrix with largest absolute entry 1, and what it was divided by."""
    matrix = _array("regret", regret)
    if matrix.ndim != 2:
        raise DataError(f"regret has shape {matrix.shape}; expected (1 + type, type), such as regret_matrix(policies)")
    scale = float(np.abs(matrix).max()) or 1.0
    return matrix / scale, scale
