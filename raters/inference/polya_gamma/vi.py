"""Mean-field variational inference from the Pólya-Gamma conditionals, with corrected spreads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to
from tqdm.auto import tqdm

from raters.errors import ConvergenceWarning
from raters.errors.validation import plain_whole, positive
from raters.inference.arrays import PerDraw, Rng
from raters.inference.base import (
    Backend,
    Draws,
    Start,
    centre,
    numpy_seeds,
    one_blas_thread,
    progress_bar,
)
from raters.inference.polya_gamma import (
    bilinear,
    detection,
    laplace,
    latent_classes,
    response,
    sets,
    sweep,
)
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.em import another_start
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.laplace_classes import around_classes, is_small
from raters.inference.polya_gamma.mean_field import MeanField, State
from raters.model import Permute, Rotation, Values
from raters.program import Program, pointwise_log_likelihood, start_of

# Draws times rows up to which the density of the draws is computed, and so their weights.
_MUCH_WORK = 2e9
# Up to so many rows, entries and hyper-parameters, the draws are around several values of these.
_MANY_ROWS, _MANY_ENTRIES, _MOST_HYPER = 20_000, 1000, 3
# Sweeps at each value; steps to the middle of the values, at first of this width in unconstrained
# coordinates, between these two later; and steps outwards, until the evidence is so much lower.
_SETTLING, _CENTRINGS, _OUTWARDS, _LOW = 5, 5, 5, 4.0
_FIRST_WIDTH, _NARROWEST, _LONGEST = 0.15, 0.02, 0.6
# Starts of a mixture of types.
_STARTS = 10


class Ascent(NamedTuple):
    """Run of coordinate ascent: the last state, the bound after each sweep, and whether it
    converged."""

    state: State
    bound: Float[np.ndarray, " sweep"]
    converged: bool


@dataclass(frozen=True)
class PGVI(Backend):
    r"""Mean-field variational inference from the conditionals of `PGGibbs`, with spreads corrected
    by linear response: a quick look with means where Gibbs sampling has them.

    A sweep averages what `PGGibbs` draws. With independent distributions q of the blocks, of the
    Pólya-Gamma variables and of latent classes, it increases

    .. math:: \mathrm{ELBO} = \sum_m \left[\kappa_m \mathrm E\,\psi_m
        - n_m \log 2 \cosh \tfrac{c_m}{2}\right]
        + \mathrm E \log p(x \mid v) + \log p(v) + \mathrm H(q), \qquad
        c_m = \sqrt{\mathrm E\, \psi_m^2},

    with :math:`\mathrm E\,\omega_m = n_m \tanh(c_m / 2) / (2 c_m)` (Jaakkola and Jordan 2000;
    Durante and Rigon 2019). Hyper-parameters v are at the maximum of the bound.

    Mean-field spreads are too small: the draws have the covariance by which the means respond to a
    change of the density (Giordano, Broderick and Jordan 2018), and are corrected by importance
    weights. With latent classes they are those of `PGEM`, set out from the means.

    Parameters
    ----------
    draws : int
        Number of draws; 0 returns the means as a single draw.
    starts : int, optional
        Number of starting points, of which that with the highest bound is used. By default 10 for a
        mixture of types, and 1 otherwise.
    tolerance : float
        Stop when a sweep increases the bound by less than this, in nats.
    max_sweeps : int
        Largest number of sweeps; a warning is given when the bound still rises then.

    References
    ----------
    Jaakkola and Jordan (2000), Statistics and Computing 10, 25–37. Durante and Rigon (2019),
    Statistical Science 34, 472–485. Giordano, Broderick and Jordan (2018), JMLR 19(51), 1–49.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGVI(), seed=0, progress=False)
    >>> bool((result["optimisation"]["elbo"].diff("step") > -1e-9).all())
    True
    """

    draws: int = 1000
    starts: int | None = None
    tolerance: float = 1e-4
    max_sweeps: int = 500

    exact: ClassVar[bool] = False

    reference: ClassVar[str] = "polson2013bayesian durante2019conditionally giordano2018covariances"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", least=0)
        plain_whole(self, "starts", optional=True)
        positive("tolerance", self.tolerance)
        plain_whole(self, "max_sweeps")

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse models without blocks, choices from sets, sites that turn together, sites that are
        in no block and reach the likelihood, and blocks whose averages are not known."""
        if reason := super().why_not(program):
            return reason
        name = program.model.title
        if program.model.own:
            return f"PGVI has no averages of the vectors of judges in {name}; use PGEM or NUTS"
        if reason := sweep.why_not(program):
            return reason
        if program.mesh is not None:
            return "PGVI does not divide the rows over a mesh; use PGEM or SVI, or leave mesh out"
        if sets.chooses(program):
            return "PGVI has no averages of choices from sets; use PGEM or PGGibbs"
        turns = [one for one in program.model.symmetries if isinstance(one, Rotation)]
        if turns:
            # Their products vanish together where the data tell little of them, at a point that is
            # no maximum.
            sites = " and ".join(turns[0].sites)
            return f"PGVI takes {sites}, which turn together, as independent; use PGGibbs or NUTS"
        if sweep.steep_sites(program):
            return f"PGVI has no averages of the sites of {name} outside of its blocks; use PGEM"
        sample = program.sample(2)
        start = start_of(program.model, sample)
        with jax.enable_x64(True):
            return _why_not_averaged(program, sample, start)

    def run(
        self, program: Program[Any], key: Array, *, start: Start = None, progress: bool = False
    ) -> Draws:
        """Average from the model's start or the centre of earlier draws."""
        with jax.enable_x64(True), one_blas_thread(), progress_bar(1, "PGVI", progress) as bar:
            model, data = program.model, program.data
            first = start_of(model, data)
            plan = sweep.plan(program, first)
            types = any(isinstance(symmetry, Permute) for symmetry in model.symmetries)
            starts = self.starts or (_STARTS if types else 1)
            seeds = numpy_seeds(key, starts + 1)
            first = first if start is None else centre(model, start)
            field = MeanField(plan, sweep.on_devices(program), first)
            best = self._ascent(field, first, bar)
            for seed in seeds[1:starts]:
                rng = np.random.default_rng(seed)
                other = self._ascent(
                    field, another_start(model, data, first, plan.supports, rng), bar
                )
                best = other if other.bound[-1] > best.bound[-1] else best
            if not best.converged:
                warnings.warn(
                    f"PGVI stopped after {self.max_sweeps} sweeps while the ELBO still rose by"
                    f" {best.bound[-1] - best.bound[-2]:.2g} a sweep (tolerance"
                    f" {self.tolerance:g}); allow more sweeps",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            values, stats = self._drawn(field, best.state, np.random.default_rng(seeds[-1]))
        facts = {
            "converged": int(best.converged),
            "elbo": float(best.bound[-1]),
            "sweeps": len(best.bound),
        }
        return Draws(values, stats, {"elbo": best.bound}, facts)

    def _ascent(self, field: MeanField, values: Values, bar: tqdm) -> Ascent:
        """Sweep until the bound settles."""
        # At the start nothing has a spread, and the bound is not finite.
        state = field.sweep(field.start(values))[1]
        history: list[float] = []
        while len(history) < self.max_sweeps + 1:
            bound, ahead = field.sweep(state)
            history.append(bound)
            bar.set_postfix(elbo=f"{bound:.4f}", refresh=False)
            if len(history) > 1 and history[-1] - history[-2] < self.tolerance:
                return Ascent(state, np.array(history), True)
            state = ahead
        return Ascent(state, np.array(history), False)

    def _drawn(self, field: MeanField, state: State, rng: Rng) -> tuple[Values, Values]:
        """Draw around the means; return the draws of each site, and their log-densities."""
        plan, values = field.setting.plan, field.means(state)
        if not self.draws:
            return {name: np.asarray(value)[None, None] for name, value in values.items()}, {}
        parameters = sum(np.size(value) for value in values.values())
        small = is_small(parameters, field.data.num_rows)
        if plan.classes and small:
            draws, stats = around_classes(plan, field.data, values, self.draws, rng)
            return {name: value[None] for name, value in draws.items()}, stats
        size = sum(len(normal.mean) for normal in state.normals)
        log_q = None
        if plan.classes or size > DENSE_LIMIT:
            draws = field.draws(state, self.draws, rng)
        else:
            states = _along_hyper(field, state)
            draws, log_q = response.drawn(field, states, self.draws, rng)
        draws |= {
            name: np.repeat(np.asarray(value)[None], self.draws, 0)
            for name, value in state.hyper.items()
        }
        log_prior, draws = integrated(plan, field.row, draws, rng)
        stats = {}
        if log_q is not None and field.data.num_rows * self.draws <= _MUCH_WORK:
            log_p = log_prior + _log_likelihoods(field, values, draws)
            stats = {"log_p": log_p[None], "log_q": log_q[None]}
        return {name: value[None] for name, value in draws.items()}, stats


def _along_hyper(field: MeanField, state: State) -> list[State]:
    """Return approximations at several values of each hyper-parameter."""
    plan = field.setting.plan
    names = tuple(name for name in plan.hyper if np.ndim(state.hyper[name]) == 0)
    size = sum(len(normal.mean) for normal in state.normals)
    many = field.data.num_rows > _MANY_ROWS or size > _MANY_ENTRIES
    if plan.scales or many or not 0 < len(names) <= _MOST_HYPER:
        return [state]

    def moved(state: State, name: str, step: float) -> tuple[float, State]:
        transform = biject_to(plan.supports[name])
        there = transform(transform.inv(state.hyper[name]) + step)
        state = state._replace(hyper=state.hyper | {name: np.asarray(there)})
        for _ in range(_SETTLING):
            state = field.sweep(state, names)[1]
        return response.Component(field, state).log_evidence(field, state), state

    width = dict.fromkeys(names, _FIRST_WIDTH)
    for name in names * 2:
        for _ in range(_CENTRINGS):
            step = min(width[name], _FIRST_WIDTH)
            below, level, above = (moved(state, name, sign * step)[0] for sign in (-1, 0, 1))
            curvature = (2 * level - below - above) / step**2
            ahead = np.sign(above - below) * _LONGEST
            if curvature > 0:
                ahead = np.clip((above - below) / (2 * step * curvature), -_LONGEST, _LONGEST)
                width[name] = float(np.clip(curvature**-0.5, _NARROWEST, _LONGEST))
            state = moved(state, name, float(ahead))[1]
            if abs(ahead) < width[name] / 2:
                break
    states, best = [state], moved(state, names[0], 0.0)[0]
    for name in names:
        for sign in (-1, 1):
            here = state
            for _ in range(_OUTWARDS):
                evidence, here = moved(here, name, sign * width[name])
                states.append(here)
                if best - evidence > _LOW:
                    break
    return states


def _log_likelihoods(field: MeanField, means: Values, draws: Values) -> PerDraw:
    """Return the log-likelihood of each draw, of much data by an expansion at the means."""
    plan, data = field.setting.plan, field.data
    number = len(next(iter(draws.values())))
    much = data.num_rows * number >= laplace.MUCH_WORK
    if not much or len(plan.blocks) > 1:
        return laplace.pass_over_rows(plan, data, draws, narrow=much)
    normal = laplace.information(plan, data, means, draws=True)[1]
    return laplace.log_likelihoods_of(plan, data, means, draws, normal)


def _why_not_averaged(program: Program[Any], sample: Any, start: Values) -> str | None:
    """Explain which site has no average, or return None."""
    model, name = program.model, program.model.title
    blocks = sweep.blocks_of(program, sample, start)
    for block in blocks:
        site = block.sites[0]
        if block.kind == "class":
            return f"PGVI has no averages of the classifier of {name}; use PGEM or PGGibbs"
        if block.kind == "counts":
            fn = latent_classes.site_prior(model, sample, start, site)
            if not isinstance(fn, dist.Dirichlet):
                kind = type(fn).__name__
                return (
                    f"the prior of {site!r} of {name} is {kind}; PGVI needs a Dirichlet: use PGEM"
                )
    in_blocks = {site for block in blocks for site in block.sites}
    for site in program.sites:
        if site not in in_blocks and detection.depends(
            pointwise_log_likelihood, model, sample, start, (site,)
        ):
            return f"PGVI has no averages of {site!r} of {name}, which is in no block; use PGEM"
    normal = tuple(dict.fromkeys(block.sites for block in blocks if block.kind != "counts"))
    try:
        owners = bilinear.owners_of(model, sample, start, normal)
    except NotImplementedError as error:
        return f"PGVI cannot average the rows of {name}: {error}; use PGEM or PGGibbs"
    for number, sites in enumerate(normal):
        size = sum(int(np.prod(program.sites[site].shape)) for site in sites)
        if len(owners.slots(number)) > 1 and size > DENSE_LIMIT:
            which = f"{size:,} entries of {', '.join(sites)} (at most {DENSE_LIMIT:,})"
            return f"PGVI would hold the covariances of the {which}; use PGEM"
    return None
