"""Position bias of those who compare: the share of choices of what is shown first, where nothing
else decides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from raters.fitting.result import draws_of
from raters.program import Program

#: Site of the bias, in logits for what is shown first.
SITE = "position_bias"


class PositionBias(NamedTuple):
    """Draws of the position bias.

    Attributes
    ----------
    bias : array, shape (draw, judge)
        Bias in logits for what is shown first; one column for a bias that all judges share.
    first_share : array, shape (draw, judge)
        Probability of choosing the first of two equal items.
    shared : bool
        Whether one bias is that of all judges.
    """

    bias: Float[np.ndarray, "draw judge"]
    first_share: Float[np.ndarray, "draw judge"]
    shared: bool

    def crowd_share(self, judgements: Float[np.ndarray, " judge"]) -> Float[np.ndarray, " draw"]:
        """Mean of the share over the judges with answers, each counted once; over all without any.

        Parameters
        ----------
        judgements : array, shape (judge,)
            Number of each judge's answers.

        Returns
        -------
        array, shape (draw,)
        """
        if self.shared or not judgements.any():
            return np.asarray(self.first_share.mean(1))
        return np.asarray(self.first_share[:, judgements > 0].mean(1))


def position_bias(program: Program[Any], result: xr.DataTree) -> PositionBias | None:
    r"""Read the position bias of a fit off its site ``position_bias``.

    With a bias :math:`\gamma_k` in the logits, of two items with equal rewards judge k chooses the
    one shown first with probability

    .. math:: s_k = \sigma(\gamma_k) = \frac{1}{1 + e^{-\gamma_k}},

    which is ½ without a bias.

    Parameters
    ----------
    program : Program
    result : xarray.DataTree

    Returns
    -------
    PositionBias or None
        None for a model without such a site, or with one along other axes than that of the judges.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.position_biased(num_items=5, num_annotators=4, seed=0)
    >>> model = rt.ExtendedBTL(position_bias=True)
    >>> result = rt.fit(model, votes, rt.PGEM(), seed=0, progress=False)
    >>> position_bias(rt.Program(model, votes), result).first_share.shape[1]
    4
    """
    site = program.sites.get(SITE)
    if site is None or site.dims not in ((), (program.data.judge,)):
        return None
    draws, _ = draws_of(program, result)
    bias = draws[SITE].reshape(len(draws[SITE]), -1)
    return PositionBias(bias, expit(bias), shared=not site.dims)
