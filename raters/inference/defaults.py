"""Back-ends for models where none is given."""

from __future__ import annotations

from typing import Any

from raters.errors import RatersError
from raters.inference.base import Backend
from raters.inference.nuts import NUTS
from raters.inference.polya_gamma import detection
from raters.inference.polya_gamma.gibbs import PGGibbs
from raters.program import Program


def default_backend(model: Any, data: Any, *, quick: bool = False) -> Backend:
    """An exact back-end that suits a model."""
    if _has_blocks(model, data):
        return PGGibbs(draws=250, warmup=100, chains=2) if quick else PGGibbs()
    return NUTS(draws=250, warmup=250, chains=2) if quick else NUTS()


def _has_blocks(model: Any, data: Any) -> bool:
    """True where a model declares blocks, or they are found."""
    if getattr(model, "own", ()):  # Which Gibbs draws by themselves.
        return True
    declared = getattr(model, "blocks", True)
    if declared is not None or data is None:
        return declared is None or bool(declared)
    if not isinstance(data, getattr(model, "data_type", object)):
        return True  # Of which a fit or a campaign tells.
    try:
        return bool(detection.names_of(Program(model, data)))
    except NotImplementedError:
        return False
    except RatersError:  # Data of another kind, of which a fit or a campaign tells.
        return True
