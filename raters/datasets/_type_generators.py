"""Votes by annotators of several tastes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raters._check import positive, whole
from raters.data import Comparisons
from raters.datasets._generators import Generated
from raters.errors import SettingError


def preference_types(
    num_items: int = 10,
    num_annotators: int = 100,
    votes_each: int = 20,
    num_types: int = 3,
    *,
    seed: int,
    weights: Sequence[float] | None = None,
    reward_scale: float = 2.0,
) -> Generated:
    """Annotators of several types, each type with rewards of its own; pairs uniform.

    Parameters
    ----------
    num_items, num_annotators, votes_each, num_types : int
    seed : int
    weights : sequence of float, optional
        Probability of each type; all alike without it.
    reward_scale : float
        Standard deviation of the rewards.

    Returns
    -------
    Generated
        ``votes``, and ``truth`` with ``reward`` (item, type), centred within each type; ``type``, the code of each annotator's;
        and ``type_weight``, the shares that were drawn.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_types(num_items=5, num_annotators=6, votes_each=4, num_types=2, seed=0)
    >>> votes.num_votes, truth["reward"].shape
    (24, (5, 2))
    """
    for name, value in {"num_annotators": num_annotators, "votes_each": votes_each, "num_types": num_types}.items():
        whole(name, value)
    whole("num_items", num_items, least=2)
    positive("reward_scale", reward_scale)
    chances = _chances(weights, num_types)
    rng = np.random.default_rng(seed)
    reward = rng.normal(0, reward_scale, (num_items, num_types))
    reward -= reward.mean(0)
    of_type = rng.choice(num_types, num_annotators, p=chances)
    annotator = np.repeat(np.arange(num_annotators), votes_each)
    first = rng.integers(num_items, size=len(annotator))
    second = (first + rng.integers(1, num_items, size=len(annotator))) % num_items
    logits = reward[first, of_type[annotator]] - reward[second, of_type[annotator]]
    wins = rng.random(len(annotator)) < 1 / (1 + np.exp(-logits))
    votes = _comparisons(first, second, annotator, wins, range(num_items), range(num_annotators)).aggregate()
    return Generated(votes, {"reward": reward, "type": of_type, "type_weight": _drawn(of_type, num_types)})


def preference_bandit(
    num_annotators: int = 200, votes_each: int = 10, weights: Sequence[float] = (0.6, 0.3, 0.1), *, seed: int
) -> Generated:
    r"""The contextual bandit of the EM-DPO paper, §6: as many arms as groups of annotators, each in love with its own arm.

    A context x is uniform on [0, 1]³; a member of group z has reward :math:`x^\top (10, 10, 10)` plus normal noise
    (standard deviation 0.01) for arm z, and only the noise for the others. Pairs of arms are drawn from the uniform reference
    policy; draws of twice the same arm, a third of all, say nothing and are left out, so annotators have fewer than
    `votes_each` votes. Annotators who are left without any are in the names.

    Parameters
    ----------
    num_annotators, votes_each : int
    weights : sequence of float
        Probability of each group.
    seed : int

    Returns
    -------
    Generated
        ``votes``, with items ``"arm 1"``, … and features context × arm (difference of the two sides); and ``truth`` with
        ``type`` (annotator), ``type_weight`` (the shares that were drawn), ``reward`` (arm, type), the expected rewards, and
        ``coefficient`` (feature, type).

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_bandit(seed=0)
    >>> votes.items, truth["reward"].tolist()[0]
    (('arm 1', 'arm 2', 'arm 3'), [15.0, 0.0, 0.0])
    """
    whole("num_annotators", num_annotators)
    whole("votes_each", votes_each)
    arms = len(weights)
    if arms < 2:
        raise SettingError(f"weights={weights!r} is not possible; give at least two groups, such as weights=(0.6, 0.3, 0.1)")
    chances = _chances(weights, arms)
    rng = np.random.default_rng(seed)
    of_type = rng.choice(arms, num_annotators, p=chances)
    annotator = np.repeat(np.arange(num_annotators), votes_each)
    context = rng.uniform(size=(len(annotator), 3))
    first, second = rng.integers(arms, size=(2, len(annotator)))
    own = of_type[annotator]
    noise = rng.normal(0, 0.01, (2, len(annotator)))
    reward = [10 * context.sum(1) * (arm == own) + jitter for arm, jitter in zip((first, second), noise, strict=True)]
    wins = rng.random(len(annotator)) < 1 / (1 + np.exp(reward[1] - reward[0]))
    by_arm = np.eye(arms)[first] - np.eye(arms)[second]
    features = (by_arm[:, :, None] * context[:, None]).reshape(len(annotator), -1).astype(np.float32)
    names = tuple(f"x{number} × arm {arm}" for arm in range(1, arms + 1) for number in (1, 2, 3))
    there = first != second
    votes = _comparisons(
        first[there],
        second[there],
        annotator[there],
        wins[there],
        tuple(f"arm {arm}" for arm in range(1, arms + 1)),
        range(num_annotators),
        features[there],
        names,
    )
    truth = {
        "type": of_type,
        "type_weight": _drawn(of_type, arms),
        "reward": 15 * np.eye(arms),
        "coefficient": 10 * np.repeat(np.eye(arms), 3, axis=0),
    }
    return Generated(votes, truth)


def _comparisons(first, second, annotator, wins, items, annotators, features=None, feature_names=()) -> Comparisons:
    return Comparisons(
        first.astype(np.int32),
        second.astype(np.int32),
        annotator.astype(np.int32),
        wins.astype(np.float32),
        None,
        tuple(items),
        tuple(annotators),
        features=features,
        feature_names=feature_names,
    )


def _chances(weights: Sequence[float] | None, number: int) -> np.ndarray:
    chances = np.full(number, 1 / number) if weights is None else np.asarray(weights, float)
    if chances.shape != (number,) or not np.all(chances > 0):
        raise SettingError(
            f"weights={weights!r} is not possible; it must give each of {number} types a number above 0, such as "
            f"weights={[round(1 / number, 2)] * number}"
        )
    return chances / chances.sum()


def _drawn(of_type: np.ndarray, number: int) -> np.ndarray:
    return np.bincount(of_type, minlength=number) / len(of_type)
