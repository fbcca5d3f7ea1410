"""Maximum causal entropy beside irl-maxent and imitation: optimum, soft values, gradients and CPU
seconds; and what cloning and DAgger lose on a cliff.

All learn the weights of three features of grids from the same 200 episodes, without a discount: a
step costs something, mud more, and a road less; an episode ends in a corner. The log-likelihood is
the exact one of raters, for the weights of each. Both peers begin with
weights of -3, 0 and 0, since at 0 sums over walks without a horizon are infinite; raters finds its
own start.

irl-maxent climbs by gradient steps until they change weights by less than 1e-4, its default, here
at a constant rate that falls with the size of the grid; at 2.5 times the rate it does not end. It
needs the name `np.float`, which NumPy no longer has, and is given it here.

imitation (`MCEIRL`) has a horizon, here of 200 steps, and a policy of each step. All actions are
allowed in all its states, so the end has a fixed reward of -log 4 here, which takes the entropy of
its four actions away. It climbs by Adam until the norm of the gradient is below 1e-4, its default,
in double precision, at a rate of 0.1: at its default, 0.01, the smallest grid takes five times as
many steps. Importing the peers is not part of their seconds; nothing in the three is compiled.

    pip install --no-deps irl-maxent      # optional: without it its rows are empty
    pip install --no-deps imitation==1.0.1 seals==0.2.1 stable-baselines3      # optional too,
    pip install torch gymnasium                                                # with these
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from _common import options, report, table, timed

import raters as rt
from raters import imitation
from raters.imitation.cloning import cliff
from raters.imitation.entropy import maxent_objective
from raters.imitation.rollouts import Rollout

soft_policy = partial(imitation.optimal_policy, temperature=1.0)

WEIGHTS = np.array([-2.0, -1.5, 0.7])
BEGIN = (-3.0, 0.0, 0.0)
HORIZON = 200


class Task(NamedTuple):
    """A grid with an additional end, and episodes in it."""

    mdp: rt.MDP
    walks: Rollout
    features: np.ndarray


def grid(size: int, seed: int, discount: float = 1.0) -> rt.MDP:
    """A grid of so many rows and columns, its goal in a corner."""
    rng = np.random.default_rng(seed)
    free = np.ones((size, size))
    free[-1, -1] = 0
    kind = rng.choice(3, size=(size, size), p=[0.5, 0.25, 0.25])
    features = {"step": free, "mud": free * (kind == 1), "road": free * (kind == 2)}
    goal = (size - 1, size - 1)
    once = rt.MDP.grid(size, size, ends=[goal], start=(0, 0), features=features, discount=1.0)
    return replace(once, discount=discount)


def task(size: int, seed: int) -> Task:
    """A grid, and 200 episodes in it."""
    mdp = grid(size, seed)
    policy = soft_policy(mdp, WEIGHTS).policy
    walks = imitation.rollout(mdp, policy, episodes=200, steps=10_000, seed=seed)
    return Task(mdp, walks, mdp.features[:-1, 0])


# ---------------------------------------------------------------- the peers


@contextmanager
def other_folders() -> Iterator[None]:
    """Imports that do not find this script, which has the name of a peer."""
    before = sys.path
    own = Path(__file__).resolve().parent
    sys.path = [folder for folder in before if Path(folder).resolve() != own]
    try:
        yield
    finally:
        sys.path = before


def modules(*names: str) -> list[Any] | None:
    """Modules of a peer, or none where one is not installed."""
    try:
        with other_folders():
            return [importlib.import_module(name) for name in names]
    except ModuleNotFoundError:
        return None


def of_irl_maxent() -> list[Any] | None:
    """The modules of irl-maxent."""
    setattr(np, "float", float)  # noqa: B010
    return modules("irl_maxent.maxent", "irl_maxent.optimizer", "irl_maxent.trajectory")


def of_imitation() -> list[Any] | None:
    """The modules of imitation."""
    return modules(
        "imitation.algorithms.mce_irl", "imitation.rewards.reward_nets", "seals.base_envs", "torch"
    )


def by_irl_maxent(peer: list[Any], problem: Task) -> np.ndarray:
    """Weights by irl-maxent, of the same transitions and episodes."""
    maxent, optimizer, trajectory = peer
    goal = problem.mdp.num_states - 2
    transition = problem.mdp.transition[:-1, :, :-1].transpose(0, 2, 1).copy()
    episodes = []
    for states, actions in zip(*problem.walks, strict=True):
        long = int((states >= 0).sum())
        # The last step is from the goal to the end, which irl-maxent does without.
        steps = zip(states[: long - 1], actions[: long - 1], states[1:long], strict=True)
        episodes.append(trajectory.Trajectory(list(steps)))
    begin = np.array(BEGIN)  # irl-maxent changes it in place
    climb = optimizer.Sga(lr=0.2 / len(problem.features) ** 0.5)
    maxent.irl_causal(
        transition, problem.features, [goal], episodes, climb, lambda size: begin, 1.0
    )
    return np.asarray(climb.parameters)


def with_horizon(peer: list[Any], mdp: rt.MDP, horizon: int) -> tuple[Any, np.ndarray]:
    """The process of imitation, and the fixed reward by which its end adds no entropy."""
    environment = peer[2].TabularModelPOMDP(
        transition_matrix=staying(mdp),
        observation_matrix=mdp.features[:, 0].copy(),
        reward_matrix=np.zeros(mdp.num_states),
        horizon=horizon,
        initial_state_dist=np.asarray(mdp.start),
    )
    return environment, np.where(mdp.ends, -np.log(mdp.num_actions), 0.0)


def staying(mdp: rt.MDP) -> np.ndarray:
    """Transitions with which all actions stay at the end."""
    transition = mdp.transition.copy()
    transition[-1] = np.eye(mdp.num_states)[-1]
    return transition


def by_imitation(
    peer: list[Any], mdp: rt.MDP, shown: np.ndarray, horizon: int = HORIZON
) -> tuple[np.ndarray, np.ndarray]:
    """Weights by imitation, and its policy of the first step, of the same occupancy."""
    mce_irl, reward_nets, _, torch = peer
    environment, fixed = with_horizon(peer, mdp, horizon)

    class Linear(reward_nets.RewardNet):
        """A reward that is linear in the features, and fixed at the end."""

        def __init__(self) -> None:
            super().__init__(environment.observation_space, environment.action_space)
            self.weights = torch.nn.Parameter(torch.tensor(np.array(BEGIN)))

        def forward(self, state: Any, *_: Any) -> Any:
            return state @ self.weights + torch.as_tensor(fixed)

    visits = shown.sum(1)
    if mdp.discount == 1:
        visits[-1] = horizon + 1 - visits.sum()
    reward = Linear()
    learner = mce_irl.MCEIRL(
        visits,
        environment,
        reward,
        np.random.default_rng(0),
        optimizer_kwargs={"lr": 0.1},
        discount=mdp.discount,
        log_interval=None,
    )
    learner.train()
    return reward.weights.detach().numpy().copy(), learner.policy.pi[0]


# ---------------------------------------------------------------- the tables


def compared(
    sizes: list[int], seed: int, irl_maxent: list[Any] | None, other: list[Any] | None
) -> str:
    """The table of the optima of all."""
    rows = []
    for size in sizes:
        problem = task(size, seed)
        mdp = problem.mdp
        shown = imitation.occupancy(mdp, problem.walks)
        seen = np.tensordot(shown, mdp.features)
        calls: dict[str, Callable[[], np.ndarray] | None] = {
            "raters": lambda mdp=mdp, shown=shown: imitation.maxent_irl(mdp, shown).weights,
            "irl-maxent": irl_maxent
            and (lambda problem=problem: by_irl_maxent(irl_maxent, problem)),
            "imitation": other
            and (lambda mdp=mdp, shown=shown: by_imitation(other, mdp, shown)[0]),
        }
        best = imitation.maxent_irl(mdp, shown)
        own: list[float] = []
        for name, call in calls.items():
            if call is None:
                rows.append([f"{size} × {size}", name, "–", *[np.nan] * 7])
                continue
            first = timed(call, most=1)
            repeated = name == "raters" or size == sizes[0]
            again = timed(call, most=5).cpu if repeated else np.nan
            own = own or [first.cpu, again]
            found = maxent_objective(mdp, first.value, seen)
            policy = soft_policy(mdp, first.value).policy
            rows.append(
                [
                    f"{size} × {size}",
                    name,
                    first.value.round(3),
                    np.abs(found.gradient).max(),
                    abs(policy - best.policy).max(),
                    best.value - found.value,
                    first.cpu,
                    again,
                    first.cpu / own[0],
                    again / own[1],
                ]
            )
    header = [
        "grid",
        "program",
        "weights",
        "largest gap of features",
        "of policies",
        "nats per episode short",
        "CPU seconds",
        "again",
        "ratio",
        "again",
    ]
    return table(header, rows)


def unrolled(mdp: rt.MDP, horizon: int) -> rt.MDP:
    """The process of so many steps without a discount, with states of their own for each step."""
    size = mdp.num_states
    total = horizon * size + 1
    transition = np.zeros((total, mdp.num_actions, total))
    for step in range(horizon - 1):
        here, after = (slice((step + more) * size, (step + more + 1) * size) for more in (0, 1))
        transition[here, :, after] = mdp.transition
    transition[(horizon - 1) * size : -1, :, -1] = mdp.allowed
    only = np.eye(mdp.num_actions)[:1]
    transition[-1, :, -1] = only
    return rt.MDP(
        transition=transition,
        features=np.concatenate(
            [np.tile(mdp.features, (horizon, 1, 1)), np.zeros((1, *mdp.features.shape[1:]))]
        ),
        start=np.concatenate([mdp.start, np.zeros(total - size)]),
        allowed=np.concatenate([np.tile(mdp.allowed, (horizon, 1)), only > 0]),
        discount=1.0,
        states=tuple(range(total)),
        actions=mdp.actions,
        feature_names=mdp.feature_names,
    )


def planned(sizes: list[int], seed: int, peer: list[Any]) -> str:
    """The table of soft values and policies of the true weights."""
    rows = []
    long = 600
    for size, steps in [*((size, None) for size in sizes), (4, 10), (4, 20)]:
        mdp = grid(size, seed, 0.95 if steps is None else 1.0)
        environment, fixed = with_horizon(peer, mdp, steps or long)
        reward = environment.observation_matrix @ WEIGHTS + fixed
        of = mdp if steps is None else unrolled(mdp, steps)
        own = timed(lambda of=of: soft_policy(of, WEIGHTS))
        other = timed(
            lambda environment=environment, reward=reward, mdp=mdp: peer[0].mce_partition_fh(
                environment, reward=reward, discount=mdp.discount
            )
        )
        values, _, policy = other.value
        count = steps or 1
        inner = count * mdp.num_states
        free = ~mdp.ends
        by_step = own.value.policy[:inner].reshape(count, mdp.num_states, -1)
        value_by_step = own.value.state_values[:inner].reshape(count, -1)
        rows.append(
            [
                f"{size} × {size}",
                mdp.discount,
                "–" if steps is None else steps,
                steps or long,
                np.abs(by_step - policy[:count])[:, free].max(),
                np.abs(value_by_step - values[:count])[:, free].max(),
                own.cpu,
                other.cpu,
                other.cpu / own.cpu,
            ]
        )
    header = [
        "grid",
        "discount",
        "steps of raters",
        "of imitation",
        "policies differ by",
        "values by",
        "raters: CPU seconds",
        "imitation",
        "ratio",
    ]
    return table(header, rows)


def slopes(seed: int, peer: list[Any]) -> str:
    """The table of errors of expected features, which are the slope of the first soft value."""
    rows = []
    for discount, steps in [(1.0, HORIZON), (1.0, 10), (0.9, HORIZON)]:
        mdp = grid(4, seed, discount)
        environment, fixed = with_horizon(peer, mdp, steps)
        features, start = environment.observation_matrix, environment.initial_state_dist

        def soft(
            weights: np.ndarray, environment=environment, fixed=fixed, discount=discount
        ) -> Any:
            reward = environment.observation_matrix @ weights + fixed
            return peer[0].mce_partition_fh(environment, reward=reward, discount=discount)

        shift = 1e-5 * np.eye(3)
        slope = np.array(
            [start @ (soft(WEIGHTS + by)[0][0] - soft(WEIGHTS - by)[0][0]) for by in shift]
        )
        slope /= 2e-5
        reward = features @ WEIGHTS + fixed
        alone, given = (
            peer[0].mce_occupancy_measures(
                environment, reward=reward, discount=discount, pi=policy
            )[1]
            for policy in (None, soft(WEIGHTS)[2])
        )
        of = unrolled(mdp, steps) if steps < HORIZON else mdp
        own = np.tensordot(imitation.occupancy(of, soft_policy(of, WEIGHTS).policy), of.features)
        errors = [
            np.abs(found - slope).max() / np.abs(slope).max()
            for found in (own, alone @ features, given @ features)
        ]
        rows.append([discount, steps, *errors])
    header = [
        "discount",
        "steps",
        "raters",
        "imitation, as in training",
        "imitation, given its discounted policy",
    ]
    return table(header, rows)


def discounted(seed: int, peer: list[Any]) -> str:
    """The table of what is learned from the exact occupancy of true weights, with a discount."""
    mdp = grid(4, seed, 0.9)
    truth = soft_policy(mdp, WEIGHTS).policy
    shown = imitation.occupancy(mdp, truth)
    seen = np.tensordot(shown, mdp.features)
    best = maxent_objective(mdp, WEIGHTS, seen).value
    free = ~mdp.ends
    own = imitation.maxent_irl(mdp, shown)
    found = {"raters": (own.weights, own.policy), "imitation": by_imitation(peer, mdp, shown)}
    plain = peer[0].mce_partition_fh

    def told(environment: Any, *, reward: np.ndarray, discount: float = mdp.discount) -> Any:
        return plain(environment, reward=reward, discount=discount)

    with mock.patch.object(peer[0], "mce_partition_fh", told):
        found["imitation, its discount passed on"] = by_imitation(peer, mdp, shown)
    rows = [
        [
            name,
            weights.round(3),
            np.abs(policy - truth)[free].max(),
            best - maxent_objective(mdp, weights, seen).value,
        ]
        for name, (weights, policy) in found.items()
    ]
    return table(["program", "weights", "policies differ by", "nats per episode short"], rows)


def cliffs(horizons: list[int], runs: int) -> str:
    """Losses by horizon, of 8,000 answers of the demonstrator each."""
    rows = []
    for horizon in horizons:
        mdp, best = cliff(depth=12, discount=1 - 1 / horizon)
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
    """All tables."""
    chosen = options(__doc__.splitlines()[0])
    sizes = [4] if chosen.quick else [4, 6, 8]
    horizons = [25, 50] if chosen.quick else [25, 50, 100, 200, 400]
    irl_maxent, other = of_irl_maxent(), of_imitation()
    parts = [
        "Maximum causal entropy: 200 episodes, true weights "
        f"{WEIGHTS.tolist()} of a step, mud and a road. Gaps are of all programs by the same"
        f" objective, policies beside raters'. imitation: {HORIZON} steps, Adam at a rate of 0.1."
        " The peers are called again on the smallest grid only.",
        compared(sizes, chosen.seed, irl_maxent, other),
    ]
    missing = [
        name for name, peer in (("irl-maxent", irl_maxent), ("imitation", other)) if peer is None
    ]
    if missing:
        parts.append(f"Not installed: {', '.join(missing)}.")
    if other is not None:
        parts += [
            "Soft values and policies of the true weights, beside `mce_partition_fh`. With a"
            " discount raters has no horizon, and the first step of imitation is compared; without"
            " one both have the steps stated, of which raters has states of their own, and all"
            " steps are compared.",
            planned([4] if chosen.quick else [4, 8, 16], chosen.seed, other),
            "Expected features, of which gradients are made: largest error relative to the largest"
            " slope of the first soft value, by differences of imitation's own.",
            slopes(chosen.seed, other),
            "Weights from the exact occupancy of the true ones, discounted by 0.9.",
            discounted(chosen.seed, other),
            "imitation counts the state after the last step too, whose reward is in no value; and"
            " `MCEIRL` does not pass its discount on to the policy of which it takes occupancies,"
            " only to the occupancies and to the policy that it returns. Passed on, it finds the"
            " true weights.",
        ]
    parts += [
        "A cliff: 8,000 answers of the demonstrator for both.",
        cliffs(horizons, 2 if chosen.quick else 8),
    ]
    report("imitation", "Imitation on tables", parts, chosen.quick)


if __name__ == "__main__":
    main()
