"""Votes drawn under several types of annotators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.datasets._generators import Generated, check_amount
from raters.errors import SettingError
from raters.errors.validation import checked, numbers, positive, whole
from raters.judgements.comparisons import Comparisons


@checked
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
    """Generate votes by annotators of several types, each type with its own rewards.

    Pairs of items are uniform.

    Parameters
    ----------
    num_items, num_annotators, votes_each, num_types : int
        At least 2 items, and 1 of the others.
    seed : int
        Seed of ``numpy.random.default_rng``.
    weights : sequence of float, optional
        Probability of each type, up to a factor; uniform unless given.
    reward_scale : float
        Standard deviation of the rewards, in logits.

    Returns
    -------
    Generated
        ``votes``, and ``truth`` with ``reward`` (item, type), centred within each type; ``type``
        (annotator; codes); and ``type_weight`` (type), the realised shares.

    Raises
    ------
    SettingError
        When a number is too small, or `weights` are not one positive number for each type.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_types(num_items=5, num_annotators=6, votes_each=4,
    ...                                             num_types=2, seed=0)
    >>> votes.num_votes, truth["reward"].shape
    (24, (5, 2))
    """
    for name, value in {
        "num_annotators": num_annotators,
        "votes_each": votes_each,
        "num_types": num_types,
    }.items():
        whole(name, value)
    whole("num_items", num_items, least=2)
    check_amount(num_annotators=num_annotators, votes_each=votes_each)
    check_amount(num_items=num_items, num_types=num_types)
    positive("reward_scale", reward_scale)
    probs = _type_probs(weights, num_types)
    rng = np.random.default_rng(seed)
    reward = rng.normal(0, reward_scale, (num_items, num_types))
    reward -= reward.mean(0)
    of_type = rng.choice(num_types, num_annotators, p=probs)
    annotator = np.repeat(np.arange(num_annotators), votes_each)
    first = rng.integers(num_items, size=len(annotator))
    second = (first + rng.integers(1, num_items, size=len(annotator))) % num_items
    logits = reward[first, of_type[annotator]] - reward[second, of_type[annotator]]
    wins = rng.random(len(annotator)) < 1 / (1 + np.exp(-logits))
    votes = _comparisons(
        first, second, annotator, wins, range(num_items), range(num_annotators)
    ).aggregate()
    return Generated(
        votes, {"reward": reward, "type": of_type, "type_weight": _realised(of_type, num_types)}
    )


@checked
def preference_bandit(
    num_annotators: int = 200,
    votes_each: int = 10,
    weights: Sequence[float] = (0.6, 0.3, 0.1),
    *,
    seed: int,
) -> Generated:
    r"""Generate votes by the contextual bandit of the EM-DPO paper, §6.

    There are as many arms as groups of annotators, and each group prefers its own arm. A context x
    is uniform on [0, 1]³; a member of group z has reward :math:`x^\top (10, 10, 10)` plus normal
    noise (standard deviation 0.01) for arm z, and only the noise for the others.

    Pairs of arms are drawn from the uniform reference policy. Draws of twice the same arm carry no
    information and are left out, so annotators have fewer than `votes_each` votes; those without
    any remain among the annotators.

    Parameters
    ----------
    num_annotators, votes_each : int
        At least 1.
    weights : sequence of float
        Probability of each group, up to a factor; at least two.
    seed : int
        Seed of ``numpy.random.default_rng``.

    Returns
    -------
    Generated
        ``votes``, with items ``"arm 1"``, … and features context × arm (difference of the two
        sides); and ``truth`` with ``type`` (annotator; codes), ``type_weight`` (type; the realised
        shares), ``reward`` (arm, type; expected), and ``coefficient`` (feature, type).

    Raises
    ------
    SettingError
        When a number is too small, or `weights` are not at least two positive numbers.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_bandit(seed=0)
    >>> votes.items, truth["reward"].tolist()[0]
    (('arm 1', 'arm 2', 'arm 3'), [15.0, 0.0, 0.0])
    """
    whole("num_annotators", num_annotators)
    whole("votes_each", votes_each)
    check_amount(num_annotators=num_annotators, votes_each=votes_each)
    arms = len(weights)
    if arms < 2:
        raise SettingError(
            parameter="weights",
            value=weights,
            expected="give at least two groups",
            instead="weights=(0.6, 0.3, 0.1)",
        )
    probs = _type_probs(weights, arms)
    rng = np.random.default_rng(seed)
    of_type = rng.choice(arms, num_annotators, p=probs)
    annotator = np.repeat(np.arange(num_annotators), votes_each)
    context = rng.uniform(size=(len(annotator), 3))
    first, second = rng.integers(arms, size=(2, len(annotator)))
    preferred = of_type[annotator]
    noise = rng.normal(0, 0.01, (2, len(annotator)))
    reward = [
        10 * context.sum(1) * (arm == preferred) + jitter
        for arm, jitter in zip((first, second), noise, strict=True)
    ]
    wins = rng.random(len(annotator)) < 1 / (1 + np.exp(reward[1] - reward[0]))
    by_arm = np.eye(arms)[first] - np.eye(arms)[second]
    features = (
        (by_arm[:, :, None] * context[:, None]).reshape(len(annotator), -1).astype(np.float32)
    )
    names = tuple(f"x{axis} × arm {arm}" for arm in range(1, arms + 1) for axis in (1, 2, 3))
    distinct = first != second
    votes = _comparisons(
        first[distinct],
        second[distinct],
        annotator[distinct],
        wins[distinct],
        tuple(f"arm {arm}" for arm in range(1, arms + 1)),
        range(num_annotators),
        features[distinct],
        names,
    )
    truth = {
        "type": of_type,
        "type_weight": _realised(of_type, arms),
        "reward": 15 * np.eye(arms),
        "coefficient": 10 * np.repeat(np.eye(arms), 3, axis=0),
    }
    return Generated(votes, truth)


def _comparisons(
    first: Int[np.ndarray, " vote"],
    second: Int[np.ndarray, " vote"],
    annotator: Int[np.ndarray, " vote"],
    wins: Bool[np.ndarray, " vote"],
    items: Iterable[Any],
    annotators: Iterable[Any],
    features: Float[np.ndarray, "vote feature"] | None = None,
    feature_names: tuple[str, ...] = (),
) -> Comparisons:
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


def _type_probs(weights: Sequence[float] | None, num_types: int) -> Float[np.ndarray, " type"]:
    """Normalise the weights; uniform when there are none."""
    probs = np.full(num_types, 1 / num_types) if weights is None else numbers("weights", weights)
    if probs.shape != (num_types,) or not np.all(probs > 0):
        raise SettingError(
            parameter="weights",
            value=weights,
            expected=f"it must give each of {num_types} types a number above 0",
            instead=f"weights={[round(1 / num_types, 2)] * num_types}",
        )
    return np.asarray(probs / probs.sum())


def _realised(of_type: Int[np.ndarray, " annotator"], num_types: int) -> Float[np.ndarray, " type"]:
    """Return the share of annotators of each type."""
    return np.bincount(of_type, minlength=num_types) / len(of_type)
