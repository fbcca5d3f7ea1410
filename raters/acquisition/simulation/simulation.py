"""Simulated campaigns: policies compared on simulated annotators, or on recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from raters.acquisition.campaign.refits import Refits, check_several_draws
from raters.acquisition.policy.policy import Policy, check_names
from raters.acquisition.questions import pool as pools
from raters.acquisition.scoring.criteria import competence_site
from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.scores import mean
from raters.acquisition.simulation.answers import Answers, Recorded, Simulated, probs_under
from raters.errors import DataError, SettingError
from raters.errors.validation import checked, numbers, whole
from raters.fitting.result import check_data, check_model
from raters.inference import Backend, PGGibbs
from raters.inference.base import progress_bar
from raters.judgements.base import Judgements
from raters.model import Model
from raters.program import Program

_QUICK = PGGibbs(draws=200, warmup=50, chains=1)
Measure = Callable[[Posterior, Mapping[str, Any]], dict[str, float]]


@checked
def simulate_campaign(
    model: Model[Any],
    truth: Mapping[str, Any],
    pool: Judgements,
    policy: Policy | Mapping[str, Policy],
    *,
    backend: Backend | None = None,
    batch_size: int = 10,
    batches: int = 10,
    measure: Measure | None = None,
    seed: int = 0,
    progress: bool = True,
) -> xr.Dataset:
    """Run a campaign on simulated annotators, to compare policies.

    All policies share their random numbers: the n-th answer to the same question by the same
    annotator is the same for each, so that differences between policies are not due to chance.

    Parameters
    ----------
    model : Model
        Model of the answers under `truth`, and of the fits between batches.
    truth : mapping
        Values of the sites that the likelihood reads, as `raters.simulate` returns them; for labels
        also ``true_class``, and for models of types ``type``.
    pool : Judgements
        Questions that may be asked, repeatedly for comparisons, once for labels.
    policy : Policy, or mapping of names to policies
    backend : Backend, optional
        Short Gibbs runs by default, each started where the last ended.
    batch_size, batches : int
        Number of questions in a batch, and of batches.
    measure : callable, optional
        From a `Posterior` and the truth to numbers by name. By default for items with rewards
        ``tau`` (Kendall's τ of posterior means and true rewards) and ``coverage`` (the share of
        pairs for which a 90 % interval of the difference holds the true one); for annotators
        ``competence_correlation``; for labels ``accuracy``.
    seed : int
    progress : bool

    Returns
    -------
    xarray.Dataset
        With axes ``policy`` and ``batch``: ``answers`` (so far), ``cost``, the measures, and, where
        annotators have a true competence, ``competence_asked``, its mean over the batch.

    Raises
    ------
    SettingError
        When `truth` does not fit the model, the back-end cannot run it, or a setting is not
        possible.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import Random, simulate_campaign
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> curves = simulate_campaign(
    ...     rt.ExtendedBTL(), truth, rt.Candidates.pairs(votes),
    ...     {"random": rt.Policy(score=Random()), "ours": rt.Policy()},
    ...     batch_size=5, batches=2, progress=False)
    >>> dict(curves.sizes)
    {'policy': 2, 'batch': 2}
    >>> sorted(curves)
    ['answers', 'competence_asked', 'competence_correlation', 'cost', 'coverage', 'tau']
    """
    check_model(model)
    check_data(pool, "pool", model)
    pool, _ = pools.prepared(pool, None)
    answers = Simulated(pool, probs_under(model, truth, pool), seed)
    settings = _Settings(
        backend or _QUICK, batch_size, batches, measure or measures, seed, progress
    )
    return _compared(model, answers, truth, policy, settings)


@checked
def replay_campaign(
    model: Model[Any],
    votes: Judgements,
    policy: Policy | Mapping[str, Policy],
    *,
    truth: Mapping[str, Any] | None = None,
    backend: Backend | None = None,
    batch_size: int = 10,
    batches: int | None = None,
    measure: Measure | None = None,
    seed: int = 0,
    progress: bool = True,
) -> xr.Dataset:
    """Run a campaign on recorded answers, each of which is given once.

    Parameters
    ----------
    model : Model
    votes : Judgements
        The record. Several answers of an annotator to one question come in a random order, the same
        for every policy.
    policy : Policy, or mapping of names to policies
    truth : mapping, optional
        Known part of the truth, for `measure`: for example ``{"reward": grades}``, in the order of
        the items.
    backend, batch_size : Backend, int
        As in `simulate_campaign`.
    batches : int, optional
        Number of batches; by default until the record is used up.
    measure, seed, progress : callable, int, bool
        As in `simulate_campaign`.

    Returns
    -------
    xarray.Dataset
        As in `simulate_campaign`.

    Raises
    ------
    DataError
        When the record has no outcomes.
    SettingError
        When the back-end cannot run the model, or a setting is not possible.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import replay_campaign
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> curve = replay_campaign(rt.ExtendedBTL(), votes, rt.Policy(), truth=truth, batch_size=8,
    ...                         progress=False)
    >>> int(curve["answers"][0, -1])
    30
    """
    check_model(model)
    check_data(votes, "votes", model)
    if not votes.has_answers:
        raise DataError(
            parameter="votes",
            problem="has no answers to replay",
            expected="give judgements with outcomes, or simulate the answers",
            instead="simulate_campaign(model, truth, pool, policy)",
        )
    answers = Recorded(votes, seed)
    num_batches = answers.total if batches is None else batches
    settings = _Settings(
        backend or _QUICK, batch_size, num_batches, measure or measures, seed, progress
    )
    truth = {} if truth is None else truth
    _check_truth(Program(model, answers.pool), truth)
    return _compared(model, answers, truth, policy, settings)


@dataclass(frozen=True)
class _Settings:
    backend: Backend
    batch_size: int
    batches: int
    measure: Measure
    seed: int
    progress: bool

    def __post_init__(self) -> None:
        whole("batch_size", self.batch_size)
        whole("batches", self.batches)
        whole("seed", self.seed, least=0)


# ---------------------------------------------------------------- the loop


def _compared(
    model: Model[Any],
    answers: Answers,
    truth: Mapping[str, Any],
    policy: Policy | Mapping[str, Policy],
    settings: _Settings,
) -> xr.Dataset:
    """Curves of all policies."""
    policies = {"policy": policy} if isinstance(policy, Policy) else dict(policy)
    if not policies:
        raise SettingError(
            parameter="policy",
            problem="is empty",
            expected="give one, or a mapping from names to policies",
        )
    for name, one in policies.items():
        if not isinstance(one, Policy):
            raise SettingError(
                parameter="policy",
                value=one,
                problem=f"is not possible for {name!r}",
                expected="it must be a policy",
                instead="rt.Policy(target='ranking')",
            )
        check_names(one, answers.pool.judges)
    if reason := settings.backend.why_not(Program(model, answers.pool)):
        raise SettingError(reason)
    check_several_draws(settings.backend)
    curves = []
    with progress_bar(len(policies) * settings.batches, "campaign", settings.progress) as bar:
        for one in policies.values():
            curves.append(_campaign(model, answers, truth, one, settings, bar))
    return xr.concat(curves, "policy", join="outer").assign_coords(policy=list(policies))


def _check_truth(program: Program[Any], truth: Mapping[str, Any]) -> None:
    """Raise for values of a site in another shape than the model's."""
    for name, site in program.sites.items():
        if name in truth and (shape := numbers("truth", truth[name]).shape) != site.shape:
            raise SettingError(
                parameter="truth",
                problem=f"has {name!r} of shape {shape}",
                expected=f"it must be {site.shape}",
            )


def _campaign(
    model: Model[Any],
    answers: Answers,
    truth: Mapping[str, Any],
    policy: Policy,
    settings: _Settings,
    bar: Any,
) -> xr.Dataset:
    """Curve of one policy."""
    pool = answers.pool
    empty = pools.answers(pool, np.zeros(0, int), np.zeros(0))
    refits = Refits(model, settings.backend, pool, settings.seed)
    asked = np.zeros(pool.num_rows, int)
    judge = np.asarray(pool.codes(pool.judge))
    cost = policy.cost_of(pool.judges)
    rows, values = np.zeros(0, int), np.zeros(0)
    measured: list[dict[str, float]] = []
    posterior = refits.posterior(values, empty, settings.batch_size)
    for step in range(settings.batches):
        free = np.flatnonzero(answers.left(asked))
        if not len(free):
            break
        seed = pools.seed_of(settings.seed, step)
        so_far = np.bincount(judge[rows], minlength=len(pool.judges))
        chosen = policy.choose(
            posterior, pool.rows(free), settings.batch_size, seed=seed, asked=so_far
        )
        batch = free[chosen.rows]
        if not len(batch):
            break
        outcomes = []
        for row in batch.tolist():
            outcomes.append(answers.answer(row, int(asked[row])))
            asked[row] += 1
        rows, values = np.concatenate([rows, batch]), np.concatenate([values, outcomes])
        data = pools.answers(pool, rows, values)
        posterior = refits.posterior(values, data, 1)
        row_of_curve = {"answers": len(rows), "cost": float(cost[judge[rows]].sum())}
        row_of_curve |= settings.measure(posterior, truth)
        if "competence" in truth and np.ndim(truth["competence"]) == 1:
            competence = np.asarray(truth["competence"])[judge[batch]]
            row_of_curve["competence_asked"] = float(competence.mean())
        measured.append(row_of_curve)
        bar.update()
    if not measured:
        raise SettingError(
            parameter="policy",
            value=policy,
            problem="leaves nothing to ask: no question is left, or nobody may be asked",
            expected="give more questions, or a larger quota",
        )
    table = {name: ("batch", [row[name] for row in measured]) for name in measured[0]}
    return xr.Dataset(table, {"batch": np.arange(1, len(measured) + 1)})


def measures(posterior: Posterior, truth: Mapping[str, Any]) -> dict[str, float]:
    """Measures of `simulate_campaign` where none are given."""
    from scipy.stats import kendalltau

    values: dict[str, float] = {}
    weight = posterior.weight
    if "reward" in truth and "reward" in posterior.draws and np.ndim(truth["reward"]) == 1:
        real, drawn = np.asarray(truth["reward"], float), posterior.draws["reward"]
        values["tau"] = float(kendalltau(np.tensordot(weight, drawn, 2), real).statistic)
        values["coverage"] = _coverage(drawn, weight, real)
    site = competence_site(posterior)
    if (
        site in truth
        and site in posterior.draws
        and np.ndim(truth[site]) == 1
        and len(truth[site]) > 1
    ):
        estimate = np.tensordot(weight, posterior.draws[site], 2)
        values["competence_correlation"] = _correlation(estimate, np.asarray(truth[site], float))
    if "true_class" in truth:
        values["accuracy"] = float(
            (posterior.responsibility().argmax(-1) == np.asarray(truth["true_class"])).mean()
        )
    return values


def _correlation(
    one: Float[np.ndarray, " annotator"], other: Float[np.ndarray, " annotator"]
) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) > 0 and np.ptp(other) > 0 else 0.0


def _coverage(
    drawn: Float[np.ndarray, "chain draw item"],
    weight: Float[np.ndarray, "chain draw"],
    real: Float[np.ndarray, " item"],
) -> float:
    """Share of pairs whose true difference lies within the central 90 % of its draws."""
    first, second = np.triu_indices(len(real), 1)
    if len(first) > 2000:
        rows = np.random.default_rng(0).choice(len(first), 2000, replace=False)
        first, second = first[rows], second[rows]
    gap = jnp.asarray(drawn)[:, :, first] - jnp.asarray(drawn)[:, :, second]
    below = np.asarray(
        mean((gap < (real[first] - real[second])).astype(jnp.float32), jnp.asarray(weight))
    )
    return float(((below > 0.05) & (below < 0.95)).mean())


@checked
def area_under_curve(curves: xr.Dataset, name: str = "tau") -> xr.DataArray:
    """Mean of a curve over the batches, for each policy.

    Parameters
    ----------
    curves : xarray.Dataset
        As `simulate_campaign` returns it.
    name : str
        Name of the curve.

    Returns
    -------
    xarray.DataArray
        With axis ``policy``.

    Raises
    ------
    SettingError
        When there is no curve of this name.

    Examples
    --------
    >>> import xarray as xr
    >>> from raters.acquisition import area_under_curve
    >>> float(area_under_curve(xr.Dataset({"tau": ("batch", [0.5, 0.7])})))
    0.6
    """
    if name not in curves or "batch" not in curves[name].dims:
        raise SettingError(
            parameter="name",
            value=name,
            problem="is the name of no curve",
            expected=f"choose one of {sorted(map(str, curves))}",
        )
    return curves[name].mean("batch")
