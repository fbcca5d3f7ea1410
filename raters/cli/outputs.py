"""Outputs of the command line: they appear whole or not at all, and never in place of a file that
raters did not write."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from raters.cli.interrupts import deferred
from raters.errors import DataError, SettingError

# In each folder, the files that raters wrote there, by name.
MANIFEST = ".raters-files.json"
_STAGE = ".raters-"


def check_writable(
    path: Path,
    *,
    folder: bool = False,
    option: str = "--out",
    force: bool = False,
    inputs: Sequence[Path | None] = (),
    names: Sequence[str] = (),
) -> None:
    """Raise unless `path` can be written, before hours are spent on what should go there."""
    here = path if folder else path.parent
    if folder and path.exists() and not path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a file; name a folder")
    if not folder and (path.is_dir() or not path.name):
        raise SettingError(f"{option} {str(path)!r} is a folder; name a file")
    if not folder and not here.is_dir():
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: there is no folder {str(here)!r}"
        )
    for read in inputs:
        if read is not None and path.exists() and read.exists() and path.samefile(read):
            raise SettingError(f"{option} {str(path)!r} is the file that is read; name another")
    _check_replaceable(here, names if folder else [path.name], force)
    holder = _nearest_folder(here)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=_STAGE, dir=holder))
    except OSError as error:
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: {error.strerror} in {str(holder)!r}"
        ) from error


def write_file(path: Path, write: Callable[[Path], object], *, force: bool = False) -> None:
    """Write one file whole, or not at all."""
    write_folder(path.parent, lambda stage: write(stage / path.name), force=force, whole=False)


def write_folder(
    folder: Path, write: Callable[[Path], object], *, force: bool = False, whole: bool = True
) -> list[str]:
    """Write several files into a folder, all or none; those of an earlier run that are not written
    again go where the folder is `whole`."""
    stage = None
    try:
        with deferred():
            stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=_nearest_folder(folder)))
            write(stage)
            names = sorted(file.name for file in stage.iterdir())
            for name in names:
                _sync(stage / name)
            folder.mkdir(parents=True, exist_ok=True)
            _check_replaceable(folder, names, force)
            _move(stage, folder, names, whole)
    except OSError as error:
        reason = error.strerror or error
        raise SettingError(f"nothing was written to {str(folder)!r}: {reason}") from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
    return names


def _move(stage: Path, folder: Path, names: Sequence[str], whole: bool) -> None:
    """Note what is written, put files in their place, and remove those of an earlier run."""
    known = manifest(folder)
    entries = {name: {"sha256": _digest(stage / name), "whole": whole} for name in names}
    old = [name for name, entry in known.items() if whole and entry["whole"]]
    gone = [name for name in old if name not in entries and _is_own(folder / name, known)]
    left = {name: entry for name, entry in known.items() if name not in gone}
    text = json.dumps({"files": left | entries}, indent=1, ensure_ascii=False)
    (stage / MANIFEST).write_text(text, "utf-8")
    for name in (*names, MANIFEST):
        os.replace(stage / name, folder / name)
    for name in gone:
        (folder / name).unlink()


def to_netcdf(result: xr.DataTree, path: Path) -> None:
    """Write a result; a disk without room is an `OSError`."""
    try:
        result.to_netcdf(path)
    except RuntimeError as error:
        raise OSError(f"the netCDF file cannot be written ({error})") from error


def read_result(path: Path) -> xr.DataTree:
    """A result that was saved."""
    from raters.cli.tables import must_be_file

    must_be_file(path)
    known = manifest(path.parent)
    if path.name in known and not _is_own(path, known):  # netCDF may hang on a damaged file.
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
        if not force and not _is_own(path, known):
            raise SettingError(
                f"{str(path)!r} is there already, and was not written by raters or has changed"
                " since; choose another name, or replace it with --force"
            )


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Files that raters wrote into the folder; none where nothing can be read."""
    try:
        files = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        return {
            str(name): {"sha256": str(entry["sha256"]), "whole": bool(entry["whole"])}
            for name, entry in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _is_own(path: Path, known: dict[str, dict[str, Any]]) -> bool:
    """True for a file that is as raters wrote it."""
    if path.name not in known or not path.is_file():
        return False
    return _digest(path) == str(known[path.name]["sha256"])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(file: Path) -> None:
    """Have a file on the disk: some file systems find only then that there is no room for it."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or that of its parents which exists."""
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())
