"""Hamiltonian Monte Carlo in the metric of the rows: its metric, its draws, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from arviz_stats.base import array_stats
from numpyro.handlers import seed, trace
from scipy.special import expit

import raters as rt
from raters.inference.polya_gamma import hmc, plans, sweep, unconstrained
from raters.inference.polya_gamma.metric import _LEAST_FAR, Metric
from raters.program import log_joint, placing, start_of
from raters.terms import Rewards, Term

_FLAT = rt.BTL(reward_scale=2.0)
_LIMIT = "raters.inference.polya_gamma.metric.DENSE_LIMIT"


@pytest.fixture(scope="module")
def pair() -> rt.Comparisons:
    """Nine votes on two items, seven of them for the first."""
    table = {"winner": ["a"] * 7 + ["b"] * 2, "loser": ["b"] * 7 + ["a"] * 2}
    return rt.Comparisons.from_frame(table, winner="winner", loser="loser")


def metric_of(model, data):
    """The mass matrix at the model's start, beside the negative Hessian there."""
    program = rt.program.Program(model, data)
    with jax.enable_x64(True):
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        space = hmc.Space.of(program, start)
        flat = space.flat(start)
        found = space.metric(jnp.stack([flat] * 8), flat)
        hessian = -np.asarray(jax.hessian(lambda at: space.density(space.data, start, at))(flat))
        np.testing.assert_allclose(found.place(found.unconstrained(flat)), flat, atol=1e-9)
    root = np.asarray(found.root)
    return root.T @ root, hessian


@pytest.mark.parametrize(("competence", "shared"), [("unit", True), ("signed", False)])
def test_chains_share_a_metric_where_there_are_no_images(tiny, competence, shared) -> None:
    program = rt.program.Program(rt.ExtendedBTL(competence=competence), tiny)
    with jax.enable_x64(True):
        start = start_of(program.model, tiny)
        space = hmc.Space.of(program, start)
        first = space.flat(start)
        metric, key = space.metric(jnp.stack([first] * 8), first), jax.random.key(0)
        each = [hmc.Trajectories(space, metric, first, key, None) for _ in range(2)]
        for place, chain in enumerate(each):
            chain.places = [np.asarray(first + 0.1 * place)[None]] * 2
        hmc.adapt(each)
        centres = np.array([chain.metric.centre - first for chain in each])
    expected = [0.05, 0.05] if shared else [0.0, 0.1]
    np.testing.assert_allclose(centres, np.tile(expected, (len(first), 1)).T, atol=1e-9)


_JOINT = rt.models.JointModel({"one": rt.ExtendedBTL(), "two": rt.ExtendedBTL()}, shared=["reward"])


_LEARNED = {"reward_scale", "competence_spread"}
_HYPER = {
    rt.ExtendedBTL(): _LEARNED,
    rt.MixedLogit(correlated=True): {"coefficient_spread", "correlation_factor"},
    _JOINT: {f"{part}.{site}" for part in ("one", "two") for site in _LEARNED},
}


@pytest.mark.parametrize("model", _HYPER)
def test_coordinates_are_white_and_lead_back(model, singles) -> None:
    """With a prior density that is standard normal but for hyper-parameters."""
    data: rt.judgements.Judgements = singles
    if isinstance(model, rt.MixedLogit):
        data, _ = rt.datasets.choice_crowd(4, 2, 3, 2, seed=0, available=1)
    elif model is _JOINT:
        data = rt.judgements.Together.of({"one": singles, "two": singles.take(slice(0, 5))})
    with jax.enable_x64(True):
        start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        program = rt.program.Program(model, data)
        space = hmc.Space.of(program, start)
        flat = space.flat(start) + jnp.linspace(-1, 1, space.flat(start).size)
        values = space.values(flat)
        np.testing.assert_allclose(space.flat(values), flat, atol=1e-7)
        given = model, program.supports, space.data, start
        plain = unconstrained.flat_of(program.supports, values)

        def volume(at):
            return unconstrained.flat_of(program.supports, space.values(at))

        log_volume = jnp.linalg.slogdet(jax.jacobian(volume)(flat))[1]
        expected = unconstrained.log_density(*given, plain) + log_volume
        found = space.density(space.data, start, flat)
    assert len(space.white) >= 2
    assert set(space.hyper) == _HYPER[model]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_sites_far_in_a_tail_and_of_many_rows_have_other_coordinates(singles, monkeypatch) -> None:
    far = {"competence": dist.TruncatedNormal(-3.0, 0.3, low=0.0)}
    for model, rows, white in (
        (rt.ExtendedBTL(), 1000, ("competence", "reward")),
        (rt.ExtendedBTL("positive", prior=far), 1000, ("reward",)),
        (rt.ExtendedBTL(), 1, ()),
    ):
        monkeypatch.setattr(hmc, "_MOST_AT_BOUNDS", rows)
        with jax.enable_x64(True):
            program = rt.program.Program(model, singles)
            space = hmc.Space.of(program, start_of(model, singles))
        assert tuple(sorted(space.white)) == white


def correlated(x, group, y=None):
    """Intercept and slope of each of three groups, correlated."""
    corr = numpyro.sample("corr", dist.LKJCholesky(2, concentration=2))
    own = numpyro.sample("own", dist.Normal(0.0, 1.0).expand([3, 2]).to_event(2)) @ corr.T
    numpyro.sample("obs", dist.Bernoulli(logits=own[group, 0] + own[group, 1] * x), obs=y)


@pytest.mark.slow
def test_correlations_stay_in_double_precision(fit_quietly) -> None:
    x, group = np.linspace(-1, 1, 30), np.arange(30) % 3
    model = rt.models.numpyro_model(correlated, observed="y")
    backend = rt.HMC(draws=20, warmup=20, chains=2)
    result = fit_quietly(model, {"x": x, "group": group, "y": (x > 0).astype(int)}, backend)
    corr = result["posterior"]["corr"].values
    np.testing.assert_allclose((corr**2).sum(-1), 1.0)
    assert len(np.unique(corr[..., 1, 0])) > 20


@pytest.mark.slow
def test_the_metric_is_the_curvature_where_that_is_positive(tiny, monkeypatch) -> None:
    """But for single precision."""
    monkeypatch.setattr(hmc.Space, "narrowed", lambda space, tree: tree)
    hmc._curvatures.clear_cache()
    mass, hessian = metric_of(_FLAT, tiny)
    hmc._curvatures.clear_cache()
    np.testing.assert_allclose(mass, hessian, rtol=1e-8, atol=1e-8)


def test_a_wider_coordinate_takes_along_what_depends_on_it() -> None:
    factor = np.tril(np.random.default_rng(0).normal(size=(4, 4))) + 2 * np.eye(4)
    with jax.enable_x64(True):
        metric = Metric.of(jnp.zeros(4), jnp.arange(4), factor @ factor.T, np.ones(4))
        assert metric is not None
        wider = metric.stretched(metric.axes(jnp.array([2])), np.array([3.0]))
        before, after = (np.asarray(one.inverse @ one.inverse.T) for one in (metric, wider))
        np.testing.assert_allclose(wider.root @ wider.inverse, np.eye(4), atol=1e-12)
    gain = np.outer(before[:, 2], before[2]) / before[2, 2]
    np.testing.assert_allclose(after, before + 8 * gain)


@pytest.mark.slow
def test_along_the_orbit_of_a_scale_the_metric_is_bounded(tiny) -> None:
    """The Hessian is indefinite there, and the mass matrix is not."""
    mass, hessian = metric_of(rt.ExtendedBTL(), tiny)
    assert np.linalg.eigvalsh(hessian)[0] < 0 < np.linalg.eigvalsh(mass)[0]


def deviation(result, competence=1.0, share=1.0) -> float:
    """Largest difference of the mean, and of the mean square, of the difference of two rewards from
    quadrature, in Monte-Carlo errors; of several competences with their shares under the prior."""
    grid = np.linspace(-14, 14, 4_001)
    logit = np.multiply.outer(grid, np.atleast_1d(competence))
    # The difference of two independent rewards of deviation 2.
    likelihood = expit(logit) ** 7 * expit(-logit) ** 2 @ np.atleast_1d(share)
    weight = likelihood * np.exp(-(grid**2) / 16)
    weight /= weight.sum()
    reward = result["posterior"]["reward"].values
    found, far = reward[..., 0] - reward[..., 1], []
    for power in (1, 2):
        draws, exact = found**power, weight @ grid**power
        ess = float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean"))
        far.append(abs(draws.mean() - exact) / (draws.std() / np.sqrt(ess)))
    return max(far)


@pytest.mark.slow
def test_draws_have_the_moments_of_quadrature(pair, fit_quietly, monkeypatch) -> None:
    """False-alarm rate 1e-4 for each of two moments (|z| > 4); a density of another temperature is
    caught."""
    backend = rt.HMC(draws=2000, chains=2)
    assert deviation(fit_quietly(_FLAT, pair, backend)) < 4
    monkeypatch.setattr(hmc, "log_joint", lambda *given: 0.5 * log_joint(*given))
    jax.clear_caches()
    assert deviation(fit_quietly(_FLAT, pair, backend, seed=1)) > 4
    jax.clear_caches()


@pytest.mark.slow
def test_draws_along_an_orbit_have_the_moments_of_quadrature(pair, fit_quietly) -> None:
    """False-alarm rate 1e-4 for each of two moments (|z| > 4)."""
    model = rt.ExtendedBTL("signed", reward_scale=2.0, competence_spread=0.5)
    competence = np.linspace(-2, 4, 1_001)
    share = np.exp(-((competence - 1) ** 2) / (2 * 0.5**2))
    result = fit_quietly(model, pair, rt.HMC(draws=5000, chains=2))
    assert deviation(result, competence, share) < 4


@pytest.mark.slow
def test_trajectories_of_a_posterior_near_a_normal_turn_by_their_length(tiny, fit_quietly) -> None:
    """A step by 2π, which is accepted always, would leave a chain where it is."""
    result = fit_quietly(rt.BTL(reward_scale=0.1), tiny, rt.HMC(draws=200, chains=2), seed=0)
    drawn = np.asarray(result.posterior["reward"])
    for chain in drawn:
        one, other = chain[:-1] - chain.mean(0), chain[1:] - chain.mean(0)
        along = (one * other).sum(0) / (one**2).sum(0)
        # The mean cosine of the lengths is −.12, and the standard error with 200 draws .07.
        assert np.all((along > -0.5) & (along < 0.25))


def test_a_learned_scale_stays_until_a_trajectory_is_accepted(singles, monkeypatch) -> None:
    """Given effects of 0 it would be drawn near 0, and the chain would stand still."""
    monkeypatch.setattr(hmc, "_FIRST_STEP", 50.0)
    model = rt.models.HierarchicalBTL()
    with jax.enable_x64(True):
        start = start_of(model, singles)
        space = hmc.Space.of(rt.program.Program(model, singles), start)
        flat = space.flat(start)
        metric = space.metric(jnp.stack([flat] * hmc._POINTS), flat)
        far = metric._replace(inverse=1e3 * metric.inverse)  # Of which all trajectories fail.
        chain = hmc.Trajectories(space, far, flat, jax.random.key(0), np.random.default_rng(0))
        drawn, stats = chain(3)
    assert not stats["acceptance_rate"].any()
    np.testing.assert_allclose(drawn["taste_spread"], start["taste_spread"])


def test_a_start_without_rewards_has_a_place_on_each_orbit(tiny, fit_quietly) -> None:
    backend = rt.HMC(draws=10, warmup=10, chains=1)
    result = fit_quietly(rt.ExtendedBTL(reward_scale=1.0), tiny, backend)
    assert np.isfinite(result.posterior["reward"]).all()


@pytest.mark.slow
def test_of_many_parameters_the_largest_sites_have_a_diagonal_metric(ranked, monkeypatch) -> None:
    """That of the Hessian for competences, of which no ranking has two."""
    model = rt.ExtendedPlackettLuce(worth_scale=1.0, competence_spread=0.5)
    with jax.enable_x64(True):
        start = {name: jnp.asarray(value, float) for name, value in model.start(ranked).items()}
        start["competence"] += jnp.linspace(-0.5, 0.5, start["competence"].size)
        space = hmc.Space.of(rt.program.Program(model, ranked), start)
        flat, size = space.flat(start), start["competence"].size
        few = sum(value.size for name, value in start.items() if name != "worth")
        monkeypatch.setattr(_LIMIT, few)
        hmc._curvatures.clear_cache()
        metric = space.metric(jnp.stack([flat] * 8), flat)
        assert metric.near.size == few
        place = jnp.linspace(-1, 1, flat.size)
        np.testing.assert_allclose(metric.place(metric.unconstrained(place)), place, atol=1e-9)
        kept = tuple(name for name in space.supports if name != "competence")
        monkeypatch.setattr(hmc, "near_sites", lambda model, like: kept)
        hmc._curvatures.clear_cache()
        metric = space.metric(jnp.stack([flat] * 8), flat)
        hmc._curvatures.clear_cache()
        hessian = -np.asarray(jax.hessian(lambda at: space.density(space.data, start, at))(flat))
    far = np.setdiff1d(np.arange(flat.size), metric.near)
    assert far.size == size
    exact = np.maximum(np.diag(hessian), _LEAST_FAR)
    np.testing.assert_allclose(np.asarray(metric.spread)[far] ** -2, exact[far], rtol=1e-6)


@pytest.mark.slow
def test_a_site_larger_than_the_limit_has_the_same_posterior(ranked, fit_quietly, monkeypatch):
    """With a diagonal metric alone, thinned; the bound is six standard errors."""
    model = rt.PlackettLuce(worth_scale=1.0)
    usual = fit_quietly(model, ranked, rt.PGGibbs(draws=400, warmup=100, chains=2))
    monkeypatch.setattr(_LIMIT, 2)
    hmc._curvatures.clear_cache()
    thinned = rt.PGGibbs(draws=200, warmup=0, chains=2, thin=2)
    apart = fit_quietly(model, ranked, thinned)
    monkeypatch.setattr(_LIMIT, 0)
    hmc._curvatures.clear_cache()
    near, axes = [], hmc.Metric.axes

    def only_near(self, some):
        near.append(np.isin(some, self.near).all())
        return axes(self, some)

    monkeypatch.setattr(hmc.Metric, "axes", only_near)
    fit_quietly(rt.PlackettLuce(), ranked, rt.HMC(draws=100, chains=2))
    hmc._curvatures.clear_cache()
    assert near
    assert all(near)  # Hyper-parameters that are far are not stretched.
    one, other = (result["posterior"]["worth"] for result in (usual, apart))
    error = one.std(("chain", "draw")) * np.sqrt(1 / 100 + 1 / 100)
    assert (abs(one.mean(("chain", "draw")) - other.mean(("chain", "draw"))) < 6 * error).all()


@dataclass(frozen=True)
class _Groups(Term):
    """Competences of two groups, each with a spread."""

    linear = ("competence",)

    def sample(self, data):
        spreads = dist.LogNormal(np.log(0.5), 0.5).expand([2]).to_event(1)
        spread = numpyro.sample("competence_spread", spreads)[jnp.arange(data.num_annotators) % 2]
        with numpyro.plate("annotator", data.num_annotators):
            prior = dist.TruncatedNormal(1.0, spread, low=0.0, high=1.0)
            return numpyro.sample("competence", prior)[data.annotator]

    def start(self, data):
        start = {"competence": jnp.full(data.num_annotators, 0.8)}
        return start | {"competence_spread": jnp.full(2, 0.5)}


class _Far(Rewards):
    """Rewards about another mean than 0."""

    def finish(self, data, ready):
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(2.0, ready))
        return reward[data.first] - reward[data.second]


def _moved(model: rt.Model, data: rt.judgements.Judgements, step_of: Callable) -> float:
    """Largest mean change of the sizes of the sites of joint draws of sites and outcomes, in
    standard errors, by a step of a plan."""
    asked, program = data.unanswered(), rt.program.Program(model, data)
    with jax.enable_x64(True):
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        plan = plans.plan(program, start)
        row = placing.first_unit(data)
        step = step_of(plan, row, start)

        def size_of(value):
            sizes = jnp.arctan(value**2).ravel()
            return sizes @ jnp.arange(1.0, sizes.size + 1)

        def changes(key):
            draw, use = jax.random.split(key)
            sites = trace(seed(model, draw)).get_trace(asked)
            outcomes = {data.answer: sites[data.observed]["value"], "count": None}
            before = {name: sites[name]["value"] for name in start}
            after = step(replace(data, **outcomes), row, before, use)
            facts = [[size_of(at[name]) for name in start] for at in (before, after)]
            return jnp.array(facts[1]) - jnp.array(facts[0])

        changed = np.asarray(jax.lax.map(changes, jax.random.split(jax.random.key(0), 20_000)))
    changed = changed[:, changed.any(0)]
    return float(np.max(abs(changed.mean(0)) / (changed.std(0) / np.sqrt(len(changed)))))


def _woven(plan, row, start):
    return lambda data, row, values, key: sweep.interwoven(plan, row, data, values, key)


def test_spreads_move_with_entries_between_bounds(singles, monkeypatch) -> None:
    """False-alarm rate 1e-4 for each of four means (|z| < 4), of few votes and of many; a density
    of another temperature is caught."""
    assert _moved(rt.models.PairwiseModel(_Groups() * _Far()), singles, _woven) < 4
    for rows in (50, 0):
        monkeypatch.setattr(sweep, "_MOST_ROWS", rows)
        jax.clear_caches()
        assert _moved(rt.ExtendedBTL(), singles, _woven) < 4
    monkeypatch.setattr(sweep.densities, "log_joint", lambda *given: 0.5 * log_joint(*given))
    jax.clear_caches()
    assert _moved(rt.ExtendedBTL(), singles, _woven) > 4
    jax.clear_caches()


def test_entries_whose_quantiles_round_stay_where_they_are(singles) -> None:
    """Far in the tail of their prior, while the scale of the rewards moves."""
    far = {"competence": dist.TruncatedNormal(-3.0, 0.3, low=0.0)}
    model = rt.ExtendedBTL("positive", prior=far)
    with jax.enable_x64(True):
        start = {name: jnp.asarray(value, float) for name, value in model.start(singles).items()}
        plan = plans.plan(rt.program.Program(model, singles), start)
        given = plan, placing.first_unit(singles), jax.tree.map(jnp.asarray, singles), start
        moved = jax.jit(lambda key: sweep.interwoven(*given, key))(jax.random.key(0))
    np.testing.assert_array_equal(moved["competence"], start["competence"])
    assert np.isfinite(moved["reward"]).all()
    assert moved["reward_scale"] != start["reward_scale"]


@pytest.mark.slow
def test_spreads_that_choices_say_little_of_mix(fit_quietly) -> None:
    """The effective sample size was 8 of 4,000 without moves together with the tastes."""
    panel, _ = rt.datasets.choice_crowd(60, 4, spread=0.2, seed=2)
    result = fit_quietly(rt.MixedLogit(), panel, rt.HMC(draws=800))
    assert float(az.ess(result, var_names=["coefficient_spread"])["coefficient_spread"].min()) > 200
