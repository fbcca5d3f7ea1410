"""Back-ends for models where none is given.

Measured by ``benchmarks/default_backends.py``: Hamiltonian Monte Carlo has more effective draws per
second than Gibbs on votes and responses, but where effects of a learned scale are hardly known; the
No-U-Turn Sampler is the one without divergences where slopes are learned from little.
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
from raters.judgements.answers import Responses
from raters.judgements.comparisons import Comparisons
from raters.program import Program

# Times as many draws as usual that chains may take.
_LONGEST = 16
# Responses of each person, votes in all, and annotators with a learned spread of competences, from
# which on parameters are known well enough for Hamiltonian Monte Carlo.
_FEWEST, _FEWEST_VOTES, _FEWEST_ANNOTATORS = 8, 500, 5
# Most rows of short chains for a quick answer where there is a mode.
_MANY_ROWS = 50_000
# Effects of a learned scale, of which few votes tell, and slopes.
_EFFECTS, _SLOPES = {"taste", "deviation"}, {"slope", "discrimination"}


def default_backend(program: Program[Any]) -> Backend:
    """An exact back-end that suits a program."""
    if detection.chooses(program) and not program.is_joint:
        # Where types have few members, the metric takes longer to find.
        warmup = 500 if program.counts_classes else 200
        return HMC(draws=500, warmup=warmup, longest=_LONGEST)
    data, gibbs, hmc = program.data, PGGibbs(longest=_LONGEST), HMC(longest=_LONGEST)
    if not program.counts_classes and hmc.why_not(program) is None:
        if isinstance(data, Responses):
            few = data.num_judgements < _FEWEST * data.num_persons
            return hmc if not few or _SLOPES.isdisjoint(program.sites) else NUTS()
        if isinstance(data, Comparisons):
            few = data.num_judgements < _FEWEST_VOTES or not _EFFECTS.isdisjoint(program.sites)
            spread = "competence_spread" in program.sites
            if not few and not (spread and data.num_annotators < _FEWEST_ANNOTATORS):
                return hmc
    model = program.model
    # Own priors may not be conjugate.
    reason = gibbs.why_not(program) if model.prior else plans.why_not(program)
    if program.is_joint or reason is not None:
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
    try:
        has_blocks = detection.chooses(program) or bool(detection.names_of(program))
    except NotImplementedError:
        has_blocks = False
    if has_blocks and not program.is_joint:
        return PGGibbs(draws=250, warmup=100, chains=2)
    return NUTS(draws=250, warmup=250, chains=2)
