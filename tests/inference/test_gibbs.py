"""The Gibbs sampler's chains: how they are stopped. Its draws are tested in `tests/statistical`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import raters as rt
from raters.inference.polya_gamma import gibbs


def test_an_interrupt_while_chains_are_started_stops_those_that_run(tiny, monkeypatch):
    sweeps = []
    submit = ThreadPoolExecutor.submit

    def counted(kernel, values, rng, number, cache=None):
        sweeps.append(number)
        return {name: np.asarray(value)[None] for name, value in values.items()}

    def interrupted(pool, function, *arguments):
        if sweeps:
            raise KeyboardInterrupt
        future = submit(pool, function, *arguments)
        while not sweeps:
            pass
        return future

    monkeypatch.setattr(gibbs.Kernel, "run", counted)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    draws = 1_000_000
    with pytest.raises(KeyboardInterrupt):
        rt.fit(rt.BTL(), tiny, rt.PGGibbs(draws=draws, chains=2), seed=0, progress=False)
    assert sum(sweeps) < draws
