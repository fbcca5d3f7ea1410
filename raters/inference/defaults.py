"""Back-ends for models where none is given."""

from __future__ import annotations

from typing import Any

from raters.inference.base import Backend
from raters.inference.nuts import NUTS
from raters.inference.polya_gamma.gibbs import PGGibbs


def default_backend(model: Any, *, quick: bool = False) -> Backend:
    """An exact back-end that suits a model.

    Parameters
    ----------
    model : Model
    quick : bool
        Whether few draws are enough, as between two questions of a campaign.

    Returns
    -------
    Backend
        `PGGibbs` for a model that declares conjugate blocks, otherwise `NUTS`.
    """
    if getattr(model, "blocks", True):
        return PGGibbs(draws=250, warmup=100, chains=2) if quick else PGGibbs()
    return NUTS(draws=250, warmup=250, chains=2) if quick else NUTS()
