"""How much a choice of pairs can win with one annotator, and what asking in batches costs.

The protocol of `acquisition.py` for one annotator (20 items, rewards Normal(0, 1.5²), 950 answers),
written a second time in NumPy and without raters: the posterior is Laplace's approximation, of
which 300 independent draws are taken. That is fast enough for more crowds, which tell policies
apart, and for asking one question at a time, where no batch can lose anything.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from _common import options, report, table
from scipy.special import expit

ITEMS, ANSWERS, DRAWS, SCALE = 20, 950, 300, 1.5
FIRST, SECOND = np.triu_indices(ITEMS, 1)
SIDES = np.zeros((len(FIRST), ITEMS))
SIDES[np.arange(len(FIRST)), FIRST], SIDES[np.arange(len(FIRST)), SECOND] = 1, -1
PUBLISHED = {"order entropy of ten draws": 0.040, "entropy": 0.041, "BALD, trees": 0.037}
NOTE = """\
*Gain*: area under the curve of Kendall's τ (its mean over the batches) less that of random pairs on
the same crowds, with its standard error over crowds. *Published*: what was measured elsewhere for
batches of 19, on other crowds. *The default* is the score and the batch of `target="ranking"`."""


def mode(asked: np.ndarray, won: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Most probable rewards and the precision at them, by Newton's method."""
    for _ in range(100):
        chance = expit(SIDES @ reward)
        gradient = SIDES.T @ (won - asked * chance) - reward / SCALE**2
        precision = (SIDES.T * (asked * chance * (1 - chance))) @ SIDES + np.eye(ITEMS) / SCALE**2
        step = np.linalg.solve(precision, gradient)
        reward = reward + step
        if np.abs(step).max() < 1e-6:
            return reward, precision
    raise RuntimeError("Newton's method did not reach the mode")


def bits(chance: np.ndarray) -> np.ndarray:
    """Entropy of a yes or no."""
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    return -chance * np.log2(chance) - (1 - chance) * np.log2(1 - chance)


def at_random(draws: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Random pairs, each once in a batch."""
    return rng.choice(len(FIRST), size, replace=False)


def default(draws: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Largest expected fall of the variance of the pair's order, given the answers to those before
    it in the batch."""
    gap = draws @ SIDES.T
    chance, order = expit(gap), gap > 0
    mean = chance.mean(0)
    off, order = (
        (chance - mean) / np.sqrt(len(draws)),
        (order - order.mean(0)) / np.sqrt(len(draws)),
    )
    # Of each question: variance of its answer, and covariance with its own order; what is left of
    # both after each choice.
    variance, own = mean * (1 - mean), (off * order).sum(0)
    rows, orders, chosen = np.zeros((size, len(mean))), np.zeros((size, len(mean))), []
    for place in range(size):
        score = own**2 / np.maximum(variance, 1e-12)
        score[chosen] = -1
        best = int(score.argmax())
        chosen.append(best)
        # One column of a Cholesky factor: covariances of the chosen answer with all answers, and
        # with all orders.
        rows[place] = off[:, best] @ off - rows[:place, best] @ rows[:place]
        orders[place] = off[:, best] @ order - rows[:place, best] @ orders[:place]
        root = np.sqrt(variance[best])
        rows[place], orders[place] = rows[place] / root, orders[place] / root
        variance, own = variance - rows[place] ** 2, own - rows[place] * orders[place]
    return np.array(chosen)


def order_entropy(draws: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """The pairs about whose order ten draws differ most."""
    ten = draws[rng.choice(len(draws), 10, replace=False)] @ SIDES.T
    return np.argsort(-bits((ten > 0).mean(0)) - 1e-6 * rng.random(len(FIRST)))[:size]


def entropy(draws: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """The most uncertain answers."""
    return np.argsort(-bits(expit(draws @ SIDES.T).mean(0)))[:size]


def bald_trees(draws: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """The highest information that closes no circle."""
    chance = expit(draws @ SIDES.T)
    part, chosen = np.arange(ITEMS), []
    for pair in np.argsort(bits(chance).mean(0) - bits(chance.mean(0))):
        one, other = part[FIRST[pair]], part[SECOND[pair]]
        if one != other and len(chosen) < size:
            part[part == one] = other
            chosen.append(pair)
    return np.array(chosen)


POLICIES = {
    "random": at_random,
    "the default": default,
    "order entropy of ten draws": order_entropy,
    "entropy": entropy,
    "BALD, trees": bald_trees,
}


def area(name: str, size: int, seed: int) -> float:
    """Mean of τ over the batches of one crowd; the n-th answer about a pair is the same for every
    policy."""
    truth = np.random.default_rng([seed, 1]).normal(0, SCALE, ITEMS)
    answers = np.random.default_rng([seed, 2]).random((len(FIRST), ANSWERS))
    rng = np.random.default_rng([seed, 3])
    asked, won, tau = np.zeros(len(FIRST), int), np.zeros(len(FIRST)), []
    reward, precision = mode(asked, won, np.zeros(ITEMS))
    for _ in range(ANSWERS // size):
        noise = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(ITEMS, DRAWS)))
        for pair in POLICIES[name](reward + noise.T, size, rng):
            won[pair] += answers[pair, asked[pair]] < expit(
                truth[FIRST[pair]] - truth[SECOND[pair]]
            )
            asked[pair] += 1
        reward, precision = mode(asked, won, reward)
        tau.append((np.sign(SIDES @ reward) * np.sign(SIDES @ truth)).mean())
    return float(np.mean(tau))


def main() -> None:
    """Each policy on every crowd."""
    arguments = options(
        __doc__ or "", replicates=(200, "crowds"), processes=(2, "crowds at a time")
    )
    number = 8 if arguments.quick else arguments.replicates
    begin, rows = time.perf_counter(), []
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        seeds = range(arguments.seed, arguments.seed + number)
        base = {}
        for name in POLICIES:
            row = [name]
            for size in (19, 1):
                if size == 1 and name == "BALD, trees":  # one pair is always a tree
                    row.append("")
                    continue
                areas = np.array(list(pool.map(partial(area, name, size), seeds, chunksize=8)))
                base.setdefault(size, areas)
                gain = areas - base[size]
                row.append(f"{gain.mean():+.4f} ± {gain.std(ddof=1) / np.sqrt(number):.4f}")
            rows.append([*row, PUBLISHED.get(name, float("nan"))])
    summary = f"{number} crowds, {time.perf_counter() - begin:.0f} s"
    header = ["policy", "gain, 19 at a time", "gain, one at a time", "published, 19 at a time"]
    report(
        "acquisition_limit",
        "With one annotator, what is there to win?",
        [summary, table(header, rows), NOTE],
        arguments.quick,
    )


if __name__ == "__main__":
    main()
