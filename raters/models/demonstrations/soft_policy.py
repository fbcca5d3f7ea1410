"""Soft values and policies of finite Markov decision processes, and the rewards without effect."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from raters.judgements.mdp import MDP

# Policies are improved at most so often. Each improvement squares the error.
_MOST = 60
# Log-probability of an action that is not allowed: finite, so that no gradient is NaN.
_NEVER = -1e9
# Singular values below this share of the largest one are 0 but for rounding.
_ROUNDING = 1e-8

Values = Float[Array, " state"]
Rewards = Float[Array, "state action"]


class Dynamics(NamedTuple):
    """The part of a Markov decision process that a policy depends on beside its reward."""

    transition: Float[Array, "state action next_state"]
    bonus: Rewards

    @classmethod
    def of(cls, mdp: Any) -> Dynamics:
        """Read the dynamics of a process."""
        allowed = jnp.asarray(mdp.allowed, bool)
        transition = jnp.asarray(mdp.transition, float) * allowed[..., None]
        # Of single precision, sums are 1 but for rounding.
        total = transition.sum(-1, keepdims=True)
        transition = transition / jnp.where(total > 0, total, 1.0)
        number = allowed.sum(-1, keepdims=True)
        still = jnp.zeros_like(number, bool)
        if mdp.discount == 1:
            # States that every allowed action keeps.
            place = jnp.arange(len(transition))
            stays = transition[place, :, place] >= 1 - 1e-6
            still = (stays | ~allowed).all(-1)[:, None]
        bonus = -jnp.log(jnp.maximum(number, 1).astype(float))
        transition = jnp.where(still[..., None], 0.0, mdp.discount * transition)
        return cls(transition, jnp.where(allowed, bonus, _NEVER))


@jax.custom_jvp
@jax.jit  # A program is also run outside of compiled functions, where a loop would compile anew.
def soft_values(reward: Rewards, dynamics: Dynamics) -> Values:
    """Values of the soft-optimal policy."""
    tolerance = float(np.sqrt(np.finfo(np.dtype(reward.dtype)).eps))

    def improved(state: tuple[Values, Array, Array]) -> tuple[Values, Array, Array]:
        values, _, step = state
        # The change of values that the present policy would make for ever.
        change = _solved(
            _policy(reward, dynamics, values), dynamics, _lack(reward, dynamics, values)
        )
        return values + change, jnp.abs(change).max(), step + 1

    def unsettled(state: tuple[Values, Array, Array]) -> Array:
        values, change, step = state
        # The error left is the square of the last change.
        return (change > tolerance * (1 + jnp.abs(values).max())) & (step < _MOST)

    begin = jnp.zeros(reward.shape[0], reward.dtype)
    large = jnp.asarray(jnp.inf, reward.dtype)
    values, change, _ = jax.lax.while_loop(unsettled, improved, (begin, large, jnp.asarray(0)))
    settled = change <= tolerance * (1 + jnp.abs(values).max())
    return jnp.where(settled, values, jnp.nan)


@soft_values.defjvp
def _(
    primals: tuple[Rewards, Dynamics], tangents: tuple[Rewards, Dynamics]
) -> tuple[Values, Values]:
    reward, dynamics = primals
    change, moved = tangents
    # Differentiable again, by this rule.
    values = soft_values(reward, dynamics)
    policy = _policy(reward, dynamics, values)
    each = change + moved.bonus + moved.transition @ values
    return values, _solved(policy, dynamics, (policy * each).sum(-1))


def _action_values(reward: Rewards, dynamics: Dynamics, values: Values) -> Rewards:
    return reward + dynamics.bonus + dynamics.transition @ values


def _lack(reward: Rewards, dynamics: Dynamics, values: Values) -> Values:
    """Difference that is left between both sides of the equation."""
    return jax.nn.logsumexp(_action_values(reward, dynamics, values), axis=-1) - values


def _policy(reward: Rewards, dynamics: Dynamics, values: Values) -> Rewards:
    """Policy that is soft-optimal for these values."""
    return jax.nn.softmax(_action_values(reward, dynamics, values), axis=-1)


def _solved(policy: Rewards, dynamics: Dynamics, right: Values) -> Values:
    """Sum of what is had in each state, of all steps under a policy."""
    moves = jnp.einsum("sa,sat->st", policy, dynamics.transition)
    return jnp.linalg.solve(jnp.eye(len(moves), dtype=moves.dtype) - moves, right)


def log_soft_policy(reward: Float[Array, "*batch state action"], dynamics: Dynamics) -> Array:
    """Log-probabilities of the actions under the soft-optimal policy."""

    def one(reward: Rewards) -> Rewards:
        values: Values = soft_values(reward, dynamics)
        return _action_values(reward, dynamics, values) - values[:, None]

    flat = reward.reshape(-1, *reward.shape[-2:])
    return jax.vmap(one)(flat).reshape(reward.shape)


def unidentified(mdp: MDP) -> Float[np.ndarray, "direction feature"]:
    """Directions of the coefficients of a reward that change no soft-optimal policy."""
    allowed = np.asarray(mdp.allowed, bool)
    features = np.asarray(mdp.features, float)[allowed]
    here = np.repeat(np.arange(len(allowed)), allowed.sum(1))
    stay = np.eye(len(allowed))[here]
    potential = stay - mdp.discount * np.asarray(mdp.transition, float)[allowed]
    if mdp.discount == 1:  # The value of an end is 0.
        potential = potential[:, ~np.asarray(mdp.ends)]
    left = features - potential @ np.linalg.lstsq(potential, features, rcond=None)[0]
    _, size, directions = np.linalg.svd(left, full_matrices=True)
    scale = max(np.linalg.norm(features, ord=2), 1e-300)
    rank = int((size > _ROUNDING * scale).sum())
    return np.asarray(directions[rank:])


def without_unidentified(
    coefficient: Float[np.ndarray, "*draw feature"], mdp: MDP
) -> Float[np.ndarray, "*draw feature"]:
    """Coefficients without the directions that no policy depends on."""
    directions = unidentified(mdp)
    return np.asarray(coefficient - (coefficient @ directions.T) @ directions)
