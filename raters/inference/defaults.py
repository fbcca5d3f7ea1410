"""Back-ends for models where none is given.

Measured by ``benchmarks/default_backends.py``: Hamiltonian Monte Carlo has the most effective draws
per second, but of labels, of which Gibbs has.
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
    model, gibbs = program.model, PGGibbs(longest=_LONGEST)
    if gibbs.why_not(program) is not None:
        return NUTS()
    declares = model.blocks is not None or model.symmetries or model.facts
    # Sites of no block, such as whitened scales, may enter the likelihood by themselves.
    whole = declares or program.counts_classes or not plans.plan_of(program).reaching
    return gibbs if whole else NUTS()


def quick_backend(program: Program[Any]) -> Backend:
    """Short chains where these are as fast as an approximation and truer, or a mode."""
    is_short, mode = program.data.num_rows <= _MANY_ROWS, PGEM()
    if isinstance(default_backend(program), HMC) and (is_short or mode.why_not(program)):
        return HMC(draws=200, warmup=100, chains=2)
    return mode if mode.why_not(program) is None else SVI()


def short_backend(program: Program[Any]) -> Backend:
    """An exact back-end with few draws, for the next question of a campaign."""
    backend: Any = type(default_backend(program))
    return backend(draws=250, warmup=250 if backend is NUTS else 100, chains=2)
