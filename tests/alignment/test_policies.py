"""Policies and their min-max ensemble: the paper's examples, Bradley–Terry, known rewards, and what
is refused."""

from __future__ import annotations

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from raters.alignment import dpo_loss, hedge, linear_programme, policy, regret_matrix, regrets
from raters.errors import ConvergenceWarning

SETTINGS = settings(deadline=None, max_examples=60)
# The paper's bandit: a type's own arm is worth 10 Σx, the others nothing, with contexts x uniform
# on the unit cube; six, three and one tenths of people are of the three types.
CONTEXTS = np.random.default_rng(0).random((500, 3))
CONTEXTS = np.concatenate([CONTEXTS, 1 - CONTEXTS])  # so that Σx is 1.5 on average, exactly
BANDIT = 10 * CONTEXTS.sum(1)[None, :, None] * np.eye(3)[:, None, :]
TENTHS = [6, 3, 1]
POOLED = np.array([0.535, 0.281, 0.183])


def simplex(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


@st.composite
def problems(draw):
    """Rewards of types, a reference, and β."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    reward = draw(arrays(float, shape, elements=st.floats(-3, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return reward, simplex(rng, *shape[1:]), draw(st.floats(0.2, 3))


# ---------------------------------------------------------------- DPO


@pytest.mark.parametrize("wide", [False, True])
def test_dpo_is_bradley_terry_with_implicit_rewards(wide):
    rng = np.random.default_rng(1)
    learned, reference = simplex(rng, 4, 5), simplex(rng, 4, 5)
    prompt = rng.integers(4, size=50)
    chosen, rejected = rng.permuted(np.tile(np.arange(5), (50, 1)), axis=1)[:, :2].T
    reward = 0.3 * np.log(learned / reference)
    expected = -np.mean(np.log(expit(reward[prompt, chosen] - reward[prompt, rejected])))
    with jax.enable_x64(wide):
        logs = (
            jnp.asarray(np.log(of[prompt, side]))
            for of in (learned, reference)
            for side in (chosen, rejected)
        )
        loss = dpo_loss(*logs, beta=0.3)
        assert loss.dtype == (jnp.float64 if wide else jnp.float32)
        assert float(loss) == pytest.approx(expected, rel=1e-12 if wide else 1e-5)


def test_dpo_of_the_pooled_types_is_the_paper_s_unfair_policy():
    """Each type's own arm always wins, and it tosses a coin over the others; every pair is as
    likely."""
    rows = [  # how often each answer is given
        (first, second, tenths * (2 if first == arm else 0 if second == arm else 1))
        for arm, tenths in enumerate(TENTHS)
        for first, second in itertools.permutations(range(3), 2)
    ]
    chosen, rejected = (
        np.repeat([row[side] for row in rows], [row[2] for row in rows]) for side in (0, 1)
    )
    reference = jnp.full(len(chosen), -jnp.log(3.0))

    def loss(logits):
        log_policy = jax.nn.log_softmax(logits)
        return dpo_loss(log_policy[chosen], log_policy[rejected], reference, reference)

    step = jax.jit(lambda logits: logits - 3 * jax.grad(loss)(logits))
    logits = jnp.zeros(3)
    for _ in range(300):
        logits = step(logits)
    found = np.asarray(jax.nn.softmax(logits))
    np.testing.assert_allclose(found, POOLED, atol=6e-4)
    lost = regrets(np.tile(found / found.sum(), (1000, 1)), BANDIT)
    np.testing.assert_allclose(lost, [6.9, 10.8, 12.2], atol=0.1)


def test_dpo_far_from_the_data_keeps_its_gradient():
    loss, slope = jax.value_and_grad(dpo_loss)(
        jnp.array([-500.0]), jnp.array([-1.0]), jnp.array([-1.0]), jnp.array([-1.0])
    )
    assert float(loss) == pytest.approx(499)
    assert float(slope[0]) == pytest.approx(-1)


# ---------------------------------------------------------------- policies and rewards


@SETTINGS
@given(problems(), st.floats(1e-3, 1))
def test_no_other_policy_has_more_reward_less_divergence(problem, part):
    reward, reference, beta = problem

    def objective(of):
        return np.sum(of * (reward - beta * (np.log(of) - np.log(reference))), -1)

    best = policy(reward, reference, beta=beta)
    others = simplex(np.random.default_rng(0), 50, *reward.shape)
    assert np.all(objective((1 - part) * best + part * others) <= objective(best) + 1e-9)
    partition = np.sum(reference * np.exp(reward / beta), -1, keepdims=True)
    np.testing.assert_allclose(objective(best), beta * np.log(partition[..., 0]), atol=1e-9)
    # The implicit reward, up to a constant for each prompt.
    implicit = beta * np.log(best / reference)
    np.testing.assert_allclose(implicit, reward - beta * np.log(partition), atol=1e-9)


def test_zeros_and_small_betas():
    probs = policy([0.0, 5.0, 1e3], [0.5, 0.5, 0.0], beta=5)
    np.testing.assert_allclose(probs, [1 / (1 + np.e), np.e / (1 + np.e), 0])
    np.testing.assert_array_equal(policy([-1e9, 1e9, 0.0], beta=1e-300), [0, 1, 0])


# ---------------------------------------------------------------- regret


def test_the_paper_s_example():
    """Two types and three responses: the greatest least reward takes the third, the least worst
    regret the second."""
    reward = np.array([[0, 0.01, 0.02], [0, 10, 1]])
    worst = np.array([regrets(response, reward) for response in np.eye(3)]).max(1)
    np.testing.assert_allclose(worst, [10, 0.01, 9])
    assert worst.argmin() == 1
    assert reward.min(0).argmax() == 2


@SETTINGS
@given(problems())
def test_the_matrix_is_what_types_lose_by_their_rewards(problem):
    """From rewards that the matrix never sees; what types lose against the best responses differs
    by a constant. The type furthest from the reference gains by no other policy."""
    reward, reference, beta = problem
    each = policy(reward, reference, beta=beta)
    matrix = regret_matrix(each, reference, beta=beta)
    gets = np.einsum("kxy,jxy->kj", reward, each) / reward.shape[1]
    np.testing.assert_allclose(matrix[1:], np.diag(gets)[:, None] - gets, atol=1e-9)
    np.testing.assert_array_equal(matrix[0], 0)
    weights = simplex(np.random.default_rng(0), len(each))
    best = reward.max(-1).mean(-1)
    lost = regrets(np.tensordot(weights, each, 1), reward)
    np.testing.assert_allclose(lost, best - gets @ weights, atol=1e-9)
    np.testing.assert_allclose(matrix[1:] @ weights, lost - (best - np.diag(gets)), atol=1e-9)
    far = np.sum(each * (np.log(each) - np.log(reference)), -1).mean(-1)
    assert matrix[1 + far.argmax()].min() >= -1e-9


def test_entries_that_are_negative_and_zeros_where_nobody_looks():
    assert regret_matrix([[0.6, 0.4], [0.9, 0.1]])[1, 1] < 0
    # A response that no type's policy gives needs no logarithm.
    two = np.array([[0.7, 0.3], [0.2, 0.8]])
    padded = np.insert(two, 1, 0, axis=1)
    np.testing.assert_allclose(regret_matrix(padded, [0.5, 0, 0.5]), regret_matrix(two))


# ---------------------------------------------------------------- the least worst regret


@pytest.mark.parametrize("solve", [linear_programme, hedge])
def test_weights_by_hand(solve):
    found = solve(regret_matrix(policy(BANDIT), beta=1.0))
    np.testing.assert_allclose(found.weights, 1 / 3, atol=1e-9)
    # Implicit rewards are the true ones, and policies all but greedy: two thirds of the mean reward
    # of the own arm, 15.
    assert found.value == pytest.approx(10, abs=0.01)
    found = solve([[0, 0], [0, 3], [1, 0]])
    np.testing.assert_allclose(found.weights, [3 / 4, 1 / 4], atol=1e-3)
    assert found.value == pytest.approx(3 / 4, abs=3e-3)


@SETTINGS
@given(problems())
def test_no_weights_do_better_than_the_linear_programme(problem):
    reward, reference, beta = problem
    matrix = regret_matrix(policy(reward, reference, beta=beta), reference, beta=beta)
    found = linear_programme(matrix)
    mixed = simplex(np.random.default_rng(0), 200, len(reward))
    others = np.concatenate([mixed, np.eye(len(reward))])
    assert np.all((matrix @ others.T).max(0) >= found.value - 1e-6)
    assert found.value == pytest.approx(max(matrix @ found.weights), rel=1e-12)
    assert found.weights.sum() == pytest.approx(1)
    # The row of z₀ changes nothing: the worst regret of all types is not negative.
    assert linear_programme(matrix[1:]).value == pytest.approx(found.value, abs=1e-6)


def test_one_huge_regret_hides_no_others():
    """By hand: the third is never given, and the third row is never the worst."""
    found = linear_programme([[0, 0, 1e9], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(found.weights, [0.5, 0.5, 0], atol=1e-8)
    assert found.value == pytest.approx(0.5, rel=1e-6)
    assert found.gap < 1e-6
    assert linear_programme([[0, 1], [1, 0], [-1e9, -1e9]]).value == pytest.approx(0.5)
    # A billionth of the first would be the best, of value 1 + 1e-9, and rounding leaves a gap.
    with pytest.warns(ConvergenceWarning):
        found = linear_programme([[-1e9, 2], [2, 1]])
    assert found.value - found.gap <= 1 + 1e-9 <= found.value


@pytest.mark.parametrize("spread", [3, 9])
def test_the_linear_programme_bounds_itself_at_every_size_of_regrets(spread):
    rng = np.random.default_rng(spread)
    for _ in range(50):
        size = tuple(rng.integers(2, 6, size=2))
        matrix = rng.exponential(size=size) * 10 ** rng.uniform(-spread, spread, size)
        found = linear_programme(matrix)
        assert 0 <= found.gap < 1e-5 * found.value
        assert found.value == pytest.approx(max(matrix @ found.weights), rel=1e-12)


@pytest.mark.filterwarnings("ignore:the worst regret:raters.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["policies", "normal", "signs"])
@pytest.mark.parametrize("steps", [50, 2000])
def test_hedge_nears_the_linear_programme_as_one_over_steps(steps, kind):
    rng = np.random.default_rng(steps)
    for _ in range(12):
        types = int(rng.integers(2, 8))
        matrix = {
            "policies": regret_matrix(policy(rng.normal(size=(types, 3, 4), scale=5))),
            "normal": np.vstack([np.zeros(types), rng.normal(size=(types, types))]),
            "signs": rng.choice([-1.0, 1.0], (types + 1, types)),
        }[kind] * 10 ** rng.uniform(-6, 6)
        found, scale = hedge(matrix, steps=steps), np.abs(matrix).max()
        lost = (found.value - linear_programme(matrix).value) / scale
        assert -1e-6 < lost < (2 * np.log(types * (types + 1)) + 1) / steps
        assert lost <= found.gap / scale + 1e-9
        assert steps < 2000 or lost < 0.014


def test_hedge_warns_of_its_gap():
    rng, warned = np.random.default_rng(0), 0
    for _ in range(40):
        matrix = rng.normal(size=(4, 3)) * 10 ** rng.uniform(-3, 3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = hedge(matrix, steps=int(rng.integers(1, 200)))
        warned += len(caught)
        assert bool(caught) == (found.gap > 0.02 * np.abs(matrix).max())
    assert 5 < warned < 35


@pytest.mark.filterwarnings("ignore:the worst regret:raters.errors.ConvergenceWarning")
def test_hedge_is_the_algorithm_as_printed():
    """w and p of a step from those of the two before; before the start no payoff."""
    matrix, rate = np.array([[0, 0], [0, 1.0], [0.5, -0.2]]), 0.5
    w, p = [np.zeros(2), np.full(2, 1 / 2)], [np.zeros(3), np.full(3, 1 / 3)]
    for _ in range(5):
        next_w = w[-1] * np.exp(-rate * matrix.T @ (2 * p[-1] - p[-2]))
        next_p = p[-1] * np.exp(rate * matrix @ (2 * w[-1] - w[-2]))
        w.append(next_w / next_w.sum())
        p.append(next_p / next_p.sum())
    found = hedge(matrix, steps=6)
    means = [np.mean(w[1 : 1 + t], 0) for t in range(1, 7)]
    np.testing.assert_allclose(found.history, means, rtol=1e-12)
    np.testing.assert_array_equal(found.weights, found.history[-1])
    # The scale changes nothing.
    np.testing.assert_allclose(hedge(1024 * matrix, steps=6).weights, found.weights, rtol=1e-9)
