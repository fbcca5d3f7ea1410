"""Names behind codes: encoded, matched, shortened, stored as text, and told from those to drop."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int, Shaped

from raters.errors import PACKAGE, DataWarning, refuse_data
from raters.errors.validation import is_list, nearest
from raters.judgements.counts import Codes
from raters.judgements.display import display_name

if TYPE_CHECKING:
    from raters.judgements.reading.columns import Column

Names = tuple[Any, ...]

# One spelling for each number, so that sorting by size is an order. Python reads no more digits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,4000}")


def encode_names(
    columns: Sequence[Column], known: Iterable[Any] | None, role: str
) -> tuple[list[Codes], Names]:
    """Shared codes of columns that name the same things, −1 if empty, and names in code order."""
    many = plural(role)
    given = None if known is None else name_list(known, many, ordered=True)
    lists = alike([column.values for column in columns] + ([] if given is None else [given]))
    names = in_order(lists) if given is None else tuple(lists.pop())
    check_once(names, many)
    lookup = {name: code for code, name in enumerate(names)}
    used = () if given is None else dict.fromkeys(name for group in lists for name in group)
    if unknown := [name for name in used if name not in lookup]:
        problem = f"lacks {len(unknown)} of the {role}(s) in the table, e.g. {unknown[0]!r}"
        expected = "add them, or leave it out to take the names from the table"
        refuse_data(many, problem=problem, expected=expected)
    warn_of_near(names, many)
    codes = [np.array([*(lookup[name] for name in group), -1], np.int32) for group in lists]
    return [code[column.code] for code, column in zip(codes, columns, strict=True)], names


def name_list(
    names: Iterable[Any], parameter: str, such: str | None = None, *, ordered: bool = False
) -> list[Any]:
    """Names that are given as a list, and as no set where their order counts."""
    if ordered and isinstance(names, (set, frozenset)):
        problem = "is a set, which has no order of its own"
        line = f"{parameter}=[{', '.join(sorted(map(repr, names))[:5])}]"
        refuse_data(parameter, names, problem, "give a list, in the order wanted", instead=line)
    if not is_list(names):
        line = such or f"{parameter}=['a', 'b']"
        refuse_data(parameter, names, "is no list of names", "give a list of names", instead=line)
    listed = list(names)
    check_text(listed, parameter)
    # An empty text is a missing cell in every table, so as a name it would not come back from one.
    if missing := [name for name in listed if name is None or name != name or name in ("", b"")]:
        problem = f"has {missing[0]!r} among the names"
        refuse_data(parameter, problem=problem, expected="leave out what has no name")
    return listed


def check_once(names: Iterable[Any], parameter: str) -> None:
    """Raise when a name comes twice, also as a number and as text."""
    names = list(names)
    if len(set(names)) == len(names) and len(set(map(type, names))) <= 1:
        return
    texts: set[str] = set()
    for name in names:
        if name_text(name) in texts:
            refuse_data(parameter, name, "comes twice", "give each name once")
        texts.add(name_text(name))


def alike(groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Names as whole numbers if all groups' are, else all as text: 1 and "1" are one name."""
    values = list(itertools.chain(*groups))
    # Of plain numbers, which may be many, the largest and the smallest tell.
    several = (min(values), max(values)) if set(map(type, values)) == {int} else values
    if all(map(_is_whole, several)):
        return [list(map(int, group)) for group in groups]
    return [[name_text(value) for value in group] for group in groups]


def in_order(groups: Iterable[Iterable[Any]]) -> Names:
    """Distinct names of some groups, sorted: whole numbers by size, 2 before 10, then text."""
    names = set().union(*groups)
    if all(isinstance(name, str) and _WHOLE.fullmatch(name) for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def loosely(text: str) -> str:
    """Text without case, Unicode form, surrounding space and characters of no width."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = "".join(one for one in text if unicodedata.category(one) != "Cf")
        text = unicodedata.normalize("NFC", text.casefold())
    return " ".join(text.casefold().split())


def meaning(text: str) -> str | Decimal:
    """A name without what its spellings differ by: as a number where it is one, TRUE as 1."""
    loose = loosely(text)
    try:
        number = Decimal({"true": "1", "false": "0"}.get(loose, loose))
    except InvalidOperation:
        return loose
    return number if number.is_finite() else loose


def warn_data(text: str) -> None:
    """Warn of data, at the first line outside of the package."""
    warnings.warn(text, DataWarning, skip_file_prefixes=PACKAGE, stacklevel=2)


def warn_of_near(names: Names, many: str, *, as_numbers: bool = False) -> None:
    """Warn of names that differ by case, Unicode form, space or characters of no width only."""
    groups: dict[str | Decimal, list[str]] = {}
    for name in names if set(map(type, names)) != {int} else ():
        if isinstance(name, str):
            key = meaning(name) if as_numbers else loosely(name)
            groups.setdefault(key, []).append(name)
    near = {key: group for key, group in groups.items() if len(group) > 1}
    if near:
        pairs = [f"{ascii_shown(one)} and {ascii_shown(two)}" for one, two, *_ in near.values()]
        number = any(isinstance(key, Decimal) for key in near)
        by = "the spelling of a number" if number else "case, space or invisible characters"
        warn_data(
            f"some {many} are told apart by {by} only: {'; '.join(pairs[:5])}. If they are the"
            " same, spell them alike first"
        )


def warn_of_each(sentences: Mapping[str, tuple[Names, Any]]) -> None:
    """Warn of the names that each sentence is true of, with their number before it."""
    for sentence, (names, which) in sentences.items():
        if some := [names[code] for code in np.flatnonzero(which)]:
            warn_data(f"{len(some)} {sentence}: {shorten(some)}")


def ascii_shown(name: str) -> str:
    """A name for a message, in which nothing is invisible or looks like something else."""
    plain = name.isascii() and name.isprintable()
    return shown(name) if plain else f"{shown(name)} ({ascii(name)[1:-1][:60]})"


def name_text(value: Any) -> str:
    """A name as text; a whole number, also as a float (of missing values), has no decimal point."""
    if isinstance(value, bytes):
        return value.decode()
    return str(int(value)) if _is_whole(value) else str(value)


def _is_whole(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (float, np.floating)):
        return float(value).is_integer() and abs(float(value)) < 2**53
    return isinstance(value, (int, np.integer)) and abs(int(value)) < 2**63


def _is_name(value: Any) -> bool:
    """True for one value that has a text of its own."""
    kind: Any = type(value)
    try:
        hash(value)
    except TypeError:
        return False
    has_text = kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__
    return has_text and not callable(value)


def check_text(values: Iterable[Any], parameter: str, column: str | None = None) -> None:
    """Raise for what is no name, and for what no file keeps: no UTF-8, half surrogates, NUL."""
    values = list(values)
    for value in () if set(map(type, values)) <= {int} else values:
        text = isinstance(value, (str, bytes))
        if not (_is_utf8(value) if text else _is_name(value)):
            expected = "names must be UTF-8 text without NUL, numbers or dates"
            refuse_data(parameter, column or shown(value), f"holds {shown(value)}", expected)


def _is_utf8(value: str | bytes) -> bool:
    try:
        return b"\0" not in name_text(value).encode()
    except UnicodeError:
        return False


def match_names(
    codes: Int[np.ndarray, " ..."],
    names: Names,
    known: Names,
    role: str,
    parameter: str | None = None,
) -> Int[np.ndarray, " ..."]:
    """Codes into `names` as codes into `known`, matched by name; −1 stays."""
    codes, names, known = np.asarray(codes), tuple(names), tuple(known)
    if names == known:
        return codes
    lookup = {name_text(name): code for code, name in enumerate(known)}
    table = np.array([*(lookup.get(name_text(name), -1) for name in names), -1], np.int32)
    matched: np.ndarray = table[codes]
    if (lost := (matched < 0) & (codes >= 0)).any():
        unknown = [names[code] for code in np.unique(codes[lost])]
        near = nearest(name_text(unknown[0]), lookup)
        problem = f"is not among the {len(known)} {plural(role)} known ({len(unknown)} such)"
        expected = f"use names such as {', '.join(map(repr, known[:3]))}"
        expected += f"; did you mean {near!r}?" if near else ""
        refuse_data(parameter or role, unknown[0], problem, expected)
    return matched


def check_names(names: Any, parameter: str, axis: str) -> None:
    """Raise unless these are the names behind codes: a tuple in which each comes once."""
    known = isinstance(names, tuple) and set(map(type, names)) <= {int, str}
    if not known and (not isinstance(names, tuple) or not all(map(_is_name, names))):
        refuse_data(parameter, names, expected="it must be a tuple of names, in code order")
    if len(set(names)) < len(names):
        twice = f"has a name twice among {len(names)} {plural(axis)}"
        refuse_data(parameter, problem=twice, expected="give each name once")


def check_result(result: Any) -> None:
    """Raise unless this is a result of `raters.fit`, with the data that it was fitted to."""
    if "data" not in getattr(result, "attrs", {}) or "constant_data" not in result:
        problem = "does not hold the data that it was fitted to"
        expected = "pass a result, as fitted or as read back from its file"
        line = "rt.fit(model, votes), or arviz.from_netcdf(path)"
        refuse_data("result", result, problem, expected, instead=line)


def names_array(values: Sequence[Any]) -> Shaped[np.ndarray, " name"]:
    """Names as a coordinate that NetCDF can hold: integers as they are, everything else as text."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, dtype=np.int32)
    if all(map(_is_integer, values)):
        return np.asarray(values, dtype=np.int64)
    return np.array([str(value) for value in values], dtype=object)


def names_to_json(names: Iterable[Any]) -> str:
    """Names as an attribute that NetCDF can hold."""
    return json.dumps([int(name) if _is_integer(name) else str(name) for name in names])


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def names_from_json(text: str) -> tuple[Any, ...]:
    """The names that `names_to_json` wrote."""
    return tuple(json.loads(text))


def staying(names: Sequence[Any], dropped: Iterable[Any], role: str) -> Bool[np.ndarray, " name"]:
    """Mask of the names that stay when some are dropped."""
    gone = set(map(name_text, name_list(dropped, "names")))
    if unknown := gone - set(map(name_text, names)):
        problem = f"hold names of no {role}, and nobody was dropped"
        expected = f"names are such as {', '.join(map(repr, names[:3]))}"
        refuse_data("names", sorted(unknown), problem, expected)
    return np.array([name_text(name) not in gone for name in names])


def shorten(names: Iterable[Any], most: int = 5) -> str:
    """The first of many names, and how many there are."""
    names = list(names)
    rest = f", … ({len(names):,} in all)" if len(names) > most else ""
    return ", ".join(map(display_name, names[:most])) + rest


def shown(value: Any, most: int = 60) -> str:
    """A value for a message, cut when it is long; of several lines, its type."""
    shown = repr(value)
    if "\n" in shown:
        return f"{type(value).__name__}(...)"
    return shown if len(shown) <= most else shown[:most] + "…"


def plural(word: str) -> str:
    """Plural of the name of an axis or of a judge."""
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("s") else f"{word}s"


def dashed(name: str) -> str:
    """Name of a class or parameter on the command line: ``ExtendedBTL`` is ``extended-btl``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").lower()


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun, by default with the regular plural."""
    return f"{number:,} {one if number == 1 else many or plural(one)}"
