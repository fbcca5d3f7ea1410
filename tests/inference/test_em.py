"""EM: the objective never falls, and the end is the optimum that a general optimiser finds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import raters as rt
from raters.program import Program, log_joint

pytestmark = pytest.mark.slow

_VARIANTS = {"accelerated": rt.PGEM(draws=0), "plain": rt.PGEM(draws=0, accelerate=False)}
_MODELS = (
    rt.BTL(),
    rt.ExtendedBTL(),
    rt.ExtendedBTL(competence="positive"),
    rt.ExtendedBTL(competence="signed", position_bias=True),
)
_FREE = ("reward", "competence", "position_bias")


def optimum(model, data, mode) -> tuple[float, dict[str, np.ndarray]]:
    """The best end of L-BFGS-B over rewards, competences and biases, from EM's mode and three
    places about it.

    The other sites stay where EM settled them.
    """
    free = [name for name in Program(model, data).sites if name in _FREE]
    sizes = [np.size(mode[name]) for name in free]
    held = {name: jnp.asarray(value) for name, value in mode.items() if name not in free}
    low = 0.0 if getattr(model, "competence", "signed") != "signed" else None
    high = 1.0 if getattr(model, "competence", "signed") == "unit" else None
    bounds = [
        (low, high) if name == "competence" else (None, None)
        for name, n in zip(free, sizes, strict=True)
        for _ in range(n)
    ]

    def unpack(flat):
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        return held | {
            name: part.reshape(np.shape(mode[name])) for name, part in zip(free, parts, strict=True)
        }

    loss = jax.jit(jax.value_and_grad(lambda flat: -log_joint(model, data, unpack(flat))))
    start = np.concatenate([np.ravel(mode[name]) for name in free])
    rng = np.random.default_rng(0)
    ends = []
    for spread in (0.0, 0.05, 0.05, 0.05):
        begin = np.clip(start * (1 + spread * rng.normal(size=len(start))), *_clip(bounds))
        ends.append(
            minimize(
                lambda flat: tuple(
                    np.asarray(part, np.float64) for part in loss(jnp.asarray(flat))
                ),
                begin,
                jac=True,
                bounds=bounds,
                method="L-BFGS-B",
                options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
            )
        )
    best = min(ends, key=lambda end: end.fun)
    return -best.fun, {name: np.asarray(unpack(best.x)[name]) for name in free}


def _clip(bounds):
    return [-np.inf if low is None else low for low, _ in bounds], [
        np.inf if high is None else high for _, high in bounds
    ]


@pytest.mark.parametrize("variant", _VARIANTS)
@pytest.mark.parametrize("model", _MODELS, ids=repr)
def test_mode_is_the_optimum(model, variant, tiny, fit_quietly) -> None:
    result = fit_quietly(model, tiny, _VARIANTS[variant])
    mode = {name: value.values for name, value in result["mode"].data_vars.items()}
    trace = result["optimisation"]["log_joint"].values
    assert np.diff(trace).min() > -1e-9 * (1 + np.abs(trace).max())
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, tiny)
        reached = float(log_joint(model, data, mode))
        best, point = optimum(model, data, mode)
    # The tolerance is on the gain of a cycle, which plain EM repeats while it creeps; centring only
    # raises the density.
    assert best - reached < (1e-4 if variant == "accelerated" else 2e-3)
    for name, value in point.items():
        atol = 0.02 if variant == "accelerated" else 0.1
        np.testing.assert_allclose(mode[name], value, atol=atol)


def test_items_that_won_or_lost_everything_stay_finite(fit_quietly) -> None:
    """Item 0 beats all, item 3 loses to all, whoever is asked: the maximum of the likelihood is at
    infinity."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (1, 2), (2, 1)] * 8
    table = {
        "winner": [f"i{one}" for one, _ in pairs],
        "loser": [f"i{other}" for _, other in pairs],
        "who": ["ann", "bob"] * 28,
    }
    votes = rt.Comparisons.from_frame(table, winner="winner", loser="loser", annotator="who")
    for model in (rt.BTL(), rt.ExtendedBTL()):
        for backend in (rt.PGEM(draws=200), rt.PGGibbs(draws=200, warmup=50, chains=1)):
            reward = fit_quietly(model, votes, backend)["posterior"]["reward"]
            assert np.isfinite(reward).all()
            mean = reward.mean(("chain", "draw")).values
            assert mean.argmax() == 0
            assert mean.argmin() == 3
            assert np.abs(mean).max() < 30


def test_cut_off_climb_warns_with_numbers(tiny) -> None:
    with pytest.warns(
        rt.errors.ConvergenceWarning, match=r"after 3 sweeps .* rose by [\d.e-]+ a step"
    ):
        rt.fit(
            rt.ExtendedBTL(),
            tiny,
            rt.PGEM(draws=0, accelerate=False, max_sweeps=3),
            seed=0,
            progress=False,
        )
