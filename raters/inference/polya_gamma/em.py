"""Pólya-Gamma EM to the posterior mode, with Laplace draws around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from tqdm.auto import tqdm

from raters.errors.validation import boolean, plain_whole, positive
from raters.inference import base
from raters.inference.arrays import Rng
from raters.inference.polya_gamma import detection, latent_classes, plans, scales, sweep, tables
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.gibbs import Kernel
from raters.inference.polya_gamma.hmc import HMC
from raters.inference.polya_gamma.laplace import laplace
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.sums import How
from raters.inference.polya_gamma.unconstrained import coordinates, placed
from raters.model import Exchange, Model, Permute, Several, Values, marginal_of
from raters.program import Program, densities, placing, scattered, start_of

# Where so many units have no class of a higher probability, EM may be at a saddle point.
_EVEN, _EVEN_UNITS = 0.6, 0.05
# Sweeps of the Gibbs run that estimates the hyper-parameters; the first third is warm-up.
_GIBBS_SWEEPS = 150
# Nats for each parameter within which the mode is found while hyper-parameters are estimated.
_LOOSE = 1e-3


@dataclass(frozen=True)
class PGEM(base.Backend):
    r"""Pólya-Gamma EM to the posterior mode, with Laplace draws around it.

    A sweep replaces every ω by its mean :math:`n\tanh(\psi/2)/(2\psi)` and sets each block to the
    mode of its Gaussian (or truncated Gaussian) conditional, then maximises along the orbit of each
    scale symmetry. The log joint density given the hyper-parameters never decreases. The
    accelerated variant uses Newton's weights :math:`n\sigma(1-\sigma)` in the same linear systems
    and SQUAREM extrapolation; steps that would decrease the density are undone.

    Hyper-parameters (the learned scales) are fixed in EM, as the joint mode has scales of zero.
    They are estimated first, over a short Gibbs run or, with many data, at the mode of their
    marginal posterior. The draws are from a Laplace approximation at the mode.

    Choices from sets and rankings have no ω: their mode is found by L-BFGS.

    Of a model that can integrate a site out, such as the abilities of persons in `Rasch`, the mode
    is that of the other sites, with ``marginal_log_likelihood`` in the result's attributes.

    Parameters
    ----------
    draws : int
        Number of Laplace draws; 0 returns the mode as a single draw.
    starts : int, optional
        Number of starting points, of which the best mode is used. By default 10 for a mixture of
        types; 1 for a model with one block or with latent classes; 4 otherwise.
    accelerate : bool
        Use Newton's weights and SQUAREM; otherwise plain EM.
    tolerance : float
        Stop when a cycle increases the log joint density by less than this, in nats.
    max_sweeps : int
        Largest number of sweeps; a warning is given when EM has not converged by then.

    References
    ----------
    Polson, Scott and Windle (2013), JASA 108, 1339–1349. Varadhan and Roland (2008), Scand. J.
    Stat. 35, 335–353, for SQUAREM.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> bool((result["optimisation"]["log_joint"].diff("sweep") > -1e-9).all())
    True
    """

    draws: int = 1000
    starts: int | None = None
    accelerate: bool = True
    tolerance: float = 1e-6
    max_sweeps: int = 2000

    exact: ClassVar[bool] = False

    reference: ClassVar[str] = "polson2013bayesian varadhan2008simple"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", least=0)
        plain_whole(self, "starts", optional=True)
        boolean("accelerate", self.accelerate)
        positive("tolerance", self.tolerance)
        plain_whole(self, "max_sweeps")

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse models without blocks or a mode, and distributions without an augmentation."""
        if reason := super().why_not(program) or detection.why_no_mode(program):
            return reason
        if isinstance(marginal := marginal_of(program.model, program.data), str):
            return marginal
        if marginal is not None:
            program = Program(marginal.model, marginal.data)
            reason = program.model.why_not(program.data)
            if reason or not detection.names_of(program):
                return reason
        return plans.why_not(program) or self._why_no_mode(program)

    def _why_no_mode(self, program: Program[Any]) -> str | None:
        """Explain why several kinds or choices have no mode, or no draws around it."""
        if not program.is_joint and not detection.chooses(program):
            return None
        for name, part in program.parts.items():
            marginal = marginal_of(part.model, part.data)
            if isinstance(marginal, str):
                return f"part {name!r}: {marginal}"
            if marginal is not None:
                which = f"PGEM integrates {marginal.site!r} of {part.model.title} out"
                return f"part {name!r}: {which}, in one kind of judgement only; use PGGibbs or NUTS"
        plan = plans.plan_of(program)
        if not (plan.blocks or plan.chooses):
            title = program.model.title
            return f"{title} has no site that EM updates by a block; use HMC, NUTS or SVI"
        moved = {*plan.steep, *(name for block in plan.blocks for name in block.sites)}
        model: Any = program.model
        tied = [one for group in model.tied for one in group] if plan.is_joint else []
        if loose := {model.site_name(*one) for one in tied} - moved:
            name = min(loose)
            return f"{name!r} is tied, and its entries are not independent; use PGGibbs or NUTS"
        estimated = [site for name, site in program.sites.items() if name not in plan.hyper]
        size = sum(int(np.prod(site.shape)) for site in estimated)
        if self.draws and size > DENSE_LIMIT and not plan.chooses:
            what = f"draws around a mode of {size:,} numbers (at most {DENSE_LIMIT:,})"
            return f"PGEM has no {what}; PGEM(draws=0) gives the mode, and PGGibbs draws"
        return None

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Estimate the hyper-parameters, run EM from each start, and draw around the best mode."""
        if (marginal := marginal_of(program.model, program.data)) is None:
            return self._run(program, key, start, progress)
        assert not isinstance(marginal, str)
        own = None if start is None else {n: v for n, v in start.items() if n != marginal.site}
        draws = self._run(Program(marginal.model, marginal.data), key, own, progress)
        return tables.added(
            program, marginal, draws, np.random.default_rng(base.numpy_seeds(key, 1)[0])
        )

    def _run(
        self, program: Program[Any], key: Array, start: base.Start, progress: bool
    ) -> base.Draws:
        """Run EM on a program as it is."""
        with jax.enable_x64(True), base.progress_bar(1, "PGEM", progress) as bar:
            model = program.model
            first = start_of(model, program.data)
            plan = plans.plan(program, first)
            types = any(isinstance(symmetry, Permute) for symmetry in model.symmetries)
            groups = plan.steep if plan.chooses and not plan.blocks else plan.blocks
            few = len(groups) == 1 or plan.classes
            starts = self.starts or (10 if types else 1 if few else 4)
            seeds = base.numpy_seeds(key, starts + 2)
            bar.reset(starts)
            data = sweep.on_devices(program)
            warmup = _GIBBS_SWEEPS // 3 if start is None else 0
            first = first if start is None else base.centre(model, start)
            climber = _Climber(self, program, plan, data, bar)
            hyper, fitted = climber.hyper(first, seeds[-1], warmup)
            first = fitted if start is None else first
            climbs = [climber.climb(first | hyper)]
            bar.update()
            for seed in seeds[1:starts]:
                rng = np.random.default_rng(seed)
                # Starts use the data on the host, since compiled functions would be compiled anew
                # for each selection of rows.
                values = another_start(model, program.data, first, plan.supports, rng)
                climbs.append(climber.climb(values | hyper))
                bar.update()
            best = max(climbs, key=lambda climb: climb.objective[-1])
            best = climber.off_saddle(best, seeds[-2].spawn(1)[0])
            facts = self._report(climbs, best)
            draws, stats = climber.draws(best.values, np.random.default_rng(seeds[-2]))
        mode = {name: np.asarray(value) for name, value in best.values.items()}
        return base.Draws(draws, stats, {"log_joint": best.objective}, facts, mode)

    def _report(self, climbs: list[sweep.Ascent], best: sweep.Ascent) -> dict[str, Any]:
        """Return facts about convergence, and warn when the best run has not converged."""
        if not best.converged:
            rise = best.objective[-1] - best.objective[-2] if len(best.objective) > 1 else np.inf
            limits = {"sweeps": self.max_sweeps, "tolerance": self.tolerance}
            base.warn(base.worded("still_climbing", rise=rise, **limits))
        maxima = np.array([climb.objective[-1] for climb in climbs])
        return {
            "converged": int(best.converged),
            "log_joint": float(best.objective[-1]),
            "starts": len(climbs),
            "starts_at_best": int(np.sum(maxima > maxima.max() - 0.01)),
            "sweeps": len(best.objective),
        }


def _is_even(classes: Any) -> bool:
    """Return whether many units have no class of a higher probability."""
    return bool(np.mean(np.max(classes, axis=1) < _EVEN) >= _EVEN_UNITS)


def another_start(
    model: Model[Any], data: Any, start: Values, supports: dict[str, Any], rng: Rng
) -> Values:
    """Return a random start: the model's own, or this one with random changes."""
    drawn = model.another_start(data, rng) if isinstance(model, Several) else None
    if drawn is None:
        return scattered(start, supports, rng)
    return {name: np.asarray(value, np.float64) for name, value in drawn.items()}


def _slack(value: float) -> float:
    """Return the rounding error of a log joint density of this size."""
    return 1e-11 * (1 + abs(value))


class _Climber:
    """Sweeps of EM over a data set, from one start after the other."""

    def __init__(
        self, settings: PGEM, program: Program[Any], plan: Plan, data: Any, bar: tqdm
    ) -> None:
        self.settings, self.program = settings, program
        self.whole, self.plan = plan, plan.holding_hyper()
        self.data, self.bar, self.row = data, bar, placing.first_unit(data)
        self.constant: float | None = None
        self.supports = plan.supports
        self.counted = {block.sites[0] for block in plan.blocks if block.kind == "counts"}
        self.key = jax.random.key(0)
        self.sweeps = 0

    def hyper(
        self, values: Values, seed: np.random.SeedSequence, warmup: int
    ) -> tuple[Values, Values]:
        """Estimate the hyper-parameters; return them and the values found with them."""
        plan, rng = self.whole, np.random.default_rng(seed)
        if scales.applies(plan, self.data, values):
            size = sum(np.size(value) for value in values.values())
            tolerance = max(self.settings.tolerance, _LOOSE * size)
            loose = replace(self.settings, tolerance=tolerance)
            silent = base.progress_bar(1, "", False)
            climber = _Climber(loose, self.program, plan, self.data, silent)
            fitted = scales.fixed_point(
                plan, self.data, values, lambda values: climber.climb(values).values, rng
            )
            if fitted is not None:
                return {name: fitted[name] for name in plan.hyper}, fitted
            rng = np.random.default_rng(seed)
        if not plan.hyper:
            return {}, {name: np.asarray(value) for name, value in values.items()}
        # Stochastic EM: averages over a short run of an exact sampler.
        number = _GIBBS_SWEEPS - _GIBBS_SWEEPS // 3
        if plan.chooses:
            short = HMC(draws=number, warmup=_GIBBS_SWEEPS // 3, chains=1)
            start = {name: np.asarray(value)[None, None] for name, value in values.items()}
            key = jax.random.key(int(rng.integers(2**31)))
            drawn = short.run(self.program, key, start=start).values
            drawn = {name: value[0] for name, value in drawn.items()}
        else:
            drawn = Kernel.of(self.program, values).run(values, rng, warmup + number)
        centres = {
            name: np.mean(biject_to(self.supports[name]).inv(drawn[name][-number:]), 0)
            for name in plan.hyper
        }
        at = placed(self.supports, centres)[0]
        means = {name: np.asarray(value) for name, value in at.items()}
        return means, {name: value[-1] for name, value in drawn.items()}

    def climb(self, values: Values) -> sweep.Ascent:
        """Run EM from one start, with fixed hyper-parameters; without blocks, L-BFGS."""
        settings, plan = self.settings, self.plan
        if not plan.blocks:
            limits = settings.max_sweeps, settings.tolerance
            ascent = sweep.climb_steep(plan, self.data, values, *limits)
            self.bar.set_postfix(log_joint=f"{ascent.objective[-1]:.4f}", refresh=False)
            return ascent
        self.sweeps, newton = 0, settings.accelerate
        # Newton's method in one block converges quadratically: nothing is left to extrapolate.
        moved = plan.classes or plan.steep or plan.free or plan.scales
        alone = newton and len(plan.blocks) == 1 and not (moved or any(plan.ties))
        value, ahead = self.sweep(values, newton)
        objective = [value]
        while self.sweeps < settings.max_sweeps:
            before = objective[-1]
            first = ahead
            value, second = self.sweep(first, newton)
            if value < before - _slack(before):
                # Newton's step was too long; that of EM from the same point cannot be.
                first = self.sweep(values, False)[1]
                value, second = self.sweep(first, False)
            if value < before - _slack(before):  # No increase is left beyond rounding.
                return sweep.Ascent(values, np.array(objective), True)
            objective.append(value)
            # After so short a step of Newton's method the next one would be rounding.
            if alone and all(np.allclose(first[name], second[name], 1e-8, 1e-8) for name in first):
                return sweep.Ascent(first, np.array(objective), True)
            leap_value = -np.inf
            if settings.accelerate and not alone:
                leap = self.extrapolate(values, first, second)
                leap_value, leap_ahead = self.sweep(leap, newton)
            if leap_value >= value:
                values, ahead = leap, leap_ahead
                objective.append(leap_value)
            else:
                values, ahead = first, second
            self.bar.set_postfix(log_joint=f"{objective[-1]:.4f}", refresh=False)
            if objective[-1] - before < settings.tolerance:
                return sweep.Ascent(values, np.array(objective), True)
        return sweep.Ascent(values, np.array(objective), False)

    def off_saddle(self, climb: sweep.Ascent, seed: np.random.SeedSequence) -> sweep.Ascent:
        """Climb on from near a point where votes are even, which EM does not leave by itself."""
        plan = self.plan
        if not any(isinstance(symmetry, Exchange) for symmetry in plan.model.symmetries):
            return climb
        by_part = sweep.expected_classes(plan, self.data, climb.values).values()
        if not any(map(_is_even, by_part)):
            return climb
        near = scattered(climb.values, plan.supports, np.random.default_rng(seed), least=0.9)
        again = self.climb(near | {name: climb.values[name] for name in self.whole.hyper})
        return again if again.objective[-1] > climb.objective[-1] else climb

    def draws(self, mode: Values, rng: Rng) -> tuple[Values, Values]:
        """Draw around the mode, with the log densities of the draws."""
        number, plan = self.settings.draws, self.plan
        if number and not (plan.blocks or plan.chooses):
            shared = tables.Tables.of(self.program, mode)
            if shared is not None and shared.is_large(mode, number):
                drawn = tables.draws(shared, mode, number, rng)
                return {name: value[None] for name, value in drawn.items()}, {}
        return laplace(self.whole, self.data, mode, number, rng)

    def sweep(self, values: Values, newton: bool) -> tuple[float, Values]:
        """Return the log joint density at `values`, and the values after a sweep from them."""
        self.sweeps += 1
        classes, objective = self._expectation(values)
        how = How.of("curvature" if newton else "mean", self.data)
        given = self.row, {name: jnp.asarray(value, float) for name, value in values.items()}
        ahead, of_first = sweep.climbed(self.plan, how, self.data, *given, classes)
        if objective is None:  # The rows of the first block were weighed at `values`.
            objective = float(of_first) + self._rest(values, float(of_first))
        values = ahead
        if self.plan.steep:
            values = sweep.climb_steep(self.plan, self.data, values).values
        if self.plan.free or self.plan.scales:
            values = sweep.visit_free(self.plan, self.row, self.data, values, self.key, False)
        return objective, {name: np.asarray(value) for name, value in values.items()}

    def _expectation(self, values: Values) -> tuple[dict[str, Any], float | None]:
        """Return the expected classes of each part, and the density if known."""
        plan, data = self.plan, self.data
        if plan.is_joint:
            density = float(sweep.objective(plan, data, values))
            classes = sweep.expected_classes(plan, data, values)
            return classes, density + self._volume(values)
        if not plan.classes:
            return {}, None
        classes, likelihood = latent_classes.expected(plan.model, data, values)
        prior = float(densities.prior_of(plan.model, self.row, values))
        return {"": classes}, float(likelihood) + prior + self._volume(values)

    def _volume(self, values: Values) -> float:
        """Return the log volume element of the sites with modes in logarithmic coordinates."""
        total = 0.0
        for name in self.plan.in_logs:
            total += np.log(values[name]).sum()
            if self.supports[name] is not constraints.simplex:
                total += np.log1p(-values[name]).sum()
        return float(total)

    def _rest(self, values: Values, likelihood: float) -> float:
        """Return the log prior density plus what is constant in all blocks."""
        if self.constant is None or self.plan.reaching:
            full = sum(
                float(densities.likelihood_of(self.plan.model, piece, values))
                for piece in placing.pieces(self.data)
            )
            self.constant = full - likelihood
        return float(densities.prior_of(self.plan.model, self.row, values)) + self.constant

    def extrapolate(self, *points: Values) -> Values:
        """Extrapolate from three points by SQUAREM's S3 step: probabilities that are counted, and
        free sites, in unconstrained coordinates, others within their bounds."""
        supports, curved = self.supports, (*self.counted, *self.plan.free)
        each = [point | coordinates(supports, point, curved) for point in points]
        unravel = ravel_pytree({name: jnp.asarray(each[0][name]) for name in supports})[1]
        flat = [np.concatenate([np.ravel(one[name]) for name in sorted(supports)]) for one in each]
        there = unravel(jnp.asarray(flat[0] + scales.leap(flat[0], flat[1], flat[2])))
        there |= placed(supports, {name: there[name] for name in curved})[0]
        values = {}
        for name, support in supports.items():
            low = getattr(support, "lower_bound", -np.inf)
            high = getattr(support, "upper_bound", np.inf)
            if name in self.counted:
                low, high = latent_classes.LEAST, 1 - latent_classes.LEAST
            values[name] = np.clip(there[name], low, high)
        return values
