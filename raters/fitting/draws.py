"""Checks of the draws in a result: finite, inside the supports of their sites, and enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from numpyro.distributions import constraints

from raters.errors import DataError, refuse
from raters.program import Program, Site

# Single precision may leave a support by rounding: by less than this share of its width, or of 1.
_ROUNDING = 1e-4


def check_values(
    program: Program[Any], result: xr.DataTree, group: str = "posterior", parameter: str = "result"
) -> None:
    """Raise unless all draws of each site of a program are finite, and inside its support."""
    for name, site in program.sites.items():
        values = np.asarray(result[group][name].values)
        wrong, what = ~np.isfinite(values), "not finite"
        if not wrong.any():
            wrong, what = _outside(values, site), "outside of its support"
        _check_none(wrong, name, what, parameter)


def check_finite(result: xr.DataTree) -> None:
    """Raise unless all draws in a result are finite, whatever it was fitted with."""
    for name, draws in result["posterior"].data_vars.items():
        if draws.dtype.kind in "iuf":
            _check_none(~np.isfinite(draws.values), str(name), "not finite", "result")


def check_probabilities(values: Float[np.ndarray, "unit class"], name: str) -> None:
    """Raise unless the probabilities of classes in a result are finite, at least 0, and sum to
    1."""
    _check_none(~np.isfinite(values).all(-1), name, "not finite", "result")
    _check_none(_off_simplex(values), name, "no probabilities", "result")


def _check_none(wrong: Bool[np.ndarray, " ..."], name: str, what: str, parameter: str) -> None:
    """`DataError` for values that are wrong."""
    if wrong.any():
        problem = (
            f"holds {int(wrong.sum()):,} of {wrong.size:,} values of {name!r} that are"
            f" {what}, as after a fit that failed"
        )
        expected = "pass a result as it was fitted, by settings or a back-end that succeed"
        instead = "rt.fit(model, data, seed=0), and heed its warnings"
        refuse(parameter, problem=problem, expected=expected, instead=instead, error=DataError)


def _off_simplex(values: Float[np.ndarray, " ..."]) -> Bool[np.ndarray, " ..."]:
    """True for each vector that is none of probabilities, by more than rounding."""
    off = np.abs(values.sum(-1) - 1) > _ROUNDING
    return np.asarray(off | (values.min(-1) < -_ROUNDING))


def _outside(values: Float[np.ndarray, " ..."], site: Site) -> Bool[np.ndarray, " ..."]:
    """True for each value outside of a support by more than rounding."""
    if site.support is constraints.simplex:
        return _off_simplex(values)
    low, high = (getattr(site.support, end, None) for end in ("lower_bound", "upper_bound"))
    if low is None and high is None:
        return ~np.asarray(site.support(values))
    slack = _ROUNDING * (1.0 if low is None or high is None else np.asarray(high - low))
    wrong = np.zeros(values.shape, bool)
    if low is not None:
        wrong |= values < np.asarray(low) - slack
    if high is not None:
        wrong |= values > np.asarray(high) + slack
    return wrong


def check_several(result: xr.DataTree, purpose: str) -> None:
    """Raise unless a result has two draws or more."""
    sizes = result["posterior"].sizes
    if (num_draws := sizes["chain"] * sizes["draw"]) < 2:
        problem = f"has {num_draws} draw, and {purpose}"
        refuse("result", problem=problem, expected="fit with more draws")
