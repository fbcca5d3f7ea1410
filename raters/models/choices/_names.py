"""Names of alternatives and features in the settings of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from jaxtyping import Float

from raters.errors import Reason, refuse
from raters.errors.validation import is_list
from raters.judgements.choices import Choices
from raters.judgements.names import name_text, shorten

Groups = tuple[tuple[str, ...], ...]


def names_of(parameter: str, given: Any, such: str, what: str = "alternatives") -> tuple[str, ...]:
    """Names of alternatives or features as text, so that equal models have equal texts."""
    ordered = is_list(given) and not isinstance(given, (Mapping, Set))
    names = tuple(map(name_text, given)) if ordered else ()
    if not ordered or "" in names or len(dict.fromkeys(names)) < len(names):
        refuse(parameter, given, expected=f"it must list names of {what}, each once", instead=such)
    return names


def groups_of(parameter: str, given: Any, such: str) -> Groups:
    """Names of the alternatives of each of several groups."""
    lists = is_list(given) and all(map(is_list, given))
    groups = tuple(names_of(parameter, group, such) for group in given) if lists else ()
    if not lists or not all(groups) or len(set(map(frozenset, groups))) < len(groups):
        expected = "it must list groups, each once and a list of alternatives"
        refuse(parameter, given, expected=expected, instead=such)
    return groups


def inside(groups: Groups, data: Choices) -> Float[np.ndarray, "alternative group"]:
    """1 where an alternative is of a group, and a last row for a position without any."""
    names = [*map(name_text, data.alternatives), None]
    return np.array([[float(name in group) for group in groups] for name in names])


def why_not_groups(parameter: str, groups: Groups, data: Choices, *, together: bool) -> str | None:
    """Explain a name that the choices do not have, or a group that makes no difference: no set
    offers two of its alternatives `together`, or one of them beside another alternative."""
    named = (name for group in groups for name in group)
    if reason := unknown_name(parameter, named, data.alternatives):
        return reason
    data = data.unpadded()
    members = inside(groups, data)[np.asarray(data.offered)].sum(1)
    size = data.there.sum(1)
    for group, number in zip(groups, members.T, strict=True):
        matters = number > 1 if together else (number > 0) & (number < size)
        if not matters.any():
            what = "two alternatives" if together else "beside another alternative"
            problem = f"is a group of which no set offers {what}"
            return Reason(parameter, group, problem, "leave it out")
    return None


def unknown_name(
    parameter: str, names: Iterable[str], known: Iterable[Any], what: str = "alternative"
) -> str | None:
    """Sentence about a name that the choices do not have."""
    known = list(map(name_text, known))
    unknown = [name for name in names if name not in known]
    if not unknown:
        return None
    problem, expected = f"is no {what} of these choices", f"name some of {shorten(known)}"
    return Reason(parameter, unknown[0], problem, expected)
