"""Simulation-based calibration: a test that a back-end samples the right posterior."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # `scipy.stats` takes a second to load: only when it is asked for
import xarray as xr
from jaxtyping import Int

from raters.errors import BackendError, ConvergenceWarning, DataWarning, refuse
from raters.errors.validation import checked, whole
from raters.fitting.fit import fit
from raters.fitting.result import check_data, draws_of
from raters.fitting.simulate import simulate
from raters.inference import Backend
from raters.inference.base import progress_bar
from raters.judgements.base import Judgements
from raters.model import Model, identify
from raters.program import Program, log_likelihoods

Counts = Int[np.ndarray, " draw"]


@checked
def sbc(
    model: Model[Any],
    questions: Judgements,
    backend: Backend,
    *,
    seed: int,
    replicates: int = 200,
    draws: int = 99,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate from the prior, fit, and rank the truth among the posterior draws, repeatedly.

    If the back-end samples the posterior, each rank is uniform on 0, …, `draws`. A U-shape means
    that the posterior is too narrow, a hill that it is too wide, a slope that it is biased. The
    log-likelihood is ranked too: it detects errors in the dependence between parameters, and a
    back-end that ignores the data.

    Parameters
    ----------
    model : Model
    questions : Judgements
        Questions and the judges who are asked; outcomes are ignored. Small tables are as good as
        large ones. Known classes are drawn from the prior, and then known.
    backend : Backend
        With enough draws that, thinned to `draws`, they are nearly independent.
    seed : int
    replicates : int
        Number of simulated tables.
    draws : int
        Number of posterior draws that each truth is ranked among, at equal distances among all
        draws of the back-end.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    xarray.Dataset
        Ranks of every site (rewards after centring) and of ``log_likelihood``, with axis
        ``replicate`` first. The attributes hold `draws`, the model, the back-end, and
        ``unconverged``, the number of replicates in which the back-end itself warned.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari and Gelman (2018), arXiv:1804.06788. Modrák et al. (2025),
    Bayesian Analysis 20, 461–488, for the log-likelihood.
    """
    whole("replicates", replicates, least=2)
    whole("draws", draws)
    check_data(questions, "questions", model)
    if reason := backend.why_not(Program(model, simulate(model, questions, seed=seed)[0])):
        raise BackendError(reason)
    rng = np.random.default_rng(seed)
    rows, unconverged = [], 0
    with progress_bar(replicates, "SBC", progress) as bar:
        for _ in range(replicates):
            ranks, warned = _replicate(model, questions, backend, draws, rng)
            rows.append(ranks)
            unconverged += warned
            bar.update()
    sites = Program(model, questions).sites
    dims = {name: ("replicate", *(sites[name].dims if name in sites else ())) for name in rows[0]}
    used = {axis for axes in dims.values() for axis in axes}
    names = {axis: list(of) for axis, of in questions.coords.items() if axis in used}
    table = {name: (dims[name], np.stack([row[name] for row in rows])) for name in rows[0]}
    facts = {"draws": draws, "model": repr(model), "backend": repr(backend)}
    return xr.Dataset(table, names, facts | {"unconverged": unconverged})


def _replicate(
    model: Model[Any], questions: Judgements, backend: Backend, draws: int, rng: np.random.Generator
) -> tuple[dict[str, Int[np.ndarray, " ..."]], bool]:
    """Return the ranks of one simulated truth, and whether the back-end warned."""
    data, truth = simulate(model, questions.without_truth(), seed=int(rng.integers(2**32)))
    latent = Program(model, questions).latent
    if latent is not None:
        data = data.with_truth_of(questions, truth.get(latent.name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        again = int(rng.integers(2**32))
        result = fit(model, data, backend, seed=again, progress=False, log_likelihood=False)
    values, _ = draws_of(Program(model, data), result)
    num_draws = len(next(iter(values.values())))
    if num_draws < draws:
        problem = f"is more than the {num_draws} that {backend!r} gives"
        refuse("draws", draws, problem, f"it must be at most {num_draws}")
    kept = np.linspace(0, num_draws - 1, draws).round().astype(int)
    with jax.enable_x64(True):
        both = {
            name: np.concatenate([np.asarray(truth[name], np.float64)[None], value[kept]])
            for name, value in values.items()
        }
        traced = jax.tree.map(jnp.asarray, data)
        both["log_likelihood"] = np.asarray(log_likelihoods(model, traced, both))
    both = identify(model, both, 1)
    return {name: _rank(values, rng) for name, values in both.items()}, bool(caught)


def _rank(values: np.ndarray, rng: np.random.Generator) -> Int[np.ndarray, " ..."]:
    """Number of the later entries below the first; ties are broken at random."""
    below, equal = (values[1:] < values[0]).sum(0), (values[1:] == values[0]).sum(0)
    return np.asarray(below + rng.integers(equal + 1))


@checked
def uniformity(ranks: xr.Dataset) -> xr.Dataset:
    """Return, for every ranked quantity, the p-value of a test that its ranks are uniform.

    The empirical distribution function of the ranks is compared with simultaneous bands; the
    p-value is one minus the coverage of the narrowest bands that hold it. It is computed exactly,
    so that small p-values can be used. There are as many tests as quantities: divide the level by
    their number.

    Parameters
    ----------
    ranks : xarray.Dataset
        As `sbc` returns them.

    Returns
    -------
    xarray.Dataset
        p-values, with the axes of the ranks but for ``replicate``.

    References
    ----------
    Säilynoja, Bürkner and Vehtari (2022). Graphical test for discrete uniformity and its
    applications in goodness-of-fit evaluation and multiple sample comparison. Statistics and
    Computing 32, 32.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from raters.checking import uniformity
    >>> even = xr.Dataset({"reward": ("replicate", np.arange(200) % 100)}, attrs={"draws": 99})
    >>> float(uniformity(even)["reward"]) > 0.5
    True
    >>> float(uniformity(even // 2)["reward"]) < 1e-6          # all in the lower half
    True
    """
    points = int(ranks.attrs.get("draws", 0)) + 1
    if points < 2 or "replicate" not in ranks.sizes:
        problem = "does not say among how many draws, or has no replicates"
        expected = "pass the ranks of a simulation-based calibration"
        refuse("ranks", problem=problem, expected=expected, instead="raters.checking.sbc(...)")

    def p_value(values: Int[np.ndarray, " replicate"]) -> float:
        replicates = len(values)
        count = np.searchsorted(np.sort(values), np.arange(1, points))
        share_below = np.arange(1, points) / points
        tail = np.minimum(
            scipy.stats.binom.cdf(count, replicates, share_below),
            scipy.stats.binom.sf(count - 1, replicates, share_below),
        )
        # Bands slightly narrower than those that touch the observed count, so that the p-value
        # counts the observed case.
        return 1 - _coverage(replicates, points, tail.min() * (1 + 1e-9))

    return xr.apply_ufunc(p_value, ranks, input_core_dims=[["replicate"]], vectorize=True)


def _bands(replicates: int, points: int, tail: float) -> tuple[Counts, Counts]:
    """Extreme counts of ranks below 1, …, points − 1 with both binomial tails above `tail`."""
    share_below = np.arange(1, points) / points
    counts = np.arange(replicates + 1)[:, None]
    inside = (scipy.stats.binom.cdf(counts, replicates, share_below) > tail) & (
        scipy.stats.binom.sf(counts - 1, replicates, share_below) > tail
    )
    return inside.argmax(0), replicates - inside[::-1].argmax(0)


def _coverage(replicates: int, points: int, tail: float) -> float:
    """Probability that uniform ranks stay in `_bands`: counts are a Markov chain in the rank."""
    low, high = _bands(replicates, points, tail)
    if np.any(low > high):
        return 0.0
    state = np.arange(low[0], high[0] + 1)
    prob = scipy.stats.binom.pmf(state, replicates, 1 / points)
    for step in range(1, points - 1):
        following = np.arange(low[step], high[step] + 1)
        move = scipy.stats.binom.pmf(
            following[:, None] - state, replicates - state, 1 / (points - step)
        )
        state, prob = following, move @ prob
    return float(prob.sum())
