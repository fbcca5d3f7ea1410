"""Item responses drawn under known abilities and difficulties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from raters.datasets._generators import Truth, check_amount, check_shares, draw_kinds
from raters.errors import SettingError
from raters.errors.validation import checked, share, whole
from raters.judgements.responses import Responses


class GeneratedResponses(NamedTuple):
    """Item responses, and what generated them.

    Attributes
    ----------
    responses : Responses
    truth : dict of str to array
        Parameters by name.
    """

    responses: Responses
    truth: Truth


@checked
def response_crowd(
    num_persons: int = 200,
    num_items: int = 20,
    *,
    seed: int,
    asked: float = 1.0,
    slopes: float = 0.3,
    guessers: float = 0.0,
) -> GeneratedResponses:
    """Generate responses of persons to items, right or wrong, under `TwoPL`.

    Parameters
    ----------
    num_persons, num_items : int
    seed : int
        Seed of ``numpy.random.default_rng``.
    asked : float
        Probability that a person is asked an item, above 0; everybody is asked one.
    slopes : float
        Standard deviation of the logarithms of the discriminations, which are about 1; with 0 the
        model is `Rasch`.
    guessers : float
        Share of the persons who are right by chance, one time in two.

    Returns
    -------
    GeneratedResponses
        ``responses``, and ``truth`` with ``ability`` and ``kind`` (person; "competent" or
        "guesser"), and ``difficulty`` and ``discrimination`` (item).

    Raises
    ------
    SettingError
        When a number is too small, or a share is not possible.

    Examples
    --------
    >>> import raters as rt
    >>> responses, truth = rt.datasets.response_crowd(seed=0)
    >>> responses.num_judgements, truth["ability"].shape
    (4000, (200,))
    """
    whole("num_persons", num_persons)
    whole("num_items", num_items)
    if asked != 1:
        share("asked", asked)
    if not 0 <= slopes < 10:
        raise SettingError(
            parameter="slopes", value=slopes, expected="it must be at least 0, and below 10"
        )
    check_amount(num_persons=num_persons, num_items=num_items)
    check_shares(guessers=guessers)
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_persons, {"guesser": guessers})
    truth = {
        "ability": rng.normal(size=num_persons),
        "difficulty": rng.normal(size=num_items),
        "discrimination": np.exp(rng.normal(0.0, slopes, num_items)),
        "kind": kind,
    }
    logits = truth["discrimination"] * (truth["ability"][:, None] - truth["difficulty"])
    chance = np.where((kind == "guesser")[:, None], 0.5, expit(logits))
    noise = rng.random((num_persons, num_items))
    is_asked = (noise < asked) | (noise == noise.min(1, keepdims=True))
    person, item = np.nonzero(is_asked)
    right = rng.random(chance.shape) < chance
    responses = Responses.from_frame(
        {"person": person, "item": item, "correct": right[person, item].astype(int)},
        person="person",
        item="item",
        correct="correct",
        persons=range(num_persons),
        items=range(num_items),
    )
    return GeneratedResponses(responses, truth)
