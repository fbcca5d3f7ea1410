"""Pólya-Gamma EM to the posterior mode, with Laplace draws around it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from scipy.special import expit, logit, softmax
from threadpoolctl import threadpool_limits

from raters._check import boolean, one_of, positive, whole
from raters.errors import ConvergenceWarning
from raters.inference import _classes, _polyagamma, _sweep
from raters.inference._laplace import laplace
from raters.inference._trace import latent_sites, likelihood_of, prior_of, scattered
from raters.inference.base import Backend, Draws, centre, numpy_seeds, progress_bar
from raters.inference.pg_gibbs import gibbs_sweep
from raters.model import Model, Permute, Values

# Sweeps of the Gibbs run that settles the hyper-parameters; the first third is left out of their average.
_GIBBS_SWEEPS = 150


class Climb(NamedTuple):
    """One run of EM: where it ended, the log joint density after each sweep, and whether it stopped by itself."""

    values: Values
    objective: np.ndarray
    converged: bool


@dataclass(frozen=True)
class PGEM(Backend):
    r"""Pólya-Gamma EM to the posterior mode, with Laplace draws around it.

    A sweep replaces every ω by its mean :math:`n\tanh(\psi/2)/(2\psi)` and sets each block to the mode of its Gaussian (or
    truncated Gaussian) conditional, then maximises along the orbit of each scale symmetry. The log joint density given
    the hyper-parameters never falls. The accelerated variant first tries Newton's weights :math:`n\sigma(1-\sigma)` in the same
    linear systems and extrapolates by SQUAREM; whatever would lower the density is undone.

    Hyper-parameters (the learned scales) are held while EM climbs: a joint mode would drive them to zero, whatever the
    data, because the density of N rewards grows like scale to the power −N. They are estimated first by stochastic EM: the
    average over a short Gibbs run, which also gives the first start. A model without learned scales needs no such run.

    The draws are from a Laplace approximation: normal with the Fisher information at the mode, bounded sites mapped
    to truncated normals; hyper-parameters and orbits are then redrawn given the rest. ``log_p`` and ``log_q`` are those of the
    normal step, given the hyper-parameters, for ``arviz.loo_approximate_posterior``.

    Parameters
    ----------
    draws : int
        Laplace draws; 0 keeps the mode alone, as a single draw.
    starts : int, optional
        Starting points, of which the best end is kept. By default 4; 10 for a mixture of types, each drawn by the model; 1
        for a model with one block, and for one of labels with latent classes: the votes say where to begin, and further
        starts may find ends of higher density and worse labels.
    accelerate : bool
        Newton weights and SQUAREM, or plain EM.
    update : {"block", "coordinate"}
        Solve each block jointly, or pass through its entries one by one as the paper of Extended-BTL does.
    tolerance : float
        Stop when a cycle raises the log joint density by less than this.
    max_sweeps : int
        Stop after so many sweeps, with a warning.

    References
    ----------
    Polson, Scott and Windle (2013), JASA 108, 1339–1349. Varadhan and Roland (2008), Scand. J. Stat. 35, 335–353, for
    SQUAREM.

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
    update: Literal["block", "coordinate"] = "block"
    tolerance: float = 1e-6
    max_sweeps: int = 2000

    exact: ClassVar[bool] = False

    reference: ClassVar[str] = (
        _polyagamma.REFERENCE
        + r"""
    @article{varadhan2008simple,
      author  = {Varadhan, Ravi and Roland, Christophe},
      title   = {Simple and Globally Convergent Methods for Accelerating the Convergence of Any {EM} Algorithm},
      journal = {Scandinavian Journal of Statistics},
      year    = {2008},
      volume  = {35},
      number  = {2},
      pages   = {335--353},
      doi     = {10.1111/j.1467-9469.2007.00585.x},
    }
    """
    )

    def __post_init__(self) -> None:
        whole("draws", self.draws, least=0)
        if self.starts is not None:
            whole("starts", self.starts)
        boolean("accelerate", self.accelerate)
        one_of("update", self.update, ("block", "coordinate"))
        positive("tolerance", self.tolerance)
        whole("max_sweeps", self.max_sweeps)

    def why_not(self, model: Model, data: Any) -> str | None:
        """The model must declare blocks, and the observed distribution and priors must be ones that augmentation covers."""
        return model.why_not(data) or _sweep.why_not(model, data)

    def run(self, model: Model, data: Any, key: jax.Array, *, start: Values | None = None, progress: bool = False) -> Draws:
        """Settle the hyper-parameters, climb from each start, keep the best end, and draw around it.

        The first start is the model's own, or the middle of earlier draws where these are given; from there the
        hyper-parameters need no sweeps to settle in.
        """
        with jax.enable_x64(True), threadpool_limits(1, user_api="blas"), progress_bar(1, "PGEM", progress) as bar:
            first = {name: np.asarray(value, np.float64) for name, value in model.start(data).items()}
            plan = _sweep.plan(model, data, first)
            starts = self.starts or _usual_starts(plan)
            seeds = numpy_seeds(key, starts + 2)
            bar.reset(starts)
            # Starts select rows, which compiled functions would be compiled for each time.
            host, data = data, _sweep.on_device(data)
            if start is None:
                hyper, first = self._empirical_bayes(plan, data, first, seeds[-1], settle=_GIBBS_SWEEPS // 3)
            else:
                first = centre(model, start)
                hyper, _ = self._empirical_bayes(plan, data, first, seeds[-1], settle=0)
            supports = {name: site.support for name, site in latent_sites(model, data).items()}
            climbs = []
            for number, seed in enumerate(seeds[:starts]):
                values = first if number == 0 else _another(model, host, first, supports, np.random.default_rng(seed))
                climbs.append(self._climb(plan, data, values | hyper, bar))
                bar.update()
            best = max(climbs, key=lambda climb: climb.objective[-1])
            facts = self._report(climbs, best)
            draws, stats = laplace(plan, data, best.values, self.draws, np.random.default_rng(seeds[-2]))
        mode = {name: np.asarray(value) for name, value in best.values.items()}
        return Draws(draws, stats, {"log_joint": best.objective}, facts, mode)

    def _empirical_bayes(self, plan: _sweep.Plan, data: Any, values: Values, seed, settle: int) -> tuple[Values, Values]:
        """Hyper-parameters averaged over a short Gibbs run, in unconstrained coordinates; and where the run ended."""
        rng = np.random.default_rng(seed)
        row = data.take(slice(0, 1))
        supports = {name: site.support for name, site in latent_sites(plan.model, row).items()}
        kept: dict[str, list[np.ndarray]] = {name: [] for name in plan.hyper}
        for number in range(settle + _GIBBS_SWEEPS - _GIBBS_SWEEPS // 3 if plan.hyper else 0):
            values = gibbs_sweep(plan, row, data, values, rng)
            for name in plan.hyper if number >= settle else ():
                kept[name].append(np.asarray(biject_to(supports[name]).inv(values[name])))
        hyper = {name: np.asarray(biject_to(supports[name])(np.mean(draws, 0))) for name, draws in kept.items()}
        return hyper, {name: np.asarray(value) for name, value in values.items()}

    def _climb(self, plan: _sweep.Plan, data: Any, values: Values, bar) -> Climb:
        """EM from one start, hyper-parameters held.

        The density at a point is known once the next sweep has passed over the rows, so every step is judged one sweep
        later and taken back if it went down.
        """
        climber = _Climber(plan.holding_hyper(), data, self.update)
        newton = self.accelerate and self.update == "block"
        value, ahead = climber.sweep(values, newton)
        objective = [value]
        while climber.sweeps < self.max_sweeps:
            before = objective[-1]
            first = ahead
            value, second = climber.sweep(first, newton)
            if value < before - _slack(before):  # Newton overshot: the EM step from the same point cannot.
                first = climber.sweep(values, False)[1]
                value, second = climber.sweep(first, False)
            if value < before - _slack(before):  # Only rounding is left to gain.
                return Climb(values, np.array(objective), True)
            objective.append(value)
            if self.accelerate:
                leap = climber.extrapolate(values, first, second)
                leap_value, leap_ahead = climber.sweep(leap, newton)
                if leap_value >= value:
                    values, ahead = leap, leap_ahead
                    objective.append(leap_value)
                else:
                    values, ahead = first, second
            else:
                values, ahead = first, second
            bar.set_postfix(log_joint=f"{objective[-1]:.4f}", refresh=False)
            if objective[-1] - before < self.tolerance:
                return Climb(values, np.array(objective), True)
        return Climb(values, np.array(objective), False)

    def _report(self, climbs: list[Climb], best: Climb) -> dict[str, Any]:
        """Facts about convergence; warns when the best climb was cut off."""
        if not best.converged:
            last = best.objective[-1] - best.objective[-2] if len(best.objective) > 1 else np.inf
            warnings.warn(
                f"EM stopped after {self.max_sweeps} sweeps while the log joint density still rose by {last:.2g} a step "
                f"(tolerance {self.tolerance:g}); raise PGEM(max_sweeps=...)",
                ConvergenceWarning,
                stacklevel=4,
            )
        ends = np.array([climb.objective[-1] for climb in climbs])
        return {
            "converged": int(best.converged),
            "log_joint": float(best.objective[-1]),
            "starts": len(climbs),
            "starts_at_best": int(np.sum(ends > ends.max() - 0.01)),
            "sweeps": len(best.objective),
        }


def _usual_starts(plan: _sweep.Plan) -> int:
    """How many starts a model needs."""
    if any(isinstance(symmetry, Permute) for symmetry in plan.model.symmetries):
        return 10
    return 1 if len(plan.blocks) == 1 or plan.classes else 4


def _another(model: Model, data: Any, start: Values, supports: dict[str, Any], rng: np.random.Generator) -> Values:
    """Another start: the model's own, or this one scattered."""
    drawn = model.another_start(data, rng)
    if drawn is None:
        return scattered(start, supports, rng)
    return {name: np.asarray(value, np.float64) for name, value in drawn.items()}


def _slack(value: float) -> float:
    """Rounding error of a log joint density of this size."""
    return 1e-11 * (1 + abs(value))


class _Climber:
    """Sweeps over one data set, and the extrapolation between them."""

    def __init__(self, plan: _sweep.Plan, data: Any, update: str):
        self.plan, self.data, self.update = plan, data, update
        self.row = data.take(slice(0, 1))
        self.supports = {name: site.support for name, site in latent_sites(plan.model, self.row).items()}
        self.counted = {block.sites[0] for block in plan.blocks if block.kind == "counts"}
        self.key = jax.random.key(0)
        self.sweeps = 0
        self.constant: float | None = None

    def sweep(self, values: Values, newton: bool) -> tuple[float, Values]:
        """The log joint density at `values`, and the values after a sweep from them."""
        weights_of = _polyagamma.curvature if newton else _polyagamma.expectation
        likelihoods: list[float] = []
        self.sweeps += 1
        start, classes, objective = values, None, -np.inf
        if self.plan.classes:
            classes, likelihood = _classes.expected(self.plan.model, self.data, start)
            objective = float(likelihood) + float(prior_of(self.plan.model, self.row, start)) + self._volume(start)

        def weights(_, logits, votes, kappa):
            omega, kappa, log_likelihood = weights_of(logits, votes, kappa)
            likelihoods.append(float(log_likelihood))
            return np.asarray(omega), np.asarray(kappa)

        for number, block in enumerate(self.plan.blocks):
            given = _sweep.block_conditional(self.plan, self.data, values, block, weights, classes, draws=False)
            if number == 0 and not self.plan.classes:  # The first pass over the rows has seen them all at `start`.
                objective = sum(likelihoods) + self._rest(start, sum(likelihoods))
            solve = given.coordinate if self.update == "coordinate" else given.mode
            values = block.put(values, solve(block.current(values)))
        if self.plan.steep:
            values = _sweep.climb_steep(self.plan, self.data, values)
        if self.plan.free or self.plan.scales:
            values = _sweep.visit_free(self.plan, self.row, self.data, values, self.key, False)
        return objective, {name: np.asarray(value) for name, value in values.items()}

    def _volume(self, values: Values) -> float:
        """Log volume element of the sites whose mode is taken in logarithmic coordinates."""
        total = 0.0
        for name in self.plan.in_logs:
            total += np.log(values[name]).sum()
            if self.supports[name] is not constraints.simplex:
                total += np.log1p(-values[name]).sum()
        return float(total)

    def _rest(self, values: Values, likelihood: float) -> float:
        """Log prior density, and the Binomial coefficients, which are the same at every point."""
        if self.constant is None:
            full = sum(float(likelihood_of(self.plan.model, piece, values)) for piece in self.data.chunks(_sweep.CHUNK))
            self.constant = full - likelihood
        return float(prior_of(self.plan.model, self.row, values)) + self.constant

    def extrapolate(self, x0: Values, x1: Values, x2: Values) -> Values:
        """SQUAREM's S3 step, in unconstrained coordinates for free sites and within the bounds of the others."""
        flat = [self._flatten(point) for point in (x0, x1, x2)]
        step, bend = flat[1] - flat[0], flat[2] - 2 * flat[1] + flat[0]
        length = -np.linalg.norm(step) / max(np.linalg.norm(bend), 1e-300)
        length = min(length, -1.0)
        leap = flat[0] - 2 * length * step + length**2 * bend
        return self._unflatten(leap, x0)

    def _flatten(self, values: Values) -> np.ndarray:
        # In one order of sites, whatever the order of the mapping: compiled functions return mappings sorted by name.
        parts = []
        for name, support in self.supports.items():
            value = values[name]
            if name in self.counted:
                value = np.log(value) if support is constraints.simplex else logit(value)
            elif name in self.plan.free:
                value = biject_to(support).inv(value)
            parts.append(np.ravel(value))
        return np.concatenate(parts)

    def _unflatten(self, flat: np.ndarray, like: Values) -> Values:
        values, begin = {}, 0
        for name, support in self.supports.items():
            shape = np.shape(like[name])
            if name in self.plan.free:
                shape = np.shape(biject_to(support).inv(like[name]))
            size = int(np.prod(shape))
            part = flat[begin : begin + size].reshape(shape)
            begin += size
            if name in self.counted:
                part = softmax(part, axis=-1) if support is constraints.simplex else expit(part)
                part = np.clip(part, _classes.LEAST, 1 - _classes.LEAST)
            elif name in self.plan.free:
                part = np.asarray(biject_to(support)(part))
            else:
                low, high = (getattr(support, end, None) for end in ("lower_bound", "upper_bound"))
                part = np.clip(part, -np.inf if low is None else low, np.inf if high is None else high)
            values[name] = part
        return values
