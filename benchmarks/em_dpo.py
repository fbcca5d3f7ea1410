"""EM-DPO and MinMax-DPO on the bandit of their paper, §6 (Chidambaram et al. 2024): 20 replicates,
and its figures redrawn.

200 annotators of three groups (60, 30, 10 %), each group in love with an arm of its own. In the
tabular parameterisation EM-DPO is `MixtureBTL(num_types=3)` with a fixed scale of rewards, at its
mode; with linear rewards `ContextualBTL(num_types=3)`. Types are matched to groups by the
annotators they share. η at the mode, the mean responsibility as in the paper's M-step, is compared
with the shares that were drawn. The oracle knows the rewards and learns η alone: a third of the
pairs that the paper draws are of equal arms, and who never compared the loved arm with one of the
others may look like another group. "Starts at best" is the share of PGEM's 10 starts that end at
the best optimum.

Regrets are of the groups, in units of reward, against the arm they love (mean reward 15). Pooled
DPO is the same model with one type. Min-max weights come from the estimated regret matrix, as it is
or with the rows of the types divided by their largest entry. "Limit" is an endless population of
the named shares.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from _common import RESULTS, options, report, table
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import expit, softmax

import raters as rt
from raters import alignment

GROUPS = ("group 1", "group 2", "group 3")


MODELS: dict[str, Any] = {
    "tabular, N(0, 3²)": rt.MixtureBTL(num_types=3, reward_scale=3.0),
    "tabular, N(0, 10²)": rt.MixtureBTL(num_types=3, reward_scale=10.0),
    "linear, learned scale": rt.models.ContextualBTL(num_types=3),
}
CONTEXTS = np.random.default_rng(0).uniform(size=(1000, 3))


class Replicate(NamedTuple):
    """One data set under one model: errors, shares, and regrets by policy."""

    error: float
    wrong: float
    wrong_met: float
    at_best: float
    found: np.ndarray
    drawn: np.ndarray
    regret: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    hedge: tuple[float, float]
    matrix: np.ndarray


def fit(model: Any, votes: rt.Comparisons, seed: int) -> xr.DataTree:
    """The mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rt.fit(
            model, votes, rt.PGEM(draws=0), seed=seed, progress=False, log_likelihood=False
        )


def matched(result: xr.DataTree, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The type that stands for each group, and each annotator's likeliest group."""
    likeliest = result["types"]["responsibility"].values.argmax(1)
    shared = np.zeros((3, 3))
    np.add.at(shared, (group, likeliest), 1)
    type_of = linear_sum_assignment(-shared)[1]
    return type_of, np.argsort(type_of)[likeliest]


def policies(result: xr.DataTree, order: np.ndarray) -> np.ndarray:
    """Each type's own policy, (type, context, arm) or (type, arm)."""
    if "coefficient" in result["mode"]:
        by_arm = result["mode"]["coefficient"].values.reshape(3, 3, -1)  # arm, feature, type
        return alignment.policy(np.einsum("xf,aft->txa", CONTEXTS, by_arm)[order])
    return alignment.policy(result["mode"]["reward"].values.T[order])


def reward_of(linear: bool) -> np.ndarray:
    """The expected rewards of the groups, (group, arm) or (group, context, arm)."""
    if not linear:
        return 15 * np.eye(3)
    return 10 * CONTEXTS.sum(1)[None, :, None] * np.eye(3)[:, None]


def scaled_rows(matrix: np.ndarray) -> np.ndarray:
    """Types counted alike, whatever the size of their rewards."""
    largest = matrix.max(1, keepdims=True)
    return matrix / np.where(largest > 0, largest, 1)


def greedy(policy: np.ndarray) -> np.ndarray:
    """The policy that gives each prompt its most probable response."""
    return np.eye(policy.shape[-1])[policy.argmax(-1)]


def served(
    result: xr.DataTree, order: np.ndarray, pooled: xr.DataTree
) -> tuple[dict, dict, tuple[float, float], np.ndarray]:
    """Regrets by policy, min-max weights, and how far Hedge ends from them: in weights, and in the
    worst regret."""
    own, one = policies(result, order), policies(pooled, np.array([0]))[0]
    reward = reward_of(own.ndim == 3)
    matrix = alignment.regret_matrix(own)
    raw, alike = alignment.linear_programme(matrix), alignment.linear_programme(scaled_rows(matrix))
    regret = {
        "pooled DPO, sampled": alignment.regrets(one, reward),
        "pooled DPO, greedy": alignment.regrets(greedy(one), reward),
        "min-max": alignment.regrets(np.tensordot(raw.weights, own, 1), reward),
        "min-max, rows scaled": alignment.regrets(np.tensordot(alike.weights, own, 1), reward),
    }
    nearly, scale = alignment.hedge(matrix), np.abs(matrix).max()
    distance = (
        float(np.abs(nearly.weights - raw.weights).max()),
        float((nearly.value - raw.value) / scale),
    )
    return regret, {"min-max": raw.weights, "min-max, rows scaled": alike.weights}, distance, matrix


def replicate(name: str, seed: int) -> Replicate:
    """Draw the data, fit the types and the pooled policy, and compare with the truth."""
    votes, truth = rt.datasets.preference_bandit(seed=seed)
    model, group, drawn = MODELS[name], truth["type"], truth["type_weight"]
    used = votes if isinstance(model, rt.models.ContextualBTL) else tabular(votes)
    result, pooled = (
        fit(model, used, seed),
        fit(dataclasses.replace(model, num_types=1), used, seed),
    )
    order, likeliest = matched(result, group)
    found = result["mode"]["type_weight"].values[order]
    met, wrong = met_both(votes, group), likeliest != group
    return Replicate(
        float(np.abs(found - drawn).max()),
        float(wrong.mean()),
        float(wrong[met].mean()),
        result.attrs["starts_at_best"] / result.attrs["starts"],
        found,
        drawn,
        *served(result, order, pooled),
    )


def tabular(votes: rt.Comparisons) -> rt.Comparisons:
    """Without the contexts, equal rows put together."""
    return dataclasses.replace(votes, features=None, feature_names=()).aggregate()


def met_both(votes: rt.Comparisons, group: np.ndarray) -> np.ndarray:
    """The annotators who compared the arm of their group with each of the others."""
    own = group[votes.annotator]
    met = np.zeros((len(group), 3), bool)
    for side, other in ((votes.first, votes.second), (votes.second, votes.first)):
        met[votes.annotator[side == own], other[side == own]] = True
    return met.sum(1) == 2


def oracle(seed: int) -> tuple[float, float, float]:
    """With the rewards known: the error of the likeliest η, and the share assigned wrongly, of all
    and of who met both."""
    votes, truth = rt.datasets.preference_bandit(seed=seed)
    sign = 2 * np.asarray(votes.wins, float) - 1
    log_odds = sign[:, None] * (np.asarray(votes.features, float) @ truth["coefficient"])
    given = np.zeros((votes.num_annotators, 3))
    np.add.at(given, votes.annotator, -np.logaddexp(0, -log_odds))
    weight = np.full(3, 1 / 3)
    for _ in range(500):
        responsibility = softmax(given + np.log(weight), axis=1)
        weight = responsibility.mean(0)
    wrong, met = responsibility.argmax(1) != truth["type"], met_both(votes, truth["type"])
    return (
        float(np.abs(weight - truth["type_weight"]).max()),
        float(wrong.mean()),
        float(wrong[met].mean()),
    )


def limit_policy(shares: np.ndarray) -> np.ndarray:
    """The limit of pooled DPO for a population without end."""
    loves = float(expit(10 * CONTEXTS.sum(1)).mean())
    pairs = [(0, 1), (0, 2), (1, 2)]
    wins = np.array(
        [
            shares[i] * loves + shares[j] * (1 - loves) + (1 - shares[i] - shares[j]) / 2
            for i, j in pairs
        ]
    )

    def loss(reward: np.ndarray) -> float:
        margin = np.array([reward[i] - reward[j] for i, j in pairs])
        return (
            float(np.sum(wins * np.logaddexp(0, -margin) + (1 - wins) * np.logaddexp(0, margin)))
            + 1e-9 * reward @ reward
        )

    return softmax(minimize(loss, np.zeros(3), tol=1e-12).x)


def shares_by_sweep(sweeps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """η after each sweep of plain EM, from the clusters that PGEM starts with; and η as drawn."""
    votes, truth = rt.datasets.preference_bandit(seed=seed)
    model, used = MODELS["tabular, N(0, 3²)"], tabular(votes)
    found = []
    for sweep in range(sweeps + 1):
        backend = rt.PGEM(draws=0, starts=1, accelerate=False, max_sweeps=sweep + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mode = backend.run(rt.program.Program(model, used), jax.random.key(seed)).mode
        type_of = linear_sum_assignment(-mode["reward"])[1]
        found.append(mode["type_weight"][type_of])
    return np.array(found), truth["type_weight"]


def draw(rows: list[Replicate], by_sweep: tuple[np.ndarray, np.ndarray]) -> None:
    """Figures 2 to 4 of the paper."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    place = np.arange(3)
    for number, name in enumerate(rows[0].regret):
        values = np.array([row.regret[name] for row in rows])
        shift = 0.2 * (number - 1.5)
        left.bar(place + shift, values.mean(0), 0.18, label=name, alpha=0.7)
        left.plot(np.tile(place + shift, (len(rows), 1)), values, ".", color="black", markersize=2)
    left.axhline(10, color="grey", linewidth=0.8, linestyle=":")
    left.set(
        xticks=place,
        xticklabels=GROUPS,
        ylabel="regret",
        title=f"regret by group, {len(rows)} replicates",
    )
    left.legend(fontsize=7)
    found, drawn = by_sweep
    history, exact = alignment.hedge(rows[0].matrix).history, rows[0].weights["min-max"]
    for number, group in enumerate(GROUPS):
        line = middle.plot(found[:, number], label=group)[0]
        middle.axhline(drawn[number], color=line.get_color(), linewidth=0.8, linestyle=":")
        right.plot(
            np.arange(1, len(history) + 1), history[:, number], label=group, color=line.get_color()
        )
        right.axhline(exact[number], color=line.get_color(), linewidth=0.8, linestyle=":")
    middle.set(xlabel="sweep of plain EM", ylabel="η", title="shares of the types (dotted: drawn)")
    middle.legend(fontsize=7)
    right.set(
        xscale="log",
        xlabel="step of Hedge",
        ylabel="averaged weight",
        title="min-max weights (dotted: linear programme)",
    )
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "em_dpo.png", dpi=120)
    plt.close(figure)


def error_rows(found: dict[str, list[Replicate]], known: np.ndarray) -> list[list[Any]]:
    """A row for each model, and one for the oracle."""
    rows = []
    for name, runs in found.items():
        error, wrong, met, best = (np.array([run[column] for run in runs]) for column in range(4))
        rows.append(
            [name, error.mean(), error.max(), 100 * wrong.mean(), 100 * met.mean(), best.mean()]
        )
        rows[-1].append(f"{int(np.sum(best > 0.1))} of {len(best)}")
    error, wrong, met = known.T
    rows.append(
        ["oracle", error.mean(), error.max(), 100 * wrong.mean(), 100 * met.mean(), np.nan, "–"]
    )
    return rows


def regret_rows(found: dict[str, list[Replicate]]) -> list[list[Any]]:
    """Mean regrets and weights for each model and policy, and what is known exactly."""
    rows = []
    for name, runs in found.items():
        for policy in runs[0].regret:
            regret = np.mean([run.regret[policy] for run in runs], 0)
            weights = (
                np.mean([run.weights[policy] for run in runs], 0)
                if policy in runs[0].weights
                else np.full(3, np.nan)
            )
            rows.append([name, policy, *regret, *weights])
    limit = limit_policy(np.array([0.6, 0.3, 0.1]))
    reward = reward_of(False)
    rows.append(["limit", "pooled DPO, sampled", *alignment.regrets(limit, reward), *limit])
    rows.append(
        ["limit", "pooled DPO, greedy", *alignment.regrets(greedy(limit), reward), 1.0, 0.0, 0.0]
    )
    uniform = np.full(3, 1 / 3)
    rows.append(["limit", "uniform mixture", *alignment.regrets(uniform, reward), *uniform])
    return rows


def hedge_rows(found: dict[str, list[Replicate]]) -> list[list[Any]]:
    """How far Hedge is from the linear programme."""
    distance = {name: np.array([run.hedge for run in runs]) for name, runs in found.items()}
    return [[name, *values.mean(0), *values.max(0)] for name, values in distance.items()]


def main() -> None:
    """Run the replicates and report."""
    settings = options(__doc__ or "")
    seeds = range(settings.seed, settings.seed + (2 if settings.quick else 20))
    found: dict[str, list[Replicate]] = {name: [] for name in MODELS}
    for seed in seeds:
        for name in MODELS:
            found[name].append(replicate(name, seed))
            print(seed, name, found[name][-1][:4], flush=True)
    known = np.array([oracle(seed) for seed in seeds])
    if not settings.quick:
        draw(found["tabular, N(0, 3²)"], shares_by_sweep(15, settings.seed))
    errors = ["model", "η error, mean", "max", "% wrong", "of who met both", "starts at best"]
    errors.append("found twice or more")
    regrets = [
        "model",
        "policy",
        *(f"regret {group}" for group in GROUPS),
        *(f"weight {number}" for number in (1, 2, 3)),
    ]
    distances = [
        "model",
        "Hedge: weights, mean",
        "worst regret, mean",
        "weights, max",
        "worst regret, max",
    ]
    parts = [
        *(__doc__ or "").strip().split("\n\n")[1:],
        table(errors, error_rows(found, known)),
        "![figures](em_dpo.png)",
        table(regrets, regret_rows(found)),
        (
            "Hedge after 2,000 steps against the linear programme, the regret in units of the"
            " largest entry:"
        ),
        table(distances, hedge_rows(found)),
    ]
    report("em_dpo", "EM-DPO and MinMax-DPO on the paper's bandit", parts, settings.quick)


if __name__ == "__main__":
    main()
