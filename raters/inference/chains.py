"""Chains in threads, which go on until they have mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import Any

import jax
import numpy as np
from jaxtyping import Array
from tqdm.auto import tqdm

from raters.inference.arrays import Rng
from raters.inference.base import Draws, Start, last_draws, numpy_seeds
from raters.inference.identification import identified
from raters.inference.mixing import times_longer
from raters.model import Values
from raters.program import Program, scattered, start_of

# A chain gives its values after each of the next so many steps, with statistics of them.
Chain = Callable[[int], tuple[Values, Values]]
# Chains that go on are looked at after this part of their draws, and each time they have grown by
# the same part: independent draws pass the bound of R-hat after some 300 of each chain.
_STAGES = 4


def starts_of(
    program: Program[Any], key: Array, start: Start, number: int
) -> tuple[Values, list[Values], list[Rng]]:
    """Return the model's start, the starts of so many chains, and their generators."""
    cold = start_of(program.model, program.data)
    rngs = [np.random.default_rng(seed) for seed in numpy_seeds(key, number)]
    if start is not None:
        return cold, last_draws(start, number), rngs
    return cold, [scattered(cold, program.supports, rng) for rng in rngs], rngs


def in_threads[One, Run](
    run: Callable[[One, Event], Run], chains: Sequence[One], at_once: int | None = None
) -> list[Run]:
    """Run chains, each in a thread of its own, until they are done or the event is set."""
    stop = Event()
    with ThreadPoolExecutor(at_once or len(chains)) as pool:
        try:
            futures = [pool.submit(run, chain, stop) for chain in chains]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:  # An error, before those of the chains that it ends.
                future.result()
        finally:
            # After Ctrl-C (while chains are being started, too) or an error the chains end at
            # their next steps.
            stop.set()
        return [future.result() for future in futures]


def sampled(
    chains: Sequence[Chain],
    draws: int,
    bar: tqdm,
    *,
    program: Program[Any] | None = None,
    thin: int = 1,
    longest: int = 1,
    batch: int = 50,
    at_once: int | None = None,
) -> tuple[Values, Values, int]:
    """Return draws of the chains, their statistics, and how many times as long they went on.

    Whether they have mixed is judged by identified draws, for which the program is needed.
    """
    run = partial(_advanced, chains, bar, batch, at_once)
    if longest == 1 or program is None:
        return *run(draws, thin), 1
    taken = -(-draws // _STAGES)
    drawn = run(taken, thin)

    def needed() -> float:
        return times_longer(identified(program, Draws(drawn[0], {})).values, taken < draws)

    def longer(number: int, every: int, apart: int) -> tuple[Values, Values]:
        """Return one in so many of the draws so far, and more that are so far apart."""
        more = run(number, thin * apart)
        return jax.tree.map(
            lambda *two: np.concatenate((two[0][:, ::every], two[1]), 1), drawn, more
        )

    while (times := needed()) > 1 and taken < draws:
        drawn = longer(min(-(-taken // _STAGES), draws - taken), 1, 1)
        taken = len(next(iter(drawn[0].values()))[0])
    total = 1
    while times > 1 and total * times <= longest:
        every = int(times)
        total *= every
        drawn = longer(draws - -(-draws // every), every, total)
        times = needed()
    return *drawn, total


def _advanced(
    chains: Sequence[Chain], bar: tqdm, batch: int, at_once: int | None, draws: int, thin: int
) -> tuple[Values, Values]:
    """Return the next draws, one in so many steps."""
    total = draws * thin
    bar.total += total * len(chains)

    def run(chain: Chain, stop: Event) -> tuple[Values, Values]:
        kept = []
        with jax.enable_x64(True):
            for begin in range(0, total, batch):
                if stop.is_set():
                    break
                number = min(batch, total - begin)
                at = np.arange(begin, begin + number) % thin == 0
                kept.append(jax.tree.map(lambda some, at=at: some[at], chain(number)))
                bar.update(number)
        return jax.tree.map(lambda *some: np.concatenate(some), *kept)

    values, stats = jax.tree.map(lambda *some: np.stack(some), *in_threads(run, chains, at_once))
    return values, stats
