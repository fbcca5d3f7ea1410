"""Geweke's joint test passes for the Gibbs kernels of panels, and catches errors put in on
purpose."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.checking import geweke
from raters.errors import BackendError
from raters.inference.polya_gamma import panel_gibbs, panels
from tests.refusals import raises_about
from tests.statistical.joint import BOUND, cases, short, worst

_NARROW = {"coefficient_scale": 1.0, "constant_scale": 1.0}
_KERNELS = {
    "independent": rt.MixedLogit(**_NARROW),
    "components": rt.MixedLogit(
        random=("price",), error_components=(("0", "2"),), interactions=True, **_NARROW
    ),
    "correlated": rt.MixedLogit(correlated=True, **_NARROW),
    "correlated components": rt.MixedLogit(
        correlated=True, error_components=(("1",),), constants=False, **_NARROW
    ),
}


def of_panels(kernel: str, to_choose: rt.Choices) -> xr.Dataset:
    if "correlated" in kernel:  # Of two features.
        to_choose = rt.datasets.choice_crowd(3, 2, 3, 2, seed=0, available=1).choices
    return short(_KERNELS[kernel], to_choose)


@pytest.mark.parametrize("kernel", cases(_KERNELS, ("independent", "correlated components")))
def test_kernel_of_panels_leaves_the_joint_distribution_invariant(kernel: str, to_choose) -> None:
    result = of_panels(kernel, to_choose)
    assert worst(result) < BOUND, str(result["z"].to_series())


def _of_wide_vectors(panel, factor, values, rng):
    """The prior of the vectors is three times as wide as in the program."""
    return _transfer(panel, 3 * factor, values, rng)


def _against_the_vectors(panel, reference, prior, values, rng):
    """Vectors that shrink while their scale grows."""
    moved = _draw_both(panel, reference, prior, values, rng)
    ratio = panel.scales_of(moved) / panel.scales_of(values)
    return panel.put(moved, own=panel.own_of(values) / ratio)


def _halved(panel, values, rng):
    """The slices of the scales see half of the vectors."""
    seen = panel.put(values, own=panel.own_of(values) / 2)
    return panel.put(_hyper(panel, seen, rng), own=panel.own_of(values))


_transfer, _draw_both, _hyper = panel_gibbs.transfer, panel_gibbs.draw_both, panel_gibbs.hyper
_ERRORS = {
    "no density of the proposal": (
        panel_gibbs,
        "log_t",
        lambda square, size, freedom: np.zeros_like(square),
    ),
    "a transfer under another prior": (panel_gibbs, "transfer", _of_wide_vectors),
    "scales against the vectors": (panel_gibbs, "draw_both", _against_the_vectors),
    "vectors of half the size": (panel_gibbs, "hyper", _halved),
    "the choices of the start": (panels.Panel, "answered", lambda self, chosen: self),
}


@pytest.mark.parametrize(
    "error", cases(_ERRORS, ("no density of the proposal", "scales against the vectors"))
)
def test_injected_error_in_a_kernel_of_panels_is_caught(error, to_choose, monkeypatch) -> None:
    """The bound that the right kernels keep is broken by each of these."""
    monkeypatch.setattr(*_ERRORS[error])
    assert worst(of_panels("independent", to_choose)) > BOUND


def test_a_transfer_keeps_everybodys_sums(to_choose) -> None:
    """The utilities of all choices stay as they are."""
    program = rt.program.Program(
        _KERNELS["independent"], rt.datasets.choice_crowd(4, 3, seed=0).choices
    )
    start = program.model.start(program.data)
    panel = panels.panel_of(program, {name: jnp.asarray(value) for name, value in start.items()})
    values = panel.put(start, own=np.random.default_rng(0).normal(size=panel.own_of(start).shape))
    moved = panel_gibbs.transfer(panel, np.eye(panel.num_own), values, np.random.default_rng(1))
    assert np.abs(panel.shared_of(moved) - panel.shared_of(values)).max() > 1e-3

    def utility(of: dict) -> np.ndarray:
        shared = panel.shared_utilities(panel.shared_of(of))
        return np.where(panel.row >= 0, shared + panel.own_utilities(panel.own_of(of)), 0.0)

    np.testing.assert_allclose(utility(moved), utility(values), atol=1e-9)


def test_refuses_a_panel_that_gibbs_cannot_run(to_choose) -> None:
    with raises_about(BackendError, "random", "speed"):
        geweke(rt.MixedLogit(random=("speed",)), to_choose, seed=0)
