"""Random Markov decision processes."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import raters as rt
from raters import imitation
from raters.imitation.planning import Plan

SETTINGS = settings(deadline=None, max_examples=30, derandomize=True)


class World(NamedTuple):
    """A process, a reward in [-1, 1], and two policies."""

    mdp: rt.MDP
    reward: np.ndarray
    policy: np.ndarray
    other: np.ndarray


def soft(mdp: rt.MDP, reward: Any, temperature: float = 1.0) -> Plan:
    """The soft-optimal policy."""
    return imitation.optimal_policy(mdp, reward, temperature=temperature)


def features(mdp: rt.MDP, policy: np.ndarray) -> np.ndarray:
    """Feature expectations of a policy."""
    return np.tensordot(imitation.occupancy(mdp, policy), mdp.features)


def beginning(mdp: rt.MDP, state: int) -> rt.MDP:
    """The process whose walks begin in a state."""
    return dataclasses.replace(mdp, start=np.eye(mdp.num_states)[state])


def policy(mdp: rt.MDP, rng: np.random.Generator) -> np.ndarray:
    """A policy at random, which does whatever is allowed."""
    table = rng.exponential(size=mdp.allowed.shape) * mdp.allowed + 1e-3 * mdp.allowed
    return table / table.sum(1, keepdims=True)


def world(seed: int, *, ending: bool = False, deterministic: bool = False, **options: Any) -> World:
    """A process of 3 to 6 states; with ends and no discount on request."""
    rng = np.random.default_rng(seed)
    size, actions = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    # Few next states each, so that some are hard to reach.
    table = rng.dirichlet(np.full(size, 0.3), (size, actions))
    if deterministic:
        table = np.eye(size)[rng.integers(size, size=(size, actions))]
    allowed = rng.random((size, actions)) < 0.8
    allowed[:, 0] = True
    allowed[0] = True
    features = rng.normal(size=(size, actions, 3))
    if ending:
        table = 0.9 * table + 0.1 * np.eye(size)[-1]
        table[-1] = np.eye(size)[-1]
        allowed[-1] = [True] + [False] * (actions - 1)
        features[-1] = 0
    discount = 1.0 if ending else float(rng.choice([0.3, 0.9, 0.97]))
    start = rng.dirichlet(np.ones(size))
    given = {"features": features, "allowed": allowed, "discount": discount, "start": start}
    mdp = rt.MDP.from_arrays(table, **given | options)
    reward = rng.uniform(-1, 1, (size, actions))
    if ending:
        reward[-1] = 0
    return World(mdp, reward, policy(mdp, rng), policy(mdp, rng))


seeds = st.integers(0, 2**32 - 1)
worlds = st.builds(world, seeds, ending=st.booleans())
discounted_worlds = st.builds(world, seeds)
