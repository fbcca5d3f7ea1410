"""Ratings drawn under known rewards, severities and scale use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raters.datasets._generators import Truth, check_amount, check_shares, draw_kinds
from raters.errors.validation import at_most, checked, positive, whole
from raters.judgements.ratings import Ratings
from raters.judgements.reading.ratings import MOST_LEVELS


class GeneratedRatings(NamedTuple):
    """Ratings, and what generated them.

    Attributes
    ----------
    ratings : Ratings
    truth : dict of str to array
        Parameters by name.
    """

    ratings: Ratings
    truth: Truth


@checked
def rating_crowd(
    num_items: int = 200,
    num_annotators: int = 20,
    ratings_per_item: int = 5,
    num_levels: int = 5,
    *,
    seed: int,
    discrimination: float = 1.5,
    severity: float = 0.7,
    guessers: float = 0.1,
    adversaries: float = 0.0,
) -> GeneratedRatings:
    """Generate ratings by a crowd with guessers and adversaries in it, under `ManyFacet`.

    Each item is rated by `ratings_per_item` random annotators, on a scale from 1.

    Parameters
    ----------
    num_items, num_annotators, ratings_per_item, num_levels : int
        From 2 to 20 levels, 1 of the others, and as many annotators as ratings per item.
    seed : int
        Seed of ``numpy.random.default_rng``.
    discrimination : float
        By how many logits a step is likelier for an item that is one standard deviation better.
    severity : float
        Standard deviation of the severities, in logits.
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1: with competence 0, whose
        ratings do not depend on the item, and with −1, who read the scale the wrong way round.

    Returns
    -------
    GeneratedRatings
        ``ratings``, and ``truth`` with ``reward`` (item), ``competence``, ``severity`` and ``kind``
        (annotator): "competent", "guesser" or "adversary", and ``threshold`` (annotator, step).

    Raises
    ------
    SettingError
        When a number is too small, or the shares or the ratings per item are not possible.

    Examples
    --------
    >>> import raters as rt
    >>> ratings, truth = rt.datasets.rating_crowd(seed=0)
    >>> ratings.num_ratings, ratings.levels
    (1000, (1, 2, 3, 4, 5))
    """
    for name, number in {
        "num_items": num_items,
        "num_annotators": num_annotators,
        "ratings_per_item": ratings_per_item,
    }.items():
        whole(name, number)
    whole("num_levels", num_levels, least=2)
    at_most("num_levels", num_levels, MOST_LEVELS, "levels")
    positive("discrimination", discrimination)
    positive("severity", severity)
    at_most("ratings_per_item", ratings_per_item, num_annotators, "annotators")
    check_amount(num_items=num_items, ratings_per_item=ratings_per_item)
    check_shares(guessers=guessers, adversaries=adversaries)
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_annotators, {"guesser": guessers, "adversary": adversaries})
    competent = np.clip(rng.normal(1.0, 0.25, num_annotators), 0.3, None)
    truth = {
        "reward": rng.normal(size=num_items),
        "competence": np.select([kind == "guesser", kind == "adversary"], [0, -1], competent),
        "severity": rng.normal(0.0, severity, num_annotators),
        "threshold": np.linspace(-1.5, 1.5, num_levels - 1)
        + rng.normal(0.0, 0.3, (num_annotators, num_levels - 1)),
        "kind": kind,
    }
    item = np.repeat(np.arange(num_items), ratings_per_item)
    annotator = np.argsort(rng.random((num_items, num_annotators)), axis=1)[:, :ratings_per_item]
    table = {"item": item, "annotator": annotator.ravel()}
    table["rating"] = 1 + _levels(rng, table, truth, discrimination)
    ratings = Ratings.from_frame(
        table,
        item="item",
        annotator="annotator",
        rating="rating",
        levels=range(1, num_levels + 1),
        items=range(num_items),
        annotators=range(num_annotators),
    )
    return GeneratedRatings(ratings, truth)


def _levels(
    rng: np.random.Generator, table: dict[str, np.ndarray], truth: Truth, discrimination: float
) -> np.ndarray:
    """Draw the level of each row, from 0, by the largest of utilities with Gumbel noise."""
    who = table["annotator"]
    slope = discrimination * truth["competence"][who]
    location = slope * truth["reward"][table["item"]] - truth["severity"][who]
    below = np.pad(np.cumsum(truth["threshold"], axis=1), ((0, 0), (1, 0)))
    utility = np.arange(below.shape[1]) * location[:, None] - below[who]
    return np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)
