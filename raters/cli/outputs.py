"""Outputs of the command line: they appear whole or not at all, and never in place of a file that
raters did not write."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import xarray as xr

from raters.cli.columns import given_roles
from raters.cli.console import note
from raters.cli.interrupts import deferred
from raters.cli.tables import must_be_file, table_format, write_for_people
from raters.errors import DataError, SettingError

# In each folder, the files that raters wrote there.
MANIFEST = ".raters-files.json"


def check_writable(
    path: Path, given: Namespace, *, option: str = "--out", names: Sequence[str] = ()
) -> None:
    """Raise unless a file, or a folder with files of these names, can be written, before hours are
    spent on what should go there. What a command reads is not replaced."""
    folder, problem = path if names else path.parent, ""
    if names and path.is_file():
        problem = "is a file; name a folder"
    elif not names and not folder.is_dir():
        problem = f"cannot be written: there is no folder {str(folder)!r}"
    elif not names and (path.is_dir() or not path.name):
        problem = "is a folder; name a file"
    elif path.is_file() and any(path.samefile(read) for read in _inputs(given)):
        problem = "is a file that is read; name another"
    if problem:
        raise SettingError(f"{option} {str(path)!r} {problem}")
    _check_replaceable(folder, names or [path.name], getattr(given, "force", False))
    holder = _nearest_folder(folder)
    if not os.access(holder, os.W_OK):
        raise SettingError(f"{option} {str(path)!r} cannot be written: {str(holder)!r} is not ours")


def _inputs(given: Namespace) -> list[Path]:
    """Files that a command reads."""
    named = [getattr(given, name, None) for name in ("file", "journal", "texts")]
    every = [given_roles(given.words)[0], *named, *getattr(given, "gold", ())]
    return [path for path in map(Path, filter(None, every)) if path.is_file()]


def check_table(given: Namespace) -> None:
    """Raise unless a table can be written, where one is asked for."""
    if given.out is not None:
        table_format(given.out)
        check_writable(given.out, given)


def write_table(table: pd.DataFrame, given: Namespace) -> None:
    """Write a table where one is asked for."""
    if given.out is not None:
        write_file(given.out, partial(write_for_people, table), given.force)
        note([f"wrote {len(table)} rows to {given.out}"], given.quiet)


def write_file(path: Path, write: Callable[[Path], object], force: bool = False) -> None:
    """Write one file whole, or not at all."""
    write_folder(path.parent, {path.name: write}, force)


def write_folder(
    folder: Path,
    files: dict[str, Callable[[Path], object]],
    force: bool = False,
    *,
    whole: bool = False,
) -> list[str]:
    """Write several files into a folder, all or none; those of an earlier run that are not written
    again go where the folder is `whole`."""
    stage = None
    try:
        with deferred():
            stage = Path(tempfile.mkdtemp(prefix=".raters-", dir=_nearest_folder(folder)))
            for name, write in files.items():
                write(stage / name)
                with (stage / name).open("r+b") as file:
                    os.fsync(file)  # some file systems find only then that there is no room
            folder.mkdir(parents=True, exist_ok=True)
            _check_replaceable(folder, list(files), force)
            known = manifest(folder)
            old = [name for name in known if whole and known[name][1] and name not in files]
            gone = [name for name in old if _is_unchanged(folder / name, known)]
            left = {name: known[name] for name in known if name not in gone}
            written = {name: (_checksum(stage / name), whole) for name in files}
            text = json.dumps({"files": left | written}, indent=1, ensure_ascii=False)
            (stage / MANIFEST).write_text(text, "utf-8")
            for name in (*files, MANIFEST):
                os.replace(stage / name, folder / name)
            for name in gone:
                (folder / name).unlink()
    except OSError as error:
        reason = error.strerror or error
        raise SettingError(f"nothing was written to {str(folder)!r}: {reason}") from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    return sorted(files)


def to_netcdf(result: xr.DataTree, path: Path) -> None:
    """Write a result; a disk without room is an `OSError`."""
    try:
        result.to_netcdf(path)
    except RuntimeError as error:
        raise OSError(f"the netCDF file cannot be written ({error})") from error


def read_result(path: Path) -> xr.DataTree:
    """A result that was saved."""
    must_be_file(path)
    known = manifest(path.parent)
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


def _check_replaceable(folder: Path, names: Sequence[str], force: bool) -> None:
    """Raise for files that are there, and were not written by raters or have changed since."""
    known = manifest(folder)
    for name in names:
        path = folder / name
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


def manifest(folder: Path) -> dict[str, tuple[str, bool]]:
    """Files that raters wrote into the folder, each with its checksum, and True if it was written
    with a whole folder; none where nothing can be read."""
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
