"""Divergences between walks, and the policies that have the least; generative adversarial
imitation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.special import rel_entr, softmax

import raters as rt
from raters import imitation
from raters.errors import ConvergenceWarning, DataError, SettingError
from tests.imitation.worlds import SETTINGS, discounted_worlds, world, worlds
from tests.refusals import raises_about


def walks(mdp, policy, steps):
    """Probability of each walk of so many steps, the state after the last one included."""
    table = np.asarray(mdp.start)
    for _ in range(steps):
        table = np.einsum("...s,sa,sat->...sat", table, policy, mdp.transition)
    return table.ravel()


@pytest.mark.parametrize("seed", range(3))
def test_the_divergence_of_walks_is_that_of_their_steps(seed):
    mdp, _, own, other = world(seed, discount=0.8)
    # A walk goes on with probability γ: so many steps of each length.
    by_length = [rel_entr(walks(mdp, own, t), walks(mdp, other, t)).sum() for t in range(4)]
    expected = sum(0.8**t * (by_length[t + 1] - by_length[t]) for t in range(3))
    found = imitation.trajectory_divergence(mdp, own, other, steps=3)
    assert found == pytest.approx(expected, rel=1e-10)
    endless = imitation.trajectory_divergence(mdp, own, other)
    many = imitation.trajectory_divergence(mdp, own, other, steps=200)
    assert endless == pytest.approx(many, rel=1e-9)
    assert imitation.trajectory_divergence(mdp, own, own) == 0


@SETTINGS
@given(worlds)
def test_forward_matching_is_cloning(given_world):
    mdp, _, own, other = given_world
    least = imitation.match_trajectories(mdp, own)
    np.testing.assert_allclose(least.policy, own)
    assert least.divergence == 0
    # A walk costs its log-probability: that of the actions, and a part without the policy.
    visits = imitation.occupancy(mdp, own)
    log_loss = [
        -(visits[mdp.allowed] * np.log(policy[mdp.allowed])).sum() for policy in (own, other)
    ]
    forward = imitation.trajectory_divergence(mdp, own, other)
    assert forward == pytest.approx(log_loss[1] - log_loss[0], rel=1e-9, abs=1e-9)


def test_the_model_of_states_is_the_demonstrators_own():
    mdp, _, own, other = world(6)
    joint = imitation.occupancy(mdp, own, normalised=True)
    states = joint.sum(1)

    def cost(policy, state_probs):
        done = joint > 0
        model = state_probs[:, None] * policy
        return -(joint[done] * np.log(model[done])).sum()

    best = cost(own, states)
    assert best == pytest.approx(-(joint[joint > 0] * np.log(joint[joint > 0])).sum())
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert cost(other, states) > best
        assert cost(own, 0.9 * states + 0.1 * rng.dirichlet(np.ones(len(states)))) > best


PLACE = np.arange(-3, 4)
ROAD = rt.MDP.from_arrays(np.ones((1, 7, 1)), discount=0.5)
# Left or right of what stands on the road, and hardly ever into it.
TWO_WAYS = np.array([[0.05, 0.37, 0.07, 0.02, 0.07, 0.37, 0.05]])
BUMP = {"design": PLACE[None, :, None].astype(float), "base": softmax(-(PLACE[None] ** 2) / 1.0, 1)}


def test_the_reverse_divergence_seeks_a_mode_and_the_forward_one_covers_both():
    forward = imitation.match_trajectories(ROAD, TWO_WAYS, **BUMP)
    reverse = imitation.match_trajectories(ROAD, TWO_WAYS, **BUMP, direction="reverse")
    assert PLACE[forward.policy[0].argmax()] == 0  # into it
    assert abs(PLACE[reverse.policy[0].argmax()]) == 2
    assert TWO_WAYS[0] @ reverse.policy[0] > 2 * (TWO_WAYS[0] @ forward.policy[0])
    crossed = imitation.trajectory_divergence(ROAD, forward.policy, TWO_WAYS)
    assert reverse.divergence < crossed


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_the_least_divergence_of_a_family(direction):
    mdp, _, own, _ = world(4)
    design = np.random.default_rng(1).normal(size=(*mdp.allowed.shape, 2))
    found = imitation.match_trajectories(mdp, own, direction=direction, design=design)

    def divergence(weights):
        logits = np.where(mdp.allowed, design @ weights, -np.inf)
        pair = (own, softmax(logits, 1))
        return imitation.trajectory_divergence(
            mdp, *(pair if direction == "forward" else pair[::-1])
        )

    assert found.divergence == pytest.approx(divergence(found.weights), rel=1e-9)
    for step in itertools.product((-1e-3, 0, 1e-3), repeat=2):
        assert divergence(found.weights + step) >= found.divergence - 1e-9
    # All policies are in the family of a column for each action of each state.
    every = np.eye(mdp.allowed.size).reshape(*mdp.allowed.shape, -1)
    best = imitation.match_trajectories(mdp, own, direction=direction, design=every)
    assert best.divergence < 1e-6


def test_matches_that_are_none_are_refused():
    never = np.array([[0.5, 0.5, 0, 0, 0, 0, 0]])
    with raises_about(DataError, "demonstrator"):
        imitation.match_trajectories(ROAD, never, **BUMP, direction="reverse")
    with raises_about(DataError, "base"):
        imitation.match_trajectories(ROAD, TWO_WAYS, base=never)
    with raises_about(DataError, "design"):
        imitation.match_trajectories(ROAD, TWO_WAYS, design=np.ones((7, 1)))
    with raises_about(SettingError, "direction"):
        imitation.match_trajectories(ROAD, TWO_WAYS, direction="sideways")
    assert imitation.trajectory_divergence(ROAD, TWO_WAYS, never) == np.inf


# ---------------------------------------------------------------- adversarial


@SETTINGS
@given(discounted_worlds)
def test_the_best_classifier_has_the_ratio_as_its_odds(given_world):
    mdp, _, own, other = given_world
    good, learned = (
        imitation.occupancy(mdp, policy, normalised=True)[mdp.allowed] for policy in (own, other)
    )
    logits = imitation.discriminator(
        mdp, imitation.occupancy(mdp, own), imitation.occupancy(mdp, other)
    )[mdp.allowed]
    np.testing.assert_allclose(logits, np.log(good / learned), atol=1e-9)

    def cost(logits):  # equation 58: -E log h - E log (1 - h)
        return good @ np.logaddexp(0, -logits) + learned @ np.logaddexp(0, logits)

    rng = np.random.default_rng(0)
    for size in (1e-2, 1.0):
        assert cost(logits) <= cost(logits + rng.normal(scale=size, size=len(logits)))
    # The gradient is that of the classifier's mistakes, and 0.
    chance = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(learned * chance, good * (1 - chance), atol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_gail_has_the_occupancy_of_the_demonstrator(seed):
    mdp, reward, _, _ = world(seed, discount=0.9)
    own = imitation.soft_policy(mdp, reward, temperature=0.5).policy
    shown = imitation.occupancy(mdp, own)
    learned = imitation.gail(mdp, shown)
    assert learned.divergence < 1e-5
    assert (np.diff(learned.history) < 0).all()
    found = imitation.occupancy(mdp, learned.policy)
    np.testing.assert_allclose(found / found.sum(), shown / shown.sum(), atol=0.01)
    expected = imitation.discriminator(mdp, shown, found)
    np.testing.assert_allclose(learned.logits, expected, atol=1e-9)
    # Who only counts divides by another sum.
    np.testing.assert_allclose(imitation.gail(mdp, 7 * shown).policy, learned.policy, atol=1e-9)


def test_gail_of_walks_that_end():
    """Nothing is discounted, so that the sum of an occupancy is the mean length of a walk."""
    mdp = rt.MDP.grid(4, 4, ends=[(3, 3)], start=(0, 0), discount=1.0)
    own = imitation.soft_policy(mdp, np.full(mdp.allowed.shape, -2.0)).policy
    shown = imitation.occupancy(mdp, own)
    learned = imitation.gail(mdp, shown, steps=2000)
    assert learned.divergence < 1e-5
    found = imitation.occupancy(mdp, learned.policy)
    np.testing.assert_allclose(found / found.sum(), shown / shown.sum(), atol=0.003)


@pytest.mark.parametrize("seed", [1, 2])
def test_gail_of_episodes_that_got_to_an_end(seed):
    """4,000 episodes give the policy within .1 where the demonstrator often was."""
    mdp, reward, _, _ = world(seed, ending=True, discount=0.9)
    own = imitation.soft_policy(mdp, reward, temperature=0.5).policy
    walks = imitation.rollout(mdp, own, episodes=4000, steps=200, seed=seed)
    learned = imitation.gail(mdp, imitation.empirical_occupancy(mdp, walks))
    busy = imitation.action_counts(mdp, walks).sum(1) > 2000
    assert busy.sum() >= 2
    np.testing.assert_allclose(learned.policy[busy], own[busy], atol=0.1)


def test_gail_of_a_demonstrator_who_never_errs():
    mdp = rt.MDP.grid(3, 3, slip=0.1, start=(0, 0))
    goal = np.eye(9)[8]
    best = imitation.optimal_policy(mdp, goal).policy
    learned = imitation.gail(mdp, imitation.occupancy(mdp, best), tolerance=1e-5)
    loss = imitation.cloning_bound(mdp, goal, best, learned.policy).gap
    assert loss < 0.05 * (mdp.start @ imitation.state_values(mdp, goal, best))


def test_gail_says_when_it_is_cut_short():
    mdp, _, own, _ = world(1, discount=0.9)
    with pytest.warns(ConvergenceWarning, match="still falls") as caught:
        imitation.gail(mdp, imitation.occupancy(mdp, own), steps=1)
    assert caught[0].filename == __file__
    with raises_about(DataError, "demonstrator"):
        imitation.gail(mdp, np.zeros(mdp.allowed.shape))
    with raises_about(SettingError, "tolerance"):
        imitation.gail(mdp, imitation.occupancy(mdp, own), tolerance=-1)
