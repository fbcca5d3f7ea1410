"""Geweke's joint-distribution test of the Gibbs kernel."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpyro import handlers
from numpyro.distributions.transforms import biject_to

from raters._check import whole
from raters._judgements import Judgements
from raters.distributions import GroupedMixture
from raters.errors import BackendError
from raters.inference import _sweep
from raters.inference._conditionals import observation
from raters.inference._trace import latent_sites, trace
from raters.inference.base import progress_bar
from raters.inference.pg_gibbs import gibbs_sweep
from raters.labels import Labels
from raters.model import Model, Shift, Values

# Votes; or labels and classes.
Outcomes = tuple[Any, ...]

# Draws at a time.
_PIECE = 1000


def answered(questions: Judgements) -> Any:
    """The questions with any outcomes, which back-ends want to see before they say whether they can run."""
    asked: Any = questions.without_outcomes()
    return asked.with_outcomes(np.zeros(asked.annotator.shape))


def blind(questions: Any) -> Any:
    """The questions without the classes that are known: they are drawn like the labels, and then known."""
    return dataclasses.replace(questions, truth=None) if isinstance(questions, Labels) else questions


def knowing(data: Any, questions: Any, classes: Any) -> Any:
    """Data drawn for the questions, with the classes known of the items of which they are."""
    if not isinstance(data, Labels) or questions.truth is None:
        return data
    return dataclasses.replace(data, truth=jnp.where(questions.truth >= 0, classes, -1).astype(np.int32))


def geweke(
    model: Model,
    questions: Judgements,
    *,
    seed: int,
    chains: int = 200,
    sweeps: int = 30,
    prior_draws: int = 100_000,
    progress: bool = False,
) -> xr.Dataset:
    """Geweke's test of the Gibbs kernel: two ways to draw parameters and outcomes together, compared.

    One way draws parameters from the prior and outcomes given them. The other alternates: outcomes given the parameters,
    then one sweep of the kernel given the outcomes (votes; or labels, and the classes of those items of which it is known).
    If the kernel leaves the posterior invariant, both have one distribution. Compared are means of the unconstrained
    coordinates u of every site (rewards less their mean) through asinh(u), which has all moments under every prior, of their
    squares and products, and of the log-likelihood.

    The alternating chains are many and short, and each starts at a draw of the first kind, so under a correct kernel they are
    in equilibrium from the start, however slowly they mix, and their independence gives the standard errors.

    Parameters
    ----------
    model : Model
    questions : Comparisons or Labels
        Who is asked about what; small tables have the most power.
    seed : int
    chains, sweeps : int
        Number and length of the alternating chains.
    prior_draws : int
        Draws of the direct kind.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    xarray.Dataset
        With axis ``statistic``: ``z``, the difference of the means in standard errors; the two means, ``direct`` and
        ``alternating`` (adjusted for where the chains started); and ``standard_error``. A correct kernel gives z of
        Student's distribution with `chains` − 2 degrees of freedom.

    References
    ----------
    Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators. Journal of the American Statistical
    Association 99, 799–804.
    """
    whole("chains", chains, least=10)
    whole("sweeps", sweeps)
    whole("prior_draws", prior_draws, least=100)
    if reason := (model.why_not(questions) or _sweep.why_not(model, answered(questions))):
        raise BackendError(reason)
    with jax.enable_x64(True):
        asked: Any = jax.tree.map(jnp.asarray, questions.without_outcomes())
        if asked.count is not None:
            # NumPyro's Binomial draws need whole counts here.
            asked = dataclasses.replace(asked, count=asked.count.astype(int))
        prior_key, start_key, chain_key = jax.random.split(jax.random.key(seed), 3)
        direct = _in_pieces(partial(_direct, model, asked), jax.random.split(prior_key, prior_draws))
        starts = _in_pieces(partial(_starts, model, asked), jax.random.split(start_key, chains))
        states = _alternating(model, asked, starts, chain_key, sweeps, progress)
        begun, run = (_in_pieces(partial(_statistics_of, model, asked), pairs) for pairs in (starts, states))
    table = np.array([_compare(*(np.asarray(part[name]) for part in (direct, begun, run))) for name in direct]).T
    return xr.Dataset(
        {
            name: ("statistic", values)
            for name, values in zip(("z", "direct", "alternating", "standard_error"), table, strict=True)
        },
        coords={"statistic": list(direct)},
        attrs={"model": repr(model), "chains": chains, "sweeps": sweeps, "prior_draws": prior_draws},
    )


def _compare(direct: np.ndarray, begun: np.ndarray, run: np.ndarray) -> tuple[float, float, float, float]:
    """z, the direct mean, the mean of the chains with their start as control variate, and the standard error."""
    means = run.reshape(len(begun), -1).mean(1)
    slope = np.cov(means, begun)[0, 1] / begun.var(ddof=1)
    adjusted = means - slope * (begun - direct.mean())
    error = np.sqrt(adjusted.var(ddof=2) / len(adjusted) + direct.var() / len(direct))
    return (adjusted.mean() - direct.mean()) / error, direct.mean(), adjusted.mean(), error


def _drawn(model: Model, asked: Any, key: jax.Array, given: Values) -> tuple[Values, Outcomes]:
    """Parameters from the prior, but for those given, and outcomes."""
    program = handlers.seed(handlers.substitute(model.generate, given), key)
    found = handlers.trace(program).get_trace(blind(asked))
    values = {name: site["value"] for name, site in found.items() if site["type"] == "sample" and name != model.observed}
    observed = found[model.observed]
    return values, (observed["value"], *observed["intermediates"])


def _with(asked: Any, outcomes: Outcomes) -> Any:
    """The questions with outcomes, also within a compiled function."""
    if isinstance(asked, Labels):
        return knowing(dataclasses.replace(asked, label=outcomes[0].astype(np.int32)), asked, outcomes[1])
    return dataclasses.replace(asked, wins=outcomes[0].astype(float))


def _in_pieces(function: Any, table: Any) -> Any:
    """A function of one row at a time, over a table of any length in pieces of one shape, so that it is compiled once."""
    number = len(jax.tree.leaves(table)[0])
    pieces = []
    for begin in range(0, number, _PIECE):
        rows = np.minimum(np.arange(begin, begin + _PIECE), number - 1)
        pieces.append(jax.tree.map(np.asarray, function(jax.tree.map(lambda column, rows=rows: column[rows], table))))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:number], *pieces)


def _direct(model: Model, asked: Any, keys: jax.Array) -> dict[str, jax.Array]:
    return _statistics_of(model, asked, _starts(model, asked, keys))


@partial(jax.jit, static_argnums=0)
def _starts(model: Model, asked: Any, keys: jax.Array) -> tuple[Values, Outcomes]:
    return jax.vmap(lambda key: _drawn(model, asked, key, {}))(keys)


@partial(jax.jit, static_argnums=0)
def _answers(model: Model, asked: Any, values: Values, key: jax.Array) -> Outcomes:
    return _drawn(model, asked, key, values)[1]


def _alternating(model, asked, begun, key, sweeps: int, progress: bool) -> tuple[Values, Outcomes]:
    """The states of all chains, one chain after the other: parameters after each sweep, and the outcomes it was given."""
    values, outcomes = begun
    chains = len(outcomes[0])
    starts = [{name: np.asarray(value[chain]) for name, value in values.items()} for chain in range(chains)]
    any_answers = _with(asked, tuple(part[0] for part in outcomes))
    plan, row = _sweep.plan(model, any_answers, starts[0]), any_answers.take(slice(0, 1))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    kept, given = [], []
    with progress_bar(chains, "Geweke", progress) as bar:
        for current, chain_key in zip(starts, jax.random.split(key, chains), strict=True):
            for sweep_key in jax.random.split(chain_key, sweeps):
                answers = _answers(model, asked, current, sweep_key)
                current = gibbs_sweep(plan, row, _with(asked, answers), current, rng)
                current = {name: np.asarray(value) for name, value in current.items()}
                kept.append(current)
                given.append(answers)
            bar.update()
    states = {name: np.stack([state[name] for state in kept]) for name in kept[0]}
    return states, tuple(np.stack(part) for part in zip(*given, strict=True))


@partial(jax.jit, static_argnums=0)
def _statistics_of(model: Model, asked: Any, states: tuple[Values, Outcomes]) -> dict[str, jax.Array]:
    return jax.vmap(lambda values, outcomes: _statistics(model, _with(asked, outcomes), values))(*states)


def _statistics(model: Model, data: Any, values: Values) -> dict[str, jax.Array]:
    """Functions of parameters and outcomes that have all moments, and that between them see every conditional."""
    centred = {symmetry.site: symmetry.axis for symmetry in model.symmetries if isinstance(symmetry, Shift)}
    soft, scalars, found = {}, {}, {}
    for name, site in latent_sites(model, data).items():
        free = biject_to(site.support).inv(values[name])
        if free.size == 0:  # A probability of one alternative.
            continue
        soft[name] = jnp.arcsinh(free - free.mean(centred[name], keepdims=True) if name in centred else free)
        if not site.shape:
            scalars[name] = soft[name]
        else:
            found[f"{name}: first"] = soft[name].ravel()[0]
            found[f"{name}: last"] = soft[name].ravel()[-1]
        found[f"{name}: mean"] = soft[name].mean()
        found[f"{name}: mean square"] = (soft[name] ** 2).mean()
    for name in soft:
        found |= {f"{name}: mean square × {one}": (soft[name] ** 2).mean() * scalars[one] for one in scalars if one != name}
    site = trace(model, data, values)[model.observed]
    found["log-likelihood"] = site["fn"].log_prob(site["value"]).mean()
    if isinstance(data, Labels):
        found |= _statistics_of_labels(site["fn"], site["value"], soft)
    elif isinstance(site["fn"], GroupedMixture):
        found |= _statistics_of_types(site["fn"], site["value"])
    else:
        logits, votes, kappa = observation(site["fn"], site["value"])
        found["outcomes × logits"] = (kappa / votes * jnp.tanh(logits)).mean()
    # The mean of a centred site is 0, whatever the kernel does.
    return {name: value for name, value in found.items() if name not in {f"{site}: mean" for site in centred}}


def _statistics_of_types(fn: GroupedMixture, votes: jax.Array) -> dict[str, jax.Array]:
    """What votes, types and log-odds have to do with each other."""
    share = fn.responsibilities(votes)
    logits, total, kappa = (part.reshape(-1, share.shape[-1]) for part in observation(fn, votes, jnp.ones_like(share)))
    agreeing = (share[fn.group] * kappa / total * jnp.tanh(logits)).sum(-1).mean()
    return {"sureness of the types": (share**2).sum(-1).mean(), "outcomes × logits × types": agreeing}


def _statistics_of_labels(fn: GroupedMixture, labels: jax.Array, soft: Values) -> dict[str, jax.Array]:
    """What labels, classes and parameters have to do with each other."""
    share = fn.responsibilities(labels)
    first = jnp.mean(labels == 0)
    found = {"sureness of the classes": (share**2).sum(-1).mean(), "labels × classes": share[fn.group, labels].mean()}
    return found | {f"{name}: first × first label": value.ravel()[0] * first for name, value in soft.items() if value.size}
