"""The questions of a campaign and the judgements before it, as rows: read, keyed, joined with answers, and packed away."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from raters import _frame
from raters._judgements import names_from_json, names_to_json
from raters.data import Comparisons
from raters.errors import DataError
from raters.labels import Labels, _whole

# Comparisons or Labels, which a type checker cannot tell apart in `dataclasses.replace`.
Data = Any

# Words for an answer about two items; the name of an item goes before them.
_WORDS = {"first": 1.0, "left": 1.0, "second": 0.0, "right": 0.0, "tie": 0.5}
_NAMES = ("items", "annotators", "classes", "feature_names")


def seed_of(*numbers: int) -> int:
    """A seed for what happens under these numbers, such as the campaign's own seed and how far it has come."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


# ---------------------------------------------------------------- reading


def prepared(pool: Data, votes: Data | None) -> tuple[Data, Data]:
    """The questions, each once and without outcomes, and the earlier judgements (maybe none), with the same names.

    Raises
    ------
    DataError
        When there is no question; when `votes` are of another kind, lack outcomes, or do not name an item, annotator or class
        of the pool; when codes of the pool are out of range.
    """
    what = type(pool).__name__
    if votes is not None and type(votes) is not type(pool):
        raise DataError(f"votes= are {type(votes).__name__}, and the pool is {what}; give two of a kind")
    if votes is not None and not votes.answered:
        raise DataError("votes= have no outcomes; leave votes= out when there is no judgement yet")
    pool = _plain_names(pool)
    if num_rows(pool) == 0:
        make = "rt.Candidates.labels(labels)" if isinstance(pool, Labels) else "rt.Candidates.pairs(votes)"
        raise DataError(
            f"the pool is empty: there is no question to ask. Make one with {make}, or give the {what} to ask about"
        )
    _check_codes(pool)
    if votes is None:
        return _each_once(without_outcomes(pool)), take(with_values(pool, np.zeros(num_rows(pool))), np.zeros(0, int))
    votes = _plain_names(votes)
    _check_alike(pool, votes)
    names = votes.items, votes.annotators
    who = _frame.match(pool.annotator, pool.annotators, names[1], "annotator")
    if isinstance(pool, Labels):
        recoded: Data = _rows_of_items(votes, _frame.match(pool.item, pool.items, names[0], "item"), who)
    else:
        sides = {side: _frame.match(getattr(pool, side), pool.items, names[0], "item") for side in ("first", "second")}
        recoded = dataclasses.replace(pool, **sides, annotator=who, items=names[0], annotators=names[1])
    return _each_once(without_outcomes(recoded)), votes


def mixed(pool: Data, seed: int) -> Data:
    """The pairs with either item first, by chance: people favour what they see first. Ordered ones stay as they are.

    Pairs that were mixed come out as they went in.
    """
    if isinstance(pool, Labels) or pool.ordered:
        return pool
    one, two = (np.asarray(side) for side in (pool.first, pool.second))
    low, high = np.minimum(one, two), np.maximum(one, two)
    swap = np.random.default_rng(seed).random(len(low)) < 0.5
    sides: dict[str, Any] = {"first": np.where(swap, high, low), "second": np.where(swap, low, high)}
    if pool.features is not None:  # differences: of the first item less the second
        turned = (sides["first"] != one)[:, None]
        sides["features"] = np.where(turned, -np.asarray(pool.features), np.asarray(pool.features)) + np.float32(0)
    return dataclasses.replace(pool, **sides)


def _plain_names(data: Data) -> Data:
    """Columns and names as the journal gives them back."""
    columns = {name.removeprefix("/"): column for name, column in packed(data, "").items()}
    plain = {name: names_from_json(names_to_json(getattr(data, name))) for name in _NAMES if hasattr(data, name)}
    return dataclasses.replace(data, **columns, **plain)


def _check_codes(pool: Data) -> None:
    sides = (pool.item,) if isinstance(pool, Labels) else (pool.first, pool.second)
    for role, names, columns in (("item", pool.items, sides), ("annotator", pool.annotators, (pool.annotator,))):
        for codes in map(np.asarray, columns):
            if (wrong := codes[(codes < 0) | (codes >= len(names))]).size:
                raise DataError(
                    f"the pool asks about {role} number {wrong[0]} (counted from 0), and there are {len(names)} {role}s; make "
                    "the pool with rt.Candidates, which takes names"
                )
    if isinstance(pool, Comparisons) and (same := np.flatnonzero(np.asarray(pool.first) == np.asarray(pool.second))).size:
        name = pool.items[int(pool.first[same[0]])]
        raise DataError(f"row {same[0]} of the pool (counted from 0) compares {name!r} with itself; leave such rows out")


def _check_alike(pool: Data, votes: Data) -> None:
    """What must be equal beside the names of items and annotators."""
    if isinstance(votes, Labels):
        fixed: tuple[str, ...] = ("classes",)
        if votes.num_units < votes.num_items:
            raise DataError(
                f"votes= are {votes.num_units} of {votes.num_items} items, as labels.take(...) gives them, and a campaign "
                "needs them all; choose rows of the table, and read it again with Labels.from_frame"
            )
    else:
        fixed = ("ordered", "feature_names")
    for name in fixed:
        there, here = getattr(votes, name), getattr(pool, name)
        if there != here:
            raise DataError(
                f"{name} of votes= is {there!r}, and of the pool {here!r}; make the pool from the votes: rt.Candidates"
            )


def _each_once(pool: Data) -> Data:
    _, earliest = np.unique(keys(pool), return_index=True)
    return pool if len(earliest) == num_rows(pool) else take(pool, np.sort(earliest))


def keys(data: Data, other: Data | None = None) -> np.ndarray:
    """A number for each row that equal questions share: the items (in order where that is known), the annotator, and features.

    With `other`, its rows come after those of `data`, numbered alike.
    """
    parts = [data] if other is None else [data, other]
    who = np.concatenate([np.asarray(part.annotator) for part in parts]).astype(np.int64)
    if isinstance(data, Labels):
        item = np.concatenate([np.asarray(part.item) for part in parts])
        return who * data.num_items + item
    one, two = (np.concatenate([np.asarray(getattr(part, side)) for part in parts]) for side in ("first", "second"))
    turned = np.zeros(len(one), bool) if data.ordered else one > two
    one, two = np.where(turned, two, one), np.where(turned, one, two)
    key = (who * data.num_items + one) * data.num_items + two
    if data.features is None:
        return key
    features = np.concatenate([np.asarray(part.features, np.float64) for part in parts if not isinstance(part, Labels)])
    # Features are differences: of the first item less the second.
    features = np.where(turned[:, None], -features, features) + 0.0
    _, described = np.unique(features, axis=0, return_inverse=True)
    return np.unique(np.stack([key, described.ravel()]), axis=1, return_inverse=True)[1].ravel()


# ---------------------------------------------------------------- rows


def num_rows(data: Data) -> int:
    """Number of questions, or of rows of judgements."""
    return int(np.shape(data.annotator)[0])


def take(data: Data, rows: np.ndarray) -> Data:
    """The rows given, ascending; of labels all items stay."""
    if isinstance(data, Comparisons):
        return data.take(rows)
    columns = {name: getattr(data, name) for name in ("group", "annotator", "label", "count")}
    parts: dict[str, Any] = {name: None if column is None else np.asarray(column)[rows] for name, column in columns.items()}
    return dataclasses.replace(data, **parts, most=int(np.bincount(parts["group"], minlength=1).max(initial=1)))


def without_outcomes(data: Data) -> Data:
    """The questions alone; each row is one, whatever its count."""
    return dataclasses.replace(data, **{"label" if isinstance(data, Labels) else "wins": None}, count=None)


def with_values(pool: Data, values: np.ndarray) -> Data:
    """All rows with answers as the journal holds them: votes for the first item (a tie is half a vote), or codes of classes."""
    if isinstance(pool, Labels):
        return dataclasses.replace(pool, label=values.astype(np.int32), count=None)
    # Half a vote needs a count beside it.
    count = np.ones(len(values), np.float32) if (values % 1 != 0).any() else None
    return dataclasses.replace(pool, wins=values.astype(np.float32), count=count)


def answers(pool: Data, rows: np.ndarray, values: np.ndarray) -> Data:
    """Answers to questions of the pool; `rows` in any order."""
    if isinstance(pool, Comparisons):
        return with_values(pool.take(rows), values)
    order = np.argsort(rows, kind="stable")
    return with_values(take(pool, rows[order]), values[order])


def joined(base: Data, more: Data) -> Data:
    """Judgements and further ones with the same names, in one; rows in the order in which they come."""
    if num_rows(more) == 0:
        return base
    if isinstance(base, Labels):
        columns = {
            name: np.concatenate([np.asarray(getattr(part, name)) for part in (base, more)])
            for name in ("item", "annotator", "label")
        }
        given = (base.features, base.centre, base.scale)
        names = {name: getattr(base, name) for name in _NAMES}
        return _whole(**columns, count=_counts(base, more), truth=base.truth, features=given, record=base.record, **names)
    roles = ("first", "second", "annotator", "wins", *(() if base.features is None else ("features",)))
    columns = {name: np.concatenate([np.asarray(getattr(part, name)) for part in (base, more)]) for name in roles}
    return dataclasses.replace(base, **columns, count=_counts(base, more))


def _counts(*parts: Data) -> np.ndarray | None:
    if all(part.count is None for part in parts):
        return None
    ones = [np.ones(num_rows(part), np.float32) if part.count is None else np.asarray(part.count, np.float32) for part in parts]
    return np.concatenate(ones)


# ---------------------------------------------------------------- words


def value_of(pool: Data, row: int, answer: Any, question: str) -> float:
    """An answer in words as the journal holds it; `DataError` when it is none of those possible."""
    said = _frame.text(answer).strip() if isinstance(answer, (str, int, float, np.integer, np.floating)) else None
    if isinstance(answer, (bool, np.bool_)):  # a class may be called True, and no item is
        said = _frame.text(answer) if isinstance(pool, Labels) else None
    if isinstance(pool, Labels):
        names = [_frame.text(name) for name in pool.classes]
        if said not in names:
            listed = _frame.shorten(map(repr, pool.classes), 10)
            raise DataError(
                f"the answer {answer!r} to question {question} is no class; it must be one of {listed}. Nothing was written"
            )
        return float(names.index(said))
    sides = {1.0: pool.items[int(pool.first[row])], 0.0: pool.items[int(pool.second[row])]}
    as_name = next((value for value, name in sides.items() if said == _frame.text(name)), None)
    as_word = _WORDS.get(said.lower()) if said is not None else None
    if as_name is None and as_word is None:
        raise DataError(
            f"the answer {answer!r} to question {question} is neither of its items; write {sides[1.0]!r} or {sides[0.0]!r}, "
            "'first' or 'second', or 'tie' (half a vote for each). Nothing was written"
        )
    if None not in (as_name, as_word) and as_name != as_word:
        raise DataError(
            f"the answer {answer!r} to question {question} is the name of an item and also a word for a side or a tie; write "
            f"'left' for {sides[1.0]!r} or 'right' for {sides[0.0]!r}. Nothing was written"
        )
    return as_name if as_name is not None else as_word  # type: ignore[return-value]


def words_of(pool: Data, row: int, value: float) -> str:
    """The words for an answer that the journal holds."""
    if isinstance(pool, Labels):
        return _frame.text(pool.classes[int(value)])
    return "tie" if value == 0.5 else _frame.text(pool.items[int((pool.first if value else pool.second)[row])])


# ---------------------------------------------------------------- the journal


def identity(pool: Data, base: Data) -> dict[str, str]:
    """What tells this pool and these judgements from others, as text."""
    found = {"kind": type(pool).__name__}
    found |= {name: names_to_json(getattr(pool, name)) for name in _NAMES if hasattr(pool, name)}
    if isinstance(pool, Comparisons):
        found["ordered"] = str(pool.ordered)
    found["pool"] = f"{num_rows(pool)} questions ({_digest(pool)})"
    found["votes"] = f"{num_rows(base)} rows ({_digest(base)})"
    return found


def packed(data: Data, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of these data, by name."""
    columns = {field.name: getattr(data, field.name) for field in dataclasses.fields(data) if not field.metadata.get("static")}
    return {f"{prefix}/{name}": np.asarray(column) for name, column in columns.items() if column is not None}


def unpacked(found: Mapping[str, str], parts: Mapping[str, np.ndarray], prefix: str) -> Data:
    """The data that `packed` took apart, with the names of `identity`."""
    kind: Any = {"Comparisons": Comparisons, "Labels": Labels}[found["kind"]]
    columns: dict[str, Any] = dict.fromkeys(
        field.name for field in dataclasses.fields(kind) if not field.metadata.get("static")
    )
    columns |= {name.removeprefix(f"{prefix}/"): part for name, part in parts.items() if name.startswith(f"{prefix}/")}
    static: dict[str, Any] = {name: tuple(json.loads(found[name])) for name in _NAMES if name in found}
    if kind is Labels:
        static["most"] = int(np.bincount(columns["group"], minlength=1).max(initial=1))
    else:
        static["ordered"] = found["ordered"] == "True"
    return kind(**columns, **static)


def _digest(data: Data) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(packed(data, "").items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def _rows_of_items(names: Labels, item: np.ndarray, annotator: np.ndarray) -> Labels:
    """Questions about labels with the names, truths and features of `names`."""
    given = (names.features, names.centre, names.scale)
    static = {name: getattr(names, name) for name in _NAMES}
    return _whole(item, annotator, None, None, names.truth, given, names.record, **static)
