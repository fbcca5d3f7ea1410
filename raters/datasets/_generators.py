"""Votes drawn under known rewards and competences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from raters.errors import SettingError
from raters.errors.validation import checked, finite, whole
from raters.judgements.comparisons import Comparisons

# Values drawn at most, which take about a gigabyte.
_MOST = 100_000_000

# The generating values, by the names that the models give them.
Truth = dict[str, np.ndarray]


class Generated(NamedTuple):
    """Votes, and the parameters that generated them."""

    votes: Comparisons
    truth: Truth


@checked
def paper(
    num_items: int = 50, num_annotators: int = 6, num_votes: int = 10_000, *, seed: int
) -> Generated:
    """Generate votes by the design of the Extended-BTL paper, §5.

    Rewards and competences are uniform on [0, 1], pairs of items and annotators are uniform.

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
        Seed of ``numpy.random.default_rng``.

    Returns
    -------
    Generated
        ``votes``, and ``truth`` with ``reward`` (item; centred, in logits) and ``competence``
        (annotator).

    Raises
    ------
    SettingError
        When a number is too small.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.paper(10, 2, 100, seed=0)
    >>> votes.num_votes
    100
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
) -> Generated:
    """Generate votes by competent annotators on items with well-separated rewards.

    Rewards are evenly spaced, and competences uniform on [0.5, 1].

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
        Seed of ``numpy.random.default_rng``.
    scale : float
        Rewards span [−2·scale, 2·scale] logits.

    Returns
    -------
    Generated
        As from `paper`.

    Raises
    ------
    SettingError
        When a number is too small.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.separated(seed=0)
    >>> float(truth["reward"].max())
    4.0
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
) -> Generated:
    """Generate votes by a crowd with guessers and adversaries in it.

    Competences are 0 for guessers, −0.8 for adversaries, and uniform on [0.6, 1.2] for the others.
    Rewards are Normal(0, 1.5).

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
        Seed of ``numpy.random.default_rng``.
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1.

    Returns
    -------
    Generated
        As from `paper`; ``truth`` also has ``kind`` (annotator): "competent", "guesser" or
        "adversary".

    Raises
    ------
    SettingError
        When a number is too small, or the shares are not possible.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(seed=0)
    >>> int((truth["kind"] == "adversary").sum())
    4
    """
    rng = _generator(num_items, num_annotators, num_votes, seed)
    check_shares(guessers=guessers, adversaries=adversaries)
    kind = draw_kinds(rng, num_annotators, {"guesser": guessers, "adversary": adversaries})
    competence = np.where(
        kind == "competent",
        rng.uniform(0.6, 1.2, num_annotators),
        np.where(kind == "adversary", -0.8, 0.0),
    )
    generated = _votes(rng, rng.normal(scale=1.5, size=num_items), competence, num_votes)
    return generated._replace(truth=generated.truth | {"kind": kind})


@checked
def position_biased(
    num_items: int = 20,
    num_annotators: int = 10,
    num_votes: int = 8_000,
    *,
    seed: int,
    bias: float = 0.7,
) -> Generated:
    """Generate votes by annotators who favour the item that is shown first.

    Position biases are Normal(`bias`, 0.3) logits, rewards standard normal, and competences uniform
    on [0.5, 1.2].

    Parameters
    ----------
    num_items, num_annotators, num_votes : int
        At least 2 items, and 1 of the others.
    seed : int
        Seed of ``numpy.random.default_rng``.
    bias : float
        Mean advantage of the first position, in logits.

    Returns
    -------
    Generated
        As from `paper`; ``truth`` also has ``position_bias`` (annotator), in logits.

    Raises
    ------
    SettingError
        When a number is too small.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.position_biased(seed=0)
    >>> votes.ordered
    True
    """
    finite("bias", bias, 0.7)
    rng = _generator(num_items, num_annotators, num_votes, seed)
    position_bias = rng.normal(bias, 0.3, num_annotators)
    return _votes(
        rng,
        rng.normal(size=num_items),
        rng.uniform(0.5, 1.2, num_annotators),
        num_votes,
        position_bias,
    )


def check_amount(square: str = "", **factors: int) -> None:
    """Check that as many values as the product of some numbers fit into memory; one of them may
    count twice."""
    amount = math.prod(factors.values()) * factors.get(square, 1)
    if amount > _MOST:
        name = max(factors, key=lambda one: factors[one])
        raise SettingError(
            parameter=name,
            value=factors[name],
            problem="is too large" if amount == factors[name] else f"makes {amount:,} values",
            expected=f"there may be {_MOST:,} at most",
        )


def check_shares(**shares: float) -> None:
    """Check shares of annotators that are not competent: not negative, and with a sum below 1."""
    if min(shares.values()) < 0 or sum(shares.values()) >= 1:
        (name, first), *rest = shares.items()
        others = "".join(f"and `{other}` {share:g} " for other, share in rest)
        raise SettingError(
            parameter=name,
            value=first,
            problem=f"{others}{'are' if rest else 'is'} not possible",
            expected="shares must not be negative, and must leave someone competent",
        )


def draw_kinds(
    rng: np.random.Generator, num_annotators: int, shares: dict[str, float]
) -> Shaped[np.ndarray, " annotator"]:
    """Draw the kind of each annotator: these shares of each kind, and the others competent."""
    kinds = [kind for kind, share in shares.items() for _ in range(round(share * num_annotators))]
    kinds += ["competent"] * (num_annotators - len(kinds))
    return rng.permutation(np.array(kinds, dtype=object))


def _generator(
    num_items: int, num_annotators: int, num_votes: int, seed: int
) -> np.random.Generator:
    """Check the sizes, and return the generator."""
    whole("num_items", num_items, least=2)
    whole("num_annotators", num_annotators)
    whole("num_votes", num_votes)
    check_amount(num_items=num_items)
    check_amount(num_annotators=num_annotators)
    check_amount(num_votes=num_votes)
    return np.random.default_rng(seed)


def _votes(
    rng: np.random.Generator,
    reward: Float[np.ndarray, " item"],
    competence: Float[np.ndarray, " annotator"],
    num_votes: int,
    position_bias: Float[np.ndarray, " annotator"] | None = None,
) -> Generated:
    """Draw votes on uniform pairs of distinct items by uniform annotators."""
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
