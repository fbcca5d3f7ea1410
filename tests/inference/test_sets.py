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
from raters.inference.polya_gamma import plans, sets, sweep
from raters.inference.polya_gamma.set_likelihood import Plain, Separate, Summed, Utilities
from raters.model import Model
from raters.models import rankings
from raters.program import pointwise_log_likelihood
from raters.terms.worths import item_of

_RNG = np.random.default_rng(0)
_VALUES = {"worth": _RNG.normal(size=5), "competence": np.array([1.0, 0.4, -0.7])}
_EXTENDED = rt.ExtendedPlackettLuce(worth_scale=1.5)


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def conditional(model, data, values, block):
    """The conditional of a block, as a sweep reads it."""
    values = {name: values[name] for name in rt.program.Program(model, data).sites}
    program = rt.program.Program(model, data)
    plan = plans.plan(program, values)
    own = next(one for one in plan.blocks if one.sites == block)
    return sweep.conditional(plan, data, values, own, sweep.Weights("mean"))


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
        rankings.observe(features[item_of(data)] @ worth, data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "site", "kind", "answers"),
    [
        (rt.PlackettLuce(worth_scale=1.5), "worth", Plain, "ranked"),
        (_EXTENDED, "worth", Utilities, "ranked"),
        (_EXTENDED, "competence", Separate, "ranked"),
        (_Described(), "worth", Utilities, "ranked"),
        (rt.PlackettLuce(worth_scale=1.5), "worth", Summed, "best_worst"),
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        given = sets.SetConditional(prior, given.likelihood)
        given.modes = {}
    grid = np.linspace(-4, 5, 400)
    points = np.stack([part.ravel() for part in np.meshgrid(grid, grid, indexing="ij")])
    log_density = given.log_density(points)
    weight = np.exp(log_density - log_density.max())
    rng, draw, draws = np.random.default_rng(0), values["competence"], []
    for index in range(4000):
        if given.modes is not None and index % 7 == 0:  # Goes on with the proposals that are kept.
            modes, given = given.modes, sets.SetConditional(given.prior, given.likelihood)
            given.modes = modes
        draw = given.draw(rng, draw)
        draws.append(draw)
    kept = np.array(draws).T
    for moment in (lambda x: x[0], lambda x: x[1], lambda x: x[0] ** 2, lambda x: x[0] * x[1]):
        exact = (moment(points) * weight).sum() / weight.sum()
        batches = moment(kept).reshape(40, -1).mean(1)
        assert abs(batches.mean() - exact) < 6 * batches.std(ddof=1) / np.sqrt(40)
