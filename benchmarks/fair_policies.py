"""From votes to one fair policy (Figure 1 of Chidambaram et al. 2024), with the posterior's
uncertainty; and how fast the saddle point is reached.

Reads sushi10 and german_parties2009 from the folder named by --data. People are halved at random.
Types and their rewards are learned from one half (`MixturePlackettLuce` and `MixtureBTL` by PGEM),
policies are made from them, and the worst regret of each is computed under draws of that posterior,
and under draws of the posterior of the other half, whom no policy has seen. Responses are the ten
sushi, and the six parties; a regret of 1 is one logit of reward. Of sushi prompts are also menus of
four: a policy of a class, with a number for each sushi, is learned on half of the menus.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _common import options, report, table
from scipy.special import softmax

import raters as rt
from raters import alignment

NOTE = """\
*Fitted*: mean worst regret under draws of the half that the policies were made from, with the
central 90 % of the draws. *Others*: the same under draws of the other half's posterior. *Pooled*:
the policy of one type for all, at β = 1; *greedy*: its most probable response. *Ensemble*: the
min-max mixture of the types' own policies (MinMax-DPO). *At a point*: `minmax_policy` of the mean
rewards. *Bayes*: of the draws, the least expected worst regret."""


def parties(folder: Path) -> rt.Comparisons:
    """The comparisons, as they were shown."""
    votes = pd.read_csv(folder / "german_parties2009" / "comparisons.csv")
    return rt.Comparisons.from_frame(
        votes, first="item_a", second="item_b", outcome="outcome", annotator="annotator"
    )


def sushi(folder: Path, people: int, seed: int) -> rt.Rankings:
    """Full rankings of ten sushi, of some of the people."""
    rankings = pd.read_csv(folder / "sushi10" / "rankings.csv").sample(people, random_state=seed)
    columns = [f"pos{place}" for place in range(1, 11)]
    return rt.Rankings.from_wide(rankings, places=columns, annotator="annotator")


def halves(data: Any, seed: int) -> list[Any]:
    """The judgements of two halves of the people."""
    code = np.asarray(data.annotator)
    chosen = np.random.default_rng(seed).permutation(len(data.annotators)) % 2
    return [data.rows(np.flatnonzero(chosen[code] == half)) for half in (0, 1)]


def rewards(model: Any, data: Any, seed: int) -> np.ndarray:
    """Draws of the rewards of types, (draw, type, item), and the shares of the types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backend = rt.PGEM(draws=1000, starts=5)
        result = rt.fit(model, data, backend, seed=seed, progress=False, log_likelihood=False)
    shares = result["posterior"]["type_weight"].mean(("chain", "draw")).values
    print(f"{model!r}: shares {np.round(shares, 2)}", flush=True)
    return alignment.type_rewards(result).values


def compared(draws: np.ndarray, elsewhere: np.ndarray, together: np.ndarray) -> list[list[Any]]:
    """Worst regrets of policies under draws of the half that they are made from, and of the other;
    `together` is the policy of one type."""
    each = alignment.policy(draws.mean(0))
    mixed = alignment.linear_programme(alignment.regret_matrix(each))
    policies = {
        "uniform": np.full(draws.shape[-1], 1 / draws.shape[-1]),
        "pooled": together,
        "pooled, greedy": np.eye(len(together))[together.argmax()],
        "ensemble": np.tensordot(mixed.weights, each, 1),
        "at a point": alignment.minmax_policy(draws.mean(0)).policy,
        "Bayes": alignment.minmax_policy(draws[:, :, None]).policy[0],
    }
    rows = []
    for name, probs in policies.items():
        cells = []
        for where in (draws, elsewhere):
            worst = alignment.regrets(probs, where).max(1)
            low, high = np.quantile(worst, [0.05, 0.95])
            cells.append(f"{worst.mean():.2f} [{low:.2f}, {high:.2f}]")
        rows.append([name, *cells, ", ".join(f"{part:.2f}" for part in probs)])
    return rows


def of_halves(types: Any, pooled: Any, data: Any, seed: int) -> tuple[np.ndarray, ...]:
    """Draws of the rewards of types from either half of the people, and the policy of one type."""
    own, other = halves(data, seed)
    together = alignment.policy(rewards(pooled, own, seed).mean(0))[0]
    return rewards(types, own, seed), rewards(types, other, seed), together


def of_menus(draws: np.ndarray, seed: int, steps: int) -> list[list[Any]]:
    """A policy with a number for each sushi, on menus of four that it has and has not seen."""
    rng = np.random.default_rng(seed)
    menus = np.array([rng.choice(10, 4, replace=False) for _ in range(200)])
    reward, features = draws.mean(0)[:, menus], np.eye(10)[menus]
    seen, new = slice(0, 100), slice(100, 200)
    fair = alignment.policy_gradient(reward[:, seen], features=features[seen], steps=steps)
    rows = []
    for name, part in (("seen", seen), ("new", new)):
        served = alignment.policy(features[part] @ fair.parameters)
        free = alignment.minmax_policy(reward[:, part])
        even = np.full((100, 4), 1 / 4)
        worst = [alignment.regrets(one, reward[:, part]).max() for one in (even, served)]
        rows.append([name, *worst, free.value])
    return rows


# ---------------------------------------------------------------- the saddle point


def plain(reward: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """Worst regret of the paper's updates after each step, with the sign of a regret: the gradient
    itself, and the same optimistic step for both."""
    cost = reward.max(-1, keepdims=True) - reward
    cost /= cost.max()
    types, prompts, responses = cost.shape
    phi, log_p = np.zeros((prompts, responses)), np.zeros(types)
    last, last_regret = np.zeros_like(phi), np.zeros(types)
    worst = np.empty(steps)
    for step in range(steps):
        probs, p = softmax(phi, -1), softmax(log_p)
        loss = np.einsum("kxy,k->xy", cost, p) / prompts
        regret = np.einsum("kxy,xy->k", cost, probs) / prompts
        gradient = probs * (loss - (probs * loss).sum(-1, keepdims=True))
        phi, last = phi - rate * (2 * gradient - last), gradient
        log_p, last_regret = log_p + rate * (2 * regret - last_regret), regret
        worst[step] = regret.max()
    return worst


def rates(seed: int, problems: int, steps: int) -> list[list[Any]]:
    """Distance from the least worst regret, in units of the largest, over random problems."""
    at = [n for n in (10, 100, 1000, 10_000) if n <= steps]
    distances: dict[str, list[list[float]]] = {}
    for trial in range(problems):
        rng = np.random.default_rng([seed, trial])
        reward = rng.normal(size=(3, 5, 4))
        scale = np.ptp(reward, -1).max()
        least = alignment.minmax_policy(reward).value / scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = np.eye(20).reshape(5, 4, 20)
            of_class = alignment.policy_gradient(reward, features=cells, steps=steps)
        best = np.minimum.accumulate(of_class.history[:, 0])
        paths = {
            "natural gradient, best step (features of cells)": best / scale,
            "plain gradient, best step": np.minimum.accumulate(plain(reward, steps, 0.5)),
        }
        for name, path in paths.items():
            distances.setdefault(name, []).append([max(path[n - 1] - least, 0.0) for n in at])
    rows = []
    for name, found in distances.items():
        middle = np.median(found, 0)
        slope = np.log(middle[-1] / middle[-2]) / np.log(at[-1] / at[-2])
        rows.append([name, *(f"{one:.1e}" for one in middle), f"{slope:.2f}"])
    return [["", *(f"T = {n:,}" for n in at), "slope"], *rows]


def main() -> None:
    given = options(__doc__ or "", data=("../shared/data", "folder of the data sets"))
    folder, begin = Path(given.data), time.perf_counter()
    heading = ["policy", "worst regret, fitted", "others", "probabilities of the items"]
    people = 200 if given.quick else 1000
    speed = rates(given.seed, 3 if given.quick else 20, 1000 if given.quick else 10_000)
    parts = [
        "## Distance from the least worst regret after T steps (medians)",
        table(speed[0], speed[1:]),
    ]
    votes = parties(folder)
    parts += [
        "## German parties, three types: " + ", ".join(map(str, votes.items)),
        table(heading, compared(*of_halves(rt.MixtureBTL(3), rt.MixtureBTL(1), votes, given.seed))),
    ]
    ranked = sushi(folder, people, given.seed)
    models = rt.models.MixturePlackettLuce(num_types=3), rt.models.MixturePlackettLuce(num_types=1)
    fitted = of_halves(*models, ranked, given.seed)
    menus = of_menus(fitted[0], given.seed, 200 if given.quick else 2000)
    parts += [
        f"## Sushi, {people:,} people, three types",
        table(heading, compared(*fitted)),
        NOTE,
        "## Menus of four sushi, a policy with a number for each sushi",
        table(["100 menus", "uniform", "linear class", "least of all policies"], menus),
        f"{time.perf_counter() - begin:.0f} s.",
    ]
    report("fair_policies", "From votes to one fair policy", parts, given.quick)


if __name__ == "__main__":
    main()
