"""Rows on devices: the conditionals are those of the host, whatever the mesh."""

from __future__ import annotations

import dataclasses
import re
import socket
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import raters as rt
from raters.inference.polya_gamma import augmentation, devices, latent_classes, plans, sweep
from raters.inference.polya_gamma.conditionals import Conditional
from raters.program import Program, placing, scattered
from tests import hand
from tests.inference.scripts import printed, script


@pytest.fixture(scope="module")
def mesh() -> jax.sharding.Mesh:
    """One device as a mesh, which has rows stay where they are."""
    return jax.make_mesh((1,), ("row",))


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


def conditionals(model, data, mesh, *, draws: bool, joint: bool = False):
    """Each conditional of log-odds of a model at its start, with EM's weights."""
    program = Program(model, data, mesh)
    with jax.enable_x64(True):
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        rng = np.random.default_rng(0)
        values = scattered(start, program.supports, rng, least=0.3)
        plan, placed = plans.plan(program, values), sweep.on_devices(program)
        classes = latent_classes.expected(model, placed, values)[0] if plan.classes else None
        found = {}
        for block in plan.blocks:
            weights = augmentation.Expected(augmentation.expectation)
            one = sweep.block_conditional(
                plan, placed, values, block, weights, classes, draws=draws, joint=joint
            )
            if isinstance(one, Conditional):
                found[block] = (one, weights.log_likelihood, block.current(values))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (rt.ExtendedBTL("signed"), "votes"),
        (rt.MixtureBTL(num_types=2), "votes"),
        (rt.BTL(ties="rao-kupper"), "tied"),
    ],
    ids=["two blocks", "types", "two terms"],
)
def test_conditionals_are_those_of_the_host(model, data, mesh, request) -> None:
    data = request.getfixturevalue(data)
    host = conditionals(model, data, None, draws=True)
    there = conditionals(model, data, mesh, draws=True)
    assert host
    assert set(host) == set(there)
    for block, (one, likelihood, current) in host.items():
        other, its_likelihood, _ = there[block]
        assert type(one) is type(other)
        np.testing.assert_allclose(other.shift, one.shift, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            other.product(current), one.product(current), rtol=1e-12, atol=1e-12
        )
        assert its_likelihood == pytest.approx(likelihood, rel=1e-12)


@pytest.mark.slow
def test_large_blocks_are_solved_where_the_rows_are(votes, mesh, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["raters.inference.polya_gamma.conditionals"], "DENSE_LIMIT", 3)
    ((host, _, current),) = conditionals(rt.BTL(), votes, None, draws=True).values()
    ((there, _, _),) = conditionals(rt.BTL(), votes, mesh, draws=True).values()
    assert isinstance(there, devices.OnDevices)
    with jax.enable_x64(True):
        np.testing.assert_allclose(there.mode(current), host.mode(current), atol=1e-6)
        np.testing.assert_allclose(there.product(current), host.product(current), rtol=1e-6)
        draws = np.stack([there.draw(rng, current) for rng in np.random.default_rng(0).spawn(2000)])
    covariance = np.linalg.inv(np.stack([host.product(unit) for unit in np.eye(host.size)]))
    # Each of ten z-scores; false-alarm rate 1e-5 in all.
    mean = (draws.mean(0) - host.mode(current)) / np.sqrt(np.diag(covariance) / len(draws))
    spread = (draws.var(0) / np.diag(covariance) - 1) * np.sqrt(len(draws) / 2)
    assert np.abs([mean, spread]).max() < norm.isf(5e-7)


@pytest.mark.slow
def test_rows_in_pieces_have_the_same_sums(votes, monkeypatch) -> None:
    model = rt.ExtendedBTL("signed")
    with jax.enable_x64(True):
        data = jax.device_put(votes.padded(64))
        values = {name: jnp.asarray(value, float) for name, value in model.start(votes).items()}
        (block, _) = plans.blocks_of(Program(model, votes), votes, values)
        how = devices._How("curvature", 10, None)
        whole = devices._sums(model, data, values, block, None, None, how)
        monkeypatch.setattr(placing, "PIECE", 16)
        devices._sums.clear_cache()
        pieces = devices._sums(model, data, values, block, None, None, how)
        key = augmentation.key_of(np.random.default_rng(0))
        drawn = devices._sums(model, data, values, block, None, key, how._replace(weights="draw"))
        again = devices._sums(
            model, data, values, block, None, drawn.omega, how._replace(weights="given")
        )
        devices._sums.clear_cache()
    assert pieces.omega is None
    assert drawn.omega.shape == (64,)
    for one, other in ((whole, pieces), (drawn, again)):
        for name in ("shift", "diagonal", "across"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)
    assert len(pieces.slots) == 2


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1 << 20, 8], ids=["cells", "entries"])
@pytest.mark.parametrize(
    "model",
    [rt.ExtendedBTL("signed"), rt.BTL(ties="rao-kupper"), rt.MixtureBTL(num_types=2)],
    ids=["two blocks", "two terms", "types"],
)
def test_sums_of_an_accelerator_are_the_same(model, entries, votes, tied, monkeypatch) -> None:
    """Sums by vectors of entries, or of pairs of entries where they are few; rows in pieces are
    computed in float32."""
    monkeypatch.setattr(devices, "_ENTRIES", entries)
    data = (tied if model == rt.BTL(ties="rao-kupper") else votes).padded(64)
    with jax.enable_x64(True):
        program = Program(model, data)
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        values = scattered(start, program.supports, np.random.default_rng(0), least=0.5)
        classes = latent_classes.expected(model, data, values)[0] if program.latent else None
        for block in plans.blocks_of(program, data, values):
            if block.kind == "counts":
                continue
            how = devices._How("mean", 10, None)
            plain = devices._sums(model, data, values, block, classes, None, how)
            how = how._replace(accelerated=True)
            whole = devices._sums(model, data, values, block, classes, None, how)
            with monkeypatch.context() as patch:
                patch.setattr(placing, "PIECE", 16)
                devices._sums.clear_cache()
                pieces = devices._sums(model, data, values, block, classes, None, how)
            devices._sums.clear_cache()
            for other, bound in ((whole, 1e-12), (pieces, 1e-5)):
                for name in ("shift", "diagonal", "across", "log_likelihood"):
                    one, also = getattr(plain, name), getattr(other, name)
                    assert (one is None) == (also is None)
                    if one is not None:
                        np.testing.assert_allclose(also, one, rtol=bound, atol=bound)
                        assert also.dtype == np.float64
                jax.tree.map(np.testing.assert_array_equal, other.prior, plain.prior)


def test_dense_systems_of_an_accelerator_are_solved_there(votes, mesh, monkeypatch) -> None:
    ((host, _, current),) = conditionals(rt.BTL(), votes, None, draws=True).values()
    monkeypatch.setattr(devices, "accelerated", lambda: True)
    monkeypatch.setattr(devices, "_FEW", 2)
    ((there, _, _),) = conditionals(rt.BTL(), votes, mesh, draws=True).values()
    assert isinstance(there, devices.DenseOnDevices)
    with jax.enable_x64(True):
        np.testing.assert_allclose(there.mode(current), host.mode(current), rtol=1e-10)
        one, other = (each.draw(np.random.default_rng(0), current) for each in (there, host))
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_allclose(there.product(current), host.product(current), rtol=1e-10)
    there.across += np.eye(there.size)
    host.across += np.eye(host.size)
    np.testing.assert_allclose(there.covariance(), host.covariance(), rtol=1e-10)
    np.testing.assert_allclose(there.mode(current), host.mode(current), rtol=1e-10)


def test_single_votes_are_seen(votes, mesh) -> None:
    each = hand.votes((0, 1, 0), (1, 2, 0), (2, 0, 1), (0, 1, 1))
    twice = dataclasses.replace(each, count=np.array([1.0, 2.0, 1.0, 1.0], np.float32))
    for data, single in ((votes, False), (each, True), (twice, False)):
        program = Program(rt.BTL(), data, mesh)
        with jax.enable_x64(True):
            values = {
                name: np.asarray(value, float) for name, value in rt.BTL().start(data).items()
            }
            plan, placed = plans.plan(program, values), sweep.on_devices(program)
            assert sweep.is_single(plan, placed, values) == single


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
