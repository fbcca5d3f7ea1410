"""Discrepancies between labels and a model, and the models that mend them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from raters.checking.discrepancies import AGREEMENT, ANSWERS_OF_JUDGES, DRIFT, JUDGE_PAIRS, JUDGES
from raters.models.labels import (
    DawidSkene,
    HierarchicalDawidSkene,
    ItemDifficulty,
    MajorityVote,
    OneCoin,
    Pooled,
    SharedMistakes,
)
from raters.program import Program

_MATRIX = "rt.DawidSkene() has a confusion matrix of each annotator"
_DIFFICULTY = "rt.models.ItemDifficulty() has an ease of each item"
#: Mistakes that annotators share are those of a misleading item, or of a common source.
_GOLD = (
    "mistakes that annotators share are beyond models of independent annotators: give the true"
    " class of some items (labels.with_truth), which every model of labels uses"
)
_COPIES = (
    "look for annotators who copy, share an account or answer by one rule; models of labels take"
    " them as independent and are too sure of what they agree on, but for rt.SharedMistakes(),"
    " to which family= names those who belong together"
)
_ALIKE = (MajorityVote, Pooled)
_ACCURACY = (OneCoin, ItemDifficulty, SharedMistakes)


def _mend(name: str, program: Program[Any], is_high: bool) -> str:
    """Sentence with what would mend a discrepancy of the fitted model."""
    model = program.model
    if name == "agreement":
        if not is_high:
            return _MATRIX if isinstance(model, (*_ALIKE, *_ACCURACY)) else ""
        has_items = isinstance(model, (ItemDifficulty, SharedMistakes))
        return _GOLD if has_items else f"{_DIFFICULTY}; {_GOLD}"
    if isinstance(model, (*_ALIKE, *_ACCURACY)):
        return _MATRIX
    if name == "judge_pairs":
        return _COPIES
    if isinstance(model, (DawidSkene, HierarchicalDawidSkene)):
        return _DIFFICULTY
    return _MATRIX


_OWN = (AGREEMENT, JUDGE_PAIRS, JUDGES, ANSWERS_OF_JUDGES)
DISCREPANCIES = (*(dataclasses.replace(one, mend=partial(_mend, one.name)) for one in _OWN), DRIFT)
