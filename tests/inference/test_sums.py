"""Sums over rows, and draws and modes of blocks, whatever the solver and the devices."""

from __future__ import annotations

import dataclasses
import re
import socket

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import raters as rt
from raters.errors import ConvergenceWarning
from raters.inference.polya_gamma import gibbs, plans, sums, sweep
from raters.inference.polya_gamma.sums import How, Reading
from raters.program import Program, placing, scattered
from tests import hand
from tests.inference.scripts import printed, script

SIGNED, TYPES, TIES = (
    rt.ExtendedBTL("signed"),
    rt.MixtureBTL(num_types=2),
    rt.BTL(ties="rao-kupper"),
)


def clear() -> None:
    """Forget compiled sums and solutions, which hold what a test replaces."""
    sums.sums_of.clear_cache()
    sums.solved.clear_cache()


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    """Counted votes of three annotators on five items."""
    data, _ = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=300, seed=0)
    return data


@pytest.fixture(scope="module")
def tied() -> rt.Comparisons:
    """Votes some of which are ties."""
    rng = np.random.default_rng(0)
    table = {"a": rng.integers(0, 3, 60), "o": rng.choice(["a", "b", "tie"], 60)}
    table["b"] = (table["a"] + rng.integers(1, 3, 60)) % 3
    return rt.Comparisons.from_frame(table, first="a", second="b", outcome="o", ties="keep")


def readings(model, data) -> list[Reading]:
    """Rows of each block of log-odds, at a random point."""
    program = Program(model, data)
    start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
    values = scattered(start, program.supports, np.random.default_rng(0), least=0.5)
    values = {name: jnp.asarray(value) for name, value in values.items()}
    plan = plans.plan(program, values)
    classes = sweep.expected_classes(plan, data, values)
    places = [place for place, block in enumerate(plan.blocks) if block.kind != "counts"]
    return [sweep.readings_of(plan, place, data, values, classes)[0] for place in places]


def close(one: sums.Sums, other: sums.Sums, bound: float) -> None:
    """Both sums are the same."""
    for name in ("shift", "diagonal", "across", "log_likelihood"):
        own, also = getattr(one, name), getattr(other, name)
        assert (own is None) == (also is None)
        if own is not None:
            np.testing.assert_allclose(also, own, rtol=bound, atol=bound)
            assert also.dtype == np.float64


@pytest.mark.slow
def test_rows_in_pieces_have_the_same_sums(votes, monkeypatch) -> None:
    reading, how = readings(SIGNED, votes.padded(64))[0], How("curvature", limit=10)
    whole = sums.sums_of(reading, None, how)
    monkeypatch.setattr(placing, "PIECE", 16)
    clear()
    pieces = sums.sums_of(reading, None, how)
    drawn = sums.sums_of(reading, jax.random.key(0), how._replace(weights="draw"))
    again = sums.sums_of(reading, drawn.omega, how._replace(weights="given"))
    clear()
    assert pieces.omega is None
    assert drawn.omega.shape == (64,)
    close(whole, pieces, 1e-12)
    close(drawn, again, 1e-12)
    assert len(pieces.slots) == 2


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1 << 20, 8], ids=["cells", "entries"])
@pytest.mark.parametrize("model", [SIGNED, TIES, TYPES], ids=["two blocks", "two terms", "types"])
def test_sums_of_an_accelerator_are_the_same(model, entries, votes, tied, monkeypatch) -> None:
    """Sums by vectors of entries, or of pairs of entries where they are few; rows in pieces are
    computed in float32."""
    monkeypatch.setattr(sums, "_ENTRIES", entries)
    how = How("mean", limit=10)
    for reading in readings(model, (tied if model is TIES else votes).padded(64)):
        plain = sums.sums_of(reading, None, how)
        close(plain, sums.sums_of(reading, None, how._replace(accelerated=True)), 1e-12)
        with monkeypatch.context() as patch:
            patch.setattr(placing, "PIECE", 16)
            clear()
            pieces = sums.sums_of(reading, None, how._replace(accelerated=True))
        clear()
        close(plain, pieces, 1e-5)
        jax.tree.map(np.testing.assert_array_equal, pieces.prior, plain.prior)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["factor", "gradients", "parts"])
def test_draws_have_the_mean_and_the_covariance_of_the_conditional(solver, tiny) -> None:
    """The mode to the solver's tolerance; false-alarm rate 1e-5 in all for the draws."""
    reading = readings(rt.HierarchicalBTL() if solver == "parts" else rt.BTL(), tiny)[-1]
    how = How("mean", limit=1 if solver == "gradients" else 100)
    normal = sums.Conditional([reading], "mean")
    exact = np.linalg.solve(normal.precision, normal.shift)
    if solver == "parts":
        division = sums.first_look([[reading]], how)[1][0]
        assert len(division.empty) == len(tiny.annotators)
        reading = dataclasses.replace(reading, division=division)
    found = sums.sums_of(reading, None, how)
    assert (found.across is None) == (solver == "gradients")
    current = jnp.zeros(len(normal.shift))
    mode = sums.solved([reading], [found], current, None, how)
    np.testing.assert_allclose(mode, exact, atol=1e-4)
    if solver != "parts":
        wrapped = sums.Conditional([reading], "mean", how.limit)
        some = np.linspace(-1, 1, len(normal.shift))
        slope = normal.shift - normal.precision @ some
        np.testing.assert_allclose(wrapped.slope(some), slope, atol=1e-9)
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = jax.lax.map(lambda key: sums.solved([reading], [found], current, key, how), keys)
    off = (np.asarray(draws) - exact) @ np.linalg.cholesky(normal.precision)
    size = len(off.T)
    assert np.abs(off.mean(0)).max() < 5.5 / np.sqrt(len(off))
    moments = (off.T @ off / len(off) - np.eye(size)) * np.sqrt(len(off) / (1 + np.eye(size)))
    assert np.abs(moments).max() < 5.5


@pytest.mark.slow
def test_gradients_that_stop_too_early_are_warned_of(tiny, monkeypatch) -> None:
    """From the compiled function, with the residual."""
    monkeypatch.setattr(sums, "MOST_STEPS", 1)
    clear()
    found = sums.Conditional([readings(rt.BTL(), tiny)[0]], "mean", 1)
    with pytest.warns(ConvergenceWarning, match="after 1 steps"):
        jax.block_until_ready(sums.solved(found.readings, found.sums, found.shift, None, found.how))
    clear()


def test_the_number_of_votes_of_a_row_chooses_the_sampler(votes) -> None:
    each = hand.votes((0, 1, 0), (1, 2, 0), (2, 0, 1), (0, 1, 1))
    twice = dataclasses.replace(each, count=np.array([1.0, 2.0, 1.0, 1.0], np.float32))
    for data, single, few in ((votes, False, False), (each, True, False), (twice, False, True)):
        how = gibbs.Kernel.of(Program(rt.BTL(), data), rt.BTL().start(data)).how
        assert (how.single, how.few) == (single, few)


# ------------------------------------------------------------------------ several virtual devices


@pytest.mark.slow
def test_eight_devices_agree_with_one() -> None:
    """Draws of Gibbs, and the sums of EM, differ by rounding; and what devices send each other is
    of the size of the sites, not of the rows."""
    found = printed(script("eight_devices.py", "few"))
    assert len(found["apart"]) == 2
    assert max(found["apart"].values()) < 1e-10, found
    sizes = [
        np.prod([int(number) for number in shape.split(",")])
        for text in found["collectives"]
        for shape in re.findall(r"\[([\d,]+)\]", text)
    ]
    assert sizes
    assert max(sizes) <= 36 < found["rows"] / 8, found["collectives"]


@pytest.mark.slow
def test_two_processes_fit_one_posterior() -> None:
    """Each has half of the rows, and both have the draws of one process with all of them."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    both = [script("two_processes.py", port, rank, devices=2) for rank in "01"]
    first, second = (printed(process) for process in both)
    alone = printed(script("two_processes.py", "", "0", devices=4))
    for name, mean in alone.items():
        np.testing.assert_allclose(first[name], mean, rtol=1e-8, err_msg=name)
        assert first[name] == second[name]
