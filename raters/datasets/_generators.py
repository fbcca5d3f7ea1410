"""Votes drawn under known rewards and competences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raters._check import whole
from raters.data import Comparisons
from raters.errors import SettingError

Truth = dict[str, np.ndarray]


class Generated(NamedTuple):
    """Votes, and the values that they were drawn under."""

    votes: Comparisons
    truth: Truth


def paper(num_items: int = 50, num_annotators: int = 6, num_votes: int = 10_000, *, seed: int) -> Generated:
    """The design of the Extended-BTL paper, §5: rewards and competences uniform on [0, 1]; pairs and annotators uniform.

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
    seed : int

    Returns
    -------
    Generated
        ``votes``, and ``truth`` with ``reward`` (centred) and ``competence``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.paper(10, 2, 100, seed=0)
    >>> votes.num_votes
    100
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    return _votes(rng, rng.uniform(size=num_items), rng.uniform(size=num_annotators), num_votes)


def separated(
    num_items: int = 20, num_annotators: int = 10, num_votes: int = 4_000, *, seed: int, scale: float = 2.0
) -> Generated:
    """Well-separated rewards, evenly spaced over four times `scale`, and competent annotators, uniform on [0.5, 1].

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
    seed : int
    scale : float
        Rewards span [−2·scale, 2·scale] logits.

    Returns
    -------
    Generated

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.separated(seed=0)
    >>> float(truth["reward"].max())
    4.0
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    reward = rng.permutation(np.linspace(-2 * scale, 2 * scale, num_items))
    return _votes(rng, reward, rng.uniform(0.5, 1, size=num_annotators), num_votes)


def crowd(
    num_items: int = 30,
    num_annotators: int = 40,
    num_votes: int = 4_000,
    *,
    seed: int,
    guessers: float = 0.2,
    adversaries: float = 0.1,
) -> Generated:
    """A crowd with guessers (competence 0) and adversaries (competence −0.8) among competent annotators (0.6 to 1.2).

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
    seed : int
    guessers, adversaries : float
        Shares of the annotators.

    Returns
    -------
    Generated
        ``truth`` also has ``kind``: "competent", "guesser" or "adversary" for each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(seed=0)
    >>> int((truth["kind"] == "adversary").sum())
    4
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    if guessers < 0 or adversaries < 0 or guessers + adversaries >= 1:
        raise SettingError(f"guessers={guessers} and adversaries={adversaries} must be shares that leave someone competent")
    number = round(guessers * num_annotators), round(adversaries * num_annotators)
    kind = np.array(["guesser"] * number[0] + ["adversary"] * number[1], dtype=object)
    kind = rng.permutation(np.concatenate([kind, ["competent"] * (num_annotators - len(kind))]))
    competence = np.where(kind == "competent", rng.uniform(0.6, 1.2, num_annotators), np.where(kind == "adversary", -0.8, 0.0))
    generated = _votes(rng, rng.normal(scale=1.5, size=num_items), competence, num_votes)
    return generated._replace(truth=generated.truth | {"kind": kind})


def position_biased(
    num_items: int = 20, num_annotators: int = 10, num_votes: int = 8_000, *, seed: int, bias: float = 0.7
) -> Generated:
    """Annotators who favour what is shown first, each by Normal(`bias`, 0.3) logits.

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
    seed : int
    bias : float
        Mean advantage of the first position, in logits.

    Returns
    -------
    Generated
        ``truth`` also has ``position_bias``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.position_biased(seed=0)
    >>> votes.ordered
    True
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    position_bias = rng.normal(bias, 0.3, num_annotators)
    return _votes(rng, rng.normal(size=num_items), rng.uniform(0.5, 1.2, num_annotators), num_votes, position_bias)


def _generator(num_items: int, num_annotators: int, num_votes: int, seed: int) -> np.random.Generator:
    whole("num_items", num_items, least=2)
    whole("num_annotators", num_annotators)
    whole("num_votes", num_votes)
    return np.random.default_rng(seed)


def _votes(rng, reward, competence, num_votes, position_bias=None) -> Generated:
    """Uniform pairs of distinct items and uniform annotators, and a vote for each."""
    first = rng.integers(len(reward), size=num_votes)
    second = (first + rng.integers(1, len(reward), size=num_votes)) % len(reward)
    annotator = rng.integers(len(competence), size=num_votes)
    reward = reward - reward.mean()
    logits = competence[annotator] * (reward[first] - reward[second])
    truth: Truth = {"reward": reward, "competence": competence}
    if position_bias is not None:
        logits = logits + position_bias[annotator]
        truth["position_bias"] = position_bias
    wins = rng.random(num_votes) < 1 / (1 + np.exp(-logits))
    votes = Comparisons(
        first=first.astype(np.int32),
        second=second.astype(np.int32),
        annotator=annotator.astype(np.int32),
        wins=wins.astype(np.float32),
        count=None,
        items=tuple(range(len(reward))),
        annotators=tuple(range(len(competence))),
        ordered=position_bias is not None,
    )
    return Generated(votes.aggregate(), truth)
