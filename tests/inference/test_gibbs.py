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


def test_chains_that_have_not_mixed_go_on(tiny, fit_quietly, monkeypatch):
    """With three sweeps a draw, from where they are."""
    backend = rt.PGGibbs(draws=40, warmup=10, chains=2, longest=4)
    every = fit_quietly(rt.BTL(), tiny, rt.PGGibbs(draws=160, warmup=10, chains=2))
    for times, kept in ((3, slice(40, 160, 3)), (1, slice(40))):
        monkeypatch.setattr(gibbs, "times_longer", lambda *_, times=times: times)
        found = fit_quietly(rt.BTL(), tiny, backend)["posterior"]["reward"].values
        np.testing.assert_array_equal(found, every["posterior"]["reward"].values[:, kept])
