"""Content of the files that people have: tables as they stand, with text where a file holds text,
and JSON."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import shlex
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype
from pyarrow import parquet

from raters.errors import DataError
from raters.judgements.names import shorten

_FORMATS = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "ndjson": "JSON lines"}
_FORMATS |= {"parquet": "Parquet", "json": "JSON", "xlsx": "Excel"}
_WRITTEN = ("CSV", "TSV", "JSON lines", "Parquet")
# Ending of the name of a table; text may be compressed.
ENDING = re.compile(r"(?<=.)\.(?:(csv|tsv|jsonl|ndjson|json)(?:\.gz)?|(parquet|xlsx))$", re.I)
# Files of Parquet with more rows are read batch by batch.
_MOST_ROWS = 1_000_000


class Several(dict[str, Any]):
    """Content of several files by the stems of their names."""


def table_format(path: Path, *, written: bool = False) -> str:
    """Format of a file by its name, which must be one to write where that is `written`."""
    ending = ENDING.search(path.name)
    name = _FORMATS[(ending[1] or ending[2]).lower()] if ending else ""
    if not name or (written and name not in _WRITTEN):
        more = "" if written else ", .json or .xlsx"
        if path.suffix == ".eval":
            more += "; of inspect_ai, what `inspect log convert --to json` writes"
        expected = f"expected .csv, .tsv, .jsonl or .ndjson (each also .gz), or .parquet{more}"
        raise DataError(f"cannot tell the format of {str(path)!r} from its name; {expected}")
    return name


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


def must_be_file(path: Path) -> None:
    """`DataError` unless there is a file to read."""
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a directory; name a file in it")
    if not path.exists():
        raise DataError(f"there is no file {str(path)!r}")


def content_of(path: Path) -> Any:
    """A pandas table, or the content of JSON; of a folder or a ZIP file, that of the JSON files in
    it."""
    if path.is_dir():
        inside = sorted(one for one in path.iterdir() if _is_json(one.name))
        if not inside:
            raise DataError(f"{str(path)!r} is a directory without JSON files; name a file in it")
        return several(inside)
    must_be_file(path)
    zipped = path.suffix.lower() == ".zip"
    kind = "ZIP file of JSON" if zipped else f"{table_format(path)} table"
    try:
        content = path.read_bytes()
        if not content:
            raise ValueError("it is empty")
        return _zipped(content) if zipped else _parsed(content, path)
    except (ValueError, EOFError, OSError, zlib.error, csv.Error, zipfile.BadZipFile) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} is not a readable {kind}: {reason}") from error


def several(paths: Sequence[Path]) -> Several:
    """Content of several files by the stems of their names."""
    content = Several({ENDING.sub("", path.name): content_of(path) for path in paths})
    if len(content) < len(paths):
        raise DataError(f"two of the files {shorten(map(str, paths))} have one name; rename one")
    return content


def read_table(path: Path) -> pd.DataFrame:
    """Read a table with one value in each cell; of text, every cell is text."""
    must_be_file(path)
    table = as_table(content_of(path))
    if table is None or nested(table):
        where = "" if table is None else f" in its column {nested(table)[0]!r}"
        problem = f"{str(path)!r} is no flat table, as it holds lists or objects{where}"
        raise DataError(f'{problem}; expected rows such as {{"winner": "a", "loser": "b"}}')
    return table


def as_table(content: Any) -> pd.DataFrame | None:
    """Content of JSON as a table: rows as objects, or columns as lists; None for anything else."""
    if isinstance(content, (pd.DataFrame, Several)):
        return None if isinstance(content, Several) else content
    if isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        return pd.DataFrame(content, dtype=object)
    if isinstance(content, dict) and content:
        columns = list(content.values())
        lists = all(hasattr(one, "__len__") and not isinstance(one, (str, dict)) for one in columns)
        if lists and len({len(one) for one in columns}) == 1:
            return pd.DataFrame({name: list(one) for name, one in content.items()}, dtype=object)
        if all(isinstance(one, dict) and one.keys() == columns[0].keys() for one in columns):
            return pd.DataFrame(content, dtype=object)  # as pandas writes JSON
    return None


def nested(table: pd.DataFrame) -> list[str]:
    """Names of the columns with lists or objects among their cells."""
    objects = [name for name in table if table[name].dtype == object]
    # Cells of one type are seen in a hundredth of the time.
    mixed = [name for name in objects if infer_dtype(table[name]).startswith("mixed")]
    return [name for name in mixed if any(map(is_nested, table[name]))]


def is_nested(cell: Any) -> bool:
    """True for a cell that holds several values."""
    return isinstance(cell, (list, dict, tuple, np.ndarray))


# ---------------------------------------------------------------- formats


def _is_json(name: str) -> bool:
    ending = ENDING.search(name)
    return ending is not None and (ending[1] or "").lower() in ("json", "jsonl", "ndjson")


def _parsed(content: bytes, path: Path) -> Any:
    """Content of one file, whose name says how to read it."""
    kind = table_format(path)
    if kind == "Parquet":
        return parquet.read_table(io.BytesIO(content)).to_pandas(integer_object_nulls=True)
    if kind == "Excel":
        return _sheet(content)
    text = _text(content, path)
    if kind in ("CSV", "TSV"):
        return _separated(text, kind == "TSV")
    return _json_lines(text) if kind == "JSON lines" else _json(text)


def _zipped(content: bytes) -> Several:
    """The JSON files in a ZIP file."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        inside = [Path(name) for name in packed.namelist() if _is_json(name)]
        names = [ENDING.sub("", one.name) for one in inside]
        if not names or len({*names}) < len(names):
            raise ValueError("it must hold files of JSON, each with a name of its own")
        try:
            files = [packed.read(one.as_posix()) for one in inside]
        except (RuntimeError, NotImplementedError) as error:  # It has a password, or other packing.
            raise ValueError(f"{error}; unpack it, and give the folder") from error
    return Several(zip(names, map(_parsed, files, inside), strict=True))


def _sheet(content: bytes) -> pd.DataFrame:
    """The only sheet of a workbook that has rows."""
    try:
        cells: Any = {"dtype": object, "keep_default_na": False, "na_values": [""]}
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, engine="openpyxl", **cells)
    except ImportError as error:
        problem = "Excel files are read by openpyxl, which is not installed"
        raise ValueError(f"{problem}: pip install openpyxl, or save the sheet as CSV") from error
    except Exception as error:  # The library raises whatever it meets in a damaged file.
        raise ValueError(f"{type(error).__name__}: {error}") from error
    filled = {name: sheet for name, sheet in sheets.items() if len(sheet)}
    if len(filled) != 1:
        names = shorten(filled or sheets)
        raise ValueError(f"{len(filled)} sheets have rows ({names}); save one as CSV")
    return next(iter(filled.values())).rename(columns=str)


def _text(content: bytes, path: Path) -> str:
    """Text of a file, also of a compressed one; byte-order marks tell UTF-16."""
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
        problem = f"the quotation marks of the cell that begins in line {line} are not in pairs"
        such = 'double a mark inside of a quoted cell, such as "5"" disk"'
        raise ValueError(f"{problem} ({error}); {such}") from error
    if not rows:
        raise ValueError("it has no row with the names of its columns")
    names = [name or f"column {place}" for place, name in enumerate(rows[0], 1)]
    _check_distinct(names)
    for place, row in enumerate(rows):
        if len(row) > len(names):
            problem = f"row {place} has {len(row)} cells, and the header {len(names)}"
            expected = "quote cells that hold the separator, or remove lines above the header"
            raise ValueError(f"{problem}; {expected}, or name the separator in a first line sep=;")
        row += [""] * (len(names) - len(row))
    return pd.DataFrame(rows[1:], columns=names, dtype=object)


def _check_distinct(names: list[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{names.count(twice[0])} columns are called {twice[0]!r}; rename them")


def _json_lines(text: str) -> list[dict[str, Any]]:
    """One object a line."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = _json(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f'line {number} is no object such as {{"winner": "a", "loser": "b"}}')
        rows.append(row)
    return rows


def _json(text: str) -> Any:
    """Content of JSON. Read here, because pandas turns columns into dates by their names; the
    digits of a number with a point are kept."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=str)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_distinct([name for name, _ in pairs])
    return dict(pairs)


def names_in(text: str) -> list[str]:
    """Names separated by commas, or from a file with one a line."""
    path = Path(text)
    if re.search(r"\.txt\s*$|/", text) and "," not in text:
        must_be_file(path)
        try:
            lines = re.split("\r?\n", _text(path.read_bytes(), path))
        except (ValueError, OSError) as error:
            raise DataError(f"{text!r} is no text with one name a line: {error}") from error
        return [line for line in lines if line.strip()]
    if ENDING.search(text) and "," not in text:
        raise DataError(f"{text!r} is a table by its name; give a .txt file, one name a line")
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        such = '"salt, pepper","5"" disk"'
        expected = f"put a name with a comma between quotation marks, such as {such!r}"
        raise DataError(f"{text!r} is no list of names ({error}); {expected}") from error
    return [name.strip() for name in names if name.strip()]
