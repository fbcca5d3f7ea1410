"""Back-ends for models where none is given.

Measured by ``benchmarks/default_backends.py``: draws of item responses by Gibbs depend on each
other for hundreds of sweeps, where Hamiltonian Monte Carlo needs a few trajectories, and the
No-U-Turn Sampler is the one without divergences where slopes are learned from little. Both are for
up to 2,500 parameters. Chains of labels of several classes need up to some ten times the usual
number of sweeps.
"""

from __future__ import annotations

from typing import Any

from raters.errors import RatersError
from raters.inference.base import Backend
from raters.inference.nuts import NUTS
from raters.inference.polya_gamma import detection
from raters.inference.polya_gamma.gibbs import PGGibbs
from raters.inference.polya_gamma.hmc import HMC
from raters.judgements.labels import Labels
from raters.judgements.responses import Responses
from raters.program import Program

# Times as many sweeps as usual that chains of labels and responses may take.
_LONGEST = 16
# Responses of each person from which on its ability is known well enough for HMC.
_FEWEST = 20


def default_backend(model: Any, data: Any, *, quick: bool = False) -> Backend:
    """An exact back-end that suits a model."""
    if not _has_blocks(model, data):
        return NUTS(draws=250, warmup=250, chains=2) if quick else NUTS()
    if quick:
        return PGGibbs(draws=250, warmup=100, chains=2)
    if isinstance(data, Responses) and isinstance(data, model.data_type):
        program = Program(model, data)
        if HMC().why_not(program) is None:
            few = data.num_judgements < _FEWEST * data.num_persons
            if "discrimination" in program.sites or (few and "slope" in program.sites):
                return NUTS()
            if not few:
                return HMC()
    return PGGibbs(longest=_LONGEST if isinstance(data, Labels | Responses) else 1)


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
