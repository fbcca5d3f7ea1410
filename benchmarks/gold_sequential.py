"""Wrong stops of campaigns that look after each new known truth and stop at what is hoped for.

Simulated campaigns of up to 200 known truths, each drawn at random; after each one the interval of
`raters.auditing.truth.anchor_check.anytime`, and that of Jeffreys, at level .9. One stops, and is
wrong:

- share wrong: as soon as the interval of the share of wrong labels lies below the target .1, and
  the share is not below it;
- judges: as soon as the interval of the first one's share of the discordant truths lies above ½,
  and the first one is not better.

Anytime intervals promise at most .1 for both ends and all looks together; Jeffreys' interval has
.05 for each end at one look. A posterior promises less: that of the campaigns that stop .05 are
wrong, where shares are drawn from its own prior; so shares are also drawn from Beta(½, ½), the
prior of Jeffreys' interval. The posterior of `rt.calibrate` is not simulated, as each of 400,000
looks takes one to two CPU-seconds; it promises as much for crowds that are as the public ones that
its prior is from.

Rankings: a judge ranks 100 items of which more and more are in a known order, all pairs of n as
9 / (2n + 5) of independent ones each; items are normal, and the judge sees each with a normal
error. Wrong is an interval without the true share of pairs that such a judge puts in order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _common import options, report, table

from raters.auditing.truth.anchor_check import anytime, jeffreys

CAMPAIGNS, LOOKS, RANKED = 2000, 200, 100
LEVEL, TARGET = 0.9, 0.1
# Counts after each look of each campaign.
Counts = np.ndarray
Ends = tuple[np.ndarray, np.ndarray]


def both_intervals(successes: Counts, number: Counts) -> dict[str, Ends]:
    """Ends of both intervals of counts of any shape."""
    cells, place = np.unique(successes + 1j * number, return_inverse=True)
    found = {
        "anytime": anytime(cells.real, cells.imag, LEVEL),
        "Jeffreys": jeffreys(cells.real, cells.imag, LEVEL)[:, 1:],
    }
    return {
        name: tuple(end[place].reshape(successes.shape) for end in ends.T)
        for name, ends in found.items()
    }


def first_look(stops: np.ndarray) -> np.ndarray:
    """Number of the first look at which each campaign stops; infinite where none."""
    return np.where(stops.any(1), stops.argmax(1) + 1.0, np.inf)


def with_error(share: float, number: int) -> str:
    """A share and its Monte-Carlo error."""
    return f"{share:.3f} ± {np.sqrt(share * (1 - share) / max(number, 1)):.3f}"


def known_wrong(share: np.ndarray, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Numbers of wrong labels, and of known truths, after each look."""
    wrong = rng.random((len(share), LOOKS)) < share[:, None]
    return wrong.cumsum(1), np.broadcast_to(np.arange(1, LOOKS + 1), wrong.shape)


def known_wrong_of_few(campaigns: int, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """The same of 400 items, of which the share `TARGET` is wrong, drawn without replacement."""
    items = np.arange(2 * LOOKS) < TARGET * 2 * LOOKS
    wrong = rng.permuted(np.tile(items, (campaigns, 1)), axis=1)[:, :LOOKS]
    return wrong.cumsum(1), np.broadcast_to(np.arange(1, LOOKS + 1), wrong.shape)


def discordant(
    one: np.ndarray, other: np.ndarray, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Numbers of truths that the first of two judges has right and the other one wrong, and that
    just one of them has right, after each look."""
    right = [rng.random((len(own), LOOKS)) < own[:, None] for own in (one, other)]
    return (right[0] & ~right[1]).cumsum(1), (right[0] != right[1]).cumsum(1)


def discordant_of_share(share: np.ndarray, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """The same, where three of ten truths are discordant and the first has some share of those."""
    is_one, is_first = (rng.random((len(share), LOOKS)) for _ in range(2))
    apart, ahead = is_one < 0.3, is_first < share[:, None]
    return (apart & ahead).cumsum(1), apart.cumsum(1)


def wrong_stops(
    counts: tuple[Counts, Counts], stops: Callable[[Ends], np.ndarray], is_wrong: np.ndarray
) -> list[list[str]]:
    """For each interval: its name, campaigns that stop, those that are wrong, and their share."""
    rows = []
    for name, ends in both_intervals(*counts).items():
        stopped = stops(ends).any(1)
        wrong, number = (stopped & is_wrong).sum(), stopped.sum()
        of_stopped = with_error(wrong / max(number, 1), int(number))
        rows.append([name, f"{stopped.mean():.3f}", with_error(wrong / len(stopped), len(stopped))])
        rows[-1].append(of_stopped)
    return rows


def right_stops(
    counts: tuple[Counts, Counts], stops: Callable[[Ends], np.ndarray]
) -> list[list[str]]:
    """For each interval: its name, campaigns that stop, and quantiles of when."""
    rows = []
    for name, ends in both_intervals(*counts).items():
        found = stops(ends)
        looks = first_look(found)
        when = [
            f"{value:.0f}" if np.isfinite(value) else f"> {LOOKS}"
            for value in np.quantile(looks, [0.1, 0.5, 0.9], method="inverted_cdf")
        ]
        rows.append([name, with_error(np.isfinite(looks).mean(), len(looks)), *when])
        rows[-1].append(f"{found[:, -1].mean():.3f}")
    return rows


def concordant(campaigns: int, noise: float, judges: int, rng: np.random.Generator) -> np.ndarray:
    """True where judges put pairs of items in the true order, shape (judge, campaign, later,
    earlier)."""
    truth = rng.normal(size=(campaigns, RANKED))
    if np.isinf(noise):
        seen = rng.normal(size=(judges, campaigns, RANKED))
    else:
        seen = truth + noise * rng.normal(size=(judges, campaigns, RANKED))
    sides = (values[..., :, None] > values[..., None, :] for values in (seen, truth))
    return np.equal(*sides)


def by_items(pairs: np.ndarray) -> np.ndarray:
    """Number of pairs among the first two, three, … items, as so many independent ones."""
    each = np.tril(pairs, -1).sum(-1)[..., 1:].cumsum(-1)
    return each * 9 / (2 * np.arange(2, RANKED + 1) + 5)


def rankings(campaigns: int, noise: float, rng: np.random.Generator) -> list[list[str]]:
    """Campaigns with an interval that misses, of one judge and of two that are equally good."""
    one, two = concordant(campaigns, noise, 2, rng)
    share = 0.5 if np.isinf(noise) else 0.5 + np.arcsin(1 / np.hypot(1, noise)) / np.pi
    every = np.broadcast_to(by_items(np.ones((RANKED, RANKED), bool)), (campaigns, RANKED - 1))
    cases = {
        "one judge": (by_items(one), every, share),
        "two judges": (by_items(one & ~two), by_items(one != two), 0.5),
    }
    rows = []
    for case, (ahead, number, middle) in cases.items():
        for name, (low, high) in both_intervals(ahead, number).items():
            misses = ((low > middle) | (high < middle)).any(1)
            rows.append([f"{case}, {share:.2f} right", name, with_error(misses.mean(), campaigns)])
    return rows


def main() -> None:
    """Simulate the campaigns and report."""
    given = options(__doc__)
    rng, campaigns = np.random.default_rng(given.seed), 200 if given.quick else CAMPAIGNS

    def below(ends: Ends) -> np.ndarray:
        return ends[1] < TARGET

    def above(ends: Ends) -> np.ndarray:
        return ends[0] > 0.5

    def equal(value: float) -> np.ndarray:
        return np.full(campaigns, value)

    always, drawn = np.ones(campaigns, bool), rng.beta(0.5, 0.5, (2, campaigns))
    few = f"share wrong {TARGET:g} of {2 * LOOKS} items, without replacement"
    errors = {
        f"share wrong {TARGET:g}": (known_wrong(equal(TARGET), rng), below, always),
        few: (known_wrong_of_few(campaigns, rng), below, always),
        "share wrong 0.15": (known_wrong(equal(0.15), rng), below, always),
        "share wrong from Beta(½, ½)": (known_wrong(drawn[0], rng), below, drawn[0] >= TARGET),
        "judges right .8 and .8": (discordant(equal(0.8), equal(0.8), rng), above, always),
        "judges right .6 and .6": (discordant(equal(0.6), equal(0.6), rng), above, always),
        "share of discordant from Beta(½, ½)": (
            discordant_of_share(drawn[1], rng),
            above,
            drawn[1] <= 0.5,
        ),
    }
    powers = {
        "share wrong 0.01": (known_wrong(equal(0.01), rng), below),
        "share wrong 0.03": (known_wrong(equal(0.03), rng), below),
        "share wrong 0.05": (known_wrong(equal(0.05), rng), below),
        "judges right .9 and .6": (discordant(equal(0.9), equal(0.6), rng), above),
        "judges right .9 and .7": (discordant(equal(0.9), equal(0.7), rng), above),
        "judges right .9 and .8": (discordant(equal(0.9), equal(0.8), rng), above),
    }
    parts = [
        f"{campaigns:,} campaigns of up to {LOOKS} known truths, one look after each; a share ±"
        f" its Monte-Carlo error; level {LEVEL:g}.",
        "## Stopping wrongly",
        table(
            ["truth", "interval", "stop", "stop and are wrong", "of those that stop"],
            [[name, *row] for name, case in errors.items() for row in wrong_stops(*case)],
        ),
        f"## Stopping rightly, and known truths until then (target {TARGET:g})",
        table(
            ["truth", "interval", "stop", "10 %", "median", "90 %", f"by one look at {LOOKS}"],
            [[name, *row] for name, case in powers.items() for row in right_stops(*case)],
        ),
        f"## Rankings of {RANKED} items: an interval that misses at any look",
        table(
            ["judges", "interval", "miss"],
            [row for noise in (np.inf, 0.7, 0.3) for row in rankings(campaigns, noise, rng)],
        ),
    ]
    report("gold_sequential", "Looking after each new known truth", parts, given.quick)


if __name__ == "__main__":
    main()
