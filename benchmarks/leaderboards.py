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
from raters.auditing.intervals import joint_bounds

LEVEL, ITEMS, VOTERS, SIZES = 0.9, 10, 30, (300, 600, 1200)
TIMES = (1 / 3, 1.0, 3.0)
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


def coverage(number: int, seed: int) -> tuple[list[list[Any]], list[list[Any]], float]:
    """Tables of intervals of ranks, and of orders with and without style; and CPU seconds."""
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
    once = [
        t for (name, way), t in tallies.items() if name != "all" and way in ("joint", "evalica")
    ]
    return lines, orders, sum(row[-1] for tally in once for row in tally.rows)


# ---------------------------------------------------------------- further votes


Pairs = list[tuple[int, int]]
ROWS = ITEMS  # Rows of further votes, so that each fit has as many.


def with_votes(arena: Arena, pairs: Pairs, each: int, rng: np.random.Generator) -> rt.Comparisons:
    """The votes, and so many further ones on each pair."""
    votes, number = arena.votes, len(pairs)
    one, other = np.array(pairs + [(0, 1)] * (ROWS - number)).T
    count = np.where(np.arange(ROWS) < number, each, 0)
    won = rng.binomial(count, expit(arena.reward[one] - arena.reward[other]))
    columns = {
        "first": np.append(votes.first, one).astype(np.int32),
        "second": np.append(votes.second, other).astype(np.int32),
        "annotator": np.append(votes.annotator, np.zeros(ROWS)).astype(np.int32),
        "wins": np.append(votes.wins, won).astype(np.float32),
        "count": np.append(np.ones(votes.num_rows), count).astype(np.float32),
    }
    return rt.Comparisons(**columns, items=votes.items, annotators=votes.annotators)


def told(values: np.ndarray, pair: tuple[int, int] | None) -> bool:
    """True if draws tell a pair apart, or the first of all from the rest."""
    chance = (ranks_of(values) == 1).mean(0)
    if pair is not None:
        above = (values[:, pair[0]] > values[:, pair[1]]).mean()
        chance = np.array([above, 1 - above])
    return bool(chance.max() >= LEVEL)


def further(number: int, seed: int) -> list[list[Any]]:
    """Shares of cases that are told apart after as many votes as is said, and after others."""
    model, backend = rt.BTL(), rt.PGEM()
    cases: dict[str, list[tuple[float, list[bool]]]] = defaultdict(list)
    for replicate in range(number):
        rng = np.random.default_rng(seed + replicate)
        one = arena("plain", seed + 10_000 + replicate, 600)
        board = rt.leaderboard(fitted(model, one.votes, backend, seed), level=LEVEL)
        items, needed = board.table["item"].tolist(), board.table["votes_needed"].to_numpy()
        places = np.flatnonzero((needed > 0) & (needed < 1e5))
        asked: list[tuple[str, Pairs, float]] = [
            ("two neighbours", [(items[place], items[place + 1])], float(needed[place]))
            for place in rng.permutation(places)[:3]
        ]
        note = next(note for note in board.notes if note["code"] == "further")
        if note["pairs"] and note["votes_needed"] < 1e5:
            asked.append(("the first from the rest", list(note["pairs"]), note["votes_needed"]))
        for what, pairs, said in asked:
            found = []
            for times in TIMES:
                each = max(round(said * times / len(pairs)), 1)
                result = fitted(model, with_votes(one, pairs, each, rng), backend, seed)
                values = result["posterior"]["reward"].values.reshape(-1, ITEMS)
                found.append(told(values, pairs[0] if what == "two neighbours" else None))
            cases[what].append((said, found))
    lines = []
    for what, each in cases.items():
        shares = np.mean([found for _, found in each], axis=0)
        half = np.exp(np.interp(0.5, np.maximum.accumulate(shares), np.log(TIMES)))
        error = 0.5 / np.sqrt(len(each))
        median = float(np.median([said for said, _ in each]))
        lines.append([what, len(each), median, *shares, f"± {error:.2f}", float(half)])
    return lines


def main() -> None:
    given = options(
        __doc__.partition("\n")[0],
        measure=("ranks", "what is measured", "ranks", "votes"),
        replicates=(400, "simulated arenas"),
    )
    number = 12 if given.quick else given.replicates
    if given.measure == "ranks":
        parts = ranks_measured(number, given.seed)
    else:
        parts = votes_measured(number // 4, given.seed)
    name = "leaderboards" if given.measure == "ranks" else "leaderboards_votes"
    title = "Leaderboards of simulated arenas"
    report(name, title, parts, given.quick)


def ranks_measured(number: int, seed: int) -> list[str]:
    """Coverage of intervals of ranks, and orders."""
    lines, orders, seconds = coverage(number, seed)
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
        f"Fits and bootstraps took {seconds:,.0f} CPU seconds.",
    ]


def votes_measured(number: int, seed: int) -> list[str]:
    """Further votes as they are said to be needed, and as they are."""
    shares = [f"told after {times:.2g} × said" for times in TIMES]
    heading = ["to tell", "cases", "said (median)", *shares, "error", "half told at × said"]
    return [
        f"{number} arenas of {ITEMS} entries and 600 votes. Half of the cases should be told apart"
        " after as many votes as are said to be needed; the last column is the multiple of them at"
        " which half are, between those that were tried.",
        table(heading, further(number, seed)),
    ]


if __name__ == "__main__":
    main()
