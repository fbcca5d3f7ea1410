"""Names of alternatives and features in the settings of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from raters.errors import Reason, refuse
from raters.errors.validation import is_list
from raters.judgements.names import name_text, shorten


def names_of(parameter: str, given: Any, such: str, what: str = "alternatives") -> tuple[str, ...]:
    """Names of alternatives or features as text, so that equal models have equal texts."""
    ordered = is_list(given) and not isinstance(given, (Mapping, Set))
    names = tuple(map(name_text, given)) if ordered else ()
    if not ordered or "" in names or len(dict.fromkeys(names)) < len(names):
        refuse(parameter, given, expected=f"it must list names of {what}, each once", instead=such)
    return names


def unknown_name(
    parameter: str, names: Iterable[str], known: Iterable[Any], what: str = "alternative"
) -> Reason | None:
    """Sentence about a name that the choices do not have."""
    known = list(map(name_text, known))
    unknown = [name for name in names if name not in known]
    if not unknown:
        return None
    return Reason(
        parameter, unknown[0], f"is no {what} of these choices", f"name some of {shorten(known)}"
    )
