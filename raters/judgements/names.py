"""Names behind codes: matched, stored as text, and told from those to drop; numbers for equal
rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Num, Shaped

from raters._validation import whole
from raters.errors import DataError, SettingError
from raters.judgements.reading.columns import match_names


def matched_codes(
    codes: Int[np.ndarray, " ..."], own: tuple[Any, ...], known: tuple[Any, ...], role: str
) -> Int[np.ndarray, " ..."]:
    """Codes among the known names; −1 stays."""
    there = codes >= 0
    if there.all():
        return match_names(codes, own, known, role.removeprefix("true_"))
    matched = np.full(codes.shape, -1, np.int32)
    matched[there] = match_names(codes[there], own, known, role.removeprefix("true_"))
    return matched


def ranks(columns: Sequence[Num[np.ndarray, "row ..."]]) -> Int[np.ndarray, " row"]:
    """Number of each distinct row of some columns, shape (row,)."""
    flat = [column.reshape(len(column), -1) for column in columns]
    rank = np.zeros(len(flat[0]), np.int64)
    for column in (part for wide in flat for part in wide.T):
        own = np.unique(column, return_inverse=True)[1].ravel()
        rank = np.unique(rank * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].ravel()
    return rank


def check_padding(rows: Any, present: int) -> None:
    """Raise unless there are at most so many rows."""
    whole("rows", rows)
    if rows < present:
        raise SettingError(
            parameter="rows",
            value=rows,
            expected=f"there are {present} rows already, so give at least as many",
            instead=f"rows={pad_to(present)}",
        )


def pad_to(rows: int, least: int = 64) -> int:
    """The power of two that holds so many rows: compiled functions see few shapes while data
    grow."""
    return max(least, 1 << (rows - 1).bit_length()) if rows > 1 else least


def check_result(result: Any) -> None:
    """Raise unless this is a result of `raters.fit`, with the data that it was fitted to."""
    if "data" not in getattr(result, "attrs", {}) or "constant_data" not in result:
        raise DataError(
            parameter="result",
            value=result,
            problem="does not hold the data that it was fitted to",
            expected="pass a result, as fitted or as read back from its file",
            instead="rt.fit(model, votes), or arviz.from_netcdf(path)",
        )


def names_array(values: Sequence[Any]) -> Shaped[np.ndarray, " name"]:
    """Names as a coordinate that NetCDF can hold: integers as they are, everything else as text."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, dtype=np.int32)
    if all(
        issubclass(kind, (int, np.integer)) and kind is not bool for kind in set(map(type, values))
    ):
        return np.asarray(values, dtype=np.int64)
    return np.array([str(value) for value in values], dtype=object)


def names_to_json(names: Iterable[Any]) -> str:
    """Names as an attribute that NetCDF can hold."""
    names = list(names)
    if set(map(type, names)) <= {int, str}:
        return json.dumps(names)
    return json.dumps([_plain_name(name) for name in names])


def names_from_json(text: str) -> tuple[Any, ...]:
    """The names that `names_to_json` wrote."""
    return tuple(json.loads(text))


def _plain_name(name: Any) -> int | str:
    whole_number = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    return int(name) if whole_number else str(name)


def staying(names: Sequence[Any], dropped: Iterable[Any], role: str) -> Bool[np.ndarray, " name"]:
    """Mask of the names that stay when some are dropped; `DataError` for names that are not
    there."""
    if isinstance(dropped, str):
        raise DataError(
            parameter="names",
            value=dropped,
            expected="it must be a list of names",
            instead=f"[{dropped!r}]",
        )
    gone = set(dropped)
    if unknown := gone - set(names):
        raise DataError(
            parameter="names",
            value=sorted(map(str, unknown)),
            problem=f"hold names of no {role}, and nobody was dropped",
            expected=f"names are such as {', '.join(map(repr, names[:3]))}",
        )
    return np.array([name not in gone for name in names])
