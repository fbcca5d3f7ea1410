"""Policies for all types by policy gradient against multiplicative weights: free, or of a class
with features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.special import softmax

from raters.alignment._checks import as_array, as_reward, has_draws
from raters.alignment.saddle import Costs, FairPolicy, costs_of
from raters.errors import ConvergenceWarning, DataError, SettingError
from raters.errors.validation import checked, positive, whole

# Gap, in units of the largest regret, from which a free policy warns.
_WIDE = 0.02
# Ridge of the natural gradient, per mean squared feature: directions that change no probability.
_RIDGE = 1e-6
# A feature that varies among the responses by less, per its largest entry, is constant but for
# rounding.
_CONSTANT = 1e-12

Logits = Callable[[Any], Float[Array, "prompt response"]]


@checked
def policy_gradient(
    reward: ArrayLike,
    own: ArrayLike | None = None,
    prompt_weights: ArrayLike | None = None,
    *,
    features: ArrayLike | None = None,
    logits: Logits | None = None,
    start: Any = None,
    steps: int = 2000,
    step_size: float | None = None,
) -> FairPolicy:
    r"""Find a policy with a small worst regret by optimistic policy gradient against optimistic
    multiplicative weights of the types.

    With the regret :math:`L_z(\pi)` of `minmax_policy`, and the natural gradient
    :math:`\tilde\nabla = F^{-1} \nabla`, F the Fisher information of the policy,

    .. math::

        \phi_{t+1} = \phi_t - \eta \, \Bigl(2 \tilde\nabla \sum_z p_{t,z} L_z(\pi_{\phi_t})
            - \tilde\nabla \sum_z p_{t-1,z} L_z(\pi_{\phi_{t-1}})\Bigr), \qquad
        p_{t+1,z} \propto p_{t,z} \exp\{\eta (2 L_z(\pi_{\phi_t}) - L_z(\pi_{\phi_{t-1}}))\}

    (Chidambaram et al. 2024, section 5.2). Without `features` or `logits` each prompt has logits of
    its own for all responses, and the answer is that of `minmax_policy`. With them policies can
    answer prompts that were not in the table.

    Parameters
    ----------
    reward : array (type, prompt, response), (type, response) or (draw, type, prompt, response)
        Finite; or the draws of `type_rewards`. With draws, the worst regret is that of each draw,
        and its mean is minimised, as by `bayes_policy`.
    own : array (type, prompt, response) or (type, response), optional
        Policies with which the types compare; the best response to each prompt unless given.
    prompt_weights : array (prompt,), optional
        Relative frequency of each prompt; all alike unless given.
    features : array (prompt, response, feature), optional
        For policies :math:`\pi(y \mid x) \propto \exp(\phi^\top f(x, y))`; those of other prompts
        are ``alignment.policy(other_features @ fair.parameters)``. The units of features, and what
        all responses to a prompt share, change nothing.
    logits : callable, optional
        Any other class: from parameters (a tree of arrays) to logits (prompt, response), in JAX.
        The gradient has a Jacobian of (prompt × response, parameter) numbers, so that it suits
        small networks. Its inputs should be of like sizes.
    start : tree of arrays, optional
        First parameters of `logits`; zeros for `features`.
    steps : int
    step_size : float, optional
        :math:`\eta`, where the largest regret is 1; 1/2 unless given, the largest that is proved to
        converge for free policies.

    Returns
    -------
    FairPolicy
        Free: the mean of the policies of all steps. Of a class: the policy of the step with the
        least worst regret, with its `parameters`; `gap` is then its distance from free policies, an
        upper bound of that from the best of the class.

    Raises
    ------
    DataError, SettingError
        When `reward` is not finite, shapes do not match, `features` and `logits` are both given, or
        the policy is not finite after so large steps.

    Warns
    -----
    ConvergenceWarning
        When the worst regret of a free policy may be above the least by more than a fiftieth of the
        largest regret.

    Notes
    -----
    The paper has the regret with its sign reversed, and no step size on :math:`\phi`. It follows
    the plain gradient, which is the natural one times the probability of each response: what is
    improbable is hardly learned. For free policies the natural gradient is optimistic Hedge in each
    prompt, with :math:`\mathrm{gap} \le (\log(Y K) / \eta + 2 \eta) / T` for Y responses and K
    types, in units of the largest regret (Syrgkanis et al. 2015, theorem 4); for a class it is the
    least-squares fit of the advantages by the features (Agarwal et al. 2021, section 6).

    Examples
    --------
    >>> import numpy as np
    >>> fair = policy_gradient([[4, 0, 3], [0, 4, 3]])
    >>> print(fair.policy.round(2), round(fair.value, 2))
    [0. 0. 1.] 1.0
    >>> prompts = np.random.default_rng(0).uniform(size=(50, 2))
    >>> features = np.einsum("ab,xc->xabc", np.eye(2), prompts).reshape(50, 2, 4)
    >>> reward = np.einsum("xz,zy->zxy", prompts, np.eye(2))
    >>> linear = policy_gradient(reward, features=features, steps=300)
    >>> linear.parameters.shape, round(linear.value, 2)
    ((4,), 0.19)
    """
    whole("steps", steps)
    rate = 0.5 if step_size is None else step_size
    positive("step_size", rate)
    value = as_reward("reward", reward)
    if value.ndim not in (2, 3, 4):
        raise DataError(
            parameter="reward",
            problem=f"has shape {value.shape}",
            expected="it must be (type, prompt, response), (type, response) or (draw, type, prompt,"
            " response)",
        )
    of_draws = value.ndim == 4 or has_draws(reward)
    costs = costs_of(value if of_draws else value[None], own, prompt_weights, one_draw=not of_draws)
    if features is None and logits is None:
        if start is not None:
            raise SettingError(
                parameter="start",
                value=start,
                problem="is of the parameters of a class of policies, and a free policy has none",
                expected="leave it out, or give the class as `features` or `logits`",
            )
        return _free(costs, steps, rate)
    function, first, unit = _class(costs, features, logits, start)
    fair = _of_class(costs, function, first, steps, rate)
    return fair._replace(
        parameters=jax.tree.map(lambda leaf: np.asarray(leaf / unit), fair.parameters)
    )


# ---------------------------------------------------------------- free policies


def _free(costs: Costs, steps: int, rate: float) -> FairPolicy:
    """Mean policy of optimistic Hedge in each prompt."""
    draws, types, prompts, responses = costs.table.shape
    loss, gain = np.zeros((prompts, responses)), np.zeros((draws, types))
    last_loss, last_gain = loss, gain
    policies, weights = np.zeros_like(loss), np.zeros_like(gain)
    history = np.empty((steps, 2))
    for step in range(steps):
        # The recursion of the docstring summed: the last gradient counts twice.
        policy = softmax(-rate * (loss + last_loss), -1)
        p = softmax(rate * (gain + last_gain), -1)
        last_loss = np.einsum("skxy,sk->xy", costs.table, p) / draws
        last_gain = costs.regrets(policy)
        loss, gain = loss + last_loss, gain + last_gain
        policies, weights = policies + policy, weights + p
        # Both sides are linear, so that means of policies have means of regrets.
        value = float(gain.max(-1).mean()) / (step + 1)
        least = float(costs.probs @ loss.min(-1)) / (step + 1)
        history[step] = value, value - least
    _check_finite(policies)
    fair = costs.fair(policies / steps, weights / steps, history=costs.scale * history)
    if fair.gap > _WIDE * costs.scale:
        warnings.warn(
            f"the worst regret {fair.value:.3g} may be above the least possible by {fair.gap:.3g}"
            f" after {steps} steps; take more steps, or use minmax_policy",
            ConvergenceWarning,
            stacklevel=4,
        )
    return fair


def _check_finite(values: Float[np.ndarray, " ..."]) -> None:
    if not np.isfinite(values).all():
        raise SettingError(
            parameter="step_size",
            problem="is so large that the policy overflows",
            expected="leave it out, or give 1/2 at most",
        )


# ---------------------------------------------------------------- classes of policies


def _class(
    costs: Costs, features: ArrayLike | None, logits: Logits | None, start: Any
) -> tuple[Logits, Any, Any]:
    """Logits as a function of parameters, the first parameters, and what divides the last ones."""
    shape = costs.table.shape[2:]
    if features is not None and logits is not None:
        raise SettingError(
            parameter="logits", problem="and `features` are both given", expected="give one of them"
        )
    if logits is None:
        own = (shape[1:] if costs.one_prompt else shape) + (2,)
        table = as_array("features", () if features is None else features, f"np.zeros({own})")
        if table.ndim == 2 and costs.one_prompt:
            table = table[None]
        if table.shape[:-1] != shape:
            raise DataError(
                parameter="features",
                problem=f"has shape {table.shape}",
                expected=f"it must be {(*own[:-1], 'feature')}",
            )
        none = np.zeros(table.shape[-1])
        first = none if start is None else as_array("start", start, f"np.zeros({len(none)})")
        if first.shape != table.shape[-1:]:
            raise DataError(
                parameter="start",
                problem=f"has shape {first.shape}",
                expected=f"it must be {table.shape[-1:]}, a number for each feature",
            )
        # The ridge is the same for all parameters, so that features must be of one size.
        centred = table - table.mean(1, keepdims=True)
        spread = np.sqrt(np.einsum("xyf,x->f", centred**2, costs.probs) / shape[1])
        unit = np.where(spread > _CONSTANT * np.abs(table).max((0, 1)), spread, 1.0)
        return partial(_linear, centred / unit), first * unit, unit
    if not callable(logits) or start is None:
        raise SettingError(
            parameter="logits",
            value=logits,
            problem="needs a function, and its first parameters",
            expected="give both",
            instead="logits=function, start=parameters",
        )
    if jax.eval_shape(logits, start).shape != shape:
        raise DataError(
            parameter="logits",
            problem=f"gives shape {jax.eval_shape(logits, start).shape}",
            expected=f"it must be {shape}, as (prompt, response) of the rewards",
        )
    return logits, start, 1.0


def _linear(
    table: Float[np.ndarray, "prompt response feature"], parameters: Float[Array, " feature"]
) -> Float[Array, "prompt response"]:
    return jnp.asarray(table) @ parameters


class _State(NamedTuple):
    """Parameters and log-weights of the types, with the last gradients, and the best so far."""

    flat: Float[Array, " parameter"]
    direction: Float[Array, " parameter"]
    log_p: Float[Array, "draw type"]
    regret: Float[Array, "draw type"]
    total_p: Float[Array, "draw type"]
    best: Float[Array, " parameter"]
    least: Float[Array, ""]


def _of_class(costs: Costs, function: Logits, first: Any, steps: int, rate: float) -> FairPolicy:
    """Policy of the best step of the natural gradient."""
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), first)
        flat, unravel = ravel_pytree(wide)
        table, probs = jnp.asarray(costs.table), jnp.asarray(costs.probs)

        def logits_of(parameters: Float[Array, " parameter"]) -> Float[Array, "prompt response"]:
            return jnp.asarray(function(unravel(parameters)), jnp.float64)

        none = jnp.zeros(table.shape[:2])
        state = _State(flat, jnp.zeros_like(flat), none, none, none, flat, jnp.asarray(jnp.inf))
        step = partial(_step, logits_of, table, probs, rate)

        @jax.jit
        def run(first: _State) -> tuple[_State, Array, Array]:
            last, values = jax.lax.scan(step, first, None, steps)
            return last, values, jax.nn.softmax(logits_of(last.best), -1)

        state, history, policy = run(state)
        parameters = jax.tree.map(np.asarray, unravel(state.best))
        values, weights = np.asarray(history), np.asarray(state.total_p) / steps
    _check_finite(np.asarray(state.flat))
    lower = costs.least(weights)
    path = costs.scale * np.stack([values, values - lower], -1)
    return costs.fair(np.asarray(policy), weights, history=path, parameters=parameters)


def _step(
    logits_of: Logits,
    table: Float[Array, "draw type prompt response"],
    probs: Float[Array, " prompt"],
    rate: float,
    state: _State,
    _: None,
) -> tuple[_State, Float[Array, ""]]:
    """One step of both players, and the worst regret before it."""
    policy = jax.nn.softmax(logits_of(state.flat), -1)
    p = jax.nn.softmax(state.log_p, -1)
    regret = jnp.einsum("skxy,xy,x->sk", table, policy, probs)
    worst = regret.max(-1).mean()
    cost = jnp.einsum("skxy,sk->xy", table, p) / len(table)
    direction = _natural(logits_of, state.flat, policy, probs, cost)
    better = worst < state.least
    return _State(
        state.flat - rate * (2 * direction - state.direction),
        direction,
        state.log_p + rate * (2 * regret - state.regret),
        regret,
        state.total_p + p,
        jnp.where(better, state.flat, state.best),
        jnp.where(better, worst, state.least),
    ), worst


def _natural(
    logits_of: Logits,
    flat: Float[Array, " parameter"],
    policy: Float[Array, "prompt response"],
    probs: Float[Array, " prompt"],
    cost: Float[Array, "prompt response"],
) -> Float[Array, " parameter"]:
    """Natural gradient of the mean cost: its least-squares fit by the derivatives of the log
    probabilities, weighted by how often each response is given."""
    jacobian = jax.jacobian(logits_of)(flat)
    centred = jacobian - jnp.einsum("xy,xyf->xf", policy, jacobian)[:, None]
    weight = probs[:, None] * policy
    fisher = jnp.einsum("xyf,xy,xyg->fg", centred, weight, centred)
    gradient = jnp.einsum("xyf,xy,xy->f", centred, weight, cost)
    size = jnp.einsum("xyf,xy->", jacobian**2, probs[:, None] / policy.shape[-1]) / len(flat)
    ridge = _RIDGE * jnp.maximum(size, 1e-300) * jnp.eye(len(flat))
    return jax.scipy.linalg.solve(fisher + ridge, gradient, assume_a="pos")
