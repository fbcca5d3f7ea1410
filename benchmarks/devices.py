"""Sweeps over rows on JAX's devices: seconds of EM and Gibbs, against the time to read the rows.

The rows are counts of votes of 1,000 annotators on pairs of 1,000 items, made on the device, 20
bytes each. A sweep of Extended-BTL reads them at least twice, once for each block. The limit is a
sum over the five columns, which reads them once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _common import options, report, table

import raters as rt
from raters.inference.base import progress_bar
from raters.inference.polya_gamma import em, gibbs, plans, sweep
from raters.program import Program

ITEMS, ANNOTATORS = 1_000, 1_000
NOTE = (
    "Milliseconds of a sweep, the best of some, compilation aside; `reads` is how many times as"
    " long as one pass over the columns it takes."
)


def votes(rows: int, seed: int) -> rt.Comparisons:
    """Rows of one to four votes, on the device."""
    keys = jax.random.split(jax.random.key(seed), 6)
    first = jax.random.randint(keys[0], (rows,), 0, ITEMS, jnp.int32)
    apart = jax.random.randint(keys[1], (rows,), 1, ITEMS, jnp.int32)
    annotator = jax.random.randint(keys[2], (rows,), 0, ANNOTATORS, jnp.int32)
    second = (first + apart) % ITEMS
    reward = jax.random.normal(keys[3], (ITEMS,))
    competence = jax.random.uniform(keys[4], (ANNOTATORS,), minval=0.2)
    count = (1 + (first + second + annotator) % 4).astype(jnp.float32)
    prob = jax.nn.sigmoid(competence[annotator] * (reward[first] - reward[second]))
    wins = jnp.round(count * prob + jax.random.uniform(keys[5], (rows,)) - 0.5)
    wins = jnp.clip(wins, 0, count)
    items, annotators = tuple(range(ITEMS)), tuple(range(ANNOTATORS))
    return rt.Comparisons(first, second, annotator, wins, count, items, annotators)


@jax.jit
def read(data: Any) -> jax.Array:
    """Read each column once."""
    return sum(jnp.sum(column, dtype=jnp.float32) for column in jax.tree.leaves(data))


def best(call: Callable[[], Any], times: int) -> float:
    """Milliseconds of the fastest of some calls, after one to compile."""
    jax.block_until_ready(call())
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - begin)
    return 1000 * min(seconds)


def measure(rows: int, seed: int, times: int) -> list[Any]:
    """Time sweeps over so many rows."""
    data, model = votes(rows, seed), rt.ExtendedBTL()
    one = best(lambda: read(data), times)
    with jax.enable_x64(True):
        few = jax.tree.map(lambda column: np.asarray(column[:20_000]), data)
        values = {name: np.asarray(value, float) for name, value in model.start(few).items()}
        program = Program(model, few)
        plan, row = plans.plan(program, values), few.take(slice(0, 1))
        placed = jax.device_put(data) if jax.default_backend() == "cpu" else data
        held = sweep.RunCache(constant=0.0)
        climber = em._Climber(rt.PGEM(), program, plan, placed, held, progress_bar(1, "", False))
        climber.row = row
        of_em = best(lambda: climber.sweep(values, True), times)
        rng = np.random.default_rng(seed)
        kernel = replace(gibbs.Kernel.of(program, values), data=placed)
        of_gibbs = best(lambda: kernel.run(values, rng, 1), times)
    device = jax.devices()[0].device_kind
    return [device, f"{rows:,}", one, of_em, of_em / one, of_gibbs, of_gibbs / one]


def main() -> None:
    """Measure all sizes."""
    warnings.simplefilter("ignore")
    arguments = options(__doc__ or "", rows=("1000000", "numbers of rows, with commas between"))
    sizes = [int(float(part)) for part in arguments.rows.split(",")]
    rows = [measure(size, arguments.seed, 3) for size in ([20_000] if arguments.quick else sizes)]
    header = ["device", "rows", "pass, ms", "EM, ms", "reads", "Gibbs, ms", "reads"]
    report("devices", "Sweeps on devices", [table(header, rows), NOTE], arguments.quick)


if __name__ == "__main__":
    main()
