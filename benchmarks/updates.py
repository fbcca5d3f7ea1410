"""Five per cent more votes by `raters.update`, beside another fit of all of them.

Second calls in CPU seconds, and differences of the posterior means in standard deviations: of the
update from the fit of all votes, and of the earlier fit from it.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from _common import options, report, table

import raters as rt

SIZES = ((50, 20, 4_000), (100, 50, 15_000), (100, 50, 60_000))


def spent(call: Any) -> tuple[float, Any]:
    """CPU seconds of a second call, and what it gives."""
    call()
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def row(items: int, annotators: int, number: int, seed: int) -> list[Any]:
    """One row of the table."""
    sizes = {"num_items": items, "num_annotators": annotators, "num_votes": number}
    votes, _ = rt.datasets.separated(**sizes, seed=seed)
    rows = np.random.default_rng(seed).permutation(votes.num_rows)
    cut = votes.num_rows // 20
    old, new = votes.rows(np.sort(rows[cut:])), votes.rows(np.sort(rows[:cut]))
    model = rt.ExtendedBTL("signed")
    before = rt.fit(model, old, seed=seed, progress=False)
    full, after = spent(lambda: rt.fit(model, votes, seed=seed + 1, progress=False))
    update, updated = spent(lambda: rt.update(before, new, seed=seed, progress=False))

    def apart(result: Any) -> float:
        means = [one.posterior["reward"].mean(("chain", "draw")) for one in (result, after)]
        spread = after.posterior["reward"].std(("chain", "draw"))
        return float(np.sqrt((((means[0] - means[1]) / spread) ** 2).mean()))

    errors = [apart(updated.result), apart(before)]
    return [f"{number:,}", full, update, update / full, updated.pareto_k, *errors]


def main() -> None:
    """Write the table."""
    given = options(__doc__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row(*size, given.seed) for size in (SIZES[:1] if given.quick else SIZES)]
    header = ["votes", "fit, s", "update, s", "ratio", "k̂", "update's error", "earlier fit's"]
    text = "`ExtendedBTL`, the back-end by default; errors of rewards, root mean square."
    report("updates", "Updates", [text, table(header, rows)], given.quick)


if __name__ == "__main__":
    main()
