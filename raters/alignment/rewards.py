"""Posterior draws of the rewards of types, from the results of mixture models."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from raters.alignment._checks import as_array
from raters.errors import DataError
from raters.errors.validation import checked, whole
from raters.fitting.draws import check_finite

_OF_ITEMS = ("reward", "worth")
_DRAWN = ("chain", "draw", "type")
_OF_ONE_PROMPT = ("draw", "type", "response")


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

    Raises
    ------
    DataError
        When the result has neither rewards nor coefficients, its draws are not finite, or
        `features` are missing, superfluous, or of another number.

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
    if not isinstance(result, xr.DataTree):
        raise DataError(
            parameter="result",
            value=result,
            problem="is no result",
            expected="it must be a fit of rewards or worths of items, or coefficients of features",
            instead="rt.fit(rt.MixtureBTL(num_types=2), votes)",
        )
    posterior = result["posterior"] if "posterior" in result.children else None
    names = () if posterior is None else tuple(map(str, posterior.data_vars))
    site = next((name for name in (*_OF_ITEMS, "coefficient") if name in names), None)
    if posterior is None or site is None:
        raise DataError(
            parameter="result",
            problem=f"has {list(names)}",
            expected="it must have the rewards or worths of items, or coefficients of features",
            instead="rt.fit(rt.MixtureBTL(num_types=2), votes)",
        )
    check_finite(result)
    drawn = posterior.to_dataset()[site]
    every = _with_types(drawn)
    keep = np.arange(len(every))
    if len(every) > draws:
        keep = np.sort(np.random.default_rng(seed).choice(len(every), draws, replace=False))
    if site in _OF_ITEMS:
        if features is not None:
            raise DataError(
                parameter="features",
                problem=f"have no meaning for {site!r} of items",
                expected="leave them out, or fit a model with coefficients",
                instead="rt.models.ContextualBTL(num_types=2)",
            )
        reward = every[keep]
    else:
        reward = np.einsum("xyf,skf->skxy", _features(features, every.shape[-1]), every[keep])
    axes = ("draw", "type", "prompt", "response") if site == "coefficient" else _OF_ONE_PROMPT
    centred = xr.DataArray(reward - reward.mean(-1, keepdims=True), dims=axes)
    items = [drawn[name].values for name in drawn.coords if name not in _DRAWN]
    named = site in _OF_ITEMS and len(items) == 1
    return centred.assign_coords(response=items[0]) if named else centred


def _with_types(site: xr.DataArray) -> Float[np.ndarray, "draw type entry"]:
    """All draws of a site, with an axis of types."""
    site = site if "type" in site.dims else site.expand_dims("type")
    rest = [name for name in site.dims if name not in _DRAWN]
    if len(rest) != 1:
        raise DataError(
            parameter="result",
            problem=f"has {site.name!r} along {list(map(str, site.dims))}",
            expected="rewards of items or coefficients of features, of each type, are needed",
        )
    values = site.transpose("chain", "draw", "type", *rest).values
    return np.asarray(values.reshape(-1, *values.shape[2:]), float)


def _features(
    features: ArrayLike | None, number: int
) -> Float[np.ndarray, "prompt response feature"]:
    """Features of the responses, checked."""
    if features is None:
        raise DataError(
            parameter="features",
            problem="are missing",
            expected="give those of each response to each prompt, as (prompt, response, feature)",
        )
    table = as_array("features", features, f"np.zeros((1, 2, {number}))")
    if table.ndim != 3 or table.shape[-1] != number:
        raise DataError(
            parameter="features",
            problem=f"have shape {table.shape}",
            expected=f"it must be (prompt, response, {number})",
        )
    return table
