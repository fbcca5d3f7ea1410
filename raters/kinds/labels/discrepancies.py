"""Discrepancies between labels and a model, and the models that mend them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from raters.checking.discrepancies import AGREEMENT, ANSWERS_OF_JUDGES, DRIFT, JUDGE_PAIRS, JUDGES
from raters.models import labels as models
from raters.program import Program

_MATRIX = "rt.DawidSkene() has a confusion matrix of each annotator"
_DIFFICULTY = "rt.models.ItemDifficulty() has an ease of each item"
_GOLD = (
    "mistakes that annotators share are beyond models of independent annotators: give the true"
    " class of some items (labels.with_truth), which every model of labels uses"
)
_COPIES = (
    "look for annotators who copy, share an account or answer by one rule; rt.SharedMistakes() has"
    " families of those who belong together"
)
_OF_ITEMS = (models.ItemDifficulty, models.SharedMistakes)
_WITHOUT_MATRIX = (models.MajorityVote, models.Pooled, models.OneCoin, *_OF_ITEMS)


def _mend(name: str, program: Program[Any], is_high: bool) -> str:
    """Say which model of labels would mend a discrepancy."""
    model = program.model
    if name == "agreement" and is_high:
        return _GOLD if isinstance(model, _OF_ITEMS) else f"{_DIFFICULTY}; {_GOLD}"
    if isinstance(model, _WITHOUT_MATRIX):
        return _MATRIX
    if name == "judge_pairs":
        return _COPIES
    if name == "agreement":
        return ""
    by_matrix = isinstance(model, (models.DawidSkene, models.HierarchicalDawidSkene))
    return _DIFFICULTY if by_matrix else _MATRIX


_GENERIC = (AGREEMENT, JUDGE_PAIRS, JUDGES, ANSWERS_OF_JUDGES)
DISCREPANCIES = (
    *(dataclasses.replace(one, mend=partial(_mend, one.name)) for one in _GENERIC),
    DRIFT,
)
