"""Back-ends for models where none is given.

Measured by ``benchmarks/default_backends.py``: Hamiltonian Monte Carlo has the most effective draws
per second, but of labels, of which Gibbs has. Plain NumPyro functions have Gibbs where it finds
blocks, and else the No-U-Turn Sampler.
"""

from __future__ import annotations

from typing import Any

from raters.inference.base import Backend
from raters.inference.nuts import NUTS
from raters.inference.polya_gamma import detection, plans
from raters.inference.polya_gamma.em import PGEM
from raters.inference.polya_gamma.gibbs import PGGibbs
from raters.inference.polya_gamma.hmc import HMC
from raters.inference.svi import SVI
from raters.judgements.arguments import Arguments
from raters.judgements.labels import Labels
from raters.program import Program

# Times as many draws as usual that chains may take.
_LONGEST = 16
_FEW: dict[str, Any] = {"draws": 250, "chains": 2}
#: Back-ends with few draws.
SHORT = HMC(warmup=100, **_FEW), PGGibbs(warmup=100, **_FEW), NUTS(warmup=250, **_FEW)
# Most rows of short chains for a quick answer where there is a mode.
_MANY_ROWS = 50_000


def default_backend(program: Program[Any]) -> Backend:
    """An exact back-end that suits a program."""
    if detection.chooses(program) and not program.is_joint:
        # Where types have few members, the metric takes longer to find.
        warmup = 500 if program.counts_classes else 200
        return HMC(draws=500, warmup=warmup, longest=_LONGEST)
    if not isinstance(program.data, Labels | Arguments):
        return HMC(longest=_LONGEST)
    gibbs = PGGibbs(longest=_LONGEST)
    known = isinstance(program.data, Labels) or program.counts_classes
    # Sites of no block, such as whitened scales, may enter the likelihood by themselves.
    if gibbs.why_not(program) is None and (known or not plans.plan_of(program).reaching):
        return gibbs
    return NUTS()


def quick_backend(program: Program[Any]) -> Backend:
    """Short chains where these are as fast as an approximation and truer, or a mode."""
    is_short, mode = program.data.num_rows <= _MANY_ROWS, PGEM()
    if isinstance(default_backend(program), HMC) and (is_short or mode.why_not(program)):
        return HMC(draws=200, warmup=100, chains=2)
    return mode if mode.why_not(program) is None else SVI()


def short_backend(program: Program[Any]) -> Backend:
    """An exact back-end with few draws, for the next question of a campaign."""
    kind = type(default_backend(program))
    return next(one for one in SHORT if isinstance(one, kind))
