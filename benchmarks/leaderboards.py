"""Leaderboards of simulated arenas: how often intervals of all ranks hold at once, how long they
are, and what they cost, beside those of pairwise comparisons and a bootstrap; and whether as many
further votes are needed as is said.

Rewards are normal with a standard deviation of .4 to 1.2 logits. Arenas have ties (Davidson), or
features that sway votes and differ between the entries (style), or voters who repeat their own
taste (standard deviation .6 logits): each third of them has one.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _common import options, report, table
from scipy.special import expit

import raters as rt
from raters.auditing.ranks import joint_bounds

LEVEL, ITEMS, VOTERS, SIZES = 0.9, 10, 30, (300, 600, 1200)
RESAMPLES = 100
Bounds = tuple[np.ndarray, np.ndarray]


class Arena(NamedTuple):
    """Votes, and the true rewards."""

    votes: rt.Comparisons
    reward: np.ndarray


def arena(design: str, seed: int, number: int) -> Arena:
    """Votes of a design on uniform pairs, with a third of the voters casting most."""
    rng = np.random.default_rng(seed)
    reward = rng.normal(0, rng.uniform(0.4, 1.2), ITEMS)
    first = rng.integers(ITEMS, size=number)
    second = (first + rng.integers(1, ITEMS, size=number)) % ITEMS
    share = rng.dirichlet(np.full(VOTERS, 1.0))
    who = rng.choice(VOTERS, number, p=share)
    gap, features = reward[first] - reward[second], None
    if design == "style":
        style = rng.normal(0, 0.7, ITEMS)
        sides = [style[side] + rng.normal(size=number) for side in (first, second)]
        features = (sides[0] - sides[1])[:, None].astype(np.float32)
        gap = gap + 0.6 * features[:, 0]
    if design == "clustered":
        taste = rng.normal(0, 0.6, (VOTERS, ITEMS))
        gap = gap + taste[who, first] - taste[who, second]
    wins = (rng.random(number) < expit(gap)).astype(np.float32)
    if design == "ties":
        weights = np.exp(np.stack([gap / 2, np.full(number, -0.3), -gap / 2]))
        place = (rng.random(number) > np.cumsum(weights / weights.sum(0), 0)).sum(0)
        wins = np.array([1.0, 0.5, 0.0], np.float32)[place]
    columns = (column.astype(np.int32) for column in (first, second, who))
    names = {"feature_names": ("length",)} if features is not None else {}
    votes = rt.Comparisons(
        *columns,
        wins,
        None,
        tuple(range(ITEMS)),
        tuple(range(VOTERS)),
        features=features,
        tied=design == "ties",
        **names,
    )
    return Arena(votes, reward)


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, 1 for the highest."""
    return np.argsort(np.argsort(-values, axis=-1), axis=-1) + 1


# ---------------------------------------------------------------- intervals of ranks


def pairwise(values: np.ndarray) -> Bounds:
    """Ranks that simultaneous intervals of all differences allow (Mogstad et al. 2024)."""
    one, other = np.triu_indices(values.shape[1], 1)
    gap = values[:, one] - values[:, other]
    mean, spread = gap.mean(0), gap.std(0)
    width = np.quantile(np.abs((gap - mean) / spread).max(1), LEVEL)
    above, below = mean > width * spread, mean < -width * spread
    low, high = np.ones(values.shape[1], int), np.full(values.shape[1], values.shape[1])
    np.add.at(low, other[above], 1)
    np.add.at(low, one[below], 1)
    np.subtract.at(high, one[above], 1)
    np.subtract.at(high, other[below], 1)
    return low, high


def alone(values: np.ndarray) -> Bounds:
    """Intervals of each rank alone."""
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    return tuple(np.quantile(ranks_of(values), tails, axis=0, method="nearest"))


def evalica_board(votes: rt.Comparisons) -> Bounds:
    """Ranks that do not overlap by evalica's bootstrapped intervals, ties as half votes."""
    import evalica

    names = {1.0: evalica.Winner.X, 0.5: evalica.Winner.Draw, 0.0: evalica.Winner.Y}
    sides = [np.asarray(side).tolist() for side in (votes.first, votes.second)]
    winners = [names[float(one)] for one in votes.wins]
    found = evalica.bootstrap(
        evalica.bradley_terry,
        *sides,
        winners,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        bootstrap_method="percentile",
        random_state=0,
    )
    low, high = found.low.sort_index().to_numpy(), found.high.sort_index().to_numpy()
    worse = (high[None, :] < low[:, None]).sum(1)
    return 1 + (low[None, :] > high[:, None]).sum(1), len(low) - worse


# ---------------------------------------------------------------- coverage

GIBBS = rt.PGGibbs(draws=500, warmup=150, chains=2)
TASTES = rt.HierarchicalBTL()
FITS: dict[str, list[tuple[str, Any, Any]]] = {
    "ties": [("", rt.BTL(ties="davidson"), rt.PGEM())],
    "style": [("", rt.BTL(covariates=True), rt.PGEM()), ("without style", rt.BTL(), rt.PGEM())],
    "clustered": [("", TASTES, GIBBS), ("without tastes", rt.BTL(), rt.PGEM())],
}


def fitted(model: Any, votes: rt.Comparisons, backend: Any, seed: int) -> Any:
    """A fit; what PGEM warns of is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rt.fit(model, votes, backend, seed=seed, progress=False, log_likelihood=False)


class Tally:
    """Coverage of all ranks and of single ones, lengths, and seconds."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = []

    def add(self, bounds: Bounds, truth: np.ndarray, seconds: float) -> None:
        low, high = bounds
        inside = (low <= truth) & (truth <= high)
        length = float(np.mean(high - low + 1))
        self.rows.append((float(inside.all()), float(inside.mean()), length, seconds))

    def line(self) -> list[Any]:
        mean = np.mean(self.rows, axis=0)
        error = np.sqrt(mean[0] * (1 - mean[0]) / len(self.rows))
        return [len(self.rows), f"{mean[0]:.3f} ± {error:.3f}", *mean[1:]]


def coverage(number: int, seed: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Tables of intervals of ranks, and of orders with and without style."""
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    taus: dict[str, list[float]] = defaultdict(list)
    for replicate in range(number):
        design = list(FITS)[replicate % 3]
        votes, reward = arena(design, seed + replicate, SIZES[replicate // 3 % 3])
        truth = ranks_of(reward)
        plain = votes
        for without, model, backend in FITS[design]:
            begin = time.process_time()
            result = fitted(model, plain, backend, seed)
            values = result["posterior"]["reward"].values.reshape(-1, ITEMS)
            seconds = time.process_time() - begin
            ways: dict[str, Callable[[], Bounds]] = {
                "joint": lambda values=values: joint_bounds(ranks_of(values), LEVEL),
                "pairwise": lambda values=values: pairwise(values),
                "alone": lambda values=values: alone(values),
            }
            for way, bounds in ways.items():
                name = f"{type(model).__name__} {without}".strip()
                tallies[design if not without else f"{design}, {name}", way].add(
                    bounds(), truth, seconds
                )
                if not without:
                    tallies["all", way].add(bounds(), truth, seconds)
            agree = np.sign(values.mean(0)[:, None] - values.mean(0)) == np.sign(
                reward[:, None] - reward
            )
            pairs = agree[np.triu_indices(ITEMS, 1)]
            taus[f"{design}, {type(model).__name__} {without}".strip()].append(2 * pairs.mean() - 1)
            plain = votes.without_features() if design == "style" else votes
        begin = time.process_time()
        bounds = evalica_board(votes)
        seconds = time.process_time() - begin
        for name in (design, "all"):
            tallies[name, "evalica"].add(bounds, truth, seconds)
        print(f"{replicate + 1} of {number}", file=sys.stderr) if replicate % 50 == 49 else None
    lines = [[design, way, *tally.line()] for (design, way), tally in sorted(tallies.items())]
    orders = [[name, len(each), float(np.mean(each))] for name, each in sorted(taus.items())]
    return lines, orders


# ---------------------------------------------------------------- further votes


def with_votes(votes: rt.Comparisons, pairs: np.ndarray, wins: Any, count: Any) -> rt.Comparisons:
    """The votes, and a row of further ones for each pair."""
    one, other = pairs.T
    old = np.ones(votes.num_rows, np.float32)
    columns = {
        "first": np.append(votes.first, one).astype(np.int32),
        "second": np.append(votes.second, other).astype(np.int32),
        "annotator": np.append(votes.annotator, np.zeros(len(one))).astype(np.int32),
        "wins": np.append(votes.wins, wins).astype(np.float32),
        "count": np.append(old, count).astype(np.float32),
    }
    return rt.Comparisons(**columns, items=votes.items, annotators=votes.annotators)


def told(values: np.ndarray, pair: np.ndarray | None) -> bool:
    """Whether draws tell a pair apart, or the first of all from the rest."""
    chance = (ranks_of(values) == 1).mean(0)
    if pair is not None:
        above = (values[:, pair[0]] > values[:, pair[1]]).mean()
        chance = np.array([above, 1 - above])
    return bool(chance.max() >= LEVEL)


def further(number: int, seed: int, first: bool) -> list[Any]:
    """Votes said to be needed, and found to be by adding votes and fitting again."""
    model, backend = rt.BTL(), rt.PGEM(draws=2000)
    said, took, inside, after = [], [], [], []
    replicate = 0
    while len(said) < number:
        replicate += 1
        votes, reward = arena("plain", seed + 10_000 + replicate, 600)
        result = fitted(model, votes, backend, seed)
        board = rt.leaderboard(result, level=LEVEL)
        items = board.table["item"].to_numpy()
        if first:
            note = next(one for one in board.notes if one["code"] == "further")
            pairs = np.array(note["pairs"])
            needed = [note.get(f"votes_needed{end}", 0.0) for end in ("", "_low", "_high")]
        else:
            rows = board.table.iloc[:-1]
            place = int(np.random.default_rng(replicate).integers(len(rows)))
            pairs = items[[[place, place + 1]]]
            needed = [rows.iloc[place][f"votes_needed{end}"] for end in ("", "_low", "_high")]
        if not 0 < needed[0] < 20_000:
            continue
        rng = np.random.default_rng(seed + replicate)
        stream = rng.random((100_000 // len(pairs), len(pairs)))
        won = np.cumsum(stream < expit(reward[pairs[:, 0]] - reward[pairs[:, 1]]), 0)

        def enough(count: int, votes=votes, pairs=pairs, won=won) -> bool:
            each = max(count // len(pairs), 1)
            more = with_votes(votes, pairs, won[each - 1], np.full(len(pairs), each))
            draws = fitted(model, more, backend, seed)["posterior"]["reward"].values
            return told(draws.reshape(-1, ITEMS), None if first else pairs[0])

        grid = np.unique(np.geomspace(len(pairs), 90_000, 40).astype(int))
        low, high = 0, len(grid)  # The least number from which on it is enough.
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(int(grid[middle])) else (middle + 1, high)
        found = float(grid[low]) if low < len(grid) else np.inf
        said.append(needed[0])
        took.append(found)
        inside.append(needed[1] <= found <= needed[2])
        after.append(enough(int(needed[0])))
    ratio = float(np.median(np.array(said) / np.array(took)))
    what = "the first from the rest" if first else "two neighbours"
    medians = [float(np.median(said)), float(np.median(took))]
    return [what, number, *medians, ratio, float(np.mean(after)), float(np.mean(inside))]


def main() -> None:
    given = options(
        __doc__.partition("\n")[0],
        measure=("ranks", "what is measured", "ranks", "votes"),
        replicates=(400, "simulated arenas"),
    )
    number, begin = 12 if given.quick else given.replicates, time.process_time()
    if given.measure == "ranks":
        parts = ranks_measured(number, given.seed)
    else:
        parts = votes_measured(max(number // 6, 4), given.seed)
    took = f"The whole took {time.process_time() - begin:,.0f} CPU seconds."
    name = "leaderboards" if given.measure == "ranks" else "leaderboards_votes"
    title = "Leaderboards of simulated arenas"
    report(name, title, [*parts, took], given.quick)


def ranks_measured(number: int, seed: int) -> list[str]:
    """Coverage of intervals of ranks, and orders."""
    lines, orders = coverage(number, seed)
    heading = ["arenas", "intervals", "number", "all ranks at once", "each rank", "length", "CPU s"]
    return [
        f"Of each design {number // 3} arenas of {ITEMS} entries, {VOTERS} voters and"
        f" {', '.join(map(str, SIZES))} votes; intervals of {LEVEL:.0%}.",
        table(heading, lines),
        "`joint`: what `rt.leaderboard` says; `pairwise`: ranks by simultaneous intervals of all"
        " differences; `alone`: of one rank at a time; `evalica`: entries whose bootstrapped"
        f" intervals ({RESAMPLES} resamples) do not overlap, ties as half votes, neither style nor"
        " tastes. Seconds are those of the fit, or of the bootstrap.",
        table(["order", "arenas", "Kendall's τ with the truth"], orders),
    ]


def votes_measured(number: int, seed: int) -> list[str]:
    """Further votes as they are said to be needed, and as they are."""
    needed = [further(number, seed, first) for first in (False, True)]
    asked = ["to tell", "arenas", "said (median)", "found (median)", "said / found (median)"]
    return [
        f"Arenas of {ITEMS} entries and 600 votes. Votes that are said to be needed, and the least"
        " number from which on a fit to as many more tells the entries apart.",
        table([*asked, "told apart after as many", "inside the interval"], needed),
    ]


if __name__ == "__main__":
    main()
