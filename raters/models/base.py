"""Settings of models, checked by their annotations, and warnings of mirror images."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Literal

import numpy as np

from raters.errors.validation import boolean, one_of, plain_positive, plain_whole
from raters.errors.words import words_of
from raters.judgements.base import Judgements
from raters.judgements.connection import judges_by_part, part_of
from raters.model import OPEN_MIRROR, Fit, Model, probability_of_mirror

worded = words_of("raters.models")


class CheckedModel[Data: Judgements](Model[Data]):
    """Model whose settings are numbers above 0, whole numbers, flags or words, and whose warnings
    about data and about a fit are two functions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        hints = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            hint = hints[field.name]
            is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
            kinds = typing.get_args(hint) if is_union else (hint,)
            if getattr(self, field.name) is not None or type(None) not in kinds:
                _check(self, field, kinds)

    def warnings(self, data: Data, fit: Fit | None = None) -> tuple[str, ...]:
        return self.data_warnings(data) if fit is None else self.fit_warnings(data, fit)

    def data_warnings(self, data: Data) -> tuple[str, ...]:
        """Sentences about what the data cannot tell."""
        return ()

    def fit_warnings(self, data: Data, fit: Fit) -> tuple[str, ...]:
        """Sentences about what is wrong with a fit."""
        return ()


def _check(model: Any, field: dataclasses.Field[Any], kinds: tuple[Any, ...]) -> None:
    """Raise unless a setting is of one of these kinds."""
    name, value = field.name, getattr(model, field.name)
    words = [kind for kind in kinds if typing.get_origin(kind) is Literal]
    if words and (isinstance(value, str) or float not in kinds):
        one_of(name, value, typing.get_args(words[0]))
    elif bool in kinds:
        boolean(name, value)
    elif int in kinds:
        plain_whole(model, name, least=field.metadata.get("least", 1))
    elif float in kinds:
        plain_positive(model, name, optional=type(None) in kinds)


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
