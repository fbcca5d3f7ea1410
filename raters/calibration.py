"""Whether a back-end samples the right posterior: simulation-based calibration, and Geweke's joint-distribution test.

Simulation-based calibration takes any back-end and shows, per quantity, in which direction its posterior is wrong. Geweke's
test is for the Gibbs kernel: it needs no converged chains, so it sees much smaller errors in the same time.
"""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpyro import handlers
from numpyro.distributions.transforms import biject_to
from scipy.stats import binom

from raters._check import share, whole
from raters.data import Comparisons
from raters.errors import BackendError, ConvergenceWarning, DataWarning, SettingError
from raters.fit import fit, simulate
from raters.inference import Backend, _sweep
from raters.inference._rows import logits_of
from raters.inference._trace import latent_sites, pointwise_log_likelihood
from raters.inference.base import progress_bar
from raters.inference.pg_gibbs import gibbs_sweep
from raters.model import Model, Shift, Values, identify

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ----------------------------------------------------------------------------------------- simulation-based calibration


def sbc(
    model: Model,
    questions: Comparisons,
    backend: Backend,
    *,
    seed: int,
    replicates: int = 200,
    draws: int = 99,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate from the prior, fit, and rank the truth among the posterior draws, again and again.

    If the back-end samples the posterior, each rank is uniform on 0, …, `draws`. A U-shape says that the posterior is too
    narrow, a hill that it is too wide, a slope that it is biased. The log-likelihood is ranked too: it sees errors in the
    dependence between parameters, and a back-end that ignores the data.

    Parameters
    ----------
    model : Model
    questions : Comparisons
        Who is asked about which pair; outcomes in it are ignored. Small tables are as good as large ones.
    backend : Backend
        With enough draws that, thinned to `draws`, they are nearly independent.
    seed : int
    replicates : int
        Simulated tables.
    draws : int
        Posterior draws that each truth is ranked among, taken at equal distances from all that the back-end gives.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    xarray.Dataset
        Ranks of every site (rewards after centring) and of ``log_likelihood``, with axis ``replicate`` first. The attributes
        hold `draws`, the model, the back-end, and ``unconverged``: in how many replicates the back-end itself warned.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari and Gelman (2018), arXiv:1804.06788. Modrák et al. (2025), Bayesian Analysis 20,
    461–488, for the log-likelihood.
    """
    whole("replicates", replicates, least=2)
    whole("draws", draws)
    if reason := backend.why_not(model, _answered(questions)):
        raise BackendError(reason)
    rng = np.random.default_rng(seed)
    rows, unconverged = [], 0
    with progress_bar(replicates, "SBC", progress) as bar:
        for _ in range(replicates):
            one, warned = _replicate(model, questions, backend, draws, rng)
            rows.append(one)
            unconverged += warned
            bar.update()
    sites = latent_sites(model, questions)
    dims = {name: ("replicate", *(sites[name].dims if name in sites else ())) for name in rows[0]}
    names = {axis: list(questions.coords[axis]) for dim in dims.values() for axis in dim[1:]}
    return xr.Dataset(
        {name: (dims[name], np.stack([row[name] for row in rows])) for name in rows[0]},
        coords=names,
        attrs={"draws": draws, "model": repr(model), "backend": repr(backend), "unconverged": unconverged},
    )


def _answered(questions: Comparisons) -> Comparisons:
    """The questions with any outcomes, which back-ends want to see before they say whether they can run."""
    return dataclasses.replace(questions, wins=np.zeros(questions.num_comparisons, np.float32))


def _replicate(model: Model, questions: Comparisons, backend: Backend, draws: int, rng) -> tuple[dict[str, np.ndarray], bool]:
    """Ranks of one simulated truth, and whether the back-end warned."""
    data, truth = simulate(model, questions, seed=int(rng.integers(2**32)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        result = fit(model, data, backend, seed=int(rng.integers(2**32)), progress=False, log_likelihood=False)
    posterior = {str(name): draw.values.reshape(-1, *draw.shape[2:]) for name, draw in result["posterior"].data_vars.items()}
    number = len(next(iter(posterior.values())))
    if number < draws:
        raise SettingError(f"draws={draws} is more than the {number} that {backend!r} gives; ask for at most {number}")
    kept = np.linspace(0, number - 1, draws).round().astype(int)
    posterior = {name: draw[kept] for name, draw in posterior.items()}
    with jax.enable_x64(True):
        both = {name: np.concatenate([np.asarray(truth[name], np.float64)[None], posterior[name]]) for name in posterior}
        both["log_likelihood"] = np.asarray(_log_likelihoods(model, jax.tree.map(jnp.asarray, data), both))
    return {name: _rank(values, rng) for name, values in identify(model, both, 1).items()}, bool(caught)


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values).sum(), draws)


def _rank(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How many of the later entries are below the first; ties are settled at random."""
    below, equal = (values[1:] < values[0]).sum(0), (values[1:] == values[0]).sum(0)
    return below + rng.integers(equal + 1)


def uniformity(ranks: xr.Dataset) -> xr.Dataset:
    """For every ranked quantity, the p-value of its ranks being uniform.

    The empirical distribution function of the ranks is compared with simultaneous bands; the p-value is one less the
    coverage of the narrowest bands that hold it. It is computed exactly, so that small p-values can be used. There are
    as many tests as quantities: divide the level by their number.

    Parameters
    ----------
    ranks : xarray.Dataset
        What `sbc` returned.

    Returns
    -------
    xarray.Dataset
        p-values, with the axes of the ranks but for ``replicate``.

    References
    ----------
    Säilynoja, Bürkner and Vehtari (2022). Graphical test for discrete uniformity and its applications in goodness-of-fit
    evaluation and multiple sample comparison. Statistics and Computing 32, 32.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from raters.calibration import uniformity
    >>> even = xr.Dataset({"reward": ("replicate", np.arange(200) % 100)}, attrs={"draws": 99})
    >>> float(uniformity(even)["reward"]) > 0.5
    True
    >>> float(uniformity(even // 2)["reward"]) < 1e-6          # all in the lower half
    True
    """
    points = int(ranks.attrs.get("draws", 0)) + 1
    if points < 2:
        raise SettingError("these ranks do not say among how many draws; pass what raters.calibration.sbc returned")

    def p_value(values: np.ndarray) -> float:
        replicates = len(values)
        count = np.searchsorted(np.sort(values), np.arange(1, points))
        share_below = np.arange(1, points) / points
        tail = np.minimum(binom.cdf(count, replicates, share_below), binom.sf(count - 1, replicates, share_below))
        # Bands a shade narrower than those that touch the observed count, so the p-value counts the observed case.
        return 1 - _coverage(replicates, points, tail.min() * (1 + 1e-9))

    return xr.Dataset(
        {
            name: (array.dims[1:], np.apply_along_axis(p_value, 0, array.transpose("replicate", ...).values))
            for name, array in ranks.data_vars.items()
        },
        coords={name: coord for name, coord in ranks.coords.items() if "replicate" not in coord.dims},
    )


def _bands(replicates: int, points: int, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest counts of ranks below 1, …, points − 1 whose binomial tails are both above `tail`."""
    share_below = np.arange(1, points) / points
    counts = np.arange(replicates + 1)[:, None]
    inside = (binom.cdf(counts, replicates, share_below) > tail) & (binom.sf(counts - 1, replicates, share_below) > tail)
    return inside.argmax(0), replicates - inside[::-1].argmax(0)


def _coverage(replicates: int, points: int, tail: float) -> float:
    """The probability that uniform ranks stay within `_bands` everywhere: counts are a Markov chain in the rank."""
    low, high = _bands(replicates, points, tail)
    if np.any(low > high):
        return 0.0
    state = np.arange(low[0], high[0] + 1)
    chance = binom.pmf(state, replicates, 1 / points)
    for step in range(1, points - 1):
        following = np.arange(low[step], high[step] + 1)
        move = binom.pmf(following[:, None] - state, replicates - state, 1 / (points - step))
        state, chance = following, move @ chance
    return float(chance.sum())


def rank_bands(replicates: int, draws: int, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simultaneous bands for the empirical distribution function of uniform ranks.

    Parameters
    ----------
    replicates, draws : int
        As for `sbc`.
    level : float
        Probability that the whole function is inside.

    Returns
    -------
    place, low, high : numpy.ndarray
        Fractional ranks 1/(draws + 1), …, and the least and largest share of ranks below them.

    Examples
    --------
    >>> from raters.calibration import rank_bands
    >>> place, low, high = rank_bands(200, 99)
    >>> bool((low < place).all() and (place < high).all())
    True
    """
    share("level", level)
    points = draws + 1
    low, high = _bands(replicates, points, _tail(replicates, points, level))
    return np.arange(1, points) / points, low / replicates, high / replicates


def _tail(replicates: int, points: int, level: float) -> float:
    """The largest tail whose bands cover with probability `level`, by bisection."""
    wide, narrow = 0.0, 1 - level
    for _ in range(30):
        middle = (wide + narrow) / 2
        wide, narrow = (middle, narrow) if _coverage(replicates, points, middle) >= level else (wide, middle)
    return wide


def plot_ranks(ranks: xr.Dataset, *, level: float = 0.95) -> Figure:
    """Draw, for every quantity, how far its ranks' empirical distribution function is from a uniform one's.

    Curves inside the shaded band are what calibrated ranks look like; each panel's band covers a single curve.

    Parameters
    ----------
    ranks : xarray.Dataset
        What `sbc` returned.
    level : float
        Simultaneous coverage of the band.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from raters.calibration import plot_ranks
    >>> figure = plot_ranks(xr.Dataset({"reward": ("replicate", np.arange(40) % 20)}, attrs={"draws": 19}))
    >>> len(figure.axes)
    1
    """
    from matplotlib.figure import Figure

    replicates, points = ranks.sizes["replicate"], int(ranks.attrs["draws"]) + 1
    place, low, high = rank_bands(replicates, points - 1, level)
    columns = min(3, len(ranks.data_vars))
    lines = -(-len(ranks.data_vars) // columns)
    figure = Figure(figsize=(4 * columns, 2.6 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for panel, (name, array) in zip(axes.flat, ranks.data_vars.items(), strict=False):
        panel.fill_between(place, low - place, high - place, color="0.85", step="mid", lw=0)
        values = np.sort(array.transpose("replicate", ...).values.reshape(replicates, -1), axis=0)
        for column in values.T:
            panel.plot(place, np.searchsorted(column, np.arange(1, points)) / replicates - place, lw=1, alpha=0.8)
        panel.set_title(name)
    for panel in axes.flat[len(ranks.data_vars) :]:
        panel.set_axis_off()
    figure.supxlabel("fractional rank of the truth among the draws")
    figure.supylabel("ECDF less uniform")
    return figure


# ----------------------------------------------------------------------------------------- Geweke's joint test


def geweke(
    model: Model,
    questions: Comparisons,
    *,
    seed: int,
    chains: int = 200,
    sweeps: int = 30,
    prior_draws: int = 100_000,
    progress: bool = False,
) -> xr.Dataset:
    """Geweke's test of the Gibbs kernel: two ways to draw parameters and outcomes together, compared.

    One way draws parameters from the prior and outcomes given them. The other alternates: outcomes given the parameters,
    then one sweep of the kernel given the outcomes. If the kernel leaves the posterior invariant, both have one
    distribution. Compared are means of the unconstrained coordinates u of every site (rewards less their mean) through
    asinh(u), which has all moments under every prior, of their squares and products, and of the log-likelihood.

    The alternating chains are many and short, and each starts at a draw of the first kind, so under a correct kernel they are
    in equilibrium from the start, however slowly they mix, and their independence gives the standard errors.

    Parameters
    ----------
    model : Model
    questions : Comparisons
        Who is asked about which pair; small tables have the most power.
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
    if reason := (model.why_not(questions) or _sweep.why_not(model, _answered(questions))):
        raise BackendError(reason)
    with jax.enable_x64(True):
        # NumPyro's Binomial draws need whole counts here.
        count = None if questions.count is None else np.asarray(questions.count, int)
        asked = jax.tree.map(jnp.asarray, dataclasses.replace(questions, wins=None, count=count))
        prior_key, start_key, chain_key = jax.random.split(jax.random.key(seed), 3)
        direct = _direct(model, asked, jax.random.split(prior_key, prior_draws))
        starts = _starts(model, asked, jax.random.split(start_key, chains))
        states = _alternating(model, asked, starts[0], starts[1], chain_key, sweeps, progress)
        begun = _statistics_of(model, asked, *starts)
        run = _statistics_of(model, asked, *states)
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


def _drawn(model: Model, asked: Any, key: jax.Array, given: Values) -> tuple[Values, jax.Array]:
    """Parameters from the prior, but for those given, and outcomes."""
    found = handlers.trace(handlers.seed(handlers.substitute(model.generate, given), key)).get_trace(asked)
    values = {name: site["value"] for name, site in found.items() if site["type"] == "sample" and name != model.observed}
    return values, jnp.asarray(found[model.observed]["value"], float)


@partial(jax.jit, static_argnums=0)
def _direct(model: Model, asked: Any, keys: jax.Array) -> dict[str, jax.Array]:
    def one(key):
        values, wins = _drawn(model, asked, key, {})
        return _statistics(model, dataclasses.replace(asked, wins=wins), values)

    return jax.lax.map(one, keys, batch_size=1000)


@partial(jax.jit, static_argnums=0)
def _starts(model: Model, asked: Any, keys: jax.Array) -> tuple[Values, jax.Array]:
    return jax.lax.map(lambda key: _drawn(model, asked, key, {}), keys)


@partial(jax.jit, static_argnums=0)
def _answers(model: Model, asked: Any, values: Values, key: jax.Array) -> jax.Array:
    return _drawn(model, asked, key, values)[1]


def _alternating(model, asked, values: Values, wins, key: jax.Array, sweeps: int, progress: bool) -> tuple[Values, np.ndarray]:
    """The states of all chains, one chain after the other: parameters after each sweep, and the outcomes it was given."""
    chains = len(wins)
    starts = [{name: np.asarray(value[chain]) for name, value in values.items()} for chain in range(chains)]
    plan = _sweep.plan(model, dataclasses.replace(asked, wins=wins[0]), starts[0])
    row = dataclasses.replace(asked, wins=wins[0]).take(slice(0, 1))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    kept, outcomes = [], []
    with progress_bar(chains, "Geweke", progress) as bar:
        for current, chain_key in zip(starts, jax.random.split(key, chains), strict=True):
            for sweep_key in jax.random.split(chain_key, sweeps):
                answers = _answers(model, asked, current, sweep_key)
                current = gibbs_sweep(plan, row, dataclasses.replace(asked, wins=answers), current, rng)
                current = {name: np.asarray(value) for name, value in current.items()}
                kept.append(current)
                outcomes.append(np.asarray(answers))
            bar.update()
    return {name: np.stack([state[name] for state in kept]) for name in kept[0]}, np.stack(outcomes)


@partial(jax.jit, static_argnums=0)
def _statistics_of(model: Model, asked: Any, values: Values, wins: jax.Array) -> dict[str, jax.Array]:
    def one(pair):
        return _statistics(model, dataclasses.replace(asked, wins=pair[1]), pair[0])

    return jax.lax.map(one, (values, wins), batch_size=1000)


def _statistics(model: Model, data: Any, values: Values) -> dict[str, jax.Array]:
    """Functions of parameters and outcomes that have all moments, and that between them see every conditional."""
    centred = {symmetry.site for symmetry in model.symmetries if isinstance(symmetry, Shift)}
    soft, scalars, found = {}, {}, {}
    for name, site in latent_sites(model, data).items():
        free = biject_to(site.support).inv(values[name])
        soft[name] = jnp.arcsinh(free - free.mean() if name in centred else free)
        if not site.shape:
            scalars[name] = soft[name]
        else:
            found[f"{name}: first"] = soft[name].ravel()[0]
            found[f"{name}: last"] = soft[name].ravel()[-1]
        found[f"{name}: mean"] = soft[name].mean()
        found[f"{name}: mean square"] = (soft[name] ** 2).mean()
    for name in soft:
        found |= {f"{name}: mean square × {one}": (soft[name] ** 2).mean() * scalars[one] for one in scalars if one != name}
    logits = logits_of(model, data, values)
    votes = jnp.ones_like(logits) if data.count is None else data.count
    found["log-likelihood"] = pointwise_log_likelihood(model, data, values).mean()
    found["outcomes × logits"] = ((data.wins / votes - 0.5) * jnp.tanh(logits)).mean()
    # The mean of a centred site is 0, whatever the kernel does.
    return {name: value for name, value in found.items() if name not in {f"{site}: mean" for site in centred}}
