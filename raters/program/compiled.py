"""Compiled functions that are kept from one process to the next."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache
from platformdirs import user_cache_path

# Bytes on disk, beyond which the oldest half goes. JAX's own limit reads all files of the folder
# for each function that it adds, which takes longer than many functions take to compile.
_MOST = 1 << 29


@cache
def keep_compiled() -> None:
    """Let JAX keep compiled functions in the user's cache directory, unless it has one already."""
    update: Any = jax.config.update
    if jax.config.jax_compilation_cache_dir is not None:
        return
    with suppress(OSError):
        folder = user_cache_path("raters", appauthor=False, ensure_exists=True)
        update("jax_compilation_cache_dir", str(folder))
        # The small functions of a fit take a second to compile together.
        update("jax_persistent_cache_min_compile_time_secs", 0.0)
        compilation_cache.reset_cache()  # What was compiled before has switched it off.
        _prune(folder)  # Ends where another process removes files at the same time.


def _prune(folder: Path) -> None:
    """Remove the oldest half of the files where they take more than the limit."""
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    if sum(path.stat().st_size for path in files) > _MOST:
        for path in files[: len(files) // 2]:
            path.unlink(missing_ok=True)
