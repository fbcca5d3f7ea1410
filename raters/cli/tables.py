"""Tables that the command line reads and writes."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import shlex
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import parquet

from raters.errors import DataError, DataWarning
from raters.reporting.facts import plain
from raters.reporting.files import for_people, quoting_of

_FORMATS = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}
_ENDING = re.compile(r"(?<=.)(\.csv|\.tsv|\.jsonl|\.ndjson|\.parquet)((?<!\.parquet)\.gz)?$", re.I)
# Files of Parquet with more rows are read batch by batch.
_MOST_ROWS = 1_000_000
# Beginning of HDF 5, and so of netCDF 4.
_NETCDF = b"\x89HDF\r\n\x1a\n"


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
    if path.suffix == ".nc" or not path.is_file():
        return path.suffix == ".nc"
    with path.open("rb") as file:
        return file.read(len(_NETCDF)) == _NETCDF


def is_large(path: Path) -> bool:
    """True for Parquet that is read row by row: a folder of files, or a file of many rows."""
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    if not path.is_file() or path.suffix.lower() != ".parquet":
        return False
    try:
        return int(parquet.read_metadata(path).num_rows) > _MOST_ROWS
    except (ValueError, OSError):  # Reading the table says what is wrong.
        return False


def companion(path: Path, mark: str) -> Path:
    """File to write beside a table or a JSON file: its name with `mark` in place of the ending."""
    stem = re.sub(rf"{_ENDING.pattern}|(?<=.)\.json$", "", path.name, flags=re.I)
    return path.with_name(stem + mark)


def must_be_file(path: Path) -> None:
    """`DataError` unless there is a file to read."""
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a directory; name a file in it")
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")


def read_table(path: Path) -> pd.DataFrame:
    """Read a table from CSV, TSV, Parquet or JSON lines; of text, every cell is text."""
    must_be_file(path)
    kind = table_format(path)
    if path.stat().st_size == 0:
        raise DataError(f"{str(path)!r} is empty; expected a {kind} table")
    try:
        if kind == "Parquet":
            with path.open("rb") as file:
                table: pd.DataFrame = parquet.read_table(file).to_pandas(integer_object_nulls=True)
                return table
        text = _text(path)
        return _json_lines(text) if kind == "JSON lines" else _separated(text, path, kind == "TSV")
    except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} is not a readable {kind} table: {reason}") from error


def _text(path: Path) -> str:
    """Text of a file, also of a compressed one; byte-order marks tell UTF-16."""
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # Begins as UTF-16 does.
        text = content.decode("utf-32")
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = content.decode("utf-16")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = f"iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(str(path))}"
            raise ValueError(f"it is not UTF-8 text; save it as UTF-8, or write {line}") from error
    if "\0" in text:
        raise ValueError("it holds the character NUL, so it is binary or damaged, not UTF-8 text")
    return text


def _separated(text: str, path: Path, by_tab: bool) -> pd.DataFrame:
    """A table of text, with columns apart by the mark that its header shows."""
    text = text.lstrip("\r\n")
    first = text.split("\n", 1)[0].rstrip("\r")
    if told := re.fullmatch(r'"?sep=(.)"?', first):  # Which Excel writes before the header.
        mark, text = told[1], text.partition("\n")[2]
    else:
        mark = _mark(first, "\t" if by_tab else ",")
    if '"' in text:
        rows = _quoted_rows(text, mark, path)
    else:
        rows = [line.split(mark) for line in re.split("\r\n|\r|\n", text)]
    rows = [row for row in rows if any(row[1:]) or (row and row[0].strip())]
    if not rows:
        raise ValueError("it has no row with the names of its columns")
    names = [name or f"column {place}" for place, name in enumerate(rows[0], 1)]
    _check_distinct(names)
    for place, row in enumerate(rows):
        if len(row) > len(names):
            raise ValueError(
                f"row {place} has {len(row)} cells, and the header {len(names)}; quote cells that"
                " hold the separator, remove lines above the header, or name the separator in a"
                " first line such as sep=;"
            )
        row += [""] * (len(names) - len(row))
    return pd.DataFrame(rows[1:], columns=names, dtype=object)


def _quoted_rows(text: str, mark: str, path: Path) -> list[list[str]]:
    """Rows some of whose cells are in quotation marks."""
    csv.field_size_limit(2**31 - 1)
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(lines, delimiter=mark, strict=True)
    rows: list[list[str]] = []
    before = 0
    try:
        for row in reader:
            rows.append(row)
            own, before = lines[before : reader.line_num], reader.line_num
            if len(own) > 1 and {line.count(mark) for line in own} == {len(rows[0]) - 1} != {0}:
                warnings.warn(
                    f"{str(path)!r}: lines {before - len(own) + 1} to {before} are read as one row,"
                    " because a quoted cell goes over their ends; if they are rows, a"
                    " quotation mark is missing or too many there",
                    DataWarning,
                    stacklevel=2,
                )
    except csv.Error as error:
        raise ValueError(
            f"the quotation marks of the cell that begins in line {before + 1} are not in pairs"
            f' ({error}); double a mark inside of a quoted cell, such as "5"" disk"'
        ) from error
    return rows


def _mark(header: str, usual: str) -> str:
    """The mark that splits the header into most columns; the usual one, if it does."""
    marks = (usual, *(mark for mark in ",;\t|" if mark != usual))
    return max(marks, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))


def _check_distinct(names: Sequence[str]) -> None:
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{names.count(twice[0])} columns are called {twice[0]!r}; rename them")


def _json_lines(text: str) -> pd.DataFrame:
    """One flat object a line. Read here, because pandas turns columns into dates by their names."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object, parse_float=str, parse_int=_whole)
            if "\\u" in line:  # Half of a pair of surrogates is no character.
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from error
        cells = row.values() if isinstance(row, dict) else [[]]
        if any(isinstance(cell, (list, dict)) for cell in cells):
            raise ValueError(
                f'line {number} is not one flat object such as {{"winner": "a", "loser": "b"}}'
            )
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_distinct([name for name, _ in pairs])
    return dict(pairs)


def _whole(text: str) -> int | str:
    """A whole number, or its text where a number has another, such as -0."""
    number = int(text)
    return number if str(number) == text else text


def names_in(text: str) -> list[str]:
    """Names separated by commas, or from a file with one a line."""
    path = Path(text)
    try:
        is_file = path.is_file()
    except OSError:  # Too long for a path.
        is_file = False
    if is_file:
        if _ENDING.search(path.name):
            raise DataError(f"{text!r} is a table by its name; give a .txt file, one name a line")
        try:
            lines = re.split("\r?\n", _text(path))
        except (ValueError, OSError) as error:
            raise DataError(f"{text!r} is no text with one name a line: {error}") from error
        return [line for line in lines if line.strip()]
    if re.search(r"\.(csv|tsv|txt|jsonl?|parquet|xlsx?)\s*$|/", text) and "," not in text:
        quoted = shlex.quote(f'"{text}"')
        raise DataError(f"there is no file {text!r}; if this is a name itself, write {quoted}")
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(
            f"{text!r} is no list of names ({error}); put a name with a comma between quotation"
            ' marks, and double those inside of it, such as \'"salt, pepper","5"" disk"\''
        ) from error
    return [name.strip() for name in names if name.strip()]


def write_for_people(table: pd.DataFrame, path: Path) -> None:
    """A table by the ending of `path`, in which text stays text where a spreadsheet opens it."""
    in_spreadsheets = table_format(path) in ("CSV", "TSV")
    write_table(for_people(table) if in_spreadsheets else table, path)


def write_table(columns: Mapping[str, Any] | pd.DataFrame, path: Path) -> None:
    """A table as CSV, TSV, Parquet or JSON lines, by the ending of `path`."""
    table, kind = pd.DataFrame(columns), table_format(path)
    if kind == "Parquet":
        table.to_parquet(path, index=False)
    elif kind == "JSON lines":  # Written here, because pandas keeps ten digits of a number.
        lines = "".join(json.dumps(plain(row)) + "\n" for row in table.to_dict("records"))
        packed = path.suffix.lower() == ".gz"
        path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    else:
        separator = "\t" if kind == "TSV" else ","
        table.to_csv(path, index=False, sep=separator, quoting=quoting_of(table))
