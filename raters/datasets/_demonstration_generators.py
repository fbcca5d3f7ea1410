"""Demonstrations drawn on a grid under a known reward and known rationalities."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from raters.datasets._generators import Truth, check_shares, draw_kinds
from raters.errors.validation import checked, positive, whole
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.mdp import MDP
from raters.models.demonstrations.soft_policy import Dynamics, log_soft_policy

# Rationality of the careless and of adversaries.
_CARELESS, _ADVERSARY = 0.05, -0.8


class GeneratedDemonstrations(NamedTuple):
    """Demonstrations, and what generated them.

    Attributes
    ----------
    demonstrations : Demonstrations
    truth : dict of str to array
        Parameters by name.
    """

    demonstrations: Demonstrations
    truth: Truth


@checked
def demonstration_crowd(
    rows: int = 6,
    columns: int = 6,
    num_annotators: int = 12,
    num_trajectories: int = 8,
    num_steps: int = 15,
    *,
    seed: int,
    num_features: int = 4,
    careless: float = 0.1,
    adversaries: float = 0.1,
    discount: float = 0.9,
    slip: float = 0.1,
) -> GeneratedDemonstrations:
    """Generate demonstrations on a grid by a crowd with careless demonstrators and adversaries,
    under `MaxEntIRL`.

    Each cell has features, which are standard normal, and the reward is linear in them. Each
    demonstrator walks from random cells, by the soft-optimal policy of their rationality.

    Parameters
    ----------
    rows, columns : int
        Size of the grid.
    num_annotators, num_trajectories, num_steps : int
        Numbers of demonstrators, of trajectories of each, and of steps of a trajectory.
    seed : int
        Seed of ``numpy.random.default_rng``.
    num_features : int
    careless, adversaries : float
        Shares of the demonstrators, not negative and with a sum below 1: with rationality .05, who
        act nearly at random, and with −.8, who act against the goal. All others have about 1.
    discount, slip : float
        As of `MDP.grid`.

    Returns
    -------
    GeneratedDemonstrations
        ``demonstrations``, and ``truth`` with ``coefficient`` (feature), ``rationality`` and
        ``kind`` (annotator): "competent", "careless" or "adversary".

    Raises
    ------
    SettingError
        When a number is too small, or the shares are not possible.

    Examples
    --------
    >>> import raters as rt
    >>> demonstrations, truth = rt.datasets.demonstration_crowd(seed=0)
    >>> demonstrations.num_steps, demonstrations.mdp
    (1440, MDP(36 states, 4 actions, 4 features, discount=0.9))
    """
    numbers = {"rows": rows, "columns": columns, "num_annotators": num_annotators}
    numbers |= {"num_trajectories": num_trajectories, "num_steps": num_steps}
    for name, number in (numbers | {"num_features": num_features}).items():
        whole(name, number)
    positive("discount", discount)
    check_shares(careless=careless, adversaries=adversaries)
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns, num_features))
    mdp = MDP.grid(rows, columns, features=features, discount=discount, slip=slip)
    kind = draw_kinds(rng, num_annotators, {"careless": careless, "adversary": adversaries})
    competent = np.clip(rng.normal(1.0, 0.2, num_annotators), 0.3, None)
    truth = {
        "coefficient": rng.normal(size=num_features),
        "rationality": np.select(
            [kind == "careless", kind == "adversary"], [_CARELESS, _ADVERSARY], competent
        ),
        "kind": kind,
    }
    reward = truth["rationality"][:, None, None] * mdp.reward(truth["coefficient"])
    with jax.enable_x64(True):
        policy = np.exp(np.asarray(log_soft_policy(jnp.asarray(reward), Dynamics.of(mdp))))
    demonstrations = Demonstrations.rollouts(
        mdp,
        policy,
        trajectories=num_trajectories,
        steps=num_steps,
        seed=int(rng.integers(2**31)),
        annotators=range(num_annotators),
    )
    return GeneratedDemonstrations(demonstrations, truth)
