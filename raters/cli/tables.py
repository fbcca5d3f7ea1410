"""Tables that the command line reads and writes."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import shlex
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import parquet

from raters.errors import DataError
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


def table_format(path: Path) -> str:
    """Format of a file by its name; `DataError` when it says nothing."""
    if (ending := _ENDING.search(path.name)) is None:
        raise DataError(
            f"cannot tell the format of {str(path)!r} from its name; expected .csv, .tsv, .jsonl or"
            " .ndjson (each also with .gz), or .parquet"
        )
    return _FORMATS[ending[1].lower()]


def is_result(path: Path) -> bool:
    """True for a file that is called as a result is."""
    return path.suffix == ".nc"


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
    try:
        if path.stat().st_size == 0:
            raise ValueError("it is empty")
        if kind == "Parquet":
            with path.open("rb") as file:
                table: pd.DataFrame = parquet.read_table(file).to_pandas(integer_object_nulls=True)
                return table
        text = _text(path)
        return _json_lines(text) if kind == "JSON lines" else _separated(text, kind == "TSV")
    except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} is not a readable {kind} table: {reason}") from error


def _text(path: Path) -> str:
    """Text of a file, also of a compressed one; byte-order marks tell UTF-16."""
    content = path.read_bytes()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = f"iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(str(path))}"
        raise ValueError(f"it is not UTF-8 text; save it as UTF-8, or write {line}") from error
    if "\0" in text:
        raise ValueError("it holds the character NUL, so it is binary or damaged, not UTF-8 text")
    return text


def _separated(text: str, by_tab: bool) -> pd.DataFrame:
    """A table of text, with columns apart by the mark that its header shows."""
    text = text.lstrip("\r\n")
    first = text.split("\n", 1)[0].rstrip("\r")
    marks = "\t,;|" if by_tab else ",;\t|"
    mark = max(marks, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))
    if named := re.fullmatch(r'"?sep=(.)"?', first):  # Which Excel writes before the header.
        mark, text = named[1], text.partition("\n")[2]
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            line = reader.line_num + 1
            if any(row[1:]) or (row and row[0].strip()):
                rows.append(row)
    except csv.Error as error:
        raise ValueError(
            f"the quotation marks of the cell that begins in line {line} are not in pairs"
            f' ({error}); double a mark inside of a quoted cell, such as "5"" disk"'
        ) from error
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


def _check_distinct(names: list[str]) -> None:
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{names.count(twice[0])} columns are called {twice[0]!r}; rename them")


def _json_lines(text: str) -> pd.DataFrame:
    """One flat object a line. Read here, because pandas turns columns into dates by their names."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object, parse_float=str)
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


def names_in(text: str) -> list[str]:
    """Names separated by commas, or from a file with one a line."""
    path = Path(text)
    if re.search(r"\.txt\s*$|/", text) and "," not in text:
        must_be_file(path)
        try:
            lines = re.split("\r?\n", _text(path))
        except (ValueError, OSError) as error:
            raise DataError(f"{text!r} is no text with one name a line: {error}") from error
        return [line for line in lines if line.strip()]
    if _ENDING.search(text) and "," not in text:
        raise DataError(f"{text!r} is a table by its name; give a .txt file, one name a line")
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
