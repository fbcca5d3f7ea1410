"""Sentences on mirrored worlds, which the models with signed competences share."""

from __future__ import annotations

import numpy as np

from raters.judgements.base import Judgements
from raters.judgements.connection import judges_by_part, part_of
from raters.model import OPEN_MIRROR, probability_of_mirror
from raters.models.settings import worded


def least_decided(competence: np.ndarray, data: Judgements) -> tuple[float, str]:
    """Probability of the mirror image in the part of the crowd that is worst, and that part."""
    parts = judges_by_part(data)
    less = [probability_of_mirror(competence[..., judges]) for judges in parts]
    place = int(np.argmax(less))
    return less[place], part_of(parts, place, data)


def open_mirror(competence: np.ndarray, data: Judgements, what: str) -> tuple[str, ...]:
    """Say when the data leave open whether the crowd or its adversaries are right, in any part."""
    less, whose = least_decided(competence, data)
    return () if less < OPEN_MIRROR else (worded("open_mirror", what=what, whose=whose, less=less),)


def open_reward(competence: np.ndarray, what: str, remedy: str) -> tuple[str, ...]:
    """Say when judgements leave open the sign of a reward that is linear in features."""
    less = probability_of_mirror(competence)
    if competence.shape[-1] < 2 or less < OPEN_MIRROR:
        return ()
    return (worded("open_reward", what=what, less=less, remedy=remedy),)
