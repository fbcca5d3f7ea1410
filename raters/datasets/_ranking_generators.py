"""Rankings drawn under known worths and competences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raters.datasets._generators import Truth, check_amount, check_shares, draw_kinds
from raters.errors.validation import at_most, boolean, checked, positive, whole
from raters.judgements.rankings import Rankings


class GeneratedRankings(NamedTuple):
    """Rankings, and what generated them.

    Attributes
    ----------
    rankings : Rankings
    truth : dict of str to array
        Parameters by name.
    """

    rankings: Rankings
    truth: Truth


@checked
def ranking_crowd(
    num_items: int = 20,
    num_annotators: int = 12,
    rankings_per_annotator: int = 10,
    set_size: int = 5,
    places: int | None = None,
    *,
    best_worst: bool = False,
    seed: int,
    spread: float = 1.0,
    guessers: float = 0.1,
    adversaries: float = 0.1,
) -> GeneratedRankings:
    """Generate rankings by a crowd with guessers and adversaries in it, under
    `ExtendedPlackettLuce`.

    Each annotator ranks random sets of items.

    Parameters
    ----------
    num_items, num_annotators, rankings_per_annotator : int
    set_size : int
        Number of items of each set, at least 2.
    places : int, optional
        Number of places that are given; the other items of the set come below. All by default, and
        1 with `best_worst`.
    best_worst : bool
        Whether the worst of the items without a place is named as well.
    seed : int
        Seed of ``numpy.random.default_rng``.
    spread : float
        Standard deviation of the worths.
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1: with competence 0, who rank
        at random, and with −1, who rank upside down.

    Returns
    -------
    GeneratedRankings
        ``rankings``, and ``truth`` with ``worth`` (item), and ``competence`` and ``kind``
        (annotator): "competent", "guesser" or "adversary".

    Raises
    ------
    SettingError
        When a number is too small, or the shares, the size of the sets or the places are not
        possible.

    Examples
    --------
    >>> import raters as rt
    >>> rankings, truth = rt.datasets.ranking_crowd(places=3, seed=0)
    >>> rankings.num_rankings, rankings.is_partial
    (120, True)

    The best and the worst of four items:

    >>> answers, _ = rt.datasets.ranking_crowd(set_size=4, best_worst=True, seed=0)
    >>> answers.place[0].tolist()
    [-1, 0, 0, 1]
    """
    for name, number in {
        "num_annotators": num_annotators,
        "rankings_per_annotator": rankings_per_annotator,
    }.items():
        whole(name, number)
    whole("num_items", num_items, least=2)
    whole("set_size", set_size, least=2)
    at_most("set_size", set_size, num_items, "items")
    boolean("best_worst", best_worst)
    whole("places", depth := (1 if best_worst else set_size) if places is None else places)
    of_set = "items in a set beside the worst" if best_worst else "items in a set"
    at_most("places", depth, set_size - best_worst, of_set)
    positive("spread", spread)
    check_amount(num_annotators=num_annotators, rankings=rankings_per_annotator, items=num_items)
    check_shares(guessers=guessers, adversaries=adversaries)
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_annotators, {"guesser": guessers, "adversary": adversaries})
    competent = np.clip(rng.normal(1.0, 0.25, num_annotators), 0.3, None)
    worth = rng.normal(0.0, spread, num_items)
    competence = np.select([kind == "guesser", kind == "adversary"], [0, -1], competent)
    number = num_annotators * rankings_per_annotator
    offered = np.sort(np.argsort(rng.random((number, num_items)), 1)[:, :set_size], 1)
    who = np.repeat(np.arange(num_annotators), rankings_per_annotator).astype(np.int32)
    utility = competence[who][:, None] * worth[offered]
    place = (-utility - rng.gumbel(size=offered.shape)).argsort(1).argsort(1) + 1
    place = np.where(place <= depth, place, 0)
    if best_worst:
        noisy = np.where(place > 0, -np.inf, rng.gumbel(size=offered.shape) - utility)
        place[np.arange(number), noisy.argmax(1)] = -1
    rankings = Rankings(
        who,
        np.full(number, depth, np.int32),
        None,
        offered.astype(np.int32),
        place.astype(np.int32),
        tuple(range(num_annotators)),
        tuple(range(num_items)),
        np.ones(number, np.int32) if best_worst else None,
    )
    return GeneratedRankings(rankings, {"worth": worth, "competence": competence, "kind": kind})
