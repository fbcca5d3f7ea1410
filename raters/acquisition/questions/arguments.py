"""Arguments of `Candidates`: names, masks and abilities, checked and as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Shaped

from raters.acquisition.questions.numbered import Abilities
from raters.errors import DataError, SettingError
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

Mask = (
    Shaped[np.ndarray, "item item"]
    | Iterable[tuple[Any, Any]]
    | Callable[[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]], Bool[np.ndarray, " pair"]]
)
Available = Mapping[Any, Iterable[Any] | None]
# Whether an annotator may be asked about two items: codes of both and of the annotator.
Allowed = Callable[
    [Int[np.ndarray, " pair"], Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]],
    Bool[np.ndarray, " pair"],
]


def check_askable(data: Judgements | type[Judgements], name: str) -> None:
    """Raise unless the rows of the data are questions by themselves."""
    if data.together:
        raise SettingError(
            f"raters does not suggest which {plural(data.unit)} to offer next; where each is of two"
            " things, read the answers as rt.Comparisons",
            parameter=name,
        )


def names_given(names: Iterable[Any] | None, role: str, verb: str) -> tuple[Any, ...]:
    """Return the names where there are no judgements to take them from."""
    if names is None:
        many = plural(role)
        raise DataError(
            parameter=many,
            problem="is not given, and there are no judgements to take names from",
            expected="give a list of names",
            instead=f"rt.{verb}({many}=[...], ...)",
        )
    _, encoded = encode_names([], _some(names, role), role)
    return encoded


def _some(names: Iterable[Any], role: str) -> tuple[Any, ...]:
    """Return a list of names, at least one."""
    check_ordered(names, plural(role))
    names = tuple(name_list(names, plural(role)))
    if not names:
        raise DataError(
            parameter=plural(role),
            problem="names nobody and nothing",
            expected=f"give at least one {role}, or leave it out for all",
        )
    return names


def codes_given(
    names: Iterable[Any] | None, known: tuple[Any, ...], role: str
) -> Int[np.ndarray, " name"]:
    """Return the codes of names, in their order; all codes for None."""
    if names is None:
        return np.arange(len(known))
    names = _some(names, role)
    return np.asarray(
        match_names(np.arange(len(names)), names, known, role, plural(role)), np.int64
    )


def abilities_given(
    available: Available | None,
    items: Int[np.ndarray, " item"],
    judges: Int[np.ndarray, " annotator"],
    names: Any,
    annotators: Any,
) -> Abilities:
    """Items that each of some annotators can judge, among some items."""
    if available is None:
        return Abilities.of(items, judges, {}, len(names))
    if not isinstance(available, Mapping):
        raise DataError(
            parameter="available",
            value=available,
            expected="it must map names of annotators to lists of items",
            instead="available={'ann': [...]}",
        )
    check_once(available, "available")
    given = tuple(name for name in available if available[name] is not None)
    judged = [_judged(name, available[name]) for name in given]
    flat = tuple(name for part in judged for name in part)
    codes = np.asarray(
        match_names(np.arange(len(flat)), flat, names, "item", "available"), np.int64
    )
    parts = np.split(codes, np.cumsum([len(part) for part in judged])[:-1]) if judged else []
    whose = match_names(np.arange(len(given)), given, annotators, "annotator", "available")
    lists = {
        int(code): np.intersect1d(part, items) for code, part in zip(whose, parts, strict=True)
    }
    return Abilities.of(items, judges, lists, len(names))


def _judged(name: Any, items: Any) -> tuple[Any, ...]:
    """Return the items that an annotator can judge, as they are given."""
    if not is_list(items):
        raise DataError(
            parameter="available",
            value=items,
            problem=f"is no list of items for {name!r}",
            expected="give a list of items",
            instead=f"available={{{name!r}: [{items!r}]}}",
        )
    return tuple(name_list(items, "available"))


def as_boolean(mask: Any, num_items: int) -> Any:
    """Return an array of zeros and ones, shape (item, item), as one of booleans, and any other mask
    as it is."""
    shape = (num_items, num_items)
    if isinstance(mask, np.ndarray) and mask.dtype.kind in "iuf" and mask.shape == shape:
        return mask.astype(bool) if np.isin(mask, (0, 1)).all() else mask
    return mask


def mask_function(mask: Any, listed: Int[np.ndarray, " item"], num_items: int) -> Allowed | None:
    """Return the function of two items and an annotator that says which questions a mask allows."""
    if mask is None:
        return None
    if not callable(mask):
        if mask.shape != (len(listed), len(listed)):
            raise DataError(
                parameter="mask",
                problem=f"has shape {mask.shape}, and there are {len(listed)} items",
                expected=(
                    "give a row and a column for each, in the order of `items`, or else of the"
                    " judgements"
                ),
            )
        place = np.zeros(num_items, np.int64)
        place[listed] = np.arange(len(listed))

        def within(
            first: Int[np.ndarray, " pair"],
            second: Int[np.ndarray, " pair"],
            _: Int[np.ndarray, " pair"],
        ) -> Bool[np.ndarray, " pair"]:
            one, other = place[first], place[second]
            either: np.ndarray = mask[one, other] | mask[other, one]
            return either

        return within

    def called(
        first: Int[np.ndarray, " pair"],
        second: Int[np.ndarray, " pair"],
        _: Int[np.ndarray, " pair"],
    ) -> Bool[np.ndarray, " pair"]:
        allowed = np.asarray(mask(first, second))
        if allowed.shape != first.shape or allowed.dtype != bool:
            raise DataError(
                parameter="mask",
                problem=f"gave {allowed.dtype} of shape {allowed.shape} for {len(first)} pairs",
                expected="it must give True or False for each",
                instead="mask=lambda first, second: abs(first - second) < 10",
            )
        return allowed

    return called


def listed_pairs(
    mask: Any, chosen: Int[np.ndarray, " item"], names: tuple[Any, ...]
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the codes of listed pairs among the items chosen, each once, the smaller first."""
    pairs = [tuple(pair) if is_list(pair) else () for pair in mask] if is_list(mask) else [()]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise DataError(
            parameter="mask",
            value=wrong[0] or mask,
            expected="it must be a boolean array, pairs of item names, or a function",
            instead="mask=[('a', 'b')]",
        )
    flat = tuple(name_list([name for pair in pairs for name in pair], "mask"))
    codes = np.sort(
        np.asarray(
            match_names(np.arange(len(flat)), flat, names, "item", "mask"), np.int64
        ).reshape(-1, 2),
        axis=1,
    )
    if (same := np.flatnonzero(codes[:, 0] == codes[:, 1])).size:
        raise DataError(
            parameter="mask", value=pairs[same[0]], expected="a question needs two different items"
        )
    codes = np.unique(codes[np.isin(codes, chosen).all(1)], axis=0)
    return codes[:, 0], codes[:, 1]


def nothing_left(mask: Any, available: Any, what: str) -> DataError:
    """Error for an empty pool."""
    also = "" if mask is None or available is None else "and `available` "
    return DataError(
        parameter="available" if mask is None else "mask",
        problem=f"{also}let no {what} pass to any annotator, so no question is left to ask",
        expected="allow more",
    )
