"""Policies of a class for all types, by policy gradient against multiplicative weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from raters.alignment.checks import as_array, refuse_shape
from raters.alignment.regret import RATE
from raters.alignment.saddle import Costs, FairPolicy
from raters.errors import refuse, refuse_data
from raters.errors.validation import checked, whole

Flat = Float[Array, " parameter"]

# Ridge of the natural gradient, per mean squared feature: directions that change no probability.
_RIDGE = 1e-6
# A feature that varies among the responses by less, per its largest entry, is constant but for
# rounding.
_CONSTANT = 1e-12

Responses = Float[Array, "prompt response"]
Logits = Callable[[Any], Responses]


@checked
def policy_gradient(
    reward: ArrayLike,
    *,
    features: ArrayLike | None = None,
    logits: Logits | None = None,
    start: Any = None,
    steps: int = 2000,
) -> FairPolicy:
    r"""Find a policy of a class with a small worst regret, which can answer prompts that were not
    in the table, by optimistic policy gradient against optimistic multiplicative weights of the
    types.

    With the regret :math:`L_z(\pi)` of `minmax_policy`, the natural gradient :math:`\tilde\nabla =
    F^{-1} \nabla`, F the Fisher information of the policy, and :math:`\eta = 1/2` where the largest
    regret is 1,

    .. math::

        \phi_{t+1} = \phi_t - \eta \, \Bigl(2 \tilde\nabla \sum_z p_{t,z} L_z(\pi_{\phi_t})
            - \tilde\nabla \sum_z p_{t-1,z} L_z(\pi_{\phi_{t-1}})\Bigr), \qquad
        p_{t+1,z} \propto p_{t,z} \exp\{\eta (2 L_z(\pi_{\phi_t}) - L_z(\pi_{\phi_{t-1}}))\}

    (Chidambaram et al. 2024, section 5.2).

    Parameters
    ----------
    reward : array (type, prompt, response), (type, response) or (draw, type, prompt, response)
        As of `minmax_policy`.
    features : array (prompt, response, feature), optional
        For policies :math:`\pi(y \mid x) \propto \exp(\phi^\top f(x, y))`; those of other prompts
        are ``alignment.policy(other_features @ fair.parameters)``. The units of features, and what
        all responses to a prompt share, change nothing.
    logits : callable, optional
        Any other class: from parameters (a tree of arrays) to logits (prompt, response), in JAX.
        The gradient has a Jacobian of (prompt × response, parameter) numbers, so that it suits
        small networks. Its inputs should be of like sizes.
    start : tree of arrays, optional
        First parameters of `logits`.
    steps : int

    Returns
    -------
    FairPolicy
        As of `minmax_policy`, of the step with the least worst regret, with its ``parameters`` and
        the ``history`` (step, 2) of value and gap, the distance from the best of all policies.

    Notes
    -----
    The paper has the regret with its sign reversed, no step size on :math:`\phi`, and the plain
    gradient, by which what is improbable is hardly learned. The natural one is the least-squares
    fit of the advantages by the features (Agarwal et al. 2021, section 6).

    Examples
    --------
    >>> import numpy as np
    >>> prompts = np.random.default_rng(0).uniform(size=(50, 2))
    >>> features = np.einsum("ab,xc->xabc", np.eye(2), prompts).reshape(50, 2, 4)
    >>> reward = np.einsum("xz,zy->zxy", prompts, np.eye(2))
    >>> linear = policy_gradient(reward, features=features, steps=300)
    >>> linear.parameters.shape, round(linear.value, 2)
    ((4,), 0.19)
    """
    whole("steps", steps)
    costs = Costs.of(reward)
    if (features is None) == (logits is None):
        refuse("logits", problem="does not go with `features`", expected="give one of them")
    if features is not None:
        table, unit = _features(costs, features)
        fair = _of_class(costs, partial(jnp.matmul, table), np.zeros(len(unit)), steps)
        return fair._replace(parameters=fair.parameters / unit)
    shape = costs.table.shape[2:]
    if not callable(logits) or start is None:
        such = "logits=function, start=parameters"
        refuse("logits", logits, expected="give a function, and its start", instead=such)
    given = jax.eval_shape(logits, start).shape
    if given != shape:
        expected = f"it must be {shape}, as (prompt, response) of the rewards"
        refuse_data("logits", problem=f"gives shape {given}", expected=expected)
    return _of_class(costs, logits, start, steps)


def _features(
    costs: Costs, features: ArrayLike
) -> tuple[Float[np.ndarray, "prompt response feature"], Float[np.ndarray, " feature"]]:
    """Features less their mean, over their spread, and these units, so that one ridge suits all."""
    shape = costs.table.shape[2:]
    wanted = shape[1:] if costs.one_prompt else shape
    table = as_array("features", features, f"np.zeros({(*wanted, 2)})")
    if table.ndim == 2 and costs.one_prompt:
        table = table[None]
    if table.shape[:-1] != shape:
        refuse_shape("features", table, f"it must be {(*wanted, 'feature')}")
    centred = table - table.mean(1, keepdims=True)
    spread = np.sqrt((centred**2).mean((0, 1)))
    unit = np.where(spread > _CONSTANT * np.abs(table).max((0, 1)), spread, 1.0)
    return centred / unit, unit


class _State(NamedTuple):
    """Parameters and log-weights of the types, with the last gradients, and the best so far."""

    flat: Float[Array, " parameter"]
    direction: Float[Array, " parameter"]
    log_p: Float[Array, "draw type"]
    regret: Float[Array, "draw type"]
    total_p: Float[Array, "draw type"]
    best: Float[Array, " parameter"]
    least: Float[Array, ""]


def _of_class(costs: Costs, function: Logits, first: Any, steps: int) -> FairPolicy:
    """Policy of the best step of the natural gradient."""
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), first)
        flat, unravel = ravel_pytree(wide)
        table = jnp.asarray(costs.table)

        def logits_of(parameters: Flat) -> Responses:
            return jnp.asarray(function(unravel(parameters)), jnp.float64)

        none = jnp.zeros(table.shape[:2])
        state = _State(flat, jnp.zeros_like(flat), none, none, none, flat, jnp.asarray(jnp.inf))
        step = partial(_step, logits_of, table)

        @jax.jit
        def run(first: _State) -> tuple[_State, Array, Array]:
            last, values = jax.lax.scan(step, first, None, steps)
            return last, values, jax.nn.softmax(logits_of(last.best), -1)

        state, history, policy = run(state)
        parameters = jax.tree.map(np.asarray, unravel(state.best))
        values, weights = np.asarray(history), np.asarray(state.total_p) / steps
    if not np.isfinite(np.asarray(state.flat)).all():
        refuse("logits", problem="overflow", expected="give inputs of like sizes, or fewer steps")
    lower = costs.least(weights)
    path = costs.scale * np.stack([values, values - lower], -1)
    return costs.fair(np.asarray(policy), weights, history=path, parameters=parameters)


def _step(
    logits_of: Logits, table: Float[Array, "draw type prompt response"], state: _State, _: None
) -> tuple[_State, Float[Array, ""]]:
    """One step of both players, and the worst regret before it."""
    policy = jax.nn.softmax(logits_of(state.flat), -1)
    p = jax.nn.softmax(state.log_p, -1)
    regret = jnp.einsum("skxy,xy->sk", table, policy) / len(policy)
    worst = regret.max(-1).mean()
    cost = jnp.einsum("skxy,sk->xy", table, p) / len(table)
    direction = _natural(logits_of, state.flat, policy, cost)
    flat = state.flat - RATE * (2 * direction - state.direction)
    log_p = state.log_p + RATE * (2 * regret - state.regret)
    best = jnp.where(worst < state.least, state.flat, state.best)
    least = jnp.fmin(worst, state.least)
    return _State(flat, direction, log_p, regret, state.total_p + p, best, least), worst


def _natural(logits_of: Logits, flat: Flat, policy: Responses, cost: Responses) -> Flat:
    """Natural gradient of the mean cost: least squares on the derivatives of log probabilities."""
    jacobian = jax.jacobian(logits_of)(flat)
    centred = jacobian - jnp.einsum("xy,xyf->xf", policy, jacobian)[:, None]
    weight = policy / len(policy)
    fisher = jnp.einsum("xyf,xy,xyg->fg", centred, weight, centred)
    gradient = jnp.einsum("xyf,xy,xy->f", centred, weight, cost)
    size = (jacobian**2).mean()
    ridge = _RIDGE * jnp.maximum(size, 1e-300) * jnp.eye(len(flat))
    return jax.scipy.linalg.solve(fisher + ridge, gradient, assume_a="pos")
