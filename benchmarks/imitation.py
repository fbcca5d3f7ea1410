"""Maximum causal entropy beside irl-maxent, optimum and CPU seconds; and what cloning and DAgger
lose on a cliff.

Both learn the weights of three features of grids from the same 200 episodes, without a discount: a
step costs something, mud more, and a road less; an episode ends in a corner. The log-likelihood is
the exact one of `raters.imitation.maxent_objective`, for the weights of each. irl-maxent climbs by
gradient steps until they change weights by less than 1e-4, its default, here at a constant rate
that falls with the size of the grid; at 2.5 times the rate it does not end. It needs the name
`np.float`, which NumPy no longer has, and is given it here.

    pip install --no-deps irl-maxent      # optional: without it its column is empty
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from _common import options, report, table, timed

import raters as rt
from raters import imitation

WEIGHTS = np.array([-2.0, -1.5, 0.7])


class Task(NamedTuple):
    """A grid without the additional end, and episodes in it."""

    mdp: rt.MDP
    walks: imitation.Rollout
    features: np.ndarray


def task(size: int, seed: int) -> Task:
    """A grid of so many rows and columns, its goal in a corner, and 200 episodes."""
    rng = np.random.default_rng(seed)
    free = np.ones((size, size))
    free[-1, -1] = 0
    kind = rng.choice(3, size=(size, size), p=[0.5, 0.25, 0.25])
    features = {"step": free, "mud": free * (kind == 1), "road": free * (kind == 2)}
    goal = (size - 1, size - 1)
    mdp = rt.MDP.grid(size, size, ends=[goal], start=(0, 0), features=features, discount=1.0)
    policy = imitation.soft_policy(mdp, WEIGHTS).policy
    walks = imitation.rollout(mdp, policy, episodes=200, steps=10_000, seed=seed)
    return Task(mdp, walks, mdp.features[:-1, 0])


def by_peer(problem: Task) -> np.ndarray | None:
    """Weights by irl-maxent, of the same transitions and episodes."""
    try:
        setattr(np, "float", float)  # noqa: B010
        maxent = importlib.import_module("irl_maxent.maxent")
        optimizer = importlib.import_module("irl_maxent.optimizer")
        trajectory = importlib.import_module("irl_maxent.trajectory")
    except ModuleNotFoundError:
        return None
    goal = problem.mdp.num_states - 2
    transition = problem.mdp.transition[:-1, :, :-1].transpose(0, 2, 1).copy()
    episodes = []
    for states, actions in zip(*problem.walks, strict=True):
        long = int((states >= 0).sum())
        # The last step is from the goal to the end, which irl-maxent does without.
        steps = zip(states[: long - 1], actions[: long - 1], states[1:long], strict=True)
        episodes.append(trajectory.Trajectory(list(steps)))
    climb = optimizer.Sga(lr=0.2 / len(problem.features) ** 0.5)
    begin = np.array([-3.0, 0.0, 0.0])  # at 0 the sums over walks are infinite
    maxent.irl_causal(
        transition, problem.features, [goal], episodes, climb, lambda size: begin, 1.0
    )
    return np.asarray(climb.parameters)


def compared(sizes: list[int], seed: int) -> str:
    """The table of both."""
    rows = []
    for size in sizes:
        problem = task(size, seed)
        shown = imitation.empirical_occupancy(problem.mdp, problem.walks)
        own = timed(lambda shown=shown, mdp=problem.mdp: imitation.maxent_irl(mdp, shown))
        peer = timed(lambda problem=problem: by_peer(problem), most=1)
        row: list[Any] = [f"{size} × {size}", own.value.weights.round(3), own.value.gap, own.cpu]
        if peer.value is None:
            rows.append([*row, "–", np.nan, np.nan, np.nan])
            continue
        other = imitation.maxent_objective(problem.mdp, peer.value, shown)
        short = own.value.value - other.value
        rows.append([*row, peer.value.round(3), short, peer.cpu, peer.cpu / own.cpu])
    header = [
        "grid",
        "weights",
        "largest gap of features",
        "CPU seconds",
        "irl-maxent: weights",
        "nats per episode short",
        "CPU seconds",
        "ratio",
    ]
    return table(header, rows)


def cliffs(horizons: list[int], runs: int) -> str:
    """Losses by horizon, of 8,000 answers of the demonstrator each."""
    rows = []
    for horizon in horizons:
        mdp, best = imitation.cliff(depth=12, discount=1 - 1 / horizon)
        road = np.eye(mdp.num_states)[0][:, None] * best
        clone = imitation.clone(mdp, 8000 * road, pseudo_counts=10.0)
        learned = [
            imitation.dagger(
                mdp,
                best,
                rounds=19,
                episodes=400 // horizon,
                steps=horizon,
                seed=run,
                pseudo_counts=10.0,
            ).policies[-1]
            for run in range(runs)
        ]
        lost = [imitation.cloning_bound(mdp, [1.0], best, policy).gap for policy in learned]
        bound = imitation.cloning_bound(mdp, [1.0], best, clone)
        rows.append([horizon, bound.gap, bound.bound, np.mean(lost), np.std(lost)])
    slopes = np.polyfit(np.log(horizons), np.log([row[1:4] for row in rows]), 1)[0]
    rows.append(["exponent", *slopes, np.nan])
    header = ["horizon", "cloning loses", "its bound", "DAgger loses", "sd between runs"]
    return table(header, rows)


def main() -> None:
    """Both tables."""
    chosen = options(__doc__.splitlines()[0])
    sizes = [4] if chosen.quick else [4, 6, 8]
    horizons = [25, 50] if chosen.quick else [25, 50, 100, 200, 400]
    parts = [
        "Maximum causal entropy: 200 episodes, true weights "
        f"{WEIGHTS.tolist()} of a step, mud and a road.",
        compared(sizes, chosen.seed),
        "A cliff: 8,000 answers of the demonstrator for both.",
        cliffs(horizons, 2 if chosen.quick else 8),
    ]
    report("imitation", "Imitation on tables", parts, chosen.quick)


if __name__ == "__main__":
    main()
