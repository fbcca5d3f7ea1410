"""Votes drawn under known rewards and competences, also by annotators of several types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit

from raters.datasets.crowds import Codes, Rng, Truth, check_sizes, draw_kinds
from raters.errors import refuse
from raters.errors.validation import checked, finite, numbers
from raters.judgements.comparisons import Comparisons

Sides = Int[np.ndarray, "2 row"]
Flags = Bool[np.ndarray, " row"]
Values = Float[np.ndarray, " name"]


class GeneratedVotes(NamedTuple):
    votes: Comparisons
    truth: Truth


@checked
def paper(
    num_items: int = 50, num_annotators: int = 6, num_votes: int = 10_000, *, seed: int
) -> GeneratedVotes:
    """Generate votes by the design of the Extended-BTL paper, §5.

    Rewards and competences are uniform on [0, 1], pairs of items and annotators are uniform.

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int

    Returns
    -------
    tuple of Comparisons and dict
        ``votes``, and ``truth`` with ``reward`` (item; centred, in logits) and ``competence``
        (annotator).
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    return _votes(rng, rng.uniform(size=num_items), rng.uniform(size=num_annotators), num_votes)


@checked
def separated(
    num_items: int = 20,
    num_annotators: int = 10,
    num_votes: int = 4_000,
    *,
    seed: int,
    scale: float = 2.0,
) -> GeneratedVotes:
    """Generate votes by competent annotators on items with well-separated rewards.

    Rewards are evenly spaced, and competences uniform on [0.5, 1]; otherwise as `paper`.

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
    scale : float
        Rewards span [−2·scale, 2·scale] logits.
    """
    finite("scale", scale, 2.0)
    rng = _generator(num_items, num_annotators, num_votes, seed)
    reward = rng.permutation(np.linspace(-2.0, 2.0, num_items) * float(scale))
    return _votes(rng, reward, rng.uniform(0.5, 1, size=num_annotators), num_votes)


@checked
def crowd(
    num_items: int = 30,
    num_annotators: int = 40,
    num_votes: int = 4_000,
    *,
    seed: int,
    guessers: float = 0.2,
    adversaries: float = 0.1,
) -> GeneratedVotes:
    """Generate votes by a crowd with guessers and adversaries in it.

    Competences are 0 for guessers, −0.8 for adversaries, and uniform on [0.6, 1.2] for the others.
    Rewards are Normal(0, 1.5). Otherwise as `paper`; ``truth`` also has ``kind`` (annotator):
    "competent", "guesser" or "adversary".

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(seed=0)
    >>> int((truth["kind"] == "adversary").sum())
    4
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    kind = draw_kinds(rng, num_annotators, guessers=guessers, adversaries=adversaries)
    competent = rng.uniform(0.6, 1.2, num_annotators)
    competence = np.select([kind == "guesser", kind == "adversary"], [0.0, -0.8], competent)
    votes, truth = _votes(rng, rng.normal(scale=1.5, size=num_items), competence, num_votes)
    return GeneratedVotes(votes, truth | {"kind": kind})


@checked
def position_biased(
    num_items: int = 20, num_annotators: int = 10, num_votes: int = 8_000, *, seed: int
) -> GeneratedVotes:
    """Generate votes by annotators who favour the item that is shown first.

    Position biases are Normal(0.7, 0.3) logits, rewards standard normal, and competences uniform
    on [0.5, 1.2]. Otherwise as `paper`; ``truth`` also has ``position_bias`` (annotator).

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    position_bias = rng.normal(0.7, 0.3, num_annotators)
    reward, competence = rng.normal(size=num_items), rng.uniform(0.5, 1.2, num_annotators)
    return _votes(rng, reward, competence, num_votes, position_bias)


@checked
def preference_types(
    num_items: int = 10,
    num_annotators: int = 100,
    votes_each: int = 20,
    num_types: int = 3,
    *,
    seed: int,
    weights: Sequence[float] | None = None,
) -> GeneratedVotes:
    """Generate votes by annotators of several types, each type with its own rewards, which are
    Normal(0, 2).

    Parameters
    ----------
    num_items, num_annotators, votes_each, num_types : int
        At least 2 items, and 1 of the others.
    seed : int
    weights : sequence of float, optional
        Probability of each type, up to a factor; uniform unless given.

    Returns
    -------
    tuple of Comparisons and dict
        ``votes``, and ``truth`` with ``reward`` (item, type), centred within each type; ``type``
        (annotator; codes); and ``type_weight`` (type), the realised shares.
    """
    check_sizes(2, num_items * num_types, num_items=num_items)
    check_sizes(amount=num_annotators * votes_each, num_annotators=num_annotators)
    check_sizes(votes_each=votes_each, num_types=num_types)
    probs = _type_probs(weights, num_types)
    rng = np.random.default_rng(seed)
    reward = rng.normal(0, 2.0, (num_items, num_types))
    reward -= reward.mean(0)
    of_type = rng.choice(num_types, num_annotators, p=probs)
    annotator = np.repeat(np.arange(num_annotators), votes_each)
    sides = _pairs(rng, num_items, len(annotator))
    of_sides = reward[sides, of_type[annotator]]
    wins = rng.random(len(annotator)) < expit(of_sides[0] - of_sides[1])
    votes = _comparisons(sides, annotator, wins, range(num_items), num_annotators)
    truth = {"reward": reward, "type": of_type, "type_weight": _realised(of_type, num_types)}
    return GeneratedVotes(votes.aggregate(), truth)


@checked
def preference_bandit(num_annotators: int = 200, *, seed: int) -> GeneratedVotes:
    r"""Generate votes by the contextual bandit of the EM-DPO paper, §6.

    There are three arms and groups of annotators (60, 30 and 10 %), who give ten votes each, and
    each group prefers its own arm. A context x
    is uniform on [0, 1]³; a member of group z has reward :math:`x^\top (10, 10, 10)` plus normal
    noise (standard deviation 0.01) for arm z, and only the noise for the others. Pairs of arms are
    drawn uniformly, and draws of twice the same arm are left out.

    Parameters
    ----------
    num_annotators : int
        At least 1.
    seed : int

    Returns
    -------
    tuple of Comparisons and dict
        ``votes``, with items ``"arm 1"``, … and features context × arm (difference of the two
        sides); and ``truth`` with ``type`` (annotator; codes), ``type_weight`` (type; the realised
        shares), ``reward`` (arm, type; expected), and ``coefficient`` (feature, type).
    """
    check_sizes(amount=10 * num_annotators, num_annotators=num_annotators)
    arms = 3
    rng = np.random.default_rng(seed)
    of_type = rng.choice(arms, num_annotators, p=_type_probs((0.6, 0.3, 0.1), arms))
    annotator = np.repeat(np.arange(num_annotators), 10)
    context = rng.uniform(size=(len(annotator), 3))
    sides = rng.integers(arms, size=(2, len(annotator)))
    noise = rng.normal(0, 0.01, (2, len(annotator)))
    reward = 10 * context.sum(1) * (sides == of_type[annotator]) + noise
    wins = rng.random(len(annotator)) < expit(reward[0] - reward[1])
    by_arm = np.eye(arms)[sides[0]] - np.eye(arms)[sides[1]]
    features = (by_arm[:, :, None] * context[:, None]).reshape(len(annotator), -1)
    names = [f"arm {arm}" for arm in range(1, arms + 1)]
    feature_names = tuple([f"x{axis} × {name}" for name in names for axis in (1, 2, 3)])
    more = {"features": features.astype(np.float32), "feature_names": feature_names}
    votes = _comparisons(sides, annotator, wins, names, num_annotators, **more)
    truth = {"type": of_type, "type_weight": _realised(of_type, arms)}
    truth |= {"reward": 15 * np.eye(arms), "coefficient": 10 * np.repeat(np.eye(arms), 3, axis=0)}
    return GeneratedVotes(votes.rows(sides[0] != sides[1]), truth)


def _type_probs(weights: Sequence[float] | None, num_types: int) -> Float[np.ndarray, " type"]:
    """Normalise the weights; uniform when there are none."""
    probs = np.full(num_types, 1 / num_types) if weights is None else numbers("weights", weights)
    if probs.shape != (num_types,) or not np.all(probs > 0):
        refuse("weights", weights, expected=f"give {num_types} numbers above 0")
    return np.asarray(probs / probs.sum())


def _realised(of_type: Int[np.ndarray, " annotator"], num_types: int) -> Float[np.ndarray, " type"]:
    """Return the share of annotators of each type."""
    return np.bincount(of_type, minlength=num_types) / len(of_type)


def _generator(num_items: int, num_annotators: int, num_votes: int, seed: int) -> Rng:
    """Check the sizes, and return the generator."""
    check_sizes(2, num_items=num_items)
    check_sizes(num_annotators=num_annotators, num_votes=num_votes)
    return np.random.default_rng(seed)


def _votes(
    rng: Rng,
    reward: Values,
    competence: Values,
    num_votes: int,
    position_bias: Values | None = None,
) -> GeneratedVotes:
    """Draw votes on uniform pairs of distinct items by uniform annotators."""
    sides = first, second = _pairs(rng, len(reward), num_votes)
    annotator = rng.integers(len(competence), size=num_votes)
    reward = reward - reward.mean()
    logits = competence[annotator] * (reward[first] - reward[second])
    truth: Truth = {"reward": reward, "competence": competence}
    if position_bias is not None:
        logits = logits + position_bias[annotator]
        truth["position_bias"] = position_bias
    wins = rng.random(num_votes) < expit(logits)
    names, ordered = (range(len(reward)), len(competence)), position_bias is not None
    votes = _comparisons(sides, annotator, wins, *names, ordered=ordered)
    return GeneratedVotes(votes.aggregate(), truth)


def _pairs(rng: Rng, num_items: int, number: int) -> Sides:
    """Uniform pairs of distinct items."""
    first = rng.integers(num_items, size=number)
    return np.stack([first, (first + rng.integers(1, num_items, size=number)) % num_items])


def _comparisons(
    sides: Sides, annotator: Codes, wins: Flags, items: Iterable[Any], number: int, **more: Any
) -> Comparisons:
    """Votes, one a row."""
    first, second, by = (codes.astype(np.int32) for codes in (*sides, annotator))
    names = tuple(items), tuple(range(number))
    return Comparisons(first, second, by, wins.astype(np.float32), None, *names, **more)
