"""Outputs of the command line: they appear whole or not at all, and never in place of a file that
raters did not write."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import xarray as xr

from raters.errors import DataError, SettingError

if sys.platform != "win32":
    import fcntl

# Outputs are prepared in a folder of this name beside where they go, so that moving them there is
# one step.
_STAGE = ".raters-"
NOTHING = "nothing was written"
# In each folder, the files that raters wrote there, by name.
MANIFEST = ".raters-files.json"


def check_writable(
    path: Path,
    *,
    folder: bool,
    option: str = "--out",
    force: bool = False,
    inputs: Sequence[Path | None] = (),
    names: Sequence[str] = (),
    of: str | None = None,
) -> None:
    """Raise unless `path` can be written, before hours are spent on what should go there."""
    if folder and path.exists() and not path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a file; name a folder")
    if not folder and path.is_dir():
        raise SettingError(f"{option} {str(path)!r} is a folder; name a file")
    if not folder and not path.parent.is_dir():
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}"
        )
    for read in inputs:
        if read is not None and path.exists() and read.exists() and path.samefile(read):
            raise SettingError(
                f"{option} {str(path)!r} is the file that is read; name another, so that it is not"
                " lost"
            )
    if folder:
        _check_replaceable(path, names, force)
    else:
        _check_replaceable(path.parent, [path.name], force, of or path.name)
    holder = _nearest_folder(path if folder else path.parent)
    try:
        os.rmdir(tempfile.mkdtemp(prefix=_STAGE, dir=holder))
    except OSError as error:
        raise SettingError(
            f"{option} {str(path)!r} cannot be written: {error.strerror} in {str(holder)!r}"
        ) from error


def write_file(path: Path, write: Callable[[Path], object], *, force: bool = False) -> None:
    """Write one file whole, or not at all."""
    _publish(path.parent, lambda stage: write(stage / path.name), force, whole=False, of=path.name)


def write_folder(
    folder: Path,
    write: Callable[[Path], object],
    *,
    force: bool = False,
    whole: bool = True,
    of: str | None = None,
) -> list[str]:
    """Write several files into a folder, all or none."""
    return _publish(folder, write, force, whole=whole, of=of)


def to_netcdf(result: xr.DataTree, path: Path) -> None:
    """Write a result."""
    try:
        result.to_netcdf(path)
    except RuntimeError as error:
        _check_room(path, result.nbytes)
        raise OSError(f"the netCDF file cannot be written ({error})") from error


def _check_room(path: Path, size: int) -> None:
    """Raise the `OSError` of a file of this size; leaves none behind."""
    piece = bytes(1 << 20)
    try:
        with path.open("wb") as file:
            for _ in range(size // len(piece) + 1):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def if_interrupted(text: str) -> Iterator[None]:
    """Give an interruption a text, unless it has one."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or text) from stop


@contextmanager
def already(text: str) -> Iterator[None]:
    """Add what is written already to an error or an interruption of the rest."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, DataError, SettingError) as error:
        raise SettingError(f"{_reason(error)}; {text}") from error
    except KeyboardInterrupt as stop:
        parts = [part for part in (str(stop), text) if part not in ("", NOTHING)]
        raise KeyboardInterrupt("; ".join(parts)) from stop


def _publish(
    folder: Path, write: Callable[[Path], object], force: bool, *, whole: bool, of: str | None
) -> list[str]:
    """Write into a stage beside the folder, or where that fails in the folder for temporary files,
    and move what was written to its place."""
    with if_interrupted(NOTHING):
        stage, failed = _filled(folder, write)
    names = sorted(file.name for file in stage.iterdir())
    try:
        if failed is not None:
            raise failed
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            there = _check_replaceable(folder, names, force, of)
            _move(stage, folder, names, there, {"whole": whole, "of": of})
        shutil.rmtree(stage, ignore_errors=True)
    except (OSError, SettingError) as error:
        raise SettingError(_kept(stage, folder, names, _reason(error))) from error
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_kept(stage, folder, names)) from error
    return names


def _filled(folder: Path, write: Callable[[Path], object]) -> tuple[Path, OSError | None]:
    """A stage with everything in it, and why it is not beside the folder."""
    failed: OSError | None = None
    for place in (_nearest_folder(folder), None):
        stage = None
        try:
            stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=place))
            write(stage)
            for file in stage.iterdir():
                _sync(file)
        except BaseException as error:
            if stage is not None:
                shutil.rmtree(stage, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            failed = failed or error
        else:
            return stage, failed
    assert failed is not None
    text = f"nothing could be written to {str(folder)!r}: {_reason(failed)}"
    raise SettingError(text) from failed


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _sync(file: Path) -> None:
    """Have a file on the disk: some file systems find only then that there is no room for it."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other command write into the folder meanwhile, where the file system has locks."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _kept(stage: Path, folder: Path, names: Sequence[str], reason: str = "") -> str:
    """Keep what has not been moved, under a name that is seen; gives the sentence on it."""
    moved = [name for name in names if _is_moved(stage / name, folder / name)]
    left = [name for name in names if name not in moved]
    written = f"{', '.join(moved)} in {str(folder)!r} {'is' if len(moved) == 1 else 'are'} written"
    because = f": {reason}" if reason else ""
    if not left:
        shutil.rmtree(stage, ignore_errors=True)
        earlier = f", but files of an earlier run could not be removed{because}"
        return written + (earlier if reason else "")
    kept = stage.with_name(stage.name.replace(_STAGE, "raters-kept-", 1))
    for name in (MANIFEST, *moved):
        with suppress(OSError):
            (stage / name).unlink()
    try:
        stage.rename(kept)
    except OSError:
        kept = stage
    where = f"{str(folder / names[0])!r} was not written"
    if len(names) > 1:
        where = f"not all files could be written to {str(folder)!r}"
    return f"{where}{because}; what was made ({', '.join(left)}) is in {str(kept)!r}" + (
        f"; {written}" if moved else ""
    )


def _is_moved(source: Path, target: Path) -> bool:
    """True for a file that is in its place, where a link of it may still be in the stage."""
    return not source.exists() or (target.exists() and source.samefile(target))


def _move(
    stage: Path, folder: Path, names: Sequence[str], there: set[str], entry: Mapping[str, Any]
) -> None:
    """Note what is written, move files to their place, and remove those of an earlier run."""
    written = _manifest(folder)
    earlier = {name: own for name, own in written.items() if own["whole"] and entry["whole"]}
    for name in names:
        known = set(written.get(name, {"sha256": []})["sha256"])
        before = known & {_digest(folder / name)} if name in there else set()
        written[name] = {"sha256": [_digest(stage / name), *before], **entry}
    note = stage / MANIFEST
    note.write_text(json.dumps({"files": written}, indent=1, ensure_ascii=False), "utf-8")
    _sync(note)
    os.replace(note, folder / MANIFEST)
    for name in names:
        if name in there:
            os.replace(stage / name, folder / name)
        else:
            _link(stage / name, folder / name)
    for name in earlier.keys() - set(names):
        path = folder / name
        if path.is_file() and _digest(path) in earlier[name]["sha256"]:
            path.unlink()


def _link(source: Path, target: Path) -> None:
    """Give a file its place, but not that of one that has come meanwhile."""
    try:
        os.link(source, target)
    except FileExistsError as error:
        raise SettingError(f"{str(target)!r} has come meanwhile; choose another name") from error
    except OSError:  # a file system without links
        os.replace(source, target)


def _check_replaceable(
    folder: Path, names: Iterable[str], force: bool, of: str | None = None
) -> set[str]:
    """Names of the files that are there; raises for those that are not to be replaced by files
    that belong to the file `of`."""
    written, there = _manifest(folder), set()
    for name in names:
        path = folder / name
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not path.is_file():
            raise SettingError(
                f"{str(path)!r} is a link, a folder or a device, and is not replaced; choose"
                " another name"
            )
        there.add(name)
        if force:
            continue
        if not path.stat().st_mode & 0o222:
            raise SettingError(
                f"{str(path)!r} is read-only; choose another name, or replace it with --force"
            )
        if _digest(path) not in written.get(name, {"sha256": []})["sha256"]:
            raise SettingError(
                f"{str(path)!r} is there already, and was not written by raters or has changed"
                " since; choose another name, or replace it with --force"
            )
        if of is not None and (owner := written[name]["of"]) not in (None, of):
            raise SettingError(
                f"{str(path)!r} was written with {owner!r}, and what is written with {of!r} would"
                " take its place; choose another name, or replace it with --force"
            )
    return there


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Files that raters wrote into the folder; none where nothing can be read."""
    try:
        files = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        return {
            str(name): {
                "sha256": list(map(str, entry["sha256"])),
                "whole": bool(entry["whole"]),
                "of": entry.get("of"),
            }
            for name, entry in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def has_changed(path: Path) -> bool:
    """True for a file that raters wrote and that is not as it was written."""
    entry = _manifest(path.parent).get(path.name)
    return entry is not None and _digest(path) not in entry["sha256"]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or that of its parents which exists."""
    path = path.resolve()
    return next(parent for parent in (path, *path.parents) if parent.exists())
