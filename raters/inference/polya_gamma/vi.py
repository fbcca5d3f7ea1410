"""Mean-field variational inference from the Pólya-Gamma conditionals, with corrected spreads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import numpy as np
import numpyro.distributions as dist
import scipy.linalg
from jaxtyping import Array, Float
from numpyro.distributions.transforms import biject_to
from scipy.special import log_ndtr, logsumexp, ndtri_exp
from tqdm.auto import tqdm

from raters.errors.validation import plain_whole, positive
from raters.inference import base
from raters.inference.arrays import Entries, EntryDraws, Matrix, PerDraw, Rng
from raters.inference.polya_gamma import (
    averages,
    detection,
    laplace,
    latent_classes,
    mean_field,
    plans,
    sets,
    sweep,
)
from raters.inference.polya_gamma.averages import Covariances, Forms, Owners
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT
from raters.inference.polya_gamma.em import another_start
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.laplace import log_crossing, tangent_of
from raters.inference.polya_gamma.laplace_classes import around_classes, is_small
from raters.inference.polya_gamma.rows import split
from raters.model import Own, Permute, Rotation, Values, facts_of
from raters.program import Program, densities, placing, start_of

# Draws times rows up to which the density of the draws is computed, and so their weights.
_MUCH_WORK = 2e9
# Up to so many rows, entries and hyper-parameters, the draws are around several values of these.
_MANY_ROWS, _MANY_ENTRIES, _MOST_HYPER = 20_000, 1000, 3
# Sweeps at each value; steps to the middle of the values, at first of this width in unconstrained
# coordinates, between these two later; and steps outwards, until the evidence is so much lower.
_SETTLING, _CENTRINGS, _OUTWARDS, _LOW = 5, 5, 5, 4.0
_FIRST_WIDTH, _NARROWEST, _LONGEST = 0.15, 0.02, 0.6
# Starts of a mixture of types, of which that with the highest bound is used, and most sweeps.
_STARTS, _MOST_SWEEPS = 10, 500


# Newton steps to the place of a truncated normal of a given mean, and how far away it may be.
_STEPS, _FAR = 40, 30.0
# Least weight of a component, relative to the largest.
_LEAST = 0.1


def precision(field: mean_field.MeanField, state: mean_field.State) -> Matrix:
    """Return the precision of the means of all entries by linear response."""
    owners = field.setting.owners
    values = field.values(state)
    sizes = [len(normal.mean) for normal in state.normals]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    full = np.zeros((begins[-1], begins[-1]))
    votes = field.votes_at(state)
    curvatures = _curvatures(owners, field.forms, mean_field.moments(state.normals), votes)
    for (one, other), value in curvatures.items():
        first, second = owners.of_slot[one], owners.of_slot[other]
        shape = (sizes[first], sizes[second])
        cell = field.entry[one].astype(np.int64) * shape[1] + field.entry[other]
        half = np.bincount(cell, np.asarray(value), shape[0] * shape[1]).reshape(shape)
        row, column = (slice(begins[block], begins[block + 1]) for block in (first, second))
        full[row, column] -= half
        if one != other:
            full[column, row] -= half.T
    for number, prior in enumerate(field.priors(values)):
        own = np.arange(begins[number], begins[number + 1])
        full[own, own] += prior.precision
        if prior.across is not None:
            full[np.ix_(own, own)] += prior.across
    return full


@partial(jax.jit, static_argnums=0)
def _curvatures(
    owners: Owners, forms: Forms, normals: mean_field.Moments, votes: tuple[Array, Array]
) -> Covariances:
    """Return the second derivatives of the bound of each row in each pair of its slots."""
    slots = averages.gathered(forms, owners, normals[0])
    covariances = averages.covariances_of(forms, owners, normals[1])

    def bound(slots: averages.Slots) -> Array:
        return mean_field.bound_of_rows(forms, slots, covariances, votes).sum()

    found: Covariances = {}
    for one in range(len(slots)):
        tangent = tuple(jax.numpy.ones_like(slot) * (at == one) for at, slot in enumerate(slots))
        second = jax.jvp(jax.grad(bound), (slots,), (tangent,))[1]
        for other in range(one, len(slots)):
            found[one, other] = second[other]
    return found


class Component:
    """Normal of all entries on the section across the orbits of scale symmetries."""

    def __init__(self, field: mean_field.MeanField, state: mean_field.State) -> None:
        self.setting, self.values = field.setting, field.values(state)
        self.mean = np.concatenate([normal.mean for normal in state.normals])
        full = precision(field, state)
        scales = self.setting.plan.scales
        self.tangents = [tangent_of(scale, self.setting.sites, self.values) for scale in scales]
        # A high precision along the orbit keeps draws on the section.
        self.along = 1e4 * np.abs(np.diag(full)).mean() * len(full)
        for tangent in self.tangents:
            full += self.along * np.outer(tangent, tangent)
        self.factor = scipy.linalg.cholesky(full, lower=True)
        priors = field.priors(self.values)
        low, high = (np.concatenate([getattr(one, at) for one in priors]) for at in ("low", "high"))
        self.bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        self.low, self.high = low[self.bounded], high[self.bounded]
        self.deviation, self.centre = np.zeros(0), np.zeros(0)
        if len(self.bounded):
            inverse = scipy.linalg.solve_triangular(self.factor, np.eye(len(full)), lower=True)
            self.deviation = np.sqrt((inverse[:, self.bounded] ** 2).sum(0))
            self.centre = centre_of(self.mean[self.bounded], self.deviation, self.low, self.high)

    def log_evidence(self, field: mean_field.MeanField, state: mean_field.State) -> float:
        """Return the log evidence, by Laplace's approximation at the means."""
        plan, total = self.setting.plan, 0.0
        for piece in placing.pieces(field.data):
            total += float(densities.likelihood_of(plan.model, piece, self.values))
        for name, value in state.hyper.items():
            transform = biject_to(plan.supports[name])
            coordinate = transform.inv(value)
            total += float(transform.log_abs_det_jacobian(coordinate, value).sum())
        prior = float(densities.prior_of(plan.model, field.row, self.values))
        return total + prior - float(np.log(np.diag(self.factor)).sum())

    def draw(self, number: int, rng: Rng) -> tuple[EntryDraws, EntryDraws]:
        """Draw entries; return them, and the normal ones less their mean."""
        standard = rng.standard_normal((len(self.mean), number))
        apart = scipy.linalg.solve_triangular(self.factor, standard, lower=True, trans="T").T
        entries = self.mean + apart
        if len(self.bounded):
            entries[:, self.bounded] = self._inside(apart[:, self.bounded] / self.deviation)
        return entries, apart

    def log_density(self, entries: EntryDraws, apart: np.ndarray | None = None) -> PerDraw:
        """Return the log density on the section at some entries, drawn as `apart` if known."""
        from scipy.stats import norm

        slope = np.ones_like(entries)
        if apart is None:
            apart = entries - self.mean
            if len(self.bounded):
                score = self._score(entries[:, self.bounded])
                apart[:, self.bounded] = score * self.deviation
        log_q = np.log(np.diag(self.factor)).sum() + norm.logpdf(apart @ self.factor).sum(1)
        for tangent in self.tangents:
            log_q += self.along * (apart @ tangent) ** 2 / 2
        if len(self.bounded):
            score = apart[:, self.bounded] / self.deviation
            inside = (entries[:, self.bounded] - self.centre) / self.deviation
            log_slope = norm.logpdf(score) + self._log_mass() - norm.logpdf(inside)
            slope[:, self.bounded] = np.exp(log_slope)
            log_q -= log_slope.sum(1)
        scales, sites = self.setting.plan.scales, self.setting.sites
        return np.asarray(log_q - log_crossing(scales, sites, self.values, entries, slope))

    def _ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bounds in deviations, turned round where the mass is in the upper tail."""
        lower, upper = ((end - self.centre) / self.deviation for end in (self.low, self.high))
        flip = lower + upper > 0
        return np.where(flip, -upper, lower), np.where(flip, -lower, upper), flip

    def _log_mass(self) -> Entries:
        lower, upper, _ = self._ends()
        log_low, log_high = log_ndtr(lower), log_ndtr(upper)
        difference = np.minimum(log_low - log_high, -1e-15)
        return np.asarray(log_high + np.log1p(-np.exp(difference)))

    def _inside(self, score: EntryDraws) -> EntryDraws:
        """Map standard normals to the truncated normals."""
        lower, upper, flip = self._ends()
        below = self._log_mass() + log_ndtr(np.where(flip, -score, score))
        level = np.minimum(np.logaddexp(log_ndtr(lower), below), log_ndtr(upper))
        standard = np.clip(ndtri_exp(level), lower, upper)
        standard = np.where(flip, -standard, standard)
        inside = self.centre + self.deviation * standard
        return np.asarray(np.clip(inside, self.low, self.high))

    def _score(self, entries: EntryDraws) -> EntryDraws:
        """Map truncated normals to standard ones."""
        lower, _, flip = self._ends()
        inside = (entries - self.centre) / self.deviation
        inside = np.where(flip, -inside, inside)
        less = np.minimum(log_ndtr(lower) - log_ndtr(inside), -1e-15)
        share = log_ndtr(inside) + np.log1p(-np.exp(less)) - self._log_mass()
        score = ndtri_exp(np.minimum(share, -1e-15))
        return np.asarray(np.where(flip, -score, score))


def drawn(
    field: mean_field.MeanField, states: list[mean_field.State], number: int, rng: Rng
) -> tuple[Values, PerDraw]:
    """Draw the entries of all blocks from a mixture of the normals of some states."""
    components = [Component(field, state) for state in states]
    weights = np.ones(1)
    if len(states) > 1:
        scores = [
            component.log_evidence(field, state)
            for component, state in zip(components, states, strict=True)
        ]
        weights = np.maximum(np.exp(np.array(scores) - max(scores)), _LEAST)
        weights /= weights.sum()
    source = np.searchsorted(np.cumsum(weights), (np.arange(number) + rng.random()) / number)
    source = rng.permutation(np.minimum(source, len(states) - 1))
    entries = np.zeros((number, len(components[0].mean)))
    apart = np.zeros_like(entries)
    for which, component in enumerate(components):
        own = np.flatnonzero(source == which)
        entries[own], apart[own] = component.draw(len(own), rng)
    if len(components) == 1:
        log_q = components[0].log_density(entries, apart)
    else:
        each = np.stack([component.log_density(entries) for component in components])
        log_q = logsumexp(each + np.log(weights)[:, None], axis=0)
    return split(entries, components[0].values, field.setting.sites), np.asarray(log_q)


def centre_of(mean: Entries, deviation: Entries, low: Entries, high: Entries) -> Entries:
    """Return where normals lie that have these means once they are truncated."""
    centre = np.array(mean)
    for _ in range(_STEPS):
        at, variance, _ = averages.truncated_moments(centre, deviation, low, high)
        step = (mean - at) * deviation**2 / np.maximum(variance, 1e-12 * deviation**2)
        step = np.clip(step, -3 * deviation, 3 * deviation)
        centre = np.clip(centre + step, mean - _FAR * deviation, mean + _FAR * deviation)
    return centre


@dataclass(frozen=True)
class PGVI(base.Backend):
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
    tolerance : float
        Stop when a sweep increases the bound by less than this, in nats.

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
    tolerance: float = 1e-4

    exact: ClassVar[bool] = False

    reference: ClassVar[str] = "polson2013bayesian durante2019conditionally giordano2018covariances"

    def __post_init__(self) -> None:
        plain_whole(self, "draws", least=0)
        positive("tolerance", self.tolerance)

    def why_not(self, program: Program[Any]) -> str | None:
        """Refuse models without blocks or averages, choices from sets, and sites that turn."""
        if reason := super().why_not(program) or detection.why_no_mode(program, "PGVI"):
            return reason
        name = program.model.title
        if facts_of(program.model, Own):
            return f"PGVI has no averages of the vectors of judges in {name}; use PGEM or NUTS"
        if reason := plans.why_one(program) or plans.why_not(program):
            return reason
        # Products of sites that turn together vanish where the data tell little of them, at a point
        # that is no maximum.
        turns = [one.sites for one in program.model.symmetries if isinstance(one, Rotation)]
        refusals = {
            "does not divide the rows over a mesh; use PGEM or SVI": program.mesh is not None,
            "has no averages of choices from sets; use PGEM or PGGibbs": sets.chooses(program),
            f"takes {turns}, which turn together, as independent; use PGGibbs or NUTS": turns,
            f"has no averages of the sites of {name} outside of its blocks; use PGEM": (
                plans.steep_sites(program)
            ),
        }
        for refusal, applies in refusals.items():
            if applies:
                return f"PGVI {refusal}"
        sample = program.sample(2)
        start = start_of(program.model, sample)
        with jax.enable_x64(True):
            return _why_not_averaged(program, sample, start)

    def run(
        self, program: Program[Any], key: Array, *, start: base.Start = None, progress: bool = False
    ) -> base.Draws:
        """Average from the model's start or the centre of earlier draws."""
        with (
            jax.enable_x64(True),
            base.one_blas_thread(),
            base.progress_bar(1, "PGVI", progress) as bar,
        ):
            model, data = program.model, program.data
            first = start_of(model, data)
            plan = plans.plan(program, first)
            types = any(isinstance(symmetry, Permute) for symmetry in model.symmetries)
            starts = _STARTS if types else 1
            seeds = base.numpy_seeds(key, starts + 1)
            first = first if start is None else base.centre(model, start)
            field = mean_field.MeanField(plan, sweep.on_devices(program), first)
            points = [first]
            for rng in map(np.random.default_rng, seeds[1:starts]):
                points.append(another_start(model, data, first, plan.supports, rng))
            climbs = [self._ascent(field, point, bar) for point in points]
            state, bound = max(climbs, key=lambda climb: climb[1][-1])
            converged = len(bound) <= _MOST_SWEEPS or bound[-1] - bound[-2] < self.tolerance
            if not converged:
                rise = f"{bound[-1] - bound[-2]:.2g} a sweep (tolerance {self.tolerance:g})"
                what = (
                    f"PGVI stopped after {_MOST_SWEEPS} sweeps while the ELBO still rose by {rise}"
                )
                base.warn(f"{what}; use PGEM or PGGibbs", 3)
            values, stats = self._drawn(field, state, np.random.default_rng(seeds[-1]))
        facts = {"converged": int(converged), "elbo": float(bound[-1]), "sweeps": len(bound)}
        return base.Draws(values, stats, {"elbo": bound}, facts)

    def _ascent(
        self, field: mean_field.MeanField, values: Values, bar: tqdm
    ) -> tuple[mean_field.State, Float[np.ndarray, " sweep"]]:
        """Sweep until the bound settles; return the last state, and the bound after each sweep."""
        # At the start nothing has a spread, and the bound is not finite.
        state = field.sweep(field.start(values))[1]
        history: list[float] = []
        ahead = state
        while len(history) < 2 or history[-1] - history[-2] >= self.tolerance:
            if len(history) > _MOST_SWEEPS:
                return ahead, np.array(history)
            state = ahead
            bound, ahead = field.sweep(state)
            history.append(bound)
            bar.set_postfix(elbo=f"{bound:.4f}", refresh=False)
        return state, np.array(history)

    def _drawn(
        self, field: mean_field.MeanField, state: mean_field.State, rng: Rng
    ) -> tuple[Values, Values]:
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
            draws, log_q = drawn(field, states, self.draws, rng)
        draws |= {
            name: np.repeat(np.asarray(value)[None], self.draws, 0)
            for name, value in state.hyper.items()
        }
        log_prior, draws = integrated(plan, field.row, draws, rng)
        stats = {}
        if log_q is not None and field.data.num_rows * self.draws <= _MUCH_WORK:
            log_p = log_prior + laplace.pass_over_rows(plan, field.data, draws)
            stats = {"log_p": log_p[None], "log_q": log_q[None]}
        return {name: value[None] for name, value in draws.items()}, stats


def _along_hyper(field: mean_field.MeanField, state: mean_field.State) -> list[mean_field.State]:
    """Return approximations at several values of each hyper-parameter."""
    plan = field.setting.plan
    names = tuple(name for name in plan.hyper if np.ndim(state.hyper[name]) == 0)
    size = sum(len(normal.mean) for normal in state.normals)
    many = field.data.num_rows > _MANY_ROWS or size > _MANY_ENTRIES
    if plan.scales or many or not 0 < len(names) <= _MOST_HYPER:
        return [state]

    def moved(state: mean_field.State, name: str, step: float) -> tuple[float, mean_field.State]:
        transform = biject_to(plan.supports[name])
        there = transform(transform.inv(state.hyper[name]) + step)
        state = state._replace(hyper=state.hyper | {name: np.asarray(there)})
        for _ in range(_SETTLING):
            state = field.sweep(state, names)[1]
        return Component(field, state).log_evidence(field, state), state

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


def _why_not_averaged(program: Program[Any], sample: Any, start: Values) -> str | None:
    """Explain which site has no average, or return None."""
    model, name = program.model, program.model.title
    blocks = plans.blocks_of(program, sample, start)
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
            densities.pointwise_log_likelihood, model, sample, start, (site,)
        ):
            return f"PGVI has no averages of {site!r} of {name}, which is in no block; use PGEM"
    normal = tuple(dict.fromkeys(block.sites for block in blocks if block.kind != "counts"))
    try:
        owners = averages.owners_of(model, sample, start, normal)
    except NotImplementedError as error:
        return f"PGVI cannot average the rows of {name}: {error}; use PGEM or PGGibbs"
    for number, sites in enumerate(normal):
        size = sum(int(np.prod(program.sites[site].shape)) for site in sites)
        if len(owners.slots(number)) > 1 and size > DENSE_LIMIT:
            which = f"{size:,} entries of {', '.join(sites)} (at most {DENSE_LIMIT:,})"
            return f"PGVI would hold the covariances of the {which}; use PGEM"
    return None
