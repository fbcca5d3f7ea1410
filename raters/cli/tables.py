"""Files of the command line: tables read with one-line errors, and outputs that appear whole or not
at all."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from raters.errors import DataError, SettingError
from raters.judgements.names import alike

_FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}
# Outputs are prepared in a folder of this name beside where they go, so that moving them there is
# one step.
_STAGE = ".raters-"


def table_format(path: Path) -> str:
    """Format of a file by its name; `DataError` when it says nothing."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] in (
        [".csv"],
        [".tsv"],
        [".jsonl"],
        [".ndjson"],
    ):
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise DataError(
            f"cannot tell the format of {str(path)!r} from its name; expected .csv, .tsv, .jsonl or"
            " .ndjson (each also with .gz), or .parquet"
        )
    return _FORMATS[suffixes[-1]]


def read_table(path: Path) -> pd.DataFrame:
    """A table from CSV, TSV, Parquet or JSON lines; names keep their spelling (007 stays 007)."""
    must_be_file(path)
    kind = table_format(path)
    if path.stat().st_size == 0:
        raise DataError(f"{str(path)!r} is empty; expected a {kind} table")
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
            table = pd.read_csv(
                path, sep=separator, dtype=str, index_col=False, encoding="utf-8-sig"
            )
            return _one_separator(table, separator).apply(as_written)
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"{str(path)!r} is not a readable {kind} table: some rows have more values than the"
            " header"
        ) from error
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
    with (gzip.open if path.suffix.lower() == ".gz" else open)(
        path, "rt", encoding="utf-8-sig"
    ) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON ({error})") from error
            if not isinstance(row, dict) or any(
                isinstance(value, (list, dict)) for value in row.values()
            ):
                raise ValueError(
                    f'line {number} is not one flat object such as {{"winner": "a", "loser": "b"}}'
                )
            rows.append(row)
    return pd.DataFrame(rows)


def _one_separator(table: pd.DataFrame, expected: str) -> pd.DataFrame:
    header = str(table.columns[0])
    if len(table.columns) == 1 and (
        separator := next((mark for mark in ";\t|," if mark in header), None)
    ):
        raise ValueError(
            f"its columns are separated by {separator!r}, where {expected!r} was expected"
        )
    return table


def as_written(column: pd.Series) -> pd.Series:
    """Text as whole numbers where nothing is lost by it, and as numbers where it can only be an
    outcome."""
    numbers = pd.to_numeric(column, errors="coerce")
    if len(column) == 0 or numbers.isna().any():
        return column
    if numbers.dtype.kind in "iu" and (numbers.astype(str) == column).all():
        return numbers
    return numbers if set(numbers.unique()) <= {0.0, 0.5, 1.0} else column


def names_in(text: str) -> list[Any]:
    """Names separated by commas, or from a file with one a line; numbers where all are whole."""
    path = Path(text)
    try:
        lines = (
            path.read_text("utf-8-sig").splitlines()
            if len(text) < 4096 and path.is_file()
            else text.split(",")
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{text!r} is not UTF-8 text; give a file with one name a line") from error
    names = [line.strip() for line in lines if line.strip()]
    return alike([[_as_number(name) for name in names]])[0] if names else []


def _as_number(name: str) -> Any:
    return int(name) if name.isdecimal() and str(int(name)) == name else name


# ---------------------------------------------------------------- writing


def check_writable(path: Path, *, folder: bool, option: str = "--out") -> None:
    """`SettingError` when `path` cannot be written, before hours are spent on what should go
    there."""
    if folder and path.exists() and not path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a file; name a folder")
    if not folder and path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a folder; name a file")
    if not folder and not path.parent.is_dir():
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}"
        )
    holder = _nearest_folder(path if folder else path.parent)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=_STAGE, dir=holder))
    except OSError as error:
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: {error.strerror} in {str(holder)!r}"
        ) from error


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or that of its parents which exists."""
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with the same ending, that takes its place once the block
    ends well."""
    with staged(path.parent) as folder:
        yield folder / path.name


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A temporary folder beside the files of `folder`, whose files move there once the block ends
    well."""
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
