"""EM: the objective never falls, and the end is the optimum that a general optimiser finds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to
from scipy.optimize import minimize

import raters as rt
from raters.inference.polya_gamma import plans
from raters.program import Program, log_joint
from tests import hand

pytestmark = pytest.mark.slow

_OF_VOTES = (
    rt.BTL(),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="positive"),
    rt.ExtendedBTL(competence="signed", position_bias=True),
)
_OF_TYPES = (
    rt.MixtureBTL(),
    rt.MixtureBTL(num_types=3, concentration=0.1, reward_scale=1.0),
    rt.models.ContextualBTL(num_types=2, coefficient_scale=1.0),
)
_OF_LABELS = (
    rt.models.MajorityVote(),
    rt.models.Pooled(),
    rt.models.OneCoin(),
    rt.DawidSkene(),
    rt.DawidSkene(diagonal=3.0, off_diagonal=1.0),
    rt.HierarchicalDawidSkene(),
    rt.models.ItemDifficulty(),
    rt.Raykar(),
    rt.models.Yan(),
)
_CASES = (
    *((model, "tiny") for model in _OF_VOTES),
    *((model, "described") for model in _OF_TYPES),
    *((model, "labelled") for model in _OF_LABELS),
)


def mode(result) -> dict[str, np.ndarray]:
    """The mode as arrays."""
    return {name: value.values for name, value in result["mode"].data_vars.items()}


def optimum(model, data, reached) -> tuple[float, float]:
    """EM's objective at the mode that it reached, and at the best end of L-BFGS-B from there and
    from two places near it.

    The density in the model's coordinates, but in logarithmic ones where a concentration below 1
    asks for it; hyper-parameters are held.
    """
    program = Program(model, data)
    plan = plans.plan(
        program, {name: np.asarray(value, float) for name, value in model.start(data).items()}
    )
    sites = {name: site for name, site in program.sites.items() if name not in plan.hyper}
    held = {name: reached[name] for name in plan.hyper}

    def density(place):
        values = held | {name: biject_to(site.support)(place[name]) for name, site in sites.items()}
        total = log_joint(model, data, values)
        for name in plan.in_logs:
            simplex = sites[name].support is constraints.simplex
            total += jnp.log(values[name]).sum() + (
                0.0 if simplex else jnp.log1p(-values[name]).sum()
            )
        return total

    coordinates = {
        name: biject_to(site.support).inv(jnp.asarray(reached[name]))
        for name, site in sites.items()
    }
    begin, unravel = ravel_pytree(coordinates)
    begin = np.clip(begin, -40.0, 40.0)  # A mode may be at a bound.
    slope = jax.jit(jax.value_and_grad(lambda flat: -density(unravel(flat))))

    def loss(flat):
        return tuple(np.asarray(part, float) for part in slope(jnp.asarray(flat)))

    rng = np.random.default_rng(0)
    starts = [
        np.asarray(begin) + spread * rng.normal(size=begin.shape) for spread in (0.0, 0.1, 0.1)
    ]
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9}
    bounds = [(-40.0, 40.0)] * begin.size
    ends = [
        minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        for start in starts
    ]
    return -loss(starts[0])[0], -min(end.fun for end in ends)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize(("model", "data"), _CASES, ids=lambda case: str(case)[:60])
def test_the_objective_never_falls_and_ends_at_an_optimum(
    model, data, accelerate, request, fit_quietly
) -> None:
    table = request.getfixturevalue(data)
    starts = 3 if model in _OF_TYPES else None
    result = fit_quietly(model, table, rt.PGEM(draws=0, starts=starts, accelerate=accelerate))
    trace = result["optimisation"]["log_joint"].values
    assert len(trace) > 1
    assert np.diff(trace).min() > -1e-9 * (1 + np.abs(trace).max())
    if not accelerate and model in _OF_LABELS and not isinstance(model, rt.DawidSkene):
        return
    with jax.enable_x64(True):
        reached, best = optimum(model, table, mode(result))
    # Centring only raises the density.
    assert reached > result.attrs["log_joint"] - 1e-6
    # The tolerance is on the gain of a cycle, which EM repeats while it creeps.
    assert best - reached < (1e-3 if accelerate or model in _OF_LABELS else 1e-2)


def test_items_that_won_or_lost_everything_stay_finite(fit_quietly) -> None:
    """Item 0 beats all, item 3 loses to all, whoever is asked: the maximum of the likelihood is at
    infinity."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (1, 2), (2, 1)] * 8
    rows = zip(pairs, ["ann", "bob"] * 28, strict=True)
    votes = hand.votes(*((f"i{one}", f"i{other}", who) for (one, other), who in rows))
    for model in (rt.BTL(), rt.ExtendedBTL()):
        for backend in (rt.PGEM(draws=200), rt.PGGibbs(draws=200, warmup=50, chains=1)):
            reward = fit_quietly(model, votes, backend)["posterior"]["reward"]
            assert np.isfinite(reward).all()
            mean = reward.mean(("chain", "draw")).values
            assert mean.argmax() == 0
            assert mean.argmin() == 3
            assert np.abs(mean).max() < 30
