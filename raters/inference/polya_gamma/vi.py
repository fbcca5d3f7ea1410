"""Mean-field variational inference from the Pólya-Gamma conditionals, with corrected spreads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float
from scipy.special import logsumexp
from tqdm.auto import tqdm

from raters.errors import BackendError
from raters.errors.validation import plain_whole, positive
from raters.inference import base
from raters.inference.arrays import Entries, EntryDraws, FlatPoint, PerDraw, Rng
from raters.inference.polya_gamma import averages, detection, laplace, mean_field, plans, sweep
from raters.inference.polya_gamma.conditionals import DENSE_LIMIT, Dense
from raters.inference.polya_gamma.rows import split
from raters.model import Own, Rotation, Values, facts_of
from raters.program import Program, densities, start_of

# Most sweeps.
_MOST_SWEEPS = 500
# Newton steps of the hyper-parameters, the longest and the last of them, and sweeps after each.
_CENTRINGS, _LONGEST, _SHORTEST = 10, 0.6, 0.01
# Up to so many hyper-parameters, draws are around several values of them.
_MOST_HYPER = 3
# Newton steps to the place of a truncated normal of a given mean, and how far away it may be.
_STEPS, _FAR = 40, 30.0


@dataclass(frozen=True)
class PGVI(base.Backend):
    r"""Mean-field variational inference from the conditionals of `PGGibbs`, with spreads corrected
    by linear response: a quick look with means where Gibbs sampling has them.

    A sweep averages what `PGGibbs` draws. With independent distributions q of the blocks and of
    the Pólya-Gamma variables, it increases

    .. math:: \mathrm{ELBO} = \sum_m \left[\kappa_m \mathrm E\,\psi_m
        - n_m \log 2 \cosh \tfrac{c_m}{2}\right]
        + \mathrm E \log p(x \mid v) + \log p(v) + \mathrm H(q), \qquad
        c_m = \sqrt{\mathrm E\, \psi_m^2},

    with :math:`\mathrm E\,\omega_m = n_m \tanh(c_m / 2) / (2 c_m)` (Jaakkola and Jordan 2000;
    Durante and Rigon 2019). Hyper-parameters v are at the maximum of the bound.

    Mean-field spreads are too small: the draws have the covariance by which the means respond to a
    change of the density (Giordano, Broderick and Jordan 2018), around means that are moved to
    where the mean density is highest, and are corrected by importance weights.

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
            "has no averages of choices from sets; use PGEM or PGGibbs": detection.chooses(program),
            f"has no averages of the latent classes of {name}; use PGEM": program.counts_classes,
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
            model = program.model
            first = start_of(model, program.data)
            plan = plans.plan(program, first)
            first = first if start is None else base.centre(model, start)
            field = mean_field.MeanField(plan, sweep.on_devices(program), first)
            try:
                state, bound = self._ascent(field, bar)
                rng = np.random.default_rng(base.numpy_seeds(key, 1)[0])
                values, stats = around(field, state, self.draws, rng)
            except np.linalg.LinAlgError:
                raise BackendError(
                    "the averages of PGVI grow beyond all bounds, since the judgements tell too"
                    " little of some entries; use PGGibbs or PGEM"
                ) from None
            converged = len(bound) <= _MOST_SWEEPS or bound[-1] - bound[-2] < self.tolerance
            if not converged:
                rise = f"{bound[-1] - bound[-2]:.2g} a sweep (tolerance {self.tolerance:g})"
                what = (
                    f"PGVI stopped after {_MOST_SWEEPS} sweeps while the ELBO still rose by {rise}"
                )
                base.warn(f"{what}; use PGEM or PGGibbs", 3)
        facts = {"converged": int(converged), "elbo": float(bound[-1]), "sweeps": len(bound)}
        return base.Draws(values, stats, {"elbo": bound}, facts)

    def _ascent(
        self, field: mean_field.MeanField, bar: tqdm
    ) -> tuple[mean_field.State, Float[np.ndarray, " sweep"]]:
        """Sweep until the bound settles; return the last state, and the bound after each sweep."""
        # At the start nothing has a spread, and the bound is not finite.
        state = field.sweep(field.start())[1]
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


class Response(NamedTuple):
    """Normal of the entries whose precision is that of the means by linear response; Newton steps
    of means and hyper-parameters; how means follow these, and the precision of these."""

    normal: Dense
    step: Entries
    hyper: FlatPoint
    lean: Float[np.ndarray, "entry hyper"]
    information: Float[np.ndarray, "hyper hyper"]


def around(
    field: mean_field.MeanField, state: mean_field.State, number: int, rng: Rng
) -> tuple[Values, Values]:
    """Draw around the means; return the draws of each site, and their log densities."""
    plan, sites = field.setting.plan, field.setting.sites
    prior = field.prior(field.values(state))
    whole = not plan.scales and not np.isfinite([prior.low, prior.high]).any()
    if whole:
        state = centred(field, state)
    values = field.values(state)
    if not number:
        return {name: np.asarray(value)[None, None] for name, value in values.items()}, {}
    found = response(field, state)
    if whole and 0 < found.lean.shape[1] <= _MOST_HYPER:
        components = [(state.mean, found.normal)]
        half = np.linalg.cholesky(np.linalg.inv(found.information))
        for place in np.sqrt(3.0) * np.concatenate([half.T, -half.T]):
            mean = state.mean + found.lean @ place
            moved = field.placed(state._replace(mean=mean), place)
            components.append((mean, response(field, moved).normal))
        entries, log_q = mixed(components, number, rng)
    else:
        normal = found.normal
        deviation = np.sqrt(np.diag(normal.covariance()))
        centre = centre_of(state.mean, deviation, normal.prior.low, normal.prior.high)
        entries, log_q = laplace.section_draws(plan, normal, sites, values, centre, number, rng)
    draws = {name: np.repeat(np.asarray(value)[None], number, 0) for name, value in values.items()}
    draws |= split(entries, values, sites)
    return laplace.weighed(plan, field.data, draws, log_q, sites, rng)


def mixed(
    components: list[tuple[Entries, Dense]], number: int, rng: Rng
) -> tuple[EntryDraws, PerDraw]:
    """Draw from a mixture of normals, half of the draws from the first; return log densities."""
    from scipy.stats import norm

    weight = np.full(len(components), 0.5 / (len(components) - 1))
    weight[0] = 0.5
    source = rng.choice(len(weight), number, p=weight)
    entries = rng.standard_normal((number, components[0][1].size))
    factors = [normal.factor() for _, normal in components]
    for which, (mean, _) in enumerate(components):
        own = source == which
        apart = scipy.linalg.solve_triangular(factors[which], entries[own].T, lower=True, trans="T")
        entries[own] = mean + apart.T
    each = [
        norm.logpdf((entries - mean) @ factor).sum(1) + np.log(np.diag(factor)).sum()
        for (mean, _), factor in zip(components, factors, strict=True)
    ]
    return entries, np.asarray(logsumexp(np.stack(each, -1) + np.log(weight), axis=-1))


def response(field: mean_field.MeanField, state: mean_field.State) -> Response:
    """Return the linear response of the means and hyper-parameters at a state."""
    values = field.values(state)
    given = field.setting.owners, field.forms, state.mean, state.covariance
    normal = Dense(field.prior(values))
    gain, curvature = map(np.asarray, mean_field.curvature(*given))
    normal.across -= curvature
    covariance = normal.covariance()
    (slope, rise), (cross, own) = jax.tree.map(
        np.asarray, mean_field.curvature_in_hyper(field.setting, field.row, values, covariance)
    )
    step, lean = covariance @ (gain + slope), covariance @ cross
    information = -own - cross.T @ lean
    if not rise.size or np.linalg.eigvalsh(information)[0] <= 0:
        return Response(normal, step, np.zeros(rise.size), lean[:, :0], information[:0, :0])
    # The entries and the hyper-parameters are normal together.
    hyper = np.linalg.solve(information, rise + cross.T @ step)
    normal.across += cross @ np.linalg.solve(own, cross.T)
    return Response(normal, step + lean @ hyper, hyper, lean, information)


def centred(field: mean_field.MeanField, state: mean_field.State) -> mean_field.State:
    """Move means and hyper-parameters from where the bound is highest to where the density is."""
    for _ in range(_CENTRINGS):
        found = response(field, state)
        longest = np.max(np.abs(np.concatenate([found.step, found.hyper])))
        shrink = min(1.0, _LONGEST / longest)
        mean, covariance = state.mean + shrink * found.step, found.normal.covariance()
        state = state._replace(mean=mean, covariance=covariance)
        state = field.placed(state, shrink * found.hyper)
        if longest < _SHORTEST:
            break
    return state


def centre_of(mean: Entries, deviation: Entries, low: Entries, high: Entries) -> Entries:
    """Return where normals lie that have these means once they are truncated."""
    centre = np.array(mean)
    for _ in range(_STEPS):
        at, variance, _ = averages.truncated_moments(centre, deviation, low, high)
        step = (mean - at) * deviation**2 / np.maximum(variance, 1e-12 * deviation**2)
        step = np.clip(step, -3 * deviation, 3 * deviation)
        centre = np.clip(centre + step, mean - _FAR * deviation, mean + _FAR * deviation)
    return centre


def _why_not_averaged(program: Program[Any], sample: Any, start: Values) -> str | None:
    """Explain which site has no average, or return None."""
    model, name = program.model, program.model.title
    blocks = plans.blocks_of(program, sample, start)
    sites = tuple(site for block in blocks for site in block.sites)
    for site in set(program.sites) - set(sites):
        if detection.depends(densities.pointwise_log_likelihood, model, sample, start, (site,)):
            return f"PGVI has no averages of {site!r} of {name}, which is in no block; use PGEM"
    size = sum(int(np.prod(program.sites[site].shape)) for site in sites)
    if size > DENSE_LIMIT:
        which = f"{size:,} entries of {', '.join(sites)} (at most {DENSE_LIMIT:,})"
        return f"PGVI would hold the covariances of the {which}; use PGEM"
    try:
        jax.eval_shape(partial(averages.recorded, model, sites=sites), sample, start)
    except NotImplementedError as error:
        return f"PGVI cannot average the rows of {name}: {error}; use PGEM or PGGibbs"
    return None
