"""Posterior draws of the rewards of types, from the results of mixture models."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from raters.alignment.checks import as_array, refuse_shape
from raters.errors import refuse_data
from raters.errors.validation import checked, whole
from raters.fitting.result import check_finite

_OF_ITEMS = ("reward", "worth")
_DRAWN = ("chain", "draw", "type")


@checked
def type_rewards(
    result: xr.DataTree, features: ArrayLike | None = None, *, draws: int = 200, seed: int = 0
) -> xr.DataArray:
    """Return posterior draws of the rewards of each type, in the shape that policies need.

    Parameters
    ----------
    result : xarray.DataTree
        Fit of a model with rewards or worths of items, such as `MixtureBTL` or
        `MixturePlackettLuce`: items are then the responses to one prompt. Or of one with
        coefficients of features, such as `ContextualBTL`. A model without types has one.
    features : array (prompt, response, feature), optional
        With coefficients: features of each response to each prompt, in the order of the model's.
    draws : int
        Number of draws to keep, at random; all of them where there are fewer.
    seed : int

    Returns
    -------
    xarray.DataArray (draw, type, response) or (draw, type, prompt, response)
        In logits, each prompt's centred; of items with their names as responses. Types have the
        numbers that each draw gives them.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> draws = rt.alignment.type_rewards(result, draws=50)
    >>> draws.dims, draws.shape
    (('draw', 'type', 'response'), (50, 1, 4))
    """
    whole("draws", draws)
    fitted = isinstance(result, xr.DataTree) and "posterior" in result.children
    sites = result["posterior"].data_vars if fitted else {}
    site = next((name for name in (*_OF_ITEMS, "coefficient") if name in sites), None)
    if site is None:
        expected = "fit rewards or worths of items, or coefficients of features"
        such = "rt.fit(rt.MixtureBTL(num_types=2), votes)"
        refuse_data("result", problem="has no rewards", expected=expected, instead=such)
    check_finite(result)
    drawn = sites[site] if "type" in sites[site].dims else sites[site].expand_dims("type")
    rest = [name for name in drawn.dims if name not in _DRAWN]
    if len(rest) != 1:
        problem = f"has {site!r} along {list(map(str, drawn.dims))}"
        refuse_data("result", problem=problem, expected="it must be of items or features alone")
    values = drawn.transpose("chain", "draw", "type", *rest).values.astype(float)
    reward = values.reshape(-1, *values.shape[2:])
    if len(reward) > draws:
        keep = np.random.default_rng(seed).choice(len(reward), draws, replace=False)
        reward = reward[np.sort(keep)]
    if site == "coefficient":
        size = reward.shape[-1]
        given, such = () if features is None else features, f"np.zeros((1, 2, {size}))"
        table = as_array("features", given, such)
        if table.ndim != 3 or table.shape[-1] != size:
            expected = f"give those of each response to each prompt, as (prompt, response, {size})"
            refuse_shape("features", table, expected)
        reward = np.einsum("xyf,skf->skxy", table, reward)
        dims = ["draw", "type", "prompt", "response"]
    elif features is not None:
        expected = "leave them out, or fit coefficients, as of `ContextualBTL`"
        refuse_data("features", problem=f"do not go with {site!r} of items", expected=expected)
    else:
        dims = ["draw", "type", "response"]
    centred = xr.DataArray(reward - reward.mean(-1, keepdims=True), dims=dims)
    named = site != "coefficient" and rest[0] in drawn.coords
    return centred.assign_coords(response=drawn[rest[0]].values) if named else centred
