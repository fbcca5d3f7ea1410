"""Arguments of `Candidates`: names and abilities, checked and as codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from raters.acquisition.questions.numbered import Abilities
from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import is_list
from raters.judgements.base import Judgements
from raters.judgements.names import (
    check_once,
    check_ordered,
    encode_names,
    match_names,
    name_list,
    plural,
)

Available = Mapping[Any, Iterable[Any] | None]


def check_askable(data: Judgements | type[Judgements], name: str) -> None:
    """Raise unless the rows of the data are questions by themselves."""
    if data.together:
        raise SettingError(
            f"raters does not suggest which {plural(data.unit)} to offer next; where each is of two"
            " things, read the answers as rt.Comparisons",
            parameter=name,
        )


def names_given(names: Iterable[Any] | None, role: str) -> tuple[Any, ...]:
    """Return the names where there are no judgements to take them from."""
    if names is None:
        problem = "is not given, and there are no judgements to take names from"
        refuse(plural(role), problem=problem, expected="give a list of names", error=DataError)
    _, encoded = encode_names([], _some(names, role), role)
    return encoded


def _some(names: Iterable[Any], role: str) -> tuple[Any, ...]:
    """Return a list of names, at least one."""
    check_ordered(names, plural(role))
    names = tuple(name_list(names, plural(role)))
    if not names:
        problem, expected = "names nobody and nothing", f"give at least one {role}"
        refuse(plural(role), problem=problem, expected=expected, error=DataError)
    return names


def codes_given(
    names: Iterable[Any] | None, known: tuple[Any, ...], role: str
) -> Int[np.ndarray, " name"]:
    """Return the codes of names, ascending; all codes for None."""
    if names is None:
        return np.arange(len(known))
    names = _some(names, role)
    codes = match_names(np.arange(len(names)), names, known, role, plural(role))
    return np.unique(np.asarray(codes, np.int64))


def abilities_given(
    available: Available | None,
    items: Int[np.ndarray, " item"],
    judges: Int[np.ndarray, " annotator"],
    names: tuple[Any, ...],
    annotators: tuple[Any, ...],
) -> Abilities:
    """Items that each of some annotators can judge, among some items."""
    if available is None:
        return Abilities.of(items, judges, {})
    if not isinstance(available, Mapping):
        expected, such = "it must map names of annotators to lists of items", "{'ann': [...]}"
        refuse("available", available, expected=expected, instead=such, error=DataError)
    check_once(available, "available")
    given = tuple(name for name in available if available[name] is not None)
    whose = match_names(np.arange(len(given)), given, annotators, "annotator", "available")
    lists = {}
    for code, name in zip(whose.tolist(), given, strict=True):
        if not is_list(available[name]):
            problem, expected = f"is no list of items for {name!r}", "give a list of items"
            refuse("available", available[name], problem, expected, error=DataError)
        able = tuple(name_list(available[name] or (), "available"))
        codes = match_names(np.arange(len(able)), able, names, "item", "available")
        lists[int(code)] = np.intersect1d(codes.astype(np.int64), items)
    return Abilities.of(items, judges, lists)
