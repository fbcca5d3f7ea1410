"""Sentences on mirrored worlds, which the models with signed competences share."""

from __future__ import annotations

import numpy as np

from raters.judgements.base import Judgements
from raters.judgements.connection import judges_by_part, part_of
from raters.model import OPEN_MIRROR, probability_of_mirror


def least_decided(competence: np.ndarray, data: Judgements) -> tuple[float, str]:
    """Probability of the mirror image in the part of the crowd that is worst, and that part."""
    parts = judges_by_part(data)
    less = [probability_of_mirror(competence[..., judges]) for judges in parts]
    place = int(np.argmax(less))
    return less[place], part_of(parts, place, data)


def open_mirror(competence: np.ndarray, data: Judgements, what: str) -> tuple[str, ...]:
    """Say when the data leave open whether the crowd or its adversaries are right, in any part."""
    less, whose = least_decided(competence, data)
    if less < OPEN_MIRROR:
        return ()
    return (
        f"the {what} leave open which way round the order{whose} is: by this model and its"
        f" prior it is, with probability {less:.2f}, the mirror image, in which"
        " adversaries are experts and experts adversaries; one annotator who is known to be"
        " good, or a few pairs whose order is known, would decide it",
    )


def open_reward(competence: np.ndarray, what: str, remedy: str) -> tuple[str, ...]:
    """Say when judgements leave open the sign of a reward that is linear in features."""
    less = probability_of_mirror(competence)
    if competence.shape[-1] < 2 or less < OPEN_MIRROR:
        return ()
    return (
        f"the {what} leave open which way round the reward is: by this model and its prior it"
        f" is, with probability {less:.2f}, the opposite, in which those who seem to act for"
        f" the goal act against it; {remedy}",
    )
