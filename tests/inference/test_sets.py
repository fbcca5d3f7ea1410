"""Conditionals of blocks of utilities, against automatic differentiation and quadrature."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.distributions import GroupedMixture
from raters.distributions.choices import Choice, PlackettLuce
from raters.inference.polya_gamma import sets, sweep
from raters.inference.polya_gamma.conditionals import Gaussian, observation
from raters.inference.polya_gamma.rows import Block, Rows
from raters.inference.polya_gamma.set_likelihood import (
    BestWorst,
    Plain,
    Separate,
    Utilities,
    likelihood_of_sets,
)
from raters.model import Model
from raters.models.rankings import _sites
from raters.program import pointwise_log_likelihood

_RNG = np.random.default_rng(0)
_VALUES = {"worth": _RNG.normal(size=5), "competence": np.array([1.0, 0.4, -0.7])}
_EXTENDED = rt.ExtendedPlackettLuce(worth_scale=1.5)


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def _no_weights(*given):
    raise AssertionError("choices from sets have no Pólya-Gamma weights")


def conditional(model, data, values, block, **options):
    """The conditional of a block, as a sweep reads it."""
    values = {name: values[name] for name in rt.program.Program(model, data).sites}
    program = rt.program.Program(model, data)
    plan = sweep.plan(program, values)
    own = next(one for one in plan.blocks if one.sites == block)
    return sweep.block_conditional(plan, data, values, own, _no_weights, draws=True, **options)


def log_likelihood(model, data, values, site):
    """The model's own log-likelihood as a function of one site."""
    return lambda own: pointwise_log_likelihood(model, data, values | {site: own}).sum()


@dataclasses.dataclass(frozen=True)
class _Described(Model[rt.Rankings]):
    """Worths by two features of the items."""

    blocks = (("worth",),)

    def generate(self, data) -> None:
        with numpyro.plate("feature", 2):
            worth = numpyro.sample("worth", dist.Normal(0.0, 1.0))
        features = jnp.asarray(np.random.default_rng(1).normal(size=(5, 2)))
        _sites.observe(features[_sites.item_of(data)] @ worth, data)


@pytest.mark.parametrize(
    ("model", "site", "kind", "answers"),
    [
        (rt.PlackettLuce(worth_scale=1.5), "worth", Plain, "ranked"),
        (_EXTENDED, "worth", Utilities, "ranked"),
        (_EXTENDED, "competence", Separate, "ranked"),
        (_Described(), "worth", Utilities, "ranked"),
        (rt.PlackettLuce(worth_scale=1.5), "worth", BestWorst, "best_worst"),
        (_EXTENDED, "worth", Utilities, "best_worst"),
        (_EXTENDED, "competence", Separate, "best_worst"),
        (_Described(), "worth", Utilities, "best_worst"),
    ],
    ids=lambda case: case if isinstance(case, str) else getattr(case, "__name__", repr(case)),
)
def test_slope_and_curvature_are_those_of_the_model(model, site, kind, answers, request) -> None:
    ranked = request.getfixturevalue(answers)
    size = 2 if isinstance(model, _Described) else None
    own = {site: _VALUES[site][:size]}
    given = conditional(model, ranked, _VALUES | own, (site,))
    assert type(given.likelihood) is kind
    values = {name: (_VALUES | own)[name] for name in rt.program.Program(model, ranked).sites}
    of_site = log_likelihood(model, ranked, values, site)
    value, slope, curvature = given.likelihood.expanded(own[site])
    at = jnp.asarray(own[site])
    assert value == pytest.approx(float(of_site(at)), rel=1e-12)
    np.testing.assert_allclose(slope, jax.grad(of_site)(at), atol=1e-10)
    np.testing.assert_allclose(curvature, -jax.hessian(of_site)(at), atol=1e-10)
    points = _RNG.normal(size=(len(at), 3))
    each = [float(of_site(jnp.asarray(point))) for point in points.T]
    np.testing.assert_allclose(given.likelihood.at(points), each, rtol=1e-12)


@pytest.mark.parametrize("answers", ["ranked", "best_worst"])
def test_entries_apart_sum_to_the_likelihood(answers, request) -> None:
    ranked = request.getfixturevalue(answers)
    given = conditional(_EXTENDED, ranked, _VALUES, ("competence",)).likelihood
    point = _VALUES["competence"]
    np.testing.assert_allclose(given.of_each(point[:, None]).sum(0), given.at(point[:, None]))
    slope, curvature = given.slopes(point)
    np.testing.assert_allclose(slope, given.expanded(point).slope, atol=1e-10)
    np.testing.assert_allclose(np.diag(curvature), given.expanded(point).curvature, atol=1e-10)


def test_equal_sets_are_one(ranked) -> None:
    """Stages offer one of 2⁵ − 6 sets of two items or more at most, however many there are."""
    model = rt.PlackettLuce(worth_scale=1.5)
    data = rt.simulate(model, ranked.take(np.tile(np.arange(12), 20)), seed=0).data
    given = conditional(model, data, _VALUES, ("worth",)).likelihood
    assert len(given.number) <= 26
    stages = np.minimum(data.depth, (data.offered >= 0).sum(1) - 1).sum()
    assert given.number.sum() == stages > 26


def test_distant_utilities_keep_their_digits(ranked) -> None:
    """Of sets that lie a thousand apart, e to the lower ones is 0 beside the higher ones."""
    model = rt.PlackettLuce(worth_scale=1.5)
    given = conditional(model, ranked, _VALUES, ("worth",)).likelihood
    at = jnp.array([0.3, -1000.0, -1001.0, -999.5, 1000.0])
    of_site = log_likelihood(model, ranked, {}, "worth")
    value, slope, curvature = given.expanded(np.asarray(at))
    assert value == pytest.approx(float(of_site(at)))
    assert given.at(np.asarray(at)[:, None])[0] == pytest.approx(value)
    np.testing.assert_allclose(slope, jax.grad(of_site)(at), atol=1e-10)
    np.testing.assert_allclose(curvature, -jax.hessian(of_site)(at), atol=1e-10)


def test_of_three_the_best_and_the_worst_have_the_likelihood_of_the_order(ranked) -> None:
    """Value, slope and curvature, however the stages are put together."""
    sets_of_three = rt.Candidates.sets(ranked, size=3, depth=3, again=True)
    order = rt.simulate(_EXTENDED, sets_of_three, seed=0).data
    place = np.select([order.place == 3, order.place == 2], [-1, 0], order.place)
    named = dataclasses.replace(
        order, place=place, depth=np.ones_like(order.depth), lowest=np.ones_like(order.depth)
    )
    named.check()
    for model, site in ((rt.PlackettLuce(1.5), "worth"), (_EXTENDED, "worth")):
        one, other = (conditional(model, data, _VALUES, (site,)) for data in (order, named))
        for left, right in zip(
            one.likelihood.expanded(_VALUES[site]),
            other.likelihood.expanded(_VALUES[site]),
            strict=True,
        ):
            np.testing.assert_allclose(left, right, atol=1e-10)


@pytest.mark.parametrize("site", ["worth", "competence"])
def test_the_mode_is_where_the_slope_vanishes(site, ranked) -> None:
    given = conditional(_EXTENDED, ranked, _VALUES, (site,))
    mode = given.mode(_VALUES[site])
    np.testing.assert_allclose(given.slope(mode), 0, atol=1e-8)
    # From far away, where whole Newton steps go down.
    np.testing.assert_allclose(given.mode(40 * _VALUES[site]), mode, atol=1e-8)


def test_bounds_of_a_prior_are_kept(ranked) -> None:
    model = rt.ExtendedPlackettLuce(competence="unit", worth_scale=1.5, competence_spread=0.5)
    start = _VALUES | {"competence": np.array([0.9, 0.4, 0.1])}
    given = conditional(model, ranked, start, ("competence",))
    mode = given.mode(start["competence"])
    inside = (mode > 0) & (mode < 1)
    np.testing.assert_allclose(given.slope(mode)[inside], 0, atol=1e-8)
    rng, draw = np.random.default_rng(0), start["competence"]
    for _ in range(50):
        draw = given.draw(rng, draw)
        assert ((draw >= 0) & (draw <= 1)).all()


@pytest.mark.parametrize("site", ["worth", "competence", "worth, from the mode nearby"])
def test_draws_have_the_moments_of_the_density(site, ranked, monkeypatch) -> None:
    """Two entries against sums on a grid; false-alarm rate below 1e-6 for each of 5 moments."""
    few = dataclasses.replace(ranked, annotator=ranked.annotator % 2, annotators=("a", "b"))
    values = _VALUES | {"competence": _VALUES["competence"][:2]}
    given = conditional(_EXTENDED, few, values, ("competence",))
    if site == "worth":  # The same density, drawn as a whole.
        given = sets.SetConditional(given.prior, given.likelihood)
    elif site != "competence":
        # Proposals are made under the precision 1, as the next step is far.
        monkeypatch.setattr(sets, "_PRECISION_STEP", 4.0)
        prior = given.prior._replace(precision=np.array([6.5, 0.2]))
        given = sets.SetConditional(prior, given.likelihood, None, {})
    grid = np.linspace(-4, 5, 400)
    points = np.stack([part.ravel() for part in np.meshgrid(grid, grid, indexing="ij")])
    log_density = given.log_density(points)
    weight = np.exp(log_density - log_density.max())
    rng, draw, draws = np.random.default_rng(0), values["competence"], []
    for index in range(4000):
        if given.modes is not None and index % 7 == 0:  # Goes on with the proposals that are kept.
            given = sets.SetConditional(given.prior, given.likelihood, None, given.modes)
        draw = given.draw(rng, draw)
        draws.append(draw)
    kept = np.array(draws).T
    for moment in (lambda x: x[0], lambda x: x[1], lambda x: x[0] ** 2, lambda x: x[0] * x[1]):
        exact = (moment(points) * weight).sum() / weight.sum()
        batches = moment(kept).reshape(40, -1).mean(1)
        assert abs(batches.mean() - exact) < 6 * batches.std(ddof=1) / np.sqrt(40)


def test_proposals_do_not_depend_on_where_the_block_is(ranked) -> None:
    draws = []
    for start in (_VALUES["worth"], -40 * _VALUES["worth"]):
        given = conditional(_EXTENDED, ranked, _VALUES, ("worth",))
        draws.append(given.draw(np.random.default_rng(3), start))
    # From a start of no probability, and from another one, the same proposal is taken in the end.
    np.testing.assert_allclose(draws[0], draws[1], atol=1e-9)


def test_a_conditional_is_made_once_while_the_other_sites_stay(ranked) -> None:
    model = rt.PlackettLuce()
    values = {"worth": _VALUES["worth"], "worth_scale": np.asarray(1.5)}
    plan = sweep.plan(rt.program.Program(model, ranked), values)
    assert plan.steady == {Block(("worth",))}
    held = sets.RunCache(plan.steady)

    def given(values):
        return sweep.block_conditional(
            plan, ranked, values, Block(("worth",)), _no_weights, draws=True, cache=held
        )

    first = given(values)
    assert given(values | {"worth": 2 * _VALUES["worth"]}) is first
    other = given(values | {"worth_scale": np.asarray(0.5)})
    assert other is not first
    assert other.likelihood is first.likelihood
    np.testing.assert_allclose(other.prior.precision, 4.0)
    rng = np.random.default_rng(0)
    for scale, kept in ((1.5, 1), (1.49, 1), (1.2, 2), (1.5, 2)):
        at = given(values | {"worth_scale": np.asarray(scale)})
        at.draw(rng, values["worth"])
        assert len(held.modes[Block(("worth",))]) == kept
        np.testing.assert_allclose(at.prior.precision, scale**-2)
    extended = {**_VALUES, "worth_scale": np.asarray(1.5)}
    assert not sweep.plan(rt.program.Program(rt.ExtendedPlackettLuce(), ranked), extended).steady


def test_types_that_choose_from_sets() -> None:
    """Rows and sets of a mixture have the slope of its expected log density."""
    utility = jnp.asarray(_RNG.normal(size=(7, 2)))
    of = jnp.array([0, 0, 1, 1, 1, 2, 2])
    chosen = jnp.array([1.0, 2.0, 0.0, 1.0, 0.0, 4.0, 0.0])
    number, chooser = jnp.array([3.0, 1.0, 4.0]), jnp.array([0, 1, 1])
    share = jnp.array([[0.2, 0.8], [0.7, 0.3]])

    def mixture(utility):
        component = Choice(utility, of, 3, number)
        return GroupedMixture(dist.Categorical(probs=jnp.array([0.5, 0.5])), component, chooser, 2)

    def expected(flat):
        rows = mixture(flat.reshape(7, 2)).component_distribution.log_prob(chosen[:, None])
        return (share[chooser] * rows).sum()

    logits, votes, kappa, _ = observation(mixture(utility), chosen, share)
    np.testing.assert_array_equal(votes, 1)
    read = sets.sets_of(mixture(utility), share, chosen)
    prior = Gaussian(*(np.zeros(14) for _ in range(4)))
    rows = Rows(
        np.arange(14)[None],
        np.ones((1, 14)),
        np.full(14, 0.5),
        np.asarray(logits),
        np.asarray(kappa),
        np.asarray(votes),
        prior,
    )
    given = likelihood_of_sets(rows, jax.tree.map(np.asarray, read))
    value, slope, curvature = given.expanded(np.ravel(utility) - 0.5)
    flat = jnp.ravel(utility)
    assert value == pytest.approx(float(expected(flat)))
    np.testing.assert_allclose(slope, jax.grad(expected)(flat), atol=1e-12)
    np.testing.assert_allclose(curvature, -jax.hessian(expected)(flat), atol=1e-12)


@dataclasses.dataclass(frozen=True)
class _Bounded(Model[rt.Rankings]):
    """Worths on an interval, in which no proposal of a whole block stays."""

    blocks = (("worth",),)

    def generate(self, data) -> None:
        with numpyro.plate("item", data.num_items):
            worth = numpyro.sample("worth", dist.Uniform(-1.0, 1.0))
        rows, positions = np.shape(data.offered)
        offered = jnp.asarray(data.offered).ravel()
        utility = jnp.where(offered >= 0, worth[jnp.maximum(offered, 0)], -1e9)
        ranking = PlackettLuce(utility, jnp.repeat(jnp.arange(rows), positions), rows)
        place = None if data.place is None else jnp.ravel(jnp.asarray(data.place))
        with numpyro.plate("ranking", rows):
            numpyro.sample("place", ranking, obs=place)


def test_blocks_that_are_bounded_or_too_large_are_refused(ranked, monkeypatch) -> None:
    reason = rt.PGGibbs().why_not(rt.program.Program(_Bounded(), ranked))
    assert "a prior is bounded, and its entries meet" in reason
    assert "use NUTS or SVI" in reason
    monkeypatch.setattr(sets, "DENSE_LIMIT", 3)
    program = rt.program.Program(rt.ExtendedPlackettLuce(worth_scale=1.0), ranked)
    assert "('worth',) has 5 entries that meet in sets (at most 3)" in rt.PGEM().why_not(program)
    monkeypatch.setattr(sets, "DENSE_LIMIT", 5)
    assert rt.PGEM().why_not(program) is None
