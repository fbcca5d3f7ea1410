"""Tables of the command line, read with errors of one line and written."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import shlex
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
from pyarrow import parquet

from raters.errors import DataError, DataWarning
from raters.reporting.cells import for_people, quoting_of
from raters.reporting.facts import plain

_FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}


# Tables that are text may be compressed.
_ENDING = re.compile(r"(?<=.)(\.csv|\.tsv|\.jsonl|\.ndjson|\.parquet)((?<!\.parquet)\.gz)?$", re.I)

# Files of Parquet with more rows are read batch by batch.
_MOST_ROWS = 1_000_000

# Beginning of HDF 5, and so of netCDF 4.
_NETCDF = b"\x89HDF\r\n\x1a\n"
# What a name hardly holds, and a path does: an ending of files with text, or a folder.
_FILE = re.compile(
    rf"\.(csv|tsv|txt|jsonl?|ndjson|parquet|xlsx?|ods|gz)\s*$|[/{re.escape(os.sep)}]", re.I
)


def table_format(path: Path) -> str:
    """Format of a file by its name; `DataError` when it says nothing."""
    if (ending := _ENDING.search(path.name)) is None:
        raise DataError(
            f"cannot tell the format of {str(path)!r} from its name; expected .csv, .tsv, .jsonl or"
            " .ndjson (each also with .gz), or .parquet"
        )
    return _FORMATS[ending[1].lower()]


def is_result(path: Path) -> bool:
    """True for a file that is called as a result is, or begins as netCDF 4 does."""
    if path.suffix == ".nc":
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_NETCDF)) == _NETCDF


def companion(path: Path, mark: str) -> Path:
    """File to write beside a table or a JSON file: its name with `mark` in place of the ending."""
    stem = re.sub(rf"{_ENDING.pattern}|(?<=.)\.json$", "", path.name, flags=re.I)
    return path.with_name(stem + mark)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table from CSV, TSV, Parquet or JSON lines."""
    must_be_file(path)
    kind = table_format(path)
    if path.stat().st_size == 0:
        raise DataError(f"{str(path)!r} is empty; expected a {kind} table")
    try:
        if kind == "Parquet":
            return _parquet(path)
        if kind == "JSON lines":
            return _json_lines(path)
        return _separated(path, "\t" if kind == "TSV" else ",")
    except (ValueError, EOFError, OSError, zlib.error) as error:
        # Of a decoding error the text holds all bytes of the file.
        text = str(error) if not isinstance(error, UnicodeDecodeError) else _undecoded(path, error)
        lines = _unseparated(text).strip().splitlines() or [type(error).__name__]
        reason = lines[0].rstrip(".")
        raise DataError(f"{str(path)!r} is not a readable {kind} table: {reason}") from error


def is_large(path: Path) -> bool:
    """True for a table of Parquet that is read row by row: a folder of files, or a file with more
    rows than are read at once."""
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    is_parquet = path.is_file() and path.suffix.lower() == ".parquet"
    return is_parquet and path.stat().st_size > 0 and _num_rows(path) > _MOST_ROWS


def _num_rows(path: Path) -> int:
    """Number of rows of a file of Parquet, 0 where it is none."""
    try:
        return int(parquet.read_metadata(path).num_rows)
    except (ValueError, OSError):  # reading the table says what is wrong
        return 0


def must_be_file(path: Path) -> None:
    """`DataError` unless there is a file to read."""
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a directory; name a file in it")
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")


def _opened(path: Path) -> BinaryIO:
    """The bytes of a file, also of a compressed one."""
    if path.suffix.lower() == ".gz":
        return cast("BinaryIO", gzip.GzipFile(path))
    return path.open("rb")


def _encoding(path: Path) -> str:
    """The encoding that the first bytes tell: UTF-16 has a byte-order mark, and UTF-8 may."""
    with _opened(path) as file:
        head = file.read(1 << 16)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # begins as one of UTF-16
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head:
        raise ValueError("it is binary, not UTF-8 text")
    return "utf-8-sig"


def _lines(path: Path, newline: str) -> Iterator[str]:
    """The lines of a text, each with its end; `ValueError` at the character NUL."""
    with io.TextIOWrapper(_opened(path), _encoding(path), newline=newline) as file:
        for number, line in enumerate(file, 1):
            if "\0" in line:
                raise ValueError(
                    f"line {number} holds the character NUL, so it is binary or damaged, not"
                    " UTF-8 text"
                )
            yield line


def _undecoded(path: Path, error: UnicodeDecodeError) -> str:
    """Describe bytes that are no text, with a line that mends the file."""
    packed = path.suffix.lower() == ".gz"
    line = f"iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(str(path))} > utf8{path.suffix}"
    return f"it is not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8" + (
        ", and compress it then" if packed else f", or write {line}"
    )


def _parquet(path: Path) -> pd.DataFrame:
    """A table of Parquet, whole numbers with gaps among them kept as they are."""
    with path.open("rb") as file:
        table: pd.DataFrame = parquet.read_table(file).to_pandas(integer_object_nulls=True)
    return table


def _unseparated(text: str) -> str:
    """Text of an error of pandas about cells, with what mends them; any other as it is."""
    if ragged := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text):
        header, line, cells = ragged.groups()
        return (
            f"line {line} has {cells} cells, and the header {header}; quote cells that hold the"
            " separator, remove lines above the header, or name the separator in a first line such"
            " as sep=;"
        )
    return text


def _separated(path: Path, usual: str) -> pd.DataFrame:
    """A table of text, with columns apart by the mark that its header shows."""
    encoding = _encoding(path)
    with io.TextIOWrapper(_opened(path), encoding, newline="") as file:
        # As far as the fields that `csv` takes go.
        line = partial(file.readline, csv.field_size_limit())
        skipped, first = 0, line()
        while first and not first.strip():
            skipped, first = skipped + 1, line()
        # Excel writes the mark into a line before the header.
        told = re.fullmatch(r'"?sep=(.)"?', first.rstrip("\r\n"))
        header = line() if told else first
    mark = told[1] if told else _mark(header, usual)
    skipped += int(told is not None)
    _check_quotes(path, mark, skipped)
    # With the header among the rows, a row that is longer is an error. Blank lines are left out
    # here: pandas would also lose the space that a row begins with, where it reads in parts.
    table: pd.DataFrame = pd.read_csv(
        path,
        sep=mark,
        header=None,
        dtype=str,
        na_filter=False,
        skiprows=skipped,
        skip_blank_lines=False,
        encoding=encoding,
    )
    blank = (table.iloc[:, 1:] == "").all(axis=1) & (table[0].str.strip() == "")
    table = table[~blank]
    if table.empty:
        raise ValueError("it has no row with the names of its columns")
    names = [name or f"column {place}" for place, name in enumerate(table.iloc[0], 1)]
    check_distinct(names)
    return table.iloc[1:].set_axis(names, axis=1).reset_index(drop=True)


class _Quotes:
    """The quotation marks of a table of text, line by line."""

    def __init__(self, mark: str) -> None:
        sign = re.escape(mark)
        quoted, bare = r'"[^"]*(?:""[^"]*)*"', rf'(?!")[^{sign}]*'
        self._whole = re.compile(rf"(?:{quoted}|{bare})(?:{sign}(?:{quoted}|{bare}))*")
        self._closing = re.compile(r'[^"]*(?:""[^"]*)*"(?!")')
        self._mark = mark
        self._opened = 0
        self._lines: list[int] = []
        self._marks: int | None = None
        self.alone: list[tuple[int, int]] = []

    def read(self, number: int, line: str) -> None:
        """Read one line; `ValueError` at text behind a closing mark."""
        text = line.rstrip("\r\n")
        if self._opened or ('"' in text and not self._whole.fullmatch(text)):
            self._read_cells(number, text)
        self._lines.append(text.count(self._mark))
        if self._opened:
            return
        if self._marks is None:
            self._marks = sum(self._lines)
        elif len(self._lines) > 1 and self._marks and set(self._lines) == {self._marks}:
            self.alone.append((number - len(self._lines) + 1, number))
        self._lines = []

    def end(self) -> None:
        """`ValueError` where the last mark is without its other."""
        if self._opened:
            raise ValueError(
                f"a quotation mark in line {self._opened} has no other at its end; close it, or"
                ' quote the cell and double the mark, such as "5"" disk"'
            )

    def _read_cells(self, number: int, text: str) -> None:
        """Cells from the beginning of a line, up to one that goes on in the next."""
        place = 0
        while place <= len(text):
            if not self._opened:
                if not text.startswith('"', place):
                    place = text.find(self._mark, place) + 1 or len(text) + 1
                    continue
                self._opened, place = number, place + 1
            closing = self._closing.match(text, place)
            if closing is None:
                return
            self._check_behind(number, text, closing.end())
            self._opened, place = 0, closing.end() + 1

    def _check_behind(self, number: int, text: str, place: int) -> None:
        """`ValueError` unless the cell ends with its closing mark."""
        behind = text[place:]
        if not behind or behind.startswith(self._mark):
            return
        where = "" if self._opened == number else f", closed in line {number}"
        remedy = (
            "a mark inside of a cell is doubled, not written with \\"
            if text[:place].endswith('\\"')
            else "close the cell where it ends, and double a mark inside of it"
        )
        raise ValueError(
            f"the quoted cell that begins in line {self._opened}{where} has text behind its closing"
            f' quotation mark, {behind[:20]!r}; {remedy}, such as "5"" disk"'
        )


def _check_quotes(path: Path, mark: str, skipped: int) -> None:
    """Raise `ValueError` where quotation marks are not in pairs; warn where rows may be one
    cell."""
    with _opened(path) as file:
        # A tenth of the time that reading a million lines one by one takes.
        parts = iter(partial(file.read, 1 << 20), b"")
        if not any(b'"' in part or b"\0" in part for part in parts):
            return
    quotes = _Quotes(mark)
    for number, line in enumerate(_lines(path, ""), 1):
        if number > skipped:
            quotes.read(number, line)
    quotes.end()
    if quotes.alone:
        listed = ", ".join(f"{first} to {last}" for first, last in quotes.alone[:5])
        more = f" ({len(quotes.alone)} such places)" if len(quotes.alone) > 5 else ""
        warnings.warn(
            f"{str(path)!r}: lines {listed}{more} are read as one row, because a quoted cell goes"
            " over their ends, and each of them alone would be a row, too; if they are rows, a"
            " quotation mark is missing or too many there",
            DataWarning,
            stacklevel=2,
        )


def _mark(header: str, usual: str) -> str:
    """The mark that splits the header into most columns; the usual one, if it does."""
    marks = (usual, *(mark for mark in ",;\t|" if mark != usual))
    return max(marks, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))


def check_distinct(names: Sequence[str]) -> None:
    """Raise `ValueError` when two columns have the same name."""
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{names.count(twice[0])} columns are called {twice[0]!r}; rename them")


def _json_lines(path: Path) -> pd.DataFrame:
    """One flat object a line. Read here, because pandas turns columns into dates by their names."""
    rows = []
    for number, line in enumerate(_lines(path, "\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object, parse_float=str, parse_int=_whole)
            if "\\u" in line:  # Half of a pair of surrogates is no character.
                json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"line {number} holds half of a surrogate pair (such as \\ud800), which is no"
                " character"
            ) from error
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"line {number} is not JSON ({error})") from error
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(row, dict) or any(
            isinstance(value, (list, dict)) for value in row.values()
        ):
            raise ValueError(
                f'line {number} is not one flat object such as {{"winner": "a", "loser": "b"}}'
            )
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    check_distinct([name for name, _ in pairs])
    return dict(pairs)


def _whole(text: str) -> int | str:
    """A whole number, or its text where a number has another, such as -0."""
    number = int(text)
    return number if str(number) == text else text


def names_in(text: str) -> list[str]:
    """Names separated by commas, or from a file with one a line: there, as they stand."""
    # Of a text that is too long for a path, `Path.is_file` raises.
    if not os.path.isfile(path := Path(text)):
        return _listed_names(text)
    if _ENDING.search(path.name):
        raise DataError(
            f"{text!r} is a table by its name, and a file of names has one name a line and no"
            " header; save the column with the names as such a file,"
            f" {companion(path, '.txt').name!r}, and give that"
        )
    try:
        lines = [line.removesuffix("\n").removesuffix("\r") for line in _lines(path, "\n")]
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{text!r} is not UTF-8 text; give a file with one name a line") from error
    return [line for line in lines if line.strip()]


def _listed_names(text: str) -> list[str]:
    """Names separated by commas, each with or without quotation marks."""
    if '"' in text:
        try:
            names = next(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise DataError(
                f"{text!r} is no list of names ({error}); put a name with a comma between quotation"
                ' marks, and double those inside of it, such as \'"salt, pepper","5"" disk"\''
            ) from error
    else:
        names = text.split(",")
        if len(names) == 1 and _FILE.search(text):
            raise DataError(
                f"there is no file {text!r}; correct its name, or, if this is a name itself, write"
                f" {shlex.quote(f'"{text}"')}"
            )
    return [name.strip() for name in names if name.strip()]


# ---------------------------------------------------------------- writing


def write_for_people(table: pd.DataFrame, path: Path) -> None:
    """A table by the ending of `path`, in which text stays text where a spreadsheet opens it."""
    in_spreadsheets = table_format(path) in ("CSV", "TSV")
    write_table(for_people(table) if in_spreadsheets else table, path)


def write_table(columns: Mapping[str, Any] | pd.DataFrame, path: Path) -> None:
    """A table as CSV, TSV, Parquet or JSON lines, by the ending of `path`."""
    table, kind = pd.DataFrame(columns), table_format(path)
    if kind == "Parquet":
        table.to_parquet(path, index=False)
    elif kind == "JSON lines":
        _write_json_lines(table, path)
    else:
        separator = "\t" if kind == "TSV" else ","
        table.to_csv(path, index=False, sep=separator, quoting=quoting_of(table))


def _write_json_lines(table: pd.DataFrame, path: Path) -> None:
    """One flat object a line. Written here, because pandas keeps ten digits of a number."""
    lines = "".join(json.dumps(plain(row)) + "\n" for row in table.to_dict("records"))
    path.write_bytes(
        gzip.compress(lines.encode()) if path.suffix.lower() == ".gz" else lines.encode()
    )
