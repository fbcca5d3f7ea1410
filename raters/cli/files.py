"""Files that the command line reads and writes, and what it prints. Outputs appear whole or not at
all, and never in place of a file that raters did not write."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import warnings
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from pyarrow import parquet

from raters.cli.interrupts import on_interrupt
from raters.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from raters.judgements.display import display_name, visible
from raters.reporting.facts import plain
from raters.reporting.files import write_csv

# Writers of files by name.
Files = dict[str, Callable[[Path], object]]
_ENDING = re.compile(r"(?<=.)(\.csv|\.tsv|\.jsonl|\.ndjson|\.parquet)((?<!\.parquet)\.gz)?$", re.I)
_FORMATS = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet"}
# Files of Parquet with more rows are read batch by batch.
_MOST_ROWS = 1_000_000
# In each folder, the files that raters wrote there.
MANIFEST = ".raters-files.json"


# ---------------------------------------------------------------- what is printed


def note(line: str, quiet: bool = False) -> None:
    """Print a line for the person on standard error, unless it is not wanted."""
    if not quiet:
        print(f"raters: {visible(' '.join(line.split()))}", file=sys.stderr)


def show(table: pd.DataFrame) -> None:
    """Print a table, in which no text steers the terminal."""
    print(table.map(_cell).to_string(index=False))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= 0.001 or not value else f"{value:.1e}"
    return value if isinstance(value, int) else display_name(value, 40)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings as one line each on standard error, and as a list; each only once."""
    seen: list[str] = []

    def keep(message: Any, *_args: Any, **_settings: Any) -> None:
        text = visible(" ".join(str(message).split()))
        if text not in seen:
            seen.append(text)
            note(f"warning: {text}")

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = keep
        yield seen


# ---------------------------------------------------------------- what is read


def table_format(path: Path) -> str:
    """Format of a file by its name; `DataError` when it says nothing."""
    if (ending := _ENDING.search(path.name)) is None:
        raise DataError(
            f"cannot tell the format of {str(path)!r} from its name; expected .csv, .tsv, .jsonl or"
            " .ndjson (each also with .gz), or .parquet"
        )
    return _FORMATS.get(ending[1][1:].lower(), "JSON lines")


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
                return parquet.read_table(file).to_pandas(integer_object_nulls=True)
        text = _text(path)
        return _json_lines(text) if kind == "JSON lines" else _separated(text, kind == "TSV")
    except (ValueError, EOFError, OSError, zlib.error, csv.Error) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} is not a readable {kind} table: {reason}") from error


def check_columns(table: pd.DataFrame, path: Path, names: Sequence[str]) -> None:
    """`DataError` unless a table has these columns."""
    if missing := [name for name in names if name not in table]:
        columns = list(map(str, table.columns))
        raise DataError(f"{str(path)!r} has no column {missing[0]!r}; it has {columns}")


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
    if twice := [name for name in names if names.count(name) > 1]:
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


def read_result(path: Path) -> xr.DataTree:
    """A result that was saved."""
    must_be_file(path)
    known = _manifest(path.parent)
    if path.name in known and not _is_unchanged(path, known):
        # netCDF may hang on a damaged file.
        raise DataError(
            f"{str(path)!r} is not as raters wrote it: it is damaged or was changed; write it again"
            " with raters fit, or, if it was changed on purpose, give a copy of another name"
        )
    try:
        with xr.open_datatree(path, engine="netcdf4") as stored:
            result = stored.load()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{str(path)!r} is not a netCDF file that can be read; give what raters fit wrote"
        ) from error
    if "model" not in result.attrs or not {"posterior", "constant_data"} <= set(result.children):
        raise DataError(
            f"{str(path)!r} is a netCDF file, but no result of raters; give what raters fit wrote"
        )
    return result


# ---------------------------------------------------------------- what is written


def check_writable(
    path: Path, given: Namespace, *, option: str = "--out", names: Sequence[str] = ()
) -> None:
    """Raise unless a file, or a folder with files of these names, can be written, before hours are
    spent on what should go there. What a command reads is not replaced."""
    folder, problem = path if names else path.parent, ""
    named = [getattr(given, name, None) for name in ("file", "journal", "texts")]
    read = [one for one in (*named, *getattr(given, "gold", ())) if one and one.is_file()]
    if names and path.is_file():
        problem = "is a file; name a folder"
    elif not names and not folder.is_dir():
        problem = f"cannot be written: there is no folder {str(folder)!r}"
    elif not names and (path.is_dir() or not path.name):
        problem = "is a folder; name a file"
    elif path.is_file() and any(map(path.samefile, read)):
        problem = "is a file that is read; name another"
    if problem:
        raise SettingError(f"{option} {str(path)!r} {problem}")
    _check_replaceable(folder, names or [path.name], getattr(given, "force", False))
    holder = _nearest_folder(folder)
    if not os.access(holder, os.W_OK):
        raise SettingError(f"{option} {str(path)!r} cannot be written: {str(holder)!r} is not ours")


def check_table(given: Namespace) -> None:
    """Raise unless a table can be written, where one is asked for."""
    if given.out is not None:
        table_format(given.out)
        check_writable(given.out, given)


def write_asked(table: pd.DataFrame, given: Namespace) -> None:
    """Write a table where one is asked for."""
    if given.out is not None:
        write_file(given.out, partial(write_table, table), given.force)
        note(f"wrote {len(table)} rows to {given.out}", given.quiet)


def write_table(table: pd.DataFrame, path: Path, *, people: bool = True) -> None:
    """A table as CSV, TSV, Parquet or JSON lines, by the ending of `path`. One for people has text
    that stays text where a spreadsheet opens it."""
    kind = table_format(path)
    if kind == "Parquet":
        table.to_parquet(path, index=False)
    elif kind == "JSON lines":  # Written here, because pandas keeps ten digits of a number.
        lines = "".join(json.dumps(plain(row)) + "\n" for row in table.to_dict("records"))
        packed = path.suffix.lower() == ".gz"
        path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    else:
        write_csv(table, path, "\t" if kind == "TSV" else ",", people=people)


def write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def to_netcdf(result: xr.DataTree, path: Path) -> None:
    """Write a result; a disk without room is an `OSError`."""
    try:
        result.to_netcdf(path)
    except RuntimeError as error:
        raise OSError(f"the netCDF file cannot be written ({error})") from error


def write_file(path: Path, write: Callable[[Path], object], force: bool = False) -> None:
    """Write one file whole, or not at all."""
    write_folder(path.parent, {path.name: write}, force)


def write_folder(
    folder: Path, files: Files, force: bool = False, *, whole: bool = False
) -> list[str]:
    """Write several files into a folder, all or none; those of an earlier run that are not written
    again go where the folder is `whole`. An interrupt waits until they are written."""
    interrupts: list[object] = []
    try:
        near = tempfile.TemporaryDirectory(
            prefix=".raters-", dir=_nearest_folder(folder), ignore_cleanup_errors=True
        )
        with on_interrupt(lambda *_: interrupts.append(True)), near as temporary:
            stage = Path(temporary)
            for name, write in files.items():
                write(stage / name)
                with (stage / name).open("r+b") as file:
                    os.fsync(file)  # some file systems find only then that there is no room
            folder.mkdir(parents=True, exist_ok=True)
            _check_replaceable(folder, list(files), force)
            known = _manifest(folder)
            old = [name for name in known if whole and known[name][1] and name not in files]
            gone = [name for name in old if _is_unchanged(folder / name, known)]
            left = {name: known[name] for name in known if name not in gone}
            written = {name: (_checksum(stage / name), whole) for name in files}
            text = json.dumps({"files": left | written}, indent=1, ensure_ascii=False)
            write_text(text, stage / MANIFEST)
            for name in (*files, MANIFEST):
                os.replace(stage / name, folder / name)
            for name in gone:
                (folder / name).unlink()
    except OSError as error:
        reason = error.strerror or error
        raise SettingError(f"nothing was written to {str(folder)!r}: {reason}") from error
    if interrupts:
        signal.raise_signal(signal.SIGINT)
    return sorted(files)


def _check_replaceable(folder: Path, names: Sequence[str], force: bool) -> None:
    """Raise for files that are there, and were not written by raters or have changed since."""
    known = _manifest(folder)
    for path in (folder / name for name in names):
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not path.is_file():
            raise SettingError(
                f"{str(path)!r} is a link, a folder or a device, and is not replaced; choose"
                " another name"
            )
        if not force and not _is_unchanged(path, known):
            raise SettingError(
                f"{str(path)!r} is there already, and was not written by raters or has changed"
                " since; choose another name, or replace it with --force"
            )


def _manifest(folder: Path) -> dict[str, tuple[str, bool]]:
    """Files that raters wrote into the folder, with checksums, and True if it wrote it whole."""
    try:
        files = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        return {str(name): (str(checksum), bool(of)) for name, (checksum, of) in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is_unchanged(path: Path, known: Mapping[str, tuple[str, bool]]) -> bool:
    """True for a file that is as raters wrote it."""
    return path.name in known and path.is_file() and known[path.name][0] == _checksum(path)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or that of its parents which exists."""
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())
