"""Geweke's joint-distribution test of the Gibbs kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key
from numpyro import handlers
from numpyro.distributions.transforms import biject_to

from raters.distributions.choices import Choice
from raters.errors import BackendError
from raters.errors.validation import checked, whole
from raters.fitting.simulate import simulate, with_whole_counts
from raters.inference import modes
from raters.inference.polya_gamma import detection, plans
from raters.inference.polya_gamma.conditionals import observation
from raters.inference.polya_gamma.gibbs import Kernel, sweep_once
from raters.judgements.base import Judgements
from raters.judgements.together import parts_of, with_parts
from raters.model import Model, Shift, Values
from raters.program import Program, models_of, observed_sites, trace, within

Scalar = Float[Array, ""]
OneKey = Key[Array, ""]
PerDraw = Float[np.ndarray, " draw"]

# Votes; or labels and classes; by part.
Outcomes = dict[str, Any]
# Draws at a time.
_PIECE = 1000


@checked
def geweke(
    model: Model[Any],
    questions: Judgements,
    *,
    seed: int,
    chains: int = 200,
    sweeps: int = 30,
    prior_draws: int = 100_000,
) -> xr.Dataset:
    """Geweke's test of the Gibbs kernel, which compares two samplers of parameters and outcomes
    together.

    The first draws parameters from the prior and outcomes given them. The second alternates:
    outcomes given the parameters, then one sweep of the kernel given the outcomes (votes; or
    labels, and the classes of the items whose class is known). If the kernel leaves the posterior
    invariant, both have one distribution. The test compares means of the unconstrained coordinates
    u of every site (rewards less their mean) through asinh(u), which has all moments under every
    prior, of their squares and products, and of the log-likelihood.

    The alternating chains are many and short, and each starts at a draw of the first sampler. Under
    a correct kernel they are therefore in equilibrium from the start, however slowly they mix, and
    their independence gives the standard errors.

    Parameters
    ----------
    model : Model
    questions : Judgements
        Questions and the judges who are asked; small tables have the most power.
    seed : int
    chains, sweeps : int
        Number and length of the alternating chains.
    prior_draws : int
        Number of draws of the first sampler.

    Returns
    -------
    xarray.Dataset
        With axis ``statistic``: ``z``, the difference of the means in standard errors; the two
        means, ``direct`` and ``alternating`` (adjusted for where the chains started); and
        ``standard_error``. Under a correct kernel z has Student's distribution with `chains` − 2
        degrees of freedom.

    References
    ----------
    Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators. Journal
    of the American Statistical Association 99, 799–804.
    """
    whole("chains", chains, least=10)
    whole("sweeps", sweeps)
    whole("prior_draws", prior_draws, least=100)
    program = Program(model, simulate(model, questions, seed=seed)[0])
    if detection.chooses(program):
        raise BackendError(
            f"{model.title} moves utilities along trajectories, which have no sweeps to test; use"
            " raters.checking.sbc"
        )
    if reason := plans.why_not(program):
        raise BackendError(reason)
    with jax.enable_x64(True):
        asked = with_whole_counts(jax.tree.map(jnp.asarray, questions.unanswered()))
        prior_key, start_key, chain_key = jax.random.split(jax.random.key(seed), 3)
        prior = _mapped(_start, model, asked, jax.random.split(prior_key, prior_draws))
        starts = _mapped(_start, model, asked, jax.random.split(start_key, chains))
        states = _alternating(model, asked, starts, chain_key, sweeps)
        direct, at_start, after = (
            _mapped(_of_state, model, asked, pairs) for pairs in (prior, starts, states)
        )
    each = [
        _compare(*(np.asarray(part[name]) for part in (direct, at_start, after))) for name in direct
    ]
    names = ("z", "direct", "alternating", "standard_error")
    table = {name: ("statistic", values) for name, *values in zip(names, *each, strict=True)}
    facts = {"model": repr(model), "chains": chains, "sweeps": sweeps, "prior_draws": prior_draws}
    return xr.Dataset(table, {"statistic": list(direct)}, facts)


def _compare(direct: PerDraw, at_start: PerDraw, after: PerDraw) -> tuple[float, ...]:
    """z, the direct mean, the chains' with their start as control variate, and standard error."""
    means = after.reshape(len(at_start), -1).mean(1)
    slope = np.cov(means, at_start)[0, 1] / at_start.var(ddof=1)
    adjusted = means - slope * (at_start - direct.mean())
    error = np.sqrt(adjusted.var(ddof=2) / len(adjusted) + direct.var() / len(direct))
    return (adjusted.mean() - direct.mean()) / error, direct.mean(), adjusted.mean(), error


def _drawn(model: Model[Any], asked: Any, key: OneKey, given: Values) -> tuple[Values, Outcomes]:
    """Draw parameters from the prior, but for those given, and outcomes."""
    program = handlers.seed(handlers.substitute(model, given), key)
    # Known classes are drawn like the outcomes, and then known.
    trace = handlers.trace(program).get_trace(asked.without_truth())
    values = {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "sample" and name not in observed_sites(model)
    }
    sites = [trace[name] for name in observed_sites(model)]
    outcomes = [(site["value"], *site["intermediates"]) for site in sites]
    return values, dict(zip(models_of(model), outcomes, strict=True))


def _with(asked: Any, outcomes: Outcomes) -> Any:
    """Return the questions with outcomes, also within a compiled function."""
    parts = parts_of(asked).items()
    return with_parts(asked, {name: _answered(part, outcomes[name]) for name, part in parts})


def _answered(asked: Any, outcomes: tuple[Any, ...]) -> Any:
    """Return the questions of one kind of judgement with outcomes."""
    kind = np.int32 if asked.answer in asked.axes else float
    column = outcomes[0].astype(kind)
    answered = dataclasses.replace(asked, **{asked.answer: column})
    return answered.with_truth_of(asked, outcomes[1]) if len(outcomes) > 1 else answered


@partial(jax.jit, static_argnums=(0, 1))
def _mapped(function: Callable[..., Any], model: Model[Any], asked: Any, rows: Any) -> Any:
    """A function of each row, of many at a time."""
    return jax.lax.map(partial(function, model, asked), rows, batch_size=_PIECE)


def _start(model: Model[Any], asked: Any, key: OneKey) -> tuple[Values, Outcomes]:
    return _drawn(model, asked, key, {})


def _of_state(model: Model[Any], asked: Any, state: tuple[Values, Outcomes]) -> dict[str, Scalar]:
    return _statistics(model, _with(asked, state[1]), state[0])


def _alternating(
    model: Model[Any], asked: Any, initial: tuple[Values, Outcomes], key: OneKey, sweeps: int
) -> tuple[Values, Outcomes]:
    """Run the chains in turn; return parameters after each sweep and the outcomes it was given."""
    values, outcomes = jax.tree.map(np.asarray, initial)
    chains = len(jax.tree.leaves(outcomes)[0])
    first, any_answers = jax.tree.map(lambda part: part[0], (values, outcomes))
    program = Program(model, _with(asked, any_answers))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    keys = jax.random.split(key, chains)
    kernel = Kernel.of(program, first, modes.images(program))
    tried = modes.tries(kernel.images, rng, (chains, sweeps))
    chained = _chained(model, sweeps, kernel, asked, (values, keys, tried))
    return jax.tree.map(lambda each: np.concatenate(np.asarray(each)), chained)


@partial(jax.jit, static_argnums=(0, 1))
def _chained(
    model: Model[Any], sweeps: int, kernel: Kernel, asked: Any, chains: Any
) -> tuple[Values, Outcomes]:
    """Run all chains, with sweeps that are compiled."""

    def step(values: Values, each: tuple[OneKey, modes.Tried]) -> tuple[Values, Any]:
        answer_key, sweep_key = jax.random.split(each[0])
        answers = _drawn(model, asked, answer_key, values)[1]
        own = dataclasses.replace(kernel, data=_with(asked, answers))
        values = sweep_once(own, values, each[1], sweep_key)
        return values, (values, answers)

    def chain(start: tuple[Values, OneKey, modes.Tried]) -> Any:
        values, key, tried = start
        return jax.lax.scan(step, values, (jax.random.split(key, sweeps), tried))[1]

    return jax.lax.map(chain, chains)


def _statistics(model: Any, data: Any, values: Values) -> dict[str, Scalar]:
    """Functions with all moments, that together depend on every conditional."""
    centred = {
        symmetry.site: symmetry.axis for symmetry in model.symmetries if isinstance(symmetry, Shift)
    }
    program = Program(model, data)
    soft: Values = {}
    scalars: Values = {}
    statistics: dict[str, jax.Array] = {}
    for name, site in program.sites.items():
        free = biject_to(site.support).inv(values[name])
        if free.size == 0:  # A probability of one alternative.
            continue
        soft[name] = jnp.arcsinh(
            free - free.mean(centred[name], keepdims=True) if name in centred else free
        )
        if not site.shape:
            scalars[name] = soft[name]
        else:
            statistics[f"{name}: first"] = soft[name].ravel()[0]
            statistics[f"{name}: last"] = soft[name].ravel()[-1]
        statistics[f"{name}: mean"] = soft[name].mean()
        statistics[f"{name}: mean square"] = (soft[name] ** 2).mean()
    for name in soft:
        statistics |= {
            f"{name}: mean square × {scalar}": (soft[name] ** 2).mean() * scalars[scalar]
            for scalar in scalars
            if scalar != name
        }
    traced = trace(model, data, values)
    for name, part in program.parts.items():
        own, before = soft, f"{name}, " if name else ""
        if name:
            own = {site: soft[model.site_name(name, site)] for site in part.sites}
        of_part = _of_outcomes(part, traced[within(name, part.model.observed)], own)
        statistics |= {before + key: value for key, value in of_part.items()}
    for group in model.tied if program.is_joint else ():
        tied = [soft[model.site_name(*member)].ravel() for member in group]
        statistics[f"{group[0][1]}, tied"] = (tied[0] * tied[1]).mean()
    for name in centred:  # Its mean is 0, whatever the kernel does.
        statistics.pop(f"{name}: mean", None)
    return statistics


def _of_outcomes(program: Program[Any], site: dict[str, Any], soft: Values) -> dict[str, Scalar]:
    """Statistics of the outcomes of one kind of judgement and the parameters together."""
    fn, value = site["fn"], site["value"]
    statistics = {"log-likelihood": fn.log_prob(value).mean()}
    if isinstance(fn, Choice):
        return statistics | {"outcomes × logits": (value * jnp.tanh(fn.utility)).mean()}
    if not program.counts_classes:
        read = observation(fn, value)
        side = jnp.where(read.votes > 0, read.kappa / jnp.maximum(read.votes, 1.0), 0.0)
        side = side.reshape(-1, read.logits.size).sum(0)
        return statistics | {"outcomes × logits": (side * jnp.tanh(read.logits.ravel())).mean()}
    share = fn.responsibilities(value)
    sureness = (share**2).sum(-1).mean()
    if program.has_truth and program.data.answer_scale != "choice":  # Labels, and their items.
        statistics["sureness of the classes"] = sureness
        statistics["labels × classes"] = share[fn.group, value].mean()
        first = jnp.mean(value == 0)
        for name, each in soft.items():
            if each.size:
                statistics[f"{name}: first × first label"] = each.ravel()[0] * first
    elif program.latent:  # Votes, and the types of those who vote.
        logits, total, kappa = (
            part.reshape(-1, share.shape[-1])
            for part in observation(fn, value, jnp.ones_like(share))[:3]
        )
        agreeing = (share[fn.group] * kappa / total * jnp.tanh(logits)).sum(-1).mean()
        statistics["sureness of the types"] = sureness
        statistics["outcomes × logits × types"] = agreeing
    else:  # Classes of single rows.
        statistics["sureness of the classes"] = sureness
        for name, each in soft.items():
            statistics[f"first class × {name}"] = share[:, 0].mean() * each.mean()
    return statistics
