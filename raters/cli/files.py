"""Files that the command line reads and writes, and what it prints. Outputs appear whole or not at
all, and never in place of a file that raters did not write."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters.cli.app import on_interrupt
from raters.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from raters.judgements.display import display_name, visible
from raters.judgements.reading.files import ENDING, must_be_file, table_format
from raters.reporting.facts import plain
from raters.reporting.files import write_csv
from raters.reporting.views import as_options

# Writers of files by name.
Writer = Callable[[Path], object]
Files = dict[str, Writer]
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
        text = as_options(visible(" ".join(str(message).split())))
        if text not in seen:
            seen.append(text)
            note(f"warning: {text}")

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = keep
        yield seen


# ---------------------------------------------------------------- results


def companion(path: Path, mark: str) -> Path:
    """File to write beside a table or a JSON file: its name with `mark` in place of the ending."""
    return path.with_name(ENDING.sub("", path.name) + mark)


def check_columns(table: pd.DataFrame, path: Path, names: Sequence[str]) -> None:
    """`DataError` unless a table has these columns."""
    if missing := [name for name in names if name not in table]:
        columns = list(map(str, table.columns))
        raise DataError(f"{str(path)!r} has no column {missing[0]!r}; it has {columns}")


def read_result(path: Path) -> xr.DataTree:
    """A result that was saved."""
    must_be_file(path)
    known = _manifest(path.parent)
    if path.name in known and not _is_unchanged(path, known):
        # netCDF may hang on a damaged file.
        raise DataError(f"{str(path)!r} is not as raters wrote it; fit again, or give a copy")
    try:
        with xr.open_datatree(path, engine="netcdf4") as stored:
            result = stored.load()
            if {"posterior", "constant_data"} <= set(result.children) and "model" in result.attrs:
                return result
            raise ValueError
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{str(path)!r} is no netCDF: give what raters fit wrote") from error


# ---------------------------------------------------------------- what is written


def check_writable(
    path: Path, given: Namespace, *, option: str = "--out", names: Sequence[str] = ()
) -> None:
    """Raise unless a file, or a folder with files of these names, can be written, before hours are
    spent on what should go there. What a command reads is not replaced."""
    folder = path if names else path.parent
    named = [getattr(given, name, None) for name in ("file", "journal", "texts")]
    read = [one for one in (*named, *getattr(given, "gold", ())) if one and one.is_file()]
    if path.is_file() and any(map(path.samefile, read)):
        raise SettingError(f"{option} {str(path)!r} is a file that is read; name another")
    holder = _nearest_folder(folder)
    if not (holder.is_dir() and os.access(holder, os.W_OK)):
        raise SettingError(f"{option} {str(path)!r} cannot be written in {str(holder)!r}")
    _check_replaceable(folder, names or [path.name], getattr(given, "force", False))


def check_outputs(
    given: Namespace,
    forms: Collection[str] = (),
    *,
    option: str = "--out",
    check_form: Callable[[Path], object] | None = None,
) -> None:
    """Raise unless what is asked for can be written, as tables or in these other forms."""
    paths = getattr(given, option.removeprefix("--"))
    for path in paths if isinstance(paths, list) else [paths] * (paths is not None):
        if check_form is not None:
            check_form(path)
        elif path.suffix.lower() not in forms:
            table_format(path, written=True)
        check_writable(path, given, option=option)


def write_table(table: pd.DataFrame, path: Path, *, people: bool = True) -> None:
    """A table as CSV, TSV, Parquet or JSON lines, by the ending of `path`. One for people has text
    that stays text where a spreadsheet opens it."""
    kind = table_format(path, written=True)
    if kind == "Parquet":
        table.to_parquet(path, index=False)
    elif kind == "JSON lines":  # Written here, because pandas keeps ten digits of a number.
        lines = "".join(json.dumps(plain(row)) + "\n" for row in table.to_dict("records"))
        packed = path.suffix.lower() == ".gz"
        path.write_bytes(gzip.compress(lines.encode()) if packed else lines.encode())
    else:
        write_csv(table, path, "\t" if kind == "TSV" else ",", people=people)


def as_text(content: Any) -> str:
    """Content as JSON for people."""
    return json.dumps(content, indent=1, ensure_ascii=False)


def write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


def to_netcdf(result: xr.DataTree, path: Path) -> None:
    """Write a result; a disk without room is an `OSError`."""
    try:
        result.to_netcdf(path)
    except RuntimeError as error:
        raise OSError(f"the netCDF file cannot be written ({error})") from error


def write_file(path: Path, write: Writer, force: bool = False, quiet: bool = True) -> None:
    """Write one file whole, or not at all; and say so."""
    write_folder(path.parent, {path.name: write}, force)
    note(f"wrote {path}", quiet)


def write_folder(folder: Path, files: Files, force: bool = False, whole: bool = False) -> list[str]:
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
            write_text(as_text({"files": left | written}), stage / MANIFEST)
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
        problem = ""
        if path.is_symlink() or not path.is_file():
            problem = "is a link, a folder or a device, and is not replaced"
        elif not force and not _is_unchanged(path, known):
            problem = "was not written by raters, or has changed since (--force replaces it)"
        if problem:
            raise SettingError(f"{str(path)!r} {problem}; choose another name")


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
