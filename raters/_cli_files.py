"""Files of the command line: tables read with one-line errors, and outputs that appear whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from raters.errors import DataError, SettingError

if TYPE_CHECKING:
    from raters.data import Comparisons
    from raters.labels import Labels

_FORMATS = {".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet", ".jsonl": "JSON lines", ".ndjson": "JSON lines"}
_SHAPES = (("winner", "loser"), ("first", "second", "outcome"), ("item", "rating"), ("item", "label", "annotator"))
# Outputs are prepared in a folder of this name beside where they go, so that moving them there is one step.
_STAGE = ".raters-"
_ANNOTATOR_WORDS = ("annotator", "worker", "judge", "rater")


def table_format(path: Path) -> str:
    """What the name of a file says about its format; `DataError` when it says nothing."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] in ([".csv"], [".tsv"], [".jsonl"], [".ndjson"]):
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise DataError(
            f"cannot tell the format of {str(path)!r} from its name; expected .csv, .tsv, .jsonl or .ndjson "
            "(each also with .gz), or .parquet"
        )
    return _FORMATS[suffixes[-1]]


def read_table(path: Path) -> pd.DataFrame:
    """A table from CSV, TSV, Parquet or JSON lines; names keep their spelling (007 stays 007)."""
    must_be_file(path)
    kind = table_format(path)
    if path.stat().st_size == 0:
        raise DataError(f"{str(path)!r} is empty; expected a {kind} table of votes")
    try:
        with warnings.catch_warnings():
            # A row longer than the header would lose values, with a warning only.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            if kind == "Parquet":
                return pd.read_parquet(path)
            if path.suffix.lower() != ".gz" and b"\0" in _head(path):
                raise ValueError("it is binary, not UTF-8 text")
            if kind == "JSON lines":
                return _json_lines(path)
            separator = "\t" if kind == "TSV" else ","
            table = pd.read_csv(path, sep=separator, dtype=str, index_col=False, encoding="utf-8-sig")
            return _one_separator(table, separator).apply(_as_written)
    except pd.errors.ParserWarning as error:
        raise DataError(f"{str(path)!r} is not a readable {kind} table: some rows have more values than the header") from error
    except (ValueError, EOFError, OSError, zlib.error) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(f"{str(path)!r} is not a readable {kind} table: {reason}") from error


def must_be_file(path: Path) -> None:
    """`DataError` unless there is a file to read."""
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a directory; name a file in it")
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 16)


def _json_lines(path: Path) -> pd.DataFrame:
    """One flat object a line. Read here, because pandas turns columns into dates by their names."""
    rows = []
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON ({error})") from error
            if not isinstance(row, dict) or any(isinstance(value, (list, dict)) for value in row.values()):
                raise ValueError(f'line {number} is not one flat object such as {{"winner": "a", "loser": "b"}}')
            rows.append(row)
    return pd.DataFrame(rows)


def _one_separator(table: pd.DataFrame, expected: str) -> pd.DataFrame:
    header = str(table.columns[0])
    if len(table.columns) == 1 and (found := next((mark for mark in ";\t|," if mark in header), None)):
        raise ValueError(f"its columns are separated by {found!r}, where {expected!r} was expected")
    return table


def _as_written(column: pd.Series) -> pd.Series:
    """Text as whole numbers where nothing is lost by it, and as numbers where it can only be an outcome."""
    numbers = pd.to_numeric(column, errors="coerce")
    if len(column) == 0 or numbers.isna().any():
        return column
    if numbers.dtype.kind in "iu" and (numbers.astype(str) == column).all():
        return numbers
    return numbers if set(numbers.unique()) <= {0.0, 0.5, 1.0} else column


@dataclass(frozen=True)
class Columns:
    """Which column plays which role; None where a role is not described."""

    winner: str | None = None
    loser: str | None = None
    first: str | None = None
    second: str | None = None
    outcome: str | None = None
    item: str | None = None
    rating: str | None = None
    label: str | None = None
    annotator: str | None = None
    count: str | None = None

    def given(self) -> dict[str, str]:
        """The roles that are described."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}

    def check(self) -> None:
        """`SettingError` unless the options describe one shape of table, and that whole (or none at all)."""
        given = [role for role in self.given() if role not in ("annotator", "count")]
        for pair in combinations(given, 2):
            if not any(set(pair) <= set(shape) for shape in _SHAPES):
                mixed = " and ".join(f"--{role}" for role in pair)
                raise SettingError(f"{mixed} describe different shapes of table; give one: {_shape_options()}")
        lacking = [[role for role in shape if getattr(self, role) is None] for shape in _SHAPES if set(given) <= set(shape)]
        if given and all(lacking):
            needs = ", or ".join(" and ".join(f"--{role}" for role in roles) for roles in lacking)
            have = " and ".join(f"--{role}" for role in given) + (" needs" if len(given) == 1 else " need")
            raise SettingError(f"{have} {needs} as well")
        if self.rating is not None and self.count is not None:
            raise SettingError("--count does not go with --item and --rating: each row is one rating")

    @property
    def has_sides(self) -> bool:
        """Whether the options say where the items are."""
        return bool(set(self.given()) - {"annotator", "count"})

    def guessed(self, names: list[str]) -> Columns:
        """Completed from standard column names; `DataError` when those are ambiguous or absent."""
        by_lower = {name.lower(): name for name in names}
        who = [by_lower[word] for word in _ANNOTATOR_WORDS if word in by_lower]
        there = set(by_lower) | ({"annotator"} if who or self.annotator else set())
        shapes = [shape for shape in _SHAPES if set(shape) <= there]
        if len(shapes) != 1:
            why = "has none of the standard column names" if not shapes else "can be read in more than one way"
            raise DataError(f"the table {why}; say which columns to read: {_shape_options()}. It has {sorted(names)}")
        if self.annotator is None and len(who) > 1:
            raise DataError(f"the columns {who} may each say who voted; write --annotator {who[0]}, or another")
        annotator = self.annotator or (who[0] if who else None)
        sides = {role: by_lower[role] for role in shapes[0] if role != "annotator"}
        return Columns(**sides, annotator=annotator, count=self.count)


def _shape_options() -> str:
    return ", or ".join(" ".join(f"--{role} COLUMN" for role in shape) for shape in _SHAPES)


def read_votes(
    table: pd.DataFrame, columns: Columns, ties: str | None, drop_bad_rows: bool, **names: Sequence[Any]
) -> tuple[Comparisons, int]:
    """The votes in a table, and how many rows were left out because no vote can be read from them.

    All `names` (``items``, ``annotators``) may be given, also those that the table does not mention.
    """
    from raters.data import Comparisons

    table, left_out = _usable_rows(table, columns, drop_bad_rows)
    roles: dict[str, Any] = columns.given() | ({"ties": ties} if ties else {}) | names
    read = Comparisons.from_ratings if columns.item else Comparisons.from_frame
    return read(table, **roles), left_out


def read_labels(
    table: pd.DataFrame,
    columns: Columns,
    *,
    truth: str | None,
    features: Sequence[str],
    classes: str | None,
    repeats: str | None,
    drop_bad_rows: bool,
    **names: Sequence[Any],
) -> tuple[Labels, int]:
    """The labels in a table, and how many rows were left out because no label can be read from them.

    All `names` (``items``, ``annotators``) may be given, also those that the table does not mention.
    """
    from raters.labels import Labels

    table, left_out = _usable_rows(table.reset_index(drop=True), columns, drop_bad_rows)
    if truth is not None and truth in table:
        # A missing value had kept whole numbers from being read as such; the labels beside them were.
        table = table.assign(**{truth: _as_written(table[truth].dropna()).reindex(table.index)})
    settings: dict[str, Any] = columns.given() | {"truth": truth, "repeats": repeats or "keep"} | names
    if classes is not None:
        settings["classes"] = _as_written(pd.Series([name.strip() for name in classes.split(",")], dtype=str)).tolist()
    labels = Labels.from_frame(table, **settings)
    if features:
        item = str(columns.item)
        labels = labels.with_features(_feature_table(table, item, features), item=item, names=list(features))
    return labels, left_out


def _feature_table(table: pd.DataFrame, item: str, features: Sequence[str]) -> pd.DataFrame:
    """One row of numbers for each item; `DataError` when rows of an item differ."""
    if unknown := [name for name in features if name not in table.columns]:
        raise DataError(f"there is no column {unknown[0]!r} (for --feature); the table has {sorted(map(str, table.columns))}")
    numbers = table[list(features)].apply(pd.to_numeric, errors="coerce")
    first = numbers.groupby(table[item], sort=False).transform("first")
    for name in features:
        if (wrong := np.flatnonzero(numbers[name].isna())).size:
            value = table[name].iloc[wrong[0]]
            raise DataError(
                f"--feature {name} must hold numbers; it holds {str(value)!r} for item {str(table[item].iloc[wrong[0]])!r} "
                f"({len(wrong)} such row(s))"
            )
        if (wrong := np.flatnonzero(numbers[name] != first[name])).size:
            row = wrong[0]
            raise DataError(
                f"--feature {name} is {first[name].iloc[row]:g} and {numbers[name].iloc[row]:g} for item "
                f"{str(table[item].iloc[row])!r}; a feature belongs to the item, so all its rows must have the same value"
            )
    return numbers.assign(**{item: table[item]})[~table[item].duplicated()]


def _usable_rows(table: pd.DataFrame, columns: Columns, drop: bool) -> tuple[pd.DataFrame, int]:
    """Rows without a missing value and without an item compared with itself; the others are an error unless `drop`."""
    used = [name for name in columns.given().values() if name in table.columns]
    missing = (table[used].isna() | (table[used] == "")).any(axis=1)
    sides = [columns.winner, columns.loser] if columns.winner else [columns.first, columns.second]
    same = pd.Series(False, index=table.index)
    if all(side in used for side in sides):
        same = ~missing & (table[sides[0]].astype(str) == table[sides[1]].astype(str))
    bad = missing | same
    if bad.any() and not drop:
        row = int(np.flatnonzero(bad)[0])
        wrong = "has a missing value" if missing.iloc[row] else f"compares {table[sides[0]].iloc[row]!s} with itself"
        also = "" if columns.item else f", {int(same.sum())} with an item compared with itself"
        raise DataError(
            f"data row {row + 1} {wrong} ({int(missing.sum())} row(s) with a missing value{also}); correct the table, or leave "
            "such rows out with --drop-bad-rows"
        )
    if bad.all() and len(table):
        raise DataError(f"every row {what_is_wrong(columns)}, so nothing is left to read")
    return table[~bad], int(bad.sum())


def what_is_wrong(columns: Columns) -> str:
    """With a row that is left out, in words."""
    return "has a missing value" + ("" if columns.item else " or an item compared with itself")


_AS_OPTION = re.compile(
    r"\b(winner|loser|first|second|outcome|item|rating|label|annotator|count|truth|classes|repeats|ties|competence|reward_scale"
    r"|competence_spread|draws|warmup|chains|threshold|level|min_votes|batch_size|seed|keep_bad|drop_good|review|again|num_items"
    r"|num_annotators|num_votes|num_classes|num_features|labels_per_item|num_types|type_prior|concentration)="
    r"(?:'([^']*)'|\[([^\]]*)\]|(\.\.\.)|(True\b)|([-\w.]+))?"
)
_RENAMED = {"keep_bad": "cost-keep-bad", "drop_good": "cost-drop-good", "review": "cost-review"} | {
    f"num_{name}": name for name in ("items", "annotators", "votes", "classes", "features")
}
_PHRASES = {
    " or None, to learn it": "; leave it out to learn it",
    "labels.with_truth(...)": "--truth COLUMN",
    "labels.with_features(...)": "--feature COLUMN",
    "HierarchicalDawidSkene()": "--model hierarchical-dawid-skene",
    "DawidSkene()": "--model dawid-skene",
    "OneCoin()": "--model one-coin",
}


def as_options(message: str) -> str:
    """A message of the library in the words of the command line: ``ties='drop'`` becomes ``--ties drop``."""

    def option(match: re.Match[str]) -> str:
        name, text, names, dots, _, word = match.groups()
        value = text or (names or "").replace("'", "").replace(", ", ",") or dots or word or ""
        return f"--{_RENAMED.get(name, name.replace('_', '-'))} {value}".rstrip()

    text = _AS_OPTION.sub(option, " ".join(message.split()))
    for phrase, instead in _PHRASES.items():
        text = text.replace(phrase, instead)
    return text


# ---------------------------------------------------------------- writing


def check_writable(path: Path, *, folder: bool, option: str = "--out") -> None:
    """`SettingError` when `path` cannot be written, before hours are spent on what should go there."""
    if folder and path.exists() and not path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a file; name a folder")
    if not folder and path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a folder; name a file")
    if not folder and not path.parent.is_dir():
        raise SettingError(f"{option} {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    holder = _nearest_folder(path if folder else path.parent)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=_STAGE, dir=holder))
    except OSError as error:
        raise SettingError(f"{option} {str(path)!r} cannot be written: {error.strerror} in {str(holder)!r}") from error


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or that of its parents which exists."""
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with the same ending, that takes its place once the block ends well."""
    with staged(path.parent) as folder:
        yield folder / path.name


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A temporary folder beside the files of `folder`, whose files move there once the block ends well."""
    stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=_nearest_folder(folder)))
    try:
        yield stage
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(stage.iterdir()):
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_table(columns: Mapping[str, Any] | pd.DataFrame, path: Path) -> None:
    """A table as CSV, TSV, Parquet or JSON lines, by the ending of `path`."""
    table, kind = pd.DataFrame(columns), table_format(path)
    if kind == "Parquet":
        table.to_parquet(path, index=False)
    elif kind == "JSON lines":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if kind == "TSV" else ",")
