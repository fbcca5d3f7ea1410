"""Gibbs and EM of several kinds of judgement: blocks, conditionals of what the kinds share, ties,
modes and draws around them, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from scipy.special import expit, logsumexp

import raters as rt
from raters.inference.polya_gamma import plans, sums, sweep
from raters.inference.polya_gamma.laplace import laplace
from raters.program import log_joint, start_of
from tests import hand
from tests.several import OF_LABELS, labelled

_VOTES = rt.BTL(reward_scale=1.0)
TWO_CROWDS = rt.models.JointModel(
    {"one": rt.ExtendedBTL(reward_scale=1.0), "two": rt.ExtendedBTL(reward_scale=1.0)},
    shared=["reward", "competence", "competence_spread"],
)
VOTES_AND_RANKINGS = rt.models.JointModel(
    {"votes": _VOTES, "ranked": rt.PlackettLuce(worth_scale=1.0)},
    shared=[{"votes": "reward", "ranked": "worth"}],
)
TWO_TASKS = rt.models.JointModel(
    {"one": rt.DawidSkene(), "two": rt.DawidSkene()}, shared=["confusion", "prevalence"]
)


def votes_of(seed: int, number: int, items: int = 4) -> rt.Comparisons:
    """Votes of three annotators."""
    rng = np.random.default_rng(seed)
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    return hand.votes(*zip(first, second, np.arange(number) % 3, strict=True))


def rankings_of(seed: int, number: int, items: int = 4) -> rt.Rankings:
    """Rankings of three items each by three annotators."""
    rng = np.random.default_rng(seed)
    table = [
        (ranking, item, place + 1, ranking % 3)
        for ranking in range(number)
        for place, item in enumerate(rng.permutation(items)[:3])
    ]
    names = ("ranking", "item", "rank", "annotator")
    columns = dict(zip(names, zip(*table, strict=True), strict=True))
    roles = dict(zip(names, names, strict=True))
    return rt.Rankings.from_frame(columns, **roles, unranked="not offered")


@pytest.fixture(scope="module")
def crowds() -> rt.judgements.Together:
    return rt.judgements.Together.of({"one": votes_of(0, 30), "two": votes_of(1, 40)})


@pytest.fixture(scope="module")
def ranked() -> rt.judgements.Together:
    return rt.judgements.Together.of({"votes": votes_of(0, 12), "ranked": rankings_of(1, 6)})


@pytest.fixture(scope="module")
def tasks() -> rt.judgements.Together:
    one = rt.datasets.label_crowd(12, 4, 3, 2, seed=0).labels
    frame = rt.datasets.label_crowd(9, 4, 3, 2, seed=1).labels.to_frame()
    frame["item"] = [f"other {item}" for item in frame["item"]]
    two = rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label")
    return rt.judgements.Together.of({"one": one, "two": two})


@pytest.fixture(scope="module")
def labels_and_votes() -> rt.judgements.Together:
    return labelled()


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def planned(model: rt.models.JointModel, data: rt.judgements.Together) -> Any:
    return plans.plan(rt.program.Program(model, data), start_of(model, data))


# ------------------------------------------------------------------------------- conditionals


def together_in_one(crowds: rt.judgements.Together) -> rt.Comparisons:
    """The votes of both parts in one table."""
    one, two = crowds.parts
    return one.joined(two)


@pytest.mark.slow
def test_the_conditional_of_a_shared_site_is_that_of_all_rows(crowds) -> None:
    values = {
        "reward": np.array([0.3, -0.2, 0.8, -0.9]),
        "competence": np.array([0.9, 0.4, 0.7]),
        "competence_spread": np.array(0.5),
    }
    plan = planned(TWO_CROWDS, crowds)
    whole = rt.program.Program(rt.ExtendedBTL(reward_scale=1.0), together_in_one(crowds))
    alone = plans.plan(whole, values)
    for place, block in enumerate(plan.blocks):
        at = alone.blocks.index(block)
        own, one = (
            sums.Conditional(sweep.readings_of(*given, values, {}), "mean")
            for given in ((plan, place, crowds), (alone, at, whole.data))
        )
        np.testing.assert_allclose(own.shift, one.shift, rtol=1e-10)
        current = block.flat(values)
        np.testing.assert_allclose(own.slope(current), one.slope(current), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("crowds", marks=pytest.mark.exhaustive),
        "rankings",
        pytest.param("tasks", marks=pytest.mark.exhaustive),
        pytest.param("labels and votes", marks=pytest.mark.slow),
    ],
)
def test_conditionals_have_the_slope_of_the_joint_density(
    model: str, crowds, ranked, tasks, labels_and_votes
) -> None:
    """Fisher's identity, at a draw of the prior; and the rest of the contract."""
    model, data = {
        "crowds": (TWO_CROWDS, crowds),
        "rankings": (VOTES_AND_RANKINGS, ranked),
        "tasks": (TWO_TASKS, tasks),
        "labels and votes": (OF_LABELS, labels_and_votes),
    }[model]
    rt.testing.check_model(model, data)


# --------------------------------------------------------------------------------------- modes


def mode_of(model: Any, data: Any, fit_quietly) -> dict[str, np.ndarray]:
    result = fit_quietly(model, data, rt.PGEM(draws=0, tolerance=1e-9))
    return {name: np.asarray(value) for name, value in result["mode"].data_vars.items()}


@pytest.mark.slow
def test_the_mode_of_two_crowds_is_that_of_one_table(crowds, fit_quietly) -> None:
    model = rt.models.JointModel({"one": _VOTES, "two": _VOTES}, shared=["reward"])
    both = mode_of(model, crowds, fit_quietly)
    one = mode_of(_VOTES, together_in_one(crowds), fit_quietly)
    np.testing.assert_allclose(both["reward"], one["reward"], atol=1e-6)


@pytest.mark.slow
def test_the_mode_of_votes_and_rankings_is_that_of_another_optimiser(ranked, fit_quietly) -> None:
    found = mode_of(VOTES_AND_RANKINGS, ranked, fit_quietly)["reward"]

    def loss(reward: np.ndarray) -> float:
        return -float(log_joint(VOTES_AND_RANKINGS, ranked, {"reward": jnp.asarray(reward)}))

    best = scipy.optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(found - found.mean(), best - best.mean(), atol=1e-5)


@pytest.mark.slow
def test_the_objective_never_falls_and_is_flat_at_the_mode(labels_and_votes, fit_quietly) -> None:
    result = fit_quietly(OF_LABELS, labels_and_votes, rt.PGEM(draws=0, starts=1, tolerance=1e-10))
    rises = np.diff(result["optimisation"]["log_joint"].values)
    assert rises.min() > -1e-8
    plan = planned(OF_LABELS, labels_and_votes)
    mode = {name: jnp.asarray(value.values) for name, value in result["mode"].data_vars.items()}

    def density(values: dict[str, Any]) -> Any:
        return sweep.objective(plan, labels_and_votes, mode | values)

    fixed = (*plan.hyper, "labels.prevalence")  # estimated first, and a simplex
    slopes = jax.grad(density)({name: mode[name] for name in mode if name not in fixed})
    for name, slope in slopes.items():
        assert float(jnp.abs(slope).max()) < 2e-3, name


@pytest.mark.slow
def test_draws_around_the_mode_have_the_densities_that_are_stored(ranked) -> None:
    """Without hyper-parameters ``log_p`` is the joint density, and ``log_q`` that of the normal
    with the curvature at the mode, by finite differences."""
    plan = planned(VOTES_AND_RANKINGS, ranked)

    def density(reward: Any) -> Any:
        return log_joint(VOTES_AND_RANKINGS, ranked, {"reward": jnp.asarray(reward)})

    mode = scipy.optimize.minimize(lambda reward: -float(density(reward)), np.zeros(4)).x
    start = {"reward": np.zeros(4)}
    draws, stats = laplace(plan, ranked, start, 50, np.random.default_rng(0))
    step = 1e-4 * np.eye(4)
    slope = jax.grad(density)
    curvature = np.stack([(slope(mode - one) - slope(mode + one)) / 2e-4 for one in step])
    normal = scipy.stats.multivariate_normal(mode, np.linalg.inv(curvature))
    for place in range(50):
        reward = draws["reward"][0, place]
        assert stats["log_p"][0, place] == pytest.approx(float(density(reward)), rel=1e-9)
        assert stats["log_q"][0, place] == pytest.approx(normal.logpdf(reward), rel=1e-3)


def on_a_pair(*number: int) -> rt.Comparisons:
    """So many votes for the one item and for the other."""
    table = {"a": ["x"] * 2, "b": ["y"] * 2, "o": ["first", "second"], "n": number}
    return rt.Comparisons.from_frame(table, first="a", second="b", outcome="o", count="n")


@pytest.mark.slow
def test_weights_of_draws_across_an_orbit_give_the_evidence() -> None:
    """One annotator on two items, and votes by everybody: the mean weight of 4,000 draws against
    quadrature, within 5 standard errors. The seed is fixed, as weights have a long tail, so that a
    standard error says less than it does of a normal. Scales are fixed, and the place on the orbit
    of rewards and competence is integrated out."""
    signed = rt.ExtendedBTL(competence="signed", reward_scale=1.0)
    model = rt.models.JointModel({"one": signed, "two": _VOTES})
    data = rt.judgements.Together.of({"one": on_a_pair(40, 10), "two": on_a_pair(30, 12)})
    plan = planned(model, data)
    assert len(plan.scales) == 1
    assert plan.hyper == ()
    _, stats = laplace(plan, data, start_of(model, data), 4000, np.random.default_rng(0))
    weight = (stats["log_p"] - stats["log_q"])[0]
    found, share = logsumexp(weight) - np.log(4000), np.exp(weight - logsumexp(weight))
    error = share.std() * 4000**0.5
    # Orbits keep the sign of a competence; mirror images have weights of their own.
    gap, competence = np.linspace(-9, 9, 1201), np.linspace(0.005, 8.995, 900)[:, None]
    difference = scipy.stats.norm(0, 2**0.5).pdf(gap)
    chance = expit(competence * gap)
    prior = difference * scipy.stats.norm(1, 1).pdf(competence)

    def likelihood(chance: np.ndarray, part: rt.Comparisons) -> np.ndarray:
        each = [
            scipy.stats.binom.pmf(int(y), int(n), chance)
            for y, n in zip(np.asarray(part.wins), np.asarray(part.weight), strict=True)
        ]
        return np.prod(each, axis=0)

    step = (gap[1] - gap[0]) * (competence[1, 0] - competence[0, 0])
    of_one = (prior * likelihood(chance, data.part("one"))).sum() * step
    of_two = (difference * likelihood(expit(gap), data.part("two"))).sum() * (gap[1] - gap[0])
    assert found == pytest.approx(np.log(of_one * of_two), abs=5 * error)
    assert error < 0.05


@pytest.mark.slow
def test_draws_of_votes_and_rankings_of_several_sizes_agree(fit_quietly) -> None:
    """Rows in few sizes; standard errors of means of at least 100 effective draws."""
    votes, ranked = votes_of(0, 200), rankings_of(1, 70)
    data = rt.judgements.Together.of({"votes": votes, "ranked": ranked})
    exact = fit_quietly(VOTES_AND_RANKINGS, data, rt.PGGibbs(draws=300, warmup=100, chains=2))
    around = fit_quietly(VOTES_AND_RANKINGS, data, rt.PGEM(draws=300))
    one, other = (result["posterior"]["reward"] for result in (exact, around))
    apart = one.mean(("chain", "draw")) - other.mean(("chain", "draw"))
    assert (abs(apart) < 0.5 * one.std(("chain", "draw"))).all()
