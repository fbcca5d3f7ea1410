"""Campaigns that cost nothing: policies tried on people who are made up, or on answers that were recorded."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import kendalltau

from raters._check import whole
from raters._result import check_data, check_model
from raters.acquisition import _pool
from raters.acquisition._refits import Refits
from raters.acquisition.criteria import competence_site
from raters.acquisition.policy import Policy, check_names
from raters.acquisition.posterior import Posterior
from raters.acquisition.scores import mean
from raters.data import Comparisons
from raters.errors import DataError, SettingError
from raters.inference import Backend, PGGibbs
from raters.inference._trace import latent_sites
from raters.inference.base import progress_bar
from raters.labels import Labels
from raters.model import Model

_QUICK = PGGibbs(draws=200, warmup=50, chains=1)
Measure = Callable[[Posterior, Mapping[str, Any]], dict[str, float]]


def simulate_campaign(
    model: Model,
    truth: Mapping[str, Any],
    pool: Comparisons | Labels,
    policy: Policy | Mapping[str, Policy],
    *,
    backend: Backend | None = None,
    batch_size: int = 10,
    batches: int = 10,
    measure: Measure | None = None,
    seed: int = 0,
    progress: bool = True,
) -> xr.Dataset:
    """Run a campaign on simulated annotators, to see what a policy would save.

    All policies get common random numbers: the n-th answer to the same question by the same annotator is the same for every
    one of them, so that differences between policies are not differences of luck.

    Parameters
    ----------
    model : Model
        Answers follow it, under `truth`, and it is what is fitted between batches.
    truth : mapping
        The value of each of the model's sites that the likelihood reads, as `raters.simulate` gives them; for labels also
        ``true_class``, and for models of types ``type``.
    pool : Comparisons or Labels
        The questions that may be asked, again and again for comparisons, once for labels.
    policy : Policy, or mapping of names to policies
    backend : Backend, optional
        Short Gibbs runs by default, each started where the last ended.
    batch_size, batches : int
    measure : callable, optional
        From a `Posterior` and the truth to numbers by name. By default for items with rewards ``tau`` (Kendall's τ of posterior
        means and true rewards) and ``coverage`` (the share of pairs for which a 90 % interval of the difference holds the
        true one); for annotators ``competence_correlation``; for labels ``accuracy``.
    seed : int
    progress : bool

    Returns
    -------
    xarray.Dataset
        With axes ``policy`` and ``batch``: ``answers`` (so far), ``cost``, what `measure` gives, and, where annotators have a
        true competence, the mean of it in the batch, ``competence_asked``.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import Random, simulate_campaign
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> curves = simulate_campaign(
    ...     rt.ExtendedBTL(), truth, rt.Candidates.pairs(votes), {"random": rt.Policy(score=Random()), "ours": rt.Policy()},
    ...     batch_size=5, batches=2, progress=False)
    >>> dict(curves.sizes), sorted(curves)
    ({'policy': 2, 'batch': 2}, ['answers', 'competence_asked', 'competence_correlation', 'cost', 'coverage', 'tau'])
    """
    check_model(model)
    check_data(pool, "the pool", model)
    pool, _ = _pool.prepared(pool, None)
    answers = Simulated(pool, _chances(model, truth, pool), seed)
    settings = _Settings(backend or _QUICK, batch_size, batches, measure or measures, seed, progress)
    return _compared(model, answers, truth, policy, settings)


def replay_campaign(
    model: Model,
    votes: Comparisons | Labels,
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
    """Run a campaign on recorded answers, each of which can be had once.

    Parameters
    ----------
    model : Model
    votes : Comparisons or Labels
        The record. A question that an annotator answered more than once gives its answers in a random order, the same for
        every policy.
    policy : Policy, or mapping of names to policies
    truth : mapping, optional
        What is known of the truth, for `measure`: for example ``{"reward": grades}``, in the order of the items.
    backend, batch_size, measure, seed, progress
        As in `simulate_campaign`.
    batches : int, optional
        Until the record is used up by default.

    Returns
    -------
    xarray.Dataset
        As in `simulate_campaign`.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import replay_campaign
    >>> votes, truth = rt.datasets.paper(num_items=5, num_annotators=3, num_votes=30, seed=0)
    >>> curve = replay_campaign(rt.ExtendedBTL(), votes, rt.Policy(), truth=truth, batch_size=8, progress=False)
    >>> int(curve["answers"][0, -1])
    30
    """
    check_model(model)
    check_data(votes, "the record", model)
    if not votes.answered:
        raise DataError("there are no answers to replay; give judgements with outcomes, or use simulate_campaign")
    answers = Recorded(votes, seed)
    number = answers.total if batches is None else batches
    settings = _Settings(backend or _QUICK, batch_size, number, measure or measures, seed, progress)
    return _compared(model, answers, truth or {}, policy, settings)


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


# ---------------------------------------------------------------- who answers


class Answers(abc.ABC):
    """Where answers come from: for each row of a pool, a sequence of them."""

    pool: Comparisons | Labels

    @abc.abstractmethod
    def left(self, asked: np.ndarray) -> np.ndarray:
        """Whether each row can be asked again, when it was asked so often."""

    @abc.abstractmethod
    def answer(self, row: int, number: int) -> float:
        """The answer to a row when it is asked for the `number`-th time, from 0: a vote for the first item, or a class."""


class Simulated(Answers):
    """Answers drawn with the `chances` of each, shape (answer, row)."""

    def __init__(self, pool: Comparisons | Labels, chances: np.ndarray, seed: int) -> None:
        self.pool, self.chances, self.seed = pool, np.cumsum(chances, 0), seed

    def left(self, asked):
        """Comparisons can be asked again."""
        return np.ones(len(asked), bool) if isinstance(self.pool, Comparisons) else asked == 0

    def answer(self, row, number):
        """By a uniform number that belongs to the row and the number alone."""
        uniform = np.random.default_rng([self.seed, row, number]).random()
        code = int((uniform > self.chances[:-1, row]).sum())
        return float(code == 0) if isinstance(self.pool, Comparisons) else float(code)


class Recorded(Answers):
    """Answers that were given."""

    def __init__(self, votes: Comparisons | Labels, seed: int) -> None:
        count = np.ones(len(votes.annotator)) if votes.count is None else np.asarray(votes.count)
        rng = np.random.default_rng(seed)
        self.pool, _ = _pool.prepared(votes, None)
        number = {key: row for row, key in enumerate(_pool.keys(self.pool).tolist())}
        self.queues: list[list[float]] = [[] for _ in number]
        keys = _pool.keys(votes).tolist()
        turned = np.zeros(len(keys), bool)
        if isinstance(votes, Comparisons):
            lead = np.asarray(self.pool.first)[[number[key] for key in keys]]  # type: ignore[union-attr]
            turned = np.asarray(votes.first) != lead
        outcome = np.asarray(votes.label if isinstance(votes, Labels) else votes.wins, float)
        for key, times, value, other in zip(keys, count.tolist(), outcome.tolist(), turned.tolist(), strict=True):
            if isinstance(votes, Labels):
                answers = [value] * round(times)
            else:
                wins = times - value if other else value
                answers = [1.0] * int(wins) + [0.5] * round(2 * (wins % 1)) + [0.0] * int(times - wins)
            self.queues[number[key]] += answers
        for queue in self.queues:
            rng.shuffle(queue)
        self.length = np.array([len(queue) for queue in self.queues])
        self.total = int(self.length.sum())

    def left(self, asked):
        """Until the answers to the row are used up."""
        return asked < self.length

    def answer(self, row, number):
        """In order."""
        return self.queues[row][number]


def _chances(model: Model, truth: Mapping[str, Any], pool: Any) -> np.ndarray:
    """Chances of the answers under the truth, shape (answer, row)."""
    prior = Posterior.prior(model, pool, draws=1)
    sites = latent_sites(model, prior.data)
    if not isinstance(truth, Mapping) or (unknown := sorted(set(map(str, truth)) - set(sites) - {"true_class", "type"})):
        what = f"has {unknown}" if isinstance(truth, Mapping) else f"is {truth!r}"
        raise SettingError(f"truth {what}; it maps sites of {type(model).__name__} to values: {sorted(sites)}")
    values = {}
    for name, drawn in prior.draws.items():
        # Sites that only govern others, such as scales, need not be known.
        if name not in truth and {"item", "annotator"} & set(sites[name].dims):
            raise SettingError(f"truth says nothing of {name!r}, which answers depend on; add it, shape {drawn.shape[2:]}")
        values[name] = np.asarray(truth.get(name, drawn[0, 0]), np.float32)[None, None]
        if values[name].shape != drawn.shape:
            raise SettingError(f"truth has {name!r} of shape {values[name].shape[2:]}; the model needs {drawn.shape[2:]}")
        if not np.isfinite(values[name]).all():
            raise SettingError(f"truth has {name!r} with values that are no numbers; all must be finite")
    known = Posterior(model, prior.data, values, np.ones((1, 1), np.float32))
    parts = []
    for piece, number in known.pieces(pool):
        table = np.asarray(known.chances(piece, by_class=True).table)[0]  # (class, answer, question)
        of = np.zeros(table.shape[-1], int)
        if len(table) > 1:
            name, codes = ("true_class", piece.item) if isinstance(piece, Labels) else ("type", piece.annotator)
            if name not in truth:
                raise SettingError(f"truth needs {name!r}, which rt.simulate gives, to answer as {type(model).__name__} does")
            of = np.asarray(truth[name])[np.asarray(codes)]
        parts.append(table[of, :, np.arange(len(of))].T[:, :number])
    return np.concatenate(parts, 1)


# ---------------------------------------------------------------- the loop


def _compared(model, answers: Answers, truth, policy, settings: _Settings) -> xr.Dataset:
    policies = {"policy": policy} if isinstance(policy, Policy) else dict(policy)
    if not policies:
        raise SettingError("there is no policy to try; give one, such as rt.Policy(), or a mapping from names to policies")
    for name, one in policies.items():
        if not isinstance(one, Policy):
            raise SettingError(f"policy {name!r} must be one such as rt.Policy(target='ranking'), not {one!r}")
        check_names(one, answers.pool.annotators)
    if reason := settings.backend.why_not(model, answers.pool):
        raise SettingError(reason)
    curves = []
    with progress_bar(len(policies) * settings.batches, "campaign", settings.progress) as bar:
        for one in policies.values():
            curves.append(_campaign(model, answers, truth, one, settings, bar))
    return xr.concat(curves, "policy", join="outer").assign_coords(policy=list(policies))


def _campaign(model, answers: Answers, truth, policy: Policy, settings: _Settings, bar) -> xr.Dataset:
    pool = answers.pool
    empty = _pool.take(_pool.with_values(pool, np.zeros(_pool.num_rows(pool))), np.zeros(0, int))
    refits = Refits(model, settings.backend, pool, settings.seed)
    asked = np.zeros(_pool.num_rows(pool), int)
    who = np.asarray(pool.annotator)
    cost = policy.cost_of(pool.annotators)
    rows, values, measured = np.zeros(0, int), np.zeros(0), []
    posterior = refits.posterior(values, empty, settings.batch_size)
    for number in range(settings.batches):
        free = np.flatnonzero(answers.left(asked))
        if not len(free):
            break
        seed = _pool.seed_of(settings.seed, number)
        so_far = np.bincount(who[rows], minlength=len(pool.annotators))
        chosen = policy.choose(posterior, _pool.take(pool, free), settings.batch_size, seed=seed, asked=so_far)
        batch = free[chosen.rows]
        if not len(batch):
            break
        told = []
        for row in batch.tolist():
            told.append(answers.answer(row, int(asked[row])))
            asked[row] += 1
        rows, values = np.concatenate([rows, batch]), np.concatenate([values, told])
        data = _pool.joined(empty, _pool.answers(pool, rows, values))
        posterior = refits.posterior(values, data, 1)
        found = {"answers": len(rows), "cost": float(cost[who[rows]].sum())} | settings.measure(posterior, truth)
        if np.ndim(truth.get("competence")) == 1:
            found["competence_asked"] = float(np.asarray(truth["competence"])[who[batch]].mean())
        measured.append(found)
        bar.update()
    if not measured:
        raise SettingError(f"there is nothing to ask under {policy!r}: no question is left, or nobody may be asked")
    table = {name: ("batch", [one[name] for one in measured]) for name in measured[0]}
    return xr.Dataset(table, {"batch": np.arange(1, len(measured) + 1)})


def measures(posterior: Posterior, truth: Mapping[str, Any]) -> dict[str, float]:
    """What `simulate_campaign` measures unless told otherwise."""
    found = {}
    weight = posterior.weight
    if "reward" in truth and "reward" in posterior.draws and np.ndim(truth["reward"]) == 1:
        real, drawn = np.asarray(truth["reward"], float), posterior.draws["reward"]
        found["tau"] = float(kendalltau(np.tensordot(weight, drawn, 2), real).statistic)
        found["coverage"] = _coverage(drawn, weight, real)
    site = competence_site(posterior)
    if site in truth and site in posterior.draws and np.ndim(truth[site]) == 1 and len(truth[site]) > 1:
        estimate = np.tensordot(weight, posterior.draws[site], 2)
        found["competence_correlation"] = _correlation(estimate, np.asarray(truth[site], float))
    if "true_class" in truth:
        found["accuracy"] = float((posterior.responsibility().argmax(-1) == np.asarray(truth["true_class"])).mean())
    return found


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) > 0 and np.ptp(other) > 0 else 0.0


def _coverage(drawn: np.ndarray, weight: np.ndarray, real: np.ndarray) -> float:
    """Share of pairs whose true difference lies within the central 90 % of its draws."""
    first, second = np.triu_indices(len(real), 1)
    if len(first) > 2000:
        rows = np.random.default_rng(0).choice(len(first), 2000, replace=False)
        first, second = first[rows], second[rows]
    gap = jnp.asarray(drawn)[:, :, first] - jnp.asarray(drawn)[:, :, second]
    below = np.asarray(mean((gap < (real[first] - real[second])).astype(jnp.float32), jnp.asarray(weight)))
    return float(((below > 0.05) & (below < 0.95)).mean())


def area_under_curve(curves: xr.Dataset, name: str = "tau") -> xr.DataArray:
    """Mean of a curve over the batches: the area under it, for each policy.

    Examples
    --------
    >>> import xarray as xr
    >>> from raters.acquisition import area_under_curve
    >>> float(area_under_curve(xr.Dataset({"tau": ("batch", [0.5, 0.7])})))
    0.6
    """
    if name not in curves:
        raise SettingError(f"there is no curve of {name!r}; there are {sorted(map(str, curves))}")
    return curves[name].mean("batch")
