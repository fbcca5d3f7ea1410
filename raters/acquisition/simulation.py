"""Simulated campaigns: policies compared on simulated annotators, or on recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from raters.acquisition.campaign.fits import Fits, several_draws
from raters.acquisition.policy import Policy
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions import pool as pools
from raters.acquisition.scores import competence_site
from raters.errors import SettingError, refuse, refuse_data
from raters.errors.validation import checked, whole
from raters.fitting.result import check_data, check_model
from raters.fitting.simulate import site_values
from raters.inference import Backend, PGGibbs
from raters.inference.base import progress_bar
from raters.judgements.base import Judgements
from raters.model import Model
from raters.program import Program

PerAnswer = Float[np.ndarray, "answer row"]
_QUICK = PGGibbs(draws=200, warmup=50, chains=1)


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
    seed: int = 0,
    progress: bool = True,
) -> xr.Dataset:
    """Run a campaign on simulated annotators, to compare policies, which share their random
    numbers: the n-th answer to the same question by the same annotator is the same for each.

    Parameters
    ----------
    model : Model
        Model of the answers under `truth`, and of the fits between batches.
    truth : mapping
        Values of the sites that the likelihood reads, as `raters.simulate` returns them.
    pool : Judgements
    policy : Policy, or mapping of names to policies
    backend : Backend, optional
        Short Gibbs runs by default, each started where the last ended.
    batch_size, batches : int
        Number of questions in a batch, and of batches.
    seed : int
    progress : bool

    Returns
    -------
    xarray.Dataset
        With axes ``policy`` and ``batch``: ``answers`` (so far), ``cost``; for items with rewards
        ``tau`` (Kendall's τ of posterior means and true rewards) and ``coverage`` (the share of
        pairs for which a 90 % interval of the difference holds the true one); for annotators
        ``competence_correlation`` and ``competence_asked``, the mean competence over the batch; for
        labels ``accuracy``.

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
    answers = simulated(pool, probs_under(model, truth, pool), seed)
    loop = _Loop(model, answers, truth, backend or _QUICK, batch_size, batches, seed)
    return loop.curves(policy, progress)


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
    seed: int = 0,
    progress: bool = True,
) -> xr.Dataset:
    """Run a campaign on recorded answers, each of which is given once.

    Parameters
    ----------
    votes : Judgements
        The record. Several answers of an annotator to one question come in a random order, the same
        for every policy.
    truth : mapping, optional
        Known part of the truth: for example ``{"reward": grades}``, in the order of the items.
    batches : int, optional
        Number of batches; by default until the record is used up.
    model, policy, backend, batch_size, seed, progress
        As in `simulate_campaign`, as is what is returned.

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
        refuse_data("votes", problem="has no answers", expected="simulate them")
    answers, truth = recorded(votes, seed), truth or {}
    sites = Program(model, answers.pool).sites
    site_values(model, sites, {name: truth[name] for name in sites.keys() & truth}, "truth")
    number = int(answers.most.sum()) if batches is None else batches
    loop = _Loop(model, answers, truth, backend or _QUICK, batch_size, number, seed)
    return loop.curves(policy, progress)


# ---------------------------------------------------------------- the loop


class _Loop(NamedTuple):
    """Campaign without a journal."""

    model: Model[Any]
    answers: Answers
    truth: Mapping[str, Any]
    backend: Backend
    batch_size: int
    batches: int
    seed: int

    def curves(self, policy: Policy | Mapping[str, Policy], progress: bool) -> xr.Dataset:
        """Curves of all policies."""
        whole("batch_size", self.batch_size)
        whole("batches", self.batches)
        policies = {"policy": policy} if isinstance(policy, Policy) else dict(policy)
        if not policies or not all(isinstance(one, Policy) for one in policies.values()):
            refuse("policy", policy, expected="give one, or several by name", instead="rt.Policy()")
        for one in policies.values():
            one.check_names(self.answers.pool.judges)
        if reason := self.backend.why_not(Program(self.model, self.answers.pool)):
            raise SettingError(reason)
        several_draws(self.backend)
        with progress_bar(len(policies) * self.batches, "campaign", progress) as bar:
            curves = [self._curve(one, bar) for one in policies.values()]
        return xr.concat(curves, "policy", join="outer").assign_coords(policy=list(policies))

    def _curve(self, policy: Policy, bar: Any) -> xr.Dataset:
        """Curve of one policy."""
        answers, pool = self.answers, self.answers.pool
        fits = Fits(self.model, self.backend, pool, self.seed)
        asked = np.zeros(pool.num_rows, int)
        judge, cost = np.asarray(pool.codes(pool.judge)), policy.cost_of(pool.judges)
        rows, values = np.zeros(0, int), np.zeros(0)
        competence = np.asarray(self.truth.get("competence", 0.0))
        posterior = fits.posterior(values, pools.answers(pool, rows, values), 1)
        measured: list[dict[str, float]] = []
        for step in range(self.batches):
            batch = free = np.flatnonzero(asked < answers.most)
            if len(free):
                by = np.bincount(judge[rows], minlength=len(pool.judges))
                left, seed = pool.rows(free), pools.seed_of(self.seed, step)
                chosen = policy.choose(posterior, left, self.batch_size, seed=seed, asked=by)
                batch = free[chosen.rows]
            if not len(batch):
                break
            outcomes = [answers.outcome(row, int(asked[row])) for row in batch.tolist()]
            asked[batch] += 1
            rows, values = np.concatenate([rows, batch]), np.concatenate([values, outcomes])
            posterior = fits.posterior(values, pools.answers(pool, rows, values), 1)
            numbers_so_far = {"answers": len(rows), "cost": float(cost[judge[rows]].sum())}
            numbers_so_far |= measures(posterior, self.truth)
            if competence.ndim == 1:
                numbers_so_far["competence_asked"] = float(competence[judge[batch]].mean())
            measured.append(numbers_so_far)
            bar.update()
        if not measured:
            refuse("policy", policy, "leaves nothing to ask", "give a larger pool or quota")
        table = {name: ("batch", [row[name] for row in measured]) for name in measured[0]}
        return xr.Dataset(table, {"batch": np.arange(1, len(measured) + 1)})


def measures(posterior: Posterior, truth: Mapping[str, Any]) -> dict[str, float]:
    """Measures of `simulate_campaign`."""
    from scipy.stats import kendalltau

    values: dict[str, float] = {}
    weight = posterior.weight
    if "reward" in truth and "reward" in posterior.draws and np.ndim(truth["reward"]) == 1:
        real, drawn = np.asarray(truth["reward"], float), posterior.draws["reward"]
        values["tau"] = float(kendalltau(weight @ drawn, real).statistic)
        pairs = np.stack(np.triu_indices(len(real), 1))
        if pairs.shape[1] > 2000:
            pairs = pairs[:, np.random.default_rng(0).choice(pairs.shape[1], 2000, replace=False)]
        first, second = pairs
        is_below = drawn[..., first] - drawn[..., second] < real[first] - real[second]
        below = weight @ is_below.astype(np.float32)
        values["coverage"] = float(((below > 0.05) & (below < 0.95)).mean())
    site = competence_site(posterior)
    real = np.asarray(truth.get(site, 0.0), float)
    if site in posterior.draws and real.ndim == 1 and len(real) > 1:
        estimate = weight @ posterior.draws[site]
        varies = np.ptp(estimate) > 0 and np.ptp(real) > 0
        correlation = np.corrcoef(estimate, real)[0, 1] if varies else 0.0
        values["competence_correlation"] = float(correlation)
    if "true_class" in truth:
        right = posterior.responsibility().argmax(-1) == np.asarray(truth["true_class"])
        values["accuracy"] = float(right.mean())
    return values


# ---------------------------------------------------------------- answers


class Answers(NamedTuple):
    """Answers to the questions of a pool: how often each row can be asked, and the outcome of a row
    when it is asked for the n-th time, counted from 0."""

    pool: Judgements
    most: Float[np.ndarray, " row"]
    outcome: Callable[[int, int], float]


def simulated(pool: Judgements, probs: PerAnswer, seed: int) -> Answers:
    """Answers drawn with the probability of each, shape (answer, row)."""
    cumulative, values = np.cumsum(probs, 0), pool.answers()

    def outcome(row: int, number: int) -> float:
        uniform = np.random.default_rng([seed, row, number]).random()
        return float(values[int((uniform > cumulative[:-1, row]).sum())])

    return Answers(pool, np.full(pool.num_rows, np.inf if pool.again else 1.0), outcome)


def recorded(votes: Judgements, seed: int) -> Answers:
    """Recorded answers, each of which is given once."""
    rng, record = np.random.default_rng(seed), votes.canonical()
    pool, _ = pools.prepared(record, None)
    own, keys = np.split(pool.keys(record), [pool.num_rows])
    place = {key: row for row, key in enumerate(own.tolist())}
    queues: list[list[float]] = [[] for _ in place]
    rows, outcomes, numbers = record.single_outcomes()
    for each in np.lexsort((-outcomes, rows)):
        queues[place[keys[rows[each]]]] += [float(outcomes[each])] * int(numbers[each])
    for queue in queues:
        rng.shuffle(queue)
    most = np.array([len(queue) for queue in queues], float)
    return Answers(pool, most, lambda row, number: queues[row][number])


def probs_under(model: Model[Any], truth: Mapping[str, Any], pool: Any) -> PerAnswer:
    """Probability of each answer under the truth."""
    pool.check_listed()
    prior = Posterior.prior(model, pool, draws=1)
    sites, latent = prior.program.sites, prior.program.latent
    classes = set() if latent is None else {latent.name}
    of_sites = {name: value for name, value in truth.items() if name not in classes}
    known = site_values(model, sites, of_sites, "truth")
    # Sites that only govern others, such as scales or the prevalence of classes, need not be known.
    asked = set(pool.question_axes()) - classes
    needed = {name for name in prior.draws if asked & set(sites[name].dims)} | classes
    if missing := sorted(needed - set(truth)):
        refuse("truth", problem=f"has no {missing[0]!r}", expected="answers depend on it; add it")
    each = {name: np.asarray(value)[None] for name, value in known.items()}
    certain = Posterior.equal(prior.program, prior.draws | each)

    def under_truth(piece: Any) -> PerAnswer:
        # (class, answer, question)
        table = np.asarray(certain.answer_probs(piece, by_class=True).table)
        if latent is None:
            return table[0]
        of = np.asarray(truth[latent.name])[np.asarray(piece.codes(latent.unit))]
        return np.asarray(table[of, :, np.arange(len(of))].T)

    return certain.by_pieces(pool, under_truth)
